"""A block of rounds of DDUCB: stages of gossip, each used one stage later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rumormill import formulas
from rumormill.kernels.consensus import average
from rumormill.kernels.jit import kernel, part
from rumormill.kernels.simd.row_sums import RowSums
from rumormill.kernels.state import Floats, Ids, Ints, Output, RewardLaw, record, record_actions

chebyshev_step = part(formulas.chebyshev_step)
delayed_index = part(formulas.delayed_index)
delayed_scale = part(formulas.delayed_scale)

LEAST_COUNT = 1e-9


class DelayedRules(NamedTuple):
    """What does not change during a trial."""

    n_arms: int
    weight: float
    forward: Floats
    """Per step of a stage."""
    back: Floats
    own: bool
    eta: float
    sigma: float
    gaps: Floats
    degrees: Ints
    sums: RowSums


class DelayedState(NamedTuple):
    """Rows 0..K-1 are the sums, K..2K-1 the counts; columns are agents."""

    use: Floats
    mix: Floats
    before: Floats
    fresh: Floats
    done: Floats
    table: Floats
    best_index: Floats
    action: Ids
    pulls: Ints
    mark: Ints
    """[the next checkpoint]."""
    clock: Ints
    """[step of the stage, samples seen]."""


@kernel
def play_delayed_block(
    first: int, draws: Floats, law: RewardLaw, rules: DelayedRules, state: DelayedState, output: Output
) -> None:
    """Rounds first .. first + len(draws) - 1."""
    n_arms, n_agents = rules.n_arms, state.use.shape[1]
    for row in range(draws.shape[0]):
        t = first + row
        if t <= n_arms:
            state.action[:] = t - 1
        elif rules.own or state.clock[0] == 0:
            choose_delayed(rules, state)
        for v in range(n_agents):
            arm = state.action[v]
            x = law.loc[arm] + law.scale[arm] * draws[row, v, 0 if law.shared else arm]
            add_reward(t, v, arm, x, rules, state)
            state.pulls[v, arm] += 1
        record_actions(t, state.action, output.actions)
        record(t, state.mark, state.pulls, rules.gaps, output)
        if t == n_arms:
            state.clock[1] = n_arms
            for r in range(state.mix.shape[0]):
                for v in range(n_agents):
                    state.use[r, v] = state.mix[r, v] / n_agents
        elif t > n_arms:
            if rules.own:
                state.clock[1] += 1
            gossip_step(t, rules, state)


@part
def choose_delayed(rules: DelayedRules, state: DelayedState) -> None:
    """The arm of the largest index for every agent; the lowest arm on ties."""
    best, action = state.best_index, state.action
    n_agents = best.shape[0]
    scale = delayed_scale(float(state.clock[1]), rules.sigma, rules.eta)
    best[:] = -np.inf
    for arm in range(rules.n_arms):
        total, count = state.use[arm], state.use[rules.n_arms + arm]
        for v in range(n_agents):
            index = delayed_index(total[v], count[v], n_agents, scale)
            if index > best[v]:
                best[v] = index
                action[v] = arm


@part
def add_reward(t: int, v: int, arm: int, x: float, rules: DelayedRules, state: DelayedState) -> None:
    """Add a reward to the first stage, or to the next one and, if own, to the sums in use."""
    count, n_agents = rules.n_arms + arm, state.use.shape[1]
    if t <= rules.n_arms:
        state.mix[arm, v] += x
        state.mix[count, v] += 1.0
        return
    state.fresh[arm, v] += x
    state.fresh[count, v] += 1.0
    if rules.own:
        state.use[arm, v] += x / n_agents
        state.use[count, v] += 1.0 / n_agents


@part
def gossip_step(t: int, rules: DelayedRules, state: DelayedState) -> None:
    """One step of the stage, and its end."""
    step, stage = state.clock[0], rules.forward.shape[0]
    table, width = state.table, state.table.shape[2]
    for r in range(state.mix.shape[0]):
        for v in range(state.mix.shape[1]):
            table[r // width, v, r % width] = state.mix[r, v]
    average(rules.sums, rules.degrees, rules.weight, table)
    for r in range(state.mix.shape[0]):
        for v in range(state.mix.shape[1]):
            now, after = state.mix[r, v], table[r // width, v, r % width]
            state.mix[r, v] = chebyshev_step(after, state.before[r, v], rules.forward[step], rules.back[step])
            state.before[r, v] = now
    state.clock[0] = step + 1
    if step + 1 < stage:
        return
    for r in range(state.mix.shape[0]):
        for v in range(state.mix.shape[1]):
            state.done[r, v] += state.mix[r, v]
            state.use[r, v] = state.done[r, v]
            if r >= rules.n_arms:
                state.use[r, v] = max(state.use[r, v], LEAST_COUNT)
            state.mix[r, v] = state.fresh[r, v]
            state.fresh[r, v] = 0.0
            state.before[r, v] = 0.0
    state.clock[0] = 0
    state.clock[1] = (t - stage) * state.use.shape[1]
