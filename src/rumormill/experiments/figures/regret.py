"""Group regret against the round, and its distribution over the agents.

Group regret at the last round against a swept parameter, a tuned constant, or what was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analyse.measured import Values, axis_name, in_words, is_number, named, value_name
from rumormill.plotting.drawing import curve
from rumormill.plotting.style import (
    GREY,
    MOST_PANELS,
    WIDTH,
    Look,
    band_key,
    bar_key,
    decades_and_zero,
    from_zero,
    grid,
    heading,
    key_below,
    labelled_ticks,
    logarithmic,
    looks,
    new_figure,
    nothing,
    plain_ticks,
    spread,
    style,
)
from rumormill.text import rounded, setting

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


# Regrets further apart than this are drawn on a logarithmic axis: on a plain one the small lie on zero.
FAR_APART = 8.0
# Steps of a sweep that differ more than this leave no room for labels on a plain axis.
UNEVEN = 5.0
# How much of a decade the stretch from zero to the least positive value takes.
NEAR_ZERO = 0.4


def regret_by_each_parameter(summary: Summary) -> dict[str, Figure]:
    """Group regret at the last round, a figure for every swept parameter."""
    return {axis: regret_by_parameter(summary, axis) for axis in summary.axes}


def regret_by_parameter(summary: Summary, axis: str) -> Figure:
    """Group regret at the last round as one swept parameter varies; other axes make small multiples."""
    if axis not in summary.axes:
        raise InputError(f"{axis!r} is not swept in this run: {', '.join(summary.axes) or 'nothing is'}")
    groups: list[Values] = []
    for values in summary.points:
        others = {name: value for name, value in values.items() if name != axis}
        if others not in groups:
            groups.append(others)
    shown = spread(groups, MOST_PANELS)
    with style():
        figure, panels, columns = grid(len(shown))
        room = float(figure.get_size_inches()[0]) / columns - 0.6
        for place, (axes, group) in enumerate(zip(panels, shown, strict=True)):
            along_parameter(axes, summary, axis, group, room)
            heading(axes, named(group), columns)
            if place + columns >= len(shown):
                axes.set_xlabel(axis_name(axis))
            if place % columns == 0:
                axes.set_ylabel(f"group regret at round {rounded(summary.horizon)}")
        finish(panels, log=far_apart(summary))
        key_below(figure, bar_key(summary.manifest.trials) | left_out(summary))
    return figure


def far_apart(summary: Summary) -> bool:
    """Whether the regrets of a run are worth a logarithmic axis."""
    ends = [series.at_end.estimate for values in summary.points for series in summary.at(values)]
    some = [end for end in ends if end > 0]
    return bool(some) and max(some) > FAR_APART * min(some)


def finish(panels: list[Axes], *, log: bool) -> None:
    """The scale of the regret axis, when all that will be drawn on it is there."""
    if log:
        for axes in panels:
            logarithmic(axes, y=True)
    else:
        from_zero(panels)
    for axes in panels:
        plain_ticks(axes, x=False)


def along_parameter(
    axes: Axes, summary: Summary, axis: str, group: Values, room: float, look: dict[str, Look] | None = None
) -> None:
    """All policies along one axis: side by side at words, a little aside at numbers.

    A marker stands with its interval: none hides under another one.
    """
    here = [values for values in summary.points if group.items() <= values.items()]
    swept = [values[axis] for values in here]
    numeric = all(is_number(value) for value in swept)
    places = np.array(swept, float) if numeric else np.arange(len(swept), dtype=float)
    scale, there, back = _scale(places)
    step = float(np.min(np.diff(np.sort(there(places))))) if len(places) > 1 else 1.0
    look = look or looks(summary.policies)
    shown = shown_policies(summary)
    apart = min(0.05, 0.2 / len(shown)) if numeric else min(0.14, 0.8 / len(shown))
    for index, policy in enumerate(shown):
        mark = look[policy]
        ends = [summary.of(policy, values).at_end for values in here]
        means = np.array([end.estimate for end in ends])
        aside = back(there(places) + (index - (len(shown) - 1) / 2) * apart * step)
        reach = np.transpose([end.reach for end in ends])
        axes.errorbar(aside, means, reach, fmt="none", ecolor=mark.colour, capsize=1.5, elinewidth=0.9)
        axes.plot(aside, means, **(mark.curve if numeric else mark.dots), label=policy)
    bent = {"linthresh": _least(places), "linscale": NEAR_ZERO} if scale == "symlog" else {}
    axes.set_xscale(scale, **bent)
    labelled_ticks(axes, list(places), [value_name(value) for value in swept], room)


Scale = Callable[[Array], Array]


def scale_of(places: Array) -> str:
    """The axis on which the values of a sweep are about evenly spread, in matplotlib's words."""
    gaps = np.diff(np.sort(places))
    if len(gaps) < 2 or gaps.max() <= UNEVEN * gaps.min() or places.min() < 0:
        return "linear"
    return "log" if places.min() > 0 else "symlog"


