"""Loops in LLVM IR against their plain twins, bit by bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rumormill.kernels import kmp, simd
from rumormill.kernels.jit import alone
from rumormill.kernels.simd import masked_add, own_samples, strip_sums
from rumormill.kernels.simd.masked_add import LANES, MOST
from rumormill.kernels.simd.own_samples import STRIP

SIZES = [1, 7, 63, 64, 65, 72, 73, 96, 97, 128, 200]


def forms(module: Any, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loop that kernels use, and its plain twin."""
    return alone(getattr(module, name)), alone(getattr(module, f"plain_{name}"))


compiled_add, plain_add = forms(masked_add, "add_lanes")
compiled_strip, plain_strip = forms(own_samples, "add_strip")
up_to, keep_up_to = alone(kmp.lanes_up_to), alone(kmp.keep_up_to)


def test_the_mode_chooses_the_form() -> None:
    assert masked_add.add_lanes is (masked_add.ir_add_lanes if simd.ENABLED else masked_add.plain_add_lanes)


@pytest.mark.parametrize("name", ["lowest_bit", "popcount"])
def test_bits_of_a_word(name: str) -> None:
    compiled, plain = forms(masked_add, name)
    random = np.random.default_rng(1).integers(1, 2**64, 500, dtype=np.uint64).tolist()
    for word in [1, 2**63, 2**64 - 1, *(1 << k for k in range(64)), *random]:
        lowest = (word & -word).bit_length() - 1
        expected = lowest if name == "lowest_bit" else word.bit_count()
        assert [int(form(np.uint64(word))) for form in (compiled, plain)] == [expected] * 2


@pytest.mark.parametrize("receivers", SIZES)
@pytest.mark.parametrize("samples", [0, 1, 5, MOST])
def test_samples_are_added_in_order_to_their_receivers(receivers: int, samples: int) -> None:
    rng = np.random.default_rng(receivers)
    order = rng.permutation(300).astype(np.int32)
    words = rng.integers(0, 2**64, (-(-receivers // LANES), 300), dtype=np.uint64)
    words[:, :2] = 0, 2**64 - 1
    xs = rng.standard_cauchy(300)
    n, total = rng.integers(0, 9, receivers + 1).astype(float), rng.standard_cauchy(receivers + 1)
    expected, found = (n.copy(), total.copy()), (n, total)
    plain_add(words, order, 3, 3 + samples, xs, expected[0][:-1], expected[1][:-1])
    compiled_add(words, order, 3, 3 + samples, xs, found[0][:-1], found[1][:-1])
    np.testing.assert_array_equal(found, expected)  # and what stands behind the last receiver is untouched


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
                for rule, side in zip((plain_strip, compiled_strip), sides, strict=True)
            ]
            assert words[0] == words[1]
        for plain, compiled in zip(*sides, strict=True):
            np.testing.assert_array_equal(plain, compiled)


@pytest.mark.parametrize("size", SIZES)
def test_values_up_to_a_limit(size: int) -> None:
    values = np.random.default_rng(size).integers(0, 4, size).astype(float)
    for lane in range(0, size, LANES):
        for limit in (-1.0, 0.0, 2.0, 3.0, np.inf):
            expected = sum(int(x <= limit) << b for b, x in enumerate(values[lane : lane + LANES]))
            assert int(up_to(values, limit, lane)) == expected, (lane, limit)
            every = (1 << len(values[lane : lane + LANES])) - 1
            for word in (0, every, every & 0x5A5A_3C3C_F00F_8001):  # of those that are left
                kept = keep_up_to(values, limit, lane, np.uint64(word))
                assert int(kept) == expected & word, (lane, limit, word)


@pytest.mark.parametrize("receivers", [1, 8, 9, 50, 64, 70])
@pytest.mark.parametrize("name", ["clipped", "huber"])
def test_a_strip_takes_samples_until_one_has_to_wait(name: str, receivers: int) -> None:
    rng = np.random.default_rng(receivers)
    given: dict[str, tuple[int, Any]] = {
        "clipped": (strip_sums.CLIPPED_STRIP, strip_sums.ClippedSums),
        "huber": (strip_sums.HUBER_STRIP, strip_sums.HuberSteps),
    }
    strip, sums = given[name]
    add = forms(strip_sums, f"add_{name}")
    last = -(-receivers // LANES) - 1
    words = rng.integers(0, 2**64, (last + 1, 40), dtype=np.uint64)
    words[last] &= np.uint64((1 << (receivers - LANES * last)) - 1)
    arriving = strip_sums.Arriving(words, rng.permutation(40).astype(np.int32), rng.standard_cauchy(40))
    rows = [rng.random(receivers + 1) for _ in sums._fields]
    rows[-1] = rng.choice([-1.0, 2.0, 9.0], receivers + 1)  # some wait always, some at large samples
    sides = [[row.copy() for row in rows] for _ in add]
    for lane in range(0, receivers, strip):
        at, stops = 3, []
        while at < 38:
            found = [
                int(form(arriving, at, 38, sums(*(row[:-1] for row in side)), lane))
                for form, side in zip(add, sides, strict=True)
            ]
            assert found[0] == found[1]
            stops.append(found[0])
            at = (found[0] >> strip_sums.MASK_BITS) + 1
        assert len(stops) > 1
    np.testing.assert_array_equal(sides[0], sides[1])  # and what stands behind the last receiver is untouched
