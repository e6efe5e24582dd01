"""The samples of one agent: their estimates and indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rumormill.estimators import Radius, Terms
from rumormill.formulas import log_confidence
from rumormill.policies.message_passing import HopPart, RobustPolicy
from rumormill.policies.seat import Seat


def first_best(values: Sequence[float]) -> int:
    """argmax; the lowest index on ties."""
    return max(range(len(values)), key=values.__getitem__)


class Samples:
    """The samples of every arm that one agent has, in order of arrival, and their indices."""

    def __init__(self, policy: RobustPolicy, seat: Seat) -> None:
        estimator = policy.estimator
        self._schedule = policy.confidence
        self._n_agents = seat.require_agents() if policy.confidence == "anytime" else 1
        moments = policy.moments or seat.moments
        if estimator.needs_moments:
            moments = seat.require_moments(policy.moments)
        self.radius: Radius | None = None
        """None where the estimator brings its own index."""
        if moments is not None and not estimator.brings_index:
            self.radius = policy.radius(moments)
        self.pending: Sequence[int] = [0] * seat.n_arms
        """Pulls of every arm whose rewards are still out; in rounds there are none."""
        self.latest: tuple[tuple[float, float], ...] = ()
        """The estimates of the last decision."""
        terms = Terms(
            moments=moments,
            last_L=math.inf if seat.horizon is None else self.L(seat.horizon),
            horizon=seat.horizon,
            n_arms=seat.n_arms,
            group=seat.part.group if isinstance(seat.part, HopPart) else 1,
        )
        self._arms = [estimator.stream_for(terms) for _ in range(seat.n_arms)]

    def L(self, t: int) -> float:
        """ln(1/δ_t)."""
        return log_confidence(self._schedule, t, self._n_agents)

    def add(self, arm: int, reward: float) -> None:
        """One more sample of an arm."""
        self._arms[arm].update(reward)

    def estimates(self, t: int) -> tuple[tuple[float, float], ...]:
        """(mean, count) of every arm in round t."""
        L = self.L(t)
        self.latest = tuple((samples.mean(L), float(samples.count)) for samples in self._arms)
        return self.latest

    def rows(self, t: int) -> tuple[tuple[float, float], ...]:
        """What indices are made of: (mean, count), or (index, count) where the estimator brings its own."""
        estimates, L = self.estimates(t), self.L(t)
        if self.radius is not None:
            return estimates
        return tuple((samples.index(L), float(samples.count)) for samples in self._arms)

    def indices(self, t: int, rows: Sequence[tuple[float, float]]) -> list[float]:
        """The index of every arm in round t; +inf where an arm must be pulled.

        A pull whose reward is still out counts in the radius, so that many open ones do not all take one arm.
        """
        if self.radius is None:
            return [index for index, _ in rows]
        L = self.L(t)
        return [
            self.radius.index(mean, n + out, L) for (mean, n), out in zip(rows, self.pending, strict=True)
        ]

    def best(self, t: int, rows: Sequence[tuple[float, float]]) -> int:
        """The arm of the largest index; among those that must be pulled, that with the fewest out."""
        values = self.indices(t, rows)
        if not any(self.pending):
            return first_best(values)
        out = self.pending
        return max(range(len(values)), key=lambda k: (values[k], -out[k] if values[k] == math.inf else 0))

    def state(self) -> list[dict[str, Any]]:
        """The samples of every arm as plain data."""
        return [samples.state() for samples in self._arms]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        """Go on from what `state()` described."""
        self._arms = [type(fresh).from_state(each) for fresh, each in zip(self._arms, state, strict=True)]
