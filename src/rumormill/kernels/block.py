"""A block of rounds of any message-passing policy: the reference engine's loop without messages.

With a perfect channel flooding is a rule of distance: at the end of round t a learner gets, from every
source at distance d in reach, the sample of round t - d + 1. They count in the order own, then oldest (that
is, farthest) first, then by origin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from rumormill.kernels.choosing import choose
from rumormill.kernels.jit import kernel, part, step
from rumormill.kernels.kmp import best_informed, publish_rows
from rumormill.kernels.manners import begin, note_sent, publish_told, tell
from rumormill.kernels.regret import record
from rumormill.kernels.running import add_dense, add_own, add_sparse, note_ranks, sure_size, take_out
from rumormill.kernels.state import (
    CATONI,
    CLIPPED,
    MEDIAN_OF_MEANS,
    ORIGIN_MEDIAN,
    RUNNING,
    Flags,
    Floats,
    Hearing,
    Ids,
    Ints,
    Law,
    Memory,
    Output,
    Ring,
    Rules,
    State,
    Sums,
    Trimming,
)
from rumormill.kernels.stored import catoni, catoni_defined, group_count, median_of_means, store
from rumormill.kernels.streams import choose_by_index, deliver_streams, estimate_streams

# How large a sample surely stays is noted in each of the first rounds, then now and then.
OFTEN, SELDOM = 64, 16


def kernel_for(rules: Rules) -> Callable[..., None]:
    """The kernel of a game: running sums, with or without rows, have a small one that compiles quickly."""
    if rules.kind == RUNNING and not rules.shared_start and rules.quiet < 0.0:
        return block_kernel(RUNNING, rules.shares_rows, False)
    return block_kernel(None, None, True)


@cache
def block_kernel(given_kind: int | None, given_rows: bool | None, manners: bool) -> Callable[..., None]:
    """Rounds for one kind of mean, with or without KMP's rows (None: as the rules say), and with or without
    manners: a shared start or quiet talk.

    What a game does not use is not compiled: branches on what is given are cut before types are inferred.
    """

    @kernel
    def play_block(
        first: int, draws: Floats, law: Law, hearing: Hearing, rules: Rules, memory: Memory, output: Output
    ) -> None:
        """Rounds first .. first + len(draws) - 1."""
        kind = rules.kind if given_kind is None else given_kind
        rows = rules.shares_rows if given_rows is None else given_rows
        state, ring, calendar = memory.state, memory.ring, memory.calendar
        n_arms, last_L = rules.n_arms, rules.L[rules.horizon]
        slots = ring.arm.shape[0]
        by_arm = any_dense(hearing.dense)
        sums = Sums(state.n, state.total, state.changed)
        trimming = Trimming(rules.u, rules.p, rules.L)
        shared_start = manners and rules.shared_start
        for row in range(draws.shape[0]):
            t = first + row
            slot = t % slots
            if t > n_arms or (shared_start and t > 1):
                decide(kind, rows, t, hearing, rules, memory)
            if manners and t <= n_arms and shared_start:
                begin(t, hearing, memory)
            act(t, hearing.learner_of, rules, state, ring.arm)
            if manners and rules.quiet >= 0.0:
                tell(t, hearing, rules, memory)
            if manners and rows and told_apart(t, rules):
                publish_told(t, rows_told(kind, memory), rules, memory)
            draw(slot, draws[row], law, ring, state.pulls)
            if kind == RUNNING and rules.trims:
                note_ranks(slot, state.sure_x, last_L, trimming, ring)
            if by_arm:
                sort_by_arm(ring.arm[slot], ring.told[slot], ring.order[slot], ring.start[slot])
            if output.actions.shape[0] > 0:
                for v in range(ring.arm.shape[1]):
                    output.actions[t - 1, v] = ring.arm[slot, v]
            note_sent(t, memory, output)
            record(t, state.mark, state.pulls, rules.gaps, output)
            if t == rules.horizon:
                return

            if kind > CATONI:
                deliver_streams(kind, t, hearing, rules, memory)
            elif kind != RUNNING:
                deliver_stored(t, kind == MEDIAN_OF_MEANS, hearing, ring, state)
            else:
                # What has to leave leaves, then come the own samples, then the farthest hop first, by origin.
                # The round of the next question, if there is one.
                asked = min(t + 1 if shared_start else max(t, n_arms) + 1, rules.horizon)
                if rules.trims and (t >= n_arms or shared_start) and take_out(t + 1, state.total, calendar):
                    state.changed[:] = True
                add_own(slot, asked, hearing.learners, trimming, ring, sums, calendar)
                for hop in range(min(hearing.gamma, t), 0, -1):
                    then = (t - hop + 1) % slots
                    if hearing.dense[hop - 1] >= 0:
                        words = hearing.words[hearing.dense[hop - 1]]
                        add_dense(words, then, asked, trimming, ring, sums, calendar)
                    else:
                        ptr, hearers = hearing.ptr[hop - 1], hearing.hearers
                        add_sparse(ptr, hearers, then, asked, trimming, ring, sums, calendar)

    return play_block


@step
def decide(kind: int, rows: bool, t: int, hearing: Hearing, rules: Rules, memory: Memory) -> None:
    """The arm of every learner in round t, as if it knew every arm."""
    estimate(kind, t, rules, memory)
    if rows:
        values = rows_told(kind, memory)
        if not told_apart(t, rules):
            publish_rows(t, t == rules.n_arms + 1, values, memory.state, memory.rows)
        since = 0 if rules.shared_start else rules.n_arms
        best_informed(t, since, values, hearing, memory.rows, memory.state)
    choose_all(kind, rows, t, rules, memory)


@step
def choose_all(kind: int, rows: bool, t: int, rules: Rules, memory: Memory) -> None:
    """The arm of every learner, by the best informed rows or by its own means; then nothing is new."""
    state = memory.state
    if kind > CLIPPED:
        upper = state.best_mean if rows else memory.streams.upper
        choose_by_index(upper, state.bounds.first, state.action)
    else:
        mean, n = (state.best_mean, state.best_n) if rows else (state.mean, state.n)
        powers, exponent = rules.powers, rules.exponent
        choose(rules.scale[t], rules.least_n[t], mean, n, powers, exponent, state.bounds, state.action)
    for arm in range(rules.n_arms):
        state.changed[arm] = False


@step
def estimate(kind: int, t: int, rules: Rules, memory: Memory) -> None:
    """The means of all learners in round t."""
    state = memory.state
    if kind == RUNNING:
        for arm in range(rules.n_arms):
            if state.changed[arm]:
                divide(state.total[arm], state.n[arm], state.mean[arm])
        if rules.trims and (t <= rules.n_arms + OFTEN or t % SELDOM == 0):
            note_sure_sizes(state.n, rules.u, rules.p, rules.L[rules.horizon], state.sure_x)
    elif kind == MEDIAN_OF_MEANS:
        estimate_by_medians(rules.L[t], state)
    elif kind == CATONI:
        estimate_by_roots(rules.L[t], rules.p, rules.rho, rules.tuning.slack, state)
    else:
        estimate_streams(kind, t, rules, memory)


@part
def note_sure_sizes(n: Floats, u: float, p: float, last_L: float, sure_x: Floats) -> None:
    """Per arm, how large a sample may be that everybody keeps to the end. Counts grow: it stays true."""
    for arm in range(n.shape[0]):
        fewest = np.inf
        for j in range(n.shape[1]):
            fewest = min(fewest, n[arm, j])
        sure_x[arm] = sure_size(fewest, u, p, last_L)


@step
def told_apart(t: int, rules: Rules) -> bool:
    """Whether the rows of round t depend on who tells, or on who has begun."""
    return rules.quiet >= 0.0 or t <= rules.n_arms


@step
def rows_told(kind: int, memory: Memory) -> Floats:
    """What a row carries besides the count: the mean, or the index where the estimator brings its own."""
    return memory.streams.upper if CLIPPED < kind < ORIGIN_MEDIAN else memory.state.mean


@part
def divide(total: Floats, n: Floats, mean: Floats) -> None:
    for j in range(n.shape[0]):
        mean[j] = total[j] / n[j]


@step
def estimate_by_medians(L: float, state: State) -> None:
    """Medians of means, where the samples or the number of groups changed."""
    for arm in range(state.n.shape[0]):
        for j in range(state.n.shape[1]):
            n = state.n[arm, j]
            groups = group_count(n, L)
            if n == 0.0:  # in an imperfect world somebody may still know nothing of an arm
                state.mean[arm, j] = np.inf
                continue
            size = float(int(n) // groups)  # the same number of groups of the same size are the same groups
            if state.known[arm, j] != size or state.groups[arm, j] != groups:
                state.known[arm, j] = size
                state.groups[arm, j] = groups
                start = state.pool_start[arm, j]
                state.mean[arm, j] = median_of_means(n, groups, start, state.pool, state.scratch)


@step
def estimate_by_roots(L: float, p: float, rho: float, slack: float, state: State) -> None:
    """Catoni's means. They move with L: beyond the slack there is nothing to reuse but the last root."""
    most = 1.0 + slack
    for arm in range(state.n.shape[0]):
        for j in range(state.n.shape[1]):
            if not state.asks[j]:
                continue
            start, n = state.pool_start[arm, j], state.n[arm, j]
            x = state.pool[0, start : start + int(n)]
            has_guess = state.known[arm, j] > 0.0 and state.mean[arm, j] < np.inf
            recent = n <= most * state.known[arm, j] and most * state.groups[arm, j] >= L
            if slack > 0.0 and has_guess and recent and catoni_defined(n, L, p - 1.0):
                continue
            state.mean[arm, j] = catoni(x, L, p, rho, has_guess, state.mean[arm, j])
            state.known[arm, j], state.groups[arm, j] = n, L


