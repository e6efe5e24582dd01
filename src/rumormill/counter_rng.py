"""Counter-based random numbers: the uniforms of the fault model; the kernels compile these functions.

A uniform is a pure function of integers (a key): the same in any order of evaluation, and nothing is stored.
Plain ints, or uint64 throughout, also arrays: every constant is beyond 2^63, so that compiled code takes it
for unsigned too.
"""

from __future__ import annotations

import math
from typing import Any

LOSS, DELAY, CORRUPT, DISCARD, CHURN, THOMPSON = 1, 2, 3, 4, 5, 6
"""What a keyed uniform decides; part of the meaning of a seed: never renumber."""
WORD = 0xFFFFFFFFFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15
BACK = 0x9CD41A64264B1FE7  # 2^64 - 0x632BE59BD9B4E019
UNIT = 2.0**-53


def mix(z: Any) -> Any:
    """Scramble 64 bits; a bijection."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def key_of(seed: Any, purpose: Any) -> Any:
    """h_0: the first key of a purpose."""
    return mix((seed + ((purpose * GOLDEN) & WORD)) & WORD)


def key_with(key: Any, x: Any) -> Any:
    """h_j from h_(j-1) and the next whole number x >= 0."""
    return mix(key ^ ((x * GOLDEN - BACK) & WORD))


def uniform_at(key: Any) -> Any:
    """The uniform in [0, 1) that a key stands for."""
    return (key >> 11) * UNIT


def uniform(seed: int, purpose: int, *numbers: int) -> float:
    """U(seed; purpose; x_1, ..., x_r)."""
    key = key_of(seed, purpose)
    for x in numbers:
        key = key_with(key, x)
    return float(uniform_at(key))


def even_delay(u: float, longest: int) -> int:
    """⌊u (D + 1)⌋: each of 0..D equally likely."""
    return int(u * (longest + 1))


def geometric_delay(u: float, q: float, longest: int) -> int:
    """min(D, ⌊ln(1-u)/ln(1-q)⌋): delivered with probability q in every round, after D at the latest."""
    if q >= 1.0:
        return 0
    return int(min(math.log(1.0 - u) / math.log(1.0 - q), float(longest)))


def spell_length(u: float, mean: float) -> int:
    """1 + ⌊ln(1-u)/ln(1-1/mean)⌋: rounds of a spell, geometric with the given mean."""
    if mean <= 1.0:
        return 1
    return 1 + int(math.log(1.0 - u) / math.log(1.0 - 1.0 / mean))
