"""Compiled keyed uniforms: the values of the page, links by links, and events as whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from rumormill import counter_rng as keyed
from rumormill.graphs import Network
from rumormill.kernels import counter_rng as compiled
from rumormill.kernels.counter_rng import limit_of, link_keys
from rumormill.kernels.jit import alone
from rumormill.kernels.simd.masked_add import lowest_bit, popcount

key_of_two, key_of_three = alone(compiled.key_of_two), alone(compiled.key_of_three)
uniform_at = alone(compiled.uniform_at)

# Words wrap; uncompiled, as the planted faults are tried, numpy remarks on it.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


@pytest.mark.parametrize(
    ("seed", "purpose", "numbers", "value"),
    [
        (7, 1, (0, 1, 5), 0.5492455631298667),
        (7, 1, (1, 0, 5), 0.6993587254026304),
        (7, 2, (3, 2, 10), 0.3378898078109739),
    ],
)
def test_uniforms_by_the_book(seed: int, purpose: int, numbers: tuple[int, int, int], value: float) -> None:
    begin = np.uint64(keyed.key_of(seed, purpose))
    assert uniform_at(np.uint64(key_of_three(begin, *numbers))) == value


@pytest.mark.parametrize("symmetric", [False, True])
def test_every_link_has_the_key_of_its_ends(symmetric: bool) -> None:
    network = Network.erdos_renyi(9, 0.5, rng=1)
    begin = np.uint64(keyed.key_of(11, keyed.LOSS))
    keys = np.zeros(len(network.indices), dtype=np.uint64)
    link_keys(begin, network.indptr, network.indices, symmetric, keys)
    for b in range(9):
        for i in range(network.indptr[b], network.indptr[b + 1]):
            a = int(network.indices[i])
            ends = (min(a, b), max(a, b)) if symmetric else (a, b)
            assert keys[i] == np.uint64(key_of_two(begin, *ends))
            expected = keyed.uniform(11, keyed.LOSS, *ends)
            assert keyed.uniform_at(int(keys[i])) == expected


@pytest.mark.parametrize("p", [0.0, 2.0**-53, 1e-9, 0.25, 0.3, 0.7, 1 - 2.0**-53, 1.0])
def test_an_event_is_a_comparison_of_whole_numbers(p: float) -> None:
    limit = int(limit_of(p))
    for place in {0, 1, max(limit - 1, 0), min(limit, 2**53 - 1), 2**53 - 1}:
        assert (place * 2.0**-53 < p) == (place < limit)


@pytest.mark.parametrize("word", [1, 2, 3, 1 << 63, (1 << 64) - 1, 0x5692161D100B05E5])
def test_bits_of_a_word(word: int) -> None:
    assert alone(lowest_bit)(np.uint64(word)) == f"{word:b}"[::-1].index("1")
    assert alone(popcount)(np.uint64(word)) == f"{word:b}".count("1")
