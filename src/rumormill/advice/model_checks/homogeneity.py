"""Homogeneity: are the arms the same for all agents? A permutation test, and groups with one best arm.

Time is cut into blocks. In every block the values of an agent are centred by the mean of all agents for that
arm, so neither drift nor common shocks count. Under homogeneity the agents are exchangeable within a block:
the permutation test permutes them 999 times. The statistic uses contrasts between arms, so an agent that is
slower with every arm alike does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.reward_table import RewardTable
from rumormill.stats import cell_means, clipped, winsorised_cells, within_rounding_error

Array = NDArray[np.float64]
Ints = NDArray[np.int32]
Groups = tuple[tuple[int, ...], ...]

BLOCKS = 24
CLIP = 0.05
# The level of the permutation test: a false alarm in one of 200 homogeneous logs.
LEVEL = 0.005
PERMUTATIONS, PERMUTED_AT_ONCE = 999, 2_000_000
# One more best arm is accepted if it gains so many standard errors on hold-out folds; homogeneity is
# rejected by then.
PAYS, FOLDS = 1.28, 6


@dataclass(frozen=True)
class Homogeneity:
    """The result of the permutation test, and the groups of agents with one best arm."""

    tested: bool
    p_value: float
    statistic: float
    means: Array
    """Winsorised means (agent, arm), in the user's unit."""
    errors: Array
    best_common: int
    groups: Groups
    """Agents with the same best arm; one group where the arms are the same for all."""
    best_of_group: tuple[int, ...]
    value: float
    """Gain per request of the own best arm over the common one; estimated on held-out blocks."""

    @property
    def differs(self) -> bool:
        """Whether the arms depend on the agent."""
        return self.tested and self.p_value <= LEVEL

    @property
    def best_differs(self) -> bool:
        """Whether the best arm depends on the agent."""
        return self.differs and len(self.groups) > 1

    @property
    def group_of(self) -> NDArray[np.int64]:
        """The number of every agent's group."""
        return group_numbers(self.groups, len(self.means))


def blocks_of(table: RewardTable, count: int) -> NDArray[np.int64]:
    """The block of time of every row of the log."""
    return table.slot.astype(np.int64) * min(count, table.rounds) // table.rounds


def check_homogeneity(table: RewardTable, rng: np.random.Generator) -> Homogeneity:
    """The permutation test; if it rejects, groups of agents."""
    log = table.log
    n_agents, n_arms = log.n_agents, log.n_arms
    cell = log.agent.astype(np.int64) * n_arms + log.arm
    flat = cell_means(log.value, cell, n_agents * n_arms)
    means, errors = flat[0].reshape(n_agents, n_arms), flat[1].reshape(n_agents, n_arms)
    common = np.array([cell_means(log.value, log.arm.astype(np.int64), n_arms)[0]])[0]
    best_common = int(np.nanargmax(log.sign * common))
    all_agents: Groups = (tuple(range(n_agents)),)
    if log.agents is None or n_agents < 2:
        return Homogeneity(False, 1.0, 0.0, means, errors, best_common, all_agents, (best_common,), 0.0)
    p_value, statistic = _permutation_test(table, means, rng)
    groups: Groups = all_agents
    best: tuple[int, ...] = (best_common,)
    if p_value <= LEVEL:
        tame = winsorised_cells(log.value, cell, n_agents * n_arms)
        block = blocks_of(table, BLOCKS)
        sums, n = folded(log.sign * tame, log.agent, log.arm, block, (n_agents, n_arms))
        groups, best = group_agents(sums, n, errors)
    value = _gain_of_own_best(table, best_common)
    return Homogeneity(True, p_value, statistic, means, errors, best_common, groups, best, value)


