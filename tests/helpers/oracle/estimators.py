"""Estimators and radii, as definitions over a list of samples in order of arrival."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from helpers.oracle.rules import INF, Found, Rules, Samples


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


# ---- means of the paper ----------------------------------------------------------------------------------


def c_p(eps: float) -> float:
    p = 1 + eps
    return (eps / p) ** (p / 2) * ((1 - eps) / eps) ** (1 - p / 2) if eps < 1 else 0.5


def trimmed(x: Samples, L: float, r: Rules) -> float:
    return sum(v for i, v in enumerate(x, 1) if abs(v) ** r.p * L <= r.u * i) / len(x)


def empirical(x: Samples, L: float, r: Rules) -> float:
    return sum(x) / len(x)


def median_of_means(x: Samples, L: float, r: Rules) -> float:
    k = max(1, math.floor(min(1 + 8 * L, len(x) / 2)))
    N = len(x) // k
    return float(np.median([sum(x[g * N : (g + 1) * N]) / N for g in range(k)]))


def bucket_median(x: Samples, L: float, r: Rules) -> float:
    k = min(512, max(1, math.floor(min(1 + 8 * L, len(x) / 2))))
    groups: list[list[float]] = [[] for _ in range(k)]
    for i, v in enumerate(x):
        groups[i % 1024 % k].append(v)
    return float(np.median([sum(group) / len(group) for group in groups]))


def catoni(samples: Samples, L: float, r: Rules) -> float:
    n, p, x = len(samples), r.p, np.array(samples)
    if r.eps == 1:
        if n <= 2 * L:
            return INF
        a = math.sqrt(2 * L * (n - 2 * L) / r.rho) / n
    else:
        a = (L / (n * r.eps * 2**r.eps * c_p(r.eps) * r.rho)) ** (1 / p)

    def total(theta: float) -> float:
        y = np.abs(a * (x - theta))
        return float(np.sum(np.sign(x - theta) * np.log1p(y + c_p(r.eps) * y**p)))

    low, high = float(x.min()), float(x.max())
    return float(brentq(total, low, high, xtol=1e-300, rtol=1e-15)) if low < high else low


# ---- the clipped mean ------------------------------------------------------------------------------------


def lemma_b(s: float, p: float) -> float:
    eps = p - 1
    near: float = (math.exp(s) - 1 - s) / s**p
    far: float = ((1 - math.exp(-s)) * p / eps) ** (-eps) / p
    return max(near, far)


def best_s(p: float) -> float:
    """The s with the smallest b, by golden section on ln b, rounded to four digits."""
    low, high = 0.05, 3.0
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if math.log(lemma_b(a, p)) < math.log(lemma_b(b, p)):
            high = b
        else:
            low = a
    return round((low + high) / 2, 4)


@lru_cache
def clipping(p: float) -> tuple[float, float]:
    """(τ, c) of the lemma."""
    eps, s = p - 1, best_s(p)
    b = lemma_b(s, p)
    return s**p * eps * b, p ** (p / eps) * b ** (1 / eps) / eps


def clipped(x: Samples, L: float, r: Rules, last: float = INF) -> float:
    tau, _ = clipping(r.p)
    B = (tau * r.u * len(x) / L) ** (1 / r.p) if L > 0 else INF
    # The sketch keeps 128 samples, or as many as can exceed B at the last L; below them nothing is clipped.
    room = (
        max(128, math.ceil(last / tau + math.sqrt(2 * last * last / tau) + last / 3)) if last < INF else INF
    )
    if len(x) >= room:
        B = max(B, sorted(map(abs, x))[-int(room)])
    return counted(x, B, B) / len(x)


def counted(x: Samples, low: float, high: float) -> float:
    """The sum of clip(v, -low, high), clipped samples by their number."""
    above, below = sum(v > high for v in x), sum(v < -low for v in x)
    total = sum(v for v in x if -low <= v <= high)
    return total + ((above - below) * low + above * (high - low) if above + below else 0.0)


MEANS: dict[str, Any] = {
    "trimmed": trimmed,
    "empirical": empirical,
    "median-of-means": median_of_means,
    "bucket-median": bucket_median,
    "catoni": catoni,
    "clipped": clipped,
}


def radius(n: float, L: float, r: Rules, m: float | None = None) -> float:
    """m^(1/p) (c L / n)^(eps/p) of one of MEANS; infinite where the estimator or its lemma does not reach."""
    eps, p, name = r.eps, r.p, r.estimator
    of_catoni = name == "catoni" and m is None
    m = (r.u if name in ("trimmed", "clipped") else r.rho) if m is None else m
    root: float = m ** (1 / p)
    rate: float = (L / n) ** (eps / p)
    if of_catoni and eps == 1 and n <= 2 * L:
        return INF
    if r.c is None:
        return r.factor * root * rate
    if r.c != "theory":
        return root * float((float(r.c) * L / n) ** (eps / p))
    if name == "trimmed":
        return 4 * root * rate
    if name == "clipped":
        return root * float((clipping(p)[1] * L / n) ** (eps / p))
    if name == "median-of-means":
        return INF if n < 16 * L + 2 else root * float((16 * 12 ** (1 / eps) * (L + 1 / 8) / n) ** (eps / p))
    if name == "bucket-median":
        outside = n < 16 * L + 2 or 1 + 8 * L > 512
        return INF if outside else root * float((48 * 12 ** (1 / eps) * (L + 1 / 8) / n) ** (eps / p))
    if name == "catoni" and eps == 1:
        return INF if n < 4 * L else root * float((4 * L / n) ** (eps / p))
    if name == "catoni":
        by_lemma: float = 1.1 * (2**eps * c_p(eps)) ** (1 / p) * p * eps ** (-eps / p) * root * rate
        return by_lemma if by_lemma <= float((0.1 * p * r.rho) ** (1 / p)) else INF
    raise ValueError("no theory constant")


# ---- means that bring their own index; each gives (mean, index) ------------------------------------------


def threshold(y: Samples, c: float) -> float | None:
    """The M > 0 with sum of min(y²/M², 1) = c, or None."""
    a = sorted(map(abs, y), reverse=True)
    if sum(v > 0 for v in a) <= c:
        return None
    for j in range(len(a)):  # j samples above M
        if j < c:
            M = math.sqrt(math.fsum(v * v for v in a[j:]) / (c - j))
            if a[j] <= M and (j == 0 or a[j - 1] >= M):
                return M
    # rounding at an edge: the sum is exactly c at one of the samples
    return min(a, key=lambda M: abs(sum(min(v * v / M**2, 1) for v in a) - c) if M > 0 else INF)


def self_tuned(
    x: Samples,
    L: float,
    r: Rules,
    C: float = 2.0,
    kappa: float = 1.0,
    omega: float = 16.0,
    guard: float = 4.0,
    pilot: int = 15,
) -> tuple[float, float]:
    n = len(x)
    if n < pilot or n == 0:
        return INF, INF
    centre = float(np.median(x[:pilot])) if pilot else 0.0
    if n <= guard * L:
        return INF, INF
    y = [v - centre for v in x]
    M = threshold(y, kappa * L)
    if M is None:
        return INF, INF
    mean = centre + counted(y, M, omega * M) / n
    return mean, mean + C * M * L / n


def median_bound(x: Samples, L: float, r: Rules, scale: float = 1.0) -> tuple[float, float]:
    n = len(x)
    A, B = math.asinh(1e6), 4096
    h = 2 * A / B
    bins = sorted(clip(math.floor((math.asinh(v / scale) + A) / h), 0, B - 1) for v in x)
    edge = [scale * math.sinh((b + 1) * h - A) for b in bins]
    j = math.ceil(n / 2 + math.sqrt(n * L / 2))
    index = edge[j - 1] if j <= n and sorted(x)[j - 1] <= 1e6 * scale else INF  # nothing is above the grid
    return edge[math.ceil(n / 2) - 1], index


def robust_moss(
    x: Samples,
    L: float,
    r: Rules,
    budget: float,
    a: float = 1.1,
    eta: float = 2.2,
    zeta: float | None = None,
) -> tuple[float, float]:
    """budget: T group / K."""
    u, p, n = r.u ** (1 / r.p), r.p, len(x)

    def phi(k: float) -> float:
        return max(math.log(budget / k), 1) / k

    total, power = 0.0, a
    for i, v in enumerate(x, 1):
        while power <= i:
            power *= a
        B = u * phi(power) ** (-1 / p)
        total += clip(v, -B, B)
    factor = 1 + eta if zeta is None else zeta
    return total / n, total / n + factor * u * phi(n) ** (r.eps / p)


def huber_sgd(
    x: Samples, L: float, r: Rules, scale: float | None = None, lam: float = 3.0, coeff: float = 1.0
) -> tuple[float, float]:
    n, theta = len(x), 0.0
    if scale is None:
        if n < 15:
            return INF, INF
        theta = float(np.median(x[:15]))
        sizes = np.abs(np.array(x) - theta)
        scale = 1.4826 * float(np.median(sizes[:15]))
        if scale == 0:  # eight of them are the same: the mean distance, once one differs
            seen = next((i for i in range(15, n + 1) if sizes[:i].any()), n)
            scale = math.sqrt(math.pi / 2) * float(sizes[:seen].mean())
    for i, v in enumerate(x, 1):
        theta += clip(v - theta, -lam * scale, lam * scale) / i
    return theta, theta + coeff * scale * math.sqrt(L / n)


# ---- bounds over all samples, worked out again when n (or L) has grown by 2 % ----------------------------


def catoni_bound(x: Samples, L: float, r: Rules) -> tuple[float, float]:
    """By brackets around a sign change, from the definition."""
    eps, p, n, data = r.eps, r.p, len(x), np.array(x)
    C = c_p(eps)
    lam = (L / (n * eps * C * r.rho)) ** (1 / p)
    reach = p * C ** (1 / p) * eps ** (-eps / p) * r.rho ** (1 / p) * (L / n) ** (eps / p)
    if L == 0:
        return sum(x) / n, sum(x) / n
    largest = (1 / (p * C)) ** (1 / eps)

    def left(theta: float) -> float:
        y = np.minimum(lam * (data - theta), largest)
        phi = -np.log(1 - y + C * np.abs(y) ** p)
        return float(phi.sum()) + n * math.log(1 + C * r.rho * lam**p) + L

    width = 1.0
    while left(max(x) + width) > 0:
        width *= 2
    index = float(brentq(left, min(x), max(x) + width, xtol=1e-13, rtol=1e-14))
    return index - reach, index


def mr_mean(x: Samples, r: Rules, p: float | None = None, c: float = 1.0) -> float:
    p, n = r.p if p is None else p, len(x)
    q = (2 - p) / (p - 1)
    b = 0.5 if p == 2 else (2 * q ** (1 - 2 / p) + q ** (2 - 2 / p)) ** (-p / 2)
    y = [v / (c * n ** (1 / p)) for v in x]
    total = sum(math.copysign(math.log(1 + abs(v) + b * abs(v) ** p), v) for v in y)
    return float(c / n ** (1 - 1 / p) * total)


def mr_bonus(n: int, r: Rules, budget: float, p: float | None = None, c: float = 1.0) -> float:
    p = r.p if p is None else p
    bonus: float = c * max(math.log(budget / n), 0) / n ** (1 - 1 / p)
    return bonus


LAZY = ("catoni-bound", "mr-ucb")
OWN: dict[str, Any] = {
    "self-tuned": self_tuned,
    "median-bound": median_bound,
    "robust-moss": robust_moss,
    "huber-sgd": huber_sgd,
}
OWN_INDEX = (*OWN, *LAZY)
NOTHING: Found = (INF, INF, 0)


def lazily(
    x: Samples, L: float, r: Rules, budget: float, last: tuple[int, float] | None
) -> tuple[Found, tuple[int, float] | None]:
    """What an estimator gives that was last worked out at `last` = (n, L), and where it is now."""
    n = len(x)
    if n == 0:
        return NOTHING, None
    if r.estimator == "mr-ucb":
        if last is None or n < 50 or n > 1.02 * last[0]:
            last = n, L
        mean = mr_mean(x[: last[0]], r, **r.options)
        return (mean, mean + mr_bonus(n, r, budget, **r.options), n), last
    if last is None or n > 1.02 * last[0] or 1.02 * last[1] < L:
        last = n, L
    return (*catoni_bound(x[: last[0]], last[1], r), n), last


def estimate(x: Samples, L: float, r: Rules, budget: float = INF, last: float = INF) -> Found:
    """(mean, index, n) of one arm; +∞ without samples. last: the largest L that will be asked for."""
    if not x:
        return NOTHING
    if r.estimator in OWN:
        extra = {"budget": budget} if r.estimator == "robust-moss" else {}
        return (*OWN[r.estimator](x, L, r, **extra, **r.options), len(x))
    mean = clipped(x, L, r, last) if r.estimator == "clipped" else MEANS[r.estimator](x, L, r)
    rad = radius(len(x), L, r)
    return mean, INF if rad == INF else mean + rad, len(x)
