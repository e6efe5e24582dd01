"""How often a radius fails, against what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rumormill.experiments.figures.palette import look
from rumormill.experiments.figures.regret import HEIGHT, WIDTH, plain_ticks, style
from rumormill.theory import CoverageRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Shares are drawn on a logarithmic axis; one that is zero is drawn as its upper end alone.
MOST_PANELS = 4


def coverage_figure(found: Mapping[str, Sequence[CoverageRow]], title: str = "") -> Figure:
    """Failure rate against δ for every estimator, one panel per sample size, with exact intervals.

    Where no list failed, a short line marks the upper end of the interval. Below the dashed line a radius
    keeps its promise. Sizes too small for a radius are left out.
    """
    import matplotlib.pyplot as plt

    rows = [row for each in found.values() for row in each]
    sizes = sorted({row.n for row in rows if np.isfinite(row.radius)} or {row.n for row in rows})
    sizes = sizes[-MOST_PANELS:]
    levels = sorted({row.delta for row in rows})
    floor = 0.3 / max(row.repeats for row in rows)
    with style():
        figure: Figure
        width = WIDTH if len(sizes) == 1 else 2.4 * len(sizes)
        figure, grid = plt.subplots(
            1, len(sizes), figsize=(width, HEIGHT), layout="constrained", squeeze=False, sharey=True
        )
        for axes, n in zip(grid.flat, sizes, strict=True):
            axes.plot(levels, levels, color="#777777", linestyle="--", linewidth=0.9, label="δ")
            for index, (name, each) in enumerate(found.items()):
                mark = look(index)
                aside = 1 + 0.09 * (index - (len(found) - 1) / 2)
                shown = [row for row in each if row.n == n and np.isfinite(row.radius)]
                some = [row for row in shown if row.rate > 0]
                none = [row for row in shown if row.rate == 0]
                axes.errorbar(
                    [row.delta * aside for row in some],
                    [row.rate for row in some],
                    yerr=np.reshape([[row.rate - row.low, row.high - row.rate] for row in some], (-1, 2)).T,
                    color=mark.colour,
                    marker=mark.marker,
                    linestyle="none",
                    capsize=2,
                    elinewidth=1.0,
                    label=name,
                )
                axes.errorbar(
                    [row.delta * aside for row in none],
                    [row.high for row in none],
                    yerr=[[row.high - floor for row in none], [0.0] * len(none)],
                    color=mark.colour,
                    marker="_",
                    linestyle="none",
                    elinewidth=0.7,
                )
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_ylim(floor, 1.2)
            axes.set_xticks(levels, [f"{level:g}" for level in levels])
            axes.minorticks_off()
            axes.set_xlabel("δ allowed")
            axes.set_title(f"n = {n:,}")
            plain_ticks(axes, x=False)
        grid.flat[0].set_ylabel("share of failures, worse side")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        if title:
            figure.suptitle(title, fontsize=8.5)
    return figure