def _scale(places: Array) -> tuple[str, Scale, Scale]:
    """That axis, with the way there and back."""
    scale = scale_of(places)
    if scale == "linear":
        return scale, np.copy, np.copy
    if scale == "log":
        return scale, np.log, np.exp
    least = _least(places)
    # As matplotlib's symlog: plain up to the least positive value, then so many decades as that is wide.
    unit = NEAR_ZERO / (1 - 0.1)

    def there(x: Array) -> Array:
        far = np.maximum(x, least)
        return np.where(x <= least, x / least * unit, unit + np.log10(far / least))

    def back(y: Array) -> Array:
        return np.where(y <= unit, y / unit * least, least * 10.0 ** np.maximum(y - unit, 0))

    return "symlog", there, back


def _least(places: Array) -> float:
    return float(places[places > 0].min())


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
        key_below(figure, left_out(summary))
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
    for policy in shown_policies(summary):
        curve, mark = summary.tuning.curves[policy, *values.values()], look[policy]
        if curve.chosen is None:
            level = float(summary.of(policy, values).mean[-1])
            axes.axhline(level, color=mark.colour, linestyle=mark.line, linewidth=1.0, label=policy)
            continue
        means = np.array(curve.means)
        axes.plot(curve.numbers, means, **mark.curve, linewidth=1.0, markersize=2.5, label=policy)
        chosen = curve.numbers.index(curve.chosen)
        axes.plot(curve.chosen, means[chosen], **mark.dots, markersize=6)
    axes.set_title(in_words(values))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({number for curve in summary.tuning.curves.values() for number in curve.numbers})[::2]
    axes.set_xticks(ticks, [setting(tick) if tick >= 1 else f"1/{round(1 / tick)}" for tick in ticks])
    plain_ticks(axes, x=False)


# --- regret against messages ----------------------------------------------------------------------------

# Points between markers that stand side by side.
BESIDE = 5.0
UNITS = {"messages": "messages per round", "wire_bytes": "bytes per round"}
REACH = "gamma"


def regret_per_message(summary: Summary) -> Figure:
    """Regret against what was sent for it, side by side if as much; a line where messages travel further.

    Other parameters of a sweep are at their last value.
    """
    last = {axis: value for axis, value in summary.points[-1].items() if axis != REACH}
    here = [values for values in summary.points if last.items() <= values.items()]
    with style():
        figure = new_figure(5.2, 3.3)
        panels = figure.subplots(1, len(UNITS), sharey=True)
        room = float(figure.get_size_inches()[0]) / 2 - 0.7
        for axes, (column, unit) in zip(panels, UNITS.items(), strict=True):
            _sent_panel(axes, summary, here, column, room)
            axes.set_xlabel(unit)
        panels[0].set_ylabel(f"group regret at round {rounded(summary.horizon)}")
        heading(panels[0], named(last), len(UNITS))
        if len(here) > 1:
            panels[1].set_title("lines: γ = " + ", ".join(str(values[REACH]) for values in here))
        key_below(figure, bar_key(summary.manifest.trials) | left_out(summary))
    return figure


def _sent_panel(axes: Axes, summary: Summary, here: list[Values], column: str, room: float) -> None:
    """One marker with its interval per policy and reach; those that send as much stand side by side."""
    from matplotlib.transforms import ScaledTranslation

    look = looks(summary.policies)
    found = {policy: [summary.of(policy, values) for values in here] for policy in shown_policies(summary)}
    sent = {
        policy: [series.mean_at_end(column) / summary.horizon for series in along]
        for policy, along in found.items()
    }
    for policy, along in found.items():
        alike = [other for other in found if np.allclose(sent[other], sent[policy], rtol=0.05)]
        points = BESIDE * (alike.index(policy) - (len(alike) - 1) / 2)
        aside = ScaledTranslation(points / 72, 0, axes.figure.dpi_scale_trans)
        line = look[policy].curve if len(set(sent[policy])) > 1 else look[policy].dots
        ends = [series.at_end for series in along]
        means, reach = [end.estimate for end in ends], np.transpose([end.reach for end in ends])
        drawn = axes.errorbar(sent[policy], means, reach, **line, linewidth=0.8, capsize=2, label=policy)
        for artist in drawn.get_children():
            artist.set_transform(axes.transData + aside)
    logarithmic(axes, y=True)
    plain_ticks(axes, x=False)
    decades_and_zero(axes, [each for values in sent.values() for each in values], room)
