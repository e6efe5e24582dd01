"""Robust-UCB (Bubeck, Cesa-Bianchi and Lugosi 2013): M independent agents without messages.

Index mean_k + m^(1/p) (c L_t / n)^(eps/p) over the agent's own samples: Algorithm 1 with γ = 0.
Group regret O(M K Δ^(-1/eps) ln T): the baseline that cooperation must beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rumormill.policies.base import Seat
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.message_passing_policy import RobustPolicy


@dataclass(frozen=True, kw_only=True)
class RobustUCB(RobustPolicy):
    """Independent agents.

    Parameters
    ----------
    estimator : Estimator, default TrimmedMean()
        Robust mean that the index is built on.
    c : float | "theory" | None, default None
        Constant of the radius: a number, or "theory" for that of the estimator's lemma.
    zeta : float | None, default None
        The same constant as a factor on the radius, c = zeta^(p/eps); 1 if neither c nor zeta is
        given.
    confidence : "paper" | "anytime", default "paper"
        Schedule L_t = ln(1/delta_t): 2 ln t ("paper"), or ln(M t³) ("anytime"), for which the union
        bound of the proofs holds.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.
    forget : Forget | "restart" | None, default None
        Which samples are forgotten, for rewards that change: {"window": W}, {"discount": phi} (both count
        the samples taken in), "restart" (on an alarm), or None.

    Examples
    --------
    >>> import rumormill as rm
    >>> policy = rm.RobustUCB(c="theory")
    >>> policy.radius(rm.Moments(eps=1.0, u=2.0, rho=1.5)).constant
    16.0

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), "Bandits with heavy tail".
    """

    label: ClassVar[str] = "Robust"

    def agent(self, seat: Seat) -> DecentralizedAgent:
        return DecentralizedAgent(self, seat, gamma=0)
