"""Measured regret against a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rumormill.arms import RewardSource
from rumormill.engine.simulate import simulate
from rumormill.graphs import Network
from rumormill.policies import Policy
from rumormill.theory.bound import Bound, Form
from rumormill.theory.upper import regret_bound
from rumormill.validate import is_whole, refused

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
    """Play `trials` trials and hold the group's regret against the bound."""
    if not is_whole(trials) or trials < 2:
        raise refused("trials", trials, "a whole number; a standard error needs at least two")
    bound = regret_bound(bandit, network, policy, horizon, form)
    played = simulate(bandit, network, policy, horizon=horizon, trials=trials, rng=rng, checkpoints=[horizon])
    regret = played.regret[:, -1]
    error = float(np.std(regret, ddof=1)) / math.sqrt(trials)
    return Verification(float(regret.mean()), error, trials, bound)
