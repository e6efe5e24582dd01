"""A block of rounds of Consensus-UCB: averaging with the neighbours, row by row of P."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rumormill import formulas
from rumormill.formulas import IDS_PER_BLOCK
from rumormill.kernels.flooding import send
from rumormill.kernels.jit import kernel, linked, part, step
from rumormill.kernels.lossy_state import LOST, Late, Links
from rumormill.kernels.simd.row_sums import Sums, add_up
from rumormill.kernels.state import Flags, Floats, Ids, Ints, Law, Output, record

consensus_average = step(formulas.consensus_average)
effective_count = part(formulas.effective_count)
consensus_index = linked(formulas.consensus_index, effective_count=effective_count)
nearby_power = part(formulas.nearby_power)
source_clip = step(formulas.source_clip)

NEARBY, NEARBY_ERROR = formulas.NEARBY, formulas.NEARBY_ERROR


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
    sums: Sums
    """What is added up in a round; the last rows are what every agent hears."""


class ConsensusState(NamedTuple):
    """Where a trial is."""

    table: Floats
    """[slice of columns, row, column]: a row per agent, sums of all arms, then counts; then sums of rows."""
    place: Ints
    """[slice or column, number]: where the K sums and K counts of an agent stand."""
    anchor: Floats
    """[arm, agent]: 1/n_eff when its power was taken last; 0: never."""
    power: Floats
    """[arm, agent]: that power."""
    desk: Floats
    """Per agent: sum, count and n_eff of an arm; the best index and the second, and how wrong they may be."""
    action: Ids
    pulls: Ints
    mark: Ints
    """[the next checkpoint]."""


@kernel
def play_consensus_block(
    first: int, draws: Floats, law: Law, rules: ConsensusRules, state: ConsensusState, output: Output
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
            take_in(t, v, arm, x, rules, state)
        if output.actions.shape[0] > 0:
            for v in range(n_agents):
                output.actions[t - 1, v] = state.action[v]
        record(t, state.mark, state.pulls, rules.gaps, output)
        average(rules.sums, rules.degrees, rules.weight, state.table)


@step
def take_in(t: int, v: int, arm: int, x: float, rules: ConsensusRules, state: ConsensusState) -> None:
    """An agent's own reward."""
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

    A power per agent and arm is dear. It is taken anew only where n_eff has moved by a 16th since the last
    time, and carried on by its series in between; who has two arms nearer to each other than the series may
    be wrong looks at the exact indices.
    """
    n_arms, action, desk, place = rules.n_arms, state.action, state.desk, state.place
    n_agents = action.shape[0]
    total, count, n_eff, best, second, slack = desk[0], desk[1], desk[2], desk[3], desk[4], desk[5]
    scale, drift, exponent = rules.scale[t], rules.drift[t], rules.exponent
    best[:] = -np.inf
    second[:] = -np.inf
    slack[:] = 0.0
    for arm in range(n_arms):
        sums = state.table[place[0, arm], :, place[1, arm]]
        counts = state.table[place[0, n_arms + arm], :, place[1, n_arms + arm]]
        for v in range(n_agents):  # side by side, so that what follows takes several agents at a time
            total[v], count[v] = sums[v], counts[v]
        anchor, power = state.anchor[arm], state.power[arm]
        far = 0
        for v in range(n_agents):
            n_eff[v] = effective_count(count[v], n_agents, rules.epsilon[v] + drift)
            far += not abs(n_eff[v] * anchor[v] - 1.0) <= NEARBY
        if far > 0:
            take_powers(n_eff, count, exponent, anchor, power)
        for v in range(n_agents):
            mean = total[v] / count[v]
            radius = scale * (power[v] * nearby_power(n_eff[v] * anchor[v] - 1.0, exponent))
            index = mean + radius
            slack[v] += NEARBY_ERROR * (abs(mean) + radius)
            better = index > best[v]
            second[v] = max(second[v], best[v] if better else index)
            action[v] = arm if better else action[v]
            best[v] = index if better else best[v]
    for v in range(n_agents):
        if not best[v] - second[v] > slack[v]:  # nor if one of them is no number
            epsilon = rules.epsilon[v] + drift
            action[v] = exact_choice(v, n_arms, n_agents, epsilon, scale, exponent, place, state.table)


@part
def take_powers(n_eff: Floats, count: Floats, exponent: float, anchor: Floats, power: Floats) -> None:
    """Where n_eff has moved too far since its last power."""
    for v in range(n_eff.shape[0]):
        if not count[v] > 0.0:  # its index is no number, which asks for the exact one
            anchor[v], power[v] = 0.0, np.nan
        elif not abs(n_eff[v] * anchor[v] - 1.0) <= NEARBY:
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
def average(sums: Sums, degrees: Ints, weight: float, table: Floats) -> None:
    """The rows of all agents <- P times them: own part plus weight times what was heard."""
    n_agents = degrees.shape[0]
    heard = table.shape[1] - n_agents
    add_up(table, sums)
    for c in range(table.shape[0]):
        for v in range(n_agents):
            own, others = table[c, v], table[c, heard + v]
            for r in range(table.shape[2]):
                own[r] = consensus_average(own[r], others[r], degrees[v], weight)


@kernel
def play_averaging_block(
    first: int,
    draws: Floats,
    law: Law,
    ups: Flags,
    rules: ConsensusRules,
    state: ConsensusState,
    roads: tuple[Links, Late, Ints],
    output: Output,
) -> None:
    """Rounds first .. first + len(draws) - 1; `ups` says who is there, [round, agent]."""
    links, late, counters = roads
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
            take_in(t, v, arm, x, rules, state)
            counters[0] += 1
            counters[1] += links.indptr[v + 1] - links.indptr[v]
        if t == output.marks[state.mark[0]]:
            output.agent_rounds[state.mark[0]] = counters[0]
            output.messages[state.mark[0]] = counters[1]
        record(t, state.mark, state.pulls, rules.gaps, output)
        send(t, ups[row], links, late)
        average_what_came(ups[row], rules.weight, links, late, state.table)


@part
def average_what_came(up: Flags, weight: float, links: Links, late: Late, table: Floats) -> None:
    """The rows of all agents <- P_t times them: whom one does not hear, one counts as of the own opinion."""
    n_agents = up.shape[0]
    heard = table.shape[1] - n_agents
    for c in range(table.shape[0]):
        for r in range(table.shape[2]):
            said, becomes = table[c, :n_agents, r], table[c, heard:, r]
            for v in range(n_agents):
                total, in_block, block, n_heard = 0.0, 0.0, -1, 0
                for i in range(links.indptr[v], links.indptr[v + 1]):
                    if late[0, i] != LOST:
                        origin = links.indices[i]
                        if origin // IDS_PER_BLOCK != block:
                            total += in_block
                            in_block, block = 0.0, origin // IDS_PER_BLOCK
                        in_block += said[origin]
                        n_heard += 1
                becomes[v] = said[v]
                if up[v]:
                    becomes[v] = consensus_average(said[v], total + in_block, n_heard, weight)
        for v in range(n_agents):
            for r in range(table.shape[2]):
                table[c, v, r] = table[c, heard + v, r]
