"""Figures and HTML page of an advice: checks, baselines, loss against messages, Pareto front of a spec."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill import catalogue
from rumormill.advice.advise import Advice
from rumormill.advice.mesh_output import mesh_of
from rumormill.advice.model_checks.drift import SEGMENTS
from rumormill.advice.report_text import (
    LogAdvice,
    alarms,
    asked,
    basis,
    checks,
    findings,
    gain_sentence,
    group_lines,
    headline,
    in_short,
    recommendation,
    reported_on,
    what_could_be_wrong,
)
from rumormill.catalogue import label_of
from rumormill.experiments.report.markup import picture, table
from rumormill.files import write_atomically
from rumormill.mesh.file import mesh_text
from rumormill.plotting.style import (
    GREY,
    HEIGHT,
    LOOKS,
    WIDTH,
    decades_and_zero,
    key_below,
    looks,
    new_figure,
    plain_ticks,
    style,
)
from rumormill.text import number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 60
KINDS = {"alone": "alone", "all": "all together", "groups": "in groups"}


def model_figure(advice: LogAdvice) -> Figure:
    """The five checks of the model, and the baselines."""
    with style():
        figure = new_figure(9.0, 6.2)
        panels = figure.subplots(2, 3).ravel()
        drawers = (_homogeneity, _drift, _tails, _dependence, _enough)
        for axes, draw, finding in zip(panels, drawers, checks(advice), strict=False):
            draw(advice, axes)
            axes.set_title(asked(finding), loc="left")
        _baselines(advice, panels[5])
    return figure


def price_figure(advice: LogAdvice) -> Figure:
    """Every candidate that was tried: score against messages; the recommended one is ringed."""
    with style():
        figure = new_figure(4.8, 3.6)
        axes = figure.subplots()
        looked = looks(KINDS.values())
        for kind, name in KINDS.items():
            here = [each for each in advice.losses.values() if each.candidate.kind == kind]
            if here:
                axes.plot(
                    [each.messages for each in here],
                    [max(each.score, 1e-300) for each in here],
                    linestyle="none",
                    marker=looked[name].marker,
                    color=looked[name].colour,
                    alpha=0.8,
                    label=name,
                )
        chosen = advice.losses.get(replace(advice.setting, warm=False), advice.choice.chosen)
        axes.plot(
            [chosen.messages],
            [chosen.score],
            "o",
            markersize=11,
            color="black",
            fillstyle="none",
            label="recommended",
        )
        if min(each.score for each in advice.losses.values()) > 0:
            axes.set_yscale("log")
        decades_and_zero(axes, [each.messages for each in advice.losses.values()])
        axes.set_xlabel("messages per round, all links together")
        axes.set_ylabel(_with_unit(advice, "loss per request when it went badly"))
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _with_unit(advice: LogAdvice, text: str) -> str:
    """An axis label with the unit."""
    return f"{text} ({advice.log.unit})" if advice.log.unit else text


def _homogeneity(advice: LogAdvice, axes: Any) -> None:
    """Loss of every agent with every arm; rows in the order of the groups."""
    same = advice.model.homogeneity
    signed = advice.log.sign * same.means
    loss = np.nanmax(signed, axis=1, keepdims=True) - signed
    order = [v for group in same.groups for v in group] if same.tested else list(range(len(loss)))
    order = [
        order[i] for i in np.unique(np.linspace(0, len(order) - 1, min(len(order), MOST_ROWS)).astype(int))
    ]
    image = axes.imshow(loss[order], aspect="auto", cmap="cividis_r", interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label=_with_unit(advice, "loss"))
    axes.set_xticks(
        range(len(advice.log.arms)), [name[:10] for name in advice.log.arms], rotation=45, ha="right"
    )
    axes.set_ylabel("agent")
    axes.grid(False)


def _drift(advice: LogAdvice, axes: Any) -> None:
    """Means of every arm over the log."""
    middle = (np.arange(SEGMENTS) + 0.5) / SEGMENTS
    for k, name in enumerate(advice.log.arms):
        look = LOOKS[k % len(LOOKS)]
        axes.plot(
            middle,
            advice.model.drift.segment_means[:, k],
            color=look.colour,
            marker=look.marker,
            label=name[:12],
        )
    axes.set_xlabel("share of the log")
    axes.set_ylabel(_with_unit(advice, "mean"))
    if advice.log.n_arms <= 8:
        axes.legend(fontsize=6, framealpha=0.8, edgecolor="none")


def _tails(advice: LogAdvice, axes: Any) -> None:
    """The tail index of every arm with its band; left of 2 the variance is infinite."""
    for k, tail in enumerate(advice.model.tails):
        high = min(tail.high, 8.0)
        axes.plot([min(tail.low, 8.0), high], [k, k], color=LOOKS[0].colour)
        if math.isfinite(tail.index):
            axes.plot([min(tail.index, 8.0)], [k], "o", color=LOOKS[0].colour)
    axes.axvline(2, color=GREY, linestyle="--", linewidth=0.8)
    axes.set_yticks(range(advice.log.n_arms), [name[:12] for name in advice.log.arms])
    axes.set_xlabel("tail index (variance infinite left of 2)")


def _dependence(advice: LogAdvice, axes: Any) -> None:
    """Both correlations with three standard errors."""
    near = advice.model.dependence
    errors = [3 * each if math.isfinite(each) else 0.0 for each in (near.lag_error, near.common_error)]
    axes.bar(
        [0, 1], [near.lag_one, near.common], yerr=errors, color=[LOOKS[0].colour, LOOKS[1].colour], capsize=3
    )
    axes.set_xticks([0, 1], ["with the last reward", "common to all"])
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.1), max(high, 0.1))  # small correlations should look small
    axes.set_ylabel("correlation")


def _enough(advice: LogAdvice, axes: Any) -> None:
    """The mean of every arm with its error, over all agents."""
    arms = range(advice.log.n_arms)
    axes.errorbar(advice.model.means, arms, xerr=2 * advice.model.errors, fmt="o", capsize=2)
    axes.set_yticks(arms, [name[:12] for name in advice.log.arms])
    axes.set_xlabel(_with_unit(advice, "mean over all agents"))


def _baselines(advice: LogAdvice, axes: Any) -> None:
    """Means of the baselines after the first part; their intervals are not calibrated, so none is drawn."""
    lines = advice.baselines[::-1]
    axes.plot([line.mean for line in lines], range(len(lines)), "o", color=LOOKS[2].colour)
    axes.set_yticks(range(len(lines)), [_short(line.name) for line in lines])
    axes.set_xlabel(_with_unit(advice, f"per request, {advice.log.better} is better"))
    axes.set_title(f"after the first {advice.rounds[0]:,} rounds", loc="left")


def _short(name: str) -> str:
    """The name of a baseline on an axis."""
    return "best common arm" if name.endswith("the best common arm") else name.removeprefix("always the ")


Rows = list[dict[str, Any]]


def pareto_figure(advice: Advice) -> Figure:
    """Regret against messages of every candidate, the Pareto front, and the recommended one as a star.

    Hollow marks have no lemma for these tails: they are not recommended.
    """
    rows = advice.rows()
    with style():
        figure = new_figure(WIDTH + 0.6, HEIGHT + 0.4)
        axes = figure.subplots()
        axes.set_yscale("log")
        _settings(axes, rows)
        _front(axes, rows)
        _recommended(axes, rows)
        if not all(row["allowed"] for row in rows):
            axes.plot([], [], "o", color=GREY, markerfacecolor="none", label="hollow: for comparison")
        axes.set_title(f"{advice.case.name}: {advice.chosen}")
        axes.set_xlabel("messages per round, all links together")
        axes.set_ylabel(f"group regret at round {advice.horizon:,}")
        decades_and_zero(axes, [row["messages_per_round"] for row in rows])
        plain_ticks(axes, x=False)
        key_below(figure)
    return figure


def _settings(axes: Axes, rows: Rows) -> None:
    """A mark per candidate, hollow where it may not be recommended."""
    labels = {name: label_of(made) for name, made in catalogue.POLICIES.items()}
    look = looks(labels.values())
    for index, (policy, label) in enumerate(labels.items()):
        mark = look[label]
        aside = 1 + 0.07 * (index - 1)  # so that policies with equal messages do not overlap
        for allowed in (True, False):
            shown = [row for row in rows if row["policy"] == policy and row["allowed"] == allowed]
            axes.plot(
                [row["messages_per_round"] * aside for row in shown],
                [row["regret"] for row in shown],
                linestyle="none",
                marker=mark.marker,
                color=mark.colour,
                markerfacecolor=mark.colour if allowed else "none",
                alpha=0.85,
                label=label if allowed else None,
            )


def _front(axes: Axes, rows: Rows) -> None:
    """The Pareto front as a line."""
    front = sorted((row for row in rows if row["on_front"]), key=lambda row: row["messages_per_round"])
    axes.plot(
        [row["messages_per_round"] for row in front],
        [row["regret"] for row in front],
        color="#444444",
        linewidth=0.8,
        zorder=1,
        label="front",
    )


def _recommended(axes: Axes, rows: Rows) -> None:
    """The recommended candidate as a star with its interval."""
    (best,) = [row for row in rows if row["recommended"]]
    axes.errorbar(
        best["messages_per_round"],
        best["regret"],
        yerr=[[best["regret"] - best["low"]], [best["high"] - best["regret"]]],
        marker="*",
        markersize=12,
        markerfacecolor="none",
        color="black",
        capsize=2,
        linestyle="none",
        label="recommended",
    )


# --- the page -------------------------------------------------------------------------------------------


def write_page(text: str, path: Path) -> Path:
    """Write a page; it gets its name only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


