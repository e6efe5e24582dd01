"""Checks of the model on a log: homogeneity, drift, tails, dependence, enough data; and its moments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.model_checks.dependence import Dependence, check_dependence
from rumormill.advice.model_checks.drift import Drift, check_drift
from rumormill.advice.model_checks.failures import Failures, check_failures
from rumormill.advice.model_checks.homogeneity import Homogeneity, check_homogeneity
from rumormill.advice.model_checks.tails import UNPROVEN_INDEX, Tail, estimate_tail
from rumormill.advice.reading.log import Log
from rumormill.advice.reward_table import RewardTable
from rumormill.arms import Moments
from rumormill.errors import DataError
from rumormill.stats import cell_means
from rumormill.text import plural

Array = NDArray[np.float64]

# ε is this share of (tail index - 1), as for laws; below LEAST_EPS radii hardly shrink.
SAFE_SHARE, LEAST_EPS = 0.85, 0.05
# Factors on sample moments: a sample of a heavy tail underestimates them.
MARGIN_LIGHT, MARGIN_HEAVY = 1.25, 2.0
# The fewest values of an arm, over all agents.
LEAST_OF_ARM = 20
# Clicks: the fewest of the arm with most of them.
LEAST_RARE = 5
# The best arm is known if it leads by so many standard errors.
SURELY = 3.0
MOST_FOR_TAILS = 1_000_000
# Extreme values from fewer rounds than this share of their number are common shocks, not a tail.
EVENTS_SHARE = 0.5


@dataclass(frozen=True)
class DataSufficiency:
    """Whether the log can tell the best arm from the second best."""

    best: int
    second: int
    gap: float
    error: float

    @property
    def ratio(self) -> float:
        """The gap in standard errors."""
        return self.gap / self.error if self.error > 0 else math.inf

    @property
    def is_enough(self) -> bool:
        return self.ratio >= SURELY

    @property
    def times_more(self) -> float:
        """How many times as much data would do."""
        return (SURELY / max(self.ratio, 1e-3)) ** 2


@dataclass(frozen=True)
class ModelChecks:
    """Results of all checks on one log."""

    means: Array
    """Winsorised means by arm over all agents, in the user's unit."""
    errors: Array
    homogeneity: Homogeneity
    drift: Drift
    tails: tuple[Tail, ...]
    dependence: Dependence
    enough: DataSufficiency
    moments: Moments
    why_moments: tuple[str, ...]
    failures: Failures

    @property
    def light(self) -> bool:
        """Whether every tail is light."""
        return all(tail.verdict == "light" for tail in self.tails)

    def as_dict(self, arms: tuple[str, ...], agents: tuple[str, ...] | None) -> dict[str, Any]:
        """Plain values for JSON."""
        same, drift, near = self.homogeneity, self.drift, self.dependence
        names = agents or ("?",)
        return {
            "same_arms": {
                "tested": same.tested,
                "p_value": same.p_value,
                "differs": same.differs,
                "best_arm_differs": same.best_differs,
                "value_of_own_best": same.value,
                "groups": [
                    {"best_arm": arms[best], "agents": [names[v] for v in group]}
                    for group, best in zip(same.groups, same.best_of_group, strict=True)
                ],
            },
            "drift": {
                "p_value": drift.p_value,
                "drifts": drift.drifts,
                "best_arm_changes": drift.best_changes,
                "at": drift.at if drift.drifts else None,
                "season": drift.period if drift.drifts else None,
                "value_of_following": drift.value,
                "best_arm_by_sixth": [arms[k] for k in drift.segment_best],
            },
            "tails": [
                {
                    "arm": arm,
                    "values": tail.values,
                    "tail_index": tail.index,
                    "low": tail.low,
                    "high": tail.high,
                    "tail": tail.words,
                }
                for arm, tail in zip(arms, self.tails, strict=True)
            ],
            "dependence": {
                "lag_one": near.lag_one,
                "remembers": near.remembers,
                "common_share": near.common,
                "common_shocks": near.shocks,
            },
            "enough": {
                "best_arm": arms[self.enough.best],
                "second": arms[self.enough.second],
                "gap": self.enough.gap,
                "error": self.enough.error,
                "enough": self.enough.is_enough,
            },
            "arms": [
                {
                    "arm": arm,
                    "mean": float(mean),
                    "gap": abs(float(mean) - float(self.means[self.enough.best])),
                }
                for arm, mean in zip(arms, self.means, strict=True)
            ],
            "moments": {"eps": self.moments.eps, "u": self.moments.u, "rho": self.moments.rho},
        }


