"""Does everybody face the same arms? A permutation test, per-agent means, and groups with one best arm.

Time is cut into blocks. In every block what an agent measured is compared with what all measured of the same
arm there, so that neither a drift nor a shock that hits everybody counts. Were the arms the same for all, the
agents could swap names within a block: the test does that a thousand times. An agent slower with every
arm alike is not counted (contrasts between arms are); one for whom another arm is better is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.robust import cell_means, clipped
from rumormill.advice.table import Table

Array = NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]

BLOCKS = 24
CLIP = 0.05
# A false alarm in one of 200 homogeneous logs.
LEVEL = 0.005
SHUFFLES, SHUFFLED_AT_ONCE = 999, 2_000_000
# An agent leaves the arm that suits its group when another is better by so many standard errors.
SURELY = 2.5


@dataclass(frozen=True)
class Sameness:
    """Whether the arms are the same for everybody, and if not, who belongs together."""

    tested: bool
    p_value: float
    statistic: float
    means: Array
    """Robust means (agent, arm), in the user's unit."""
    errors: Array
    best_common: int
    groups: Groups
    """Agents with the same best arm; one group where the arms are the same for all."""
    best_of_group: tuple[int, ...]
    value: float
    """What knowing the own best arm is worth per request, against the common one; from held-out blocks."""

    @property
    def differs(self) -> bool:
        """Whether the arms depend on the agent."""
        return self.tested and self.p_value <= LEVEL

    @property
    def best_differs(self) -> bool:
        """Whether the best arm does."""
        return self.differs and len(self.groups) > 1

    @property
    def group_of(self) -> NDArray[np.int64]:
        found = np.zeros(len(self.means), dtype=np.int64)
        for number, group in enumerate(self.groups):
            found[list(group)] = number
        return found


def blocks_of(table: Table, count: int) -> NDArray[np.int64]:
    """The block of time of every line of the log."""
    return table.slot.astype(np.int64) * min(count, table.rounds) // table.rounds


def check_sameness(table: Table, rng: np.random.Generator) -> Sameness:
    """Test, and group."""
    log = table.log
    n_agents, n_arms = log.n_agents, log.n_arms
    cell = log.agent.astype(np.int64) * n_arms + log.arm
    means, errors, _ = (
        each.reshape(n_agents, n_arms) for each in cell_means(log.value, cell, n_agents * n_arms)
    )
    common = np.array([cell_means(log.value, log.arm.astype(np.int64), n_arms)[0]])[0]
    best_common = int(np.nanargmax(log.sign * common))
    everybody: Groups = (tuple(range(n_agents)),)
    if log.agents is None or n_agents < 2:
        return Sameness(False, 1.0, 0.0, means, errors, best_common, everybody, (best_common,), 0.0)
    p_value, statistic = _shuffled(table, rng)
    groups, best = everybody, (best_common,)
    if p_value <= LEVEL:
        groups, best = group_agents(log.sign * means, errors, np.isfinite(means))
    value = _value_of_knowing(table, best_common)
    return Sameness(True, p_value, statistic, means, errors, best_common, groups, best, value)


