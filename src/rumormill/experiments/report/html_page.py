"""The report of a run: one HTML file that needs nothing else, no network either.

Its section on the theory says what the bounds promise, what was measured, and what that is worth.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from rumormill.experiments.analyse.bounds import PERFECT, RunBounds, bound_rows, in_sentence, lower_rows
from rumormill.experiments.analyse.claims import Verdict, too_few_for, verdict_row
from rumormill.experiments.analyse.measured import ANY, axis_name, in_words, is_number, value_name
from rumormill.experiments.analyse.summary import pair_row, too_few_to_compare
from rumormill.experiments.figures.registry import FIGURES, caption_of, drawn, key_of
from rumormill.experiments.figures.regret import scale_of, shown_policies
from rumormill.experiments.figures.theory import bounds_figure
from rumormill.experiments.report.markup import numbers, picture, safe_json, table, template
from rumormill.experiments.run.manifest import Manifest, fingerprint
from rumormill.experiments.spec.reading import at_scale, decode, named_spec, spec_names
from rumormill.experiments.watch.cases import report_section
from rumormill.files import to_toml, write_atomically
from rumormill.plotting.rendering import made_folder
from rumormill.plotting.style import band_key, looks
from rumormill.text import cell, duration, number, plural, rounded, setting

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import PolicyBounds
    from rumormill.experiments.analyse.summary import Series, Summary
    from rumormill.theory import Assumption

# Figures that the page has in another form: as charts, or in a section of their own.
ELSEWHERE = ("regret", "regret-linear", "regret-by", "regret-bounds")
# Thousands of links are smaller as dots than as lines.
AS_DOTS = ("network",)
# A table of more rows is folded away.
MOST_ROWS = 60
# Parts of a spec that are tables, as the page names them.
TABLES = ("network", "arms", "channel", "churn", "corruption", "byzantine")


def write_report(summary: Summary, path: Path) -> Path:
    """Write the report; it gets its name only when it is whole."""
    made_folder(path.parent, "a report")
    key = key_of(summary)
    if key is None or not _has(path, key):
        write_atomically(path, report_html(summary).encode())
    return path


def _has(path: Path, key: str) -> bool:
    """Whether the page is there and was made for this key."""
    if not path.is_file():  # a pipe would be waited for
        return False
    try:
        with path.open("rb") as file:
            return _mark(key).encode() in file.read(2_000)
    except OSError:
        return False


def _mark(key: str | None) -> str:
    return "" if key is None else f'<meta name="drawn-for" content="{key}">'


def report_html(summary: Summary) -> str:
    """The report as text; where bounds were asked for, the theory has a section of its own."""
    spec, bounds = summary.spec, summary.bounds
    return Template(template("report.html")).substitute(
        mark=_mark(key_of(summary)),
        title=html.escape(spec.title or spec.name),
        name=html.escape(spec.name),
        scale=html.escape(summary.manifest.scale),
        question=html.escape(spec.question),
        notice=_notice(summary),
        trials=plural(summary.manifest.trials, "trial"),
        horizon=rounded(summary.horizon),
        numbers=_numbers(summary),
        verdicts=_verdicts(summary.verdicts) + _compared(summary),
        bounds="" if bounds is None else bounds_section(bounds),
        rumours=report_section(spec),
        pictures=_pictures(summary),
        settings=_settings(summary),
        command=html.escape(command_for(summary.manifest) + ("" if bounds is None else " --bounds")),
        spec=html.escape(to_toml(summary.manifest.spec)),
        data=safe_json(chart_data(summary)),
        css=template("report.css") + template("watch.css"),
        chart=template("chart.js"),
        js=template("report.js") + template("watch.js"),
    )


def command_for(manifest: Manifest) -> str:
    """The command that makes a run again."""
    name, trials, rounds = manifest.name, manifest.trials, manifest.horizon
    if name in spec_names():
        # Version 0.1.0 knew fewer settings: read anew, its spec has the others too.
        found = manifest.spec_sha256 if manifest.format > 1 else fingerprint(decode(manifest.spec))
        for scale in named_spec(name).scale:
            ready = at_scale(named_spec(name), scale)
            if fingerprint(ready) == found:
                return f"rumormill reproduce {name} --{scale}"
            size = replace(ready.size, trials=trials, horizon=rounds)
            if fingerprint(replace(ready, scale={"custom": size})) == found:
                return f"rumormill reproduce {name} --{scale} --trials {trials} --horizon {rounds}"
    return f"rumormill run {name}.toml"


# --- charts ---------------------------------------------------------------------------------------------


def chart_data(summary: Summary) -> dict[str, Any]:
    """Everything the charts draw, in few digits."""
    look, first = looks(summary.policies), shown_policies(summary)
    places = {axis: list(dict.fromkeys(values[axis] for values in summary.points)) for axis in summary.axes}
    return {
        "name": summary.name,
        "rounds": summary.rounds.tolist(),
        "horizon": rounded(summary.horizon),
        "band": next(iter(band_key(summary.manifest.trials))),
        "policies": [
            {
                "name": name,
                "colour": mark.colour,
                "dash": mark.dash,
                "symbol": mark.symbol,
                "drawn": name in first,
            }
            for name, mark in look.items()
        ],
        "axes": [_axis(axis, values) for axis, values in places.items()],
        "points": [
            {
                "at": [places[axis].index(value) for axis, value in values.items()],
                "curves": [_curve(series) for series in summary.at(values)],
            }
            for values in summary.points
        ],
    }


def _curve(series: Series) -> dict[str, list[float]]:
    low, high = series.band
    return {"mean": _short(series.mean), "low": _short(low), "high": _short(high)}


def _axis(axis: str, values: list[Any]) -> dict[str, Any]:
    numeric = all(is_number(value) for value in values)
    scale = scale_of(np.array(values, float)) if numeric else "even"
    return {
        "name": axis_name(axis),
        "numeric": numeric,
        "scale": "even" if scale == "symlog" else scale,
        "values": values,
        "words": [value_name(value) for value in values],
    }


def _short(values: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in np.asarray(values).tolist()]


# --- words and tables -----------------------------------------------------------------------------------


def _notice(summary: Summary) -> str:
    if summary.manifest.status == "done":
        return ""
    return '<p class="notice">This run is not finished: what follows rests on the cells done so far.</p>'


def _numbers(summary: Summary) -> str:
    head, rows = numbers(summary)
    shown = table(head, rows, _kinds(head, len(summary.axes) + 1), wide=True)
    return _folded(f"{len(rows)} rows", shown, len(rows) > MOST_ROWS)


def _kinds(head: list[str], words: int) -> list[str]:
    return ["" if i < words else "number" for i in range(len(head))]


def _verdicts(found: Sequence[Verdict]) -> str:
    if not found:
        return "<p>This experiment claims nothing that it could check alone.</p>"
    if too_few_for(found):
        return f"<p>{html.escape(too_few_for(found))}.</p>".replace("none", "None", 1)
    shown = ("claim", "verdict", "difference", "confidence interval", "detail")
    rows = [[verdict_row(verdict)[name] for name in shown] for verdict in found]
    return (
        "<p>Each claim is tested on ratios within trials, relative to the second of the two compared, at "
        "their median; all intervals together hold with 95 % confidence, whatever the tails of regret.</p>"
        + table(list(shown), rows, ["", "word", "number", "number", ""])
    )


def _compared(summary: Summary) -> str:
    """Every policy against every other, folded away where there are many."""
    if not summary.pairs:
        return ""
    if summary.manifest.trials == 1:
        return "<p>One trial has no band: nothing is compared.</p>"
    if too_few_to_compare(summary.pairs):
        return f"<p>{html.escape(too_few_to_compare(summary.pairs))}.</p>"
    rows = [[value_name(value) for value in pair_row(pair).values()] for pair in summary.pairs]
    head = list(pair_row(summary.pairs[0]))
    shown = table(head, rows, _kinds(head, len(summary.axes) + 2), wide=True)
    return (
        "<h3>Policies compared</h3><p>How much larger the regret of the first is than that of the second, "
        "in the median over trials; all intervals together hold with 95 % confidence.</p>"
        + _folded(f"{len(rows):,} comparisons", shown, folded=True)
    )


def _settings(summary: Summary) -> str:
    manifest = summary.manifest
    spec, timings = manifest.spec, manifest.timings
    facts = {
        **{part: _pairs(spec[part]) for part in TABLES if part in spec},
        **{part: ", ".join(map(str, spec[part])) for part in ("absences", "outages") if spec.get(part)},
        **{f"policy {policy['label']}": _pairs(policy, leave_out=("label",)) for policy in spec["policies"]},
        **{f"sweep {axis}": ", ".join(map(str, values)) for axis, values in spec.get("sweep", {}).items()},
        "horizon": plural(manifest.horizon, "round"),
        "trials": rounded(manifest.trials),
        "seed": str(manifest.seed),
        "versions": ", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
        "machine": f"{plural(manifest.machine.cores, 'core')}, {manifest.machine.system}",
    }
    if timings is not None:
        facts["time taken"] = duration(timings.wall_s)
    constants = {f"{row['policy']}{_at(row)}": row["constants"] for row in summary.constants_in_short}
    known = _folded(f"{len(constants)} sets of constants", _facts(constants), len(constants) > MOST_ROWS // 4)
    return _facts(facts) + (f"<h3>Constants as resolved</h3>{known}" if constants else "")


def _facts(facts: dict[str, str]) -> str:
    rows = (f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in facts.items())
    return f"<dl>{''.join(rows)}</dl>"


def _folded(title: str, content: str, folded: bool) -> str:
    return f"<details><summary>{title}</summary>{content}</details>" if folded else content


def _at(row: dict[str, Any]) -> str:
    where = {key: value for key, value in row.items() if key not in ("policy", "constants") and value != ANY}
    return f" at {in_words(where)}" if where else ""


def _pairs(table: dict[str, Any], leave_out: tuple[str, ...] = ()) -> str:
    return ", ".join(f"{key} = {_plain(value)}" for key, value in table.items() if key not in leave_out)


def _plain(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


# --- pictures and parts of the page ---------------------------------------------------------------------


def _pictures(summary: Summary) -> str:
    """All figures of the table that the page does not show in another form."""
    shown = [
        picture(figure, "png" if name in AS_DOTS else "svg", caption_of(name))
        for name in FIGURES
        if name not in ELSEWHERE
        for figure in drawn(name, summary).values()
    ]
    return f'<div class="pictures">{"".join(shown)}</div>'


INTRO = (
    "Upper bounds hold for the expected regret of a policy in one game: one bandit on one network. The lower "
    "bound is a slope: in the long run no consistent policy stays below it; it says nothing about one round."
)
UPPER_INTRO = (
    "The ratio is the corrected bound over what was measured. The printed bound is the paper's formula "
    "letter by letter, which need not hold. Numbers in brackets refer to the notes below."
)
LOWER_INTRO = (
    "Coefficient · ln t is asymptotic, for policies consistent on the named family, and the same for any "
    "number of agents; a measured curve may be below it for any finite time. "
    "Most possible: T · M · Δmax, above which an upper bound is vacuous."
)


def bounds_section(found: RunBounds) -> str:
    """Remarks, the figure, and the tables."""
    notes = _NumberedSentences()
    upper = _upper(found, notes)
    return (
        '<section id="bounds">\n<h2>What the theory promises</h2>\n'
        f"{''.join(f'<p>{html.escape(remark)}</p>' for remark in [INTRO, *_cautions(found)])}"
        f'<div class="pictures">{picture(bounds_figure(found), "svg", caption(found))}</div>'
        f"<h3>Upper bounds at round {rounded(found.horizon)}</h3>"
        f"<p>{html.escape(UPPER_INTRO)}</p>{upper}"
        f"<details><summary>What the bounds rest on ({len(notes.seen)} notes)</summary>"
        f"{notes.html()}</details>"
        f"<h3>Lower bound, and the most possible</h3>"
        f"<p>{html.escape(LOWER_INTRO)}</p>{_lower(found)}\n</section>"
    )


def caption(found: RunBounds) -> str:
    """What the figure shows, and of which game."""
    return (
        f"{_whose_game(found)} Thin dotted lines: corrected upper bounds, from the round where they are "
        "below the regret of pulling the worst arm always (thin grey line). Dashed grey: the slope of the "
        "lower bound."
    )


def remarks(found: RunBounds) -> list[str]:
    """What a reader must know before believing a line: whose game it is, what is empty, what is unproven."""
    return [_whose_game(found), *_cautions(found)]


def _cautions(found: RunBounds) -> list[str]:
    every = [each for game in found.games for each in game.policies]
    empty = sum(each.at_end.vacuous for each in every)
    bare = dict.fromkeys(each.policy for each in every if not each.at_end.covered)
    most = "T · M · Δmax, the regret of pulling the worst arm always."
    said = [f"No bound is vacuous: all are below {most}"] if every and not empty else []
    if empty:
        said.append(
            f"{empty} of {len(every)} upper bounds {'is' if empty == 1 else 'are'} vacuous at round "
            f"{rounded(found.horizon)}: above {most} True, and empty: not drawn."
        )
    if bare:
        said.append(
            f"For {'; '.join(bare)} no lemma covers the radius or the moments in use (marked “not covered”; "
            "a factor as small as ζ = 1 is the usual reason): the line shows what the formula gives, not a "
            "promise."
        )
    if found.channel != PERFECT:
        said.append(
            "The bounds count on every message arriving in time (that of Decentralized knows of loss, and of "
            f"delay at one hop); the channel of this run ({found.channel}) need not do so."
        )
    without = {each.policy: each.reason for game in found.games for each in game.others}
    return said + [f"{policy}: {reason}." for policy, reason in without.items()]


def _whose_game(found: RunBounds) -> str:
    if found.one_game:
        return "All trials play the same game; measured is the mean over trials."
    return (
        "Every trial has a bandit or a network of its own: bounds and measured regret are both of the first "
        "trial's game, so that like stands beside like (one trial, not a mean)."
    )


def _upper(found: RunBounds, notes: _NumberedSentences) -> str:
    axes = list(found.games[0].values)
    numbers = ("measured", "corrected", "printed", "ratio")
    head = [*map(axis_name, axes), "policy", *numbers, "largest term", "worth", "assumptions"]
    every = [each for game in found.games for each in game.policies]
    rows = [
        [
            *(setting(row[axis]) for axis in axes),
            row["policy"],
            *(number(row[name]) for name in numbers[:3]),
            f"{number(row['ratio'])}{'×' if math.isfinite(row['ratio']) else ''}",
            _largest(each),
            "vacuous" if row["vacuous"] else "informative",
            f"{'hold' if row['covered'] else 'not covered'} {notes.numbers(each.at_end.assumptions)}",
        ]
        for row, each in zip(bound_rows(found), every, strict=True)
    ]
    return table(head, rows, ["number" if name in numbers else "" for name in head], wide=True)


def _largest(each: PolicyBounds) -> str:
    bound = each.at_end
    share = bound.terms[bound.dominant] / bound.value if math.isfinite(bound.value) else 1.0
    return f"{bound.dominant} ({rounded(100 * share)} %)"


def _lower(found: RunBounds) -> str:
    axes = list(found.games[0].values)
    numbers = {"coefficient": "coefficient of ln t", "at_end": f"at round {rounded(found.horizon)}"}
    numbers["most_possible"] = "most possible"
    head = [*map(axis_name, axes), *numbers.values(), "family, or why there is no lower bound"]
    rows = [
        [*(setting(row[axis]) for axis in axes), *(cell(row[key]) for key in numbers), row["family"]]
        for row in lower_rows(found)
    ]
    return table(head, rows, ["number" if name in head[-4:-1] else "" for name in head], wide=True)


class _NumberedSentences:
    """Sentences that many rows share, numbered in order of appearance."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def numbers(self, assumptions: Iterable[Assumption]) -> str:
        """The numbers of the sentences, those that warn first."""
        sentences = [in_sentence(each) for each in sorted(assumptions, key=lambda each: each.holds)]
        found = [str(self.seen.setdefault(sentence, len(self.seen) + 1)) for sentence in sentences]
        return f"[{', '.join(found)}]"

    def html(self) -> str:
        return f"<ol>{''.join(f'<li>{html.escape(sentence)}</li>' for sentence in self.seen)}</ol>"
