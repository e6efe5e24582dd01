"""The network drawn: links, leaders and cliques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rumormill.experiments.analyse.measured import fault_sentences_of
from rumormill.plotting.drawing import draw_links, layout
from rumormill.plotting.style import LOOKS, dot, legend_below, new_figure, style
from rumormill.text import rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary

# Above this share of all possible links a spring layout shows nothing: cliques are arranged instead, and
# the links between two of them drawn as one line.
DENSE = 0.15
OTHERS = "#b8b8b8"


def network_figure(
    n_agents: int,
    edges: NDArray[np.int64],
    cliques: Sequence[Sequence[int]],
    leaders: Sequence[int],
    title: str = "",
) -> Figure:
    """Agents coloured by clique (the largest ones; the rest is grey), leaders as ringed stars.

    Where links are too many to be told apart, those between two cliques are one line, the darker the more of
    them there are.
    """
    edges = np.asarray(edges, np.int64).reshape(-1, 2)
    dense = is_dense(n_agents, len(edges)) and len(cliques) > 0
    place = clustered(n_agents, cliques) if dense else layout(n_agents, edges)
    colour, named = colours(n_agents, cliques)
    with style():
        figure = new_figure(4.2, 4.4)
        axes = figure.subplots()
        if dense:
            _bundles(axes, place, edges, cliques)
        else:
            draw_links(axes, place, edges)
        _agents(axes, place, colour, leaders)
        axes.set_title(title)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.margins(0.04)
        share = len(edges) / (n_agents * (n_agents - 1) / 2) if dense else None
        _key(figure, len(cliques), len(leaders), named, share)
    return figure


def title_of(n_agents: int, n_edges: int, diameter: int, gamma: int | None) -> str:
    """The network in a line."""
    size = f"{rounded(n_agents)} agents, {rounded(n_edges)} links, diameter {diameter}"
    return size if gamma is None else f"{size}, γ = {gamma}"


def is_dense(n_agents: int, n_edges: int) -> bool:
    """Whether there are more links than a picture can show one by one."""
    return n_edges > 300 and n_edges > DENSE * n_agents * (n_agents - 1) / 2


def _bundles(
    axes: Axes, place: NDArray[np.float64], edges: NDArray[np.int64], cliques: Sequence[Sequence[int]]
) -> None:
    """One line from the middle of a clique to that of another, for all the links between them."""
    from matplotlib.collections import LineCollection

    clique_of = np.empty(len(place), np.int64)
    for number, clique in enumerate(cliques):
        clique_of[list(clique)] = number
    middle = np.array([place[list(clique)].mean(axis=0) for clique in cliques])
    pairs, links = np.unique(np.sort(clique_of[edges], axis=1), axis=0, return_counts=True)
    between = pairs[:, 0] != pairs[:, 1]
    pairs, links = pairs[between], links[between]
    if len(pairs):
        grey = np.zeros((len(pairs), 4)) + 0.35
        grey[:, 3] = 0.08 + 0.32 * links / links.max()
        axes.add_collection(LineCollection(list(middle[pairs]), colors=grey, linewidths=0.7, zorder=0))


def _agents(axes: Axes, place: NDArray[np.float64], colour: list[str], leaders: Sequence[int]) -> None:
    size = float(np.clip(2_600 / len(colour), 7, 60))
    follows = np.setdiff1d(np.arange(len(colour)), leaders)
    x, y = place[follows].T
    axes.scatter(x, y, s=size, c=[colour[v] for v in follows], edgecolors="white", linewidths=0.4)
    if len(leaders):
        x, y = place[list(leaders)].T
        star: dict[str, Any] = {"marker": "*", "edgecolors": "black", "linewidths": 0.6, "zorder": 3}
        axes.scatter(x, y, s=max(2.4 * size, 30), c=[colour[v] for v in leaders], **star)


def _key(figure: Figure, n_cliques: int, n_leaders: int, named: int, bundled: float | None) -> None:
    from matplotlib.lines import Line2D

    handles = []
    if n_leaders:
        handles.append(dot(f"leaders ({rounded(n_leaders)})", "*", color="white", markeredgecolor="black"))
    if named:
        own = f"the {named} largest of {rounded(n_cliques)}" if named < n_cliques else rounded(n_cliques)
        name = f"{own} cliques, a colour each" if n_cliques > 1 else "one clique"
        handles.append(dot(name, color=LOOKS[0].colour, markeredgecolor="white"))
        if n_cliques > named:
            handles.append(dot("other cliques", color=OTHERS, markeredgecolor="white"))
    if bundled is not None:
        lines = "all links between two cliques" if n_cliques > 1 else "links not drawn"
        linked = f"{lines} ({100 * bundled:.0f} % of pairs linked)"
        handles.append(Line2D([], [], color="#999999" if n_cliques > 1 else "none", label=linked))
    if handles:
        legend_below(figure, {str(handle.get_label()): handle for handle in handles})


def colours(n_agents: int, cliques: Sequence[Sequence[int]]) -> tuple[list[str], int]:
    """A colour per agent, and how many cliques have one of their own."""
    shown = sorted((clique for clique in cliques if len(clique) > 1), key=len, reverse=True)[: len(LOOKS)]
    colour = [OTHERS] * n_agents
    for mark, clique in zip(LOOKS, shown, strict=False):
        for v in clique:
            colour[v] = mark.colour
    return colour, len(shown)


def clustered(n_agents: int, cliques: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Every clique a small disc, the largest first along a spiral from the middle out."""
    place = np.zeros((n_agents, 2))
    golden = np.pi * (3 - np.sqrt(5))
    taken = 0.0
    for rank, clique in enumerate(sorted(cliques, key=len, reverse=True)):
        # The area used so far sets the radius, so that discs of any size fill the plane evenly.
        radius = np.sqrt(taken + len(clique) / 2)
        centre = radius * np.array([np.cos(rank * golden), np.sin(rank * golden)])
        taken += len(clique)
        inside = np.sqrt(np.arange(len(clique)) + 0.5) * 0.52
        turn = np.arange(len(clique)) * golden
        place[list(clique)] = centre + inside[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return place


def network_figures(summary: Summary) -> dict[str, Figure]:
    """The network of the first trial, its cliques and its leaders.

    Very large ones are not drawn. With a sweep, also that of its last point if it looks different. What
    happens to messages is said; by chance alone, it is the same for every link.
    """
    known = summary.manifest.networks
    # A point with the same links as an earlier one only names it.
    found = [
        facts if facts.edges_of is None else replace(facts, edges=known[facts.edges_of].edges, edges_of=None)
        for facts in known.values()
        if facts.edges_sha256 is None
    ]
    # At gamma = 0 every agent is alone: there is nothing to see.
    found = [facts for facts in found if facts.gamma != 0] or found[:1]
    said = fault_sentences_of(summary.spec)
    wanted = found[:1] + [facts for facts in found[-1:] if facts != found[0]]
    return {
        "" if len(wanted) == 1 else str(number): network_figure(
            facts.n_agents,
            np.array(facts.edges or []),
            facts.cliques or [],
            facts.leaders or [],
            "\n".join([title_of(facts.n_agents, facts.n_edges, facts.diameter, facts.gamma), *said]),
        )
        for number, facts in enumerate(wanted, start=1)
    }
