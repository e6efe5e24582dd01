"""Families of networks, and files. Each is a frozen description with one `build`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.graphs.datasets import find
from rumormill.graphs.network import FAMILIES, Network
from rumormill.seeds import fresh_seed
from rumormill.text import amount, memory
from rumormill.validate import NamedArguments, probability, refused, truth, whole

Edges = NDArray[np.int64]

# Number of draws after which a connected graph is given up.
DRAWS = 100
# Generators hold a link in about so many bytes while they draw, and an agent in its label.
BYTES_PER_LINK, BYTES_PER_AGENT = 120, 120
MOST_BYTES = 8e9


class Topology(metaclass=NamedArguments):
    """A family of networks; the abstract class of all families.

    A user-defined family is a frozen dataclass with `build(rng)`; `random` says whether it draws. A spec
    names it as "module:Class".

    Examples
    --------
    >>> import numpy as np
    >>> import rumormill as rm
    >>> ring = rm.catalogue.make("network", {"kind": "ring", "n": 5})
    >>> isinstance(ring, rm.Topology), ring.build(np.random.default_rng(1)).n_edges
    (True, 5)

    References
    ----------
    docs/tutorials/own-law-and-network.md: laws and networks step by step.
    """

    random: ClassVar[bool] = False

    @abstractmethod
    def build(self, rng: np.random.Generator) -> Network:
        """A network of the family."""

    def varies(self) -> bool:
        """Whether another generator gives another network of this very description."""
        return self.random

    def size(self) -> tuple[float, float]:
        """About how many agents and links; checked before anything is drawn. Zeros where it is not known."""
        return 0.0, 0.0

    def require_possible(self) -> None:
        """Refuse a network that cannot fit into memory, before it is drawn."""
        agents, links = self.size()
        needed = BYTES_PER_AGENT * agents + BYTES_PER_LINK * links
        if needed > MOST_BYTES:
            raise InputError(
                f"{self!r} has about {amount(agents)} agents and {amount(links)} links, which takes "
                f"{memory(needed)}: at most {memory(MOST_BYTES)} are allowed; make it smaller or sparser"
            )


@dataclass(frozen=True, kw_only=True)
class ErdosRenyi(Topology):
    """Every pair linked with probability p; drawn again until connected, unless connected=False."""

    random: ClassVar[bool] = True
    n: int
    """The number of agents."""
    p: float
    """The probability of each link."""
    connected: bool = True
    """Draw again until it is connected."""

    def __post_init__(self) -> None:
        whole("n", self.n)
        probability("p", self.p)
        truth("connected", self.connected)

    def size(self) -> tuple[float, float]:
        return self.n, self.p * self.n * (self.n - 1) / 2

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        import rustworkx

        n, p = int(self.n), float(self.p)
        return _drawn(
            self,
            n,
            lambda seed: _pairs(rustworkx.undirected_gnp_random_graph(n, p, seed=seed).edge_list()),
            rng,
            "raise p",
        )


@dataclass(frozen=True, kw_only=True)
class BarabasiAlbert(Topology):
    """Each new agent links to m earlier ones, the well-linked more often; always connected."""

    random: ClassVar[bool] = True
    n: int
    """The number of agents."""
    m: int
    """How many links each new agent brings."""

    def __post_init__(self) -> None:
        n, m = whole("n", self.n, 2), whole("m", self.m)
        if m >= n:
            raise InputError(f"m = {m} is not allowed for n = {n}: it must be below n")

    def size(self) -> tuple[float, float]:
        return self.n, self.n * self.m

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        return Network.numbered(int(self.n), _attached(int(self.n), int(self.m), fresh_seed(rng)))


@dataclass(frozen=True, kw_only=True)
class WattsStrogatz(Topology):
    """A ring of agents with k nearest neighbours each; every link is rewired with probability p."""

    random: ClassVar[bool] = True
    n: int
    """The number of agents."""
    k: int
    """How many nearest neighbours each has at first."""
    p: float
    """The probability that a link is rewired."""
    connected: bool = True
    """Draw again until it is connected."""

    def __post_init__(self) -> None:
        n, k = whole("n", self.n, 3), whole("k", self.k, 2)
        probability("p", self.p)
        truth("connected", self.connected)
        if k % 2 or k >= n:
            raise InputError(f"k = {k} is not allowed for n = {n}: it must be even and below n")

    def size(self) -> tuple[float, float]:
        return self.n, self.n * self.k / 2

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        import networkx

        n, k, p = int(self.n), int(self.k), float(self.p)
        return _drawn(
            self,
            n,
            lambda seed: _pairs(networkx.watts_strogatz_graph(n, k, p, seed=seed).edges),
            rng,
            "raise k",
        )


@dataclass(frozen=True, kw_only=True)
class RandomRegular(Topology):
    """Every agent has d neighbours; drawn again until connected, unless connected=False."""

    random: ClassVar[bool] = True
    n: int
    """The number of agents."""
    d: int
    """How many neighbours each has."""
    connected: bool = True
    """Draw again until it is connected."""

    def __post_init__(self) -> None:
        n, d = whole("n", self.n), whole("d", self.d, 0)
        truth("connected", self.connected)
        if d >= n or n * d % 2:
            raise InputError(f"d = {d} is not allowed for n = {n}: it must be below n, and n times d even")

    def size(self) -> tuple[float, float]:
        return self.n, self.n * self.d / 2

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        import networkx

        n, d = int(self.n), int(self.d)

        def draw(seed: int) -> Edges:
            if d > (n - 1) // 2:  # the complement is regular too, and quicker to draw
                other = networkx.random_regular_graph(n - 1 - d, n, seed=seed)
                return _pairs(networkx.complement(other).edges)
            return _pairs(networkx.random_regular_graph(d, n, seed=seed).edges)

        return _drawn(self, n, draw, rng, "raise d")


@dataclass(frozen=True, kw_only=True)
class NumberedTopology(Topology):
    """A network that its number of agents decides."""

    n: int
    """The number of agents."""

    least: ClassVar[int] = 1

    def __post_init__(self) -> None:
        whole("n", self.n, self.least)

    def size(self) -> tuple[float, float]:
        return self.n, self.n


@dataclass(frozen=True, kw_only=True)
class Ring(NumberedTopology):
    """A closed chain of n agents."""

    least: ClassVar[int] = 3

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        ids = np.arange(self.n)
        return Network.numbered(int(self.n), np.column_stack([ids, np.roll(ids, -1)]))


@dataclass(frozen=True, kw_only=True)
class Path(NumberedTopology):
    """An open chain of n agents."""

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        ids = np.arange(self.n)
        return Network.numbered(int(self.n), np.column_stack([ids[:-1], ids[1:]]))


@dataclass(frozen=True, kw_only=True)
class Star(NumberedTopology):
    """n agents in all; agent 0 is the hub."""

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        leaves = np.arange(1, self.n)
        return Network.numbered(int(self.n), np.column_stack([np.zeros_like(leaves), leaves]))


@dataclass(frozen=True, kw_only=True)
class Complete(NumberedTopology):
    """Every two agents are neighbours."""

    def size(self) -> tuple[float, float]:
        return self.n, self.n * (self.n - 1) / 2

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        return Network.numbered(int(self.n), np.column_stack(np.triu_indices(int(self.n), k=1)))


@dataclass(frozen=True, kw_only=True)
class Grid(Topology):
    """A chequerboard, labelled (row, column)."""

    rows: int
    """The number of rows."""
    cols: int
    """The number of columns."""

    def __post_init__(self) -> None:
        whole("rows", self.rows)
        whole("cols", self.cols)

    def size(self) -> tuple[float, float]:
        return self.rows * self.cols, 2 * self.rows * self.cols

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        rows, cols = int(self.rows), int(self.cols)
        ids = np.arange(rows * cols).reshape(rows, cols)
        across = np.column_stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()])
        down = np.column_stack([ids[:-1].ravel(), ids[1:].ravel()])
        labels = [(r, c) for r in range(rows) for c in range(cols)]
        return Network.labelled(labels, np.concatenate([across, down]))


@dataclass(frozen=True, kw_only=True)
class BalancedTree(Topology):
    """A rooted tree in which every agent above the last level has `branching` children."""

    branching: int
    """How many children each has."""
    height: int
    """How many levels lie below the root."""

    def __post_init__(self) -> None:
        whole("branching", self.branching)
        whole("height", self.height, 0)

    def size(self) -> tuple[float, float]:
        b, h = float(self.branching), int(self.height)
        if b == 1:
            return h + 1.0, float(h)
        agents = b**h * b / (b - 1) if h * np.log10(b) < 300 else float("inf")
        return agents, agents

    def build(self, rng: np.random.Generator) -> Network:
        self.require_possible()
        branching, height = int(self.branching), int(self.height)
        n = sum(branching**level for level in range(height + 1))
        children = np.arange(1, n)
        return Network.numbered(n, np.column_stack([(children - 1) // branching, children]))


@dataclass(frozen=True, kw_only=True)
class GraphFile(Topology):
    """An edge list: a path, or the name of a known graph; `subgraph` is the size of a random snowball."""

    random: ClassVar[bool] = True
    file: str
    """The path of an edge list, or the name of a known graph (`rumormill data`)."""
    subgraph: int | None = None
    """The size of a random connected piece; the whole graph if left out."""

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not self.file:
            raise refused("file", self.file, "the path of an edge list, or a known graph")
        if self.subgraph is not None:
            whole("subgraph", self.subgraph)

    def varies(self) -> bool:
        return self.subgraph is not None

    def build(self, rng: np.random.Generator) -> Network:
        read = _read(str(find(self.file)))
        return read if self.subgraph is None else read.subgraph(self.subgraph, rng=rng)


@lru_cache(maxsize=4)
def _read(path: str) -> Network:
    return Network.from_file(path)


def _attached(n: int, m: int, seed: int) -> Edges:
    """The links of networkx.barabasi_albert_graph(n, m, seed), without its graph: a tenth of time and memory.

    Agents 0 to m are a star at first; then each new one draws m different ends of earlier links.
    """
    below: Callable[[int], int] = Random(seed)._randbelow  # type: ignore[attr-defined]
    heads = list(range(1, m + 1))
    ends = [0] * m + heads
    for new in range(m + 1, n):
        targets: set[int] = set()
        while len(targets) < m:
            targets.add(ends[below(len(ends))])
        heads.extend(targets)
        ends.extend(targets)
        ends.extend([new] * m)
    tails = np.repeat(np.arange(m, n), m)
    tails[:m] = 0
    return np.column_stack([tails, np.array(heads, np.int64)])


def _pairs(edges: Any) -> Edges:
    """Any iterable of pairs of ids as an (m, 2) array, also when there are none."""
    return np.array(list(edges), np.int64).reshape(-1, 2)


def _drawn(
    family: Any, n: int, draw: Callable[[int], Edges], rng: np.random.Generator, advice: str
) -> Network:
    """The first draw that is connected, or the first of all with connected=False."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    for _ in range(DRAWS):
        edges = draw(fresh_seed(rng))
        if family.connected:
            links = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
            if connected_components(links, directed=False, return_labels=False) > 1:
                continue
        return Network.numbered(n, edges)
    raise InputError(
        f"{family!r} gave no connected graph in {DRAWS} draws: {advice}, or pass connected=False"
    )


# The short ways of Network: Network.ring(5) is Ring(n=5).build(...).
_SHORT = (
    BalancedTree,
    BarabasiAlbert,
    Complete,
    ErdosRenyi,
    Grid,
    Path,
    RandomRegular,
    Ring,
    Star,
    WattsStrogatz,
)
FAMILIES.update({family.__name__: family for family in _SHORT})
