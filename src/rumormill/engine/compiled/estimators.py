"""How each estimator is stored by the kernels, and the lookup tables per round and per sample count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.estimators import (
    Catoni,
    ClippedMean,
    EmpiricalMean,
    Estimator,
    HuberSGD,
    MedianBound,
    MedianOfMeans,
    Radius,
    RobustMOSS,
    SelfTuned,
    Terms,
    TrimmedMean,
)
from rumormill.estimators.clipped import clip_budget, sketch_room
from rumormill.estimators.huber_sgd import PILOT
from rumormill.formulas import HISTOGRAM_BINS, Confidence, histogram_edge, log_confidence
from rumormill.kernels.state import (
    CATONI,
    CLIPPED,
    HUBER_SGD,
    MEDIAN_BOUND,
    MEDIAN_OF_MEANS,
    ORIGIN_MEDIAN,
    ROBUST_MOSS,
    RUNNING,
    SELF_TUNED,
    Tuning,
    fill_factor_scales,
    fill_powers,
    fill_radius_scales,
)

# Smaller tables than 2^16 are not worth a size of their own.
SMALLEST_TABLE = 16


@lru_cache(maxsize=8)
def confidence_levels(schedule: Confidence, horizon: int, n_agents: int) -> NDArray[np.float64]:
    """L of rounds 0..horizon (round 0 is never played)."""
    return np.array([0.0, *(log_confidence(schedule, t, n_agents) for t in range(1, horizon + 1))])


def powers_table(exponent: float, size: int) -> NDArray[np.float64]:
    """n^-exponent for n < size at least.

    Every trial on a network of its own asks for another size, so sizes are rounded up to a few: a table of
    two million powers takes as long as some trials do.
    """
    return _powers(exponent, 1 << max(SMALLEST_TABLE, (size - 1).bit_length()))


@lru_cache(maxsize=16)
def _powers(exponent: float, size: int) -> NDArray[np.float64]:
    powers = np.empty(size)
    fill_powers(powers, exponent)
    return powers


def radius_scales(radius: Radius, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The radius at n = 1 in every round: `radius.scale` of each level, with the same bits."""
    scales = np.empty(len(levels))
    if radius.zeta is not None:
        fill_factor_scales(scales, levels, radius.root, radius.zeta, radius.exponent)
    else:
        fill_radius_scales(scales, levels, radius.root, radius.constant, radius.shift, radius.exponent)
    return scales


def least_samples(radius: Radius, levels: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Per round, the fewest samples with which an arm need not be pulled; more is always enough too."""
    if radius.usable(1.0, float(levels[-1])):  # L grows, so what is enough at the end always was
        return np.ones(len(levels))
    least, n = np.ones(len(levels)), 1.0
    for t, L in enumerate(levels.tolist()):
        n = radius.least_usable(L, start=n, most=most)
        least[t:] = n
        if n > most:  # never within this game
            break
    return least


NO_TUNING = Tuning(
    clip_budget=0.0,
    C=0.0,
    kappa=0.0,
    omega=0.0,
    guard=0.0,
    pilot=0,
    scale=0.0,
    lam=0.0,
    coeff=0.0,
    growth=0.0,
    root=0.0,
    reach=0.0,
    budgets=np.zeros(0),
    edges=np.zeros(0),
    slack=0.0,
)


@dataclass(frozen=True)
class Room:
    """What one arm of one learner needs: how many of the largest samples, of the first ones, of bins."""

    top: int = 0
    pilot: int = 0
    bins: int = 0

    @property
    def bytes(self) -> int:
        return 8 * (self.top + self.pilot) + 4 * self.bins


Ints = NDArray[np.int64]
Fitted = tuple[dict[str, Any], Room]
"""Parameters of the kernel, and the room they need."""


def _none(estimator: Any, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    return {}, Room()


def _clipped(estimator: ClippedMean, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    moments = _moments(terms)
    room = Room(top=sketch_room(moments.p, terms[0].last_L))
    return {"clip_budget": clip_budget(moments.u, moments.p)}, room


def _catoni(estimator: Catoni, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    return {"slack": float(estimator.slack)}, Room()


def _self_tuned(estimator: SelfTuned, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    names = ("C", "kappa", "omega", "guard")
    given = {name: float(getattr(estimator, name)) for name in names}
    pilot = int(estimator.pilot)
    return {**given, "pilot": pilot}, Room(top=estimator.room(terms[0].last_L), pilot=pilot)


def _median_bound(estimator: MedianBound, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    scale = float(estimator.scale)
    edges = np.array([histogram_edge(place, scale) for place in range(HISTOGRAM_BINS + 1)])
    return {"scale": scale, "edges": edges}, Room(bins=HISTOGRAM_BINS + 1)


def _robust_moss(estimator: RobustMOSS, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    moments = _moments(terms)
    root = math.pow(moments.u, 1.0 / moments.p)
    budgets = np.array([estimator.budget(each) for each in terms])[term_of]
    given = {"growth": float(estimator.a), "root": root, "reach": estimator.factor * root}
    return {**given, "budgets": budgets}, Room()


def _huber_sgd(estimator: HuberSGD, terms: Sequence[Terms], term_of: Ints) -> Fitted:
    pilot = PILOT if estimator.scale is None else 0
    scale = 0.0 if estimator.scale is None else float(estimator.scale)
    given = {"lam": float(estimator.lam), "coeff": float(estimator.coeff), "scale": scale, "pilot": pilot}
    return given, Room(pilot=pilot)


def _moments(terms: Sequence[Terms]) -> Moments:
    moments = terms[0].moments
    assert moments is not None
    return moments


@dataclass(frozen=True)
class MeanLayout:
    """One kind of mean."""

    kind: int
    """The kernel's number for it."""
    trims: bool = False
    """Whether samples leave: they are judged by rank, and listed by the round in which they go."""
    pool_rows: int = 0
    """Floats kept per sample; none where sums are enough."""
    prefix_sums: bool = False
    """Whether the kept samples are prefix sums, which begin with a zero."""
    slow: int = 1
    """About how many times a plain delivery costs: decides how many rounds are played at a time."""
    knows: Callable[[Any], bool] = lambda estimator: True
    """Whether the kernels know this very setting of the estimator."""
    fit: Callable[[Any, Sequence[Terms], Ints], Fitted] = field(default=_none)
    """Its parameters for the kernel, from the different terms there are, and which each learner has."""


BY_ORIGIN = MeanLayout(ORIGIN_MEDIAN, slow=8)
"""Medians over origins: a policy of its own, not a mean."""

MEANS: dict[type[Estimator], MeanLayout] = {
    TrimmedMean: MeanLayout(RUNNING, trims=True, knows=lambda estimator: estimator.variant == "exact"),
    EmpiricalMean: MeanLayout(RUNNING),
    MedianOfMeans: MeanLayout(MEDIAN_OF_MEANS, pool_rows=2, prefix_sums=True, slow=16),
    Catoni: MeanLayout(CATONI, pool_rows=1, slow=16, fit=_catoni),
    ClippedMean: MeanLayout(CLIPPED, slow=8, fit=_clipped),
    SelfTuned: MeanLayout(SELF_TUNED, slow=8, fit=_self_tuned),
    MedianBound: MeanLayout(MEDIAN_BOUND, slow=8, fit=_median_bound),
    RobustMOSS: MeanLayout(ROBUST_MOSS, slow=4, fit=_robust_moss),
    HuberSGD: MeanLayout(HUBER_SGD, slow=4, fit=_huber_sgd),
}
