"""Decisions: argmax of the UCB index, shared start, and which samples quiet messaging sends.

The UCB index needs a power of every count in every round, the largest cost of a round. A bound of the UCB
index comes from the power of an earlier count, with a known error; in most cases bounds decide which UCB
index is the largest (simd/argmax_index.py), otherwise the exact ones are computed.

Priors: when fresh samples contradict them, and the index of both together.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.formulas import NEAR
from rumormill.kernels.counter_rng import count_tries
from rumormill.kernels.jit import part, step
from rumormill.kernels.kmp import list_updated, sort_by_count
from rumormill.kernels.simd.argmax_index import ABOVE, SLACK_OF_SUM, STRIP, argmax_by_bounds, shrinkage_near
from rumormill.kernels.simd.masked_add import lowest_bit
from rumormill.kernels.state import (
    Flags,
    Floats,
    Ids,
    IndexBounds,
    Memory,
    Output,
    PriorArrays,
    Reach,
    Rules,
    State,
    shrinkage,
)

TILE = 512  # learners whose largest indices stay in the first cache

upper_index = step(formulas.upper_index)
shrinkage_series = part(formulas.shrinkage_series)


@part
def to_power(n: float, powers: Floats, exponent: float) -> float:
    """n^-exponent."""
    return powers[int(n)] if n < powers.shape[0] else shrinkage(n, exponent)


@part
def choose_arms(
    scale: float,
    least: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    exponent: float,
    bounds: IndexBounds,
    action: Ids,
) -> None:
    """The arm of the largest UCB index for every learner; the lowest arm on ties."""
    power, inverse = bounds.power, bounds.inverse
    second, third, too_small = shrinkage_series(exponent)
    for lane in range(0, action.shape[0], STRIP):
        if least > 1.0:  # few estimators require that
            undecided = (np.uint64(1) << np.uint64(min(STRIP, action.shape[0] - lane))) - np.uint64(1)
        else:
            undecided = argmax_by_bounds(
                scale, exponent, second, third, too_small, mean, n, powers, power, inverse, action, lane
            )
        while undecided != 0:
            j = lane + lowest_bit(undecided)
            undecided &= undecided - np.uint64(1)
            argmax_exact(j, scale, least, exponent, mean, n, powers, power, inverse, action)


@part
def choose_by_table(
    scale: float, total: Floats, n: Floats, powers: Floats, first: Floats, action: Ids
) -> None:
    """The arm of the largest UCB index for every learner; the lowest arm on ties.

    Sums and counts are read once, in the order of memory, and means are not stored: where they do not fit
    into the cache this takes less time than bounds. The table has the powers of all counts.
    """
    for lane in range(0, action.shape[0], TILE):
        end = min(lane + TILE, action.shape[0])
        first[lane:end] = -np.inf
        for arm in range(n.shape[0]):
            for j in range(lane, end):
                count = n[arm, j]
                index = upper_index(total[arm, j] / count, scale, powers[np.uint64(count)])
                if index > first[j]:
                    first[j] = index
                    action[j] = arm


@part
def argmax_exact(
    j: int,
    scale: float,
    least: float,
    exponent: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    power: Floats,
    inverse: Floats,
    action: Ids,
) -> None:
    """The arm of one learner by the exact UCB indices of the arms that bounds do not rule out."""
    second, third, too_small = shrinkage_series(exponent)
    low = -np.inf
    for arm in range(n.shape[0]):
        count = n[arm, j]
        h = count * inverse[arm, j] - 1.0
        if count > 0.0 and not 0.0 <= h <= NEAR:
            power[arm, j], inverse[arm, j] = to_power(count, powers, exponent), ABOVE / count
            h = 0.0
        index = upper_index(mean[arm, j], scale * power[arm, j], shrinkage_near(h, exponent, second, third))
        low = index if index > low else low
    best = -np.inf
    for arm in range(n.shape[0]):
        count = n[arm, j]
        index = np.inf
        if count >= least:
            h, radius = count * inverse[arm, j] - 1.0, scale * power[arm, j]
            index = upper_index(mean[arm, j], radius, shrinkage_near(h, exponent, second, third))
            slack = radius * too_small + SLACK_OF_SUM * (abs(index) + abs(low))
            if not index + slack < low:
                index = upper_index(mean[arm, j], scale, to_power(count, powers, exponent))
        if index > best:
            best = index
            action[j] = arm


@part
def fill_indices(
    scale: float, least: float, mean: Floats, n: Floats, powers: Floats, exponent: float, worth: Floats
) -> None:
    """The UCB index of every arm and learner."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            worth[arm, j] = np.inf
            if n[arm, j] >= least:
                worth[arm, j] = upper_index(mean[arm, j], scale, to_power(n[arm, j], powers, exponent))


