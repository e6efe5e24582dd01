"""Drift: do the means change over time? CUSUM and periodogram, with a permutation test over time.

Values are clipped and centred by (agent, arm). Time is cut into short pieces; without drift they are
exchangeable, so the permutation test shuffles them. Common shocks and serial dependence within a piece are
kept, so they do not count as drift.

Reference: E. S. Page, "Continuous inspection schemes", Biometrika 1954 (CUSUM).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.model_checks.homogeneity import CLIP, LEVEL, blocks_of, combined_p
from rumormill.advice.reward_table import RewardTable
from rumormill.stats import cell_means, clipped, within_rounding_error

Array = NDArray[np.float64]

PIECES = 96
PERMUTATIONS, PERMUTED_AT_ONCE = 999, 4_000_000
SEGMENTS = 6
# The best arm has changed if another one leads in a segment by so many standard errors.
SURELY = 3.0


@dataclass(frozen=True)
class Drift:
    """Whether means change, where, with which period, and whether the best arm changes."""

    p_value: float
    statistic: float
    at: float
    """Where the change is largest, as a share of the log."""
    period: float | None
    """The period as a share of the log, if the periodogram fits better than the CUSUM."""
    segment_means: Array
    """Winsorised means over all agents (segment, arm), in the user's unit."""
    segment_best: tuple[int, ...]
    best_changes: bool
    value: float
    """Gain per request from following the best arm of the segment; estimated on held-out rounds."""

    @property
    def drifts(self) -> bool:
        """Whether the permutation test rejects."""
        return self.p_value <= LEVEL


def check_drift(table: RewardTable, rng: np.random.Generator) -> Drift:
    """The permutation test, the place of the change, and whether the best arm changes."""
    count = min(PIECES, table.rounds)
    p_value, seen, place, wave = _permutation_test(_pieces(table, count), rng)
    means, best, changes, value = _segments(table)
    by_season = bool(seen[1] > seen[0]) and wave > 1
    return Drift(
        p_value,
        float(seen.max()),
        (place + 1) / count,
        1 / wave if by_season else None,
        means,
        best,
        changes and p_value <= LEVEL,
        value,
    )


def _pieces(table: RewardTable, count: int) -> Array:
    """Sums over short pieces of time of the clipped values, centred by agent and arm: (piece, agent, arm)."""
    log = table.log
    distances = clipped(log.value, log.arm, log.n_arms, CLIP)
    cell = log.agent.astype(np.int64) * log.n_arms + log.arm
    n = np.bincount(cell, minlength=log.n_agents * log.n_arms)
    middle = np.bincount(cell, weights=distances, minlength=len(n)) / np.maximum(n, 1)
    distances -= middle[cell]
    if within_rounding_error(distances, log.value):
        distances[:] = 0.0
    cell += blocks_of(table, count) * len(n)
    sums = np.bincount(cell, weights=distances, minlength=count * len(n))
    return np.asarray(sums.astype(np.float64).reshape(count, log.n_agents, log.n_arms))


def _permutation_test(left: Array, rng: np.random.Generator) -> tuple[float, Array, int, int]:
    """p-value, standardised CUSUM and periodogram statistics, place of the change, largest frequency."""
    count = len(left)
    common = left.sum(axis=1)
    each = left.reshape(count, -1)
    each = each[:, (each != 0).any(axis=0)]
    seen = np.array([[*_common(common[None])[0], _each(each[None])[0]]])
    at_once = max(1, PERMUTED_AT_ONCE // max(each.size, 1))
    found = []
    for start in range(0, PERMUTATIONS, at_once):
        order = rng.random((min(at_once, PERMUTATIONS - start), count)).argsort(axis=1)
        found.append(np.column_stack([_common(common[order]), _each(each[order])]))
    drawn = np.concatenate(found)
    size = (seen[0] - drawn.mean(axis=0)) / np.maximum(drawn.std(axis=0), 1e-300)
    runs = (np.cumsum(common, axis=0) ** 2 / _scale(common[None])[0]).sum(axis=1)
    waves = (np.abs(np.fft.rfft(common, axis=0)) ** 2 / _scale(common[None])[0]).sum(axis=1)
    return combined_p(seen[0], drawn), size, int(runs[:-1].argmax()), 1 + int(waves[1:].argmax())


def _scale(pieces: Array) -> Array:
    """The sum of squares over time."""
    return np.asarray(np.maximum((pieces**2).sum(axis=-2), 1e-300))


def _common(pieces: Array) -> Array:
    """The largest CUSUM over all agents and the largest periodogram value, over all arms."""
    scale = _scale(pieces)
    runs = (np.cumsum(pieces, axis=1) ** 2 / scale[:, None, :]).sum(axis=2).max(axis=1)
    waves = (np.abs(np.fft.rfft(pieces, axis=1)) ** 2 / scale[:, None, :]).sum(axis=2)[:, 1:].max(axis=1)
    return np.column_stack([runs, waves])


def _each(pieces: Array) -> Array:
    """The CUSUM of every agent by itself: changes in opposite directions do not cancel."""
    runs = (np.cumsum(pieces, axis=1) ** 2).max(axis=1) / _scale(pieces)
    return np.asarray(runs.sum(axis=1))


def _segments(table: RewardTable) -> tuple[Array, tuple[int, ...], bool, float]:
    """Means and best arm by segment, whether the best arm changes, and the gain from following it."""
    log = table.log
    segment = blocks_of(table, SEGMENTS)
    n_arms = log.n_arms
    # Values relative to their agent: unequal counts per segment must not move the means.
    cell = log.agent.astype(np.int64) * n_arms + log.arm
    own = cell_means(log.value, cell, log.n_agents * n_arms)[0]
    whole = np.nanmean(own.reshape(log.n_agents, n_arms), axis=0)
    relative = log.value - own[cell] + whole[log.arm]
    means, errors = (
        each.reshape(SEGMENTS, n_arms)
        for each in cell_means(relative, segment * n_arms + log.arm, SEGMENTS * n_arms)[:2]
    )
    signed = log.sign * means
    filled = np.where(np.isnan(signed), -np.inf, signed)
    best, fixed = filled.argmax(axis=1), int(np.nanargmax(log.sign * whole))
    rows = np.arange(SEGMENTS)
    noise = np.sqrt(errors[rows, best] ** 2 + errors[rows, fixed] ** 2)
    changes = bool((filled[rows, best] - filled[rows, fixed] > SURELY * noise).any())
    return means, tuple(best.tolist()), changes, _gain_of_following(table, relative, segment, fixed)


def _gain_of_following(table: RewardTable, relative: Array, segment: NDArray[np.int64], fixed: int) -> float:
    """Gain per request of the segment's best arm over the fixed one, chosen and measured on other rounds."""
    log, n_arms = table.log, table.log.n_arms
    half = table.slot.astype(np.int64) % 2
    cell = (half * SEGMENTS + segment) * n_arms + log.arm
    found = cell_means(log.sign * relative, cell, 2 * SEGMENTS * n_arms)[0].reshape(2, SEGMENTS, n_arms)
    gains = []
    for here, there in ((0, 1), (1, 0)):
        best = np.where(np.isnan(found[here]), -np.inf, found[here]).argmax(axis=1)
        gains.append(found[there][np.arange(SEGMENTS), best] - found[there][:, fixed])
    return float(np.nanmean(gains)) if np.isfinite(gains).any() else 0.0
