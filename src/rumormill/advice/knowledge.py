"""What a part of a log knows of the arms: a prior for agents that start after it, and arms to keep.

Only recorded values count. A prior is made by the estimator of the policy that is born with it, agent by
agent; of an arm that an agent never tried it takes what its group knows, as one sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.advice.problem import OWN, TOGETHER, Candidate
from rumormill.arms import Moments
from rumormill.formulas import log_confidence
from rumormill.policies import Prior
from rumormill.stats.winsorize import winsorised_mean

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Knowledge:
    """The recorded values of a part of a log."""

    values: Array
    """Rounds × agents × arms, in the user's unit."""
    recorded: NDArray[np.bool_]
    group_of: NDArray[np.int64]
    sign: float
    """-1 where less is better."""
    moments: Moments
    _priors: dict[str, Prior] = field(default_factory=dict, repr=False)
    _kept: dict[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def part(self, rounds: slice) -> Knowledge:
        """What some of the rounds know."""
        return Knowledge(self.values[rounds], self.recorded[rounds], self.group_of, self.sign, self.moments)

    def samples(self, agents: NDArray[np.int64], arm: int) -> Array:
        """The recorded rewards of some agents with an arm, in order of time; more is better."""
        return self.sign * self.values[:, agents, arm][self.recorded[:, agents, arm]]

    def prior(self, estimator: str) -> Prior:
        """What every agent knows of every arm, by this estimator."""
        if estimator not in self._priors:
            n_agents, n_arms = self.values.shape[1:]
            mean, n = np.zeros((n_agents, n_arms)), np.zeros((n_agents, n_arms))
            for arm in range(n_arms):
                for v in range(n_agents):
                    own = self.samples(np.array([v]), arm)
                    n[v, arm] = max(1, len(own))
                    mean[v, arm] = self._mean(estimator, own if len(own) else self._of_group(v, arm))
            self._priors[estimator] = Prior(mean=mean.tolist(), n=n.tolist())
        return self._priors[estimator]

    def best_arms(self, candidate: Candidate) -> NDArray[np.int64]:
        """The arm that each agent keeps: its own best, or the best of its group or of all agents."""
        if candidate.network in self._kept:
            return self._kept[candidate.network]
        n_agents, n_arms = self.values.shape[1:]
        one, each = np.zeros(n_agents, dtype=np.int64), np.arange(n_agents)
        group = {TOGETHER: one, OWN: each}.get(candidate.network, self.group_of)
        found = np.empty((n_agents, n_arms))
        for number in np.unique(group):
            here = np.flatnonzero(group == number)
            found[here] = [winsorised_mean(self.samples(here, arm))[0] for arm in range(n_arms)]
        self._kept[candidate.network] = np.where(np.isnan(found), -np.inf, found).argmax(axis=1)
        return self._kept[candidate.network]

    def _of_group(self, agent: int, arm: int) -> Array:
        """What the agents of the same group recorded of an arm; else what all did."""
        near = self.samples(np.flatnonzero(self.group_of == self.group_of[agent]), arm)
        return near if len(near) else self.samples(np.arange(self.values.shape[1]), arm)

    def _mean(self, name: str, samples: Array) -> float:
        """The estimator's mean at the level of as many rounds; at a lower one where it needs more samples."""
        estimator = catalogue.make("estimator", name)
        L = log_confidence("paper", max(2, len(self.values)), 1)
        while L > 0.1 and len(samples):
            mean = float(estimator.of(samples.tolist(), L, self.moments))
            if math.isfinite(mean):
                return mean
            L /= 2
        return float(samples.mean()) if len(samples) else 0.0
