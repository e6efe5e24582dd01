"""Heavy independent sets by local search: a greedy start, exchanges that pay, small pushes out of valleys.

As in the iterated local search of Nogueira, Pinheiro and Subramanian (2018), two exchanges are made until
neither pays: an agent for all its neighbours in the set, and two agents for the only neighbour in the set
that both have. Then an agent that was long outside is put in by force and the exchanges go on; what such a
push lost is taken back more often than not. All chance comes from one fixed seed: the same graph gets the
same set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs.adjacency import Adjacency
from rumormill.graphs.sets import greedy_independent

SEED = 2018
# A push costs a third of a millisecond or so, more on large graphs: these get fewer.
MOST_PUSHES = 400
LINKS = 5_000_000
# Which losses are kept after a push: measured in shares of the mean weight of a leader.
BEARABLE = 0.3
# Weights are sums: differences below this share of the total are rounding.
GRAIN = 1e-12

Ids = NDArray[np.integer[Any]]


def search_independent(power: Adjacency, weights: NDArray[np.float64]) -> list[int]:
    """The heaviest independent set that was met; no agent can be added."""
    rng = np.random.default_rng(SEED)
    now = _Exchange(power, weights, greedy_independent(power, weights))
    now.improve(np.arange(power.n_agents))
    best, heaviest = now.members(), now.weight
    unit = BEARABLE * heaviest / len(best)
    out_since = np.zeros(power.n_agents, np.int64)
    for push in range(1, min(MOST_PUSHES, LINKS // (len(power.indices) + power.n_agents)) + 1):
        some = rng.integers(0, power.n_agents, 4)
        some = some[~now.inside[some]]
        if not len(some):
            continue
        before = now.copy()
        now.improve(now.insert(int(some[np.argmin(out_since[some])])))
        out_since[before.inside & ~now.inside] = push
        if now.weight > heaviest + now.grain:
            best, heaviest = now.members(), now.weight
        elif now.weight < before.weight - now.grain:
            lost, short = (before.weight - now.weight) / unit, (heaviest - now.weight) / unit
            if rng.random() * (1.0 + lost * short) > 1.0:
                now = before
    return best


class _Exchange:
    """An independent set, and what it costs to put each other agent in."""

    def __init__(self, power: Adjacency, weights: NDArray[np.float64], chosen: list[int]) -> None:
        n = power.n_agents
        self.power, self.weights, self.grain = power, weights, GRAIN * float(weights.sum())
        self.inside = np.zeros(n, np.bool_)
        self.near = np.zeros(n, np.int64)
        """How many neighbours are in the set."""
        self.whose = np.zeros(n, np.int64)
        """The sum of their ids: if it is one, who it is."""
        self.cost = np.zeros(n)
        """Their weight."""
        self.weight = 0.0
        for v in chosen:
            self._add(v)

    def copy(self) -> _Exchange:
        twin = object.__new__(_Exchange)
        twin.power, twin.weights, twin.grain, twin.weight = self.power, self.weights, self.grain, self.weight
        twin.inside, twin.near = self.inside.copy(), self.near.copy()
        twin.whose, twin.cost = self.whose.copy(), self.cost.copy()
        return twin

    def members(self) -> list[int]:
        return [int(v) for v in np.flatnonzero(self.inside)]

    def improve(self, agents: Ids) -> None:
        """Exchange while it pays; these agents, and those a neighbour leaves, are looked at."""
        while len(agents):
            agents = self._pairs(self._singles(agents))

    def insert(self, v: int) -> Ids:
        """Put v in for its neighbours in the set; whom these leave."""
        row = self.power.row(v)
        left = [self._remove(u) for u in row[self.inside[row]].tolist()]
        self._add(v)
        return _all_of(left)

    def _add(self, v: int) -> None:
        row = self.power.row(v)
        self.inside[v] = True
        self.near[row] += 1
        self.whose[row] += v
        self.cost[row] += self.weights[v]
        self.weight += float(self.weights[v])

    def _remove(self, u: int) -> Ids:
        row = self.power.row(u)
        self.inside[u] = False
        self.near[row] -= 1
        self.whose[row] -= u
        self.cost[row] -= self.weights[u]
        self.weight -= float(self.weights[u])
        return row

    def _singles(self, agents: Ids) -> Ids:
        """An agent for all its neighbours in the set, the most profitable first; whom to look at next."""
        seen = [agents]
        while len(agents):
            out = agents[~self.inside[agents]]
            gain = self.weights[out] - self.cost[out]
            order = np.argsort(-gain, kind="stable")
            pays = out[order[gain[order] > self.grain]].tolist()
            agents = _all_of([self.insert(v) for v in pays if self._pays(v)])  # each changes what pays
            seen.append(agents)
        return _all_of(seen)

    def _pays(self, v: int) -> bool:
        return not self.inside[v] and bool(self.weights[v] - self.cost[v] > self.grain)

    def _pairs(self, agents: Ids) -> Ids:
        """Two agents that do not hear each other, for the only neighbour in the set that both have."""
        left = []
        for x in np.unique(self.whose[agents[self.near[agents] == 1]]).tolist():
            row, least = self.power.row(x), self.weights[x] + self.grain
            alone = row[self.near[row] == 1]
            alone = alone[np.argsort(-self.weights[alone], kind="stable")]
            pair = self._pair(alone, least) if self.inside[x] else None
            if pair is not None:
                left.append(self._remove(x))
                for v in pair:
                    self._add(v)
        return _all_of(left)

    def _pair(self, alone: Ids, least: float) -> tuple[int, int] | None:
        """Two of these, the heaviest first, of more than this weight."""
        value = self.weights[alone]
        for i in range(len(alone) - 1):
            if value[i] + value[i + 1] <= least:
                return None
            first, rest = int(alone[i]), alone[i + 1 :]
            near = self.power.row(first)
            at = np.minimum(np.searchsorted(near, rest), len(near) - 1)
            free = np.flatnonzero(near[at] != rest)
            if len(free) and value[i] + value[i + 1 + free[0]] > least:
                return first, int(rest[free[0]])
        return None


def _all_of(rows: list[Ids]) -> Ids:
    return np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)
