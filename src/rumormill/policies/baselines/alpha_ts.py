"""Robust α-TS (Dubey and Pentland 2019): Thompson sampling for symmetric α-stable rewards.

The mean of n symmetric α-stable rewards is α-stable with a scale that shrinks as n^-(1-1/α). Every agent
draws, for each arm in each round,

    θ_k = mean_k + zeta u^(1/p) n^(-eps/p) Z(v, t, k)          p = 1 + eps in the place of α

and pulls the arm of the largest: mean_k the trimmed mean at L_t over own and heard samples, Z the standard
normal quantile of U(THOMPSON; v, t, k).

The paper bounds the Bayes regret of α-TS and of its robust form (from memory: T^(1/p) up to logarithms for
the latter); nothing is proven for this file.

What differs from the printed text, of which the abstract was available: of the two algorithms the robust
one is taken. The Gibbs sampler of the other draws an auxiliary variable for every reward in every round:
its state grows without bound and its result depends on the number of sweeps. There is no prior; the order p
of the known moments stands for α, whose own moment is infinite; samples are shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from rumormill.arms import Moments
from rumormill.estimators import TrimmedMean
from rumormill.formulas import inverse_normal, log_confidence, shrinkage
from rumormill.policies.base import Seat, argmax_chances
from rumormill.policies.message_passing_agent import MessagePassingAgent, OwnDraws, Samples
from rumormill.policies.message_passing_policy import FloodingPolicy
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between, refused


@dataclass(frozen=True, kw_only=True)
class AlphaStableTS(FloodingPolicy):
    """Normal draws around trimmed means, with the spread of α-stable means.

    Parameters
    ----------
    zeta : float, default 1.0
        Factor on the spread of the draws.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.AlphaStableTS(zeta=0.5).constants(rm.Moments(eps=1.0, u=4.0, rho=1.0))
    {'zeta': 0.5, 'eps': 1.0, 'u': 4.0}

    References
    ----------
    Dubey and Pentland (2019), "Thompson sampling on symmetric alpha-stable bandits".
    """

    label: ClassVar[str] = "α-TS"
    zeta: float = 1.0
    moments: Moments | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        between("zeta", self.zeta, LEAST_CONSTANT, LARGEST_CONSTANT)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")

    @property
    def needs_moments(self) -> bool:
        return True

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        used = self.moments or moments
        return {"zeta": self.zeta, "eps": used.eps, "u": used.u}

    def agent(self, seat: Seat) -> AlphaAgent:
        return AlphaAgent(self, seat)


class AlphaAgent(MessagePassingAgent):
    """One agent."""

    def __init__(self, policy: AlphaStableTS, seat: Seat) -> None:
        moments = seat.require_moments(policy.moments)
        last = math.inf if seat.horizon is None else log_confidence("paper", seat.horizon, 1)
        arms = [TrimmedMean().online(moments, last_L=last) for _ in range(seat.n_arms)]
        super().__init__(policy, seat, policy.hops(seat), Samples.of(arms))
        self.scale = policy.zeta * moments.u ** (1.0 / moments.p)
        self.exponent, self.draws = moments.eps / moments.p, OwnDraws(seat)

    def worth(self, t: int) -> Sequence[Any]:
        rows = self.samples.estimates(t)
        spreads = [self.scale * shrinkage(n, self.exponent) if n else 0.0 for _, n in rows]
        if all(rows[arm][1] for arm in self.allowed):
            self.drawn = partial(argmax_chances, [mean for mean, _ in rows], spreads, self.allowed)
        draws = [inverse_normal(self.draws.uniform(t, arm)) for arm in range(self.n_arms)]
        return [mean + s * z for (mean, _), s, z in zip(rows, spreads, draws, strict=True)]
