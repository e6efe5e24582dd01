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
HALF_CIRCLE = math.sqrt(math.pi / 2.0)
# Taylor's coefficients of sin(pi x / 2), enough for |x| <= 1 to within 3e-16.
SINE = tuple((-1) ** k * (math.pi / 2) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(10))
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9 = SINE


# --- draws ----------------------------------------------------------------------------------------------


def quarter_sine(x: Any) -> Any:
    """sin(pi x / 2) for |x| <= 1 by Horner's rule (also arrays); half the time of the library's sine."""
    q = x * x
    high = ((((q * _S9 + _S8) * q + _S7) * q + _S6) * q + _S5) * q
    return (((((high + _S4) * q + _S3) * q + _S2) * q + _S1) * q + _S0) * x


def centred(u: Any) -> Any:
    """Uniform on (-1/2, 1/2), from a generator's u; neither the ends nor 0 come up (also arrays).

    The generator's numbers are k 2^-53, so half a step less than 1/2 has to be taken off.
    """
    return u - (0.5 - 2.0**-54)


def stable_parts(u: Any, wait: Any, alpha: float) -> tuple[Any, Any]:
    """The first times the second^((1-alpha)/alpha) is a symmetric alpha-stable draw (also arrays).

    With U = pi t, t uniform on (-1/2, 1/2), and W = wait exponential, Chambers, Mallows and Stuck have
    sin(aU) / cos(U)^(1/a) (cos((1-a)U) / W)^((1-a)/a), which is, with one power,
    sin(aU) / cos(U) (cos((1-a)U) / (W cos U))^((1-a)/a). Sign apart, each of the three is sin(pi x / 2)
    for some x in [0, 1].
    """
    t = centred(u)
    size = abs(t)
    cosine = quarter_sine(1.0 - 2.0 * size)
    other = quarter_sine(1.0 - 2.0 * abs(1.0 - alpha) * size)
    sine = quarter_sine(1.0 - abs(1.0 - 2.0 * alpha * size))
    return np.copysign(sine / cosine, t), other / (cosine * wait)


# Acklam's rational approximation of the normal quantile: relative error below 1.2e-9.
NEAR_EDGE = 0.47575
# No draw of inverse_normal is larger; up to LARGE_U none than the second, in the lower tail than the third.
LARGEST_DRAW, LARGE_DRAW, NEAREST_TAIL, LARGE_U = 8.3, 3.1, -1.97, 0.999
_A0, _A1, _A2 = -3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02
_A3, _A4, _A5 = 1.383577518672690e02, -3.066479806614716e01, 2.506628277459239e00
_B0, _B1, _B2 = -5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02
_B3, _B4 = 6.680131188771972e01, -1.328068155288572e01
_C0, _C1, _C2 = -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00
_C3, _C4, _C5 = -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00
_D0, _D1, _D2, _D3 = 7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00


def central_normal(q: float) -> float:
    """The normal quantile of 1/2 + q, |q| <= NEAR_EDGE."""
    r = q * q
    above = (((((_A0 * r + _A1) * r + _A2) * r + _A3) * r + _A4) * r + _A5) * q
    return above / (((((_B0 * r + _B1) * r + _B2) * r + _B3) * r + _B4) * r + 1.0)


def inverse_normal(u: float) -> float:
    """The standard normal draw of a generator's u: the normal quantile of 1/2 + centred(u)."""
    q = u - (0.5 - 2.0**-54)
    if abs(q) <= NEAR_EDGE:
        return central_normal(q)
    r = math.sqrt(-2.0 * math.log(0.5 - abs(q)))
    above = ((((_C0 * r + _C1) * r + _C2) * r + _C3) * r + _C4) * r + _C5
    x = above / ((((_D0 * r + _D1) * r + _D2) * r + _D3) * r + 1.0)
    return x if q < 0.0 else -x


def draw_spread(n: float, scale: float) -> float:
    """The standard deviation of a draw about the mean of n samples: scale/√n."""
    return scale / math.sqrt(n)


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


# The shrinkage is estimated from that of an earlier count until n has grown by this share.
NEAR = 1.0 / 16.0
# More than rounding can do to an estimate.
NEAR_SLACK = 1e-12