def _shuffled(table: Table, rng: np.random.Generator) -> tuple[float, float]:
    """p-value and size of the difference between agents."""
    log, count = table.log, min(BLOCKS, table.rounds)
    n_agents, n_arms = log.n_agents, log.n_arms
    block, values = blocks_of(table, count), clipped(log.value, log.arm, log.n_arms, CLIP)
    cell = (block * n_agents + log.agent) * n_arms + log.arm
    shape = (count, n_agents, n_arms)
    n = np.bincount(cell, minlength=count * n_agents * n_arms).reshape(shape).astype(np.float64)
    sums = np.bincount(cell, weights=values, minlength=n.size).reshape(shape)
    middle = sums.sum(axis=1, keepdims=True) / np.maximum(n.sum(axis=1, keepdims=True), 1)
    sums = sums - n * middle
    left = values - middle[block, 0, log.arm]
    variance = np.array([left[log.arm == k].var() if (log.arm == k).any() else 1.0 for k in range(n_arms)])
    variance = np.maximum(variance, 1e-12 * max(variance.max(), 1e-300))
    seen = _sizes(sums.sum(axis=0)[None], n.sum(axis=0)[None], variance)
    at_once = max(1, SHUFFLED_AT_ONCE // n.size)
    found = []
    for start in range(0, SHUFFLES, at_once):
        many = min(at_once, SHUFFLES - start)
        order = rng.random((many, count, n_agents)).argsort(axis=2)
        each = np.arange(count)[None, :, None]
        found.append(_sizes(sums[each, order].sum(axis=1), n[each, order].sum(axis=1), variance))
    drawn = np.concatenate(found)
    return combined_p(seen[0], drawn), float(seen[0, 0] / max(drawn[:, 0].mean(), 1e-300))


def _sizes(sums: Array, n: Array, variance: Array) -> Array:
    """Two sizes of the contrasts between agents: all together, and along one direction (two clusters)."""
    weight = n / variance
    means = sums / np.maximum(n, 1)
    level = (weight * means).sum(axis=2, keepdims=True) / np.maximum(
        weight.sum(axis=2, keepdims=True), 1e-300
    )
    z = np.where(n > 0, (means - level) * np.sqrt(weight), 0.0)
    top = np.linalg.eigvalsh(np.swapaxes(z, 1, 2) @ z)[:, -1]
    return np.column_stack([(z**2).sum(axis=(1, 2)), top])


def combined_p(seen: Array, drawn: Array) -> float:
    """The p-value of the largest of several statistics, each in units of its own spread under shuffling."""
    middle, spread = drawn.mean(axis=0), np.maximum(drawn.std(axis=0), 1e-300)
    largest = ((drawn - middle) / spread).max(axis=1)
    own = ((seen - middle) / spread).max()
    return float((1 + (largest >= own - 1e-12).sum()) / (1 + len(drawn)))


def group_agents(means: Array, errors: Array, known: NDArray[np.bool_]) -> tuple[Groups, tuple[int, ...]]:
    """The fewest arms such that for every agent one of them is not surely worse than its own best.

    `means`: more is better. Arms are taken one by one, the one that suits most of those left first; then
    every agent goes to the arm among them that is best for it.
    """
    n_agents, n_arms = means.shape
    filled = np.where(known, means, -np.inf)
    best = filled.argmax(axis=1)
    rows = np.arange(n_agents)
    behind = filled[rows, best][:, None] - filled
    noise = np.sqrt(errors**2 + errors[rows, best][:, None] ** 2)
    suits = known & (behind <= SURELY * np.where(np.isfinite(noise), noise, 0.0))
    left, chosen = np.ones(n_agents, dtype=bool), []
    while left.any():
        # The arm that suits most; ties go to the one that is the best itself more often.
        score = suits[left].sum(axis=0) + 1e-3 * np.bincount(best[left], minlength=n_arms)
        arm = int(score.argmax())
        chosen.append(arm)
        left &= ~suits[:, arm]
    home = np.array(chosen)[filled[:, chosen].argmax(axis=1)]
    arms = sorted(set(home.tolist()))
    return tuple(tuple(np.flatnonzero(home == arm).tolist()) for arm in arms), tuple(arms)


def _value_of_knowing(table: Table, best_common: int) -> float:
    """Per request: the own best arm, chosen on every other block, against the common one on the rest."""
    log = table.log
    half = blocks_of(table, BLOCKS) % 2
    n_agents, n_arms = log.n_agents, log.n_arms
    cell = (half * n_agents + log.agent) * n_arms + log.arm
    found = cell_means(log.value, cell, 2 * n_agents * n_arms)[0].reshape(2, n_agents, n_arms)
    means = log.sign * found
    gains = []
    for here, there in ((0, 1), (1, 0)):
        own = np.where(np.isnan(means[here]), -np.inf, means[here]).argmax(axis=1)
        gains.append(means[there][np.arange(n_agents), own] - means[there][:, best_common])
    return float(np.nanmean(gains)) if np.isfinite(gains).any() else 0.0
