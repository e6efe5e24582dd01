"""Simulated annealing of independent sets: the same sets, bit for bit, as those of dwave-samplers 1.8.

That sampler visits all agents in every sweep, accepts by Metropolis' rule and draws from xorshift128+. Here a
draw is first compared with a power of two above the acceptance probability, which decides nearly all without
an exponential, and a dense graph is kept as a full matrix, whose rows are added as vectors.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rumormill.kernels.jit import kernel

# Draws have 64 bits: a cost above 64 ln 2 / beta is never accepted.
NEVER = 44.36142
LARGEST = np.uint64(2**64 - 1)
LOG2_E = 1.4426950408889634
ROUNDING = np.uint64(32)


@kernel
def anneal_sets(
    states: NDArray[np.int8],
    energies: NDArray[np.float64],
    field: NDArray[np.float64],
    weights: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    penalties: NDArray[np.float64],
    full: NDArray[np.float64],
    betas: NDArray[np.float64],
    seed: int,
) -> None:
    """Anneal every row of states (1: in the set) in place, and store its final energy.

    penalties[k] is that of link k; `full` is the matrix of penalties, or empty for sparse graphs. field is
    workspace of one number per agent: the cost of adding it to the set.
    """
    n, dense = len(weights), len(full) > 0
    one, other = np.uint64(seed) if seed else LARGEST, np.uint64(0)
    for row in range(len(states)):
        inside = states[row]
        for v in range(n):
            field[v] = -weights[v]
        for v in range(n):
            if inside[v]:
                for k in range(indptr[v], indptr[v + 1]):
                    field[indices[k]] += penalties[k]
        for beta in betas:
            most = NEVER / beta
            for v in range(n):
                cost = -field[v] if inside[v] else field[v]
                if cost >= most:
                    continue
                if cost > 0.0:
                    mixed = one ^ (one << np.uint64(23))
                    one, other = other, mixed ^ other ^ (mixed >> np.uint64(17)) ^ (other >> np.uint64(26))
                    draw = one + other
                    # The probability is below a power of two; the exact one only within rounding of it.
                    halvings = np.uint64(min(int(cost * beta * LOG2_E), 63))
                    if draw - (draw >> ROUNDING) > LARGEST >> halvings:
                        continue
                    if not math.exp(-(cost * beta)) * np.float64(LARGEST) > np.float64(draw):
                        continue
                sign = -1.0 if inside[v] else 1.0
                if dense:
                    for w in range(n):
                        field[w] += sign * full[v, w]
                else:
                    for k in range(indptr[v], indptr[v + 1]):
                        field[indices[k]] += sign * penalties[k]
                inside[v] ^= 1
        energies[row] = 0.0
        for v in range(n):
            if inside[v]:  # half of its links' penalties: both ends count them
                energies[row] += (field[v] - weights[v]) / 2.0
