"""A block of rounds of any message-passing policy: the reference engine's loop without messages.

With a perfect channel flooding is a rule of distance: at the end of round t a learner gets, from every
source at distance d in reach, the sample of round t - d + 1.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.jit import inlined, kernel
from rumormill.kernels.kmp import best_informed, publish_rows
from rumormill.kernels.running import add_dense, add_one, add_sparse, rank_needed, sure_size, take_out
from rumormill.kernels.state import (
    MEDIAN_OF_MEANS,
    NEXT_MARK,
    RUNNING,
    Floats,
    Hearing,
    Ints,
    Rules,
    State,
)
from rumormill.kernels.stored import catoni, median_of_means, store


@kernel
def play_block(
    first: int,
    draws: Floats,
    shared: bool,
    loc: Floats,
    scale: Floats,
    hearing: Hearing,
    rules: Rules,
    state: State,
    marks: Ints,
    agent_regret: Floats,
    actions: Ints,
) -> None:
    """Rounds first .. first + len(draws) - 1. `actions` is filled unless it has no rows."""
    for row in range(draws.shape[0]):
        t = first + row
        if t > rules.n_arms:
            estimate(t, rules, state)
            if rules.shares_rows:
                publish_rows(t, rules, state)
                best_informed(t, hearing, rules, state)
                choose(t, state.best_mean, state.best_n, False, rules, state)
            else:
                choose(t, state.mean, state.n, True, rules, state)
            state.changed[:] = False
        pull(t, draws[row], shared, loc, scale, hearing, rules, state)
        if actions.shape[0] > 0:
            actions[t - 1] = state.ring_arm[t % state.ring_arm.shape[0]]
        if t == marks[state.counters[NEXT_MARK]]:
            record(agent_regret[state.counters[NEXT_MARK]], rules, state)
            state.counters[NEXT_MARK] = min(state.counters[NEXT_MARK] + 1, marks.shape[0] - 1)
        if t < rules.horizon:
            if rules.kind == RUNNING:
                deliver_running(t, hearing, rules, state)
            else:
                deliver_stored(t, hearing, rules, state)


@inlined
def estimate(t: int, rules: Rules, state: State) -> None:
    """The mean of every arm at the confidence of round t, and n^-exponent where n changed."""
    for arm in range(rules.n_arms):
        n, mean, power = state.n[arm], state.mean[arm], state.power[arm]
        if rules.kind == RUNNING:
            total = state.total[arm]
            for j in range(n.shape[0]):
                mean[j] = total[j] / n[j]
        elif rules.kind == MEDIAN_OF_MEANS:
            for j in range(n.shape[0]):
                median_of_means(arm, j, rules.L[t], state)
        else:
            for j in range(n.shape[0]):
                catoni(arm, j, rules.L[t], rules, state)
        if state.changed[arm]:
            fewest = n[0]
            for j in range(n.shape[0]):
                power[j] = to_power(n[j], rules)
                fewest = min(fewest, n[j])
            state.sure_x[arm] = sure_size(fewest, rules)


@inlined
def to_power(n: float, rules: Rules) -> float:
    """n^-exponent."""
    return rules.powers[int(n)] if n < rules.powers.shape[0] else n**-rules.exponent


@inlined
def choose(t: int, mean: Floats, n: Floats, use_power: bool, rules: Rules, state: State) -> None:
    """The arm of the largest index for every learner; the lowest arm on ties."""
    scale, least = rules.scale[t], rules.least_n[t]
    best, action = state.best_index, state.action
    best[:] = -np.inf
    action[:] = 0
    for arm in range(rules.n_arms):
        if use_power and least <= 1.0:
            mean_k, power_k = mean[arm], state.power[arm]
            for j in range(best.shape[0]):
                index = mean_k[j] + scale * power_k[j]
                better = index > best[j]
                best[j] = index if better else best[j]
                action[j] = arm if better else action[j]
        else:
            for j in range(best.shape[0]):
                index = mean[arm, j] + scale * to_power(n[arm, j], rules)
                if n[arm, j] < least:
                    index = np.inf
                if index > best[j]:
                    best[j] = index
                    action[j] = arm


@inlined
def pull(
    t: int,
    draws: Floats,
    shared: bool,
    loc: Floats,
    scale: Floats,
    hearing: Hearing,
    rules: Rules,
    state: State,
) -> None:
    """Everybody pulls; the samples go into the ring, with the agents sorted by arm."""
    slots = state.ring_arm.shape[0]
    slot = t % slots
    start = state.ring_start[slot]
    start[:] = 0
    for v in range(draws.shape[0]):
        j = hearing.learner_of[v]
        leader = rules.leader_of[v]
        distance = rules.leader_distance[v]
        if t <= rules.n_arms:
            arm = t - 1
        elif leader >= 0 and t > distance:
            arm = state.ring_arm[(t - distance) % slots, leader]
        else:
            arm = state.action[j]
        x = loc[arm] + scale[arm] * draws[v, 0 if shared else arm]
        state.ring_arm[slot, v] = arm
        state.ring_x[slot, v] = x
        if rules.trims:
            state.ring_need[slot, v] = rank_needed(x, arm, rules, state)
        state.pulls[v, arm] += 1
        start[arm + 1] += 1
    for arm in range(rules.n_arms):
        start[arm + 1] += start[arm]
    for v in range(draws.shape[0]):
        arm = state.ring_arm[slot, v]
        state.ring_order[slot, start[arm]] = v
        start[arm] += 1
    for arm in range(rules.n_arms, 0, -1):
        start[arm] = start[arm - 1]
    start[0] = 0


@inlined
def record(agent_regret: Floats, rules: Rules, state: State) -> None:
    for v in range(agent_regret.shape[0]):
        regret = 0.0
        for arm in range(rules.n_arms):
            regret += state.pulls[v, arm] * rules.gaps[arm]
        agent_regret[v] = regret


@inlined
def deliver_running(t: int, hearing: Hearing, rules: Rules, state: State) -> None:
    """End of round t: what has to leave leaves, then own samples, then hop by hop by origin."""
    slots = state.ring_arm.shape[0]
    asked = max(t + 1, rules.n_arms + 1)  # the round of the next question
    if rules.trims and t >= rules.n_arms:
        take_out(t + 1, state)
    slot = t % slots
    for j in range(hearing.learners.shape[0]):
        v = hearing.learners[j]
        arm = state.ring_arm[slot, v]
        add_one(state.ring_x[slot, v], state.ring_need[slot, v], arm, j, asked, rules, state)
        state.changed[arm] = True
    for hop in range(1, min(hearing.gamma, t) + 1):
        slot = (t - hop + 1) % slots
        if hearing.dense[hop - 1] >= 0:
            add_dense(hearing.masks[hearing.dense[hop - 1]], slot, asked, rules, state)
        else:
            add_sparse(hearing, hop, slot, asked, rules, state)


@inlined
def deliver_stored(t: int, hearing: Hearing, rules: Rules, state: State) -> None:
    """End of round t, for means that keep every sample: the same order, learner by learner."""
    slots = state.ring_arm.shape[0]
    for j in range(hearing.learners.shape[0]):
        v = hearing.learners[j]
        store(state.ring_x[t % slots, v], state.ring_arm[t % slots, v], j, rules, state)
        for i in range(hearing.source_ptr[j], hearing.source_ptr[j + 1]):
            hop = hearing.source_hop[i]
            if hop > t:
                break
            slot, origin = (t - hop + 1) % slots, hearing.sources[i]
            store(state.ring_x[slot, origin], state.ring_arm[slot, origin], j, rules, state)
