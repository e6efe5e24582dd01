"""Sixty-four hearers at a time: the compiled form against the plain one, bit by bit."""

import numba
import numpy as np
import pytest

from rumormill.kernels.simd.masked_add import LANES, MOST, add_lanes, lanes_up_to
from rumormill.kernels.simd.own_samples import STRIP, add_strip

SIZES = [1, 7, 63, 64, 65, 72, 73, 96, 97, 128, 200]


@numba.njit
def compiled_add(words, order, first, last, xs, n, total):  # type: ignore[no-untyped-def]
    add_lanes(words, order, first, last, xs, n, total)


@numba.njit
def compiled_strip(arms, xs, needs, n, total, changed, lane):  # type: ignore[no-untyped-def]
    return add_strip(arms, xs, needs, n, total, changed, lane)


@numba.njit
def compiled_up_to(values, limit, lane):  # type: ignore[no-untyped-def]
    return lanes_up_to(values, limit, lane)


@pytest.mark.parametrize("hearers", SIZES)
@pytest.mark.parametrize("samples", [0, 1, 5, MOST])
def test_samples_are_added_in_order_to_those_who_hear_them(hearers: int, samples: int) -> None:
    rng = np.random.default_rng(hearers)
    order = rng.permutation(300).astype(np.int32)
    words = rng.integers(0, 2**64, (-(-hearers // LANES), 300), dtype=np.uint64)
    words[:, :2] = 0, 2**64 - 1
    xs = rng.standard_cauchy(300)
    n, total = rng.integers(0, 9, hearers + 1).astype(float), rng.standard_cauchy(hearers + 1)
    expected, found = (n.copy(), total.copy()), (n, total)
    add_lanes(words, order, 3, 3 + samples, xs, expected[0][:-1], expected[1][:-1])
    compiled_add(words, order, 3, 3 + samples, xs, found[0][:-1], found[1][:-1])
    np.testing.assert_array_equal(found, expected)  # and what stands behind the last hearer is untouched


@pytest.mark.parametrize("learners", [1, 7, 8, 9, 40])
def test_own_samples_are_counted_and_added_where_they_stay(learners: int) -> None:
    rng = np.random.default_rng(learners)
    for arms_played in (1, 3, 10):
        arms = rng.integers(0, arms_played, learners).astype(np.int32)
        xs, needs = rng.standard_cauchy(learners), rng.choice([0.0, 3.0, 9.0], learners)
        n, total = rng.integers(0, 9, (10, learners)).astype(float), rng.standard_cauchy((10, learners))
        sides = [(n.copy(), total.copy(), np.zeros(10, dtype=np.bool_)) for _ in range(2)]
        for lane in range(0, learners, STRIP):
            words = [
                int(rule(arms, xs, needs, *side, lane))
                for rule, side in zip((add_strip, compiled_strip), sides, strict=True)
            ]
            assert words[0] == words[1]
        for plain, compiled in zip(*sides, strict=True):
            np.testing.assert_array_equal(plain, compiled)


@pytest.mark.parametrize("size", SIZES)
def test_values_up_to_a_limit(size: int) -> None:
    values = np.random.default_rng(size).integers(0, 4, size).astype(float)
    for lane in range(0, size, LANES):
        for limit in (-1.0, 0.0, 2.0, 3.0, np.inf):
            found, expected = compiled_up_to(values, limit, lane), lanes_up_to(values, limit, lane)
            assert int(found) == int(expected), (lane, limit)
