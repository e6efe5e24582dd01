"""Lower bounds on regret, and the KL-inf divergence they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import (
    AlphaStable,
    Arm,
    Bandit,
    Bernoulli,
    Empirical,
    Gaussian,
    LogNormal,
    Pareto,
    RewardSource,
    StudentT,
    TwoPoint,
)
from rumormill.errors import InputError
from rumormill.theory.family import Assumption, Form, check_form
from rumormill.validate import eps as check_eps
from rumormill.validate import inside, whole

Density = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Integrals are taken in y with x = sinh(y), out to |x| = 1e5: beyond it less than 1e-8 is left.
REACH = math.asinh(1e5)
KNOTS, FAINT = 241, 1e-13


@dataclass(frozen=True)
class Divergence:
    """KL-inf (infinite where no law of the family has so large a mean) and the family."""

    value: float
    family: str


def divergence(arm: Arm, mean: float) -> Divergence:
    """KL-inf: the smallest KL(arm, Q) over the laws Q of the arm's family whose mean is beyond the given one.

    Beyond: above, if the given mean is above that of the arm (rewards), else below (costs).

    Each law has the family that changes its mean and keeps the rest:

        Gaussian, Student t, stable     the location (closed form for the Gaussian, else an integral)
        two-point, Bernoulli            the probability of the upper value (closed form)
        log-normal                      mu of the exponent (closed form)
        Pareto                          the tail (closed form; a shift would be visible in one sample)
        empirical                       any law that does not exceed the largest value, or does not fall below
                                        the smallest (one-dimensional dual)

    Parameters
    ----------
    arm : Arm
        A built-in law.
    mean : float
        Another mean than that of the arm.

    Returns
    -------
    Divergence
        The value, infinite where no law of the family has such a mean, and the family.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.theory.divergence(rm.Gaussian(loc=0.0), 1.0).value
    0.5
    """
    if not (math.isfinite(mean) and mean != arm.mean):
        raise InputError(f"mean = {mean!r} is not allowed: another one than the mean {arm.mean!r} of {arm!r}")
    if type(arm) not in DIVERGENCES:
        raise InputError(
            f"no family is known for {arm!r}, so there is no lower bound: it is known for the built-in laws "
            "only"
        )
    return DIVERGENCES[type(arm)](arm, mean)


# --- one function per law -------------------------------------------------------------------------------


def _gaussian(arm: Gaussian, mean: float) -> Divergence:
    return Divergence((mean - arm.mean) ** 2 / (2 * arm.scale**2), "Gaussian laws of this variance")


def _two_point(arm: TwoPoint, mean: float) -> Divergence:
    q = (mean - arm.low) / (arm.high - arm.low)
    return Divergence(bernoulli(arm.probability, q), "laws on the same two points")


def _log_normal(arm: LogNormal, mean: float) -> Divergence:
    family = "log-normal laws of this sigma and shift"
    if mean <= arm.shift:
        return Divergence(math.inf, family)
    mu = math.log(mean - arm.shift) - arm.sigma**2 / 2
    return Divergence((mu - arm.mu) ** 2 / (2 * arm.sigma**2), family)


def _pareto(arm: Pareto, mean: float) -> Divergence:
    family, ratio = "Pareto laws of this scale and shift", (mean - arm.shift) / arm.scale
    if ratio <= 1:
        return Divergence(math.inf, family)
    tail = ratio / (ratio - 1)
    return Divergence(math.log(arm.tail / tail) + tail / arm.tail - 1, family)


def _empirical(arm: Empirical, mean: float) -> Divergence:
    data = np.asarray(arm.data)
    if mean < arm.mean:
        return Divergence(_bounded(-data, -mean), "laws that do not fall below the smallest value")
    return Divergence(_bounded(data, mean), "laws that do not exceed the largest value")


def _student_t(arm: StudentT, mean: float) -> Divergence:
    value = location_divergence(_student_density(arm.df), abs(mean - arm.mean) / arm.scale)
    return Divergence(value, "the same law, moved")


def _alpha_stable(arm: AlphaStable, mean: float) -> Divergence:
    gap = mean - arm.mean
    if arm.alpha == 2:
        return Divergence(gap**2 / (4 * arm.scale**2), "Gaussian laws of this variance")
    beta = math.copysign(1.0, gap) * arm.beta + 0.0  # a move to the left is that of the mirrored law
    value = location_divergence(_stable_density(arm.alpha, beta), abs(gap) / arm.scale)
    return Divergence(value, "the same law, moved")


# By the very class: a subclass may have other densities.
DIVERGENCES: dict[type[Arm], Callable[[Any, float], Divergence]] = {
    Gaussian: _gaussian,
    TwoPoint: _two_point,
    Bernoulli: _two_point,
    LogNormal: _log_normal,
    Pareto: _pareto,
    Empirical: _empirical,
    StudentT: _student_t,
    AlphaStable: _alpha_stable,
}


# --- what they compute with -----------------------------------------------------------------------------


def bernoulli(p: float, q: float) -> float:
    """KL between coins; infinite for q outside (0, 1)."""
    if not 0 < q < 1:
        return math.inf
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def location_divergence(density: Density, gap: float) -> float:
    """KL(f, f moved by gap) = ∫ f(x) ln(f(x) / f(x - gap)) dx for a standard density f > 0.

    Both peaks, at 0 and at the gap, get a grid of their own that thins out like sinh on either side.
    """
    half = math.asinh(gap / 2)
    total = 0.0
    for peak, side, end in ((0.0, -1, REACH), (0.0, 1, half), (gap, -1, half), (gap, 1, REACH)):
        y, weight = _panels(end)
        x = peak + side * np.sinh(y)
        here, there = density(x), density(x - gap)
        seen = (here > 0) & (there > 0)
        ratio = np.log(here[seen] / there[seen])
        total += float((weight[seen] * np.cosh(y[seen]) * here[seen] * ratio).sum())
    return total


def _panels(end: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on (0, end): Gauss-Legendre on pieces no longer than 1/2."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0.0, end, max(1, math.ceil(2 * end)) + 1)
    width = np.diff(edges)[:, None]
    y = edges[:-1, None] + width * (nodes + 1) / 2
    return y.ravel(), (width * weights / 2).ravel()


def _student_density(df: float) -> Density:
    peak = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    return lambda x: peak * np.exp(-(df + 1) / 2 * np.log1p(x**2 / df))


@lru_cache(maxsize=32)
def _stable_density(alpha: float, beta: float) -> Density:
    """The stable density, interpolated: SciPy takes milliseconds for each value. All arms share it.

    Where it is below FAINT it counts as zero: no share of the divergence worth naming is there.
    """
    import warnings

    from scipy.interpolate import CubicSpline
    from scipy.stats import levy_stable

    y = np.linspace(-REACH, REACH, KNOTS)
    with warnings.catch_warnings():  # the integrator complains where the density is next to nothing
        warnings.simplefilter("ignore")
        values = levy_stable.pdf(np.sinh(y), alpha, beta)
    bright = np.flatnonzero(values > FAINT)
    inside = slice(bright[0], bright[-1] + 1)
    log_density = CubicSpline(y[inside], np.log(np.maximum(values[inside], FAINT)))
    low, high = y[inside][0], y[inside][-1]

    def density(x: NDArray[np.float64]) -> NDArray[np.float64]:
        at = np.arcsinh(x)
        return np.where((at >= low) & (at <= high), np.exp(log_density(np.clip(at, low, high))), 0.0)

    return density


def _bounded(data: NDArray[np.float64], mean: float) -> float:
    """max over 0 <= l <= 1/(b - mean) of E ln(1 - l (X - mean)), b the largest value (Honda and Takemura)."""
    from scipy.optimize import minimize_scalar

    top = float(data.max())
    if mean >= top:
        return math.inf
    # At the far end the largest value gives ln 0: stop just short of it.
    end = (1 - 1e-12) / (top - mean)
    found = minimize_scalar(
        lambda slope: -float(np.log1p(-slope * (data - mean)).mean()),
        bounds=(0.0, end),
        method="bounded",
        options={"xatol": 1e-12 * end},
    )
    return max(0.0, -float(found.fun))


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
    """The coefficient of ln T below which the regret of the whole group cannot stay asymptotically."""

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
    """The asymptotic lower bound of a bandit with known laws.

    liminf R(T) / ln T >= sum over arms of gap / KL-inf, for every policy that is consistent on the family and
    any number of agents. It says nothing about any one T.

    Parameters
    ----------
    bandit : Bandit
        Arms with built-in laws, of rewards or of costs.

    Returns
    -------
    LowerBound
        The coefficient of ln T, by arm.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.theory.lower_bound(rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])).coefficient
    2.0

    References
    ----------
    Lai and Robbins (1985); Burnetas and Katehakis (1996).
    """
    if not isinstance(bandit, Bandit):
        raise InputError(f"a lower bound needs the laws of the arms, and {bandit!r} has none: give a Bandit")
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

    Parameters
    ----------
    gap : float
        Difference of the means, in (0, 1/4).
    eps : float
        Order of the bounded moment minus one, in (0, 1].
    n_arms : int
        Number K of arms, at least 2.
    form : "corrected" | "printed", default "corrected"
        Which formula.

    Returns
    -------
    float
        The coefficient of ln T.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.theory.two_point_coefficient(0.125, 1.0, 2)
    7.5
    """
    check_form(form)
    gap, eps, n_arms = inside("gap", gap, 0, 0.25), check_eps("eps", eps), whole("n_arms", n_arms, 2)
    lead: float = 2 ** (1 - 1 / eps) * gap ** (-1 - 1 / eps)
    if form == "printed":
        return n_arms * gap * lead
    return (n_arms - 1) * gap * (lead - 4)
