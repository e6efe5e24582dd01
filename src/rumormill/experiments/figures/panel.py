"""Several runs in one figure: each one's main picture as a panel, one key for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rumormill.experiments.analyse.labels import axis_name, in_words
from rumormill.experiments.figures.regret_by_parameter import along_parameter, far_apart, finish
from rumormill.experiments.figures.regret_over_time import curves
from rumormill.plotting.palette import Look, looks
from rumormill.plotting.style import band_key, bar_key, from_zero, key_below, new_figure, style
from rumormill.text import plural, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary

COLUMNS = 3


def panel_figure(summaries: Sequence[Summary], *, linear: bool = False) -> Figure:
    """The main picture of every run: against the parameter swept first, else against the round."""
    columns = min(len(summaries), COLUMNS)
    rows = math.ceil(len(summaries) / columns)
    look = looks(dict.fromkeys(policy for each in summaries for policy in each.policies))
    with style():
        figure = new_figure(2.3 * columns + 0.3, 2.0 * rows + 0.6)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        room = float(figure.get_size_inches()[0]) / columns - 0.7
        for place, (axes, summary) in enumerate(zip(panels, summaries, strict=False)):
            _panel(axes, summary, room, look, linear=linear)
            axes.set_title(f"({letter(place)}) {short_title(summary)}")
            if place % columns == 0:
                axes.set_ylabel("group regret")
        for axes in panels[len(summaries) :]:
            axes.set_visible(False)
        key_below(figure, _key(summaries))
    return figure


def _panel(axes: Axes, summary: Summary, room: float, look: dict[str, Look], *, linear: bool) -> None:
    if not summary.axes:
        curves(axes, summary, summary.points[0], log=not linear, look=look)
        axes.set_xlabel("round")
        if linear:
            from_zero([axes])
        return
    axis = summary.axes[0]
    others = {name: value for name, value in summary.points[-1].items() if name != axis}
    along_parameter(axes, summary, axis, others, room, look)
    finish([axes], log=not linear and far_apart(summary))
    axes.set_xlabel(axis_name(axis) + (f" ({in_words(others)})" if others else ""))


def _key(summaries: Sequence[Summary]) -> dict[str, object]:
    """Bands and bars, with their trials where all runs have as many."""
    more: dict[str, object] = {}
    for swept, key in ((False, band_key), (True, bar_key)):
        trials = {each.manifest.trials for each in summaries if bool(each.axes) == swept}
        for number in sorted(trials):
            more |= key(number)
    return more


def letter(place: int) -> str:
    """a, b, c, …"""
    return chr(ord("a") + place % 26)


def short_title(summary: Summary) -> str:
    """A run's title as far as its colon, or its name."""
    return summary.spec.title.partition(":")[0].strip() or summary.name


def panel_caption(summaries: Sequence[Summary]) -> str:
    """What the panels show, one after the other."""
    parts = []
    for place, each in enumerate(summaries):
        what = (
            f"at round {rounded(each.horizon)} against {axis_name(each.axes[0])}" if each.axes else "by round"
        )
        size = f"{rounded(each.horizon)} rounds, {plural(each.manifest.trials, 'trial')}"
        parts.append(f"({letter(place)}) {short_title(each)} ({each.name}): {what}; {size}.")
    return (
        "Mean group regret of all agents together. "
        + " ".join(parts)
        + " Bands and bars: 95 % bootstrap intervals of the mean over trials."
    )
