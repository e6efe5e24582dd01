"""Sixty-four hearers at a time: the compiled form against the plain one, bit by bit."""

import numba
import numpy as np
import pytest

from rumormill.kernels.lanes import LANES, MOST, add_lanes, lanes_up_to

SIZES = [1, 7, 63, 64, 65, 128, 200]


@numba.njit
def compiled_add(words, order, first, last, xs, n, total, lane):  # type: ignore[no-untyped-def]
    add_lanes(words, order, first, last, xs, n, total, lane)


@numba.njit
def compiled_up_to(values, limit, lane):  # type: ignore[no-untyped-def]
    return lanes_up_to(values, limit, lane)


@pytest.mark.parametrize("hearers", SIZES)
@pytest.mark.parametrize("samples", [0, 1, 5, MOST])
def test_samples_are_added_in_order_to_those_who_hear_them(hearers: int, samples: int) -> None:
    rng = np.random.default_rng(hearers)
    order = rng.permutation(300).astype(np.int32)
    words = rng.integers(0, 2**64, 300, dtype=np.uint64)
    words[:2] = 0, 2**64 - 1
    xs = rng.standard_cauchy(300)
    for lane in range(0, hearers, LANES):
        n, total = rng.integers(0, 9, hearers + 1).astype(float), rng.standard_cauchy(hearers + 1)
        expected, found = (n.copy(), total.copy()), (n, total)
        add_lanes(words, order, 3, 3 + samples, xs, expected[0][:-1], expected[1][:-1], lane)
        compiled_add(words, order, 3, 3 + samples, xs, found[0][:-1], found[1][:-1], lane)
        np.testing.assert_array_equal(found, expected)  # and what stands behind the last hearer is untouched


@pytest.mark.parametrize("size", SIZES)
def test_values_up_to_a_limit(size: int) -> None:
    values = np.random.default_rng(size).integers(0, 4, size).astype(float)
    for lane in range(0, size, LANES):
        for limit in (-1.0, 0.0, 2.0, 3.0, np.inf):
            found, expected = compiled_up_to(values, limit, lane), lanes_up_to(values, limit, lane)
            assert int(found) == int(expected), (lane, limit)
