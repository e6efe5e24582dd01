"""A block of rounds of any message-passing policy on a perfect channel, without message objects.

With a perfect channel flooding depends on distance only: at the end of round t a learner receives, from every
source at distance d within the hop budget, the sample of round t - d + 1. Arrival order: own sample, then the
oldest (farthest) first, then by origin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from rumormill.kernels.beliefs import choose_by_beliefs, deliver_to_beliefs
from rumormill.kernels.counter_rng import count_tries, draw_rewards, draw_rewards_of_tries
from rumormill.kernels.decide import (
    check_priors,
    choose_arms,
    choose_by_table,
    choose_senders,
    combine_indices,
    combine_rows,
    fill_indices,
    find_who_ranks,
    publish_sent_rows,
    rank_arms,
    record_messages,
    start_with_unknown_arms,
)
from rumormill.kernels.jit import kernel, part, step
from rumormill.kernels.kmp import publish_rows, select_best_rows
from rumormill.kernels.means_sketch import choose_by_index, deliver_to_sketches, estimate_sketches
from rumormill.kernels.means_stored import catoni, catoni_defined, group_count, median_of_means, store
from rumormill.kernels.means_sums import (
    add_dense,
    add_own,
    add_sparse,
    compute_required_ranks,
    remove_expired,
    sure_size,
)
from rumormill.kernels.state import (
    ANY,
    CATONI,
    CLIPPED,
    DEFAULT,
    HUBER_SGD,
    MEDIAN_OF_MEANS,
    ORIGIN_MEDIAN,
    RUNNING,
    Features,
    Flags,
    Floats,
    GeneralState,
    Ids,
    Memory,
    Output,
    Reach,
    RewardLaw,
    Rules,
    RunningSums,
    SentRows,
    State,
    Trimming,
    record,
    record_actions,
)
from rumormill.kernels.thompson import draw_by_rows

# The size up to which a sample surely stays is computed in each of the first rounds, then every few rounds.
RECHECK_FIRST, RECHECK_EVERY = 64, 16


@cache
def block_kernel(features: Features) -> Callable[..., None]:
    """Rounds of games with these features: branches on them are removed before types are inferred."""
    only, extras, _, ranks = features
    plain, any_kind, draw = features.are_plain, only == ANY, draw_rewards_of_tries if ranks else draw_rewards

    @kernel
    def play_block(
        first: int, draws: Floats, law: RewardLaw, reach: Reach, rules: Rules, memory: Memory, output: Output
    ) -> None:
        """Rounds first .. first + len(draws) - 1."""
        state, ring = memory.state, memory.ring
        first_rounds, last_L, slots = rules.first_rounds, rules.L[rules.horizon], ring.arm.shape[0]
        by_arm, some_copy = any_given(reach.dense), any_given(rules.leader_of)
        trimming = Trimming(rules.u, rules.p, rules.L)
        kind = rules.kind if any_kind else only
        k = ring.arm.shape[1] // reach.learner_of.shape[0] if ranks else 1
        heard = memory.general.reach if ranks else reach
        keeps_actions = output.actions.shape[0] > 0  # known before the rounds: an array's sizes cost a call
        for row in range(draws.shape[0]):
            t, slot = first + row, (first + row) % slots
            if plain:
                if t > first_rounds:
                    decide_from_sums(t, last_L, reach, rules, state, memory.rows)
            else:
                if t > first_rounds or (rules.shared_start and t > 1):
                    if only == DEFAULT:
                        choose_default(t, memory)
                    else:
                        decide_any(kind, extras, ranks, t, k, reach, rules, memory)
                if extras and not ranks and t <= first_rounds and rules.shared_start:
                    start_with_unknown_arms(t, reach, memory)
            if ranks:
                rank_arms(t, k, ranking_index(kind, rules, memory), rules, memory)
            elif t <= first_rounds and not rules.shared_start:
                ring.arm[slot] = t - 1
            else:
                set_arms(t, some_copy, reach.learner_of, rules, state, ring.arm)
            if extras:
                send(kind, t, k, reach, rules, memory, output)
            draw(draws[row], law, ring.arm[slot], ring.x[slot], state.pulls)
            if rules.trims:
                arms, xs, needs, powers = ring.arm[slot], ring.x[slot], ring.need[slot], ring.power[slot]
                compute_required_ranks(arms, xs, state.sure_x, last_L, trimming, needs, powers)
            if by_arm:
                sort_by_arm(ring.arm[slot], ring.sent[slot], ring.order[slot], ring.start[slot])
            if keeps_actions:
                record_actions(t, ring.arm[slot], output.actions)
            if t == output.marks[state.mark[0]]:
                record(t, state.mark, state.pulls, rules.gaps, output)
            if t == rules.horizon:
                return
            if only == DEFAULT:
                beliefs, bar = memory.general.sketches.beliefs, memory.general.sketches.level
                deliver_to_beliefs(t, reach, ring, beliefs, bar, state.changed)
            elif kind > CATONI:
                deliver_to_sketches(kind, t, k, heard, rules, memory)
            elif kind > RUNNING:
                deliver_stored(t, k, kind == MEDIAN_OF_MEANS, reach, memory)
            else:
                next_t = min(t + 1 if rules.shared_start else max(t, first_rounds) + 1, rules.horizon)
                leaving = rules.trims and (t >= first_rounds or rules.shared_start)
                deliver_to_sums(t, next_t, leaving, k, heard, trimming, memory)

    return play_block


@part
def deliver_to_sums(
    t: int, next_t: int, leaving: bool, k: int, reach: Reach, trimming: Trimming, memory: Memory
) -> None:
    """End of round t: expired samples leave, then own samples, then the farthest hop first, by origin."""
    state, ring, calendar, slots = memory.state, memory.ring, memory.calendar, memory.ring.arm.shape[0]
    sums = RunningSums(state.n, state.total, state.changed)
    if leaving and remove_expired(t + 1, sums.total, calendar):
        sums.changed[:] = True
    add_own(t % slots, next_t, k, reach.learners, trimming, ring, sums, calendar)
    for hop in range(min(reach.gamma, t), 0, -1):
        slot, dense = (t - hop + 1) % slots, reach.dense[hop - 1]
        if dense >= 0:
            add_dense(reach.words[dense], slot, next_t, trimming, ring, sums, calendar)
        else:
            add_sparse(reach.ptr[hop - 1], reach.receivers, slot, next_t, trimming, ring, sums, calendar)


@step
def decide_from_sums(t: int, last_L: float, reach: Reach, rules: Rules, state: State, rows: SentRows) -> None:
    """The arm of every learner in round t > K, from running sums."""
    mean, n = state.mean, state.n
    if rules.trims and (t <= rules.n_arms + RECHECK_FIRST or t % RECHECK_EVERY == 0):
        update_sure_sizes(n, rules.u, rules.p, last_L, state.sure_x)
    if rules.by_table and rules.least_n[t] <= 1.0:
        choose_by_table(rules.scale[t], state.total, n, rules.powers, state.bounds.first, state.action)
        return
    divide_changed(state.changed, state.total, n, mean)
    if rules.shares_rows:
        publish_rows(t, t == rules.n_arms + 1, mean, n, state.changed, rows)
        select_best_rows(t, rules.n_arms, mean, n, reach, rows, state)
        mean, n = state.best_mean, state.best_n
    choose_arms(
        rules.scale[t], rules.least_n[t], mean, n, rules.powers, rules.exponent, state.bounds, state.action
    )
    for arm in range(rules.n_arms):
        state.changed[arm] = False


@step
def decide_any(
    kind: int, extras: bool, ranks: bool, t: int, k: int, reach: Reach, rules: Rules, memory: Memory
) -> None:
    """The arm of every learner in round t, or what it ranks arms by; arms without samples aside."""
    state = memory.state
    estimate(kind, t, rules, memory)
    if rules.shares_rows:
        values = row_values(kind, rules, memory)
        if not extras or not rows_depend_on_senders(t, rules):
            publish_rows(t, t == rules.first_rounds + 1, values, state.n, state.changed, memory.rows)
        since = 0 if rules.shared_start else rules.first_rounds
        select_best_rows(t, since, values, state.n, reach, memory.rows, state)
    if ranks:
        update_rankings(kind, t, k, rules, memory)
    else:
        choose_all(kind, rules.shares_rows, extras, t, rules, memory)


@step
def update_rankings(kind: int, t: int, k: int, rules: Rules, memory: Memory) -> None:
    """The indices by which learners rank arms, where the estimator does not compute its own."""
    state, rows, needs = memory.state, rules.shares_rows, memory.general.needs_mean
    if rules.has_prior:
        find_who_ranks(t, k, rules, memory.ring.arm, needs)
        combine_with_priors(kind, rows, t, rules, memory)
        needs[:] = True
    elif kind <= CLIPPED:
        mean, n = (state.best_mean, state.best_n) if rows else (state.mean, state.n)
        index = state.bounds.power
        fill_indices(rules.scale[t], rules.least_n[t], mean, n, rules.powers, rules.exponent, index)
    state.changed[:] = False


@step
def ranking_index(kind: int, rules: Rules, memory: Memory) -> Floats:
    """The indices by which learners rank arms."""
    if rules.has_prior:
        return memory.general.prior.upper
    if kind <= CLIPPED:
        return memory.state.bounds.power
    return memory.state.best_mean if rules.shares_rows else memory.general.sketches.upper


@step
def send(kind: int, t: int, k: int, reach: Reach, rules: Rules, memory: Memory, output: Output) -> None:
    """Which samples are sent, and the rows of their agents where these depend on it."""
    if memory.general.copies.shape[0] > 0:
        choose_senders(t, k, reach, rules, memory)
    if rules.shares_rows and rows_depend_on_senders(t, rules):
        publish_sent_rows(t, k, row_values(kind, rules, memory), rules, memory)
    record_messages(t, memory, output)


@step
def choose_default(t: int, memory: Memory) -> None:
    """The arm of every learner that has beliefs."""
    state, sketches = memory.state, memory.general.sketches
    groups, needed = memory.general.constants.budgets, memory.general.needs_mean
    bar, draws = sketches.level, sketches.draws
    choose_by_beliefs(t, needed, groups, state.changed, draws, sketches.beliefs, bar, state.action)
    state.changed[:] = False


@step
def choose_all(kind: int, rows: bool, extras: bool, t: int, rules: Rules, memory: Memory) -> None:
    """The arm of every learner, from the rows with most samples or from its own means."""
    state = memory.state
    if kind == HUBER_SGD and rules.width > 0.0:
        sketches, least = memory.general.sketches, float(memory.general.constants.pilot)
        value, spread = sketches.upper, sketches.rest
        draw_by_rows(t, rules.width, least, sketches, state, value, spread)
    elif extras and rules.has_prior:
        combine_with_priors(kind, rows, t, rules, memory)
        choose_by_index(memory.general.prior.upper, state.bounds.first, state.action)
    elif kind > CLIPPED:
        upper = state.best_mean if rows else memory.general.sketches.upper
        choose_by_index(upper, state.bounds.first, state.action)
    else:
        mean, n = (state.best_mean, state.best_n) if rows else (state.mean, state.n)
        powers, exponent = rules.powers, rules.exponent
        choose_arms(rules.scale[t], rules.least_n[t], mean, n, powers, exponent, state.bounds, state.action)
    state.changed[:] = False


@step
def combine_with_priors(kind: int, rows: bool, t: int, rules: Rules, memory: Memory) -> None:
    """The indices of every learner, from fresh samples and what is left of its prior."""
    state, prior = memory.state, memory.general.prior
    upper = memory.general.sketches.upper
    check_priors(kind > CLIPPED, t, upper, memory.general.needs_mean, rules, state, prior)
    if kind > CLIPPED:
        index, n = (state.best_mean, state.best_n) if rows else (upper, state.n)
        combine_indices(rules.L[t], state.mean, index, n, prior)
    else:
        mean, n = (state.best_mean, state.best_n) if rows else (state.mean, state.n)
        combine_rows(rules.scale[t], rules.least_n[t], rules.powers, rules.exponent, mean, n, prior)


@step
def estimate(kind: int, t: int, rules: Rules, memory: Memory) -> None:
    """The means of all learners in round t."""
    state = memory.state
    if kind == RUNNING:
        divide_changed(state.changed, state.total, state.n, state.mean)
        if rules.trims and (t <= rules.n_arms + RECHECK_FIRST or t % RECHECK_EVERY == 0):
            update_sure_sizes(state.n, rules.u, rules.p, rules.L[rules.horizon], state.sure_x)
    elif kind == MEDIAN_OF_MEANS:
        estimate_by_medians(rules.L[t], state, memory.general)
    elif kind == CATONI:
        estimate_by_roots(rules.L[t], rules.p, rules.rho, state, memory.general)
    else:
        estimate_sketches(kind, t, rules, memory)


@part
def update_sure_sizes(n: Floats, u: float, p: float, last_L: float, sure_x: Floats) -> None:
    """Per arm, the size up to which a sample stays in every mean to the end; counts only grow."""
    for arm in range(n.shape[0]):
        fewest = np.inf
        for j in range(n.shape[1]):
            fewest = min(fewest, n[arm, j])
        sure_x[arm] = sure_size(fewest, u, p, last_L)


@step
def rows_depend_on_senders(t: int, rules: Rules) -> bool:
    """Whether the rows of round t depend on which agents send, or have started."""
    return rules.quiet >= 0.0 or t <= rules.first_rounds


@step
def row_values(kind: int, rules: Rules, memory: Memory) -> Floats:
    """What a row carries besides the count: the mean, or the index where the estimator computes its own."""
    if kind <= CLIPPED:
        return memory.state.mean
    if kind >= ORIGIN_MEDIAN or rules.width > 0.0:
        return memory.state.mean
    return memory.general.sketches.upper


@part
def divide_changed(changed: Flags, total: Floats, n: Floats, mean: Floats) -> None:
    """The means of the arms with new samples."""
    for arm in range(changed.shape[0]):
        if changed[arm]:
            for j in range(n.shape[1]):
                mean[arm, j] = total[arm, j] / n[arm, j]


@step
def estimate_by_medians(L: float, state: State, general: GeneralState) -> None:
    """Medians of means, where the samples or the number of groups changed."""
    for arm in range(state.n.shape[0]):
        for j in range(state.n.shape[1]):
            n = state.n[arm, j]
            groups = group_count(n, L)
            if n == 0.0:  # possible where messages are lost or agents absent
                state.mean[arm, j] = np.inf
                continue
            size = float(int(n) // groups)  # the same number of groups of the same size are the same groups
            if general.known[arm, j] != size or general.groups[arm, j] != groups:
                general.known[arm, j] = size
                general.groups[arm, j] = groups
                start = general.pool_start[arm, j]
                state.mean[arm, j] = median_of_means(n, groups, start, general.pool, general.scratch)


@step
def estimate_by_roots(L: float, p: float, rho: float, state: State, general: GeneralState) -> None:
    """Catoni's means. They change with L: beyond the slack only the last root is reused, as a first guess."""
    slack = general.constants.slack
    most = 1.0 + slack
    for arm in range(state.n.shape[0]):
        for j in range(state.n.shape[1]):
            if not general.needs_mean[j]:
                continue
            start, n = general.pool_start[arm, j], state.n[arm, j]
            x = general.pool[0, start : start + int(n)]
            has_guess = general.known[arm, j] > 0.0 and state.mean[arm, j] < np.inf
            recent = n <= most * general.known[arm, j] and most * general.groups[arm, j] >= L
            if slack > 0.0 and has_guess and recent and catoni_defined(n, L, p - 1.0):
                continue
            state.mean[arm, j] = catoni(x, L, p, rho, has_guess, state.mean[arm, j])
            general.known[arm, j], general.groups[arm, j] = n, L


