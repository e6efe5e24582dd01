"""The abstract reward law (mean, tail index, moments, samples) and bounds on moments.

The objective says whether larger or smaller values are better: rewards are maximised, costs (latency,
loss, error) minimised. Agents always maximise. Costs are negated on their way to the agents and nowhere
else: means, gaps and regret stay in the unit of the caller.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError, SolverError
from rumormill.formulas import default_eps
from rumormill.validate import (
    LARGEST_MOMENT,
    LARGEST_REWARD,
    LEAST_MOMENT,
    NamedArguments,
    between,
    is_number,
    one_of,
    refused,
    reward,
)
from rumormill.validate import eps as check_eps

Objective = Literal["maximise", "minimise"]
OBJECTIVES: tuple[Objective, ...] = ("maximise", "minimise")
_ALSO = {"maximize": "maximise", "minimize": "minimise"}


def checked_objective(value: Any) -> Objective:
    """The objective; the American spelling is understood too."""
    known = _ALSO.get(value, value) if isinstance(value, str) else value
    found: Objective = one_of("objective", known, OBJECTIVES)
    return found


def sign_of(objective: Objective) -> float:
    """What a value is multiplied by on its way to an agent."""
    return 1.0 if objective == "maximise" else -1.0


def levelled(reward: Any, offset: Any, scale: Any) -> Any:
    """What an agent learns and sends of a reward: less its offset, then divided by its scale."""
    return (reward - offset) / scale


def best_of(means: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """The best mean along the last axis."""
    best: NDArray[np.float64] = means.max(axis=-1) if objective == "maximise" else means.min(axis=-1)
    return best


def gaps_of(means: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """By how much each mean is worse than the best along the last axis: never negative."""
    gaps: NDArray[np.float64] = np.abs(best_of(means, objective)[..., None] - means)
    return gaps


@dataclass(frozen=True, kw_only=True)
class Moments(metaclass=NamedArguments):
    """Bounds on the moments of all arms, of order p = 1 + eps.

    Parameters
    ----------
    eps : float
        Order of the moments minus one, in (0, 1]
    u : float
        Bound on the raw moment E|X|^p of every arm, in (unit of rewards)^p
    rho : float
        Bound on the central moment E|X - mean|^p of every arm, in (unit of rewards)^p

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Moments(eps=0.5, u=2.0, rho=1.5).p
    1.5

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), "Bandits with heavy tail".
    """

    eps: float
    u: float
    rho: float

    def __post_init__(self) -> None:
        check_eps("eps", self.eps)
        for name in ("u", "rho"):
            between(name, getattr(self, name), LEAST_MOMENT, LARGEST_MOMENT)

    @property
    def p(self) -> float:
        """The order 1 + eps of the bounded moments."""
        return 1.0 + self.eps


# Asked of the integrator, and the worst estimate of its error that is accepted, both relative.
WANTED = 1e-11
ACCEPTED = 1e-8


def integrate(
    f: Callable[[float], float], low: float, high: float, *, size: float = 0.0, **options: Any
) -> float:
    """∫ f from low to high, with an error that is negligible beside `size` (default: the integral itself)."""
    from scipy.integrate import quad

    # With full output quad returns its message instead of warning.
    value, error, *_ = quad(
        f, low, high, epsabs=WANTED * size, epsrel=WANTED, limit=1000, full_output=1, **options
    )
    if not error <= ACCEPTED * (size or abs(value)):
        raise SolverError(f"a moment could not be integrated: {value:.6g} with an error of up to {error:.2g}")
    return float(value)


class Arm(metaclass=NamedArguments):
    """Reward law of one arm; the abstract class of all laws.

    A user-defined law is a frozen dataclass with `mean`, `tail_index`, `sample` and `_moment`; a spec names
    it as "module:Class".

    Examples
    --------
    >>> import rumormill as rm
    >>> law = rm.StudentT(df=3.0, loc=1.0)
    >>> isinstance(law, rm.Arm), law.mean, law.tail_index
    (True, 1.0, 3.0)

    References
    ----------
    docs/tutorials/own-law-and-network.md: laws and networks step by step.
    """

    @property
    @abstractmethod
    def mean(self) -> float:
        """E X; an InputError where it does not exist."""

    @property
    @abstractmethod
    def tail_index(self) -> float:
        """E|X|^p is finite exactly for p below this order; `math.inf` when all are."""

    @property
    def sub_gaussian_scale(self) -> float | None:
        """σ with E exp(s (X - mean)) ≤ exp(s² σ²/2) for all s; None where there is none or none is known."""
        return None

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Independent rewards in an array of the given shape."""

    @abstractmethod
    def _moment(self, p: float, center: float) -> float:
        """E|X - center|^p for a finite order p > 0."""

    def moment(self, p: float, *, central: bool = False) -> float:
        """E|X|^p, or E|X - mean|^p if `central`: in closed form where there is one, else by quadrature."""
        if not (p > 0 and math.isfinite(p)):
            raise InputError(f"p = {p!r} is not an order of a moment: give a positive, finite number")
        if p >= self.tail_index:
            raise InputError(
                f"the moment of order p = {p!r} of {self!r} is infinite: give p below {self.tail_index!r}"
            )
        try:
            value = self._moment(p, self.mean if central else 0.0)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise InputError(
                f"the moment of order p = {p!r} of {self!r} is beyond the largest float: lower p"
            )
        return value

    def at_mean(self, mean: float) -> Arm:
        """The law moved so that its mean is the given one."""
        return Moved(law=self, by=reward("mean", mean) - self.mean)

    def default_eps(self) -> float:
        """The order of moments minus one that is near the best trade-off for this tail."""
        return default_eps(self.tail_index)

    def standard(self) -> tuple[Arm, float, float] | None:
        """(Z, loc, scale) with X = loc + scale Z, Z a law that can be compared; None without such a form.

        Arms with equal Z can share one draw per agent and round.
        """
        return None


@dataclass(frozen=True, kw_only=True)
class Moved(Arm):
    """Another law plus a constant: the result of `at_mean` for laws without a location parameter."""

    law: Arm
    by: float

    @property
    def mean(self) -> float:
        return self.law.mean + self.by

    @property
    def tail_index(self) -> float:
        return self.law.tail_index

    @property
    def sub_gaussian_scale(self) -> float | None:
        return self.law.sub_gaussian_scale

    def standard(self) -> tuple[Arm, float, float] | None:
        inner = self.law.standard()
        return None if inner is None else (inner[0], inner[1] + self.by, inner[2])

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return self.law.sample(rng, size) + self.by

    def _moment(self, p: float, center: float) -> float:
        return self.law._moment(p, center - self.by)


def require_finite(law: str, **values: float) -> None:
    """Refuse parameters outside the range of rewards: finite, at most 1e100 in size."""
    for name, value in values.items():
        reward(f"{law}: {name}", value)


def require_positive(law: str, **values: float) -> None:
    """Refuse parameters that are not above zero or larger than any reward."""
    for name, value in values.items():
        if not (is_number(value) and 0 < value <= LARGEST_REWARD):
            raise refused(f"{law}: {name}", value, f"a number above 0, at most {LARGEST_REWARD:g}")
