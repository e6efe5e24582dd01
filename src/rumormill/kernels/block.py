"""A block of rounds of any message-passing policy: the reference engine's loop without messages.

With a perfect channel flooding is a rule of distance: at the end of round t a learner gets, from every
source at distance d in reach, the sample of round t - d + 1.
"""

from __future__ import annotations

import math

import numpy as np

from rumormill.kernels.jit import kernel, part
from rumormill.kernels.kmp import best_informed, publish_rows
from rumormill.kernels.regret import record
from rumormill.kernels.running import add_dense, add_own, add_sparse, rank_needed, sure_size, take_out
from rumormill.kernels.state import (
    MEDIAN_OF_MEANS,
    RUNNING,
    Calendar,
    Floats,
    Hearing,
    Ids,
    Ints,
    Ring,
    Rows,
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
    ring: Ring,
    calendar: Calendar,
    rows: Rows,
    marks: Ints,
    agent_regret: Floats,
    actions: Ints,
) -> None:
    """Rounds first .. first + len(draws) - 1. `actions` is filled unless it has no rows."""
    n_arms, u, p, L = rules.n_arms, rules.u, rules.p, rules.L
    n, total, mean, changed = state.n, state.total, state.mean, state.changed
    last_L = L[rules.horizon]
    slots = ring.arm.shape[0]
    for row in range(draws.shape[0]):
        t = first + row
        slot = t % slots
        if t > n_arms:
            if rules.kind == RUNNING:
                for arm in range(n_arms):
                    divide(total[arm], n[arm], mean[arm])
            elif rules.kind == MEDIAN_OF_MEANS:
                estimate_by_medians(L[t], state)
            else:
                estimate_by_roots(L[t], p, rules.rho, state)
            for arm in range(n_arms):
                if changed[arm]:
                    fewest = refresh_powers(n[arm], state.power[arm], rules.powers, rules.exponent)
                    state.sure_x[arm] = sure_size(fewest, u, p, last_L) if rules.trims else np.inf
            if rules.shares_rows:
                publish_rows(t, t == n_arms + 1, n, mean, changed, rows)
                best_informed(t, hearing, n, mean, rows, state.best_n, state.best_mean, state.best_from)
                for arm in range(n_arms):
                    refresh_powers(state.best_n[arm], state.best_power[arm], rules.powers, rules.exponent)
                choose(
                    rules.scale[t],
                    rules.least_n[t],
                    state.best_mean,
                    state.best_n,
                    state.best_power,
                    state.best_index,
                    state.action,
                )
            else:
                choose(rules.scale[t], rules.least_n[t], mean, n, state.power, state.best_index, state.action)
            for arm in range(n_arms):
                changed[arm] = False

        act(t, hearing.learner_of, rules.leader_of, rules.leader_distance, n_arms, state.action, ring.arm)
        draw(slot, draws[row], shared, loc, scale, ring.arm, ring.x, state.pulls)
        if rules.trims:
            for v in range(ring.x.shape[1]):
                ring.need[slot, v] = rank_needed(
                    ring.x[slot, v], state.sure_x[ring.arm[slot, v]], u, p, last_L
                )
        sort_by_arm(ring.arm[slot], ring.order[slot], ring.start[slot])

        if actions.shape[0] > 0:
            for v in range(actions.shape[1]):
                actions[t - 1, v] = ring.arm[slot, v]
        record(t, marks, state.mark, state.pulls, rules.gaps, agent_regret)
        if t == rules.horizon:
            return

        if rules.kind != RUNNING:
            deliver_stored(t, rules.kind == MEDIAN_OF_MEANS, hearing, ring, state)
            continue
        # What has to leave leaves, then come the own samples, then hop by hop by origin.
        asked = max(t, n_arms) + 1  # the round of the next question
        if rules.trims and t >= n_arms:
            take_out(t + 1, total, calendar)
        add_own(slot, hearing.learners, asked, u, p, L, ring, n, total, changed, calendar)
        for hop in range(1, min(hearing.gamma, t) + 1):
            then = (t - hop + 1) % slots
            if hearing.dense[hop - 1] >= 0:
                mask = hearing.masks[hearing.dense[hop - 1]]
                add_dense(mask, then, asked, u, p, L, ring, n, total, changed, calendar)
            else:
                ptr, hearers = hearing.ptr[hop - 1], hearing.hearers
                add_sparse(ptr, hearers, then, asked, u, p, L, ring, n, total, changed, calendar)


@part
def divide(total: Floats, n: Floats, mean: Floats) -> None:
    for j in range(n.shape[0]):
        mean[j] = total[j] / n[j]


