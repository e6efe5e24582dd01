"""Decentralised Thompson sampling (after Lalitha and Goldsmith 2020), with clipped rewards.

Sums s and counts n of every arm are averaged with the neighbours as in consensus, the natural parameters of
Gaussian posteriors that neighbours pool; a reward enters as clip(x, ±B), B = (τ u (M n + 1)/L_t)^(1/p), as
in robust gossip. Every agent draws, for each arm in each round,

    θ_k = s/n + zeta u^(1/p) n_eff^(-eps/p) Z(v, t, k)          n_eff = M n² / (n + √ln t)

and pulls the arm of the largest; Z is the standard normal quantile of U(THOMPSON; v, t, k). With eps = 1
and a known variance this is the posterior of a Gaussian mean under a flat prior, over the n_eff rewards
that an average stands for.

The paper shows for log-concave rewards that every agent's regret falls with the size of the network, at a
cost that depends on its spectrum (from memory); nothing is proven for heavy tails.

What differs from the printed text, which was not available: flat priors, clipped rewards, n_eff for the
count (that of robust gossip), one averaging step a round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rumormill.arms import Moments
from rumormill.formulas import clipping_factor, consensus_index, inverse_normal
from rumormill.policies.averaging import AveragingAgent, AveragingPolicy, AveragingRule, ConsensusPart
from rumormill.policies.base import Seat
from rumormill.policies.message_passing_agent import OwnDraws


@dataclass(frozen=True, kw_only=True)
class DecentralizedTS(AveragingPolicy):
    """Running consensus with Thompson sampling in the place of a radius.

    Parameters
    ----------
    zeta : float, default 1.0
        Factor on the spread of the draws.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.DecentralizedTS(zeta=0.5).needs_moments
    True

    References
    ----------
    Lalitha and Goldsmith (2020), "Bayesian algorithms for decentralized stochastic bandits".
    """

    label: ClassVar[str] = "Decentralized TS"

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        used = self.moments or moments
        return {"zeta": self.zeta, "eps": used.eps, "u": used.u, "tau": clipping_factor(used.p)}

    def rule(self, moments: Moments | None) -> AveragingRule:
        assert moments is not None
        scale, budget = self.zeta * moments.u ** (1.0 / moments.p), clipping_factor(moments.p) * moments.u
        return AveragingRule(
            moments.eps / moments.p,
            scale=lambda t: scale,
            drift=lambda t: math.sqrt(math.log(t)),
            clip=lambda t: budget / (2.0 * math.log(max(t, 2))),
            p=moments.p,
        )

    def agent(self, seat: Seat) -> SamplingAgent:
        part: ConsensusPart = seat.require_part(ConsensusPart)
        return SamplingAgent(seat, self.rule(seat.require_moments(self.moments)), part)


class SamplingAgent(AveragingAgent):
    """One agent."""

    def __init__(self, seat: Seat, rule: AveragingRule, part: ConsensusPart) -> None:
        super().__init__(seat, rule, part)
        self.draws = OwnDraws(seat)

    def propensity(self, arm: int) -> float:
        return math.nan  # not worked out

    def worth(self, t: int) -> Sequence[float]:
        rule, epsilon = self.rule, self.rule.drift(t)
        values = []
        for arm, (s, n) in enumerate(zip(self.sums, self.counts, strict=True)):
            scale = rule.scale(t) * inverse_normal(self.draws.uniform(t, arm))
            values.append(consensus_index(s, n, self.n_agents, epsilon, scale, rule.exponent))
        return values
