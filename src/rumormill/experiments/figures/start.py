"""What the paper's start costs, drawn into other figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumormill.experiments.analyse.words import Values
from rumormill.experiments.figures.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rumormill.experiments.analyse.summary import Summary


def start_line(axes: Axes, summary: Summary, values: Values) -> None:
    """A line at the regret of the first K rounds, in which every agent tries every arm once."""
    cost = summary.start_cost(values)
    if cost is not None and cost > 0:
        axes.axhline(
            cost, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), label="every arm tried once", zorder=1
        )
