"""Counter-based random numbers, compiled: the formulas on unsigned words, and the keys of all links.

An event of probability p happens iff U < p; as U is a multiple of 2^-53, that is a comparison of integers
(`limit_of`), which LLVM vectorises in a loop over links.

Rewards from draws; and the slowest part of stable draws, with the same bits as on whole arrays.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rumormill import counter_rng as keyed
from rumormill import formulas
from rumormill.kernels.jit import kernel, linked, part, step
from rumormill.kernels.state import Floats, Ids, Ints, RewardLaw

Keys = NDArray[np.uint64]

mix = part(keyed.mix)
key_with = linked(keyed.key_with, mix=mix)
uniform_at = part(keyed.uniform_at)
even_delay = part(keyed.even_delay)
geometric_delay = part(keyed.geometric_delay)


def limit_of(p: float) -> np.uint64:
    """U < p iff the key's upper 53 bits are below this."""
    return np.uint64(math.ceil(p * 2.0**53))


@step
def happens(key: np.uint64, limit: np.uint64) -> bool:
    """Whether the event of a key happens."""
    return (key >> np.uint64(11)) < limit  # type: ignore[return-value]


@part
def key_of_three(key: np.uint64, a: int, b: int, c: int) -> np.uint64:
    """The key of an event named by three integers."""
    return key_with(key_with(key_with(key, np.uint64(a)), np.uint64(b)), np.uint64(c))


@part
def key_of_two(key: np.uint64, a: int, b: int) -> np.uint64:
    """The key of an event named by two integers."""
    return key_with(key_with(key, np.uint64(a)), np.uint64(b))


@kernel
def link_keys(key: np.uint64, indptr: Ints, indices: Ids, symmetric: bool, keys: Keys) -> None:
    """keys[i] for the i-th link into each agent; both directions of a symmetric one have the same key."""
    for b in range(indptr.shape[0] - 1):
        for i in range(indptr[b], indptr[b + 1]):
            a = indices[i]
            if symmetric:
                keys[i] = key_of_two(key, min(a, b), max(a, b))
            else:
                keys[i] = key_of_two(key, a, b)


quarter_sine = step(formulas.quarter_sine)
centred = step(formulas.centred)
stable_parts = linked(formulas.stable_parts, centred=centred, quarter_sine=quarter_sine)


@kernel
def shape_stable(u: Floats, wait: Floats, alpha: float) -> None:
    """Replace u and wait by their `formulas.stable_parts`."""
    for i in range(u.shape[0]):
        u[i], wait[i] = stable_parts(u[i], wait[i], alpha)


@part
def draw_rewards(draws: Floats, law: RewardLaw, arms: Ids, xs: Floats, pulls: Ints) -> None:
    """The reward of every agent, and its pull counted."""
    for v in range(draws.shape[0]):
        arm = arms[v]
        xs[v] = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
        pulls[v, arm] += 1


@part
def count_tries(arms: Ids, first: int, k: int) -> int:
    """How many arms the agent whose sources begin at `first` tries in a round."""
    count = 1
    while count < k and arms[first + count] != arms[first]:
        count += 1
    return count


@part
def draw_rewards_of_tries(draws: Floats, law: RewardLaw, arms: Ids, xs: Floats, pulls: Ints) -> None:
    """The same where every agent tries several arms."""
    k = arms.shape[0] // draws.shape[0]
    for v in range(draws.shape[0]):
        for i in range(v * k, v * k + count_tries(arms, v * k, k)):
            xs[i] = law.loc[arms[i]] + law.scale[arms[i]] * draws[v, 0 if law.shared else arms[i]]
            pulls[v, arms[i]] += 1
