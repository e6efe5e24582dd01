"""Bounds beside the measurement, and the coverage of confidence radii."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.experiments.figures.regret import panels_over_time
from rumormill.plotting.drawing import few
from rumormill.plotting.style import (
    GREY,
    HEIGHT,
    MOST_PANELS,
    WIDTH,
    Look,
    dot,
    key_below,
    logarithmic,
    looks,
    new_figure,
    plain_ticks,
    spread,
    style,
)
from rumormill.text import rounded, setting
from rumormill.theory import CoverageRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.bounds import GameBounds, RunBounds
    from rumormill.experiments.analyse.summary import Summary

DOTTED = (0, (1.0, 1.4))
SLOPE: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (5, 2))}
MOST: dict[str, Any] = {"color": GREY, "linewidth": 0.8}


def bounds_if_asked(summary: Summary) -> dict[str, Figure]:
    """Measured regret and the theory's bounds, where bounds were asked for."""
    return {} if summary.bounds is None else {"": bounds_figure(summary.bounds)}


def bounds_figure(found: RunBounds) -> Figure:
    """Measured regret, its upper bounds as thin dotted lines, the lower slope, and the most there can be."""
    games = spread(found.games, MOST_PANELS)
    with style():
        figure, panels = panels_over_time([game.values for game in games])
        for axes, game in zip(panels, games, strict=True):
            _game(axes, game, found)
            logarithmic(axes, x=True, y=True)
            _note(axes, game, names=len(games) == 1)
        for axes in panels:
            plain_ticks(axes)
        key_below(figure, _further_lines(games))
    return figure


def _game(axes: Axes, game: GameBounds, found: RunBounds) -> None:
    look = looks(found.labels)
    measured = {each.policy: (each.rounds, each.regret) for each in game.policies}
    measured |= {each.policy: (each.rounds, each.regret) for each in game.others}
    rounds = measured[found.labels[0]][0]
    t = rounds[rounds >= game.first_round]
    axes.plot(t, t * game.worst_per_round, **MOST)
    if game.lower is not None:
        slope = game.lower.coefficient * np.log(t)
        possible = slope <= t * game.worst_per_round
        axes.plot(t[possible], slope[possible], **SLOPE)
    for place, policy in enumerate(found.labels):
        at, regret = measured[policy]
        seen = (at >= game.first_round) & (regret > 0)
        mark = look[policy]
        marked = few(at[seen], True, place) if seen.any() else None
        axes.plot(at[seen], regret[seen], **mark.curve, markevery=marked, label=policy)
    for each in game.policies:
        drawn, values = each.drawn()
        if drawn:
            mark = look[each.policy]
            axes.plot(drawn, values, color=mark.colour, linewidth=0.9, linestyle=DOTTED)
            axes.plot(drawn[-1], values[-1], **mark.dots, markersize=3, clip_on=False)
    if game.first_round < found.horizon:
        axes.set_xlim(game.first_round, found.horizon)


def _note(axes: Axes, game: GameBounds, *, names: bool) -> None:
    """What is not drawn, in the corner above all curves."""
    empty = [each.policy for each in game.policies if each.at_end.vacuous]
    if not empty:
        return
    if len(empty) == len(game.policies):
        text = "all bounds vacuous: none drawn"
    elif names:
        text = f"vacuous, not drawn: {'; '.join(empty)}"
    else:
        text = f"{len(empty)} of {len(game.policies)} bounds vacuous"
    axes.text(
        0.02, 0.98, "\n".join(textwrap.wrap(text, 34)), transform=axes.transAxes, va="top", fontsize=6.5
    )


def _further_lines(games: list[GameBounds]) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    more = {"most possible": Line2D([], [], **MOST)}
    if any(game.lower is not None for game in games):
        more["lower bound's slope"] = Line2D([], [], **SLOPE)
    if any(each.drawn()[0] for game in games for each in game.policies):
        more["upper bound, by colour"] = Line2D([], [], color="black", linewidth=0.9, linestyle=DOTTED)
    return more


MOST_COVERAGE_PANELS = 4


def coverage_figure(found: Mapping[str, Sequence[CoverageRow]], title: str = "") -> Figure:
    """Failure rate against δ for every estimator, one panel per sample size, with exact intervals.

    Where no list failed the share is below the upper end of its interval: an open marker with an arrow down.
    Below the dashed line a radius keeps its promise. Sizes too small for a radius are left out.
    """
    rows = [row for each in found.values() for row in each]
    sizes = sorted({row.n for row in rows if np.isfinite(row.radius)} or {row.n for row in rows})
    sizes = sizes[-MOST_COVERAGE_PANELS:]
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
    more = {f"{100 * rows[0].confidence:g} % interval": dot("", "|", 9, color=GREY)}
    if any(row.rate == 0 for row in rows):
        more["none failed: upper limit"] = dot("", size=None, color=GREY, markerfacecolor="white")
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
    at, rates = [row.delta * aside for row in rows], [row.rate for row in rows]
    reach = np.reshape([[row.rate - row.low, row.high - row.rate] for row in rows], (-1, 2)).T
    axes.errorbar(at, rates, yerr=reach, **mark.dots, capsize=2, elinewidth=1.0, label=name)


def _none_failed(axes: Axes, rows: list[CoverageRow], aside: float, mark: Look) -> None:
    """Upper limits: the share is somewhere below, however far."""
    at, high = [row.delta * aside for row in rows], [row.high for row in rows]
    look = mark.dots | {"markerfacecolor": "white", "elinewidth": 0.9, "capsize": 2}
    axes.errorbar(at, high, yerr=[0.45 * each for each in high], uplims=True, **look)
