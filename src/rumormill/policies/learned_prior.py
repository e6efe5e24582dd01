"""A prior from samples: what an agent of a policy knows that has taken them in (docs/semantics.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rumormill.errors import InputError
from rumormill.policies.base import Policy, Seat, policy_name
from rumormill.policies.message_passing_agent import Samples
from rumormill.policies.message_passing_policy import RobustPolicy
from rumormill.policies.prior import Prior
from rumormill.stats.winsorize import winsorised

# The lowest level at which a mean is asked for.
LOWEST = 0.1


def learned_prior(policy: Policy, seat: Seat, news: Sequence[tuple[int, float]], t: int) -> Prior:
    """The prior that an agent can pass on which has taken in these samples, at the level of round t.

    - `seat`: with the prior that the agent was born with, if any: it is kept for arms of which it knows more.
    - `news`: (arm, reward) of every sample, in order of time.

    Raises InputError if the policy takes no prior, or has no estimator to make one.
    """
    nothing = [0.0] * seat.n_arms
    policy.require_prior(Prior(mean=nothing, n=nothing, spread=nothing), seat.n_arms)
    if not isinstance(policy, RobustPolicy):
        raise InputError(f"{policy_name(policy)} has no estimator: write its prior into the file by hand")
    samples = Samples(policy, seat)
    samples.add_all(news)
    L = samples.L(t)
    mean = [_mean_at(samples.stream(arm), L) for arm in range(seat.n_arms)]
    n = [count if math.isfinite(each) else 0.0 for each, count in zip(mean, samples.counts, strict=True)]
    mean = [each if math.isfinite(each) else 0.0 for each in mean]
    spread = list(nothing)
    if policy.estimator.brings_index:
        for arm in range(seat.n_arms):
            values = np.array([reward for each, reward in news if each == arm])
            spread[arm] = float(winsorised(values).std(ddof=1)) if len(values) > 1 else 0.0
            n[arm] = n[arm] if len(values) > 1 else 0.0
    if samples.prior is not None and seat.prior is not None:
        samples.rows(t)  # drops what the samples contradict
        earlier: Any = seat.prior
        for arm, w in enumerate(samples.prior.state()["weights"]):
            if w > n[arm]:
                mean[arm], n[arm] = earlier.mean[arm], earlier.n[arm]
                spread[arm] = 0.0 if earlier.spread is None else earlier.spread[arm]
    return Prior(mean=mean, n=n, spread=spread if policy.estimator.brings_index else None)


def _mean_at(stream: Any, L: float) -> float:
    """The mean at the largest of L, L/2, L/4, ... at which it is defined; +inf if at none."""
    levels = [L]
    while levels[-1] / 2 > LOWEST:
        levels.append(levels[-1] / 2)
    found = math.inf
    for level in reversed(levels):  # levels must not decrease
        mean = float(stream.mean(level))
        found = mean if math.isfinite(mean) else found
    return found
