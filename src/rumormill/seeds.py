"""Randomness: every stream is named by (trial, role), so nothing depends on who runs beside whom."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from rumormill.errors import InputError

RandomSource = int | np.random.SeedSequence | np.random.Generator


class Role(IntEnum):
    """What a stream is for. The numbers are part of the meaning of a seed: never renumber."""

    REWARDS = 0
    AGENTS = 1
    NETWORK = 2
    BANDIT = 3


def root_seed(rng: RandomSource) -> np.random.SeedSequence:
    """The seed behind `rng=`. A Generator gives a fresh child each time it is used."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return rng.bit_generator.seed_seq.spawn(1)[0]  # type: ignore[attr-defined,no-any-return]
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.SeedSequence(int(rng))
    raise InputError(f"rng = {rng!r} is not allowed: a whole number >= 0, a SeedSequence or a Generator")


def stream_seed(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """The child of a seed named by a key; asking twice gives the same child."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))
