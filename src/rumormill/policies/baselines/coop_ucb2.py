"""coop-UCB2 (Landgren, Srivastava and Leonard 2016, 2021): running consensus with a logarithmic radius.

Sums and counts are averaged as in Consensus-UCB. With f = √ln(t-1),

    s/n + σ √(2 γ_c/G · (n + f)/(M n) · ln(t-1)/n)        γ_c > 1, G = 1 - η²/16 with η = 2

It needs the number of agents, not the spectrum of the network. σ is the sub-Gaussian scale of the rewards;
where it is not given, ρ^(1/p): the standard deviation for eps = 1, a stand-in for heavier tails. Regret
Σ 8 σ² γ_c ln T/(G Δ) up to a constant of the network, for sub-Gaussian rewards only.

Robust gossip is coop-UCB2 whose rewards are clipped at the source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rumormill.arms import Moments
from rumormill.formulas import clipping_factor, coop_drift, coop_scale, factor_scale
from rumormill.policies.averaging import AveragingPolicy, AveragingRule, root_moment
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, above, between


@dataclass(frozen=True, kw_only=True)
class CoopUCB2(AveragingPolicy):
    """Running consensus for light tails, with a logarithmic radius.

    Parameters
    ----------
    sigma : float | None, default None
        Sub-Gaussian scale of the rewards; by default rho^(1/p).
    gamma_c : float, default 1.01
        Constant in the logarithm's factor, above 1.
    zeta : float, default 1.0
        Factor on the radius.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.CoopUCB2(sigma=0.5).needs_moments
    False

    References
    ----------
    Landgren, Srivastava and Leonard (2016, 2021).
    """

    label: ClassVar[str] = "coop-UCB2"

    sigma: float | None = None
    gamma_c: float = 1.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma is not None:
            between("sigma", self.sigma, LEAST_CONSTANT, LARGEST_CONSTANT)
        above("gamma_c", self.gamma_c, 1, LARGEST_CONSTANT)

    @property
    def needs_moments(self) -> bool:
        return self.sigma is None

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        sigma = root_moment(self.moments or moments) if self.sigma is None else self.sigma
        return {"sigma": sigma, "gamma_c": self.gamma_c, "zeta": self.zeta}

    def rule(self, moments: Moments | None) -> AveragingRule:
        sigma = self.sigma
        if sigma is None:
            assert moments is not None
            sigma = root_moment(moments)
        scaled, gamma_c = self.zeta * sigma, self.gamma_c
        return AveragingRule(0.5, lambda t: coop_scale(t, scaled, gamma_c), coop_drift)


@dataclass(frozen=True, kw_only=True)
class RobustGossip(AveragingPolicy):
    """Running consensus for heavy tails: rewards are clipped before they are averaged.

    In round t a reward x of arm a enters the agent's sum as clip(x, ±B), and the sums are averaged as in
    consensus:

        B = (τ u (M n + 1) / L_t)^(1/p)                      n: the agent's count of the arm before the pull
        s/n + ζ u^(1/p) (L_t/n_eff)^(eps/p)                  n_eff = M n² / (n + √ln t),  L_t = 2 ln max(t, 2)

    τ is that of the clipped mean. An average is linear in clipped rewards, so averaging can be robust: the
    moment generating function of the clipped mean's lemma applies with the weights of P^j in place of 1/n,
    whose squares sum to at most (n + f)/(M n²). A sketch, not a proof.

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