@part
def estimate_by_medians(L: float, state: State) -> None:
    """Medians of means, where the samples or the number of groups changed."""
    for arm in range(state.n.shape[0]):
        for j in range(state.n.shape[1]):
            n = state.n[arm, j]
            groups = max(1.0, math.floor(min(1.0 + 8.0 * L, n / 2.0)))
            if state.known[arm, j] != n or state.groups[arm, j] != groups:
                state.known[arm, j] = n
                state.groups[arm, j] = groups
                state.mean[arm, j] = median_of_means(
                    n, int(groups), state.pool_start[arm, j], state.pool, state.scratch
                )


@part
def estimate_by_roots(L: float, p: float, rho: float, state: State) -> None:
    """Catoni's means; they move with L, so there is nothing to reuse but the last root."""
    for arm in range(state.n.shape[0]):
        for j in range(state.n.shape[1]):
            start = state.pool_start[arm, j]
            x = state.pool[0, start : start + int(state.n[arm, j])]
            has_guess = state.known[arm, j] > 0.0 and state.mean[arm, j] < np.inf
            state.mean[arm, j] = catoni(x, L, p, rho, has_guess, state.mean[arm, j])
            state.known[arm, j] = state.n[arm, j]


@part
def to_power(n: float, powers: Floats, exponent: float) -> float:
    """n^-exponent."""
    return powers[int(n)] if n < powers.shape[0] else n**-exponent


@part
def refresh_powers(n: Floats, power: Floats, powers: Floats, exponent: float) -> float:
    """n^-exponent of an arm; returns the fewest samples any learner has of it."""
    fewest = n[0]
    for j in range(n.shape[0]):
        power[j] = to_power(n[j], powers, exponent)
        fewest = min(fewest, n[j])
    return fewest


@part
def choose(
    scale: float, least: float, mean: Floats, n: Floats, power: Floats, best: Floats, action: Ids
) -> None:
    """The arm of the largest index for every learner; the lowest arm on ties."""
    for j in range(best.shape[0]):
        best[j] = -np.inf
    for arm in range(mean.shape[0]):
        for j in range(best.shape[0]):
            index = mean[arm, j] + scale * power[arm, j]
            if n[arm, j] < least:
                index = np.inf
            better = index > best[j]
            best[j] = index if better else best[j]
            action[j] = arm if better else action[j]


@part
def act(
    t: int, learner_of: Ids, leader_of: Ids, distance: Ids, n_arms: int, action: Ids, ring_arm: Ids
) -> None:
    """Who plays what in round t: arm t - 1, what the leader played, or the own choice."""
    slots = ring_arm.shape[0]
    slot = t % slots
    for v in range(ring_arm.shape[1]):
        if t <= n_arms:
            ring_arm[slot, v] = t - 1
        elif leader_of[v] >= 0 and t > distance[v]:
            ring_arm[slot, v] = ring_arm[(t - distance[v]) % slots, leader_of[v]]
        else:
            ring_arm[slot, v] = action[learner_of[v]]


@part
def draw(
    slot: int, draws: Floats, shared: bool, loc: Floats, scale: Floats, arms: Ids, xs: Floats, pulls: Ints
) -> None:
    """Everybody's reward."""
    for v in range(draws.shape[0]):
        arm = arms[slot, v]
        xs[slot, v] = loc[arm] + scale[arm] * draws[v, 0 if shared else arm]
        pulls[v, arm] += 1


@part
def sort_by_arm(arms: Ids, order: Ids, start: Ids) -> None:
    """order lists the agents by arm, then id; arm k begins at start[k]."""
    for k in range(start.shape[0]):
        start[k] = 0
    for v in range(arms.shape[0]):
        start[arms[v] + 1] += 1
    for k in range(1, start.shape[0]):
        start[k] += start[k - 1]
    for v in range(arms.shape[0]):
        order[start[arms[v]]] = v
        start[arms[v]] += 1
    for k in range(start.shape[0] - 1, 0, -1):  # filling moved every start to its end
        start[k] = start[k - 1]
    start[0] = 0


@part
def deliver_stored(t: int, prefix_sums: bool, hearing: Hearing, ring: Ring, state: State) -> None:
    """End of round t, for means that keep every sample: own first, then by distance and origin."""
    slots = ring.arm.shape[0]
    n, pool, pool_start, changed = state.n, state.pool, state.pool_start, state.changed
    for j in range(hearing.learners.shape[0]):
        v = hearing.learners[j]
        slot = t % slots
        store(ring.x[slot, v], ring.arm[slot, v], j, prefix_sums, n, pool, pool_start, changed)
        for hop in range(1, min(hearing.gamma, t) + 1):
            slot = (t - hop + 1) % slots
            for i in range(hearing.source_ptr[j, hop - 1], hearing.source_ptr[j, hop]):
                origin = hearing.sources[i]
                x, arm = ring.x[slot, origin], ring.arm[slot, origin]
                store(x, arm, j, prefix_sums, n, pool, pool_start, changed)