def shrinkage_near(h: float, exponent: float, second: float, third: float) -> float:
    """(1 + h)^-exponent for 0 <= h <= NEAR, too small by at most what `shrinkage_series` says.

    The terms of the series alternate and shrink: up to h^3 it is too small, up to h^4 too large.
    """
    return (1.0 - NEAR_SLACK) - h * (exponent - h * (second - h * third))


def shrinkage_series(exponent: float) -> tuple[float, float, float]:
    """The factors of h^2 and h^3 in the series of (1 + h)^-exponent, and how much too small it may be."""
    second = exponent * (exponent + 1.0) / 2.0
    third = second * (exponent + 2.0) / 3.0
    return second, third, third * (exponent + 3.0) / 4.0 * NEAR**4 + 2.0 * NEAR_SLACK


def upper_index(mean: float, scale: float, shrunk: float) -> float:
    """mean + radius."""
    return mean + scale * shrunk


# --- the trimmed mean -----------------------------------------------------------------------------------


def power_of_size(x: float, p: float) -> float:
    """|x|^p."""
    return abs(x) ** p


def leaving_level(power: float, rank: float, u: float) -> float:
    """h = u rank / |x|^p: the sample is in the trimmed mean while L <= h."""
    return u * rank / power if power > 0.0 else math.inf


def certain_size(rank: float, u: float, p: float, L: float) -> float:
    """Up to this size a sample of this rank, or a later one, stays in at every level up to L."""
    return (1.0 - 1e-9) * (u * rank / L) ** (1.0 / p) if L > 0.0 else 0.0


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


# --- Catoni's bound: an upper bound on the mean, without an estimate in the middle -----------------------


def bound_width(n: float, L: float, eps: float, rho: float, curvature: float) -> float:
    """lambda: samples count in full within about 1/lambda of the bound."""
    return (L / (n * eps * curvature * rho)) ** (1.0 / (1.0 + eps))


def bound_allowance(n: float, L: float, eps: float) -> float:
    """n ln(1 + C rho lambda^p) + L, which the samples have to make up for; C rho lambda^p = L/(n eps)."""
    return n * math.log1p(L / (n * eps)) + L


def bound_phi(y: Any, eps: float, curvature: float) -> tuple[Any, Any]:
    """phi and its slope (also arrays): -ln(1 - y + C_p |y|^p), constant beyond its largest value."""
    y = np.minimum(y, (1.0 / ((1.0 + eps) * curvature)) ** (1.0 / eps))
    size = np.abs(y)
    tail = curvature * size**eps
    fall = tail * size - y
    return -np.log1p(fall), (1.0 - (1.0 + eps) * np.copysign(tail, y)) / (1.0 + fall)


def bound_reach(n: float, L: float, eps: float, rho: float, curvature: float) -> float:
    """p C^(1/p) eps^(-eps/p) rho^(1/p) (L/n)^(eps/p): how far the bound lies above the mean, for large n."""
    p = 1.0 + eps
    return p * (curvature * rho) ** (1.0 / p) * (L / (eps * n)) ** (eps / p)


# --- clipped means --------------------------------------------------------------------------------------


def clipped(x: float, low: float, high: float) -> float:
    """x, but at least -low and at most high."""
    return min(max(x, -low), high)


def clipping_curvature(s: float, p: float) -> float:
    """b: exp(clip(y, -s, s)) <= 1 + y + b |y|^p for every y."""
    eps = p - 1.0
    near = (math.exp(s) - 1.0 - s) / math.pow(s, p)
    far = math.pow((1.0 - math.exp(-s)) * p / eps, -eps) / p
    return max(near, far)


def clipping_point(p: float) -> float:
    """The s of the least b, to four digits; b is valid for any s, so the digits only cost optimality.

    The first term of b grows with s and the second falls: they are halved together where they meet.
    """
    low, high, eps = 0.05, 3.0, p - 1.0
    while high - low > 1e-12:
        s = (low + high) / 2.0
        near = (math.exp(s) - 1.0 - s) / math.pow(s, p)
        if near > math.pow((1.0 - math.exp(-s)) * p / eps, -eps) / p:
            high = s
        else:
            low = s
    return round((low + high) / 2.0, 4)


def clipping_factor(p: float) -> float:
    """tau = s^p eps b: samples are clipped at (tau u n / L)^(1/p)."""
    s = clipping_point(p)
    return math.pow(s, p) * (p - 1.0) * clipping_curvature(s, p)


