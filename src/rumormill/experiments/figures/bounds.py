"""Bounds drawn beside the measurement, on logarithmic axes: they are often a power of ten apart."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.experiments.figures.palette import looks
from rumormill.experiments.figures.regret_over_time import few, panels_over_time
from rumormill.experiments.figures.style import (
    GREY,
    MOST_PANELS,
    key_below,
    logarithmic,
    plain_ticks,
    spread,
    style,
)

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
        axes.plot(
            at[seen],
            regret[seen],
            color=mark.colour,
            linestyle=mark.line,
            marker=mark.marker,
            markevery=few(at[seen], True, place) if seen.any() else None,
            label=policy,
        )
    for each in game.policies:
        drawn, values = each.drawn()
        if drawn:
            mark = look[each.policy]
            axes.plot(drawn, values, color=mark.colour, linewidth=0.9, linestyle=DOTTED)
            axes.plot(
                drawn[-1], values[-1], color=mark.colour, marker=mark.marker, markersize=3, clip_on=False
            )
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
