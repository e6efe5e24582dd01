"""The tail index: Hill estimator with a bootstrap interval, and a verdict that does not over-claim.

With y_1 >= y_2 >= ... the distances from the median, the Hill estimator of the tail index from the k
largest is 1 / mean(ln y_i - ln y_(k+1)), i <= k. The difficulty is the choice of k. A stable law of index 1.9
looks Gaussian except in the outermost percent; a log-normal law looks heavier the larger k is. So:

- start with the outermost quarter percent; a light tail is claimed from that alone;
- if two percent of the data give an index well below 2, and agree with the estimates from fewer, double k
  (up to a tenth) while all agree within twice their error, then one step back;
- with fewer than 4,000 values no tail is called light: their outermost quarter percent is too little.

The interval is that of a 95 % bootstrap, 3 % wider at either end for the remaining bias. Some bias may be
left, so a moment order taken from the lower end needs a safety factor.

Reference: B. M. Hill, "A simple general approach to inference about the tail of a distribution", Annals of
Statistics 1975.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Verdict = Literal["heavy", "light", "cannot tell"]

LEAST_VALUES = 100
LEAST_FOR_LIGHT = 4_000
CONFIDENCE = 0.95
RESAMPLES = 1_000
# The outermost part: a quarter percent, but some values, and a vanishing part of much data.
DEEP_SHARE, LEAST_DEEP = 0.0025, 10
# Whether a tail is plainly heavy is seen at about two percent: laws of index near 2 look light there.
PROBE_SHARE, SURELY_HEAVY = 0.02, 1.75
WIDEST_SHARE = 0.1
# Hill's estimate keeps a bias of a few percent at any affordable depth.
BIAS = 0.03
# How many standard errors estimates may differ by to agree.
AGREEMENT = 2.0
# Without evidence of a light tail, the index is not taken to be above this.
UNPROVEN_INDEX = 1.9


@dataclass(frozen=True)
class Tail:
    """The tail index of one column, and the band it lies in with 95 % confidence."""

    values: int
    used: int
    """How many outermost values the estimate rests on; 0 if there are too few that differ."""
    index: float
    low: float
    high: float
    verdict: Verdict
    few_events: bool = False
    """Whether the outermost values are a few events that many agents wrote down."""

    @property
    def safe_index(self) -> float:
        """The index to rely on: the low end of the band, below 2 unless the tail is light."""
        return self.low if self.verdict == "light" else min(self.low, UNPROVEN_INDEX)

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        if self.values < LEAST_VALUES:
            return f"cannot tell: {self.values} values are too few"
        if self.used == 0:
            return "cannot tell: too few values differ from the median"
        if self.verdict == "light":
            least = "bounded" if math.isinf(self.low) else f"at least {math.floor(self.low * 10) / 10:g}"
            return f"light: {least}, the variance is finite"
        if self.verdict == "heavy":
            mean = ", perhaps even the mean" if self.low <= 1 else ""  # plain-words: allow
            return f"heavy: the variance looks infinite{mean}"
        if self.few_events:
            return "cannot tell: the outermost values are a few events that many agents saw at once"
        if self.values < LEAST_FOR_LIGHT and self.low > 2:
            return f"cannot tell: {self.values:,} values are too few to call a tail light"
        if self.low <= 1:
            return "cannot tell: not even that there is a mean"
        return f"cannot tell: at least {math.floor(self.low * 100) / 100:g}, the variance may be infinite"


def hill(outermost: Array, k: int) -> float:
    """Hill estimator from the k largest of values in descending order; infinite where they are all equal."""
    return _index(float(np.log(outermost[:k]).mean() - math.log(outermost[k])))


def estimate_tail(column: Sequence[float] | Array, rng: np.random.Generator) -> Tail:
    """The tail index of a sample, both tails together; `rng` draws the bootstrap."""
    values = np.asarray(column, dtype=np.float64)
    n = len(values)
    if n < LEAST_VALUES:
        return Tail(n, 0, math.nan, 1.0, math.inf, "cannot tell")
    distances = np.sort(np.abs(values - np.median(values)))[::-1]
    depths = [k for k in depths_of(n) if distances[k] > 0]
    if not depths:
        return Tail(n, 0, math.nan, 1.0, math.inf, "cannot tell")
    k = choose_depth(distances, depths)
    low, high = _band(distances, k, rng)
    verdict: Verdict = "cannot tell"
    if high < 2:
        verdict = "heavy"
    elif low > 2 and n >= LEAST_FOR_LIGHT:
        verdict = "light"
    return Tail(n, k, hill(distances, k), low, high, verdict)


def depths_of(n: int) -> list[int]:
    """The numbers of outermost values to look at, from the fewest on, doubling."""
    k = max(LEAST_DEEP, int(min(DEEP_SHARE * n, 0.25 * math.sqrt(n))))
    depths = [k]
    while 2 * depths[-1] <= WIDEST_SHARE * n:
        depths.append(2 * depths[-1])
    return depths


def choose_depth(distances: Array, depths: Sequence[int]) -> int:
    """The outermost part, or one step before the estimates disagree where the tail is plainly heavy."""
    spreads = [1 / hill(distances, k) for k in depths]  # Hill's own quantity, with error spread / sqrt(k)

    def goes_on(i: int) -> bool:
        if spreads[i] < 1 / SURELY_HEAVY:
            return False
        errors = (spreads[j] * math.sqrt(1 / depths[j] - 1 / depths[i]) for j in range(i))
        return all(abs(spreads[i] - spreads[j]) <= AGREEMENT * error for j, error in enumerate(errors))

    probe = max(i for i, k in enumerate(depths) if i == 0 or k <= PROBE_SHARE * len(distances))
    last = probe
    while last < len(depths) and goes_on(last):
        last += 1
    return depths[0] if last == probe else depths[max(0, last - 2)]


def _band(distances: Array, k: int, rng: np.random.Generator) -> tuple[float, float]:
    """Percentile bootstrap interval of the Hill estimator, widened by BIAS.

    Only the k + 1 largest of a resample are needed: their places among the data are the k + 1 smallest of n
    uniform numbers, which are drawn as they are, in order.
    """
    n = len(distances)
    sums = np.cumsum(rng.standard_exponential((RESAMPLES, k + 1)), axis=1)
    total = sums[:, -1:] + rng.standard_gamma(n - k, size=(RESAMPLES, 1))
    places = np.minimum((n * sums / total).astype(np.int64), n - 1)
    least = distances[distances > 0].min()  # a resample may reach down to values at the median itself
    logs = np.log(np.maximum(distances, least))[places]
    spreads = logs[:, :k].mean(axis=1) - logs[:, k]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(spreads, [tail, 1 - tail])
    return _index(float(high)) * (1 - BIAS), _index(float(low)) * (1 + BIAS)


def _index(spread: float) -> float:
    """From the mean log excess to the tail index; rounding leaves traces of equal values."""
    return 1 / spread if spread > 1e-12 else math.inf
