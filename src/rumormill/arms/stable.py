"""α-stable rewards: the heavy tails of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Arm, integrate, require_finite, require_positive
from rumormill.arms.laws import Gaussian
from rumormill.errors import InputError
from rumormill.formulas import centred, stable_parts
from rumormill.validate import above, between

# Draws are made in pieces that stay in the processor's cache. The size is part of what
# a seed means: another one gives other (equally good) draws.
PIECE = 16384


@dataclass(frozen=True, kw_only=True)
class AlphaStable(Arm):
    """The stable law S(alpha, beta, scale, loc) in Nolan's parametrisation 1.

    Its characteristic function is exp(i loc s - |scale s|^alpha (1 - i beta sign(s) tan(pi alpha / 2)))
    for alpha != 1, and exp(i loc s - |scale s| (1 + i beta (2/pi) sign(s) ln|s|)) for alpha = 1. For
    alpha > 1 the mean is loc, for every beta; for alpha <= 1 there is no mean. alpha = 2 is the Gaussian
    N(loc, 2 scale^2).

    Parameters
    ----------
    alpha : float
        Tail index, in (0, 2]; moments of order below alpha are finite
    loc : float, default 0.0
        Location, in the unit of rewards; the mean for alpha > 1
    scale : float, default 1.0
        Scale, in the unit of rewards
    beta : float, default 0.0
        Skewness, from -1 to 1

    Examples
    --------
    >>> import rumormill as rm
    >>> round(rm.AlphaStable(alpha=1.9).moment(1.8), 3)
    3.385

    References
    ----------
    Nolan (2020), "Univariate Stable Distributions"; draws by Chambers, Mallows and Stuck (1976).
    """

    alpha: float
    loc: float = 0.0
    scale: float = 1.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        above("AlphaStable: alpha", self.alpha, 0, 2)
        between("AlphaStable: beta", self.beta, -1, 1)
        require_finite("AlphaStable", loc=self.loc)
        require_positive("AlphaStable", scale=self.scale)

    def at_mean(self, mean: float) -> AlphaStable:
        return replace(self, loc=mean)

    @property
    def mean(self) -> float:
        if self.alpha <= 1:
            raise InputError(
                f"an alpha-stable law with alpha = {self.alpha!r} has no mean: choose alpha in (1, 2]"
            )
        return float(self.loc)

    @property
    def tail_index(self) -> float:
        return math.inf if self.alpha == 2 else float(self.alpha)

    @property
    def sub_gaussian_scale(self) -> float | None:
        return math.sqrt(2) * self.scale if self.alpha == 2 else None

    def standard(self) -> tuple[Arm, float, float]:
        if self.alpha == 2:
            return Gaussian(loc=0.0, scale=1.0), *self._place()
        # Adding 0.0 makes -0.0 and 0.0 the same law, as they compare.
        return AlphaStable(alpha=float(self.alpha), beta=float(self.beta) + 0.0), *self._place()

    def _place(self) -> tuple[float, float]:
        """Where the standard law is moved, and by how much it is stretched before."""
        loc = float(self.loc)
        if self.alpha == 2:
            return loc, math.sqrt(2) * self.scale
        if self.alpha == 1:
            # With alpha = 1 a skewed law moves when it is stretched.
            loc += self.beta * (2 / math.pi) * self.scale * math.log(self.scale)
        return loc, float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        loc, scale = self._place()
        if self.alpha == 2:
            draws = rng.standard_normal(size)
        else:
            draws = np.empty(size)
            flat = draws.reshape(-1)
            # With alpha far below 1 the largest draws are beyond the largest float: they are infinite.
            with np.errstate(over="ignore", divide="ignore"):
                if self.beta == 0:
                    _fill_symmetric(rng, self.alpha, flat)
                else:
                    _fill_skewed(rng, self.alpha, self.beta, flat)
        if scale != 1.0:
            draws *= scale
        if loc != 0.0:
            draws += loc
        return draws

    def _moment(self, p: float, center: float) -> float:
        if self.alpha == 2:
            return Gaussian(loc=self.loc, scale=math.sqrt(2) * self.scale)._moment(p, center)
        loc, scale = self._place()
        shift = (loc - center) / scale
        return float(scale**p * _shifted_moment(p, self.alpha, self.beta, shift))


def _fill_symmetric(rng: np.random.Generator, alpha: float, out: NDArray[np.float64]) -> None:
    """Chambers–Mallows–Stuck for beta = 0: `formulas.stable_parts`, and one power of one of them.

    The logarithm and the exponential are numpy's in either case: they are part of what a seed means.
    """
    shape = _shaping()
    room = np.empty(min(PIECE, out.size))
    for start in range(0, out.size, PIECE):
        draws = out[start : start + PIECE]
        rng.random(out=draws)
        if alpha == 1:  # the power is 1, and no W is drawn
            draws[:] = stable_parts(draws, 1.0, alpha)[0]
            continue
        power = room[: draws.size]
        rng.standard_exponential(out=power)
        shape(draws, power, alpha)
        np.log(power, out=power)
        power *= (1 - alpha) / alpha
        np.exp(power, out=power)
        draws *= power


Shaping = Callable[[NDArray[np.float64], NDArray[np.float64], float], None]


@cache
def _shaping() -> Shaping:
    """The formula in a compiled loop, with the same bits; on whole arrays where there is no compiler."""
    try:
        from rumormill.kernels.counter_rng import shape_stable
    except ModuleNotFoundError:
        return plain_shaping
    return shape_stable


def plain_shaping(u: NDArray[np.float64], wait: NDArray[np.float64], alpha: float) -> None:
    """Put `formulas.stable_parts` of u and wait in their places."""
    u[:], wait[:] = stable_parts(u, wait, alpha)


def _fill_skewed(rng: np.random.Generator, alpha: float, beta: float, out: NDArray[np.float64]) -> None:
    """Chambers–Mallows–Stuck with skew (Weron's form, location 0 and scale 1)."""
    angle = np.pi * centred(rng.random(out.size))
    wait = rng.standard_exponential(out.size)
    cosine = np.cos(angle)
    if alpha == 1:
        tilted = np.pi / 2 + beta * angle
        out[:] = (2 / np.pi) * (tilted * np.tan(angle) - beta * np.log((np.pi / 2) * wait * cosine / tilted))
        return
    skew = beta * math.tan(math.pi * alpha / 2)
    turned = alpha * angle + math.atan(skew)
    power = (np.cos(angle - turned) / (cosine * wait)) ** ((1 - alpha) / alpha)
    out[:] = (1 + skew**2) ** (1 / (2 * alpha)) * np.sin(turned) / cosine * power


@lru_cache(maxsize=4096)  # the points of a sweep share their arms
def _shifted_moment(p: float, alpha: float, beta: float, shift: float) -> float:
    """E|Z + shift|^p of the standard law Z, alpha < 2, 0 < p < alpha.

    From E|Y|^p = (2/pi) sin(pi p/2) Gamma(1+p) ∫ (1 - Re phi_Y(s)) s^(-1-p) ds. The closed form of E|Z|^p
    is taken out, so that only a difference of two cosines is left to integrate.
    """
    skew = 0.0 if alpha == 1 else beta * math.tan(math.pi * alpha / 2)
    centred = _centred_moment(p, alpha, skew)
    if shift == 0 and (alpha != 1 or beta == 0):
        return centred
    factor = (2 / math.pi) * math.sin(math.pi * p / 2) * math.gamma(1 + p)
    size = (centred + abs(shift) ** p) / factor

    def waves(s: float) -> float:
        """cos(A) - cos(A + s shift) with A = skew s^alpha, without cancellation; likewise for alpha = 1."""
        if alpha == 1:
            return 2 * math.sin(s * (shift / 2 - beta / math.pi * math.log(s))) ** 2
        return 2 * math.sin(skew * s**alpha + s * shift / 2) * math.sin(s * shift / 2)

    # Near 0 the waves fall at least like s^order: v = s^(order - p) takes the singularity away.
    order = 1.5 if alpha == 1 else 1 + min(alpha, 1.0)

    def near(v: float) -> float:
        s = max(math.pow(v, 1 / (order - p)), 1e-150)
        return waves(s) * math.pow(s, -order) * math.exp(-(s**alpha)) / (order - p)

    def far(log_s: float) -> float:
        s = math.exp(log_s)
        return waves(s) * math.exp(-(s**alpha) - p * log_s)

    # Beyond `end` exp(-s^alpha) is below 1e-19.
    bend, end = 1 / max(1.0, abs(shift)), 44 ** (1 / alpha)
    total = integrate(near, 0.0, bend ** (order - p), size=size)
    if abs(shift) < 10 or (alpha == 1 and beta != 0):
        total += integrate(far, math.log(bend), math.log(end), size=size)
    else:
        total += _fast_waves(p, alpha, skew, shift, size)
    return centred + factor * total


def _fast_waves(p: float, alpha: float, skew: float, shift: float, size: float) -> float:
    """∫ (cos A - cos(A + s shift)) exp(-s^alpha) s^(-1-p) ds from 1/|shift| on, A = skew s^alpha.

    With r = s |shift| the fast waves are cos r and sin r, for which there is an integrator.
    """
    stretch = abs(shift)

    def damped(r: float, turn: float = 0.0) -> float:
        s_alpha = math.pow(r / stretch, alpha)
        return math.cos(skew * s_alpha + turn) * math.exp(-s_alpha) * math.pow(r, -1 - p)

    def quarter_turned(r: float) -> float:
        return damped(r, turn=math.copysign(math.pi / 2, shift))

    size *= stretch**-p
    end = math.log(44) / alpha + math.log(stretch)
    slow = integrate(lambda x: damped(math.exp(x)) * math.exp(x), 0.0, end, size=size)
    even = integrate(damped, 1.0, math.inf, size=size, weight="cos", wvar=1.0)
    odd = integrate(quarter_turned, 1.0, math.inf, size=size, weight="sin", wvar=1.0)
    return (slow - even - odd) * math.pow(stretch, p)


def _centred_moment(p: float, alpha: float, skew: float) -> float:
    """E|Z|^p of the standard law with skew = beta tan(pi alpha / 2)."""
    turn = math.cos(p / alpha * math.atan(skew)) * (1 + skew**2) ** (p / (2 * alpha))
    gammas = math.gamma(p) * math.gamma(1 - p / alpha)
    return float((2 / math.pi) * math.sin(math.pi * p / 2) * gammas * turn)