@part
def set_arms(t: int, some_copy: bool, learner_of: Ids, rules: Rules, state: State, arms: Ids) -> None:
    """The arm of every agent in round t: its leader's, its own choice, or one without samples."""
    slots, action, starts = arms.shape[0], state.action, state.starts
    leader_of, distance, beginning = rules.leader_of, rules.leader_distance, t <= rules.first_rounds
    if not some_copy:  # every agent is a learner
        for v in range(arms.shape[1]):
            arms[t % slots, v] = action[v]
        return
    for v in range(arms.shape[1]):
        learner = learner_of[v]
        if leader_of[v] >= 0 and t > distance[v] and not (beginning and starts[learner]):
            arms[t % slots, v] = arms[(t - distance[v]) % slots, leader_of[v]]
        else:
            arms[t % slots, v] = action[learner]


@part
def any_given(ids: Ids) -> bool:
    """Whether any is not -1: dense hops, agents that copy their leader."""
    found = False
    for i in range(ids.shape[0]):
        found |= ids[i] >= 0
    return found


@part
def sort_by_arm(arms: Ids, sent: Flags, order: Ids, start: Ids) -> None:
    """order lists the agents that send by arm, then id; arm k begins at start[k].

    Neighbours mostly play the same arm: its counter stays in a register until another arm follows.
    """
    for k in range(start.shape[0]):
        start[k] = 0
    last, count = 0, 0
    for v in range(arms.shape[0]):
        if arms[v] != last:
            start[last + 1] += count
            last, count = arms[v], 0
        count += sent[v]
    start[last + 1] += count
    for k in range(1, start.shape[0]):
        start[k] += start[k - 1]
    last, place = 0, 0
    for v in range(arms.shape[0]):
        if arms[v] != last:
            start[last] = place
            last, place = arms[v], start[arms[v]]
        if sent[v]:
            order[place] = v
            place += 1
    start[last] = place
    for k in range(start.shape[0] - 1, 0, -1):  # filling moved every start to its end
        start[k] = start[k - 1]
    start[0] = 0


@step
def deliver_stored(t: int, k: int, prefix_sums: bool, reach: Reach, memory: Memory) -> None:
    """End of round t, for means that keep every sample: own first, then the oldest, then by origin."""
    state, ring, general = memory.state, memory.ring, memory.general
    slots, sources = ring.arm.shape[0], general.sources
    for j in range(reach.learners.shape[0]):
        first, slot = reach.learners[j] * k, t % slots
        for v in range(first, first + count_tries(ring.arm[slot], first, k)):
            store(ring.x[slot, v], ring.arm[slot, v], j, prefix_sums, state, general)
        for hop in range(min(reach.gamma, t), 0, -1):
            slot = (t - hop + 1) % slots
            for i in range(sources.ptr[j, hop - 1], sources.ptr[j, hop]):
                origin = sources.ids[i]
                if ring.sent[slot, origin]:
                    store(ring.x[slot, origin], ring.arm[slot, origin], j, prefix_sums, state, general)