def clip_room(p: float, L: float) -> int:
    """How many of n samples exceed the level, with probability at least 1 - exp(-L): Bernstein, whatever n.

    At most L/tau of them do in the mean, since E|X|^p <= u.
    """
    most = L / clipping_factor(p)
    return math.ceil(most + math.sqrt(2.0 * most * L) + L / 3.0)


def clip_level(n: float, L: float, budget: float, p: float) -> float:
    """(budget n / L)^(1/p), the size at which n samples are clipped; budget = tau u."""
    return math.pow(budget * n / L, 1.0 / p) if L > 0.0 else math.inf


def discounted_sum(
    n: float, total: float, weight: float, x: float, L: float, budget: float, p: float
) -> tuple[float, float]:
    """Count and sum with one more sample, clipped, after all earlier ones were multiplied by a weight."""
    n *= weight
    level = clip_level(n + 1.0, L, budget, p)
    return n + 1.0, weight * total + clipped(x, level, level)


# A CUSUM is a list: centre, scale, offset, both sums, and the first samples, from which it takes the former.
CUSUM_REFERENCE, CUSUM_BEGIN = 64, 5
CUSUM_LARGEST, CUSUM_DRIFT, CUSUM_ALARM = 2.0, 0.5, 40.0


def cusum_step(x: float, centre: float, scale: float) -> float:
    """(x - centre)/scale, at most 2 in size; 2, 0 or -2 where the scale is 0."""
    if scale == 0.0:
        return 0.0 if x == centre else math.copysign(CUSUM_LARGEST, x - centre)
    return min(max((x - centre) / scale, -CUSUM_LARGEST), CUSUM_LARGEST)


def cusum_middle(cusum: Any, centre: float, sizes: bool) -> float:
    """The 33rd of the 64 first samples by size, or of their distances from a centre."""
    for i in range(CUSUM_BEGIN, CUSUM_BEGIN + CUSUM_REFERENCE):
        value, below, up_to = abs(cusum[i] - centre) if sizes else cusum[i], 0, 0
        for j in range(CUSUM_BEGIN, CUSUM_BEGIN + CUSUM_REFERENCE):
            other = abs(cusum[j] - centre) if sizes else cusum[j]
            below, up_to = below + (other < value), up_to + (other <= value)
        if below <= CUSUM_REFERENCE // 2 < up_to:
            return value
    return math.nan


def cusum_alarms(x: float, n: int, cusum: Any) -> bool:
    """Whether the n-th sample raises an alarm."""
    if n > CUSUM_REFERENCE:
        step = cusum_step(x, cusum[0], cusum[1]) - cusum[2]
        cusum[3] = max(0.0, cusum[3] + step - CUSUM_DRIFT)
        cusum[4] = max(0.0, cusum[4] - step - CUSUM_DRIFT)
        return max(cusum[3], cusum[4]) > CUSUM_ALARM
    cusum[CUSUM_BEGIN + n - 1] = x
    if n == CUSUM_REFERENCE:
        cusum[0] = cusum_middle(cusum, 0.0, False)
        cusum[1] = 1.4826 * cusum_middle(cusum, cusum[0], True)
        cusum[2] = cusum[3] = cusum[4] = 0.0
        for i in range(CUSUM_BEGIN, CUSUM_BEGIN + CUSUM_REFERENCE):
            cusum[2] += cusum_step(cusum[i], cusum[0], cusum[1]) / CUSUM_REFERENCE
    return False


# --- a sketch of the largest samples --------------------------------------------------------------------
# top holds the samples of largest |y| in descending order, an earlier one before a later of equal size;
# rest and squares are the sums of y and of y² over all others. Lists and arrays serve alike.


def sketch_add(top: Any, filled: int, y: float, rest: float, squares: float) -> tuple[int, float, float]:
    """Take one more sample; the new filled, rest and squares."""
    room, kept, size, before = len(top), filled, abs(y), y
    if filled == room:
        least = top[room - 1]
        if size <= abs(least):
            return filled, rest + y, squares + y * y
        rest += least
        squares += least * least
        kept -= 1
    for i in range(kept + 1):  # through all, without branches: compiled eight at a time
        here, moved = top[i], before if abs(before) < size else y
        top[i] = here if i < kept and abs(here) >= size else moved
        before = here
    return kept + 1, rest, squares


