"""What every upper bound is computed from: the gaps, the network, the constants of the policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Bandit, Moments, RewardSource
from rumormill.errors import InputError
from rumormill.estimators import Catoni, Radius, TrimmedMean
from rumormill.graphs import Network, clique_cover, consensus_weights, dominating_set, independent_set
from rumormill.policies import Policy, RobustPolicy, log_confidence

# Beyond this many samples nobody looks for the start of a lemma's range.
MOST_SAMPLES = 2.0**60


@dataclass(frozen=True, eq=False)
class Setting:
    """A bandit, a network and a policy played for `horizon` rounds."""

    bandit: RewardSource
    network: Network
    policy: Policy
    horizon: int
    plan: Any

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The gaps of the arms that are not best."""
        return self.bandit.gaps[self.bandit.gaps > 0]

    @property
    def gap_sum(self) -> float:
        return float(self.gaps.sum())

    @property
    def n_agents(self) -> int:
        return self.network.n_agents

    @cached_property
    def gamma(self) -> int:
        return self.policy.reach(self.network)

    @cached_property
    def ceiling(self) -> float:
        """The regret of the worst arm pulled by everyone in every round."""
        return self.horizon * self.n_agents * float(self.bandit.gaps.max())

    @cached_property
    def heard(self) -> NDArray[np.int64]:
        """How many agents each agent has samples of, itself included."""
        return self.network.neighbourhoods(self.gamma).sizes + 1

    # --- the robust policies ----------------------------------------------------------------------------

    @cached_property
    def robust(self) -> RobustPolicy:
        if not isinstance(self.policy, RobustPolicy):
            raise InputError(f"{type(self.policy).__name__} has no confidence radius of a robust mean")
        return self.policy

    @cached_property
    def radius(self) -> Radius:
        return self.robust.radius(self.bandit)

    @property
    def moments(self) -> Moments:
        return self.radius.moments

    def log_samples_at(self, L: float, gap: float) -> float:
        """ln of the n at which twice the radius is the gap: c (L + shift) m^(1/eps) (2/gap)^(1 + 1/eps)."""
        eps = self.moments.eps
        m = self.radius.estimator.moment(self.moments)
        return (
            _log(self.radius.constant * (L + self.radius.shift))
            + math.log(m) / eps
            + (1 + 1 / eps) * math.log(2 / gap)
        )

    @cached_property
    def last_L(self) -> float:
        """ln(1/delta) of the last round."""
        return log_confidence(self.robust.confidence, self.horizon, self.n_agents)

    def samples_needed(self, gap: float) -> float:
        """How many samples of an arm an agent can have and yet pull it, if no estimate is off."""
        return max(exp_or_inf(self.log_samples_at(self.last_L, gap)), self.first_usable - 1)

    @cached_property
    def first_usable(self) -> float:
        """The least number of samples for an index in the last round: with fewer the arm is pulled."""
        L = self.last_L
        high = 1.0
        while not self.radius.usable(high, L):
            high *= 2
            if high > MOST_SAMPLES:
                return math.inf
        low = high / 2
        while high - low > 1:
            middle = math.floor((low + high) / 2)
            low, high = (low, middle) if self.radius.usable(middle, L) else (middle, high)
        return high

    @cached_property
    def learning(self) -> float:
        """Regret of one agent, or one group that shares its samples, until each arm is known."""
        return float(sum(gap * self.samples_needed(gap) for gap in self.gaps.tolist()))

    def failures(self, heard: NDArray[np.int64], weight: NDArray[np.int64] | None = None) -> float:
        """Expected number of decisions, per arm, that rest on an estimate outside its radius.

        An agent with samples of r agents has at most r (t - 1) of an arm in round t. Each count may fail
        with probability delta_t, for this arm and for the best: 2 r (t - 1) delta_t. With
        delta_t = 1/(M t^3) the sum over rounds is below pi^2/3; with t^-2 it grows like 2 r ln T.
        """
        weight = np.ones_like(heard) if weight is None else weight
        if self.robust.confidence == "anytime":
            return math.pi**2 / 3 * float(weight.sum())
        t = np.arange(self.bandit.n_arms + 1, self.horizon + 1, dtype=np.float64)
        total = 0.0
        for r in np.unique(heard).tolist():
            total += float(weight[heard == r].sum()) * float(np.minimum(1, 2 * r * (t - 1) / t**2).sum())
        return total

    # --- what the bound rests on ------------------------------------------------------------------------

    def moment_words(self, moments: Moments) -> list[str]:
        """Whether the moment bounds in use really hold."""
        if not isinstance(self.bandit, Bandit):
            return ["The rewards are recorded: the moment bounds are those of the record."]
        true = self.bandit.moments(moments.eps) if 1 + moments.eps < self.bandit.tail_index else None
        if true is None or true.u > moments.u * (1 + 1e-9) or true.rho > moments.rho * (1 + 1e-9):
            return [
                f"NOT COVERED: the moment bounds given (eps = {moments.eps:g}) do not hold for these arms."
            ]
        return [f"Moments of order {1 + moments.eps:g} at most u = {moments.u:.4g}, rho = {moments.rho:.4g}."]

    def radius_words(self) -> list[str]:
        """Whether a concentration lemma covers the constant, the schedule and the order of samples."""
        radius, words = self.radius, self.moment_words(self.moments)
        covered = radius.theory and radius.estimator != TrimmedMean(variant="literal")
        if not radius.theory and radius.estimator == TrimmedMean():
            covered = radius.constant >= radius.estimator.theory(radius.moments).c * (1 - 1e-12)
        name = type(radius.estimator).__name__
        if covered:
            words.append(f"c = {radius.constant:.4g} is covered by the lemma of {name}.")
        else:
            words.append(
                f"NOT COVERED: no lemma of {name} covers the radius with c = {radius.constant:.4g} at every "
                "number of samples, so that estimates may fail more often than counted here."
            )
        if self.robust.confidence == "paper":
            words.append("delta_t = t^-2: failed estimates add a term that grows like ln T.")
        else:
            words.append("delta_t = 1/(M t^3): the union over sample counts is paid for.")
        if self.gamma > 1 and not isinstance(radius.estimator, Catoni):
            words.append(
                "Samples in order of arrival are taken as independent; beyond one hop a sample may be "
                "ranked just before another of the same round that caused it."
            )
        return words


