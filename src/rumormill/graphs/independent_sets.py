"""Heuristics for independent and dominating sets: greedy, simulated annealing (QUBO), local search."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs.adjacency import Adjacency


def greedy_independent(
    power: Adjacency, weights: NDArray[np.float64], start: Iterable[int] = ()
) -> list[int]:
    """Extend an independent set until it is maximal: most weight per link lost first, then fewest links."""
    chosen = list(start)
    free = np.ones(power.n_agents, np.bool_)
    for v in chosen:
        free[v] = False
        free[power.row(v)] = False
    links = power.degrees.copy()
    if chosen:
        for v in np.flatnonzero(free).tolist():
            links[v] = free[power.row(v)].sum()
    queue = [(-weights[v] / (links[v] + 1), int(links[v]), int(v)) for v in np.flatnonzero(free)]
    heapq.heapify(queue)
    while queue:
        _, at, v = heapq.heappop(queue)
        if not free[v] or at != links[v]:
            continue
        chosen.append(v)
        gone = [v, *power.row(v)[free[power.row(v)]].tolist()]
        free[gone] = False
        touched = set()
        for w in gone:
            near = power.row(w)
            links[near] -= 1
            touched.update(near[free[near]].tolist())
        for w in touched:
            heapq.heappush(queue, (-weights[w] / (links[w] + 1), int(links[w]), w))
    return sorted(chosen)


def greedy_dominating(power: Adjacency) -> list[int]:
    """Take the agent that reaches the most agents not yet reached; then drop agents that are not needed."""
    n = power.n_agents
    reached = np.zeros(n, np.bool_)
    chosen: list[int] = []
    queue = [(-int(d) - 1, v) for v, d in enumerate(power.degrees)]
    heapq.heapify(queue)
    while not reached.all():
        promised, v = heapq.heappop(queue)
        gain = int(not reached[v]) + int((~reached[power.row(v)]).sum())
        if gain < -promised:
            heapq.heappush(queue, (-gain, v))
            continue
        chosen.append(v)
        reached[v] = True
        reached[power.row(v)] = True
    return _without_needless(power, chosen)


def _without_needless(power: Adjacency, chosen: list[int]) -> list[int]:
    times = np.zeros(power.n_agents, np.int64)
    for v in chosen:
        times[v] += 1
        times[power.row(v)] += 1
    kept = []
    for v in chosen:
        if times[v] > 1 and (times[power.row(v)] > 1).all():
            times[v] -= 1
            times[power.row(v)] -= 1
        else:
            kept.append(v)
    return sorted(kept)


def disjoint_reaches(power: Adjacency) -> int:
    """Number of agents with pairwise disjoint closed neighbourhoods: each needs a dominator of its own."""
    taken = np.zeros(power.n_agents, np.bool_)
    count = 0
    for v in np.argsort(power.degrees, kind="stable"):
        if not taken[v] and not taken[power.row(v)].any():
            taken[v] = True
            taken[power.row(v)] = True
            count += 1
    return count


def linked_pair(power: Adjacency, chosen: Iterable[int]) -> tuple[int, int] | None:
    """Two of these agents that are linked, or None if the set is independent."""
    inside = np.zeros(power.n_agents, np.bool_)
    members = list(chosen)
    inside[members] = True
    for v in members:
        near = power.row(v)[inside[power.row(v)]]
        if len(near):
            return v, int(near[0])
    return None


def not_reached(power: Adjacency, chosen: Iterable[int]) -> NDArray[np.int64]:
    """The agents that are neither in the set nor linked to one of it."""
    reached = np.zeros(power.n_agents, np.bool_)
    for v in chosen:
        reached[v] = True
        reached[power.row(v)] = True
    return np.flatnonzero(~reached)


# Half a second of annealing on some hundred agents, and not much more on many thousands. Twice the effort
# gained 0.1 % of weight on random graphs and on parts of real ones.
MOST_READS, LEAST_READS = 50, 10
MOST_SWEEPS, LEAST_SWEEPS = 500, 50
UPDATES = 12_500_000
# From "most moves are taken" to "hardly any is", in units of the largest and of the smallest weight.
HOT, COLD = 5.0, 10.0
# Above this share of all pairs, adding a whole row of the matrix is quicker than picking out the links.
FULL_AGENTS, FULL_SHARE = 3_000, 1 / 8
# Samples that are worth the repair.
REPAIRED = 20


def anneal(power: Adjacency, weights: NDArray[np.float64], seed: int) -> list[int]:
    """The heaviest independent set among the repaired samples of simulated annealing.

    The QUBO: minimise -sum w_i x_i + sum over links P_ij x_i x_j. With P_ij = min(w_i, w_j) + 1 removing a
    violated link always pays, yet local minima stay shallow enough to leave: a larger common penalty gives
    clearly worse sets. The best sample may still contain linked agents, so samples are repaired and completed
    greedily.
    """
    if not power.n_edges:
        return list(range(power.n_agents))
    n = power.n_agents
    reads = int(np.clip(50_000 // n, LEAST_READS, MOST_READS))
    sweeps = int(np.clip(UPDATES // (reads * n), LEAST_SWEEPS, MOST_SWEEPS))
    drawn, energies = samples(power, weights, seed, reads, sweeps)
    rows = dict.fromkeys(drawn[i].tobytes() for i in np.argsort(energies, kind="stable"))
    found = [np.frombuffer(row, np.int8) for row in list(rows)[:REPAIRED]]
    # Most are maximal independent sets: no member is linked to a member, every other agent is.
    near = power.matrix(np.int32) @ np.array(found, np.int32).T
    sound = [bool(((near[:, i] > 0) != (row > 0)).all()) for i, row in enumerate(found)]
    sets = [
        np.flatnonzero(row).tolist() if good else complete(power, weights, np.flatnonzero(row))
        for row, good in zip(found, sound, strict=True)
    ]
    return max(sets, key=lambda chosen: float(weights[chosen].sum()))


def samples(
    power: Adjacency, weights: NDArray[np.float64], seed: int, reads: int, sweeps: int
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Membership (0/1) at the end of each read, (reads, agents), and its energy; random initial states."""
    from rumormill.kernels.annealing import anneal_sets

    n = power.n_agents
    tails = np.repeat(np.arange(n), power.degrees)
    penalties = np.minimum(weights[tails], weights[power.indices]) + 1
    full = np.zeros((0, 0))
    if n <= FULL_AGENTS and len(tails) > FULL_SHARE * n * n:
        full = np.zeros((n, n))
        full[tails, power.indices] = penalties
    states = np.random.RandomState(seed).randint(2, size=(reads, n)).astype(np.int8)
    energies = np.empty(reads)
    betas = np.geomspace(HOT / float(weights.max()), COLD / float(weights.min()), sweeps)
    with np.errstate(over="ignore"):  # draws are sums modulo 2^64
        links = power.indptr, power.indices, penalties, full
        anneal_sets(states, energies, np.empty(n), weights, *links, betas, seed)
    return states, energies


