"""Recorded rewards."""

import math
from typing import Any

import numpy as np
import pytest

from rumormill.arms import Moments, Replay
from rumormill.errors import InputError

SEED = np.random.SeedSequence(0)
TABLE = np.arange(24.0).reshape(4, 3, 2)


def test_shape_means_and_gaps() -> None:
    replay = Replay(TABLE)
    assert (replay.rounds, replay.agents, replay.n_arms) == (4, 3, 2)
    assert replay.means.tolist() == [11.0, 12.0]
    assert replay.best_mean == 12.0
    assert replay.gaps.tolist() == [1.0, 0.0]
    assert replay.tail_index == math.inf
    assert replay.default_eps() == 1.0
    assert repr(replay) == "Replay(4 rounds, 3 agents, 2 arms)"


def test_given_means_count() -> None:
    replay = Replay(TABLE, means=[3, 1])
    assert replay.means.tolist() == [3.0, 1.0]
    assert replay.gaps.tolist() == [0.0, 2.0]


def test_equal_means_are_allowed() -> None:
    assert Replay(TABLE, means=[1.0, 1.0]).gaps.tolist() == [0.0, 0.0]


def test_moments_by_hand() -> None:
    """Arm 0 pays 1, 3 (mean 2), arm 1 pays -4, 4 (mean 0); about given means 0 and 4 they differ."""
    table = [[[1.0, -4.0]], [[3.0, 4.0]]]
    assert Replay(table).moments() == Moments(eps=1.0, u=16.0, rho=16.0)
    assert Replay(table, means=[0.0, 4.0]).moments(1.0) == Moments(eps=1.0, u=16.0, rho=32.0)
    assert Replay(table).moments(0.5).u == pytest.approx(8.0)


@pytest.mark.parametrize("eps", [0.0, 1.5, math.nan])
def test_eps_outside_its_range(eps: Any) -> None:
    with pytest.raises(InputError, match=r"a number from 0.001 to 1"):
        Replay(TABLE).moments(eps)


def test_the_stream_is_the_table() -> None:
    stream = Replay(TABLE).stream(SEED, agents=3, horizon=3)
    assert not stream.shared
    assert stream.loc.tolist() == [0.0, 0.0]
    assert stream.scale.tolist() == [1.0, 1.0]
    block = stream.block(1, 3)
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, TABLE[1:3])


def test_the_table_is_copied() -> None:
    table = TABLE.copy()
    replay = Replay(table)
    table[:] = -1.0
    np.testing.assert_array_equal(replay.stream(SEED, 3, 4).block(0, 4), TABLE)


def test_fortran_order_and_integers_are_read() -> None:
    table = np.asfortranarray(TABLE.astype(int))
    block = Replay(table).stream(SEED, 3, 4).block(0, 4)
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, TABLE)


@pytest.mark.parametrize("shape", [(4, 3), (4,), (), (4, 3, 2, 1), (0, 3, 2), (4, 0, 2)])
def test_tables_of_the_wrong_shape(shape: Any) -> None:
    with pytest.raises(InputError, match=r"table of shape .* \[round, agent, arm\]"):
        Replay(np.zeros(shape))


@pytest.mark.parametrize("arms", [0, 1])
def test_too_few_arms(arms: Any) -> None:
    with pytest.raises(InputError, match="give"):
        Replay(np.zeros((4, 3, arms)))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_first_bad_reward_is_named(bad: Any) -> None:
    table = TABLE.copy()
    table[2, 1, 0] = table[3, 0, 0] = bad
    with pytest.raises(InputError, match=r"table\[2, 1, 0\] = .* is not finite"):
        Replay(table)


def test_tables_that_are_not_numbers() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        Replay([[["a", "b"]]])
    with pytest.raises(InputError, match="cannot be read"):
        Replay([[[1.0, 2.0], [1.0]]])


def test_wrong_means() -> None:
    with pytest.raises(InputError, match=r"means of shape \(3,\) do not fit a table of 2 arms"):
        Replay(TABLE, means=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"means\[1\] = nan is not finite"):
        Replay(TABLE, means=[1.0, math.nan])


def test_streams_that_do_not_fit() -> None:
    replay = Replay(TABLE)
    with pytest.raises(InputError, match="network has 5 agents, the table 3"):
        replay.stream(SEED, agents=5, horizon=4)
    with pytest.raises(InputError, match="horizon = 5 is not allowed: give 1 to 4"):
        replay.stream(SEED, agents=3, horizon=5)
    with pytest.raises(InputError, match="horizon = 0"):
        replay.stream(SEED, agents=3, horizon=0)
    with pytest.raises(InputError, match="stop <= 2"):
        replay.stream(SEED, agents=3, horizon=2).block(0, 3)
