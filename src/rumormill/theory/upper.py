"""Upper bounds on expected regret, as functions of (bandit, network, policy, horizon).

Each comes in two forms: `corrected`, which follows from the argument in docs/theory.md, and `printed`, the
paper's formula letter by letter, which need not hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rumormill.arms import RewardSource
from rumormill.engine.simulate import simulate
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.policies import Plan, Policy
from rumormill.protocol import World
from rumormill.text import shown
from rumormill.theory.bounds import BOUNDS, UNBOUNDED, Family
from rumormill.theory.family import Assumption, Bound, Form, check_form
from rumormill.validate import is_whole, refused, whole

IMPERFECT = Assumption(
    "The argument assumes that all messages arrive in time and all agents are present and honest.",
    holds=False,
)


def regret_bound(
    bandit: RewardSource,
    network: Network,
    policy: Policy,
    horizon: int,
    form: Form = "corrected",
    *,
    plan: Plan | None = None,
    world: World | None = None,
) -> Bound:
    """The bound on the group's expected regret.

    Where the fault model is not covered by the argument, the assumptions of the bound say so.

    Parameters
    ----------
    bandit : Bandit or Replay
        Arms with fixed means.
    network : Network
        The agents.
    policy : Policy
        A built-in policy.
    horizon : int
        Number of rounds.
    form : "corrected" | "printed", default "corrected"
        The corrected bound, or the paper's formula, which need not hold.
    plan : Plan, optional
        `policy.plan(network)`, if it is computed already.
    world : World, optional
        Fault model; by default fault-free.

    Returns
    -------
    Bound
        The value, its terms and its assumptions.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.StudentT(df=3.0, loc=loc) for loc in (0.0, 1.0)])
    >>> policy = rm.KMPUCB(estimator=rm.ClippedMean(), c="theory", gamma=1)
    >>> bound = rm.theory.regret_bound(bandit, rm.Network.ring(5), policy, 10_000)
    >>> bound.covered, bound.dominant
    (True, 'learning')

    References
    ----------
    docs/theory.md, after Dubey and Pentland (2020).
    """
    check_form(form)
    family = _family(bandit, network, policy, horizon, plan, world)
    if family.horizon <= bandit.n_arms:
        terms, assumptions = family.first_rounds(network.n_agents)
    else:
        terms, assumptions = family.printed() if form == "printed" else family.corrected()
        if not family.covers_world():
            assumptions = [IMPERFECT, *assumptions]
    return Bound.of(terms, form=form, horizon=family.horizon, ceiling=family.ceiling, assumptions=assumptions)


def individual_bound(
    bandit: RewardSource,
    network: Network,
    policy: Policy,
    horizon: int,
    agent: int,
    form: Form = "corrected",
    *,
    plan: Plan | None = None,
) -> Bound:
    """The bound on one agent's expected regret under Centralized MP-UCB: leader or follower.

    Parameters
    ----------
    bandit, network, policy, horizon, form, plan
        As for `regret_bound`.
    agent : int
        The agent.

    Returns
    -------
    Bound
        The value, its terms and its assumptions.
    """
    check_form(form)
    family = _family(bandit, network, policy, horizon, plan)
    if not family.single_agents:
        known = [kind.__name__ for kind, each in BOUNDS.items() if each.single_agents]
        raise InputError(
            f"{type(policy).__name__} has no bound for single agents: it is known for {', '.join(known)} only"
        )
    agent = network.check_agent(agent)
    if family.horizon <= bandit.n_arms:
        terms, assumptions = family.first_rounds(1)
    else:
        terms, assumptions = family.individual(agent, form)
    ceiling = family.ceiling / network.n_agents
    return Bound.of(terms, form=form, horizon=family.horizon, ceiling=ceiling, assumptions=assumptions)


def _family(
    bandit: RewardSource,
    network: Network,
    policy: Any,
    horizon: int,
    plan: Plan | None,
    world: World | None = None,
) -> Family:
    """The family of bounds of a policy, with its arguments checked."""
    if getattr(bandit, "varies", False):
        raise InputError(
            f"the bounds are for arms with the same means for all agents and rounds, not for {bandit!r}"
        )
    horizon = whole("horizon", horizon)
    family = BOUNDS.get(type(policy))
    if type(policy) in UNBOUNDED:
        raise InputError(f"there is no bound for {type(policy).__name__}: {UNBOUNDED[type(policy)]}")
    if family is None:
        raise InputError(
            f"there is no bound for {shown(policy)}: bounds are known for the built-in policies only"
        )
    if not (bandit.gaps > 0).any():
        raise InputError("all arms have the same mean: there is nothing to regret, and nothing to bound")
    estimator = getattr(policy, "estimator", None)
    if estimator is not None and estimator.brings_index:
        raise InputError(f"there is no bound for {estimator!r}: it brings an index of its own")
    plan = policy.plan(network) if plan is None else plan
    if not isinstance(plan, family.plan_type):
        raise InputError(f"plan = {shown(plan)} is not allowed: give policy.plan(network), or leave it out")
    return family(bandit, network, policy, horizon, plan, World() if world is None else world)


# How many standard errors of the mean must fit between the measurement and the bound.
SIGMAS = 5.0


@dataclass(frozen=True)
class Verification:
    """The mean regret over trials, its standard error, and the bound it should stay below."""

    mean: float
    error: float
    trials: int
    bound: Bound

    @property
    def passed(self) -> bool:
        """Whether mean + 5 standard errors is at most the bound."""
        return self.mean + SIGMAS * self.error <= self.bound.value

    @property
    def false_alarm(self) -> float:
        """How likely a repetition fails, were the measured mean the true one (Hoeffding, no normal law).

        Regret of a trial lies between 0 and the ceiling, so a mean of n trials exceeds its expectation by x
        with probability at most exp(-2 n (x / ceiling)^2). A vacuous bound cannot fail but by the error.
        """
        room = self.bound.value - SIGMAS * self.error - self.mean
        return math.exp(-2 * self.trials * (max(room, 0.0) / self.bound.ceiling) ** 2)


def verify(
    bandit: RewardSource,
    network: Network,
    policy: Policy,
    horizon: int,
    *,
    trials: int,
    rng: int,
    form: Form = "corrected",
) -> Verification:
    """Play `trials` trials and compare the group's regret with the bound.

    Parameters
    ----------
    bandit, network, policy, horizon, form
        As for `regret_bound`.
    trials : int
        Number of trials, at least 2.
    rng : int
        Seed.

    Returns
    -------
    Verification
        Mean regret, its standard error, and the bound.
    """
    if not is_whole(trials) or trials < 2:
        raise refused("trials", trials, "a whole number; a standard error needs at least two")
    bound = regret_bound(bandit, network, policy, horizon, form)
    played = simulate(bandit, network, policy, horizon=horizon, trials=trials, rng=rng, checkpoints=[horizon])
    regret = played.regret[:, -1]
    error = float(np.std(regret, ddof=1)) / math.sqrt(trials)
    return Verification(float(regret.mean()), error, trials, bound)
