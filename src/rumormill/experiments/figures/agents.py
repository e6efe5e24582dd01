"""How regret is spread over the agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumormill.experiments.analyse.words import Values
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.style import WIDTH, heading, logarithmic, new_figure, plain_ticks, style
from rumormill.text import rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary

QUANTILES = ("agent_min", "agent_q10", "agent_q25", "agent_q50", "agent_q75", "agent_q90", "agent_max")


def agent_distribution(summary: Summary, values: Values | None = None) -> Figure:
    """How regret is spread over the agents, averaged over trials.

    Quantiles over agents at the last round, of the last sweep point unless another is given.
    """
    values = summary.points[-1] if values is None else values
    look = looks(summary.policies)
    with style():
        figure = new_figure(WIDTH, 0.36 * len(summary.policies) + 1.1)
        axes = figure.subplots()
        for row, series in enumerate(summary.at(values)):
            least, q10, q25, q50, q75, q90, most = (series.mean_at_end(name) for name in QUANTILES)
            mark = look[series.policy]
            bars = ((least, most, 1.0, 1.0), (q10, q90, 3.5, 0.45), (q25, q75, 8.0, 0.75))
            for low, high, width, alpha in bars:
                axes.plot(
                    [low, high],
                    [row, row],
                    color=mark.colour,
                    linewidth=width,
                    alpha=alpha,
                    solid_capstyle="butt",
                )
            axes.plot(q50, row, marker=mark.marker, color="white", markeredgecolor=mark.colour)
        axes.set_yticks(range(len(summary.policies)), summary.policies)
        axes.set_ylim(len(summary.policies) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        logarithmic(axes, x=True)
        axes.set_xlabel(
            f"regret of one agent at round {rounded(summary.horizon)}\n"
            "(marker: median; bars: 50 % and 80 %; line: all)"
        )
        heading(axes, values)
        plain_ticks(axes, y=False)
    return figure
