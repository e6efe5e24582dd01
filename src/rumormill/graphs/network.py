"""Agents and their links: the network type."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError, SimplifiedGraphNotice
from rumormill.graphs import adjacency as adj
from rumormill.graphs.adjacency import (
    Adjacency,
    Neighbourhoods,
    frozen,
    hops_from,
    longest_distance,
    neighbourhoods,
)
from rumormill.graphs.datasets import parts_of, read_edges
from rumormill.seeds import RandomSource as Rng
from rumormill.seeds import generator
from rumormill.text import plural, shown
from rumormill.validate import NamedArguments, named_arguments, whole

if TYPE_CHECKING:
    import networkx

# How many parts, and how many labels of each, are worth reading.
SHOWN = 5


def describe(network: Network) -> str:
    """Size, degrees, diameter and, if it is not connected, the components."""
    low, high = int(network.degrees.min()), int(network.degrees.max())
    lines = [
        f"{plural(network.n_agents, 'agent')}, {plural(network.n_edges, 'link')}, degrees {low} to {high}, "
        f"diameter {network.diameter}"
    ]
    parts = network.components
    if len(parts) == 1:
        lines.append("connected: there is a path between any two agents")
    else:
        lines.append(f"not connected: {len(parts)} parts cannot hear each other")
        lines += [f"  {plural(len(part), 'agent')}: {_labels(network, part)}" for part in parts[:SHOWN]]
        if len(parts) > SHOWN:
            lines.append(f"  and {plural(len(parts) - SHOWN, 'more part')}, none larger")
    loops, repeats = network.dropped_self_loops, network.dropped_repeats
    if loops or repeats:
        lines.append(f"dropped {plural(loops, 'self-loop')} and {plural(repeats, 'repeated link')}")
    lines += network.notes
    return "\n".join(lines)


def _labels(network: Network, agents: NDArray[Any]) -> str:
    shown = ", ".join(repr(network.labels[v]) for v in agents[:SHOWN])
    return shown + (", ..." if len(agents) > SHOWN else "")


# Operations for a diameter: half a minute or so.
DIAMETER_WORK = 2e9
# What a small picture can show.
DRAWN_AGENTS, DRAWN_LINKS = 300, 3_000
# A full distance matrix of this many agents takes 400 MB.
FULL_MATRIX_AGENTS = 10_000


class Network(metaclass=NamedArguments):
    """An undirected graph of agents 0..n_agents-1, numbered in the order of their labels.

    Directed links become undirected; self-loops and repeated links are dropped and counted. Link weights
    are ignored: distance is the number of hops. `notes` says what was dropped or ignored. Immutable.

    Parameters
    ----------
    graph : networkx or rustworkx graph, adjacency matrix, or pairs of labels
        The graph; a matrix is a square numpy array or a SciPy sparse one, not zero where there is a link. Two
        columns of whole numbers or texts are an edge list. For files see `Network.from_edges`, for
        the usual families `Network.ring`, `Network.erdos_renyi` and others.

    Warns
    -----
    SimplifiedGraphNotice
        The graph has directions, weights or parallel links, which a network has not.

    Examples
    --------
    >>> import rumormill as rm
    >>> network = rm.Network.from_edges([("a", "b"), ("b", "c")])
    >>> network.n_agents, network.diameter, network.neighbours(1).tolist()
    (3, 2, [0, 2])
    >>> import numpy as np
    >>> rm.Network(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    Network(n_agents=3, n_edges=2)

    References
    ----------
    Dubey and Pentland (2020): the power graph of the hop budget γ.
    """

    def __init__(self, graph: Any) -> None:
        found = parts_of(graph)
        if found is None:
            if isinstance(graph, str | PathLike) or not isinstance(graph, Iterable):
                raise InputError(
                    f"Network takes a graph, a matrix or pairs of labels, not {type(graph).__name__}; for a "
                    "file use Network.from_edges"
                )
            found = *_numbered_pairs(graph), []
        labels, edges, notes = found
        self._fill(labels, edges, notes)
        if notes:
            warnings.warn("; ".join(notes), SimplifiedGraphNotice, stacklevel=3)

    def _fill(self, labels: Sequence[Hashable], edges: NDArray[np.int64], notes: Sequence[str] = ()) -> None:
        if not labels:
            raise InputError("a network without agents is not allowed: give a graph with at least one node")
        self._labels = tuple(labels)
        self.notes = tuple(notes)
        self._adjacency, self._loops, self._repeats = adj.from_edges(len(labels), edges)
        self._neighbourhoods: dict[int, Neighbourhoods] = {}
        self._powers: dict[int, Adjacency] = {}

    @classmethod
    def labelled(
        cls, labels: Sequence[Hashable], edges: NDArray[np.int64], notes: Sequence[str] = ()
    ) -> Self:
        """From labels and an array of pairs of agents, each a place in `labels`."""
        network = cls.__new__(cls)
        network._fill(labels, edges, notes)
        return network

    @classmethod
    def numbered(cls, n: int, edges: NDArray[np.int64]) -> Self:
        """n agents labelled 0 to n - 1, from an array of pairs of them."""
        return cls.labelled(range(n), edges)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self._labels)

    @property
    def n_edges(self) -> int:
        """Number of links, each counted once."""
        return self._adjacency.n_edges

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The caller's names of the agents; agent i is labels[i]."""
        return self._labels

    @property
    def dropped_self_loops(self) -> int:
        """Links from an agent to itself that were dropped."""
        return self._loops

    @property
    def dropped_repeats(self) -> int:
        """Links that were given before, in the same or the other direction, and dropped."""
        return self._repeats

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where each agent's neighbours begin in `indices`."""
        return self._adjacency.indptr

    @property
    def indices(self) -> NDArray[np.int32]:
        """The neighbours of all agents, one sorted row after another."""
        return self._adjacency.indices

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each agent."""
        return frozen(self._adjacency.degrees)

    def neighbours(self, v: int) -> NDArray[np.int32]:
        """The agents one hop from v, sorted."""
        return self._adjacency.row(self.check_agent(v))

    def edges(self) -> NDArray[np.int64]:
        """Every link once, as rows (smaller id, larger id)."""
        return self._adjacency.edges()

    @cached_property
    def components(self) -> list[NDArray[np.int64]]:
        """The connected components, largest first."""
        from scipy.sparse.csgraph import connected_components

        count, part = connected_components(self._adjacency.matrix(), directed=False)
        # A stable sort of agents by part keeps the ids of each part sorted.
        cuts = np.cumsum(np.bincount(part, minlength=count))[:-1]
        parts = np.split(np.argsort(part, kind="stable"), cuts)
        return [frozen(p) for p in sorted(parts, key=lambda p: (-len(p), p[0]))]

    @property
    def connected(self) -> bool:
        """Whether there is a path between any two agents."""
        return len(self.components) == 1

    # --- distances ------------------------------------------------------------------------------------

    @cached_property
    def diameter(self) -> int:
        """The largest finite hop distance. Of long chains of very many agents, that can take hours."""
        low, high = self.diameter_between
        return low if low == high else longest_distance(self._adjacency)[0]

    @cached_property
    def diameter_between(self) -> tuple[int, int]:
        """Lower and upper bound of the diameter; they differ only where it would take minutes to compute."""
        return longest_distance(self._adjacency, DIAMETER_WORK)

    @cached_property
    def _distance_found(self) -> int:
        """A distance that occurs, from two breadth-first sweeps: cheap, and often the diameter."""
        far = int(np.argmax(hops_from(self._adjacency, int(self.components[0][0]))))
        return int(hops_from(self._adjacency, far).max())

    def resolve_gamma(self, gamma: int | Literal["half-diameter"]) -> int:
        """How many hops a message travels: a number up to the diameter, or half the diameter, rounded up."""
        if isinstance(gamma, str):
            if gamma != "half-diameter":
                raise InputError(f"gamma = {gamma!r} is not allowed: give a whole number or 'half-diameter'")
            low, high = self.diameter_between
            if low != high:
                raise InputError(
                    f"gamma = 'half-diameter' is not possible here: the diameter of these {self.n_agents:,} "
                    f"agents lies between {low} and {high}, and would take long to find; give a number"
                )
            return (low + 1) // 2
        gamma = whole("gamma", gamma, 0)
        # The exact diameter of a large network is expensive: compute it only if gamma may exceed it.
        known = gamma == 0 or (gamma == 1 and self.n_edges > 0) or gamma <= self._distance_found
        return gamma if known else min(gamma, self.diameter)

    def neighbourhoods(self, gamma: int | Literal["half-diameter"]) -> Neighbourhoods:
        """For each agent the agents at distance 1..gamma, sorted by (distance, id)."""
        gamma = self.resolve_gamma(gamma)
        if gamma not in self._neighbourhoods:
            self._neighbourhoods[gamma] = neighbourhoods(self._adjacency, gamma)
        return self._neighbourhoods[gamma]

    def power(self, gamma: int | Literal["half-diameter"]) -> Adjacency:
        """The power graph: a link between any two agents within gamma hops."""
        gamma = self.resolve_gamma(gamma)
        if gamma not in self._powers:
            self._powers[gamma] = self.neighbourhoods(gamma).power()
        return self._powers[gamma]

    def distances(self) -> NDArray[np.int32]:
        """The full matrix of hop distances, -1 where there is no path; for small networks only."""
        if self.n_agents > FULL_MATRIX_AGENTS:
            raise InputError(
                f"distances() of {self.n_agents} agents would fill the memory: at most {FULL_MATRIX_AGENTS} "
                "agents are allowed; use neighbourhoods(gamma)"
            )
        near = self.neighbourhoods(self.diameter)
        full = np.full((self.n_agents, self.n_agents), -1, np.int32)
        np.fill_diagonal(full, 0)
        full[np.repeat(np.arange(self.n_agents), near.sizes), near.indices] = near.distances
        return full

    # --- words and other forms ------------------------------------------------------------------------

    def describe(self) -> str:
        """Size, degrees, diameter and, if it is not connected, the components."""
        return describe(self)

    def to_networkx(self) -> networkx.Graph:
        """The same graph for networkx, under the labels it came with."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self._labels)
        graph.add_edges_from((self._labels[u], self._labels[v]) for u, v in self.edges().tolist())
        return graph

    def __repr__(self) -> str:
        return f"Network(n_agents={self.n_agents}, n_edges={self.n_edges})"

    def _repr_html_(self) -> str:
        from rumormill.plotting.rendering import html_lines, html_picture

        lines = html_lines(describe(self).splitlines())
        if self.n_agents > DRAWN_AGENTS or self.n_edges > DRAWN_LINKS:
            return lines + html_lines([f"not drawn: more than {DRAWN_AGENTS} agents or {DRAWN_LINKS} links"])
        from rumormill.plotting.drawing import small_picture

        about = f"The network of {plural(self.n_agents, 'agent')} and {plural(self.n_edges, 'link')}"
        return lines + html_picture(small_picture(self.edges(), self.n_agents).axes[0], about)

    def check_agent(self, v: Any) -> int:
        """The id as an int, refused if there is no such agent."""
        if whole("agent", v, 0) >= self.n_agents:
            raise InputError(f"agent = {v} is not allowed: the agents are 0 to {self.n_agents - 1}")
        return int(v)

    # --- where networks come from ---------------------------------------------------------------------

    @classmethod
    def from_edges(cls, edges: str | PathLike[str] | Iterable[tuple[Hashable, Hashable]]) -> Self:
        """From pairs of labels, or from an edge-list file. Agents are numbered as they first appear."""
        if isinstance(edges, str | PathLike):
            return cls.from_file(edges)
        return cls.labelled(*_numbered_pairs(edges))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """From an edge list: two labels per line, blanks or a comma between, # comments, plain or gzip.

        A third column of numbers is taken for weights and ignored; `notes` says so.
        """
        pairs, notes = read_edges(path)
        return cls.labelled(*_numbered_pairs(pairs), notes)

    @named_arguments
    def subgraph(self, n: int, *, rng: Rng) -> Network:
        """A connected part of n agents: a breadth-first snowball from a random start in the largest part."""
        from scipy.sparse.csgraph import breadth_first_order

        part = self.components[0]
        if whole("n", n) > len(part):
            raise InputError(f"n = {n} is not allowed: the largest connected part has {len(part)} agents")
        start = int(generator(rng).choice(part))
        snowball = breadth_first_order(self._adjacency.matrix(), start, return_predecessors=False)
        kept = np.sort(snowball[:n])
        new_id = np.full(self.n_agents, -1, np.int64)
        new_id[kept] = np.arange(n)
        edges = new_id[self.edges()]
        labels = [self._labels[v] for v in kept]
        return type(self).labelled(labels, edges[(edges >= 0).all(axis=1)], self.notes)

    @staticmethod
    @named_arguments
    def erdos_renyi(n: int, p: float, *, rng: Rng, connected: bool = True) -> Network:
        """Every pair linked with probability p; drawn again until connected, unless connected=False."""
        return _drawn("ErdosRenyi", rng, n=n, p=p, connected=connected)

    @staticmethod
    @named_arguments
    def barabasi_albert(n: int, m: int, *, rng: Rng) -> Network:
        """Each new agent links to m earlier ones, the well-linked more often."""
        return _drawn("BarabasiAlbert", rng, n=n, m=m)

    @staticmethod
    @named_arguments
    def watts_strogatz(n: int, k: int, p: float, *, rng: Rng, connected: bool = True) -> Network:
        """A ring of agents with k nearest neighbours each; every link is rewired with probability p."""
        return _drawn("WattsStrogatz", rng, n=n, k=k, p=p, connected=connected)

    @staticmethod
    @named_arguments
    def random_regular(n: int, d: int, *, rng: Rng, connected: bool = True) -> Network:
        """Every agent has d neighbours; drawn again until connected, unless connected=False."""
        return _drawn("RandomRegular", rng, n=n, d=d, connected=connected)

    @staticmethod
    @named_arguments
    def ring(n: int) -> Network:
        """A closed chain of n agents."""
        return _drawn("Ring", 0, n=n)

    @staticmethod
    @named_arguments
    def path(n: int) -> Network:
        """An open chain of n agents."""
        return _drawn("Path", 0, n=n)

    @staticmethod
    @named_arguments
    def star(n: int) -> Network:
        """n agents in all; agent 0 is the hub."""
        return _drawn("Star", 0, n=n)

    @staticmethod
    @named_arguments
    def complete(n: int) -> Network:
        """Every two agents are neighbours."""
        return _drawn("Complete", 0, n=n)

    @staticmethod
    @named_arguments
    def grid(rows: int, cols: int) -> Network:
        """A chequerboard, labelled (row, column)."""
        return _drawn("Grid", 0, rows=rows, cols=cols)

    @staticmethod
    @named_arguments
    def balanced_tree(branching: int, height: int) -> Network:
        """A rooted tree in which every agent above the last level has `branching` children."""
        return _drawn("BalancedTree", 0, branching=branching, height=height)


def _numbered_pairs(pairs: Iterable[Any]) -> tuple[list[Hashable], NDArray[np.int64]]:
    """The labels in the order in which they first appear, and every pair as places in them."""
    ids: dict[Hashable, int] = {}
    found: list[tuple[int, int]] = []
    pair: Any = pairs
    try:
        for pair in pairs.tolist() if isinstance(pairs, np.ndarray) else pairs:
            u, v = pair
            if u is None or v is None:
                raise ValueError
            found.append((ids.setdefault(u, len(ids)), ids.setdefault(v, len(ids))))
    except (TypeError, ValueError):
        raise InputError(
            f"{shown(pair)} is not an edge: a pair of two hashable labels is expected, none of them None"
        ) from None
    return list(ids), np.array(found, np.int64).reshape(-1, 2)


# The families of graphs/topologies.py by name. That module, which builds networks and so imports this one,
# fills the table.
FAMILIES: dict[str, Callable[..., Any]] = {}


def _drawn(family: str, rng: Any, **settings: Any) -> Network:
    """A network of a family, drawn with this source of randomness."""
    network: Network = FAMILIES[family](**settings).build(generator(rng))
    return network
