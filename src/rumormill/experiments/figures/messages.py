"""Regret against what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.style import (
    decades_and_zero,
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


def regret_per_message(summary: Summary) -> Figure:
    """What communication buys: regret against what was sent for it."""
    with style():
        figure = new_figure(4.8, 3.3)
        panels = figure.subplots(1, len(UNITS), sharey=True)
        for axes, (column, unit) in zip(panels, UNITS.items(), strict=True):
            _panel(axes, summary, column)
            axes.set_xlabel(unit)
        panels[0].set_ylabel(f"group regret at round {rounded(summary.horizon)}")
        key_below(figure)
    return figure


def _panel(axes: Axes, summary: Summary, column: str) -> None:
    look = looks(summary.policies)
    everything: list[float] = []
    for policy in summary.policies:
        along = summary.along(policy)
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
            markersize=5,
            capsize=2,
            label=policy,
        )
    logarithmic(axes, y=True)
    plain_ticks(axes, x=False)
    decades_and_zero(axes, everything)
