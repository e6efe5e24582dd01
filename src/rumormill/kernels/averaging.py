"""A block of rounds of Consensus-UCB and its kin where links fail in both directions and agents are away."""

from __future__ import annotations

from rumormill.formulas import IDS_PER_BLOCK
from rumormill.kernels.consensus import (
    ConsensusRules,
    ConsensusState,
    choose_by_consensus,
    consensus_average,
    take_in,
)
from rumormill.kernels.flooding import send
from rumormill.kernels.jit import kernel, part
from rumormill.kernels.regret import record
from rumormill.kernels.state import Flags, Floats, Ints, Law, Output
from rumormill.kernels.world import LOST, Late, Links


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
