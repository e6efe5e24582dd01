"""Thompson sampling on KMP's messages: rows as in KMP-UCB, and every agent draws its own sample.

A message carries (θ, N) of every arm, θ the Huber mean of all N samples that the sender has. For each arm an
agent takes the row with the largest N in reach, as KMP-UCB does, and draws

    θ* + width s Z / √N*          s its own scale of the arm, Z = Φ⁻¹(U(THOMPSON; v, t, k))

Standard deviations are not sent: s is the receiver's own, so that no message can claim certainty.

No bound is known for Huber means with a scale from the data. For Gaussian arms and γ = diameter it is
Gaussian Thompson sampling with delayed samples, whose regret is O(ln T) (Agrawal and Goyal 2013; Lalitha and
Goldsmith 2021 for decentralised groups).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from rumormill.estimators.huber_sgd import HuberSGD, OnlineHuber
from rumormill.formulas import draw_spread, inverse_normal
from rumormill.policies.base import Seat, argmax_chances
from rumormill.policies.kmp import KMPAgent
from rumormill.policies.message_passing_agent import OwnDraws, Samples, by_fewest_out
from rumormill.policies.message_passing_policy import FloodingPolicy
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between

ESTIMATOR = HuberSGD()


@dataclass(frozen=True, kw_only=True)
class ThompsonKMP(FloodingPolicy):
    """Every agent draws, arm by arm, about the best informed Huber mean in reach. For symmetric laws.

    Parameters
    ----------
    width : float, default 1.25
        Standard deviation of a draw about the mean of one sample, in scales of the arm: 1 suits Gaussian
        rewards, 1.7 Cauchy's.
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.StudentT(df=2.5, loc=loc) for loc in (0.0, 1.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(5), rm.ThompsonKMP(gamma=2), horizon=300, rng=1)
    >>> bool(result.regret[0, -1] < 300)
    True

    References
    ----------
    Lalitha and Goldsmith (2021), "Bayesian algorithms for decentralized stochastic bandits"; rows after Dubey
    and Pentland (2020).
    """

    label: ClassVar[str] = "Thompson KMP"
    shares_rows: ClassVar[bool] = True
    estimator: ClassVar[HuberSGD] = ESTIMATOR
    width: float = 1.25

    def __post_init__(self) -> None:
        super().__post_init__()
        between("width", self.width, LEAST_CONSTANT, LARGEST_CONSTANT)

    def agent(self, seat: Seat) -> ThompsonKMPAgent:
        return ThompsonKMPAgent(self, seat)


class ThompsonKMPAgent(KMPAgent):
    """One agent."""

    def __init__(self, policy: ThompsonKMP, seat: Seat) -> None:
        arms = [OnlineHuber(ESTIMATOR.scale, ESTIMATOR.lam, ESTIMATOR.coeff) for _ in range(seat.n_arms)]
        super().__init__(policy, seat, policy.hops(seat), Samples.of(arms))
        self.width, self.draws = policy.width, OwnDraws(seat)

    def worth(self, t: int) -> Sequence[Any]:
        self.rows = self.samples.estimates(t)
        rows = self.best_informed()
        values = [self._drawn(t, arm, *row) for arm, row in enumerate(rows)]
        if all(values[arm] < math.inf for arm in self.allowed):
            scales = [self.samples.stream(arm).scale or 0.0 for arm in range(self.n_arms)]
            spread = [
                self.width * scale / math.sqrt(n) if n else 0.0
                for scale, (_, n) in zip(scales, rows, strict=True)
            ]
            self.drawn = partial(argmax_chances, [mean for mean, _ in rows], spread, self.allowed)
        return by_fewest_out(values, self.samples.pending)

    def _drawn(self, t: int, arm: int, mean: float, n: float) -> float:
        scale = self.samples.stream(arm).scale
        if scale is None:  # too few samples of its own
            return math.inf
        z = inverse_normal(self.draws.uniform(t, arm))
        return mean + draw_spread(n, self.width * scale) * z
