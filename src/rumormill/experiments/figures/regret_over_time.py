"""Group regret against the round, and its distribution over the agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.measured import Values, named
from rumormill.plotting.curves import curve
from rumormill.plotting.palette import Look, looks
from rumormill.plotting.style import (
    GREY,
    MOST_PANELS,
    WIDTH,
    band_key,
    from_zero,
    grid,
    heading,
    key_below,
    logarithmic,
    new_figure,
    nothing,
    plain_ticks,
    spread,
    style,
)
from rumormill.text import rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary


def start_line(axes: Axes, summary: Summary, values: Values) -> None:
    """A line at the regret of the first K rounds, in which every agent tries every arm once."""
    cost = summary.start_cost(values)
    if cost is not None and cost > 0:
        axes.axhline(
            cost, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), label="every arm tried once", zorder=1
        )


Array = NDArray[np.float64]
# More curves than this cannot be told apart in a panel.
MOST_CURVES = 8


def shown_policies(summary: Summary) -> list[str]:
    """The policies that a panel shows: at most eight, those of the least regret, in the order of the run."""
    if len(summary.policies) <= MOST_CURVES:
        return list(summary.policies)

    def size(policy: str) -> float:
        ends = [summary.of(policy, values).at_end.estimate for values in summary.points]
        return float(np.mean(np.log(np.maximum(ends, 1e-9))))

    best = sorted(summary.policies, key=size)[:MOST_CURVES]
    return [policy for policy in summary.policies if policy in best]


def left_out(summary: Summary) -> dict[str, Any]:
    """For the key: how many policies are not drawn."""
    more = len(summary.policies) - MOST_CURVES
    return {f"{more} with more regret not drawn": nothing()} if more > 0 else {}


def regret_over_time(summary: Summary) -> Figure:
    """Group regret against the round: the mean, and a 95 % bootstrap band over trials.

    Logarithmic axes, on which small regrets are seen too; where nothing is swept, plain axes beside them.
    """
    return _side_by_side(summary) if len(summary.points) == 1 else _all_points(summary, log=True)


def regret_over_time_linear(summary: Summary) -> Figure:
    """Group regret against the round, on plain axes."""
    return _all_points(summary, log=False)


def _side_by_side(summary: Summary) -> Figure:
    (values,) = summary.points
    with style():
        figure = new_figure(6.6, 3.1)
        logged, plain = figure.subplots(1, 2)
        for axes, log in ((logged, True), (plain, False)):
            curves(axes, summary, values, log=log)
            axes.set_xlabel("round")
        logged.set_ylabel("group regret")
        heading(logged, named(values), 2)
        plain.set_title("the same on plain axes")
        from_zero([plain])
        key_below(figure, band_key(summary.manifest.trials) | left_out(summary))
    return figure


def _all_points(summary: Summary, *, log: bool) -> Figure:
    shown = spread(summary.points, MOST_PANELS)
    with style():
        figure, panels = panels_over_time(shown)
        for axes, values in zip(panels, shown, strict=True):
            curves(axes, summary, values, log=log)
        if not log:
            from_zero(panels)
        key_below(figure, band_key(summary.manifest.trials) | left_out(summary))
    return figure


def panels_over_time(shown: list[Values]) -> tuple[Figure, list[Axes]]:
    """One panel per sweep point, with title and the names of the axes: rounds, and group regret."""
    figure, panels, columns = grid(len(shown), share_x=True)
    for place, (axes, values) in enumerate(zip(panels, shown, strict=True)):
        heading(axes, named(values), columns)
        if place % columns == 0:
            axes.set_ylabel("group regret")
        if place + columns >= len(shown):
            axes.set_xlabel("round")
            axes.tick_params(labelbottom=True)
    return figure, panels


def curves(
    axes: Axes, summary: Summary, values: Values, *, log: bool, look: dict[str, Look] | None = None
) -> None:
    """All policies at one sweep point."""
    look = look or looks(summary.policies)
    shown = shown_policies(summary)
    for place, series in enumerate(each for each in summary.at(values) if each.policy in shown):
        curve(axes, series.rounds, series.mean, series.band, look[series.policy], series.policy, log, place)
    start_line(axes, summary, values)
    if log:
        logarithmic(axes, x=True, y=True)
    else:
        axes.set_xlim(left=0)
    plain_ticks(axes)


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
                bar: dict[str, Any] = {"linewidth": width, "alpha": alpha, "solid_capstyle": "butt"}
                axes.plot([low, high], [row, row], color=mark.colour, **bar)
            axes.plot(q50, row, marker=mark.marker, color="white", markeredgecolor=mark.colour)
        axes.set_yticks(range(len(summary.policies)), summary.policies)
        axes.set_ylim(len(summary.policies) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        logarithmic(axes, x=True)
        axes.set_xlabel(
            f"regret of one agent at round {rounded(summary.horizon)}\n"
            "(marker: median; bars: 50 % and 80 %; line: all)"
        )
        heading(axes, named(values))
        plain_ticks(axes, y=False)
    return figure
