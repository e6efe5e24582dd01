"""A block of rounds of Consensus-UCB: averaging with the neighbours, row by row of the mixing matrix P.

A block of rounds of DDUCB: stages of gossip, each used one stage later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rumormill import formulas
from rumormill.formulas import IDS_PER_BLOCK
from rumormill.kernels.flooding import send_bundles
from rumormill.kernels.jit import kernel, linked, part, step
from rumormill.kernels.lossy_state import LOST, Delays, Links
from rumormill.kernels.simd.row_sums import RowSums, add_up
from rumormill.kernels.state import Flags, Floats, Ids, Ints, Output, RewardLaw, record, record_actions

consensus_average = step(formulas.consensus_average)
effective_count = part(formulas.effective_count)
consensus_index = linked(formulas.consensus_index, effective_count=effective_count)
power_series = part(formulas.power_series)
source_clip = step(formulas.source_clip)

SERIES_RANGE, SERIES_ERROR = formulas.SERIES_RANGE, formulas.SERIES_ERROR


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
    degrees: Ints
    sums: RowSums
    """The sums of a round; the last rows are the sums over the neighbours of every agent."""


class ConsensusState(NamedTuple):
    """What a trial changes."""

    table: Floats
    """[slice of columns, row, column]: a row per agent, sums of all arms, then counts; then sums of rows."""
    place: Ints
    """[slice or column, number]: the position of the K sums and K counts of an agent."""
    anchor: Floats
    """[arm, agent]: 1/n_eff when its power was taken last; 0: never."""
    power: Floats
    """[arm, agent]: that power."""
    workspace: Floats
    """Per agent: sum, count and n_eff of an arm; the best index, the second, and the bound of their error."""
    action: Ids
    pulls: Ints
    mark: Ints
    """[the next checkpoint]."""


@kernel
def play_consensus_block(
    first: int, draws: Floats, law: RewardLaw, rules: ConsensusRules, state: ConsensusState, output: Output
) -> None:
    """Rounds first .. first + len(draws) - 1."""
    n_agents = state.action.shape[0]
    for row in range(draws.shape[0]):
        t = first + row
        if t <= rules.n_arms:
            state.action[:] = t - 1
        else:
            choose_by_consensus(t, rules, state)
        for v in range(n_agents):
            arm = state.action[v]
            x = law.loc[arm] + law.scale[arm] * draws[row, v, 0 if law.shared else arm]
            add_reward(t, v, arm, x, rules, state)
        record_actions(t, state.action, output.actions)
        record(t, state.mark, state.pulls, rules.gaps, output)
        average(rules.sums, rules.degrees, rules.weight, state.table)


@step
def add_reward(t: int, v: int, arm: int, x: float, rules: ConsensusRules, state: ConsensusState) -> None:
    """Add an agent's own reward."""
    table, place = state.table, state.place
    counts = rules.n_arms + arm
    if rules.clips:
        n = table[place[0, counts], v, place[1, counts]]
        most = source_clip(n, state.action.shape[0], rules.clip[t], rules.p)
        x = min(max(x, -most), most)
    table[place[0, arm], v, place[1, arm]] += x
    table[place[0, counts], v, place[1, counts]] += 1.0
    state.pulls[v, arm] += 1


@part
def choose_by_consensus(t: int, rules: ConsensusRules, state: ConsensusState) -> None:
    """The arm of the largest index.

    A power per agent and arm is expensive. It is computed anew only where n_eff has changed by a 16th since
    the last time, and continued by its series in between; agents whose two best indices differ by less than
    the error of the series compute the exact ones.
    """
    n_arms, action, workspace, place = rules.n_arms, state.action, state.workspace, state.place
    n_agents = action.shape[0]
    total, count, n_eff = workspace[0], workspace[1], workspace[2]
    best, second, slack = workspace[3], workspace[4], workspace[5]
    scale, drift, exponent = rules.scale[t], rules.drift[t], rules.exponent
    best[:] = -np.inf
    second[:] = -np.inf
    slack[:] = 0.0
    for arm in range(n_arms):
        sums = state.table[place[0, arm], :, place[1, arm]]
        counts = state.table[place[0, n_arms + arm], :, place[1, n_arms + arm]]
        for v in range(n_agents):  # contiguous, so that what follows is vectorised
            total[v], count[v] = sums[v], counts[v]
        anchor, power = state.anchor[arm], state.power[arm]
        far = 0
        for v in range(n_agents):
            n_eff[v] = effective_count(count[v], n_agents, rules.epsilon[v] + drift)
            far += not abs(n_eff[v] * anchor[v] - 1.0) <= SERIES_RANGE
        if far > 0:
            refresh_powers(n_eff, count, exponent, anchor, power)
        for v in range(n_agents):
            mean = total[v] / count[v]
            radius = scale * (power[v] * power_series(n_eff[v] * anchor[v] - 1.0, exponent))
            index = mean + radius
            slack[v] += SERIES_ERROR * (abs(mean) + radius)
            better = index > best[v]
            second[v] = max(second[v], best[v] if better else index)
            action[v] = arm if better else action[v]
            best[v] = index if better else best[v]
    for v in range(n_agents):
        if not best[v] - second[v] > slack[v]:  # also true for NaN
            epsilon = rules.epsilon[v] + drift
            action[v] = exact_choice(v, n_arms, n_agents, epsilon, scale, exponent, place, state.table)


