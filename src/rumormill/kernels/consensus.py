"""A block of rounds of Consensus-UCB: averaging with the neighbours, row by row of P."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import kernel, masked_part, step
from rumormill.kernels.regret import record
from rumormill.kernels.state import Floats, Ids, Ints, Law, Mask, Output

consensus_index = step(formulas.consensus_index)
consensus_average = step(formulas.consensus_average)
source_clip = step(formulas.source_clip)


class ConsensusRules(NamedTuple):
    """What does not change during a trial."""

    n_arms: int
    weight: float
    """κ/d_max."""
    exponent: float
    """n_eff^-exponent is how the radius shrinks."""
    scale: Floats
    """Per round, the radius at n_eff = 1."""
    epsilon: Floats
    drift: Floats
    """Per round, what is added to ε_v."""
    clips: bool
    clip: Floats
    """Per round, the level at which rewards are clipped before they are averaged."""
    p: float
    gaps: Floats
    mask: Mask
    """[origin, hearer]: the adjacency of a dense network; empty for a sparse one."""
    indptr: Ints
    indices: Ids


class ConsensusState(NamedTuple):
    """Rows 0..K-1 are the sums, K..2K-1 the counts; columns are agents."""

    opinion: Floats
    heard: Floats
    best_index: Floats
    action: Ids
    pulls: Ints
    mark: Ints
    """[the next checkpoint]."""


@kernel
def play_consensus_block(
    first: int, draws: Floats, law: Law, rules: ConsensusRules, state: ConsensusState, output: Output
) -> None:
    """Rounds first .. first + len(draws) - 1."""
    n_arms, opinion = rules.n_arms, state.opinion
    n_agents = opinion.shape[1]
    for row in range(draws.shape[0]):
        t = first + row
        if t <= n_arms:
            state.action[:] = t - 1
        else:
            choose_by_consensus(t, rules, state)
        for v in range(n_agents):
            arm = state.action[v]
            x = law.loc[arm] + law.scale[arm] * draws[row, v, 0 if law.shared else arm]
            if rules.clips:
                most = source_clip(opinion[n_arms + arm, v], n_agents, rules.clip[t], rules.p)
                x = min(max(x, -most), most)
            opinion[arm, v] += x
            opinion[n_arms + arm, v] += 1.0
            state.pulls[v, arm] += 1
        if output.actions.shape[0] > 0:
            for v in range(state.action.shape[0]):
                output.actions[t - 1, v] = state.action[v]
        record(t, state.mark, state.pulls, rules.gaps, output)
        average(rules.mask, rules.indptr, rules.indices, rules.weight, opinion, state.heard)


@step
def choose_by_consensus(t: int, rules: ConsensusRules, state: ConsensusState) -> None:
    best, action = state.best_index, state.action
    n_agents = best.shape[0]
    best[:] = -np.inf
    for arm in range(rules.n_arms):
        total, count = state.opinion[arm], state.opinion[rules.n_arms + arm]
        for v in range(n_agents):
            epsilon = rules.epsilon[v] + rules.drift[t]
            index = consensus_index(total[v], count[v], n_agents, epsilon, rules.scale[t], rules.exponent)
            if index > best[v]:
                best[v] = index
                action[v] = arm


@step
def average(mask: Mask, indptr: Ints, indices: Ids, weight: float, opinion: Floats, heard: Floats) -> None:
    """opinion <- P opinion: own part plus weight times the sum over neighbours in ascending order."""
    n_arms, n_agents = opinion.shape[0] // 2, opinion.shape[1]
    heard[:] = 0.0
    if mask.shape[0] > 0:
        for r in range(opinion.shape[0]):
            _sum_dense(opinion[r], heard[r], mask)
    else:
        for arm in range(n_arms):  # sums and counts together: two chains of additions at a time
            totals, counts = opinion[arm], opinion[n_arms + arm]
            for v in range(n_agents):
                total, count = 0.0, 0.0
                for i in range(indptr[v], indptr[v + 1]):
                    total += totals[indices[i]]
                    count += counts[indices[i]]
                heard[arm, v] = total
                heard[n_arms + arm, v] = count
    for r in range(opinion.shape[0]):
        for v in range(n_agents):
            degree = indptr[v + 1] - indptr[v]
            opinion[r, v] = consensus_average(opinion[r, v], heard[r, v], degree, weight)


@masked_part
def _sum_dense(values: Floats, sums: Floats, mask: Mask) -> None:
    """sums[v] += the values of v's neighbours in ascending order, four origins at a time."""
    n = values.shape[0]
    w = 0
    while w + 4 <= n:
        xa, xb, xc, xd = values[w], values[w + 1], values[w + 2], values[w + 3]
        ma, mb, mc, md = mask[w], mask[w + 1], mask[w + 2], mask[w + 3]
        for v in range(n):
            sums[v] = (((sums[v] + xa * ma[v]) + xb * mb[v]) + xc * mc[v]) + xd * md[v]
        w += 4
    while w < n:
        x, m = values[w], mask[w]
        for v in range(n):
            sums[v] += x * m[v]
        w += 1
