"""Group regret at the last round against a swept parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumormill.errors import InputError
from rumormill.experiments.analyse.words import Values, axis_name, in_words, is_number
from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.style import (
    HEIGHT,
    MOST_PANELS,
    WIDTH,
    key_below,
    new_figure,
    plain_ticks,
    spread,
    style,
)
from rumormill.text import rounded, setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary


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
        figure = new_figure(*((WIDTH, HEIGHT) if len(shown) == 1 else (2.3 * len(shown), 2.8)))
        panels = list(figure.subplots(1, len(shown), squeeze=False, sharey=True).flat)
        for axes, group in zip(panels, shown, strict=True):
            _panel(axes, summary, axis, group)
            axes.set_title(in_words(group))
            axes.set_xlabel(axis_name(axis))
        panels[0].set_ylabel(f"group regret at round {rounded(summary.horizon)}")
        key_below(figure)
    return figure


def _panel(axes: Axes, summary: Summary, axis: str, group: Values) -> None:
    here = [values for values in summary.points if group.items() <= values.items()]
    swept = [values[axis] for values in here]
    numeric = all(is_number(value) for value in swept)
    places = np.array(swept, float) if numeric else np.arange(len(swept), dtype=float)
    step = float(np.min(np.diff(np.sort(places)))) if len(places) > 1 else 1.0
    look = looks(summary.policies)
    for index, policy in enumerate(summary.policies):
        mark = look[policy]
        ends = [summary.of(policy, values).at_end for values in here]
        # A little aside, so that bars of different policies do not hide each other.
        aside = places + (index - (len(summary.policies) - 1) / 2) * 0.04 * step
        axes.errorbar(
            aside,
            np.array([end.estimate for end in ends]),
            yerr=np.transpose([end.reach for end in ends]),
            color=mark.colour,
            linestyle=mark.line if numeric else "none",
            marker=mark.marker,
            capsize=2,
            elinewidth=1.0,
            label=policy,
        )
    axes.set_ylim(bottom=0)
    axes.set_xticks(places, [setting(value) for value in swept])
    plain_ticks(axes, x=False)
