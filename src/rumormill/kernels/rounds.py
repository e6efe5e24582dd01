"""A block of rounds of any message-passing policy: the reference engine's loop without messages.

With a perfect channel flooding is a rule of distance: at the end of round t a learner gets, from every
source at distance d in reach, the sample of round t - d + 1. They count in the order own, then oldest (that
is, farthest) first, then by origin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rumormill.kernels.decide import begin, choose, note_sent, publish_told, tell
from rumormill.kernels.jit import kernel, part, step
from rumormill.kernels.kmp import Heard, best_informed, publish_rows
from rumormill.kernels.means_sketch import choose_by_index, deliver_streams, estimate_streams
from rumormill.kernels.means_stored import catoni, catoni_defined, group_count, median_of_means, store
from rumormill.kernels.means_sums import add_dense, add_own, add_sparse, note_ranks, sure_size, take_out
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
    Rows,
    Rules,
    State,
    Sums,
    Trimming,
    record,
)

# How large a sample surely stays is noted in each of the first rounds, then now and then.
OFTEN, SELDOM = 64, 16


def play_rounds(
    first: int, draws: Floats, law: Law, hearing: Hearing, rules: Rules, memory: Memory, output: Output
) -> None:
    """Rounds first .. first + len(draws) - 1; running sums without manners have a kernel of their own."""
    if rules.kind != RUNNING or rules.shared_start or rules.quiet >= 0.0:
        block_kernel(False)(first, draws, law, hearing, rules, memory, output)
        return
    unused: Any = None  # each array takes its time to compile, whether or not anybody looks at it
    state = memory.state._replace(
        known=unused, groups=unused, pool=unused, pool_start=unused, scratch=unused, asks=unused, sent=unused
    )
    block_kernel(True)(
        first,
        draws,
        law,
        hearing._replace(source_ptr=unused, sources=unused),
        rules._replace(tuning=unused, always_tells=unused, copies=unused),
        memory._replace(state=state, streams=unused),
        output._replace(messages=unused, agent_rounds=unused),
    )


@cache
def block_kernel(plain: bool) -> Callable[..., None]:
    """Rounds for running sums (plain), or for any mean and with manners: a shared start or quiet talk.

    What plain games do not use is not compiled for them: branches on `plain` are cut before types are
    inferred. And what they do use are parts that take what they need, since writing a step into its caller,
    or handing over all there is, takes longer than all else there is to compile.
    """

    @kernel
    def play_block(
        first: int, draws: Floats, law: Law, hearing: Hearing, rules: Rules, memory: Memory, output: Output
    ) -> None:
        """Rounds first .. first + len(draws) - 1."""
        state, ring, calendar = memory.state, memory.ring, memory.calendar
        n_arms, last_L = rules.n_arms, rules.L[rules.horizon]
        slots = ring.arm.shape[0]
        by_arm, some_copy = any_given(hearing.dense), any_given(rules.leader_of)
        sums = Sums(state.n, state.total, state.changed)
        trimming = Trimming(rules.u, rules.p, rules.L)
        for row in range(draws.shape[0]):
            t = first + row
            slot = t % slots
            if plain:
                if t > n_arms:
                    decide_plainly(t, last_L, hearing, rules, state, memory.rows)
            else:
                if t > n_arms or (rules.shared_start and t > 1):
                    decide(t, hearing, rules, memory)
                if t <= n_arms and rules.shared_start:
                    begin(t, hearing, memory)
            if t <= n_arms and not rules.shared_start:
                ring.arm[slot] = t - 1
            elif not some_copy:
                for v in range(ring.arm.shape[1]):
                    ring.arm[slot, v] = state.action[v]
            else:
                begins, leader_of, distance = state.begins, rules.leader_of, rules.leader_distance
                act(t, t <= n_arms, begins, hearing.learner_of, leader_of, distance, state.action, ring.arm)
            if not plain:
                if rules.quiet >= 0.0:
                    tell(t, hearing, rules, memory)
                if rules.shares_rows and told_apart(t, rules):
                    publish_told(t, rows_told(rules.kind, memory), rules, memory)
                note_sent(t, memory, output)
            draw(draws[row], law, ring.arm[slot], ring.x[slot], state.pulls)
            if rules.trims:
                note_ranks(slot, state.sure_x, last_L, trimming, ring)
            if by_arm:
                sort_by_arm(ring.arm[slot], ring.told[slot], ring.order[slot], ring.start[slot])
            if output.actions.shape[0] > 0:
                for v in range(ring.arm.shape[1]):
                    output.actions[t - 1, v] = ring.arm[slot, v]
            record(t, state.mark, state.pulls, rules.gaps, output)
            if t == rules.horizon:
                return

            if not plain and rules.kind > CATONI:
                deliver_streams(rules.kind, t, hearing, rules, memory)
            elif not plain and rules.kind != RUNNING:
                deliver_stored(t, rules.kind == MEDIAN_OF_MEANS, hearing, ring, state)
            else:
                # What has to leave leaves, then come the own samples, then the farthest hop first, by origin.
                # The round of the next question, if there is one.
                asked = min(t + 1 if rules.shared_start else max(t, n_arms) + 1, rules.horizon)
                leaving = rules.trims and (t >= n_arms or rules.shared_start)
                if leaving and take_out(t + 1, state.total, calendar):
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
def decide_plainly(t: int, last_L: float, hearing: Hearing, rules: Rules, state: State, rows: Rows) -> None:
    """The arm of every learner in round t > K, by running sums."""
    mean, n = state.mean, state.n
    divide_changed(state.changed, state.total, n, mean)
    if rules.trims and looks_again(t, rules.n_arms):
        note_sure_sizes(n, rules.u, rules.p, last_L, state.sure_x)
    if rules.shares_rows:
        heard = Heard(state.heard_n, state.heard_from, state.heard_hop)
        publish_rows(t, t == rules.n_arms + 1, mean, n, state.changed, rows)
        best_informed(t, rules.n_arms, mean, n, hearing, rows, heard, state.best_mean, state.best_n)
        mean, n = state.best_mean, state.best_n
    choose(
        rules.scale[t], rules.least_n[t], mean, n, rules.powers, rules.exponent, state.bounds, state.action
    )
    state.changed[:] = False


@step
def decide(t: int, hearing: Hearing, rules: Rules, memory: Memory) -> None:
    """The arm of every learner in round t, as if it knew every arm."""
    state = memory.state
    estimate(t, rules, memory)
    if rules.shares_rows:
        values = rows_told(rules.kind, memory)
        if not told_apart(t, rules):
            publish_rows(t, t == rules.n_arms + 1, values, state.n, state.changed, memory.rows)
        since = 0 if rules.shared_start else rules.n_arms
        heard = Heard(state.heard_n, state.heard_from, state.heard_hop)
        best_informed(t, since, values, state.n, hearing, memory.rows, heard, state.best_mean, state.best_n)
    choose_all(rules.shares_rows, t, rules, memory)


@step
def choose_all(rows: bool, t: int, rules: Rules, memory: Memory) -> None:
    """The arm of every learner, by the best informed rows or by its own means; then nothing is new."""
    state = memory.state
    if rules.kind > CLIPPED:
        upper = state.best_mean if rows else memory.streams.upper
        choose_by_index(upper, state.bounds.first, state.action)
    else:
        mean, n = (state.best_mean, state.best_n) if rows else (state.mean, state.n)
        powers, exponent = rules.powers, rules.exponent
        choose(rules.scale[t], rules.least_n[t], mean, n, powers, exponent, state.bounds, state.action)
    state.changed[:] = False


@step
def estimate(t: int, rules: Rules, memory: Memory) -> None:
    """The means of all learners in round t."""
    state, kind = memory.state, rules.kind
    if kind == RUNNING:
        divide_changed(state.changed, state.total, state.n, state.mean)
        if rules.trims and looks_again(t, rules.n_arms):
            note_sure_sizes(state.n, rules.u, rules.p, rules.L[rules.horizon], state.sure_x)
    elif kind == MEDIAN_OF_MEANS:
        estimate_by_medians(rules.L[t], state)
    elif kind == CATONI:
        estimate_by_roots(rules.L[t], rules.p, rules.rho, rules.tuning.slack, state)
    else:
        estimate_streams(kind, t, rules, memory)


@part
def looks_again(t: int, n_arms: int) -> bool:
    """Whether it is time to note how large a sample surely stays."""
    return t <= n_arms + OFTEN or t % SELDOM == 0


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
def divide_changed(changed: Flags, total: Floats, n: Floats, mean: Floats) -> None:
    """The means of the arms of which something came."""
    for arm in range(changed.shape[0]):
        if changed[arm]:
            for j in range(n.shape[1]):
                mean[arm, j] = total[arm, j] / n[arm, j]


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


@part
def act(
    t: int,
    beginning: bool,
    begins: Flags,
    learner_of: Ids,
    leader_of: Ids,
    distance: Ids,
    action: Ids,
    arms: Ids,
) -> None:
    """Who plays what in round t: what the leader played, or the own choice, also to get to know an arm."""
    slots = arms.shape[0]
    for v in range(arms.shape[1]):
        learner = learner_of[v]
        if leader_of[v] >= 0 and t > distance[v] and not (beginning and begins[learner]):
            arms[t % slots, v] = arms[(t - distance[v]) % slots, leader_of[v]]
        else:
            arms[t % slots, v] = action[learner]


@part
def draw(draws: Floats, law: Law, arms: Ids, xs: Floats, pulls: Ints) -> None:
    """Everybody's reward."""
    for v in range(draws.shape[0]):
        arm = arms[v]
        xs[v] = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
        pulls[v, arm] += 1


@part
def any_given(ids: Ids) -> bool:
    """Whether any is not -1: hops that go arm by arm, agents that copy their leader."""
    found = False
    for i in range(ids.shape[0]):
        found |= ids[i] >= 0
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