def _permutation_test(table: RewardTable, means: Array, rng: np.random.Generator) -> tuple[float, float]:
    """p-value and statistic of the permutation test."""
    log, count = table.log, min(BLOCKS, table.rounds)
    n_agents, n_arms = log.n_agents, log.n_arms
    # Without the agents' levels, which clipping would turn into differences between arms.
    level = np.nanmean(means, axis=1)
    values = clipped(log.value - level[log.agent], log.arm, log.n_arms, CLIP)
    block = blocks_of(table, count)
    cell = (block * n_agents + log.agent) * n_arms + log.arm
    shape = (count, n_agents, n_arms)
    n = np.bincount(cell, minlength=count * n_agents * n_arms).reshape(shape).astype(np.float64)
    sums = np.bincount(cell, weights=values, minlength=n.size).reshape(shape)
    middle = sums.sum(axis=1, keepdims=True) / np.maximum(n.sum(axis=1, keepdims=True), 1)
    sums = sums - n * middle
    left = values - middle[block, 0, log.arm]
    if within_rounding_error(left, log.value):
        return 1.0, 0.0
    variance = np.array([left[log.arm == k].var() if (log.arm == k).any() else 1.0 for k in range(n_arms)])
    variance = np.maximum(variance, 1e-12 * variance.max())
    seen = _sizes(sums.sum(axis=0)[None], n.sum(axis=0)[None], variance)
    at_once = max(1, PERMUTED_AT_ONCE // n.size)
    found = []
    for start in range(0, PERMUTATIONS, at_once):
        many = min(at_once, PERMUTATIONS - start)
        order = rng.random((many, count, n_agents)).argsort(axis=2)
        each = np.arange(count)[None, :, None]
        found.append(_sizes(sums[each, order].sum(axis=1), n[each, order].sum(axis=1), variance))
    drawn = np.concatenate(found)
    return combined_p(seen[0], drawn), float(seen[0, 0] / max(drawn[:, 0].mean(), 1e-300))


def _sizes(sums: Array, n: Array, variance: Array) -> Array:
    """Two statistics of the contrasts between agents: the sum of squares, and the top eigenvalue."""
    weight = n / variance
    means = sums / np.maximum(n, 1)
    level = (weight * means).sum(axis=2, keepdims=True) / np.maximum(
        weight.sum(axis=2, keepdims=True), 1e-300
    )
    z = np.where(n > 0, (means - level) * np.sqrt(weight), 0.0)
    top = np.linalg.eigvalsh(np.swapaxes(z, 1, 2) @ z)[:, -1]
    return np.column_stack([(z**2).sum(axis=(1, 2)), top])


def combined_p(seen: Array, drawn: Array) -> float:
    """p-value of the largest of several statistics, each standardised by its permutation distribution."""
    middle, spread = drawn.mean(axis=0), np.maximum(drawn.std(axis=0), 1e-300)
    largest = ((drawn - middle) / spread).max(axis=1)
    own = ((seen - middle) / spread).max()
    return float((1 + (largest >= own - 1e-12).sum()) / (1 + len(drawn)))


def group_agents(sums: Array, n: Array, errors: Array) -> tuple[Groups, tuple[int, ...]]:
    """Agents grouped by their best arm, by forward selection of arms with cross-validation.

    `sums` and counts `n` by (fold of time, agent, arm), more is better. Starts with the best common arm.
    Another one is added if letting every agent choose between them gains on the hold-out fold.
    """
    total, count = sums.sum(axis=0), n.sum(axis=0)
    means = np.where(count > 0, total / np.maximum(count, 1), -np.inf)
    chosen = [int(np.where(count.sum(axis=0) > 0, total.sum(axis=0) / count.sum(axis=0), -np.inf).argmax())]
    others, left_out = _hold_out_means(sums, n)
    while len(chosen) < means.shape[1]:
        rest = [arm for arm in range(means.shape[1]) if arm not in chosen]
        pays = [_hold_out_gain(others, left_out, errors, chosen, arm) for arm in rest]
        if max(pays) < PAYS:
            break
        chosen.append(rest[int(np.argmax(pays))])
    home = np.array(chosen)[means[:, chosen].argmax(axis=1)]
    arms = sorted(set(home.tolist()))
    return tuple(tuple(np.flatnonzero(home == arm).tolist()) for arm in arms), tuple(arms)


def _hold_out_means(sums: Array, n: Array) -> tuple[Array, Array]:
    """Means without a fold, and of the fold alone: (fold, agent, arm); NaN where empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (sums.sum(axis=0) - sums) / (n.sum(axis=0) - n), sums / n


def _hold_out_gain(others: Array, left_out: Array, errors: Array, chosen: Sequence[int], arm: int) -> float:
    """Gain on hold-out folds from one more arm to choose from, in standard errors."""
    several = [*chosen, arm]
    known = np.where(np.isnan(others), -np.inf, others)
    before = np.array(chosen)[known[:, :, chosen].argmax(axis=2)]
    after = np.array(several)[known[:, :, several].argmax(axis=2)]
    fold, agent = np.indices(before.shape)
    gain = np.where(after == before, 0.0, left_out[fold, agent, after] - left_out[fold, agent, before])
    noise = np.where(after == before, 0.0, errors[agent, after] ** 2 + errors[agent, before] ** 2)
    seen = np.isfinite(gain) & np.isfinite(noise)
    if not (seen & (after != before)).any():
        return -np.inf
    # The error of a fold is larger than that of the log by the root of the number of folds.
    return float(np.where(seen, gain, 0.0).sum() / np.sqrt(len(others) * np.where(seen, noise, 0.0).sum()))


def folded(
    values: Array, agent: Ints, arm: Ints, block: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Sums and counts by (fold, agent, arm); a fold is every sixth block of time."""
    size = FOLDS * shape[0] * shape[1]
    cell = ((block % FOLDS) * shape[0] + agent) * shape[1] + arm
    n = np.bincount(cell, minlength=size).reshape(FOLDS, *shape).astype(np.float64)
    sums: Array = np.bincount(cell, weights=values, minlength=size).astype(np.float64)
    return sums.reshape(FOLDS, *shape), n


def groups_of_table(values: Array, sign: float) -> Groups:
    """Agents with the same best arm, from values [round, agent, arm]; sign -1: less is better."""
    rounds, n_agents, n_arms = values.shape
    agent = np.broadcast_to(np.arange(n_agents, dtype=np.int32)[None, :, None], values.shape).ravel()
    arm = np.broadcast_to(np.arange(n_arms, dtype=np.int32), values.shape).ravel()
    block = np.repeat(np.arange(rounds) * min(BLOCKS, rounds) // rounds, n_agents * n_arms)
    cell = agent.astype(np.int64) * n_arms + arm
    tame = winsorised_cells(values.ravel(), cell, n_agents * n_arms)
    errors = cell_means(values.ravel(), cell, n_agents * n_arms)[1].reshape(n_agents, n_arms)
    sums, n = folded(sign * tame, agent, arm, block, (n_agents, n_arms))
    return group_agents(sums, n, errors)[0]


def group_numbers(groups: Groups, n_agents: int) -> NDArray[np.int64]:
    """The number of every agent's group."""
    found = np.zeros(n_agents, dtype=np.int64)
    for number, group in enumerate(groups):
        found[list(group)] = number
    return found


def _gain_of_own_best(table: RewardTable, best_common: int) -> float:
    """Gain per request of the own best arm, chosen on every other block, over the common one on the rest."""
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
