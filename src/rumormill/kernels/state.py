"""The arrays a trial works on. Agents that keep samples are called learners; not everybody must."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill.kernels.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]

# Kinds of estimator.
RUNNING, MEDIAN_OF_MEANS, CATONI = 0, 1, 2

# Places in State.counters.
FREE, HIGH_WATER, NEXT_MARK = 0, 1, 2


class Hearing(NamedTuple):
    """Who hears whom after how many hops; hop h is at index h - 1. Learners are numbered from 0."""

    gamma: int
    learners: Ids
    """The agent behind each learner."""
    learner_of: Ids
    """The learner of each agent, or -1."""
    dense: Ids
    """Per hop, which of `masks` it uses, or -1 for the sparse form."""
    masks: NDArray[np.float32]
    """[mask, origin, learner], 1 where the learner is exactly so many hops away."""
    ptr: Ints
    """[hop, origin]: where the hearers of an origin begin in `hearers` (empty for dense hops)."""
    hearers: Ids
    source_ptr: Ints
    """Per learner, where its sources begin in `sources`: all hops, sorted by (distance, id)."""
    sources: Ids
    source_hop: Ids


class Rules(NamedTuple):
    """What does not change during a trial."""

    n_arms: int
    horizon: int
    kind: int
    trims: bool
    shares_rows: bool
    """KMP-UCB: arm by arm, use the best informed estimate in reach."""
    u: float
    p: float
    rho: float
    exponent: float
    """The radius shrinks as n^-exponent."""
    scale: Floats
    """Per round, the radius at n = 1."""
    L: Floats
    """Per round, ln(1/δ)."""
    least_n: Floats
    """Per round, with fewer samples an arm must be pulled."""
    powers: Floats
    """n^-exponent for small n."""
    leader_of: Ids
    """Whom an agent copies; -1 for agents that decide for themselves."""
    leader_distance: Ids
    gaps: Floats


class State(NamedTuple):
    """What a trial changes. Two-dimensional arrays are [arm, learner] unless said otherwise."""

    n: Floats
    """Samples that came in."""
    total: Floats
    """Sum of those in the mean (RUNNING)."""
    mean: Floats
    power: Floats
    """n^-exponent."""
    known: Floats
    """The n for which `mean` (MEDIAN_OF_MEANS) and `power` hold."""
    groups: Floats
    """The number of groups for which `mean` holds (MEDIAN_OF_MEANS)."""
    sure_x: Floats
    """Per arm, a sample of at most this size stays to the end in every learner's mean."""
    changed: NDArray[np.bool_]
    """Per arm, whether any n changed since the last decision."""
    ring_arm: Ids
    """[slot, agent]: the arms of the last rounds; round t is in slot t mod slots."""
    ring_x: Floats
    ring_need: Floats
    """[slot, agent]: the rank from which the sample surely stays to the end; 0: whatever its rank."""
    ring_order: Ids
    """[slot, .]: agents sorted by arm, then id."""
    ring_start: Ids
    """[slot, arm]: where the agents of an arm begin in ring_order."""
    row_mean: Floats
    """[slot, agent, arm]: the rows sent (KMP-UCB)."""
    row_n: Floats
    top: Ids
    """[slot, arm, .]: the best informed agents, most samples first."""
    best_mean: Floats
    best_n: Floats
    best_from: Ids
    leaving_head: Ids
    """Per round, the first sample that leaves then, or -1; `leaving_next` chains them."""
    leaving_next: Ids
    leaving_slot: Ints
    leaving_x: Floats
    counters: Ints
    pool: Floats
    """[., .]: samples (CATONI), or their prefix sums hi and lo (MEDIAN_OF_MEANS)."""
    pool_start: Ints
    action: Ids
    best_index: Floats
    pulls: Ints
    """[agent, arm]."""
    scratch: Floats


@kernel
def fill_powers(powers: Floats, exponent: float) -> None:
    """powers[n] = n^-exponent, with the C library's pow, as math.pow has it."""
    powers[0] = np.inf
    for n in range(1, powers.shape[0]):
        powers[n] = float(n) ** -exponent
