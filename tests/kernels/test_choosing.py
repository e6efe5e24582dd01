"""The arm of the largest index: estimates decide only where the indices themselves would decide the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rumormill import formulas
from rumormill.kernels.decide import TILE, choose_arms, choose_by_table
from rumormill.kernels.jit import alone
from rumormill.kernels.simd.argmax_index import ABOVE, STRIP, argmax_by_bounds, plain_argmax_by_bounds
from rumormill.kernels.state import IndexBounds

Floats = NDArray[np.float64]
EXPONENTS = [0.05, 1 / 3, 0.5, 1.0]


compiled_choose, compiled_choose_by_table = alone(choose_arms), alone(choose_by_table)
FORMS: tuple[Callable[..., Any], ...] = alone(plain_argmax_by_bounds), alone(argmax_by_bounds)


def table(size: int, exponent: float) -> Floats:
    return np.array([np.inf, *(formulas.shrinkage(float(n), exponent) for n in range(1, size))])


def empty_bounds(arms: int, learners: int) -> IndexBounds:
    return IndexBounds(np.zeros((arms, learners)), np.zeros((arms, learners)), np.zeros(learners))


def by_indices(scale: float, least: float, exponent: float, mean: Floats, n: Floats) -> list[int]:
    """The rule itself: the largest index, the lowest arm on ties."""
    found = []
    for means, counts in zip(mean.T.tolist(), n.T.tolist(), strict=True):
        indices = [
            formulas.upper_index(m, scale, formulas.shrinkage(c, exponent)) if c >= least else np.inf
            for m, c in zip(means, counts, strict=True)
        ]
        found.append(indices.index(max(indices)))
    return found


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_estimates_of_powers_are_too_small_by_no_more_than_said(exponent: float) -> None:
    second, third, too_small = formulas.shrinkage_series(exponent)
    rounding = 1e-14  # of the power itself; the estimates keep a hundred times as much in hand
    for h in np.linspace(0.0, formulas.NEAR, 2001).tolist():
        estimate, power = formulas.shrinkage_near(h, exponent, second, third), (1.0 + h) ** -exponent
        assert estimate + rounding < power < estimate + too_small - rounding


@pytest.mark.parametrize("learners", [1, 7, 8, 9, 16, 30])
@pytest.mark.parametrize("arms", [1, 2, 5])
def test_eight_learners_at_a_time_as_one_by_one(learners: int, arms: int) -> None:
    rng = np.random.default_rng(learners + 100 * arms)
    exponent, powers = 0.4, table(64, 0.4)
    factors = formulas.shrinkage_series(exponent)
    mean = rng.integers(0, 3, (arms, learners)) / 2.0  # ties
    mean.flat[rng.integers(0, mean.size, 2)] = np.inf, -np.inf
    sides: list[list[Any]] = [
        [np.zeros((arms, learners)), np.zeros((arms, learners)), np.full(learners, -1, dtype=np.int32)]
        for _ in range(2)
    ]
    n = np.ones((arms, learners))
    for _ in range(40):  # beyond the table, too
        for lane in range(0, learners, STRIP):
            words = [
                int(rule(1.5, exponent, *factors, mean, n, powers, *side, lane))
                for rule, side in zip(FORMS, sides, strict=True)
            ]
            assert words[0] == words[1]
        for plain, compiled in zip(*sides, strict=True):
            np.testing.assert_array_equal(plain, compiled)
        n += rng.integers(0, 4, n.shape)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("least", [1.0, 20.0])
def test_the_choice_is_that_of_the_indices(exponent: float, least: float) -> None:
    """Counts that grow slowly and in leaps, also beyond the table; means that make nearly equal indices."""
    rng = np.random.default_rng(int(100 * exponent))
    arms, learners, powers = 4, 21, table(256, exponent)
    bounds, action = empty_bounds(arms, learners), np.zeros(learners, dtype=np.int32)
    n = rng.integers(1, 4, (arms, learners)).astype(float)
    for t in range(150):
        scale = 1.0 + np.log(t + 1.0)
        radius = scale * n**-exponent
        near = 10.0 ** -rng.integers(1, 17, n.shape) * rng.choice([-1.0, 0.0, 1.0], n.shape)
        mean = 3.0 + radius[0] - radius + near * radius  # all indices about the same
        compiled_choose(scale, least, mean, n, powers, exponent, bounds, action)
        assert action.tolist() == by_indices(scale, least, exponent, mean, n)
        leap = rng.random(n.shape) < 0.1
        n += rng.integers(0, 3, n.shape) + np.where(leap, np.floor(n * rng.random(n.shape)), 0.0)
    assert n.max() > len(powers)  # or the power itself was never asked for


@pytest.mark.parametrize("learners", [1, TILE - 1, TILE, TILE + 3])
def test_the_choice_from_sums_and_a_whole_table_is_that_of_the_indices(learners: int) -> None:
    rng = np.random.default_rng(learners)
    n = rng.integers(1, 9, (6, learners)).astype(float)
    total = rng.integers(-2, 3, n.shape).astype(float)  # ties
    first, action = np.full(learners, 9.0), np.full(learners, 5, dtype=np.int32)
    compiled_choose_by_table(0.5, total, n, table(9, 0.5), first, action)
    assert action.tolist() == by_indices(0.5, 1.0, 0.5, total / n, n)


def test_equal_indices_are_the_lowest_arm() -> None:
    mean, n = np.full((3, 9), 0.5), np.full((3, 9), 5.0)
    mean[0, ::2] = 0.4
    bounds, action = empty_bounds(3, 9), np.full(9, 2, dtype=np.int32)
    compiled_choose(1.0, 1.0, mean, n, table(8, 0.5), 0.5, bounds, action)
    assert action.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1]


def test_a_count_is_never_below_its_anchor() -> None:
    counts = np.arange(1.0, 2e6)
    assert (counts * (ABOVE / counts) - 1.0 >= 0.0).all()