def summary_html(advice: LogAdvice, command: str) -> str:
    """One page to forward: the recommendation, a picture, the gain, what could be wrong, the next command."""
    log = advice.log
    wrong = "".join(f"<li>{html.escape(text)}</li>" for text in what_could_be_wrong(advice))
    kept = table(["agent", "arm"], [[*pair] for pair in (advice.kept_arms or {}).items()], ["", ""])
    kept = kept if advice.kept_arms else ""
    told = f"Outcome per request by way of choosing, {log.better} is better."
    what = f"What it would have {'saved' if log.better == 'less' else 'gained'} on this log"
    return f"""{_head(f"Advice in short: {log.name}")}
<header><p class="kicker">{html.escape(log.name)} · {len(log.value):,} values, {log.n_agents} agents,
{log.n_arms} arms</p>
<h1>{html.escape(in_short(advice))}.</h1></header>
<section id="picture">{picture(ways_figure(advice), "svg", told)}</section>
<section id="gain"><h2>{what}</h2><p>{html.escape(gain_sentence(advice))}</p>{kept}</section>
<section id="wrong"><h2>What could be wrong</h2><ul>{wrong}</ul></section>
<section id="next"><h2>The next command</h2><pre><code>{html.escape(command)}</code></pre></section>
</main></body></html>
"""


