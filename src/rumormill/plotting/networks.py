"""Networks drawn: where agents go, their links, and a small picture for notebooks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rumormill.plotting.palette import LOOKS
from rumormill.plotting.style import new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