@step
def rank_arms(t: int, k: int, index: Floats, rules: Rules, memory: Memory) -> None:
    """The k arms that every agent tries in round t: the best of those that are allowed, the best first.

    In the first rounds, in a circle; a shared start ranks arms without samples first, while there are any.
    """
    state, arms, around, n_arms = memory.state, memory.ring.arm, memory.state.bounds.inverse, rules.n_arms
    for v in range(around.shape[1]):
        allowed = rules.allowed[min(t, rules.allowed.shape[0]) - 1, v]
        tries = arms[t % arms.shape[0], v * k : v * k + k]
        if t <= rules.first_rounds:
            start = t - 1 + v if rules.shared_start else t - 1
            for arm in range(n_arms):
                known = rules.shared_start and state.n[arm, v] > 0.0
                around[arm, v] = -float((arm - start) % n_arms + (n_arms if known else 0))
            take_best(-1, allowed, around[:, v], tries)
            state.starts[v] = not rules.shared_start or state.n[tries[0], v] == 0.0
        if t > rules.first_rounds or not state.starts[v]:
            copied = arm_of_leader(t, v, k, rules.leader_of, rules.leader_distance, arms)
            take_best(copied, allowed, index[:, v], tries)


@part
def arm_of_leader(t: int, v: int, k: int, leader_of: Ids, distance: Ids, arms: Ids) -> int:
    """The first arm that the leader of an agent tried, as far as the agent knows; -1 if it knows none."""
    if leader_of[v] < 0 or t <= distance[v]:
        return -1
    return arms[(t - distance[v]) % arms.shape[0], leader_of[v] * k]


@part
def take_best(copied: int, allowed: Flags, worth: Floats, tries: Ids) -> None:
    """The allowed arms of largest worth, the lowest first on ties, a copied one first of all."""
    count, last, bar = 0, -1, np.inf
    if copied >= 0 and allowed[copied]:
        tries[0], count = copied, 1
    for place in range(count, tries.shape[0]):
        best = -1
        for arm in range(worth.shape[0]):
            behind = worth[arm] < bar or (worth[arm] == bar and arm > last)
            free = allowed[arm] and not (count > 0 and arm == copied)
            if behind and free and (best < 0 or worth[arm] > worth[best]):
                best = arm
        if best < 0:  # none is left
            tries[place] = tries[0]
        else:
            tries[place], last, bar = best, best, worth[best]


@step
def find_who_ranks(t: int, k: int, rules: Rules, arms: Ids, needs: Flags) -> None:
    """The agents that use their own indices: all but those that try the arm of their leader alone."""
    for v in range(needs.shape[0]):
        allowed = rules.allowed[min(t, rules.allowed.shape[0]) - 1, v]
        copied = arm_of_leader(t, v, k, rules.leader_of, rules.leader_distance, arms)
        needs[v] = copied < 0 or not allowed[copied] or min(k, allowed.sum()) > 1


shared_arm = part(formulas.shared_arm)
worth_sending = part(formulas.worth_sending)


@step
def start_with_unknown_arms(t: int, reach: Reach, memory: Memory) -> None:
    """Shared start: in round t <= K, learners without samples of some arms pull one of those."""
    state = memory.state
    for j in range(reach.learners.shape[0]):
        arm = shared_arm(t, reach.learners[j], state.n[:, j])
        state.starts[j] = arm >= 0
        if arm >= 0:
            state.action[j] = arm


@step
def choose_senders(t: int, k: int, reach: Reach, rules: Rules, memory: Memory) -> None:
    """Which samples of round t are sent, with quiet messaging; counts the messages of that round."""
    state, ring, general = memory.state, memory.ring, memory.general
    slots = ring.arm.shape[0]
    sent, arms = ring.sent[t % slots], ring.arm[t % slots]
    for v in range(reach.learner_of.shape[0]):
        j, tries = reach.learner_of[v], count_tries(arms, v * k, k)
        for i in range(k):
            sent[v * k + i] = i < tries and (
                rules.quiet < 0.0
                or t <= rules.n_arms
                or general.always_sends[v]
                or worth_sending(arms[v * k + i], state.mean[:, j], state.n[:, j], rules.quiet)
            )
    for hop in range(min(reach.gamma, t)):
        then = ring.sent[(t - hop) % slots]
        for v in range(then.shape[0]):
            if then[v]:
                general.n_sent[0] += general.copies[hop, v]


@step
def record_messages(t: int, memory: Memory, output: Output) -> None:
    """If round t is the next checkpoint, store the number of messages sent so far."""
    if t == output.marks[memory.state.mark[0]]:
        output.messages[memory.state.mark[0]] = memory.general.n_sent[0]


