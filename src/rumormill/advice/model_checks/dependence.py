"""Dependence of rewards: serial (lag-one autocorrelation) and between agents (common shocks)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.model_checks.drift import PIECES
from rumormill.advice.model_checks.homogeneity import CLIP, blocks_of
from rumormill.advice.reward_table import RewardTable
from rumormill.stats import clipped

Array = NDArray[np.float64]

# Reported if above three standard errors and above 5 %.
SURELY, WORTH = 3.0, 0.05


@dataclass(frozen=True)
class Dependence:
    """Lag-one autocorrelation within (agent, arm), and the share of variance common to all agents."""

    lag_one: float
    lag_error: float
    common: float
    common_error: float

    @property
    def remembers(self) -> bool:
        """Whether there is serial dependence."""
        return abs(self.lag_one) > max(WORTH, SURELY * self.lag_error)

    @property
    def shocks(self) -> bool:
        """Whether there are shocks common to all agents."""
        return self.common > max(WORTH, SURELY * self.common_error)


def check_dependence(table: RewardTable) -> Dependence:
    """Both correlations of clipped values, centred by (agent, arm) and by piece of time and arm."""
    log = table.log
    values = clipped(log.value, log.arm, log.n_arms, CLIP)
    cell = log.agent.astype(np.int64) * log.n_arms + log.arm
    piece = blocks_of(table, PIECES) * log.n_arms + log.arm
    left = values - _means(values, cell)[cell]
    slow = left - _means(left, piece)[piece] if table.rounds >= 4 * PIECES else left
    lag, lag_error = _lag_one(slow, cell)
    if log.agents is None or log.n_agents < 2:
        return Dependence(lag, lag_error, 0.0, np.inf)
    together = table.slot.astype(np.int64) * log.n_arms + log.arm
    return Dependence(lag, lag_error, *_in_common(slow, together))


def _means(values: Array, cell: NDArray[np.int64]) -> Array:
    """The mean of every cell."""
    counts = np.bincount(cell)
    return np.asarray(np.bincount(cell, weights=values) / np.maximum(counts, 1))


def _lag_one(values: Array, cell: NDArray[np.int64]) -> tuple[float, float]:
    """Lag-one autocorrelation within cells, and its standard error."""
    order = np.argsort(cell, kind="stable")  # rows are in the order of time
    ordered, same = values[order], np.diff(cell[order]) == 0
    scale = float((values**2).mean())
    pairs = int(same.sum())
    if pairs < 10 or scale <= 0:
        return 0.0, np.inf
    return float((ordered[1:] * ordered[:-1])[same].mean()) / scale, 1 / float(np.sqrt(pairs))


def _in_common(values: Array, slot: NDArray[np.int64]) -> tuple[float, float]:
    """Intra-class correlation of agents that try the same arm in the same round, and its standard error."""
    counts = np.bincount(slot)
    sums, squares = np.bincount(slot, weights=values), np.bincount(slot, weights=values**2)
    several = counts > 1
    n, s, q = counts[several], sums[several], squares[several]
    pairs = float((n * (n - 1)).sum())
    scale = float((values**2).mean())
    if pairs < 20 or scale <= 0:
        return 0.0, np.inf
    products = s**2 - q
    share = float(products.sum()) / pairs / scale
    error = float(np.sqrt(((products - share * scale * n * (n - 1)) ** 2).sum())) / pairs / scale
    return share, error