def sketch_clipsum(top: Any, filled: int, rest: float, low: float, high: float) -> float:
    """The sum of all samples clipped to [-low, high]; a full sketch clips nothing below its least sample.

    Clipped samples are counted, not added one by one: arms that tie in real arithmetic tie here.
    """
    if filled == len(top):
        least = abs(top[filled - 1])
        low, high = max(low, least), max(high, least)
    total, above, below = rest, 0, 0
    for j in range(filled - 1, -1, -1):
        if top[j] > high:
            above += 1
        elif top[j] < -low:
            below += 1
        else:
            total += top[j]
    if above + below > 0:  # else the levels may be infinite
        total += (above - below) * low + above * (high - low)
    return total


def sketch_clipsquares(top: Any, filled: int, squares: float, low: float, high: float) -> float:
    """The sum of the squares of all samples clipped to [-low, high], as in sketch_clipsum."""
    if filled == len(top):
        least = abs(top[filled - 1])
        low, high = max(low, least), max(high, least)
    for j in range(filled - 1, -1, -1):
        y = min(max(top[j], -low), high)
        squares += y * y
    return squares


def sketch_root(top: Any, filled: int, squares: float, c: float) -> float:
    """The M > 0 with sum min(y²/M², 1) = c; 0 if no more than c samples differ from zero.

    Never the total minus the squares of the largest: with heavy tails nothing would be left of it.
    """
    for j in range(filled, -1, -1):  # j of the listed samples exceed M
        if j < c:
            threshold = math.sqrt(squares / (c - j))
            least = abs(top[j]) if j < filled else 0.0
            if threshold >= least and (j == 0 or threshold <= abs(top[j - 1])):
                return threshold
        if j > 0:
            squares += top[j - 1] * top[j - 1]
    return 0.0


# --- means that bring their own index -------------------------------------------------------------------


def tuned_reach(C: float, threshold: float, L: float, n: float) -> float:
    """C M L / n: the radius of a mean that was clipped at its own M."""
    return C * threshold * L / n


HISTOGRAM_BINS = 4096
HISTOGRAM_MOST = 1e6
HISTOGRAM_END = math.asinh(HISTOGRAM_MOST)
HISTOGRAM_STEP = 2.0 * HISTOGRAM_END / HISTOGRAM_BINS


def histogram_bin(x: float, scale: float) -> int:
    """The bin of a sample, on a grid that is even around 0 and logarithmic outside.

    Whatever is larger than the grid has a bin of its own behind the last; the first takes all that is below.
    """
    if x > HISTOGRAM_MOST * scale:
        return HISTOGRAM_BINS
    place = math.floor((math.asinh(x / scale) + HISTOGRAM_END) / HISTOGRAM_STEP)
    return int(min(max(place, 0), HISTOGRAM_BINS - 1))


def histogram_edge(place: int, scale: float) -> float:
    """The upper edge of a bin; there is none above what is larger than the grid."""
    if place >= HISTOGRAM_BINS:
        return math.inf
    return scale * math.sinh((place + 1) * HISTOGRAM_STEP - HISTOGRAM_END)


def upper_rank(n: float, L: float) -> float:
    """j: the j-th smallest of n samples lies below the median with probability at most exp(-L)."""
    return math.ceil(n / 2.0 + math.sqrt(n * L / 2.0))


def moss_phi(n: float, budget: float) -> float:
    """max(ln(budget/n), 1)/n; budget = rounds times agents received, per arm."""
    return max(math.log(budget / n), 1.0) / n


def moss_clip(phi: float, root: float, p: float) -> float:
    """u^(1/p) phi^(-1/p), at which a sample is clipped on arrival; root = u^(1/p)."""
    return root * math.pow(phi, -1.0 / p)


def moss_reach(phi: float, scale: float, exponent: float) -> float:
    """scale phi^(eps/p)."""
    return scale * math.pow(phi, exponent)


def mr_curvature(p: float) -> float:
    """b_p, the factor of |y|^p in the influence of MR-UCB; 1/2 at p = 2, where it is also the limit."""
    if p == 2.0:
        return 0.5
    ratio = (2.0 - p) / (p - 1.0)
    return (2.0 * ratio ** (1.0 - 2.0 / p) + ratio ** (2.0 - 2.0 / p)) ** (-p / 2.0)


