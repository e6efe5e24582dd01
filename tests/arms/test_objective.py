"""Costs: whoever gives them never negates, and everything comes back in the unit they came in."""

from __future__ import annotations

import numpy as np
import pytest

import rumormill as rm

RING = rm.Network.ring(4)
POLICIES = [
    rm.DecentralizedMPUCB(gamma=1, zeta=0.3),
    rm.CentralizedMPUCB(gamma=1, zeta=0.3, estimator=rm.MedianOfMeans()),
    rm.KMPUCB(gamma=2, zeta=0.3, estimator=rm.EmpiricalMean()),
    rm.ConsensusUCB(),
    rm.RobustUCB(zeta=0.3, estimator=rm.Catoni()),
]


def costs(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).exponential([1.0, 2.0, 4.0], size=(60, 4, 3))


def play(source: object, policy: object, engine: str) -> rm.Result:
    return rm.simulate(source, RING, policy, horizon=60, rng=3, engine=engine, actions=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_minimising_costs_is_maximising_their_negative(policy: object, engine: str) -> None:
    """Golden by definition: the same actions as with the table negated by hand, the same regret."""
    table = costs()
    given = play(rm.Replay(table, objective="minimise"), policy, engine)
    by_hand = play(rm.Replay(-table), policy, engine)
    assert given.actions is not None
    assert by_hand.actions is not None
    np.testing.assert_array_equal(given.actions, by_hand.actions)
    np.testing.assert_allclose(given.regret, by_hand.regret)


def test_a_replay_of_costs_reports_them_as_given() -> None:
    replay = rm.Replay(costs(), means=[1.0, 2.0, 4.0], objective="minimise")
    assert replay.means.tolist() == [1.0, 2.0, 4.0]
    assert replay.best_mean == 1.0
    assert replay.gaps.tolist() == [0.0, 1.0, 3.0]
    assert replay.moments() == rm.Replay(costs(), means=[1.0, 2.0, 4.0]).moments()
    assert "minimise" in repr(replay)


def test_a_bandit_of_costs() -> None:
    arms = [rm.Gaussian(loc=loc) for loc in (1.0, 2.0, 4.0)]
    bandit = rm.Bandit(arms, objective="minimise")
    assert (bandit.best_mean, bandit.gaps.tolist()) == (1.0, [0.0, 1.0, 3.0])
    stream = bandit.stream(np.random.SeedSequence(1), 2, 10)
    other = rm.Bandit(arms).stream(np.random.SeedSequence(1), 2, 10)
    np.testing.assert_array_equal(stream.block(0, 10), other.block(0, 10))
    assert stream.loc.tolist() == [-1.0, -2.0, -4.0]
    result = rm.simulate(bandit, RING, rm.KMPUCB(gamma=1, zeta=0.5), horizon=200, rng=1, actions=True)
    assert result.actions is not None
    assert (result.actions[0, 100:] == 0).mean() > 0.9


def test_both_engines_agree_on_costs_from_laws() -> None:
    skewed = rm.Bandit([rm.LogNormal(mu=mu, sigma=1.0) for mu in (0.0, 0.5)], objective="minimise")
    for policy in POLICIES:
        fast, slow = play(skewed, policy, "fast"), play(skewed, policy, "reference")
        np.testing.assert_array_equal(np.asarray(fast.actions), np.asarray(slow.actions))


def test_the_american_spelling_is_understood_and_nothing_else() -> None:
    assert rm.Replay(costs(), objective="minimize").objective == "minimise"  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="objective = 'least' is not allowed: 'maximise' or 'minimise'"):
        rm.Replay(costs(), objective="least")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("law", "other"),
    [
        (rm.Gaussian(loc=1.0), rm.Gaussian(loc=-1.0)),
        (rm.StudentT(df=2.5, loc=1.0), rm.StudentT(df=2.5, loc=-1.0)),
        (rm.AlphaStable(alpha=1.5, beta=0.5, loc=1.0), rm.AlphaStable(alpha=1.5, beta=-0.5, loc=-1.0)),
        (rm.TwoPoint(probability=0.75, high=2.0), rm.TwoPoint(probability=0.25, low=-2.0, high=0.0)),
        (rm.Empirical([0.0, 1.0, 4.0]), rm.Empirical([0.0, -1.0, -4.0])),
    ],
    ids=repr,
)
def test_the_lower_bound_of_costs_is_that_of_the_mirrored_rewards(law: rm.Arm, other: rm.Arm) -> None:
    costs = rm.Bandit([law, rm.Gaussian(loc=law.mean - 0.5)], objective="minimise")
    rewards = rm.Bandit([other, rm.Gaussian(loc=0.5 - law.mean)])
    found, wanted = (rm.theory.lower_bound(bandit).coefficient for bandit in (costs, rewards))
    assert found == pytest.approx(wanted, rel=1e-6)
    assert found > 0


def test_costs_that_no_law_of_the_family_has_give_no_slope() -> None:
    for law in (rm.Pareto(tail=2.0), rm.LogNormal(), rm.Bernoulli(probability=0.5)):
        bandit = rm.Bandit([law, rm.Gaussian(loc=-1.0)], objective="minimise")
        assert rm.theory.lower_bound(bandit).coefficient == 0
