"""Bounds drawn beside the measurement, on logarithmic axes: they are often a power of ten apart."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from rumormill.experiments.analyse.views import spread
from rumormill.experiments.figures.palette import look
from rumormill.experiments.figures.regret import MOST_PANELS, panels_over_time, plain_ticks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.bounds import GameBounds, RunBounds

GREY = "#777777"
DOTTED = (0, (1.0, 1.4))


def bounds_figure(found: RunBounds) -> Figure:
    """Measured regret, its upper bounds as thin dotted lines, the lower slope, and the most there can be."""
    chosen = spread([game.point for game in found.games], MOST_PANELS)
    games = [game for game in found.games if game.point in chosen]
    with style():
        figure, panels = panels_over_time(chosen)
        for axes, game in zip(panels, games, strict=True):
            _game(axes, game, found.horizon)
            axes.set_xscale("log")
            axes.set_yscale("log")
            _note(axes, game, names=len(games) == 1)
        for axes in panels:
            plain_ticks(axes)
        _key(figure, games)
    return figure


def _game(axes: Axes, game: GameBounds, horizon: int) -> None:
    rounds = game.policies[0].rounds
    # From the end of the first K rounds, in which the arms are fixed and nothing is learned.
    begin = game.policies[0].corrected[0].horizon
    t = rounds[rounds >= begin]
    axes.plot(t, t * game.worst_per_round, color=GREY, linewidth=0.8)
    if game.lower is not None:
        slope = game.lower.coefficient * np.log(t)
        possible = slope <= t * game.worst_per_round
        axes.plot(t[possible], slope[possible], color=GREY, linewidth=1.0, linestyle=(0, (5, 2)))
    for index, each in enumerate(game.policies):
        mark = look(index)
        seen = (each.rounds >= begin) & (each.regret > 0)
        axes.plot(
            each.rounds[seen], each.regret[seen], color=mark.colour, linestyle=mark.line, label=each.policy
        )
        at, values = each.drawn()
        if at:
            axes.plot(at, values, color=mark.colour, linewidth=0.9, linestyle=DOTTED)
            axes.plot(at[-1], values[-1], color=mark.colour, marker=mark.marker, markersize=3, clip_on=False)
    axes.set_xlim(begin, horizon)


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


def _key(figure: Figure, games: list[GameBounds]) -> None:
    from matplotlib.lines import Line2D

    handles, labels = figure.axes[0].get_legend_handles_labels()
    more = {"most possible": Line2D([], [], color=GREY, linewidth=0.8)}
    if any(game.lower is not None for game in games):
        more["lower bound's slope"] = Line2D([], [], color=GREY, linewidth=1.0, linestyle=(0, (5, 2)))
    if any(each.drawn()[0] for game in games for each in game.policies):
        more["upper bound, by colour"] = Line2D([], [], color="black", linewidth=0.9, linestyle=DOTTED)
    figure.legend(
        [*handles, *more.values()],
        [*labels, *more],
        loc="outside lower center",
        ncols=3 if figure.get_size_inches()[0] > 5 else 2,
        frameon=False,
        handlelength=3.2,
    )
