"""Huber's mean by stochastic gradient steps (after Dorn et al. 2024). For symmetric laws of any tail.

    theta_i = theta_(i-1) + clip(X_i - theta_(i-1), +-lam scale) / i
    index   = theta_n + coeff scale sqrt(L/n)

With coeff = sqrt(2) sqrt(E psi²)/P(|X| < lam scale), about 2, the index is valid for symmetric laws; 1 is
what the figures use. Regret O(sqrt(K T ln T)) for any symmetric tail. For skewed laws it does not converge to
the mean, so the wrong arm may be preferred permanently.

`scale` is given (then theta_0 = 0), or 1.4826 times the median absolute deviation of the first 15 samples,
whose median is then theta_0; until then the index is +inf, and the 15 samples take their steps afterwards, in
order. The arrival order matters, so streams cannot be merged.

If 8 of the 15 are equal, their median absolute deviation is 0: then the mean absolute deviation is used,
times sqrt(pi/2). If all 15 are equal, so is that of all samples, from the first different one on.

What differs from the printed text: steps of 1/i instead of a constant one; no smoothing of medians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from rumormill.estimators.base import (
    OnlineMean,
    OwnIndexEstimator,
    Terms,
    check_kind,
    check_level,
    check_sample,
)
from rumormill.formulas import huber_reach, huber_scale, huber_step
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between

PILOT = 15


@dataclass(frozen=True, kw_only=True)
class HuberSGD(OwnIndexEstimator):
    """The centre of a symmetric law, one clipped gradient step per sample.

    Parameters
    ----------
    scale : float | None, default None
        Scale of the rewards; by default from the first 15 samples.
    lam : float, default 3.0
        Clipping threshold of a step, in units of the scale.
    coeff : float, default 1.0
        Factor on the radius.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.HuberSGD().symmetric_only, rm.HuberSGD().bounded_memory
    (True, True)

    References
    ----------
    After Dorn et al. (2024).
    """

    scale: float | None = None
    lam: float = 3.0
    coeff: float = 1.0

    needs_moments = False
    bounded_memory = True
    symmetric_only = True

    def __post_init__(self) -> None:
        for name in ("scale", "lam", "coeff"):
            value = getattr(self, name)
            if value is not None:
                between(name, value, LEAST_CONSTANT, LARGEST_CONSTANT)

    def stream_for(self, terms: Terms) -> OnlineHuber:
        return OnlineHuber(self.scale, self.lam, self.coeff)


class OnlineHuber(OnlineMean):
    """The current estimate, and the first 15 samples until the scale is known."""

    def __init__(self, scale: float | None, lam: float, coeff: float) -> None:
        self._scale, self._lam, self._coeff = scale, lam, coeff
        self._count = 0
        self._theta = 0.0
        self._pilot: list[float] = []

    @property
    def count(self) -> int:
        return self._count + len(self._pilot)

    @property
    def scale(self) -> float | None:
        """The scale; None while it is not known."""
        return self._scale

    def update(self, x: float) -> None:
        x = check_sample(x)
        if self._scale is not None:
            self._step(x, self._scale)
            return
        self._pilot.append(x)
        if len(self._pilot) == PILOT:
            self._theta = sorted(self._pilot)[PILOT // 2]
            sizes = [abs(early - self._theta) for early in self._pilot]
            total = 0.0
            for size in sizes:  # in this order; sum() would be more exact, and the kernels would differ
                total += size
            scale = huber_scale(sorted(sizes)[PILOT // 2], total, PILOT)
            early, self._pilot, self._scale = self._pilot, [], scale
            for each in early:
                self._step(each, scale)

    def _step(self, x: float, scale: float) -> None:
        self._count += 1
        if scale == 0.0:  # every sample so far was the same
            self._scale = scale = huber_scale(0.0, abs(x - self._theta), self._count)
        self._theta = huber_step(self._theta, x, self._count, self._lam * scale)

    def mean(self, L: float) -> float:
        check_level(L)
        return self._theta if self._count else math.inf

    def index(self, L: float) -> float:
        mean = self.mean(L)
        if self._scale is None or not self._count:
            return math.inf
        return mean + huber_reach(L, self._count, self._coeff * self._scale)

    def state(self) -> dict[str, Any]:
        names = ("scale", "lam", "coeff", "count", "theta", "pilot")
        return {"kind": "huber-sgd", **{name: getattr(self, f"_{name}") for name in names}}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "huber-sgd")
        stream = cls(state["scale"], float(state["lam"]), float(state["coeff"]))
        stream._count, stream._theta = int(state["count"]), float(state["theta"])
        stream._pilot = [float(x) for x in state["pilot"]]
        return stream
