"""α-stable rewards: the heavy tails of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Arm, is_finite, require_finite, require_positive
from rumormill.arms.light import Gaussian
from rumormill.errors import InputError

# Draws are made in pieces whose few work arrays stay in the processor's cache.
PIECE = 4096


@dataclass(frozen=True, kw_only=True)
class AlphaStable(Arm):
    """The stable law S(alpha, beta, scale, loc) in Nolan's parametrisation 1.

    Its characteristic function is exp(i loc s - |scale s|^alpha (1 - i beta sign(s) tan(pi alpha / 2)))
    for alpha != 1, and exp(i loc s - |scale s| (1 + i beta (2/pi) sign(s) ln|s|)) for alpha = 1. So
    alpha in (0, 2] is the weight of the tails, beta in [-1, 1] the skew, and for alpha > 1 the mean is
    loc, whatever beta. For alpha <= 1 there is no mean. alpha = 2 is the Gaussian N(loc, 2 scale^2).

    >>> round(AlphaStable(alpha=1.9).moment(1.8), 3)
    3.385
    """

    alpha: float
    loc: float = 0.0
    scale: float = 1.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        if not (is_finite(self.alpha) and 0 < self.alpha <= 2):
            raise InputError(f"AlphaStable: alpha = {self.alpha!r} is not allowed: it must lie in (0, 2]")
        if not (is_finite(self.beta) and -1 <= self.beta <= 1):
            raise InputError(f"AlphaStable: beta = {self.beta!r} is not allowed: it must lie in [-1, 1]")
        require_finite("AlphaStable", loc=self.loc)
        require_positive("AlphaStable", scale=self.scale)

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

    def standard(self) -> tuple[Arm, float, float]:
        if self.alpha == 2:
            return Gaussian(loc=0.0, scale=1.0), float(self.loc), math.sqrt(2) * self.scale
        loc = float(self.loc)
        if self.alpha == 1:
            # With alpha = 1 a skewed law moves when it is stretched.
            loc += self.beta * (2 / math.pi) * self.scale * math.log(self.scale)
        # Adding 0.0 makes -0.0 and 0.0 the same law, as they compare.
        return AlphaStable(alpha=float(self.alpha), beta=float(self.beta) + 0.0), loc, float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        law, loc, scale = self.standard()
        if isinstance(law, Gaussian):
            draws = rng.standard_normal(size)
        else:
            draws = np.empty(size)
            flat = draws.reshape(-1)
            for start in range(0, flat.size, PIECE):
                piece = flat[start : start + PIECE]
                if self.beta == 0:
                    _fill_symmetric(rng, self.alpha, piece)
                else:
                    _fill_skewed(rng, self.alpha, self.beta, piece)
        if scale != 1.0:
            draws *= scale
        if loc != 0.0:
            draws += loc
        return draws

    def _moment(self, p: float, center: float) -> float:
        if self.alpha == 2:
            return Gaussian(loc=self.loc, scale=math.sqrt(2) * self.scale)._moment(p, center)
        _, loc, scale = self.standard()
        shift = (loc - center) / scale
        return float(scale**p * _shifted_moment(p, self.alpha, self.beta, shift))


def _fill_symmetric(rng: np.random.Generator, alpha: float, out: NDArray[np.float64]) -> None:
    """Chambers–Mallows–Stuck for beta = 0, with U uniform on (-pi/2, pi/2) and W exponential.

    sin(aU) / cos(U)^(1/a) (cos((1-a)U) / W)^((1-a)/a), written with one power as
    sin(aU) / cos(U) (cos((1-a)U) / (W cos U))^((1-a)/a).
    """
    angle = _uniform_angle(rng, out.size)
    if alpha == 1:
        np.tan(angle, out=out)
        return
    exponential = rng.standard_exponential(out.size)
    cosine = np.cos(angle)
    np.multiply(angle, alpha, out=out)
    np.sin(out, out=out)
    out /= cosine
    cosine *= exponential
    angle *= 1 - alpha
    np.cos(angle, out=angle)
    angle /= cosine
    np.log(angle, out=angle)
    angle *= (1 - alpha) / alpha
    np.exp(angle, out=angle)
    out *= angle


def _fill_skewed(rng: np.random.Generator, alpha: float, beta: float, out: NDArray[np.float64]) -> None:
    """Chambers–Mallows–Stuck with skew (Weron's form, location 0 and scale 1)."""
    angle = _uniform_angle(rng, out.size)
    exponential = rng.standard_exponential(out.size)
    if alpha == 1:
        tilted = np.pi / 2 + beta * angle
        logs = np.log((np.pi / 2) * exponential * np.cos(angle) / tilted)
        out[:] = (2 / np.pi) * (tilted * np.tan(angle) - beta * logs)
        return
    skew = beta * math.tan(math.pi * alpha / 2)
    turned = alpha * angle + math.atan(skew)
    cosine = np.cos(angle)
    power = (np.cos(angle - turned) / (cosine * exponential)) ** ((1 - alpha) / alpha)
    out[:] = (1 + skew**2) ** (1 / (2 * alpha)) * np.sin(turned) / cosine * power


def _uniform_angle(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Uniform on (-pi/2, pi/2)."""
    angle = rng.random(size)
    angle -= 0.5
    angle *= np.pi
    return angle


def _shifted_moment(p: float, alpha: float, beta: float, shift: float) -> float:
    """E|Z + shift|^p of the standard law Z, alpha < 2, 0 < p < alpha.

    From E|Y|^p = (2/pi) sin(pi p/2) Gamma(1+p) ∫ (1 - Re phi_Y(s)) s^(-1-p) ds. The closed form of E|Z|^p
    is taken out, so that only a difference of two cosines is left to integrate.
    """
    skew = 0.0 if alpha == 1 else beta * math.tan(math.pi * alpha / 2)
    centred = _centred_moment(p, alpha, skew)
    if shift == 0 and (alpha != 1 or beta == 0):
        return centred
    from scipy.integrate import quad

    def waves(s: float) -> float:
        """cos(A) - cos(B) of the two phases, without cancellation."""
        if alpha == 1:
            half = s * (shift / 2 - beta / math.pi * math.log(s))
            return 2 * math.sin(half) ** 2
        return 2 * math.sin(skew * s**alpha + s * shift / 2) * math.sin(s * shift / 2)

    # Near 0 the waves fall at least like s^order: v = s^(order - p) takes the singularity away.
    order = 1.5 if alpha == 1 else 1 + min(alpha, 1.0)

    def near(v: float) -> float:
        s = max(v ** (1 / (order - p)), 1e-150)
        return waves(s) * s**-order * math.exp(-(s**alpha)) / (order - p)

    def far(log_s: float) -> float:
        s = math.exp(log_s)
        return waves(s) * math.exp(-(s**alpha) - p * log_s)

    # Up to `bend` there is no full wave; beyond `end` exp(-s^alpha) is below 1e-19.
    end = 44 ** (1 / alpha)
    bend = min(1.0, end, 1 / abs(shift)) if shift else 1.0
    total = quad(near, 0.0, bend ** (order - p), epsabs=0.0, epsrel=1e-11, limit=1000)[0]
    total += quad(far, math.log(bend), math.log(end), epsabs=1e-12 * abs(total), epsrel=1e-11, limit=1000)[0]
    return float(centred + (2 / math.pi) * math.sin(math.pi * p / 2) * math.gamma(1 + p) * total)


def _centred_moment(p: float, alpha: float, skew: float) -> float:
    """E|Z|^p of the standard law with skew = beta tan(pi alpha / 2)."""
    turn: float = math.cos(p / alpha * math.atan(skew)) * (1 + skew**2) ** (p / (2 * alpha))
    return (2 / math.pi) * math.gamma(p) * math.sin(math.pi * p / 2) * math.gamma(1 - p / alpha) * turn
