"""Bandits that differ by agent or change over time, against their own definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.arms.varying import paid

SEED = np.random.SeedSequence(4)
NORTH = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=2.0)])
SOUTH = rm.Bandit([rm.Gaussian(loc=1.0), rm.Gaussian(loc=-1.0)])
TWO = rm.Clusters([NORTH, SOUTH], members=[[0, 2], [1]])
CHANGES = rm.Piecewise([(1, NORTH), (71, SOUTH)])
SWINGS = rm.Seasonal(NORTH, amplitude=[2.0, 0.0], period=40)
MOVES = rm.Trend(NORTH, to=[3.0, 0.0], rounds=101)
NESTED = rm.Piecewise([(1, TWO), (31, rm.Seasonal(TWO, amplitude=1.0, period=10, phase=[0.0, 0.5]))])
# What no checker would let pass, as users give it.
WRONG: Any = [3, 1]
NUMBER: Any = 5
WORDS: Any = [1.0, "x"]
ALL = [TWO, CHANGES, SWINGS, MOVES, NESTED]


def test_means_by_hand() -> None:
    assert TWO.expected(0, 1, 3)[0].tolist() == [[0.0, 2.0], [1.0, -1.0], [0.0, 2.0]]
    assert TWO.means == pytest.approx([1 / 3, 1.0])
    assert CHANGES.expected(69, 71, 1)[:, 0].tolist() == [[0.0, 2.0], [1.0, -1.0]]
    assert SWINGS.expected(9, 10, 2)[0, 0] == pytest.approx([2.0, 2.0])  # round 10, a quarter of the period
    assert MOVES.expected(50, 51, 1)[0, 0] == pytest.approx([1.5, 1.0])
    assert MOVES.expected(400, 401, 1)[0, 0] == pytest.approx([3.0, 0.0])


@pytest.mark.parametrize("source", ALL, ids=repr)
def test_rewards_have_these_means(source: rm.arms.VaryingSource) -> None:
    """Averages over 400 games: 4.5 standard errors for the largest of 600, false alarm below 1 in 200."""
    games = [source.stream(np.random.SeedSequence(seed), 3, 100) for seed in range(400)]
    average = np.mean([paid(game, 0, 100) for game in games], axis=0)
    error = np.abs(average - source.expected(0, 100, 3)).max()
    assert error < 4.5 / np.sqrt(400)


@pytest.mark.parametrize("source", ALL, ids=repr)
def test_the_blocks_asked_for_do_not_matter(source: rm.arms.VaryingSource) -> None:
    whole = source.stream(SEED, 3, 130).block(0, 130)
    pieces = source.stream(SEED, 3, 130)
    parts = [pieces.block(a, b) for a, b in ((0, 1), (1, 64), (64, 77), (77, 130))]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert whole.flags.c_contiguous


@pytest.mark.parametrize("source", ALL, ids=repr)
@pytest.mark.parametrize(
    "policy",
    [rm.DecentralizedMPUCB(gamma=1, zeta=0.3), rm.KMPUCB(gamma=1, zeta=0.3), rm.ConsensusUCB()],
    ids=lambda policy: type(policy).__name__,
)
def test_both_engines_count_the_same_regret(source: rm.arms.VaryingSource, policy: object) -> None:
    """Differential, and against the definition: sums over the actions, one by one."""
    network = rm.Network.path(3)
    results = [
        rm.simulate(
            source, network, policy, horizon=90, rng=2, engine=engine, actions=True, checkpoints=[7, 90]
        )
        for engine in ("fast", "reference")
    ]
    fast, slow = results
    np.testing.assert_array_equal(np.asarray(fast.actions), np.asarray(slow.actions))
    np.testing.assert_array_equal(fast.agent_regret, slow.agent_regret)
    np.testing.assert_array_equal(np.asarray(fast.agent_common_regret), np.asarray(slow.agent_common_regret))
    assert fast.actions is not None
    means = source.expected(0, 90, 3)
    common = int(means.sum(axis=(0, 1)).argmax())
    for number, mark in enumerate((7, 90)):
        for v in range(3):
            pulled = [means[t, v, fast.actions[0, t, v]] for t in range(mark)]
            own = means[:mark, v].max(axis=1).sum() - sum(pulled)
            assert fast.agent_regret[0, number, v] == pytest.approx(own)
            expected = means[:mark, v, common].sum() - sum(pulled)
            assert fast.agent_common_regret is not None
            assert fast.agent_common_regret[0, number, v] == pytest.approx(expected)


def test_actions_are_kept_only_if_asked_for() -> None:
    result = rm.simulate(TWO, rm.Network.path(3), rm.RobustUCB(zeta=0.3), horizon=20, rng=1)
    assert result.actions is None
    assert result.common_regret.shape == result.regret.shape
    plain = rm.simulate(NORTH, rm.Network.path(3), rm.RobustUCB(zeta=0.3), horizon=20, rng=1)
    np.testing.assert_array_equal(plain.common_regret, plain.regret)


def test_who_does_better_than_the_common_arm_has_negative_regret() -> None:
    each = rm.Clusters([NORTH, SOUTH])
    result = rm.simulate(each, rm.Network.path(2), rm.RobustUCB(zeta=0.3), horizon=400, rng=1)
    assert result.common_regret[0, -1] < 0 < result.regret[0, -1]


def test_a_replay_may_have_means_by_agent_and_round() -> None:
    table = np.zeros((3, 2, 2))
    by_agent = rm.Replay(table, means=[[0.0, 1.0], [1.0, 0.0]])
    assert by_agent.varies
    assert by_agent.means.tolist() == [0.5, 0.5]
    policy = rm.RobustUCB(zeta=1.0, moments=rm.Moments(eps=1.0, u=1.0, rho=1.0))
    result = rm.simulate(by_agent, rm.Network.path(2), policy, horizon=2, rng=0, checkpoints=[1, 2])
    assert result.agent_regret[0].tolist() == [[1.0, 0.0], [1.0, 1.0]]
    costs = rm.Replay(table, means=by_agent.expected(0, 3, 2), objective="minimise")
    result = rm.simulate(costs, rm.Network.path(2), policy, horizon=2, rng=0, checkpoints=[1, 2])
    assert result.agent_regret[0].tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_costs_swing_the_way_they_are_given() -> None:
    costs = rm.Bandit(NORTH.arms, objective="minimise")
    swings = rm.Seasonal(costs, amplitude=[5.0, 0.0], period=40)
    stream = swings.stream(SEED, 2, 40)
    assert paid(stream, 9, 10)[0, :, 0].mean() < -2.0
    assert swings.expected(9, 10, 1)[0, 0, 0] == pytest.approx(5.0)


def test_moments_hold_for_every_round_and_agent() -> None:
    moments = SWINGS.moments()
    assert moments.eps == 1.0
    assert moments.u == pytest.approx(5.0)  # E X² at a mean of ±2
    assert TWO.moments().u == pytest.approx(5.0)
    assert MOVES.moments().u == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rm.Clusters([NORTH], members=[[0], [1]]), "2 lists of members do not fit 1 bandit"),
        (lambda: rm.Clusters([NORTH, SOUTH], members=[[0], [0]]), "every agent 0, 1, ... exactly once"),
        (lambda: rm.Clusters([NORTH, SOUTH], members=WRONG), "a list of lists of agents"),
        (lambda: rm.Clusters([]), "bandits is empty"),
        (lambda: rm.Clusters([*WRONG[:1]]), "3 is no bandit"),
        (lambda: rm.Clusters(NUMBER), "a list of bandits"),
        (lambda: rm.Clusters([NORTH, rm.Bandit(NORTH.arms, objective="minimise")]), "different objectives"),
        (lambda: rm.Clusters([NORTH, rm.Bandit([*NORTH.arms, *SOUTH.arms])]), r"\[2, 4\] arms"),
        (lambda: rm.Piecewise([(5, NORTH)]), r"first rounds \[5\] are not allowed"),
        (lambda: rm.Piecewise([(1, NORTH), (1, SOUTH)]), "increasing, the first of them 1"),
        (lambda: rm.Piecewise(NUMBER), r"a list of \(first round, bandit\)"),
        (lambda: rm.Seasonal(NORTH, amplitude=[1.0], period=3), "amplitude has 1 values for 2 arms"),
        (lambda: rm.Seasonal(NORTH, amplitude=1.0, period=0), "period = 0 is not allowed"),
        (lambda: rm.Trend(NORTH, to=WORDS, rounds=5), "to = 'x' is not allowed: a finite number"),
        (lambda: rm.Trend(NORTH, to=[1.0, 2.0], rounds=1), "rounds = 1 is not allowed"),
        (lambda: TWO.stream(SEED, 4, 10), "the network has 4 agents, the clusters 3"),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        make()  # type: ignore[operator]