@step
def publish_sent_rows(t: int, k: int, values: Floats, rules: Rules, memory: Memory) -> None:
    """Rows of KMP-UCB where only some agents send: of the others the last row sent stays in use."""
    state, rows = memory.state, memory.rows
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    sent = memory.ring.sent[slot]
    for arm in range(values.shape[0]):
        for v in range(values.shape[1]):
            if not sent[v * k : v * k + k].any():
                rows.n[slot, arm, v] = rows.n[before, arm, v]
                rows.mean[slot, arm, v] = rows.mean[before, arm, v]
            elif t <= rules.first_rounds and (state.starts[v] or not rules.shared_start):
                rows.n[slot, arm, v] = 0.0
            else:
                rows.n[slot, arm, v] = state.n[arm, v]
                rows.mean[slot, arm, v] = values[arm, v]
        rows.n_updated[slot, arm] = list_updated(
            rows.n[slot, arm], rows.n[before, arm], rows.updated[slot, arm]
        )
        sort_by_count(rows.n[slot, arm], rows.top[before, arm], rows.top[slot, arm])


needs_probe = part(formulas.needs_probe)
pooled_index = part(formulas.pooled_index)
prior_contradicted = part(formulas.prior_contradicted)
prior_floor = part(formulas.prior_floor)
prior_mean = part(formulas.prior_mean)
prior_reach = part(formulas.prior_reach)


@part
def check_priors(
    own_index: bool, t: int, upper: Floats, needs: Flags, rules: Rules, state: State, prior: PriorArrays
) -> None:
    """Count the samples of the learners that decide, and drop the priors which these contradict."""
    counts, n, mean, powers, exponent = rules.forget == 0, state.n, state.mean, rules.powers, rules.exponent
    L, scale, least = rules.L[t], rules.scale[t], rules.least_n[t]
    for j in range(n.shape[1]):
        if not needs[j]:
            continue
        prior.taken[j] *= not counts
        for arm in range(n.shape[0]):
            prior.taken[j] += n[arm, j] if counts else 0.0
            w, count, value = prior.weight[arm, j], n[arm, j], mean[arm, j]
            if w == 0.0 or count == 0.0 or not np.isfinite(value):
                continue
            if own_index:
                fresh, before = upper[arm, j] - value, prior_reach(prior.spread[arm, j], L, w)
            else:
                fresh = (
                    prior.doubt * (scale * to_power(count, powers, exponent)) if count >= least else np.inf
                )
                before = prior.doubt * (scale * to_power(w, powers, exponent)) if w >= least else np.inf
            if prior_contradicted(value, prior.mean[arm, j], fresh, before):
                prior.weight[arm, j] = 0.0


@part
def combine_indices(L: float, mean: Floats, upper: Floats, n: Floats, prior: PriorArrays) -> None:
    """An estimator's own index together with the upper bound of the prior."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            w, cold = prior.weight[arm, j], upper[arm, j]
            index = cold
            if w > 0.0:
                reach = prior_reach(prior.spread[arm, j], L, w)
                together = prior.mean[arm, j] + reach
                if np.isfinite(cold) and np.isfinite(mean[arm, j]):
                    together = pooled_index(mean[arm, j], cold, prior.mean[arm, j], reach)
                index = limited(cold, together, mean[arm, j], n[arm, j], prior.taken[j], prior.probe)
            prior.upper[arm, j] = index


@part
def combine_rows(
    scale: float, least: float, powers: Floats, exponent: float, mean: Floats, n: Floats, prior: PriorArrays
) -> None:
    """The UCB index of the n fresh samples and the w samples that the prior counts as."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            w, value, count = prior.weight[arm, j], mean[arm, j], n[arm, j]
            defined = count > 0.0 and np.isfinite(value)
            index = np.inf
            if defined and count >= least:
                index = upper_index(value, scale, to_power(count, powers, exponent))
            if w > 0.0:
                both, samples = prior.mean[arm, j], w
                if defined:
                    both, samples = prior_mean(value, count, both, w), count + w
                together = np.inf
                if samples >= least:
                    together = upper_index(both, scale, to_power(samples, powers, exponent))
                index = limited(index, together, value, count, prior.taken[j], prior.probe)
            prior.upper[arm, j] = index


@step
def limited(cold: float, together: float, mean: float, n: float, taken: float, probe: float) -> float:
    """What a prior makes of an index: at least half of the radius stays, and unknown arms are probed."""
    if cold == np.inf:
        return np.inf if needs_probe(n, taken, probe) else together
    return max(together, prior_floor(mean, cold)) if np.isfinite(mean) else cold
