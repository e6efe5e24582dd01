"""Regret against what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumormill.experiments.analyse.labels import Values
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.style import (
    bar_key,
    decades_and_zero,
    heading,
    key_below,
    logarithmic,
    new_figure,
    plain_ticks,
    style,
)
from rumormill.text import rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary

UNITS = {"messages": "messages per round", "wire_bytes": "bytes per round"}
REACH = "gamma"


def regret_per_message(summary: Summary) -> Figure:
    """What communication buys: regret against what was sent for it, a line where messages travel further.

    Other parameters of a sweep are at their last value.
    """
    last = {axis: value for axis, value in summary.points[-1].items() if axis != REACH}
    here = [values for values in summary.points if last.items() <= values.items()]
    with style():
        figure = new_figure(5.2, 3.3)
        panels = figure.subplots(1, len(UNITS), sharey=True)
        room = float(figure.get_size_inches()[0]) / 2 - 0.7
        for axes, (column, unit) in zip(panels, UNITS.items(), strict=True):
            _panel(axes, summary, here, column, room)
            axes.set_xlabel(unit)
        panels[0].set_ylabel(f"group regret at round {rounded(summary.horizon)}")
        heading(panels[0], last, len(UNITS))
        if len(here) > 1:
            panels[1].set_title("lines: γ = " + ", ".join(str(values[REACH]) for values in here))
        key_below(figure, bar_key(summary.manifest.trials))
    return figure


def _panel(axes: Axes, summary: Summary, here: list[Values], column: str, room: float) -> None:
    look = looks(summary.policies)
    everything: list[float] = []
    for policy in summary.policies:
        along = [summary.of(policy, values) for values in here]
        sent = [series.mean_at_end(column) / summary.horizon for series in along]
        everything += sent
        mark = look[policy]
        axes.errorbar(
            sent,
            np.array([series.at_end.estimate for series in along]),
            yerr=np.transpose([series.at_end.reach for series in along]),
            color=mark.colour,
            linestyle=mark.line if len(set(sent)) > 1 else "none",
            linewidth=0.8,
            marker=mark.marker,
            capsize=2,
            label=policy,
        )
    logarithmic(axes, y=True)
    plain_ticks(axes, x=False)
    decades_and_zero(axes, everything, room)
