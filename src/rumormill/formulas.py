"""Every formula of the algorithms, once: plain Python over floats.

Agents call these functions; the kernels compile the very same ones, so that both get the same bits. They
check nothing: rumormill.validate states the ranges in which no power, product or sum leaves the floats.
Where it says "also arrays", numpy arrays may stand in for the floats. Powers are written with **, not with
math.pow: a compiler may take the former, but not the latter, out of a loop in which it does not change.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

Confidence = Literal["paper", "anytime"]
CONFIDENCES = ("paper", "anytime")
LN_2 = math.log(2.0)


# --- schedules and radii --------------------------------------------------------------------------------


def log_confidence(schedule: Confidence, t: int, n_agents: int) -> float:
    """L_t = ln(1/δ_t): δ_t = t⁻² ("paper") or 1/(M t³) ("anytime", for which the union bound holds)."""
    if schedule == "paper":
        return 2.0 * math.log(t)
    return 3.0 * math.log(t) + math.log(n_agents)


def default_eps(tail_index: float) -> float:
    """1 where variances are finite, else 0.85 (tail_index - 1): not too near the infinite moment."""
    return 1.0 if tail_index > 2.0 else 0.85 * (tail_index - 1.0)


def radius_scale(L: float, root: float, c: float, shift: float, exponent: float) -> float:
    """The radius at n = 1 with a constant c: m^(1/p) (c (L + shift))^(eps/p), root = m^(1/p)."""
    return root * (c * (L + shift)) ** exponent


def factor_scale(L: float, root: float, zeta: float, exponent: float) -> float:
    """The radius at n = 1 with a factor zeta: zeta m^(1/p) L^(eps/p), root = m^(1/p)."""
    return zeta * root * L**exponent


def shrinkage(n: float, exponent: float) -> float:
    """n^(-eps/p), by which the radius shrinks with the samples."""
    return n**-exponent


def upper_index(mean: float, scale: float, shrunk: float) -> float:
    """mean + radius."""
    return mean + scale * shrunk


# --- the trimmed mean -----------------------------------------------------------------------------------


def leaving_level(x: float, rank: float, u: float, p: float) -> float:
    """h = u rank / |x|^p: the sample is in the trimmed mean while L <= h."""
    size = abs(x) ** p
    return u * rank / size if size > 0.0 else math.inf


def literal_entry_level(x: float, rank: float, u: float, p: float) -> float:
    """The L from which the printed Algorithm 3 counts the sample: (|x|^p / rank)^p / u."""
    return (abs(x) ** p / rank) ** p / u


# --- the median of means --------------------------------------------------------------------------------


def group_count(n: float, L: float) -> int:
    """k = max(1, floor(min(1 + 8 L, n/2))), the number of groups of n >= 1 samples."""
    return max(1, math.floor(min(1.0 + 8.0 * L, n / 2.0)))


def add_to_prefix(hi: Any, lo: Any, x: Any) -> tuple[Any, Any]:
    """hi + lo + x as two floats again, some 32 digits in all (also arrays)."""
    total = hi + x
    part = total - hi
    rest = lo + ((hi - (total - part)) + (x - part))
    new = total + rest
    return new, rest - (new - total)


# --- Catoni's mean --------------------------------------------------------------------------------------


def catoni_curvature(eps: float) -> float:
    """C_p, the factor of |y|^p in psi; 1/2 at eps = 1, where it is also the limit."""
    p = 1.0 + eps
    return (eps / p) ** (p / 2.0) * ((1.0 - eps) / eps) ** (1.0 - p / 2.0)


def catoni_width(n: float, L: float, eps: float, v: float, curvature: float) -> float:
    """a: samples count in full within about 1/a of the root."""
    if eps == 1.0:
        return math.sqrt(2.0 * L * (n - 2.0 * L) / v) / n
    # exp(eps ln 2) for 2^eps: compilers turn a power of two into another function, with other last bits.
    return (L / (n * eps * math.exp(eps * LN_2) * curvature * v)) ** (1.0 / (1.0 + eps))


def catoni_defined(n: float, L: float, eps: float) -> bool:
    """Whether the root exists: always for eps < 1, else for n > 2 L."""
    return n >= 1.0 and (eps < 1.0 or n > 2.0 * L)


def catoni_psi(size: Any, eps: float, curvature: float) -> tuple[Any, Any]:
    """psi and its slope at size >= 0 (also arrays): ln(1 + y + C_p y^p)."""
    tail = curvature * (size if eps == 1.0 else size**eps)
    rise = size + tail * size
    return np.log1p(rise), (1.0 + (1.0 + eps) * tail) / (1.0 + rise)


# Newton needs five or so steps; if it has not settled by then, halving the bracket will.
CATONI_STEPS = 50


def catoni_step(
    theta: float, low: float, high: float, a: float, f: float, size: float, slope: float, steps: int
) -> tuple[float, float, float, bool]:
    """The next theta, low, high of the root of f = sum psi(a (x - theta)), and whether theta is the root.

    size is the sum of |psi| and slope that of psi' at theta. It runs until a step is lost in the rounding of
    the sum, so that the root does not remember where the search began. Where rounding spans a good part of
    the width 1/a the slope is no guide, and only the bracket decides.
    """
    if f > 0.0:
        low = theta
    elif f < 0.0:
        high = theta
    else:
        return theta, low, high, True
    descent = a * slope
    target = theta + f / descent
    noise = 1e-16 * (abs(theta) + size / descent)
    if abs(target - theta) <= noise and a * noise < 1e-3:
        return min(max(target, low), high), low, high, True
    if low < target < high and steps < CATONI_STEPS:
        return target, low, high, False
    middle = low / 2.0 + high / 2.0
    return middle, low, high, middle in (low, high)


# --- consensus ------------------------------------------------------------------------------------------


def consensus_scale(t: float, rho: float, p: float) -> float:
    """(6 ρ t^(2/3))^(1/p), the radius at n_eff = 1."""
    return (6.0 * rho * t ** (2.0 / 3.0)) ** (1.0 / p)


def consensus_index(
    s: float, n: float, n_agents: float, epsilon: float, scale: float, exponent: float
) -> float:
    """s/n + scale n_eff^-exponent with n_eff = M n² / (n + ε_v) and exponent eps/p."""
    n_eff = n_agents * n * n / (n + epsilon)
    return s / n + scale * n_eff**-exponent


def consensus_average(own: float, heard: float, n_heard: float, weight: float) -> float:
    """One row of P: what was not heard keeps the own value, so that the weights still sum to one."""
    return (1.0 - weight * n_heard) * own + weight * heard
