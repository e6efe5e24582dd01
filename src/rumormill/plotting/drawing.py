"""Curves of regret against the round: mean, markers and band; and the plot of a simulation's result.

Networks drawn: where agents go, their links, and a small picture for notebooks.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.plotting.style import (
    HEIGHT,
    LOOKS,
    WIDTH,
    Look,
    band_key,
    for_pyplot,
    from_zero,
    looks,
    new_figure,
    plain_ticks,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


# Links beyond this many only blacken the picture: a fixed sample of them is drawn.
MOST_LINKS = 3_000


def small_picture(edges: NDArray[np.int64], n_agents: int) -> Figure:
    """The network alone, as large as a few lines of text."""
    place = layout(n_agents, edges)
    with style():
        figure = new_figure(2.4, 2.4)
        axes = figure.subplots()
        draw_links(axes, place, edges)
        x, y = place.T
        axes.scatter(x, y, s=float(np.clip(900 / n_agents, 5, 30)), c=LOOKS[0].colour, linewidths=0)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.margins(0.04)
    return figure


def draw_links(axes: Axes, place: NDArray[np.float64], edges: NDArray[np.int64]) -> None:
    """The links as thin lines; beyond MOST_LINKS a fixed sample of them."""
    from matplotlib.collections import LineCollection

    drawn = edges if len(edges) <= MOST_LINKS else edges[:: -(-len(edges) // MOST_LINKS)]
    strength = float(np.clip(250 / max(len(drawn), 1), 0.06, 0.6))
    links = LineCollection(list(place[drawn]), colors="#555555", linewidths=0.5, alpha=strength, zorder=0)
    links.set_rasterized(len(drawn) > 1_000)
    axes.add_collection(links)


def layout(n_agents: int, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where agents go: as springs would pull them."""
    return _layout(n_agents, np.ascontiguousarray(edges, dtype=np.int64).tobytes()).copy()


@lru_cache(maxsize=8)  # figures, page and film of a run show the same network
def _layout(n_agents: int, edges: bytes) -> NDArray[np.float64]:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(n_agents))
    graph.add_edges_from(np.frombuffer(edges, dtype=np.int64).reshape(-1, 2).tolist())
    # Rings and grids unfold only when springs start from the shape that distances give.
    start = networkx.kamada_kawai_layout(graph) if n_agents <= 150 and networkx.is_connected(graph) else None
    steps = 30 if start is not None else min(120, max(60_000 // n_agents, 10))
    places = networkx.spring_layout(graph, pos=start, seed=1, iterations=steps, k=1.3 / np.sqrt(n_agents))
    return np.array([places[v] for v in range(n_agents)])
