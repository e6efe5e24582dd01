"""Group regret against the round."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.words import Values, in_words
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.start import start_line
from rumormill.experiments.figures.style import (
    HEIGHT,
    MOST_PANELS,
    WIDTH,
    key_below,
    logarithmic,
    new_figure,
    plain_ticks,
    spread,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary


def regret_over_time(summary: Summary, *, log: bool = False) -> Figure:
    """Group regret against the round: the mean, and a 95 % bootstrap band over trials."""
    shown = spread(summary.points, MOST_PANELS)
    with style():
        figure, panels = panels_over_time(shown)
        for axes, values in zip(panels, shown, strict=True):
            _curves(axes, summary, values, log)
            start_line(axes, summary, values)
        key_below(figure)
    return figure


def regret_over_time_log(summary: Summary) -> Figure:
    """Group regret against the round, on logarithmic axes."""
    return regret_over_time(summary, log=True)


def panels_over_time(shown: list[Values]) -> tuple[Figure, list[Axes]]:
    """One panel per sweep point, with title and the names of the axes: rounds, and group regret."""
    columns = 2 if len(shown) == 4 else min(len(shown), 3)
    rows = math.ceil(len(shown) / columns)
    size = (WIDTH, HEIGHT) if len(shown) == 1 else (2.1 * columns, 1.8 * rows + 0.6)
    figure = new_figure(*size)
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for place, (axes, values) in enumerate(zip(panels, shown, strict=False)):
        axes.set_title(in_words(values))
        if place % columns == 0:
            axes.set_ylabel("group regret")
        if place + columns >= len(shown):
            axes.set_xlabel("round")
            axes.tick_params(labelbottom=True)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    return figure, panels[: len(shown)]


def _curves(axes: Axes, summary: Summary, values: Values, log: bool) -> None:
    look = looks(summary.policies)
    for index, series in enumerate(summary.at(values)):
        mark = look[series.policy]
        axes.fill_between(series.rounds, *series.band, color=mark.colour, alpha=0.18, linewidth=0)
        axes.plot(
            series.rounds,
            series.mean,
            color=mark.colour,
            linestyle=mark.line,
            marker=mark.marker,
            markevery=_few(series.rounds, log, index),
            label=series.policy,
        )
    if log:
        logarithmic(axes, x=True, y=True)
    else:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    plain_ticks(axes)


def _few(rounds: NDArray[np.int64], log: bool, shift: int) -> list[int]:
    """Where markers go: a handful per curve, evenly on the axis, not on top of those of other curves."""
    low, high = (math.log(rounds[0]), math.log(rounds[-1])) if log else (0.0, float(rounds[-1]))
    wanted = low + (high - low) * (np.arange(4) + 0.35 + 0.12 * shift) / 4.3
    scaled = np.log(rounds) if log else rounds
    return sorted({int(np.argmin(np.abs(scaled - at))) for at in wanted})
