"""Keyed uniforms: the values that every other program must get too."""

import math

import numpy as np
import pytest

from rumormill.counter_rng import (
    even_delay,
    geometric_delay,
    key_of,
    key_with,
    mix,
    spell_length,
    uniform,
    uniform_at,
)
from rumormill.seeds import Role, root_seed, seed_word, stream_seed


def test_the_scrambler_by_the_book() -> None:
    assert mix(1) == 0x5692161D100B05E5
    assert mix(0x123456789) == 0x5189F682B434CAF2


@pytest.mark.parametrize(
    ("seed", "purpose", "numbers", "value"),
    [
        (7, 1, (0, 1, 5), 0.5492455631298667),
        (7, 1, (1, 0, 5), 0.6993587254026304),
        (7, 2, (3, 2, 10), 0.3378898078109739),
        (123456789, 1, (3, 9, 4, 77), 0.4476786685647426),
    ],
)
def test_uniforms_by_the_book(seed: int, purpose: int, numbers: tuple[int, ...], value: float) -> None:
    assert uniform(seed, purpose, *numbers) == value


def test_the_channel_seed_of_a_trial_by_the_book() -> None:
    trial = stream_seed(root_seed(7), 0)
    assert seed_word(stream_seed(trial, Role.CHANNEL)) == 10528855372307397847


def test_arrays_of_words_get_the_same_values() -> None:
    seed = 2**64 - 3
    agents, rounds = np.arange(20, dtype=np.uint64), np.arange(50, dtype=np.uint64)
    keys = key_with(key_of(np.full(20, seed, dtype=np.uint64), 3), agents)
    values = uniform_at(key_with(keys[:, None], rounds[None, :]))
    for v in range(20):
        assert values[v].tolist() == [uniform(seed, 3, v, t) for t in range(50)]


def test_delays_and_spells_at_the_edges() -> None:
    """Of u in [0, 1): 0 gives the shortest, the largest float below 1 the longest."""
    last = math.nextafter(1.0, 0.0)
    assert [even_delay(u, 3) for u in (0.0, 0.2499, 0.25, 0.75, last)] == [0, 0, 1, 3, 3]
    # ln(1-u)/ln(1/2): u = 1/2 is one more round, u = 3/4 two.
    assert [geometric_delay(u, 0.5, 9) for u in (0.0, 0.499, 0.5, 0.75, last)] == [0, 0, 1, 2, 9]
    assert [geometric_delay(u, 1.0, 9) for u in (0.0, 0.5, last)] == [0, 0, 0]
    assert [spell_length(u, 2.0) for u in (0.0, 0.499, 0.5, 0.75)] == [1, 1, 2, 3]
    assert [spell_length(u, 1.0) for u in (0.0, last)] == [1, 1]