def mr_psi(size: Any, p: float, curvature: float) -> Any:
    """ln(1 + y + b_p y^p) at y = size >= 0 (also arrays)."""
    return np.log1p(size + curvature * size**p)


def mr_width(n: float, p: float, c: float) -> float:
    """c n^(1/p): samples count in full up to about this size."""
    return c * n ** (1.0 / p)


def mr_bonus(n: float, budget: float, p: float, c: float) -> float:
    """c max(ln(budget/n), 0) / n^(1 - 1/p); budget = rounds times agents received, per arm."""
    return c * max(math.log(budget / n), 0.0) / n ** (1.0 - 1.0 / p)


def huber_scale(middle: float, total: float, n: float) -> float:
    """The scale of n samples from the median distance to their median; from the mean distance if that is 0.

    The factors make either one the standard deviation of Gaussian samples; total is the sum of distances.
    """
    return 1.4826 * middle if middle > 0.0 else HALF_CIRCLE * total / n


def huber_step(theta: float, x: float, rank: float, reach: float) -> float:
    """theta + clip(x - theta, +-reach)/rank."""
    return theta + min(max(x - theta, -reach), reach) / rank


def huber_reach(L: float, n: float, scale: float) -> float:
    """scale sqrt(L/n)."""
    return scale * math.sqrt(L / n)


# --- shared start and quiet messaging ---------------------------------------------------------------------


def shared_arm(t: int, agent: int, counts: Any) -> int:
    """The first arm without samples from (t - 1 + agent) mod K on, in a circle; -1 if there is none."""
    n_arms = len(counts)
    for i in range(n_arms):
        arm = (t - 1 + agent + i) % n_arms
        if counts[arm] == 0:
            return arm
    return -1


def worth_sending(arm: int, means: Any, counts: Any, theta: float) -> bool:
    """Quiet messaging: whether a sample is sent: not of the best arm, or of one with too few samples.

    Arms without a finite mean cannot be the best; if no arm has one, every sample is sent.
    """
    favourite, other = -1, 0.0
    for k in range(len(means)):
        if means[k] < math.inf and (favourite < 0 or means[k] > means[favourite]):
            favourite = k
        if k != arm:
            other = max(other, counts[k])
    return favourite < 0 or arm != favourite or counts[arm] <= theta * other


# --- priors ----------------------------------------------------------------------------------------------


def prior_reach(spread: float, L: float, w: float) -> float:
    """spread sqrt(2 L / w): the confidence radius of a prior, for estimators without a radius."""
    return spread * math.sqrt(2.0 * L / w)


def prior_contradicted(mean: float, prior: float, fresh_radius: float, prior_radius: float) -> bool:
    """Whether two estimates differ by more than both radii."""
    return abs(mean - prior) > fresh_radius + prior_radius


def prior_doubt(zeta: float | None) -> float:
    """What radii are multiplied by before they contradict a prior: 1/zeta where zeta < 1, else 1."""
    return 1.0 if zeta is None else max(1.0, 1.0 / zeta)


def prior_mean(mean: float, n: float, prior: float, w: float) -> float:
    """The mean of n fresh samples and w of the prior."""
    return (w * prior + n * mean) / (w + n)


def pooled_index(mean: float, index: float, prior: float, reach: float) -> float:
    """The index of two independent estimates, each weighed by one over its squared radius.

    With radii that shrink as n^(-1/2) that is the index of both samples together.
    """
    fresh = index - mean
    if not (fresh > 0.0 and reach > 0.0):
        return min(index, prior + reach)
    a, b = 1.0 / (fresh * fresh), 1.0 / (reach * reach)
    return (a * mean + b * prior) / (a + b) + 1.0 / math.sqrt(a + b)


def prior_floor(mean: float, index: float) -> float:
    """mean + (index - mean)/2: a prior lowers an index at most to this."""
    return 0.5 * (mean + index)


def needs_probe(n: float, taken: float, probe: float) -> bool:
    """Whether an arm with a prior and too few fresh samples for an index must be pulled."""
    return n < taken // probe


# --- samples by origin ----------------------------------------------------------------------------------


