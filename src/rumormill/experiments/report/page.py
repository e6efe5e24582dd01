"""The report of a run: one HTML file that needs nothing else, no network either."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.experiments.analyse.bootstrap import bootstrap_band
from rumormill.experiments.analyse.claims import Verdict, verdicts
from rumormill.experiments.analyse.summary import summary, verdict_row
from rumormill.experiments.analyse.views import (
    Point,
    at_end,
    axis_name,
    curves,
    horizon,
    in_words,
    part,
    points,
)
from rumormill.experiments.figures.palette import look
from rumormill.experiments.report.bounds import bounds_section
from rumormill.experiments.report.markup import picture, table
from rumormill.experiments.run.progress import amount, duration
from rumormill.experiments.run.store import write_atomically
from rumormill.experiments.spec.toml import to_toml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.run.store import RunFolder


def write_report(run: RunFolder, path: Path, bounds: RunBounds | None = None) -> Path:
    """Write the report; it gets its name only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, report_html(run, bounds).encode())
    return path


def report_html(run: RunFolder, bounds: RunBounds | None = None) -> str:
    """The report as text; with `bounds`, the theory has a section of its own."""
    from plotly.offline import get_plotlyjs

    spec = run.spec
    return Template(_page("html")).substitute(
        title=html.escape(spec.title or spec.name),
        name=html.escape(spec.name),
        scale=html.escape(str(run.manifest["scale"])),
        question=html.escape(spec.question),
        notice=_notice(run),
        trials=_plural(run.manifest["trials"], "trial"),
        horizon=f"{horizon(run):,}",
        numbers=_numbers(run),
        verdicts=_verdicts(verdicts(run)),
        bounds="" if bounds is None else bounds_section(bounds),
        pictures=_pictures(run),
        settings=_settings(run),
        command=html.escape(command_for(run) + ("" if bounds is None else " --bounds")),
        spec=html.escape(to_toml(run.manifest["spec"])),
        data=_safe_json(chart_data(run)),
        css=_page("css"),
        js=_page("js"),
        plotly=get_plotlyjs(),
    )


def command_for(run: RunFolder) -> str:
    """The command that makes this run again."""
    from rumormill.experiments.spec.reading import at_scale, encode, named_spec, spec_names

    name, scale = str(run.manifest["name"]), str(run.manifest["scale"])
    if name in spec_names():
        shipped = named_spec(name)
        if scale in shipped.scale and encode(at_scale(shipped, scale)) == run.manifest["spec"]:
            return f"rumormill reproduce {name} --{scale}"
        trials, rounds = int(run.manifest["trials"]), int(run.manifest["horizon"])
        for start in shipped.scale:
            if encode(at_scale(shipped, start, trials=trials, horizon=rounds)) == run.manifest["spec"]:
                return f"rumormill reproduce {name} --{start} --trials {trials} --horizon {rounds}"
    return f"rumormill run {name}.toml"


def chart_data(run: RunFolder) -> dict[str, Any]:
    """Everything the charts draw, in few digits."""
    everywhere = points(run)
    return {
        "rounds": curves(part(run, run.policies[0], everywhere[0]))[0].tolist(),
        "horizon": f"{horizon(run):,}",
        "policies": [
            {"name": name, "colour": look(i).colour, "dash": look(i).dash, "symbol": look(i).symbol}
            for i, name in enumerate(run.policies)
        ],
        "points": [
            {"name": in_words(point), "curves": [_curve(run, policy, point) for policy in run.policies]}
            for point in everywhere
        ],
        "sweep": _sweep(run, everywhere),
    }


def _curve(run: RunFolder, policy: str, point: Point) -> dict[str, list[float]]:
    regret = curves(part(run, policy, point))[1]
    low, high = bootstrap_band(regret)
    return {"mean": _short(regret.mean(axis=0)), "low": _short(low), "high": _short(high)}


def _sweep(run: RunFolder, everywhere: list[Point]) -> dict[str, Any] | None:
    if not run.axes:
        return None
    one_axis = len(run.axes) == 1
    values = [point[run.axes[0]] if one_axis else in_words(point) for point in everywhere]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return {
        "name": axis_name(run.axes[0]) if one_axis else "sweep point",
        "numeric": numeric,
        "values": values if numeric else [str(value) for value in values],
        "ends": [[_end(run, policy, point) for point in everywhere] for policy in run.policies],
    }


