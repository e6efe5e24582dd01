"""A block of rounds of any message-passing policy where messages are lost, late or false, and agents away.

The same steps as on a perfect channel (kernels/rounds.py), but who hears what is worked out round by round
(kernels/flooding.py), and every agent takes in by itself what came to it.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.decide import shared_arm, worth_telling
from rumormill.kernels.flooding import send
from rumormill.kernels.jit import kernel, part, step
from rumormill.kernels.lossy_delivery import falsified, judge, listen
from rumormill.kernels.lossy_one_hop import listen_nearby
from rumormill.kernels.lossy_state import DRAWN, Weather, World
from rumormill.kernels.means_sums import take_out
from rumormill.kernels.origins import judge_by_origins
from rumormill.kernels.rounds import choose_all, estimate, rows_told
from rumormill.kernels.state import ORIGIN_MEDIAN, Flags, Floats, Law, Memory, Output, Rules, record


@kernel
def play_imperfect_block(
    first: int,
    draws: Floats,
    law: Law,
    weather: Weather,
    rules: Rules,
    memory: Memory,
    world: World,
    output: Output,
) -> None:
    """Rounds first .. first + len(draws) - 1."""
    for row in range(draws.shape[0]):
        t, up = first + row, weather.up[row]
        prefer(t, up, rules, memory, world)
        speak(t, row, draws[row], law, weather, rules, memory, world)
        note(t, rules, memory, world, output)
        if t == rules.horizon:
            return
        leaving = rules.trims and (t >= rules.n_arms or rules.shared_start)
        if leaving and take_out(t + 1, memory.state.total, memory.calendar):
            memory.state.changed[:] = True
        if world.nearby.words.shape[0] > 0:
            listen_nearby(t, up, rules, memory, world)
        else:
            send(t, up, world.links, world.traffic.late)
            listen(t, up, rules, memory, world)


@part
def prefer(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """Who copies its leader in round t, and what everybody else would pull if every arm were known."""
    state, present, hearsay = memory.state, world.present, world.hearsay
    for v in range(up.shape[0]):
        silence = t - present.heard_round[v] - rules.leader_distance[v]
        present.copies[v] = (
            rules.leader_of[v] >= 0
            and present.heard_round[v] > 0
            and t > rules.leader_distance[v]
            and silence <= world.ears.patience
        )
        asked = up[v] and not world.falsehood.lies[v]
        state.asks[v] = asked and (not present.copies[v] or rules.quiet >= 0.0 or t <= rules.n_arms)
    if t <= rules.n_arms and not (rules.shared_start and t > 1):
        return
    if rules.kind == ORIGIN_MEDIAN:
        judge_by_origins(t, rules, memory, world.origins)
    else:
        estimate(t, rules, memory)
    values, guarded = rows_told(rules.kind, memory), rules.kind == ORIGIN_MEDIAN
    if rules.shares_rows and not guarded:
        for arm in range(rules.n_arms):
            for v in range(up.shape[0]):
                better = hearsay.n[arm, v] > state.n[arm, v]
                state.best_n[arm, v] = hearsay.n[arm, v] if better else state.n[arm, v]
                state.best_mean[arm, v] = hearsay.mean[arm, v] if better else values[arm, v]
    choose_all(rules.shares_rows and not guarded, t, rules, memory)


@part
def speak(
    t: int, row: int, draws: Floats, law: Law, weather: Weather, rules: Rules, memory: Memory, world: World
) -> None:
    """Everybody pulls, and says something of it."""
    state, present, links = memory.state, world.present, world.links
    up, slot = weather.up[row], t % memory.ring.told.shape[0]
    act(t, up, rules, memory, world)
    tell(t, up, rules, memory, world)
    for v in range(up.shape[0]):
        arm = present.arm[v]
        if arm >= 0:
            present.x[v] = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
            state.pulls[v, arm] += 1
            present.pulled[0] += 1
        if up[v]:
            messages = world.traffic.passes[v] + memory.ring.told[slot, v]
            state.sent[0] += messages * (links.indptr[v + 1] - links.indptr[v])
    say(t, weather.false[row], weather.drawn, row, rules, memory, world)


@step
def act(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """Who plays what in round t: nothing, one of the first arms, what the leader played, the own choice."""
    state, present = memory.state, world.present
    for v in range(up.shape[0]):
        state.begins[v] = False
        if not up[v] or world.falsehood.lies[v]:
            present.arm[v] = -1
            continue
        first = -1
        if t <= rules.n_arms:
            first = shared_arm(t, v, state.n[:, v]) if rules.shared_start else t - 1
        state.begins[v] = first >= 0
        if first >= 0:
            present.arm[v] = first
        else:
            present.arm[v] = present.heard_arm[v] if present.copies[v] else state.action[v]


@step
def tell(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """Whose message of round t goes out, and the rows that it carries."""
    state, rows, falsehood = memory.state, memory.rows, world.falsehood
    slot = t % memory.ring.told.shape[0]
    told, values = memory.ring.told[slot], rows_told(rules.kind, memory)
    for v in range(up.shape[0]):
        told[v] = up[v] and world.links.gamma > 0
        if told[v] and rules.quiet >= 0.0 and world.present.arm[v] >= 0 and t > rules.n_arms:
            told[v] = rules.always_tells[v] or worth_telling(
                world.present.arm[v], state.mean[:, v], state.n[:, v], rules.quiet
            )
        for arm in range(rules.n_arms if rules.shares_rows else 0):
            if falsehood.lies[v]:
                overclaims = falsehood.lie_count > t * world.ears.reach[v]
                rows.n[slot, arm, v] = 0.0 if overclaims else falsehood.lie_count
                rows.mean[slot, arm, v] = falsehood.lie_means[arm]
            elif state.begins[v] or not told[v]:
                rows.n[slot, arm, v] = 0.0
                rows.mean[slot, arm, v] = 0.0
            else:
                rows.n[slot, arm, v] = state.n[arm, v]
                rows.mean[slot, arm, v] = values[arm, v]


@step
def say(t: int, false: Flags, drawn: Floats, row: int, rules: Rules, memory: Memory, world: World) -> None:
    """What everybody says of round t, true or not."""
    ring, rows, sure_x = memory.ring, memory.rows, memory.state.sure_x
    present, falsehood = world.present, world.falsehood
    slot, way, amount = t % ring.x.shape[0], falsehood.way, falsehood.amount
    for v in range(false.shape[0]):
        arm, x = present.arm[v], present.x[v]
        if way == DRAWN:
            present.drawn[slot, v] = drawn[row, v]
        if falsehood.lies[v]:
            arm, x = falsehood.lie_arm, falsehood.lie_x
        elif arm < 0:
            continue
        need, power = judge(x, arm, rules, sure_x)
        present.need[v], present.power[v] = need, power
        if false[v]:
            other = present.drawn[slot, v]
            x = falsified(x, other, way, amount)
            need, power = judge(x, arm, rules, sure_x)
            for k in range(rules.n_arms if falsehood.rows and rules.shares_rows else 0):
                if rows.mean[slot, k, v] < np.inf:
                    rows.mean[slot, k, v] = falsified(rows.mean[slot, k, v], other, way, amount)
        ring.arm[slot, v], ring.x[slot, v] = arm, x
        ring.need[slot, v], ring.power[slot, v] = need, power


@step
def note(t: int, rules: Rules, memory: Memory, world: World, output: Output) -> None:
    """What the world outside gets to see of round t."""
    if output.actions.shape[0] > 0:
        for v in range(world.present.arm.shape[0]):
            output.actions[t - 1, v] = world.present.arm[v]
    if t == output.marks[memory.state.mark[0]]:
        output.messages[memory.state.mark[0]] = memory.state.sent[0]
        output.agent_rounds[memory.state.mark[0]] = world.present.pulled[0]
    record(t, memory.state.mark, memory.state.pulls, rules.gaps, output)
