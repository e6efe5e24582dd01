"""Lower bounds: what no policy can beat, however agents talk.

liminf R(T) / ln T >= sum over arms of gap / KL-inf, for every policy that is consistent on the family: the
number of agents does not enter. It is asymptotic: it says nothing about any one T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rumormill.arms import Bandit, RewardSource
from rumormill.errors import InputError
from rumormill.theory.bound import Assumption, Form, check_form
from rumormill.theory.divergence import divergence
from rumormill.validate import eps as check_eps
from rumormill.validate import inside, whole


@dataclass(frozen=True)
class ArmTerm:
    """One arm's share: gap / divergence, zero where the divergence is infinite."""

    arm: int
    gap: float
    divergence: float
    family: str

    @property
    def coefficient(self) -> float:
        return self.gap / self.divergence


@dataclass(frozen=True)
class LowerBound:
    """The coefficient of ln T below which the regret of the whole group cannot stay in the long run."""

    arms: tuple[ArmTerm, ...]

    assumptions: ClassVar[tuple[Assumption, ...]] = (
        Assumption(
            "Asymptotic: R(T)/ln T is not below the coefficient as T grows; nothing is said about one T."
        ),
        Assumption("For policies that are consistent on the named family, with any number of agents."),
    )

    @property
    def coefficient(self) -> float:
        """The sum over arms of gap / KL-inf."""
        return sum(term.coefficient for term in self.arms)

    def at(self, horizon: int) -> float:
        """coefficient * ln T: a slope to draw beside a curve, not a bound at this T."""
        return self.coefficient * math.log(horizon)


def lower_bound(bandit: RewardSource) -> LowerBound:
    """The asymptotic lower bound of a bandit with known laws."""
    if not isinstance(bandit, Bandit):
        raise InputError(f"a lower bound needs the laws of the arms, and {bandit!r} has none: give a Bandit")
    if bandit.objective != "maximise":
        raise InputError("the lower bounds are those of rewards: there are none for arms whose costs count")
    terms = []
    for k, (arm, gap) in enumerate(zip(bandit.arms, bandit.gaps.tolist(), strict=True)):
        if gap > 0:
            found = divergence(arm, bandit.best_mean)
            terms.append(ArmTerm(k, gap, found.value, found.family))
    return LowerBound(tuple(terms))


def two_point_coefficient(gap: float, eps: float, n_arms: int, form: Form = "corrected") -> float:
    """The closed lower coefficient of ln T for one `two_point_pair` best arm and n_arms - 1 worse ones.

    corrected: (K - 1) gap (2^(1-1/eps) gap^(-1-1/eps) - 4); printed: K 2^(1-1/eps) gap^(-1/eps), which drops
    the -4 and counts the best arm too.
    """
    check_form(form)
    gap, eps, n_arms = inside("gap", gap, 0, 0.25), check_eps("eps", eps), whole("n_arms", n_arms, 2)
    lead: float = 2 ** (1 - 1 / eps) * gap ** (-1 - 1 / eps)
    if form == "printed":
        return n_arms * gap * lead
    return (n_arms - 1) * gap * (lead - 4)
