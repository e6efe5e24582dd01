"""Confidence sequences: bounds on the mean of an arm that hold at all times at once, under heavy tails.

For a value m and a width lambda let S(m) = sum psi(lambda (X_i - m)), psi of Catoni's mean. If every sample
has, given the past, the mean mu and a central moment of order p of at most rho, then at m = mu

    exp(+S(m) - n C_p rho lambda^p)   and   exp(-S(m) - n C_p rho lambda^p)

are nonnegative supermartingales that begin at 1; so is their mixture over several lambda. By Ville's
inequality the mixture at mu ever reaches 2/alpha with probability at most alpha/2 on either side. The
interval holds all m for which neither mixture has ever been that large: it may be looked at after every
sample, however samples were chosen.

Bounded memory. S is kept on a grid of values m. What is excluded stays excluded, so that only the grid
points inside the interval are kept up to date. When few are left a finer grid over the interval is begun,
with new samples and half of the alpha that is left; the coarser one is dropped once the finer one is
narrower. Bounds are rounded outwards to the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.errors import InputError
from rumormill.formulas import catoni_curvature
from rumormill.validate import LARGEST_REWARD

Array = NDArray[np.float64]

# The first samples place the first grid and are not used again.
PILOT = 8
# Half the span of the first grid, in units of rho^(1/p), and its number of points.
FIRST_SPAN, FIRST_POINTS = 16.0, 513
# Points of later grids; a finer one is begun when so few are left.
POINTS, FEW = 257, 16
# The interval of a grid is this many times narrower at the end than at the beginning.
SHRINKS = 64.0


@dataclass
class _Grid:
    """S on the grid points that are not excluded yet, for every lambda."""

    points: Array
    widths: Array
    sums: Array  # [width, point]
    allowance: Array  # what n samples are allowed, n C rho lambda^p
    threshold: float  # ln(2/alpha) plus the logarithm of the number of widths
    low: float = -math.inf
    high: float = math.inf

    def add(self, xs: Array, eps: float, curvature: float, cost: Array) -> None:
        """Add samples to the sums of all points."""
        y = self.widths[:, None, None] * (xs[None, None, :] - self.points[None, :, None])
        size = np.abs(y)
        tail = curvature * (size if eps == 1.0 else size**eps)
        self.sums += np.copysign(np.log1p(size + tail * size), y).sum(axis=2)
        self.allowance += len(xs) * cost
        self._exclude()

    def _exclude(self) -> None:
        """Drop points that a mixture excludes, from both ends: the mixtures are monotone in m."""
        first, last = 0, len(self.points)
        while first < last and self._evidence(first, 1.0) >= self.threshold:
            self.low = float(self.points[first])
            first += 1
        while first < last and self._evidence(last - 1, -1.0) >= self.threshold:
            last -= 1
            self.high = float(self.points[last])
        if first > 0 or last < len(self.points):
            self.points, self.sums = self.points[first:last], self.sums[:, first:last].copy()

    def _evidence(self, place: int, sign: float) -> float:
        """Logarithm of the sum of all supermartingales at one point."""
        logs = sign * self.sums[:, place] - self.allowance
        most = float(logs.max())
        return most + math.log(float(np.exp(logs - most).sum()))


@dataclass
class ConfidenceSequence:
    """Interval of the mean that holds after every sample at once, under a bounded moment of order 1 + eps.

    Parameters
    ----------
    moments : Moments
        eps and rho >= E|X - mean|^(1 + eps), in (unit of rewards)^(1 + eps); u is not used
    confidence : float
        Probability that the interval holds the mean at all times; default 0.95

    Examples
    --------
    >>> import numpy as np
    >>> import rumormill as rm
    >>> sequence = rm.ConfidenceSequence(rm.Moments(eps=1.0, u=2.0, rho=1.0), confidence=0.95)
    >>> sequence.interval
    (-inf, inf)
    >>> sequence.update(np.random.default_rng(1).normal(3.0, 1.0, size=2000))
    >>> low, high = sequence.interval
    >>> low < 3.0 < high, high - low < 0.3
    (True, True)

    References
    ----------
    Wang and Ramdas (2023), "Catoni-style confidence sequences for heavy-tailed mean estimation"; the mixture
    over widths and the grids are our own (docs/semantics.md, "Confidence sequences").
    """

    moments: Moments
    confidence: float = 0.95
    count: int = field(default=0, init=False)
    _pilot: list[float] = field(default_factory=list, init=False, repr=False)
    _grids: list[_Grid] = field(default_factory=list, init=False, repr=False)
    _begun: int = field(default=0, init=False, repr=False)
    _bounds: tuple[float, float] = field(default=(-math.inf, math.inf), init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence = {self.confidence}: a number between 0 and 1, such as 0.95")

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound, in units of rewards; infinite while nothing is known."""
        return self._bounds

    @property
    def refuted(self) -> bool:
        """Whether no mean is left: the samples contradict the moments, or the mean has changed."""
        return self._bounds[0] >= self._bounds[1]

    def update(self, xs: float | Sequence[float] | Array) -> None:
        """Add a sample, or several in arrival order; the interval is looked at once, after the last.

        Parameters
        ----------
        xs : float or sequence of floats
            Samples of one arm, finite
        """
        new = np.atleast_1d(np.asarray(xs, dtype=np.float64))
        if not np.all(np.abs(new) <= LARGEST_REWARD):
            raise InputError(f"samples: finite numbers of at most {LARGEST_REWARD:g} in size are allowed")
        self.count += len(new)
        missing = PILOT - len(self._pilot)
        if missing > 0:
            self._pilot += new[:missing].tolist()
            new = new[missing:]
            if len(self._pilot) == PILOT:
                self._begin_first(median(self._pilot))
        for start in range(0, len(new), 64):
            self._add(new[start : start + 64])

    def _add(self, xs: Array) -> None:
        eps, rho = self.moments.eps, self.moments.rho
        curvature = catoni_curvature(eps)
        for grid in self._grids:
            grid.add(xs, eps, curvature, curvature * rho * grid.widths ** (1.0 + eps))
            low, high = self._bounds
            self._bounds = max(low, grid.low), min(high, grid.high)
        newest = self._grids[-1]
        if len(self._grids) > 1 and newest.low >= self._grids[0].low and newest.high <= self._grids[0].high:
            del self._grids[0]
        if len(self._grids) == 1 and len(newest.points) <= FEW and not self.refuted:
            self._begin_next()

    def _begin_first(self, centre: float) -> None:
        reach = FIRST_SPAN * self.moments.rho ** (1.0 / self.moments.p)
        self._begin(np.linspace(centre - reach, centre + reach, FIRST_POINTS), reach / 2.0)

    def _begin_next(self) -> None:
        """A finer grid over the interval; one as coarse as the first where a side is open still."""
        low, high = self._bounds
        if math.isfinite(low) and math.isfinite(high):
            if high - low > 1e-12 * max(abs(low), abs(high)):
                self._begin(np.linspace(low, high, POINTS), high - low)
        elif len(self._grids[-1].points) == 0:
            self._begin_first(low if math.isfinite(low) else high)

    def _begin(self, points: Array, widest: float) -> None:
        """Begin a grid for intervals from `widest` to SHRINKS times narrower."""
        eps, rho = self.moments.eps, self.moments.rho
        # The lambda that is best when the interval is w wide: (w/(2 p C rho))^(1/eps).
        largest = (widest / (2.0 * (1.0 + eps) * catoni_curvature(eps) * rho)) ** (1.0 / eps)
        ratio = min(2.0 ** (1.0 / eps), 4.0)
        count = 1 + math.ceil(math.log(SHRINKS) / (eps * math.log(ratio)))
        widths = largest * ratio ** -np.arange(count, dtype=np.float64)
        self._begun += 1
        alpha = (1.0 - self.confidence) * 0.5**self._begun
        threshold = math.log(2.0 / alpha) + math.log(count)
        self._grids.append(_Grid(points, widths, np.zeros((count, len(points))), np.zeros(count), threshold))

    # --- stop and continue --------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """As plain data."""
        grids = [
            [each.tolist() for each in (g.points, g.widths, g.sums, g.allowance)]
            + [g.threshold, g.low, g.high]
            for g in self._grids
        ]
        return {
            "count": self.count,
            "pilot": list(self._pilot),
            "begun": self._begun,
            "bounds": list(self._bounds),
            "grids": grids,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken."""
        self.count, self._pilot, self._begun = int(state["count"]), list(state["pilot"]), int(state["begun"])
        self._bounds = (float(state["bounds"][0]), float(state["bounds"][1]))
        self._grids = []
        for points, widths, sums, allowance, threshold, low, high in state["grids"]:
            a, b, c, d = (np.array(each, dtype=np.float64) for each in (points, widths, sums, allowance))
            self._grids.append(_Grid(a, b, c, d, float(threshold), float(low), float(high)))