@step
def act(t: int, learner_of: Ids, rules: Rules, state: State, ring_arm: Ids) -> None:
    """Who plays what in round t: one of the first arms, what the leader played, or the own choice."""
    leader_of, distance, action = rules.leader_of, rules.leader_distance, state.action
    slots = ring_arm.shape[0]
    slot = t % slots
    if t <= rules.n_arms and not rules.shared_start:
        for v in range(ring_arm.shape[1]):
            ring_arm[slot, v] = t - 1
        return
    for v in range(ring_arm.shape[1]):
        if leader_of[v] >= 0 and t > distance[v] and not begins(t, learner_of[v], rules, state.begins):
            ring_arm[slot, v] = ring_arm[(t - distance[v]) % slots, leader_of[v]]
        else:
            ring_arm[slot, v] = action[learner_of[v]]


@step
def begins(t: int, learner: int, rules: Rules, flags: Flags) -> bool:
    """Whether a learner is still getting to know the arms."""
    return t <= rules.n_arms and flags[learner]


@step
def draw(slot: int, draws: Floats, law: Law, ring: Ring, pulls: Ints) -> None:
    """Everybody's reward."""
    for v in range(draws.shape[0]):
        arm = ring.arm[slot, v]
        ring.x[slot, v] = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
        pulls[v, arm] += 1