# Bounds are asked for at many horizons: what depends on the network alone is worked out once.


@lru_cache(maxsize=32)
def cover_size(network: Network, gamma: int) -> int:
    """The number of cliques in a cover of the power graph."""
    return len(clique_cover(network, gamma).groups)


@lru_cache(maxsize=32)
def dominating_size(network: Network, gamma: int) -> int:
    """The number of agents found that reach everyone."""
    return len(dominating_set(network, gamma).leaders)


@lru_cache(maxsize=32)
def independent_size(network: Network, gamma: int) -> tuple[int, str]:
    """The size of a large independent set, and how sure it is to be the largest."""
    found = independent_set(network, gamma, weights=np.ones(network.n_agents))
    known = "proven" if found.optimal else f"the largest found; at most {found.bound:g}"
    return len(found.leaders), f"Independence number {len(found.leaders)} ({known})."


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def exp_or_inf(x: float) -> float:
    """exp(x), +inf beyond the floats."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def consensus_eigenvalues(network: Network, kappa: float | None) -> NDArray[np.float64]:
    """Sizes of the eigenvalues of consensus, without the one that is 1; empty for a single agent."""
    _, weight = consensus_weights(network, kappa)
    step = weight * network.power(1).dense(np.float64)
    step[np.diag_indices(network.n_agents)] = 1 - step.sum(axis=1)
    sizes: NDArray[np.float64] = np.abs(np.linalg.eigvalsh(step)[:-1])
    return sizes