def origin_clip(rank: float, L: float, root: float, p: float) -> float:
    """u^(1/p) max(1, rank/L)^(1/p): where a sample of one origin is clipped, root = u^(1/p)."""
    return root * max(1.0, rank / L) ** (1.0 / p)


def snake_step(group: int, step: int, groups: int) -> tuple[int, int]:
    """Into which group the next origin is dealt: to and fro, so that groups get about the same."""
    return (group + step, step) if 0 <= group + step < groups else (group, -step)


# --- consensus ------------------------------------------------------------------------------------------

# Values of neighbours are added in blocks of so many consecutive ids: first within a block, from the smallest
# id on, then block by block. Agents with many neighbours share such sums, so an engine computes them once.
IDS_PER_BLOCK = 4


def consensus_scale(t: float, rho: float) -> float:
    """√(6 ρ t^(2/3)), the radius at n_eff = 1."""
    return math.sqrt(6.0 * rho * math.pow(t, 2.0 / 3.0))


def moment_scale(t: float, rho: float, p: float) -> float:
    """(6 ρ t^(2/3))^(1/p), the same for a moment of order p."""
    return (6.0 * rho * t ** (2.0 / 3.0)) ** (1.0 / p)


def consensus_index(
    s: float, n: float, n_agents: float, epsilon: float, scale: float, exponent: float
) -> float:
    """s/n + scale n_eff^-exponent with n_eff = M n² / (n + ε_v) and exponent eps/p; +inf at n = 0."""
    if n <= 0.0:  # an agent that joins late has no samples
        return math.inf
    return s / n + scale * effective_count(n, n_agents, epsilon) ** -exponent


def effective_count(n: float, n_agents: float, epsilon: float) -> float:
    """n_eff = M n² / (n + ε_v)."""
    return n_agents * n * n / (n + epsilon)


SERIES_RANGE = 1.0 / 16.0
# The series below leaves out terms of at most h^8, h^9, ...: together 2.5e-10. Rounding adds 1e-14.
SERIES_ERROR = 1e-9


def power_series(h: float, exponent: float) -> float:
    """(1 + h)^-exponent for |h| <= SERIES_RANGE and exponent <= 1, by its series up to h^7."""
    e = exponent
    tail = 1.0 - (e + 5.0) / 6.0 * h * (1.0 - (e + 6.0) / 7.0 * h)
    tail = 1.0 - (e + 3.0) / 4.0 * h * (1.0 - (e + 4.0) / 5.0 * h * tail)
    return 1.0 - e * h * (1.0 - (e + 1.0) / 2.0 * h * (1.0 - (e + 2.0) / 3.0 * h * tail))


def consensus_average(own: float, received: float, n_received: float, weight: float) -> float:
    """One row of P: neighbours not received count as the own value, so that the weights still sum to one."""
    return (1.0 - weight * n_received) * own + weight * received


def coop_scale(t: float, sigma: float, gamma_c: float) -> float:
    """σ √(2 γ_c ln(t-1) / G), the radius of coop-UCB at n_eff = 1; G = 1 - η²/16 with η = 2."""
    return sigma * math.sqrt(2.0 * gamma_c / 0.75 * math.log(t - 1.0)) if t > 2 else 0.0


def coop_drift(t: float) -> float:
    """√ln(t-1), which coop-UCB2 takes for the ε_v that depends on the spectrum."""
    return math.sqrt(math.log(t - 1.0)) if t > 2 else 0.0


def source_clip(n: float, n_agents: float, level: float, p: float) -> float:
    """(level (M n + 1))^(1/p), level = tau u / L: where a reward is clipped before it is averaged."""
    return math.pow(level * (n_agents * n + 1.0), 1.0 / p)


def delayed_index(s: float, n: float, n_agents: float, scale: float) -> float:
    """s/n + scale / √(M n): DDUCB, with s and n averages per agent."""
    return s / n + scale / math.sqrt(n_agents * n)


def delayed_scale(seen: float, sigma: float, eta: float) -> float:
    """σ √(2 η ln max(seen, 2))."""
    return sigma * math.sqrt(2.0 * eta * math.log(max(seen, 2.0)))


def chebyshev_step(mixed: float, before: float, forward: float, back: float) -> float:
    """forward (P y_r) - back y_(r-1): one step of accelerated gossip."""
    return forward * mixed - back * before
