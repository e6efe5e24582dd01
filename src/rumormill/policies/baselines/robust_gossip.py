"""Robust gossip: coop-UCB2 whose rewards are clipped at the source.

In round t a reward x of arm a enters the agent's sum as clip(x, ±B), and the sums are averaged as in
consensus:

    B = (τ u (M n + 1) / L_t)^(1/p)                      n: the agent's count of the arm before the pull
    s/n + ζ u^(1/p) (L_t/n_eff)^(eps/p)                  n_eff = M n² / (n + √ln t),  L_t = 2 ln max(t, 2)

τ is that of the clipped mean. An average is linear in clipped rewards, so averaging can be robust: the moment
generating function of the clipped mean's lemma applies with the weights of P^j in place of 1/n, whose squares
sum to at most (n + f)/(M n²). A sketch, not a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rumormill.arms import Moments
from rumormill.formulas import clipping_factor, factor_scale
from rumormill.policies.averaging import AveragingPolicy, AveragingRule


@dataclass(frozen=True, kw_only=True)
class RobustGossip(AveragingPolicy):
    """Running consensus for heavy tails: rewards are clipped before they are averaged.

    Parameters
    ----------
    zeta : float, default 1.0
        Factor on the radius.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.RobustGossip(zeta=0.5).needs_moments
    True

    References
    ----------
    After Landgren, Srivastava and Leonard (2016): coop-UCB2 with clipped rewards; see docs/semantics.md.
    """

    label: ClassVar[str] = "Robust gossip"

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        used = self.moments or moments
        return {"zeta": self.zeta, "eps": used.eps, "u": used.u, "tau": clipping_factor(used.p)}

    def rule(self, moments: Moments | None) -> AveragingRule:
        assert moments is not None
        zeta, p, exponent = self.zeta, moments.p, moments.eps / moments.p
        root, budget = math.pow(moments.u, 1.0 / p), clipping_factor(p) * moments.u
        return AveragingRule(
            exponent,
            scale=lambda t: factor_scale(_level(t), root, zeta, exponent),
            drift=lambda t: math.sqrt(math.log(t)),
            clip=lambda t: budget / _level(t),
            p=p,
        )


def _level(t: int) -> float:
    return 2.0 * math.log(max(t, 2))
