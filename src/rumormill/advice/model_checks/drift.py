"""Do the arms change over time? Sums that run away (CUSUM), and seasons, against shuffled time.

Every value is clipped and compared with the mean of its own agent and arm. Time is cut into short pieces;
were nothing changing, the pieces could stand in any order. Shuffling keeps what happens within a piece: a
shock that hits everybody at once, or rewards that resemble the last ones, do not count as drift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.model_checks.homogeneity import CLIP, LEVEL, blocks_of, combined_p
from rumormill.advice.reward_table import RewardTable
from rumormill.stats.winsorize import cell_means, clipped, within_rounding_error

Array = NDArray[np.float64]

PIECES = 96
SHUFFLES, SHUFFLED_AT_ONCE = 999, 4_000_000
SEGMENTS = 6
# The best arm has changed where another one is better in a segment by so many standard errors.
SURELY = 3.0


@dataclass(frozen=True)
class Drift:
    """Whether means change, when, how regularly, and whether the best arm changes with them."""

    p_value: float
    statistic: float
    at: float
    """Where the change is largest, as a share of the log."""
    period: float | None
    """The length of a season as a share of the log, where a season fits better than a change."""
    segment_means: Array
    """Robust means over all agents (segment, arm), in the user's unit."""
    segment_best: tuple[int, ...]
    best_changes: bool
    value: float
    """What knowing the best arm of the moment is worth per request; from held-out rounds."""

    @property
    def drifts(self) -> bool:
        return self.p_value <= LEVEL


def check_drift(table: RewardTable, rng: np.random.Generator) -> Drift:
    """Test, find the place, and see whether it matters for the choice."""
    log = table.log
    values = clipped(log.value, log.arm, log.n_arms, CLIP)
    cell = log.agent.astype(np.int64) * log.n_arms + log.arm
    n = np.bincount(cell, minlength=log.n_agents * log.n_arms)
    middle = np.bincount(cell, weights=values, minlength=len(n)) / np.maximum(n, 1)
    count = min(PIECES, table.rounds)
    where = blocks_of(table, count) * len(n) + cell
    distances = values - middle[cell]
    if within_rounding_error(distances, log.value):
        distances[:] = 0.0
    sums = np.bincount(where, weights=distances, minlength=count * len(n))
    left: Array = sums.astype(np.float64).reshape(count, log.n_agents, log.n_arms)
    p_value, seen, place, wave = _shuffled(left, rng)
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


def _shuffled(left: Array, rng: np.random.Generator) -> tuple[float, Array, int, int]:
    """p-value, standardised sizes of change and season, where the change is, which wave is the largest."""
    count = len(left)
    common = left.sum(axis=1)
    each = left.reshape(count, -1)
    each = each[:, (each != 0).any(axis=0)]
    seen = np.array([[*_common(common[None])[0], _each(each[None])[0]]])
    at_once = max(1, SHUFFLED_AT_ONCE // max(each.size, 1))
    found = []
    for start in range(0, SHUFFLES, at_once):
        order = rng.random((min(at_once, SHUFFLES - start), count)).argsort(axis=1)
        found.append(np.column_stack([_common(common[order]), _each(each[order])]))
    drawn = np.concatenate(found)
    size = (seen[0] - drawn.mean(axis=0)) / np.maximum(drawn.std(axis=0), 1e-300)
    runs = (np.cumsum(common, axis=0) ** 2 / _scale(common[None])[0]).sum(axis=1)
    waves = (np.abs(np.fft.rfft(common, axis=0)) ** 2 / _scale(common[None])[0]).sum(axis=1)
    return combined_p(seen[0], drawn), size, int(runs[:-1].argmax()), 1 + int(waves[1:].argmax())


def _scale(pieces: Array) -> Array:
    return np.asarray(np.maximum((pieces**2).sum(axis=-2), 1e-300))


def _common(pieces: Array) -> Array:
    """The largest run of the sums over all agents, and the largest wave in them, over all arms."""
    scale = _scale(pieces)
    runs = (np.cumsum(pieces, axis=1) ** 2 / scale[:, None, :]).sum(axis=2).max(axis=1)
    waves = (np.abs(np.fft.rfft(pieces, axis=1)) ** 2 / scale[:, None, :]).sum(axis=2)[:, 1:].max(axis=1)
    return np.column_stack([runs, waves])


def _each(pieces: Array) -> Array:
    """The same run for every agent by itself: changes in opposite directions do not cancel."""
    runs = (np.cumsum(pieces, axis=1) ** 2).max(axis=1) / _scale(pieces)
    return np.asarray(runs.sum(axis=1))


def _segments(table: RewardTable) -> tuple[Array, tuple[int, ...], bool, float]:
    """Means and best arm by segment; whether the best really changes; what following it is worth."""
    log = table.log
    segment = blocks_of(table, SEGMENTS)
    n_arms = log.n_arms
    # Values relative to their agent: who measured more in a segment must not move its means.
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
    return means, tuple(best.tolist()), changes, _value_of_following(table, relative, segment, fixed)


def _value_of_following(table: RewardTable, relative: Array, segment: NDArray[np.int64], fixed: int) -> float:
    log, n_arms = table.log, table.log.n_arms
    half = table.slot.astype(np.int64) % 2
    cell = (half * SEGMENTS + segment) * n_arms + log.arm
    found = cell_means(log.sign * relative, cell, 2 * SEGMENTS * n_arms)[0].reshape(2, SEGMENTS, n_arms)
    gains = []
    for here, there in ((0, 1), (1, 0)):
        best = np.where(np.isnan(found[here]), -np.inf, found[here]).argmax(axis=1)
        gains.append(found[there][np.arange(SEGMENTS), best] - found[there][:, fixed])
    return float(np.nanmean(gains)) if np.isfinite(gains).any() else 0.0