@part
def refresh_powers(n_eff: Floats, count: Floats, exponent: float, anchor: Floats, power: Floats) -> None:
    """Compute the powers anew where n_eff has changed too much since the last time."""
    for v in range(n_eff.shape[0]):
        if not count[v] > 0.0:  # NaN selects the exact index
            anchor[v], power[v] = 0.0, np.nan
        elif not abs(n_eff[v] * anchor[v] - 1.0) <= SERIES_RANGE:
            anchor[v], power[v] = 1.0 / n_eff[v], n_eff[v] ** -exponent


@part
def exact_choice(
    v: int,
    n_arms: int,
    n_agents: int,
    epsilon: float,
    scale: float,
    exponent: float,
    place: Ints,
    table: Floats,
) -> int:
    """The first arm of the largest index, by the formula itself."""
    best, chosen = -np.inf, 0
    for arm in range(n_arms):
        s = table[place[0, arm], v, place[1, arm]]
        n = table[place[0, n_arms + arm], v, place[1, n_arms + arm]]
        index = consensus_index(s, n, n_agents, epsilon, scale, exponent)
        if index > best:
            best, chosen = index, arm
    return chosen


@part
def average(sums: RowSums, degrees: Ints, weight: float, table: Floats) -> None:
    """The rows of all agents <- P times them: own part plus weight times the sum over neighbours."""
    n_agents = degrees.shape[0]
    received = table.shape[1] - n_agents
    add_up(table, sums)
    for c in range(table.shape[0]):
        for v in range(n_agents):
            own, others = table[c, v], table[c, received + v]
            for r in range(table.shape[2]):
                own[r] = consensus_average(own[r], others[r], degrees[v], weight)


@kernel
def play_lossy_consensus_block(
    first: int,
    draws: Floats,
    law: RewardLaw,
    ups: Flags,
    rules: ConsensusRules,
    state: ConsensusState,
    links_and_counters: tuple[Links, Delays, Ints],
    output: Output,
) -> None:
    """Rounds first .. first + len(draws) - 1; `ups`: which agents are present, [round, agent]."""
    links, late, counters = links_and_counters
    n_arms, n_agents = rules.n_arms, state.action.shape[0]
    for row in range(draws.shape[0]):
        t = first + row
        if t > n_arms:
            choose_by_consensus(t, rules, state)
        for v in range(n_agents):
            arm = t - 1 if t <= n_arms else state.action[v]
            if output.actions.shape[0] > 0:
                output.actions[t - 1, v] = arm if ups[row, v] else -1
            if not ups[row, v]:
                continue
            x = law.loc[arm] + law.scale[arm] * draws[row, v, 0 if law.shared else arm]
            add_reward(t, v, arm, x, rules, state)
            counters[0] += 1
            counters[1] += links.indptr[v + 1] - links.indptr[v]
        if t == output.marks[state.mark[0]]:
            output.agent_rounds[state.mark[0]] = counters[0]
            output.messages[state.mark[0]] = counters[1]
        record(t, state.mark, state.pulls, rules.gaps, output)
        send_bundles(t, ups[row], links, late)
        average_received(ups[row], rules.weight, links, late, state.table)


@part
def average_received(up: Flags, weight: float, links: Links, late: Delays, table: Floats) -> None:
    """The rows of all agents <- P_t times them: neighbours not received count as equal to the own row."""
    n_agents = up.shape[0]
    received = table.shape[1] - n_agents
    for c in range(table.shape[0]):
        for r in range(table.shape[2]):
            sent, averaged = table[c, :n_agents, r], table[c, received:, r]
            for v in range(n_agents):
                total, in_block, block, n_received = 0.0, 0.0, -1, 0
                for i in range(links.indptr[v], links.indptr[v + 1]):
                    if late[0, i] != LOST:
                        origin = links.indices[i]
                        if origin // IDS_PER_BLOCK != block:
                            total += in_block
                            in_block, block = 0.0, origin // IDS_PER_BLOCK
                        in_block += sent[origin]
                        n_received += 1
                averaged[v] = sent[v]
                if up[v]:
                    averaged[v] = consensus_average(sent[v], total + in_block, n_received, weight)
        for v in range(n_agents):
            for r in range(table.shape[2]):
                table[c, v, r] = table[c, received + v, r]


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
            add_delayed_reward(t, v, arm, x, rules, state)
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
def add_delayed_reward(t: int, v: int, arm: int, x: float, rules: DelayedRules, state: DelayedState) -> None:
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
