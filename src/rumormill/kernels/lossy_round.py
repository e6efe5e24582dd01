"""A block of rounds of any message-passing policy with lossy channels, delays, corruption and absences.

The same steps as on a perfect channel (kernels/rounds.py), but arrivals are computed round by round
(kernels/flooding.py), and every agent adds its own arrivals (kernels/lossy_delivery.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from rumormill.kernels.decide import shared_arm, worth_sending
from rumormill.kernels.flooding import send_bundles
from rumormill.kernels.jit import kernel, part, step
from rumormill.kernels.lossy_delivery import corrupted_value, deliver_one_hop, delivery, rank_by_rules
from rumormill.kernels.lossy_state import DRAWN, BestRows, BlockFaults, LossyState
from rumormill.kernels.means_sums import remove_expired
from rumormill.kernels.origins import Origins, estimate_by_origins
from rumormill.kernels.rounds import choose_all, choose_default, estimate, row_values
from rumormill.kernels.state import (
    ANY,
    CLIPPED,
    DEFAULT,
    ORIGIN_MEDIAN,
    Features,
    Flags,
    Floats,
    ForgetState,
    Memory,
    Output,
    RewardLaw,
    Rules,
    record,
    record_actions,
)


@cache
def lossy_block_kernel(features: Features, one_hop: bool) -> Callable[..., None]:
    """Rounds of games with these features; by bitmasks (`one_hop`) or by flooding; ANY: by either."""
    only, extras, forgets, _ = features
    any_kind = only == ANY
    deliver = delivery(only, forgets)

    @part
    def choose(t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState) -> None:
        choose_preferred(only, extras, forgets, t, up, rules, memory, lossy)

    @part
    def send(t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState) -> None:
        send_rows(rules.kind if any_kind else only, extras, t, up, rules, memory, lossy)

    @part
    def tell(t: int, row: int, faults: BlockFaults, rules: Rules, memory: Memory, lossy: LossyState) -> None:
        send_samples(rules.kind if any_kind else only, t, row, faults, rules, memory, lossy)

    @kernel
    def play_lossy_block(
        first: int,
        draws: Floats,
        law: RewardLaw,
        faults: BlockFaults,
        rules: Rules,
        memory: Memory,
        lossy: LossyState,
        output: Output,
    ) -> None:
        """Rounds first .. first + len(draws) - 1."""
        for row in range(draws.shape[0]):
            t, up = first + row, faults.up[row]
            choose(t, up, rules, memory, lossy)
            set_arms(t, up, rules, memory, lossy)
            send(t, up, rules, memory, lossy)
            pull(t, up, draws[row], law, memory, lossy)
            tell(t, row, faults, rules, memory, lossy)
            record_round(t, rules, memory, lossy, output)
            if t == rules.horizon:
                return
            leaving = rules.trims and (t >= rules.first_rounds or rules.shared_start)
            if forgets:
                if leaving:
                    remove_expired(t + 1, memory.general.forget.streams.state.total, memory.calendar)
            elif leaving and remove_expired(t + 1, memory.state.total, memory.calendar):
                memory.state.changed[:] = True
            by_bitmasks = lossy.one_hop.words.shape[0] > 0 if any_kind else one_hop
            if by_bitmasks:
                deliver_one_hop(t, up, rules, memory, lossy)
            else:
                send_bundles(t, up, lossy.links, lossy.in_flight.late)
                deliver(t, up, rules, memory, lossy)

    return play_lossy_block


@step
def choose_preferred(
    only: int, extras: bool, forgets: int, t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState
) -> None:
    """Which agents copy their leader in round t, and the choice of the others, arms without samples aside."""
    kind = rules.kind if only == ANY else only
    state, now, best_rows = memory.state, lossy.now, lossy.best_rows
    for v in range(up.shape[0]):
        overdue = t - now.leader_round[v] - rules.leader_distance[v]
        now.copies[v] = (
            rules.leader_of[v] >= 0
            and now.leader_round[v] > 0
            and t > rules.leader_distance[v]
            and overdue <= lossy.receive.patience
        )
        active = up[v] and not lossy.corruption.liars[v]
        memory.general.needs_mean[v] = active and (
            not now.copies[v] or rules.quiet >= 0.0 or t <= rules.n_arms
        )
    if t <= rules.first_rounds and not (rules.shared_start and t > 1):
        return
    if only == DEFAULT:
        choose_default(t, memory)
        return
    if kind == ORIGIN_MEDIAN:
        estimate_by_origins(t, rules, memory, lossy.origins)
        choose_all(kind, False, extras, t, rules, memory)
        return
    if forgets:
        estimate_present(kind, t, rules, memory)
    else:
        estimate(kind, t, rules, memory)
    if rules.shares_rows:
        if forgets:
            select_newest_rows(memory.general.forget, lossy.origins, best_rows)
        values = row_values(kind, rules, memory)
        for arm in range(rules.n_arms):
            for v in range(up.shape[0]):
                better = best_rows.n[arm, v] > state.n[arm, v]
                state.best_n[arm, v] = best_rows.n[arm, v] if better else state.n[arm, v]
                state.best_mean[arm, v] = best_rows.mean[arm, v] if better else values[arm, v]
    choose_all(kind, rules.shares_rows, extras, t, rules, memory)


@step
def estimate_present(kind: int, t: int, rules: Rules, memory: Memory) -> None:
    """The means of the samples that are not forgotten."""
    state, kept = memory.state, memory.general.forget
    kept.streams.state.changed[:] = True
    estimate(kind, t, rules, kept.streams)
    copy_present(kept, kept.streams.state.mean, state.n, state.mean)
    if kind > CLIPPED:
        copy_present(kept, kept.streams.general.sketches.upper, state.n, memory.general.sketches.upper)


@part
def copy_present(kept: ForgetState, found: Floats, n: Floats, values: Floats) -> None:
    """Counts as of now, and means or indices, of the streams that answer; +inf up to 1/2 sample."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            count = kept.streams.state.n[arm, kept.present[j]]
            count *= math.pow(kept.discount, kept.taken[j] - kept.last[arm, j])
            n[arm, j] = count if count > 0.5 else 0.0
            values[arm, j] = found[arm, kept.present[j]] if count > 0.5 else np.inf


