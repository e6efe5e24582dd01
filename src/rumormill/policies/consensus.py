"""Consensus-UCB (Landgren et al. 2016, as the paper adapts it): the baseline that averages.

Sums and counts of every arm are averaged with the neighbours each round, with P = I - κ/d_max · Laplacian.
Index s/n + zeta r(t), n_eff = M n² / (n + ε_v), with one of three radii:

    "printed"      √(6 ρ t^(2/3) / n_eff)                     the paper's √(6 ρ t^(2/3)/M · (n + ε_v)/n²)
    "moment"       (6 ρ t^(2/3) / n_eff^eps)^(1/p)            our extension to eps < 1, the same at eps = 1
    "logarithmic"  ρ^(1/p) √(2 γ_c ln(t-1) / (G n_eff))       that of coop-UCB, γ_c = 1.01, G = 3/4

What differs from the printed text:
- ε^k there is indexed like an arm; it belongs to the *agent* v;
- κ = 1 gives P the eigenvalue -1 on regular bipartite graphs: the default is κ = d_max/(d_max + 1);
- it is stated for eps = 1, where ρ is a variance; for eps < 1 ρ, the p-th moment, takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.formulas import consensus_scale, coop_scale, moment_scale
from rumormill.graphs import Network, consensus_epsilon, epsilon_is_exact
from rumormill.policies.averaging import (
    AveragingPolicy,
    AveragingRule,
    ConsensusPlan,
    link_weight,
    root_moment,
)
from rumormill.validate import LARGEST_CONSTANT, LEAST_KAPPA, between, one_of, refused

RADII = ("printed", "moment", "logarithmic")
GAMMA_C = 1.01


@dataclass(frozen=True, kw_only=True)
class ConsensusUCB(AveragingPolicy):
    """Running consensus on sums and counts.

    Parameters
    ----------
    kappa : float | None, default None
        Weight of the neighbours in P = I - kappa/d_max Laplacian; by default d_max/(d_max + 1).
    epsilon : float | Sequence[float] | None, default None
        A number, or one per agent, in place of the spectral ε_v, which is exact up to 5,000 agents
        and beyond an estimate of an upper bound.
    radius : "printed" | "moment" | "logarithmic", default "printed"
        The paper's radius, its extension to moments of order p < 2, or that of coop-UCB.
    zeta : float, default 1.0
        Factor on the radius.
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.ConsensusUCB().plan(rm.Network.complete(4)).weight
    0.25

    References
    ----------
    Landgren, Srivastava and Leonard (2016), as adapted by Dubey and Pentland (2020).
    """

    label: ClassVar[str] = "Consensus"

    kappa: float | None = None
    epsilon: float | Sequence[float] | None = None
    radius: Literal["printed", "moment", "logarithmic"] = "printed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if str(self.radius) == "variance":
            raise InputError("radius = 'variance' is called 'printed' now")
        one_of("radius", self.radius, RADII)
        if self.kappa is not None:
            between("kappa", self.kappa, LEAST_KAPPA, 1)
        if self.epsilon is not None:
            try:
                values = np.atleast_1d(np.asarray(self.epsilon, dtype=float))
            except (TypeError, ValueError):
                values = np.array([np.nan])
            if values.ndim != 1 or not ((values >= 0).all() and (values <= LARGEST_CONSTANT).all()):
                raise refused(
                    "epsilon", self.epsilon, f"one number from 0 to {LARGEST_CONSTANT:g}, or one per agent"
                )
            scalar = np.ndim(self.epsilon) == 0
            object.__setattr__(self, "epsilon", float(values[0]) if scalar else tuple(values.tolist()))

    def plan(self, network: Network) -> ConsensusPlan:
        weight = link_weight(network, self.kappa)
        if self.epsilon is None:
            way = "exact" if epsilon_is_exact(network) else "estimated"
            return ConsensusPlan(weight, consensus_epsilon(network, self.kappa), {"epsilon_v": way})
        given = np.asarray(self.epsilon, dtype=np.float64)
        if given.ndim == 1 and len(given) != network.n_agents:
            raise InputError(f"epsilon has {len(given)} values for {network.n_agents} agents")
        return ConsensusPlan(weight, np.broadcast_to(given, network.n_agents).copy(), {"epsilon_v": "given"})

    def plan_key(self) -> object:
        return (type(self), self.kappa, self.epsilon)

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        used = self.moments or moments
        return {"radius": self.radius, "zeta": self.zeta, "eps": used.eps, "rho": used.rho}

    def rule(self, moments: Moments | None) -> AveragingRule:
        assert moments is not None
        zeta, rho, p = self.zeta, moments.rho, moments.p
        if self.radius == "printed":
            return AveragingRule(0.5, lambda t: zeta * consensus_scale(t, rho))
        if self.radius == "moment":
            return AveragingRule(moments.eps / p, lambda t: zeta * moment_scale(t, rho, p))
        sigma = zeta * root_moment(moments)
        return AveragingRule(0.5, lambda t: coop_scale(t, sigma, GAMMA_C))