def _end(run: RunFolder, policy: str, point: Point) -> list[float]:
    values = at_end(part(run, policy, point))
    low, high = bootstrap_band(values[:, None])
    return _short([values.mean(), low[0], high[0]])


def _short(values: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in np.asarray(values).tolist()]


# --- words and tables -----------------------------------------------------------------------------------


def _notice(run: RunFolder) -> str:
    if run.manifest["status"] == "done":
        return ""
    return '<p class="notice">This run is not finished: what follows rests on the cells done so far.</p>'


def _numbers(run: RunFolder) -> str:
    head = [
        *(axis_name(axis) for axis in run.axes),
        "policy",
        "group regret",
        "95 % band",
        "median agent",
        "worst agent",
        "messages per round",
    ]
    rows = [
        [
            *(str(row[axis]) for axis in run.axes),
            row["policy"],
            f"{row['regret']:,.0f}",
            f"{row['low']:,.0f} – {row['high']:,.0f}",
            f"{row['median_agent']:,.1f}",
            f"{row['worst_agent']:,.1f}",
            amount(row["messages_per_round"]),
        ]
        for row in summary(run)
    ]
    words = len(run.axes) + 1
    return table(head, rows, ["" if i < words else "number" for i in range(len(head))], wide=True)


def _verdicts(found: Sequence[Verdict]) -> str:
    if not found:
        return "<p>The paper claims nothing that this experiment could check.</p>"
    shown = ("claim", "verdict", "difference", "confidence interval", "detail")
    rows = [[str(verdict_row(verdict)[name]) for name in shown] for verdict in found]
    return (
        "<p>Each claim is tested on differences within trials, relative to the second of the two compared; "
        "all intervals together hold with 95 % confidence.</p>"
        + table(list(shown), rows, ["", "word", "number", "number", ""])
    )


def _settings(run: RunFolder) -> str:
    spec, manifest = run.manifest["spec"], run.manifest
    timings = manifest["timings"]
    facts = {
        "network": _pairs(spec["network"]),
        "arms": _pairs(spec["arms"]),
        **{f"policy {policy['label']}": _pairs(policy, leave_out=("label",)) for policy in spec["policies"]},
        **{f"sweep {axis}": ", ".join(map(str, values)) for axis, values in spec.get("sweep", {}).items()},
        "horizon": f"{manifest['horizon']:,} rounds",
        "trials": f"{manifest['trials']:,}",
        "seed": str(manifest["seed"]),
        "versions": ", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
        "machine": f"{_plural(manifest['machine']['cores'], 'core')}, {manifest['machine']['system']}",
    }
    if "wall_s" in timings:
        facts["time taken"] = duration(timings["wall_s"])
    rows = (f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in facts.items())
    return f"<dl>{''.join(rows)}</dl>"


def _pairs(table: dict[str, Any], leave_out: tuple[str, ...] = ()) -> str:
    return ", ".join(f"{key} = {_plain(value)}" for key, value in table.items() if key not in leave_out)


def _plain(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


# --- pictures and parts of the page ---------------------------------------------------------------------


def _pictures(run: RunFolder) -> str:
    from rumormill.experiments.figures.network import network_figures
    from rumormill.experiments.figures.regret import agent_distribution, regret_per_message

    shown: list[tuple[Figure, str, str]] = [
        (agent_distribution(run), "svg", "How regret is spread over the agents, averaged over trials."),
        (regret_per_message(run), "svg", "What communication buys: regret against what was sent for it."),
    ]
    shown += [
        (figure, "png", "The network of the first trial, its cliques and its leaders.")
        for figure in network_figures(run).values()
    ]
    return f'<div class="pictures">{"".join(picture(*each) for each in shown)}</div>'


def _page(suffix: str) -> str:
    return (resources.files("rumormill.experiments.report") / "template" / f"report.{suffix}").read_text(
        "utf-8"
    )


def _safe_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
