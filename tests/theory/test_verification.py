"""Measured regret stays below every corrected bound, on a grid of small games; a shrunk bound is caught.

A game passes if its mean regret plus five standard errors is at most the bound. The horizon of each game is
the first of 64, 128, ... at which the bound is at most 85 % of the regret of always pulling the worst arm: no
game of the grid is vacuous. Regret lies between 0 and that ceiling, so Hoeffding's inequality says, without
any normal law, how likely a game with the measured mean would fail by bad luck: all of the grid together
below 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import rumormill as rm
from rumormill.theory import Verification, individual_bound, regret_bound, verify

TRIALS = 80
GRID_FALSE_ALARM = 1e-6

# Large gaps beside the moments: otherwise a bound with honest constants says nothing in reasonable time.
BANDITS = {
    "gaussian": rm.Bandit([rm.Gaussian(loc=m, scale=0.1) for m in (-0.5, 0.5)]),
    "two-point": rm.Bandit([rm.TwoPoint(low=-0.6, high=0.6, probability=p) for p in (0.1, 0.9, 0.2)]),
    "stable": rm.Bandit([rm.AlphaStable(alpha=1.9, loc=m, scale=0.05) for m in (-0.5, 0.5)]),
    "student": rm.Bandit([rm.StudentT(df=3.0, loc=m, scale=0.05) for m in (0.5, -0.5, -0.4)]),
    "pareto": rm.Bandit([rm.Pareto.with_mean(m, tail=2.5, scale=0.05) for m in (-0.5, 0.5)]),
}
NETWORKS = {"path": rm.Network.path(4), "star": rm.Network.star(5), "ring": rm.Network.ring(6)}


def policies(**shared: Any) -> dict[str, rm.Policy]:
    return {
        "decentralized": rm.DecentralizedMPUCB(gamma=1, **shared),
        "decentralized, no filter": rm.DecentralizedMPUCB(gamma=2, clique_filter=False, **shared),
        "centralized": rm.CentralizedMPUCB(gamma=1, **shared),
        "centralized, dominating": rm.CentralizedMPUCB(gamma=2, leaders="dominating", **shared),
        "kmp": rm.KMPUCB(gamma=2, **shared),
        "robust": rm.RobustUCB(**shared),
    }


TRIMMED = policies(c="theory", confidence="anytime")
QUICK_LAWS = ["gaussian", "two-point", "stable"]
GRID = list(product(QUICK_LAWS, NETWORKS, TRIMMED))
SLOW_GRID = list(product(["student", "pareto"], NETWORKS, TRIMMED))


def first_telling_horizon(bandit: rm.Bandit, network: rm.Network, policy: rm.Policy) -> int:
    plan = policy.plan(network)
    for power in range(6, 15):
        horizon = int(2**power)
        bound = regret_bound(bandit, network, policy, horizon, plan=plan)
        if bound.value <= 0.85 * bound.ceiling:
            return horizon
    raise AssertionError("no horizon up to 16384 makes this bound say anything")


def check(
    bandit: rm.Bandit, network: rm.Network, policy: rm.Policy, games: int, trials: int = TRIALS
) -> Verification:
    horizon = first_telling_horizon(bandit, network, policy)
    found = verify(bandit, network, policy, horizon, trials=trials, rng=2024)
    assert not found.bound.vacuous
    assert found.passed, (found.mean, found.error, found.bound.describe())
    assert found.false_alarm <= GRID_FALSE_ALARM / games
    return found


@pytest.mark.parametrize(("law", "network", "name"), GRID)
def test_grid(law: str, network: str, name: str) -> None:
    check(BANDITS[law], NETWORKS[network], TRIMMED[name], len(GRID) + len(SLOW_GRID))


@pytest.mark.slow
@pytest.mark.parametrize(("law", "network", "name"), SLOW_GRID)
def test_grid_of_more_laws(law: str, network: str, name: str) -> None:
    check(BANDITS[law], NETWORKS[network], TRIMMED[name], len(GRID) + len(SLOW_GRID))


NOISY = rm.Bandit([rm.Gaussian(loc=m, scale=0.25) for m in (-0.5, 0.5)])
NOISIER = rm.Bandit([rm.Gaussian(loc=m, scale=0.9) for m in (-0.5, 0.5)])
OTHERS: dict[str, tuple[rm.Bandit, rm.Network, rm.Policy]] = {
    "median of means, decentralized": (
        NOISY,
        rm.Network.path(4),
        rm.DecentralizedMPUCB(gamma=1, estimator=rm.MedianOfMeans(), c="theory", confidence="anytime"),
    ),
    "median of means, kmp": (
        NOISY,
        rm.Network.star(5),
        rm.KMPUCB(gamma=1, estimator=rm.MedianOfMeans(), c="theory", confidence="anytime"),
    ),
    "catoni, centralized": (
        NOISIER,
        rm.Network.complete(3),
        rm.CentralizedMPUCB(gamma=1, estimator=rm.Catoni(), c="theory", confidence="anytime"),
    ),
    "the paper's schedule": (
        BANDITS["gaussian"],
        rm.Network.path(4),
        rm.DecentralizedMPUCB(gamma=1, c="theory", confidence="paper"),
    ),
    "consensus": (BANDITS["gaussian"], rm.Network.complete(4), rm.ConsensusUCB()),
    "consensus on a ring": (BANDITS["two-point"], rm.Network.ring(4), rm.ConsensusUCB()),
    "consensus, heavy tails": (BANDITS["stable"], rm.Network.complete(4), rm.ConsensusUCB()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_estimators_schedules_and_consensus(name: str) -> None:
    check(*OTHERS[name], games=len(OTHERS))


@pytest.mark.parametrize("name", TRIMMED)
def test_a_shrunk_bound_fails(name: str) -> None:
    """In the first K rounds everyone pulls every arm once: regret is at least M times the sum of the gaps.

    A bound shrunk below that is wrong whatever the seed, and the check must say so.
    """
    bandit, network = BANDITS["gaussian"], NETWORKS["ring"]
    found = check(bandit, network, TRIMMED[name], len(TRIMMED))
    certain = network.n_agents * float(bandit.gaps.sum())
    factor = 0.99 * certain / found.bound.value
    assert factor < 1
    shrunk = replace(found, bound=replace(found.bound, value=factor * found.bound.value))
    assert not shrunk.passed
    # One standard error off the measurement is already caught.
    hair = replace(found, bound=replace(found.bound, value=found.mean + 4.9 * found.error))
    assert hair.error > 0
    assert not hair.passed


def test_shrunk_by_a_twentieth_it_fails_where_exploration_is_forced() -> None:
    """With little noise the median of means costs its 16 L + 2 samples and no more: the bound is nearly met.

    No estimate comes near its radius (a hundredth of the gap is the noise), so that every trial is the same.
    """
    policy = rm.RobustUCB(estimator=rm.MedianOfMeans(), c="theory", confidence="anytime")
    bandit = rm.Bandit([rm.Gaussian(loc=m, scale=0.01) for m in (-0.5, 0.5)])
    found = verify(bandit, NETWORKS["path"], policy, 1000, trials=2, rng=1)
    assert found.passed
    assert not found.bound.vacuous
    assert not replace(found, bound=replace(found.bound, value=0.95 * found.bound.value)).passed


def test_single_agents_stay_below_their_bound() -> None:
    bandit, network = BANDITS["gaussian"], rm.Network.path(5)
    policy = rm.CentralizedMPUCB(gamma=2, leaders="dominating", c="theory", confidence="anytime")
    plan = policy.plan(network)
    horizon, trials = 512, 200
    regret = rm.simulate(bandit, network, policy, horizon=horizon, trials=trials, rng=3).agent_regret[:, -1]
    worst = 0.0
    for agent in range(5):
        bound = individual_bound(bandit, network, policy, horizon, agent, plan=plan)
        assert not bound.vacuous
        error = float(regret[:, agent].std(ddof=1)) / math.sqrt(trials)
        mean = float(regret[:, agent].mean())
        assert mean + 5 * error <= bound.value
        worst = max(worst, mean / bound.value)
    assert worst > 0.1  # the bound is not empty words either


def test_the_printed_decentralized_bound_does_not_hold() -> None:
    """One agent, eps = 0.4, hardly any noise, c of theory: the printed (2 gap)^(-1/eps) is beaten by regret.

    The arm is pulled until its radius is about the gap, some c 2 ln T m^(1/eps) gap^(-1-1/eps) times; the
    printed leading term is 2^(1/eps - 1) = 2.8 times smaller in the long run. With so little noise every
    trial is the same.
    """
    bandit = rm.Bandit([rm.Gaussian(loc=m, scale=1e-3) for m in (-0.5, 0.5)])
    policy = rm.RobustUCB(c="theory", moments=bandit.moments(0.4))
    network = rm.Network.complete(1)
    printed = verify(bandit, network, policy, 65536, trials=3, rng=1, form="printed")
    assert printed.mean - 5 * printed.error > 1.5 * printed.bound.value
    assert not printed.passed
    assert verify(bandit, network, policy, 65536, trials=3, rng=1).passed


def test_the_lag_of_followers_cannot_be_left_out() -> None:
    """A broom: 40 agents at 12 hops from their leader, who must take 500 samples before an index exists.

    The leader learns of a follower's pull 11 rounds late, and the follower goes on copying for 12 rounds.
    The bound of the decentralized policy, with leaders in place of cliques, counts only the first delay: it
    fails.
    """
    handle = [(v, v + 1) for v in range(11)]
    network = rm.Network.from_edges([*handle, *((11, 12 + leaf) for leaf in range(40))])
    bandit = rm.Bandit([rm.Gaussian(loc=m, scale=1e-3) for m in (0.0, 1.0)])
    policy = rm.CentralizedMPUCB(
        gamma=12,
        leaders=[0],
        estimator=rm.Catoni(),
        c="theory",
        confidence="anytime",
        moments=bandit.moments(0.8),
    )
    played = rm.simulate(bandit, network, policy, horizon=50, rng=1, engine="reference")
    regret = float(played.regret[0, -1])
    bound = regret_bound(bandit, network, policy, 50)
    assert not bound.vacuous
    assert bound.value - bound.terms["following"] < regret < bound.value


def test_a_standard_error_needs_two_trials() -> None:
    with pytest.raises(rm.InputError, match="at least two"):
        verify(BANDITS["gaussian"], NETWORKS["path"], rm.RobustUCB(), 10, trials=1, rng=1)