@part
def select_newest_rows(kept: ForgetState, origins: Origins, best_rows: BestRows) -> None:
    """The row with most samples among the newest of every origin, of those that came not too long ago."""
    best = best_rows.n
    for arm in range(best.shape[0]):
        for v in range(best.shape[1]):
            best[arm, v] = 0.0
            for i in range(kept.near_ptr[v], kept.near_ptr[v + 1]):
                origin = kept.near[i]
                found = origins.row_n[arm, v, origin]
                if found > best[arm, v] and kept.taken[v] - kept.heard_at[v, origin] < kept.span:
                    best[arm, v], best_rows.mean[arm, v] = found, origins.row_mean[arm, v, origin]


@part
def pull(t: int, up: Flags, draws: Floats, law: RewardLaw, memory: Memory, lossy: LossyState) -> None:
    """Agents pull, and the messages that they send are counted."""
    state, now, links, slot = memory.state, lossy.now, lossy.links, t % memory.ring.sent.shape[0]
    for v in range(up.shape[0]):
        arm = now.arm[v]
        if arm >= 0:
            now.x[v] = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
            state.pulls[v, arm] += 1
            now.pulled[0] += 1
        if up[v]:
            messages = lossy.in_flight.forwards[v] + memory.ring.sent[slot, v]
            memory.general.n_sent[0] += messages * (links.indptr[v + 1] - links.indptr[v])


