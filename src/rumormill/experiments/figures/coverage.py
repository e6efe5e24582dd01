"""How often a radius fails, against what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.experiments.figures.palette import Look, looks
from rumormill.experiments.figures.style import GREY, HEIGHT, WIDTH, key_below, new_figure, plain_ticks, style
from rumormill.text import rounded, setting
from rumormill.theory import CoverageRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4


def coverage_figure(found: Mapping[str, Sequence[CoverageRow]], title: str = "") -> Figure:
    """Failure rate against δ for every estimator, one panel per sample size, with exact intervals.

    Where no list failed the share is below the upper end of its interval: an open marker with an arrow down.
    Below the dashed line a radius keeps its promise. Sizes too small for a radius are left out.
    """
    rows = [row for each in found.values() for row in each]
    sizes = sorted({row.n for row in rows if np.isfinite(row.radius)} or {row.n for row in rows})
    sizes = sizes[-MOST_PANELS:]
    with style():
        figure = new_figure(WIDTH if len(sizes) == 1 else 2.4 * len(sizes), HEIGHT)
        panels = list(figure.subplots(1, len(sizes), squeeze=False, sharey=True).flat)
        for axes, n in zip(panels, sizes, strict=True):
            _panel(axes, found, n, rows)
        panels[0].set_ylabel("share of failures, worse side")
        key_below(figure, _further(rows))
        if title:
            figure.suptitle(title, fontsize=8.5)
    return figure


def _further(rows: Sequence[CoverageRow]) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    grey: dict[str, Any] = {"color": GREY, "linestyle": "none"}
    more = {f"{100 * rows[0].confidence:g} % interval": Line2D([], [], marker="|", markersize=9, **grey)}
    if any(row.rate == 0 for row in rows):
        more["none failed: upper limit"] = Line2D([], [], marker="o", markerfacecolor="white", **grey)
    return more


def _panel(
    axes: Axes, found: Mapping[str, Sequence[CoverageRow]], n: int, rows: Sequence[CoverageRow]
) -> None:
    levels = sorted({row.delta for row in rows})
    # Shares are drawn on a logarithmic axis, on which zero has no place.
    floor = 0.3 / max(row.repeats for row in rows)
    look = looks(found)
    axes.plot(levels, levels, color=GREY, linestyle="--", linewidth=0.9, label="δ")
    for index, (name, each) in enumerate(found.items()):
        aside = 1 + 0.09 * (index - (len(found) - 1) / 2)
        shown = [row for row in each if row.n == n and np.isfinite(row.radius)]
        _failures(axes, [row for row in shown if row.rate > 0], aside, look[name], name)
        _none_failed(axes, [row for row in shown if row.rate == 0], aside, look[name])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(floor, 1.2)
    axes.set_xticks(levels, [setting(level) for level in levels])
    axes.minorticks_off()
    axes.set_xlabel("δ allowed")
    axes.set_title(f"n = {rounded(n)}")
    plain_ticks(axes, x=False)


def _failures(axes: Axes, rows: list[CoverageRow], aside: float, mark: Look, name: str) -> None:
    axes.errorbar(
        [row.delta * aside for row in rows],
        [row.rate for row in rows],
        yerr=np.reshape([[row.rate - row.low, row.high - row.rate] for row in rows], (-1, 2)).T,
        color=mark.colour,
        marker=mark.marker,
        linestyle="none",
        capsize=2,
        elinewidth=1.0,
        label=name,
    )


def _none_failed(axes: Axes, rows: list[CoverageRow], aside: float, mark: Look) -> None:
    """Upper limits: the share is somewhere below, however far."""
    axes.errorbar(
        [row.delta * aside for row in rows],
        [row.high for row in rows],
        yerr=[0.45 * row.high for row in rows],
        uplims=True,
        color=mark.colour,
        marker=mark.marker,
        markerfacecolor="white",
        linestyle="none",
        elinewidth=0.9,
        capsize=2,
    )