def complete(power: Adjacency, weights: NDArray[np.float64], sample: NDArray[np.int64]) -> list[int]:
    """Remove the agents with most violated links for their weight, then complete the set greedily."""
    inside = np.zeros(power.n_agents, np.bool_)
    inside[sample] = True
    broken = np.array([int(inside[power.row(v)].sum()) for v in sample], np.float64)
    place = {int(v): i for i, v in enumerate(sample)}
    while broken.any():
        worst = int(np.argmax(broken / weights[sample]))
        v = int(sample[worst])
        inside[v] = False
        broken[worst] = 0
        for w in power.row(v)[inside[power.row(v)]]:
            broken[place[int(w)]] -= 1
    return greedy_independent(power, weights, np.flatnonzero(inside).tolist())


SEED = 2018
# A push costs a third of a millisecond or so, more on large graphs: these get fewer.
MOST_PUSHES = 400
LINKS = 5_000_000
# Which losses are kept after a push: measured in shares of the mean weight of a leader.
ACCEPTED_LOSS = 0.3
# Weights are sums: differences below this share of the total are rounding.
GRAIN = 1e-12

Ids = NDArray[np.integer[Any]]


def search_independent(power: Adjacency, weights: NDArray[np.float64]) -> list[int]:
    """A heavy maximal independent set by iterated local search.

    After Nogueira, Pinheiro and Subramanian (2018). Two exchanges are made until neither pays: an agent for
    all its neighbours in the set, and two agents for the only neighbour in the set that both have. Then an
    agent that was outside for long is inserted by force and the exchanges go on; a loss is undone with a
    probability that grows with it. The seed is fixed: the same graph gets the same set.
    """
    rng = np.random.default_rng(SEED)
    now = _Exchange(power, weights, greedy_independent(power, weights))
    now.improve(np.arange(power.n_agents))
    best, heaviest = now.members(), now.weight
    unit = ACCEPTED_LOSS * heaviest / len(best)
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
    """An independent set, and the weight that each insertion would remove."""

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
        """Exchange while it pays, from these agents on to the neighbours of removed ones."""
        while len(agents):
            agents = self._pairs(self._singles(agents))

    def insert(self, v: int) -> Ids:
        """Insert v and remove its neighbours from the set; returns the neighbours of the removed agents."""
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
        """Two agents that are not linked, for the only neighbour in the set that both have."""
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
