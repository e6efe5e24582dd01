"""Independent sets as quadratic binary optimisation: minimise -sum w_i x_i + sum over links P_ij x_i x_j.

With P_ij = min(w_i, w_j) + 1 breaking a link always pays, yet the valleys stay shallow enough to cross:
a larger common penalty gives clearly worse sets. The best sample may still hold linked agents, so every
sample is repaired and then completed greedily.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs.adjacency import Adjacency
from rumormill.graphs.sets import greedy_independent

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
    """The heaviest independent set among the repaired samples of simulated annealing."""
    if not power.n_edges:
        return list(range(power.n_agents))
    n = power.n_agents
    reads = int(np.clip(50_000 // n, LEAST_READS, MOST_READS))
    sweeps = int(np.clip(UPDATES // (reads * n), LEAST_SWEEPS, MOST_SWEEPS))
    drawn, energies = samples(power, weights, seed, reads, sweeps)
    rows = dict.fromkeys(drawn[i].tobytes() for i in np.argsort(energies, kind="stable"))
    found = [np.frombuffer(row, np.int8) for row in list(rows)[:REPAIRED]]
    # Most need no repair: whoever is in hears nobody who is, whoever is out hears one. A product tells.
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
    """Who is in (1) at the end of each read, (reads, agents), and its energy; beginnings are drawn too."""
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
    """Repair a sample by leaving out the agents that break most for their weight, then fill it up."""
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
