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

READS = 20
# Updates over all reads: about a second of annealing, whatever the size.
UPDATES = 20_000_000
MOST_SWEEPS = 2_000
LEAST_SWEEPS = 50


def anneal(power: Adjacency, weights: NDArray[np.float64], seed: int) -> list[int]:
    """The heaviest independent set among the repaired samples of simulated annealing."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    low, high = power.edges().T
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        -weights, (low, high, np.minimum(weights[low], weights[high]) + 1), 0.0, "BINARY"
    )
    sweeps = int(np.clip(UPDATES // (READS * power.n_agents), LEAST_SWEEPS, MOST_SWEEPS))
    samples = SimulatedAnnealingSampler().sample(model, num_reads=READS, num_sweeps=sweeps, seed=seed)
    columns = np.argsort(np.array(samples.variables))
    rows = np.unique(samples.record.sample[:, columns], axis=0)
    found = [complete(power, weights, np.flatnonzero(row)) for row in rows]
    return max(found, key=lambda chosen: float(weights[chosen].sum()))


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
