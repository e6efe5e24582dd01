"""Curves of regret against the round: mean, markers and band; and the plot of a simulation's result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.plotting.palette import Look, looks
from rumormill.plotting.style import (
    HEIGHT,
    WIDTH,
    band_key,
    for_pyplot,
    from_zero,
    new_figure,
    plain_ticks,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def curve(
    axes: Axes,
    rounds: NDArray[np.int64],
    mean: Array,
    band: tuple[Array, Array],
    mark: Look,
    name: str,
    log: bool = False,
    place: int = 0,
) -> None:
    """One policy: its mean with a few markers, and its band."""
    axes.fill_between(rounds, *band, color=mark.colour, alpha=0.18, linewidth=0)
    axes.plot(rounds, mean, **mark.curve, markevery=few(rounds, log, place), label=name)


def few(rounds: NDArray[np.int64], log: bool, shift: int) -> list[int]:
    """Where markers go: a handful per curve, evenly on the axis, not on top of those of other curves."""
    low, high = (math.log(rounds[0]), math.log(rounds[-1])) if log else (0.0, float(rounds[-1]))
    wanted = low + (high - low) * (np.arange(4) + 0.35 + 0.12 * shift) / 4.3
    scaled = np.log(rounds) if log else rounds
    return sorted({int(np.argmin(np.abs(scaled - at))) for at in wanted})


def plot_regret(
    rounds: NDArray[np.int64], regret: Array, band: tuple[Array, Array], name: str, axes: Any = None
) -> Axes:
    """Group regret (trials, rounds) against the round, on the axes given (their scale stays) or a new figure.

    Parameters:
        rounds: the rounds recorded.
        regret: group regret, (trials, rounds).
        band: low and high of the mean at every round.
        name: what the curve is called in the legend; it decides the colour too.
        axes: matplotlib axes; None: a new figure.
    """
    with for_pyplot(), style():
        own = axes is None
        axes = new_figure(WIDTH, HEIGHT).subplots() if own else axes
        taken = axes.get_legend_handles_labels()[1]
        log = axes.get_xscale() == "log"
        mark = looks([*taken, name])[name]
        curve(axes, rounds, regret.mean(axis=0), band, mark, name, log, len(taken))
        handles, labels = axes.get_legend_handles_labels()
        more = band_key(len(regret))
        axes.legend([*handles, *more.values()], [*labels, *more], frameon=False)
        axes.set_xlabel("round")
        axes.set_ylabel("group regret")
        if own:
            axes.set_xlim(left=0)
            from_zero([axes])
            plain_ticks(axes)
            # Ticks are made when they are first drawn: made here, they are of this style too.
            axes.figure.draw_without_rendering()
    drawn: Axes = axes
    return drawn
