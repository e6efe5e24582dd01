"""How each estimator is stored by the kernels, and the lookup tables per round and per sample count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.default_rule import TOP, store_room
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
    DEFAULT,
    DISCOUNT,
    HUBER_SGD,
    MEDIAN_BOUND,
    MEDIAN_OF_MEANS,
    ORIGIN_MEDIAN,
    ROBUST_MOSS,
    RUNNING,
    SELF_TUNED,
    EstimatorConstants,
    raise_to,
)
from rumormill.policies import RobustPolicy

# Tables are at least 2^16 long: smaller sizes would save nothing.
SMALLEST_TABLE = 16


@lru_cache(maxsize=8)
def confidence_levels(schedule: Confidence, horizon: int, n_agents: int) -> NDArray[np.float64]:
    """L of rounds 0..horizon (round 0 is never played)."""
    return np.array([0.0, *(log_confidence(schedule, t, n_agents) for t in range(1, horizon + 1))])


def powers_table(exponent: float, size: int) -> NDArray[np.float64]:
    """n^-exponent for n < size at least.

    Trials on networks of their own need different sizes, so sizes are rounded up to a few: filling a table
    of two million powers takes as long as some trials.
    """
    return _powers(exponent, 1 << max(SMALLEST_TABLE, (size - 1).bit_length()))


@lru_cache(maxsize=16)
def _powers(exponent: float, size: int) -> NDArray[np.float64]:
    powers = np.arange(float(size))
    raise_to(-exponent, powers[1:])
    powers[0] = np.inf
    return powers


def radius_scales(radius: Radius, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The radius at n = 1 in every round: `radius.scale` of each level, with the same bits."""
    scales = levels.copy() if radius.zeta is not None else radius.constant * (levels + radius.shift)
    raise_to(radius.exponent, scales)
    return radius.root * scales if radius.zeta is None else radius.zeta * radius.root * scales


