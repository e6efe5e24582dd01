"""The self-tuned mean: no moment, no scale, no eps. The clipping threshold is computed from the samples.

With y = X - a about a centre a (the median of the first `pilot` samples) and M the solution of
sum min(y²/M², 1) = kappa L,

    index(L) = a + (1/n) sum clip(y, -M, omega M) + C M L / n

and +inf while n <= guard L, while M does not exist, or while the pilot lasts. By the equation of M the term
of an empirical Bernstein bound, sqrt(2 V L/n), is sqrt(2 kappa) M L/n: with a finite variance the radius is
C sigma sqrt(L/(kappa n)), with tail index alpha < 2 it is (L/n)^(1 - 1/alpha), the rate of the actual tail.

Calibrated, not proved: no policy adapts to unknown tails for nothing. omega > 1 and the guard keep the index
above the mean for tails that are heavier on the right than on the left; `symmetric()` does without both, and
loses whole trials under skew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from rumormill.errors import InputError
from rumormill.estimators.base import (
    OnlineMean,
    OwnIndexEstimator,
    Terms,
    TopSketch,
    check_kind,
    check_level,
    check_same_kind,
    check_sample,
)
from rumormill.formulas import tuned_reach
from rumormill.validate import LARGEST_CONSTANT, above, between, refused, whole

LARGEST_PILOT = 9_999
ROOM_WITHOUT_HORIZON = 64


@dataclass(frozen=True, kw_only=True)
class SelfTuned(OwnIndexEstimator):
    """Mean clipped at a threshold computed from the samples; calibrated for skewed tails down to index 1.5.

    Parameters
    ----------
    C : float, default 2.0
        Factor on the radius M L / n.
    kappa : float, default 1.0
        The threshold M solves Σ min(y²/M², 1) = kappa L.
    omega : float, default 16.0
        Upper clipping threshold, in units of M.
    guard : float, default 4.0
        The index is infinite while n <= guard L.
    pilot : int, default 15
        Number of first samples whose median is the centre; 0 or odd.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.SelfTuned().needs_moments, rm.SelfTuned.symmetric().omega
    (False, 1.0)

    References
    ----------
    docs/semantics.md: the self-tuned mean.
    """

    C: float = 2.0
    kappa: float = 1.0
    omega: float = 16.0
    guard: float = 4.0
    pilot: int = 15

    needs_moments = False
    bounded_memory = True

    def __post_init__(self) -> None:
        above("C", self.C, 0, LARGEST_CONSTANT)
        between("kappa", self.kappa, 1e-3, 1e3)
        between("omega", self.omega, 1, LARGEST_CONSTANT)
        between("guard", self.guard, self.kappa, 1e6)
        if whole("pilot", self.pilot, 0) > LARGEST_PILOT or (self.pilot and self.pilot % 2 == 0):
            raise refused("pilot", self.pilot, f"0, or an odd number up to {LARGEST_PILOT}")

    @classmethod
    def symmetric(cls) -> SelfTuned:
        """For laws that are symmetric about their mean: a smaller constant, both sides clipped alike."""
        return cls(C=math.sqrt(2.0), omega=1.0, guard=1.0)

    @property
    def symmetric_only(self) -> bool:  # type: ignore[override]
        return self.omega == 1.0

    def room(self, last_L: float) -> int:
        """How many of the largest samples to keep: fewer than kappa L exceed M."""
        return math.ceil(self.kappa * last_L) + 2 if math.isfinite(last_L) else ROOM_WITHOUT_HORIZON

    def stream_for(self, terms: Terms) -> OnlineSelfTuned:
        return OnlineSelfTuned(self, self.room(terms.last_L))


class OnlineSelfTuned(OnlineMean):
    """The self-tuned mean of a stream."""

    def __init__(self, settings: SelfTuned, room: int) -> None:
        self._settings = settings
        self._sketch = TopSketch(room)
        self._centre: float | None = 0.0 if settings.pilot == 0 else None
        self._pilot: list[float] = []

    @property
    def count(self) -> int:
        return len(self._pilot) if self._centre is None else self._sketch.count

    def update(self, x: float) -> None:
        x = check_sample(x)
        if self._centre is not None:
            self._sketch.add(x - self._centre)
            return
        self._pilot.append(x)
        if len(self._pilot) == self._settings.pilot:
            self._centre = sorted(self._pilot)[len(self._pilot) // 2]
            for early in self._pilot:
                self._sketch.add(early - self._centre)
            self._pilot = []

    def mean(self, L: float) -> float:
        return self._estimate(L)[0]

    def index(self, L: float) -> float:
        mean, threshold = self._estimate(L)
        if mean == math.inf:
            return math.inf
        return mean + tuned_reach(self._settings.C, threshold, L, self._sketch.count)

    def _estimate(self, L: float) -> tuple[float, float]:
        """The mean and M; (+inf, 0) where there is none."""
        check_level(L)
        settings, n = self._settings, self._sketch.count
        if self._centre is None or n == 0 or n <= settings.guard * L:
            return math.inf, 0.0
        threshold = self._sketch.root(settings.kappa * L)
        if threshold == 0.0:
            return math.inf, 0.0
        return self._centre + self._sketch.clipsum(threshold, settings.omega * threshold) / n, threshold

    def merge(self, other: Self) -> None:
        """Lawful with pilot = 0 only: streams with centres of their own cannot be added."""
        check_same_kind(self, other)
        if self._settings.pilot:
            raise InputError(
                "self-tuned means with a pilot cannot be merged: each has a centre of its own; take pilot = 0"
            )
        self._sketch.merge(other._sketch)

    def state(self) -> dict[str, Any]:
        chosen = self._settings
        return {
            "kind": "self-tuned",
            "settings": {name: getattr(chosen, name) for name in ("C", "kappa", "omega", "guard", "pilot")},
            "centre": self._centre,
            "pilot": list(self._pilot),
            "sketch": self._sketch.state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "self-tuned")
        stream = cls(SelfTuned(**state["settings"]), 1)
        stream._centre = None if state["centre"] is None else float(state["centre"])
        stream._pilot = [float(x) for x in state["pilot"]]
        stream._sketch = TopSketch.from_state(state["sketch"])
        return stream