def check_model(table: RewardTable, rng: np.random.Generator) -> ModelChecks:
    """All checks of the model on one log."""
    log = table.log
    means, errors, counts = cell_means(log.value, log.arm.astype(np.int64), log.n_arms)
    for k, count in enumerate(counts.tolist()):
        if count < LEAST_OF_ARM:
            raise DataError(
                f"arm {log.arms[k]!r} has {plural(count, 'value')}: too few to say anything about it, give "
                f"at least {LEAST_OF_ARM} or leave the arm out"
            )
    usual = float(np.median(log.value))
    rare = np.bincount(log.arm[log.value != usual], minlength=log.n_arms)
    if np.ptp(means) == 0 or rare.max() < LEAST_RARE:
        raise DataError(_no_difference(log, usual, rare.tolist()))
    homogeneity = check_homogeneity(table, rng)
    drift = check_drift(table, rng)
    dependence = check_dependence(table)
    residuals = _residuals(table, homogeneity)
    tails = tuple(estimate_tail(_some(each, rng), rng) for each in residuals)
    if dependence.shocks:
        tails = tuple(_without_common_shocks(tail, table, k, residuals[k]) for k, tail in enumerate(tails))
    moments, why = _moments(table, tails, residuals, rng)
    order = np.argsort(-log.sign * means)
    best, second = int(order[0]), int(order[1])
    enough = DataSufficiency(
        best, second, float(abs(means[best] - means[second])), float(np.hypot(errors[best], errors[second]))
    )
    failures = check_failures(log)
    return ModelChecks(means, errors, homogeneity, drift, tails, dependence, enough, moments, why, failures)


def _no_difference(log: Log, usual: float, rare: list[int]) -> str:
    """Why the arms cannot be compared: all values are equal, or those that differ are too rare."""
    if not any(rare):
        return f"every value of the log is {log.amount(usual)}: no arm is better"
    counts = ", ".join(f"{arm} {count}" for arm, count in zip(log.arms[:6], rare, strict=False))
    return f"too few values differ from {log.amount(usual)} to compare the arms ({counts}): give a longer log"


def _residuals(table: RewardTable, homogeneity: Homogeneity) -> list[Array]:
    """Values by arm; where agents differ, centred at the arm's mean instead of the agent's."""
    log = table.log
    values = log.value
    if homogeneity.differs:
        whole = np.nanmean(homogeneity.means, axis=0)
        values = values - homogeneity.means[log.agent, log.arm] + whole[log.arm]
    return [values[log.arm == k] for k in range(log.n_arms)]


def _without_common_shocks(tail: Tail, table: RewardTable, arm: int, values: Array) -> Tail:
    """The tail, no longer "light" if its extreme values are few common shocks.

    A shock recorded by fifty agents is one event; its nearly equal values would look like the end of a tail.
    """
    slot = table.slot[table.log.arm == arm]
    outermost = np.argsort(-np.abs(values - np.median(values)))[: tail.used]
    few = len(np.unique(slot[outermost])) < EVENTS_SHARE * tail.used
    return replace(tail, verdict="cannot tell", few_events=True) if few and tail.verdict == "light" else tail


def _some(values: Array, rng: np.random.Generator) -> Array:
    """The values, or a random sample of a million."""
    return values if len(values) <= MOST_FOR_TAILS else rng.choice(values, MOST_FOR_TAILS, replace=False)


def _moments(
    table: RewardTable, tails: tuple[Tail, ...], residuals: list[Array], rng: np.random.Generator
) -> tuple[Moments, tuple[str, ...]]:
    """ε from the tails, u and ρ from sample moments times a factor; and the reasons."""
    log = table.log
    light = all(tail.verdict == "light" for tail in tails)
    safe, whose = _safe_index(log.arms, tails, residuals, rng)
    eps = 1.0 if light else min(1.0, max(LEAST_EPS, SAFE_SHARE * (safe - 1)))
    margin = MARGIN_LIGHT if light else MARGIN_HEAVY
    raw = max(float((np.abs(log.value[log.arm == k]) ** (1 + eps)).mean()) for k in range(log.n_arms))
    central = max(float((np.abs(each - each.mean()) ** (1 + eps)).mean()) for each in residuals)
    moments = Moments(eps=eps, u=margin * raw, rho=margin * max(central, 1e-12 * raw))
    if light:
        order = "ε = 1: every tail is light, so variances are finite."
    elif eps == LEAST_EPS:
        order = (
            f"ε = {eps:g}, the least: the tail index of {whose} can be relied on to reach {safe:.3g} only, "
            "and without a mean there is nothing to learn; more rows would help most."
        )
    else:
        order = (
            f"ε = {eps:.3g} = {SAFE_SHARE:g} ({safe:.3g} − 1): the tail index of {whose} is at least that."
        )
    bounds = f"u = {moments.u:.4g}, ρ = {moments.rho:.4g}: {margin:g} times the largest sample moments."
    return moments, (order, bounds)


def _safe_index(
    arms: tuple[str, ...], tails: tuple[Tail, ...], residuals: list[Array], rng: np.random.Generator
) -> tuple[float, str]:
    """A lower bound of all tail indices, and the arm it comes from.

    The minimum of several lower ends is too low. Where all bands overlap, rows are pooled.
    """
    if max(tail.low for tail in tails) <= min(tail.high for tail in tails):
        pooled = estimate_tail(_some(np.concatenate([_in_units(each) for each in residuals]), rng), rng)
        return min(pooled.low, UNPROVEN_INDEX), "all arms together (their bands overlap)"
    heaviest = min(range(len(tails)), key=lambda k: tails[k].safe_index)
    return tails[heaviest].safe_index, f"{arms[heaviest]!r}, the heaviest arm,"


def _in_units(values: Array) -> Array:
    """Distances from the median in units of the median absolute deviation."""
    distances = values - np.median(values)
    sizes = np.abs(distances)
    some = sizes[sizes > 0]
    return np.asarray(distances / (np.median(some) if len(some) else 1.0))