def least_samples(radius: Radius, levels: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Per round, the fewest samples with which an arm need not be pulled; more is always enough too."""
    if radius.usable(1.0, float(levels[-1])):  # L grows, so what is enough at the end always was
        return np.ones(len(levels))
    least, n = np.ones(len(levels)), 1.0
    for t, L in enumerate(levels.tolist()):
        n = radius.least_usable(L, start=n, most=most)
        least[t:] = n
        if n > most:  # never within this horizon
            break
    return least


_NOTHING: Any = dict.fromkeys(EstimatorConstants._fields, 0.0)
_NOTHING |= {"top": 0, "pilot": 0, "store": 0, "budgets": np.zeros(0), "edges": np.zeros(0)}
NO_CONSTANTS = EstimatorConstants(**_NOTHING)

Ints = NDArray[np.int64]
Given = dict[str, Any]
"""Fields of EstimatorConstants."""


def _clipped(estimator: ClippedMean, terms: Sequence[Terms], term_of: Ints) -> Given:
    moments = _moments(terms)
    top = sketch_room(moments.p, terms[0].last_L)
    return {"clip_budget": clip_budget(moments.u, moments.p), "top": top}


def _self_tuned(estimator: SelfTuned, terms: Sequence[Terms], term_of: Ints) -> Given:
    names = ("C", "kappa", "omega", "guard")
    given = {name: float(getattr(estimator, name)) for name in names}
    return {**given, "top": estimator.room(terms[0].last_L), "pilot": int(estimator.pilot)}


def _median_bound(estimator: MedianBound, terms: Sequence[Terms], term_of: Ints) -> Given:
    scale = float(estimator.scale)
    edges = np.array([histogram_edge(place, scale) for place in range(HISTOGRAM_BINS + 1)])
    return {"scale": scale, "edges": edges}


def _robust_moss(estimator: RobustMOSS, terms: Sequence[Terms], term_of: Ints) -> Given:
    moments = _moments(terms)
    root = math.pow(moments.u, 1.0 / moments.p)
    budgets = np.array([estimator.budget(each) for each in terms])[term_of]
    given = {"growth": float(estimator.a), "root": root, "factor_root": estimator.factor * root}
    return {**given, "budgets": budgets}


def _huber_sgd(estimator: HuberSGD, terms: Sequence[Terms], term_of: Ints) -> Given:
    pilot = PILOT if estimator.scale is None else 0
    scale = 0.0 if estimator.scale is None else float(estimator.scale)
    return {"lam": float(estimator.lam), "coeff": float(estimator.coeff), "scale": scale, "pilot": pilot}


def _default(estimator: Any, terms: Sequence[Terms], term_of: Ints) -> Given:
    groups = np.array([float(each.group) for each in terms])[term_of]
    return {"budgets": groups, "store": store_room(terms[0].n_arms)}


def _moments(terms: Sequence[Terms]) -> Moments:
    moments = terms[0].moments
    assert moments is not None
    return moments


@dataclass(frozen=True)
class EstimatorLayout:
    """How the kernels store one kind of estimator."""

    kind: int
    """The kernel's number for it."""
    trims: bool = False
    """Whether samples leave the mean again: they expire by rank."""
    pool_rows: int = 0
    """Floats kept per sample; none where sums are enough."""
    prefix_sums: bool = False
    """Whether the kept samples are prefix sums, which begin with a zero."""
    slow: int = 1
    """The cost of a delivery relative to running sums: decides how many rounds are played at a time."""
    supports: Callable[[Any], bool] = lambda estimator: True
    """Whether the kernels support these parameters of the estimator."""
    fit: Callable[[Any, Sequence[Terms], Ints], Given] = lambda *_: {}
    """Its constants for the kernel, from the distinct terms and the term of each learner."""


BY_ORIGIN = EstimatorLayout(ORIGIN_MEDIAN, slow=8)
"""Medians over origins: a policy of its own, not an estimator."""
BELIEFS = EstimatorLayout(DEFAULT, slow=8, fit=_default)
"""The beliefs of `rm.Default()`, likewise."""

MEANS: dict[type[Estimator], EstimatorLayout] = {
    TrimmedMean: EstimatorLayout(
        RUNNING, trims=True, supports=lambda estimator: estimator.variant == "exact"
    ),
    EmpiricalMean: EstimatorLayout(RUNNING),
    MedianOfMeans: EstimatorLayout(MEDIAN_OF_MEANS, pool_rows=2, prefix_sums=True, slow=16),
    Catoni: EstimatorLayout(
        CATONI, pool_rows=1, slow=16, fit=lambda catoni, *_: {"slack": float(catoni.slack)}
    ),
    ClippedMean: EstimatorLayout(CLIPPED, slow=8, fit=_clipped),
    SelfTuned: EstimatorLayout(SELF_TUNED, slow=8, fit=_self_tuned),
    MedianBound: EstimatorLayout(MEDIAN_BOUND, slow=8, fit=_median_bound),
    RobustMOSS: EstimatorLayout(ROBUST_MOSS, slow=4, fit=_robust_moss),
    HuberSGD: EstimatorLayout(HUBER_SGD, slow=4, fit=_huber_sgd),
}
DISCOUNTED = EstimatorLayout(RUNNING, slow=8)
"""Sums that shrink, whatever the estimator."""


def layout_of_mean(policy: RobustPolicy) -> EstimatorLayout:
    """How the means of a policy are stored."""
    return DISCOUNTED if getattr(policy.forget, "way", 0) == DISCOUNT else MEANS[type(policy.estimator)]


def sketch_bytes(constants: EstimatorConstants) -> int:
    """Bytes that one arm of one learner needs: largest samples, pilot samples, bins."""
    beliefs = constants.store + TOP + 16 if constants.store else 0
    return 8 * (constants.top + constants.pilot + beliefs) + 4 * len(constants.edges)