@part
def set_arms(t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState) -> None:
    """The arm of every agent in round t: none, one without samples, its leader's, its own choice."""
    state, now = memory.state, lossy.now
    for v in range(up.shape[0]):
        state.starts[v] = False
        if not up[v] or lossy.corruption.liars[v]:
            now.arm[v] = -1
            continue
        first = -1
        if t <= rules.first_rounds:
            first = shared_arm(t, v, state.n[:, v]) if rules.shared_start else t - 1
        state.starts[v] = first >= 0
        if first >= 0:
            now.arm[v] = first
        else:
            now.arm[v] = now.leader_arm[v] if now.copies[v] else state.action[v]


@step
def send_rows(
    kind: int, extras: bool, t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState
) -> None:
    """Which agents send in round t, and the rows that they send."""
    state, rows, corruption = memory.state, memory.rows, lossy.corruption
    slot = t % memory.ring.sent.shape[0]
    sent, values = memory.ring.sent[slot], row_values(kind, rules, memory)
    for v in range(up.shape[0]):
        sent[v] = up[v] and lossy.links.gamma > 0
        if extras and sent[v] and rules.quiet >= 0.0 and lossy.now.arm[v] >= 0 and t > rules.n_arms:
            sent[v] = memory.general.always_sends[v] or worth_sending(
                lossy.now.arm[v], state.mean[:, v], state.n[:, v], rules.quiet
            )
        for arm in range(rules.n_arms if rules.shares_rows else 0):
            if corruption.liars[v]:
                overclaims = corruption.lie_count > t * lossy.receive.audience[v]
                rows.n[slot, arm, v] = 0.0 if overclaims else corruption.lie_count
                rows.mean[slot, arm, v] = corruption.lie_means[arm]
            elif state.starts[v] or not sent[v]:
                rows.n[slot, arm, v] = 0.0
                rows.mean[slot, arm, v] = 0.0
            else:
                rows.n[slot, arm, v] = state.n[arm, v]
                rows.mean[slot, arm, v] = values[arm, v]


@step
def send_samples(
    kind: int, t: int, row: int, faults: BlockFaults, rules: Rules, memory: Memory, lossy: LossyState
) -> None:
    """The samples of round t as they are sent, true or corrupted."""
    ring, rows, corrupted, drawn = memory.ring, memory.rows, faults.corrupted[row], faults.drawn
    now, corruption = lossy.now, lossy.corruption
    slot, way, amount = t % ring.x.shape[0], corruption.way, corruption.amount
    for v in range(corrupted.shape[0]):
        arm, x = now.arm[v], now.x[v]
        if way == DRAWN:
            now.drawn[slot, v] = drawn[row, v]
        if corruption.liars[v]:
            arm, x = corruption.lie_arm, corruption.lie_x
        elif arm < 0:
            continue
        need, power = rank_by_rules(kind, x, arm, rules, memory)
        now.need[v], now.power[v] = need, power
        if corrupted[v]:
            other = now.drawn[slot, v]
            x = corrupted_value(x, other, way, amount)
            need, power = rank_by_rules(kind, x, arm, rules, memory)
            for k in range(rules.n_arms if corruption.rows and rules.shares_rows else 0):
                if rows.mean[slot, k, v] < np.inf:
                    rows.mean[slot, k, v] = corrupted_value(rows.mean[slot, k, v], other, way, amount)
        ring.arm[slot, v], ring.x[slot, v] = arm, x
        ring.need[slot, v], ring.power[slot, v] = need, power


@step
def record_round(t: int, rules: Rules, memory: Memory, lossy: LossyState, output: Output) -> None:
    """Store actions, and at a checkpoint regret, messages and pulls."""
    record_actions(t, lossy.now.arm, output.actions)
    if t == output.marks[memory.state.mark[0]]:
        output.messages[memory.state.mark[0]] = memory.general.n_sent[0]
        output.agent_rounds[memory.state.mark[0]] = lossy.now.pulled[0]
    record(t, memory.state.mark, memory.state.pulls, rules.gaps, output)
