"""Randomness: every stream is named by (trial, role), so nothing depends on who runs beside whom."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

from rumormill.validate import is_whole, refused

# In quotes: numpy imports its random numbers when they are first named, and names are listed without any.
RandomSource: TypeAlias = "int | np.random.SeedSequence | np.random.Generator"


class Role(IntEnum):
    """What a stream is for. The numbers are part of the meaning of a seed: never renumber."""

    REWARDS = 0
    AGENTS = 1
    NETWORK = 2
    BANDIT = 3
    CHANNEL = 4
    ADVERSARY = 5
    EXPLORATION = 6
    CONTEXT = 7


def root_seed(rng: Any) -> np.random.SeedSequence:
    """The seed behind `rng=`. A Generator gives a fresh child each time it is used."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return rng.bit_generator.seed_seq.spawn(1)[0]  # type: ignore[attr-defined,no-any-return]
    if is_whole(rng) and rng >= 0:
        return np.random.SeedSequence(int(rng))
    raise refused("rng", rng, "a whole number >= 0, a numpy SeedSequence or a numpy Generator")


def stream_seed(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """The child of a seed named by a key; asking twice gives the same child."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def generator(rng: Any) -> np.random.Generator:
    """The stream that `rng` names; a Generator itself goes on. No default: results must be repeatable."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(root_seed(rng))


def private_generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """A generator that draws what `default_rng(seed)` does but does not carry the seed.

    An agent that could read the seed could draw the rewards, or the means, of its own trial.
    """
    words = [int(word) for word in seed.generate_state(4, np.uint64)]
    hidden = np.random.PCG64(np.random.SeedSequence(words))
    hidden.state = np.random.PCG64(seed).state
    return np.random.Generator(hidden)


def seed_word(seed: np.random.SeedSequence) -> int:
    """The seed as one number of 64 bits, for keyed uniforms."""
    return int(seed.generate_state(1, np.uint64)[0])


def fresh_seed(rng: np.random.Generator) -> int:
    """An integer seed for a library that cannot take a numpy Generator."""
    return int(rng.integers(2**31))
