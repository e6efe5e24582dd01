"""Clique cover, independence and domination numbers of the power graphs, with proven bounds.

For every graph independence <= cover. A power graph gains links as gamma grows, so all three are
non-increasing in gamma: a cover or a dominating set of one gamma is valid for the next, an independent set
for the one before, and so are the bounds. Heuristics run first; the exact solvers share the time for what
remains open.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rumormill.errors import InputError
from rumormill.graphs import Network, clique_cover, dominating_set, independent_set
from rumormill.graphs.adjacency import Adjacency
from rumormill.validate import is_number, refused

Witness = tuple[int, ...] | tuple[tuple[int, ...], ...]

# An exact cover of more agents is hopeless, and only to write the question down takes long.
EXACT_COVER_AGENTS = 100


@dataclass(frozen=True)
class Certified:
    """A number between two proven bounds.

    witness shows one of them: the cliques of a cover or the agents of a dominating set (upper), the agents
    of an independent set (lower).
    """

    lower: int
    upper: int
    witness: Witness

    @property
    def optimal(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    @property
    def value(self) -> int | None:
        """The number, if it is proven."""
        return self.lower if self.optimal else None

    def __str__(self) -> str:
        return str(self.lower) if self.optimal else f"{self.lower}..{self.upper}"


@dataclass(frozen=True)
class Invariants:
    """What enters the bounds of one gamma."""

    gamma: int
    cover: Certified
    independence: Certified
    domination: Certified


def invariants(
    network: Network, gammas: Sequence[int] | None = None, *, time_limit: float = 10.0
) -> list[Invariants]:
    """The invariants of the power graphs, for the given gammas or for 0 to the diameter.

    Parameters
    ----------
    network : Network
        The network.
    gammas : sequence of int, optional
        Hop budgets.
    time_limit : float, default 10.0
        Seconds for the exact solver in all; 0: bounds of the heuristics only.

    Returns
    -------
    list of Invariants
        One per gamma.

    Examples
    --------
    >>> import rumormill as rm
    >>> (found,) = rm.theory.invariants(rm.Network.ring(5), [1])
    >>> found.cover.value, found.independence.value, found.domination.value
    (3, 2, 2)
    """
    if not (is_number(time_limit) and time_limit >= 0):
        raise refused("time_limit", time_limit, "seconds, 0 or more")
    wanted = list(range(network.diameter + 1)) if gammas is None else list(gammas)
    resolved = [network.resolve_gamma(gamma) for gamma in wanted]
    graphs = [_Power(network, gamma) for gamma in sorted(set(resolved))]
    _share(graphs)
    _settle(graphs, time_limit)
    by_gamma = {graph.gamma: graph.certified() for graph in graphs}
    return [by_gamma[gamma] for gamma in resolved]


class _Open:
    """A number with the bounds proven so far."""

    def __init__(self, lower: int, upper: int, witness: Witness) -> None:
        self.lower, self.upper, self.witness = lower, upper, witness

    @property
    def closed(self) -> bool:
        return self.lower == self.upper

    def at_least(self, lower: int, witness: Witness | None = None) -> None:
        if lower > self.lower:
            self.lower = lower
            self.witness = self.witness if witness is None else witness

    def at_most(self, upper: int, witness: Witness | None = None) -> None:
        if upper < self.upper:
            self.upper = upper
            self.witness = self.witness if witness is None else witness

    def certified(self) -> Certified:
        return Certified(self.lower, self.upper, self.witness)


class _Power:
    """One power graph with the bounds of the heuristics."""

    def __init__(self, network: Network, gamma: int) -> None:
        self.network, self.gamma = network, gamma
        self.ones = np.ones(network.n_agents)
        cover = clique_cover(network, gamma)
        alone = independent_set(network, gamma, method="greedy", weights=self.ones)
        few = dominating_set(network, gamma)
        self.cover = _Open(cover.lower_bound, len(cover.groups), cover.groups)
        self.independence = _Open(len(alone.leaders), int(alone.bound), alone.leaders)
        self.domination = _Open(int(few.bound), len(few.leaders), few.leaders)
        self.relate()

    def relate(self) -> None:
        """Agents of an independent set are in different cliques."""
        self.cover.at_least(self.independence.lower)
        self.independence.at_most(self.cover.upper)

    def unsettled(self) -> list[Callable[[float], None]]:
        """The exact questions worth asking, in the order in which they help each other."""
        questions: list[Callable[[float], None]] = []
        if not self.domination.closed:
            questions.append(self.settle_domination)
        if not self.independence.closed:
            questions.append(self.settle_independence)
        if not self.cover.closed and self.network.n_agents <= EXACT_COVER_AGENTS:
            questions.append(self.settle_cover)
        return questions

    def settle_domination(self, seconds: float) -> None:
        self.domination.at_least(fractional_domination(self.network.power(self.gamma)))
        if not self.domination.closed:
            found = dominating_set(self.network, self.gamma, method="exact", time_limit=seconds)
            self.domination.at_most(len(found.leaders), found.leaders)
            self.domination.at_least(int(found.bound))

    def settle_independence(self, seconds: float) -> None:
        found = independent_set(
            self.network, self.gamma, method="exact", weights=self.ones, time_limit=seconds
        )
        self.independence.at_least(len(found.leaders), found.leaders)
        self.independence.at_most(int(found.bound))

    def settle_cover(self, seconds: float) -> None:
        found = clique_cover(self.network, self.gamma, method="exact", time_limit=seconds)
        self.cover.at_most(len(found.groups), found.groups)
        self.cover.at_least(found.lower_bound)

    def certified(self) -> Invariants:
        return Invariants(
            self.gamma, self.cover.certified(), self.independence.certified(), self.domination.certified()
        )


def _share(graphs: list[_Power]) -> None:
    """Carry bounds from one gamma to the next, both ways."""
    for near, far in pairwise(graphs):
        far.cover.at_most(near.cover.upper, near.cover.witness)
        far.independence.at_most(near.independence.upper)
        far.domination.at_most(near.domination.upper, near.domination.witness)
        far.relate()
    for near, far in reversed(list(pairwise(graphs))):
        near.cover.at_least(far.cover.lower)
        near.independence.at_least(far.independence.lower, far.independence.witness)
        near.domination.at_least(far.domination.lower)
        near.relate()


def _settle(graphs: list[_Power], time_limit: float) -> None:
    """Run the exact solver, the densest graph first: it is the easiest, and its bounds help the others."""
    end = time.monotonic() + time_limit
    for i in reversed(range(len(graphs))):
        asked: set[str] = set()
        while fresh := [q for q in graphs[i].unsettled() if q.__name__ not in asked]:
            left = end - time.monotonic()
            if left <= 0:
                return
            waiting = len(fresh) + sum(len(graph.unsettled()) for graph in graphs[:i])
            asked.add(fresh[0].__name__)
            try:
                fresh[0](left / waiting)
            except InputError:  # too many maximal cliques: the bounds so far stand
                continue
            graphs[i].relate()
        _share(graphs)


def fractional_domination(power: Adjacency) -> int:
    """A lower bound on any dominating set, from the dual of the linear relaxation.

    Agents get prices such that no closed neighbourhood costs more than 1; the prices then sum to at most the
    size of any dominating set. The solver's prices are scaled until that is exactly true: rounding cannot
    invalidate the bound.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array

    closed = power.matrix(np.float64) + eye_array(power.n_agents)
    ones = np.ones(power.n_agents)
    found = linprog(-ones, A_ub=closed, b_ub=ones, bounds=(0, None), method="highs")
    if found.x is None:
        return 1
    prices = np.maximum(found.x, 0)
    prices = prices / max(1.0, float((closed @ prices).max()))
    return max(1, math.ceil(float(prices.sum()) * (1 - 1e-9)))