def ways_figure(advice: LogAdvice) -> Figure:
    """The outcome of every way of choosing, the recommended one first."""
    with style():
        figure = new_figure(WIDTH + 1.5, 0.6 + 0.42 * len(advice.baselines))
        _baselines(advice, figure.subplots())
    return figure


def _head(title: str) -> str:
    """The beginning of a page, up to its content."""
    css = (resources.files("rumormill.experiments.report") / "template" / "report.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{css}</style></head>
<body><main>"""


def page_html(advice: LogAdvice) -> str:
    """The page as text."""
    log = advice.log
    said = recommendation(advice)
    tried = f"Every setting that was tried on {basis(advice)}."
    unit = f", in {html.escape(log.unit)} per request" if log.unit else ""
    failing = len(alarms(advice))
    first = "".join(f'<p class="notice">{html.escape(text)}</p>' for text in said[:failing])
    rest = "".join(f"<p>{html.escape(text)}</p>" for text in said[failing:])
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in (*advice.notes, *advice.model.why_moments))
    return f"""{_head(f"Advice: {log.name}")}
<header><p class="kicker">rumormill · advice · {html.escape(log.name)}</p>
<h1>{html.escape(in_short(advice))}</h1>
<p class="question">{html.escape(headline(advice))}</p></header>
<section id="advice"><h2>Advice</h2>{first}{rest}{_group_list(advice)}
<pre><code>{html.escape(advice.code)}</code></pre></section>
<section id="lines"><h2>Outcome per way of choosing{unit}</h2>
<p>Chosen on {basis(advice)}, reported in {reported_on(advice)}. Means of values winsorised
by agent and arm.</p>
{_baseline_table(advice)}</section>
<section id="model"><h2>The model, tested</h2>{_findings_table(advice)}
{picture(model_figure(advice), "svg", "The checks of the model, one by one.")}
<div class="pictures">{picture(price_figure(advice), "svg", tried)}</div></section>
<section id="settings"><h2>{plural(len(advice.choice.finals), "setting")} in the final</h2>
<p>Sorted by what was lost per request in the worse half of the replays; by agents alone, in the recorded
order where that was worse.</p>
{_settings_table(advice)}</section>
<section id="act"><h2>A file to act on</h2><details><summary>mesh.toml</summary>
<pre><code>{html.escape(mesh_text(mesh_of(advice)))}</code></pre></details></section>
<section id="notes"><h2>Notes</h2><ul>{notes}</ul></section>
</main></body></html>
"""


def _group_list(advice: LogAdvice) -> str:
    """The groups as an HTML list."""
    lines = group_lines(advice)
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _baseline_table(advice: LogAdvice) -> str:
    """The baselines as an HTML table."""
    head = ["way", "mean", "median", "p90"]
    rows = [
        [line.name, number(line.mean), number(line.median), number(line.p90)] for line in advice.baselines
    ]
    return table(head, rows, ["", "number", "number", "number"])


def _findings_table(advice: LogAdvice) -> str:
    """The checks as an HTML table."""
    head = ["check", "answer", "number", "in words"]
    rows = [[each.check, each.verdict, each.number, each.sentence] for each in findings(advice)]
    return table(head, rows, ["", "word", "number", ""])


def _settings_table(advice: LogAdvice) -> str:
    """The finalists as an HTML table."""
    head = ["setting", "lost when it went badly", "on average", "above the best (95 %)", "messages a round"]
    head += ["lemma", ""]
    rows = [
        [
            row["setting"],
            number(row["score"]),
            number(row["loss"]),
            f"{number(row['worse_low'])} – {number(row['worse_high'])}",
            number(row["messages_per_round"]),
            "covers it" if row["lemma"] else "none",
            "recommended" if row["recommended"] else "",
        ]
        for row in advice.rows()
    ]
    return table(head, rows, ["", "number", "number", "number", "number", "word", "word"])
