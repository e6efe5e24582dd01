"""A block of rounds of Consensus-UCB and its kin where links fail in both directions and agents are away."""

from __future__ import annotations

from rumormill.kernels.consensus import (
    ConsensusRules,
    ConsensusState,
    choose_by_consensus,
    consensus_average,
    source_clip,
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
    n_arms, opinion, n_agents = rules.n_arms, state.opinion, state.opinion.shape[1]
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
            if rules.clips:
                most = source_clip(opinion[n_arms + arm, v], n_agents, rules.clip[t], rules.p)
                x = min(max(x, -most), most)
            opinion[arm, v] += x
            opinion[n_arms + arm, v] += 1.0
            state.pulls[v, arm] += 1
            counters[0] += 1
            counters[1] += links.indptr[v + 1] - links.indptr[v]
        if t == output.marks[state.mark[0]]:
            output.agent_rounds[state.mark[0]] = counters[0]
            output.messages[state.mark[0]] = counters[1]
        record(t, state.mark, state.pulls, rules.gaps, output)
        send(t, ups[row], links, late)
        average_what_came(ups[row], rules.weight, links, late, state)


@part
def average_what_came(up: Flags, weight: float, links: Links, late: Late, state: ConsensusState) -> None:
    """opinion <- P_t opinion: whom one does not hear, one counts as of the own opinion."""
    opinion, heard = state.opinion, state.heard
    for r in range(opinion.shape[0]):
        for v in range(opinion.shape[1]):
            total, n_heard = 0.0, 0
            for i in range(links.indptr[v], links.indptr[v + 1]):
                if late[0, i] != LOST:
                    total += opinion[r, links.indices[i]]
                    n_heard += 1
            heard[r, v] = consensus_average(opinion[r, v], total, n_heard, weight) if up[v] else opinion[r, v]
    for r in range(opinion.shape[0]):
        for v in range(opinion.shape[1]):
            opinion[r, v] = heard[r, v]