@step
def any_dense(dense: Ids) -> bool:
    """Whether any hop goes arm by arm."""
    found = False
    for hop in range(dense.shape[0]):
        found |= dense[hop] >= 0
    return found


@part
def sort_by_arm(arms: Ids, told: Flags, order: Ids, start: Ids) -> None:
    """order lists the agents that tell by arm, then id; arm k begins at start[k].

    Neighbours mostly play the same arm: its counter stays in a register until another arm comes.
    """
    for k in range(start.shape[0]):
        start[k] = 0
    last, count = 0, 0
    for v in range(arms.shape[0]):
        if arms[v] != last:
            start[last + 1] += count
            last, count = arms[v], 0
        count += told[v]
    start[last + 1] += count
    for k in range(1, start.shape[0]):
        start[k] += start[k - 1]
    last, place = 0, 0
    for v in range(arms.shape[0]):
        if arms[v] != last:
            start[last] = place
            last, place = arms[v], start[arms[v]]
        if told[v]:
            order[place] = v
            place += 1
    start[last] = place
    for k in range(start.shape[0] - 1, 0, -1):  # filling moved every start to its end
        start[k] = start[k - 1]
    start[0] = 0


@step
def deliver_stored(t: int, prefix_sums: bool, hearing: Hearing, ring: Ring, state: State) -> None:
    """End of round t, for means that keep every sample: own first, then the oldest, then by origin."""
    slots = ring.arm.shape[0]
    for j in range(hearing.learners.shape[0]):
        v = hearing.learners[j]
        slot = t % slots
        store(ring.x[slot, v], ring.arm[slot, v], j, prefix_sums, state)
        for hop in range(min(hearing.gamma, t), 0, -1):
            slot = (t - hop + 1) % slots
            for i in range(hearing.source_ptr[j, hop - 1], hearing.source_ptr[j, hop]):
                origin = hearing.sources[i]
                if ring.told[slot, origin]:
                    store(ring.x[slot, origin], ring.arm[slot, origin], j, prefix_sums, state)
