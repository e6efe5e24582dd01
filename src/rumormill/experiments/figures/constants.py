"""Group regret at the last round against a tuned constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumormill.experiments.analyse.words import Values, in_words
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.start import start_line
from rumormill.experiments.figures.style import key_below, new_figure, plain_ticks, style
from rumormill.text import rounded, setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary


def regret_by_constant(summary: Summary) -> dict[str, Figure]:
    """Group regret against the constant; a large marker where the other trials chose it."""
    if summary.tuning is None:
        return {}
    with style():
        axes = summary.axes
        rows, columns = (_values(summary, axis) for axis in (axes[0], axes[-1])) if axes else ([None], [None])
        if len(axes) < 2:
            rows = [None]
        figure = new_figure(2.2 * len(columns) + 0.4, 1.9 * len(rows) + 1.0)
        grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                values = next((one for one in summary.points if _at(one, axes, row, column)), None)
                if values is not None:
                    _panel(grid[i, j], summary, values)
        for panel in grid[-1]:
            panel.set_xlabel("constant (ζ, C or coeff)")
        for panel in grid[:, 0]:
            panel.set_ylabel(f"group regret at round {rounded(summary.horizon)}")
        key_below(figure)
    return {"": figure}


def _values(summary: Summary, axis: str) -> list[object]:
    return list(dict.fromkeys(values[axis] for values in summary.points))


def _at(values: Values, axes: list[str], row: object, column: object) -> bool:
    wanted = {axes[0]: row, axes[-1]: column} if len(axes) > 1 else dict.fromkeys(axes, column)
    return wanted.items() <= values.items()


def _panel(axes: Axes, summary: Summary, values: Values) -> None:
    assert summary.tuning is not None
    look = looks(summary.policies)
    start_line(axes, summary, values)
    for policy in summary.policies:
        curve, mark = summary.tuning.curves[policy, *values.values()], look[policy]
        if curve.chosen is None:
            level = float(summary.of(policy, values).mean[-1])
            axes.axhline(level, color=mark.colour, linestyle=mark.line, linewidth=1.0, label=policy)
            continue
        means = np.array(curve.means)
        axes.plot(
            curve.numbers,
            means,
            color=mark.colour,
            linestyle=mark.line,
            linewidth=1.0,
            marker=mark.marker,
            markersize=2.5,
            label=policy,
        )
        chosen = curve.numbers.index(curve.chosen)
        axes.plot(
            curve.chosen, means[chosen], color=mark.colour, marker=mark.marker, markersize=6, linestyle="none"
        )
    axes.set_title(in_words(values))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({number for curve in summary.tuning.curves.values() for number in curve.numbers})[::2]
    axes.set_xticks(ticks, [setting(tick) if tick >= 1 else f"1/{round(1 / tick)}" for tick in ticks])
    plain_ticks(axes, x=False)
