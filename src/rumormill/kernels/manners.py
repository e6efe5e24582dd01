"""How message passers begin and what they tell: the shared start and quiet talk, for all agents at once."""

from __future__ import annotations

from rumormill import formulas
from rumormill.kernels.jit import part, step
from rumormill.kernels.kmp import note_news, rank
from rumormill.kernels.state import Floats, Hearing, Memory, Output, Rules

shared_arm = part(formulas.shared_arm)
worth_telling = part(formulas.worth_telling)


@step
def begin(t: int, hearing: Hearing, memory: Memory) -> None:
    """Learners that have not heard of every arm pull one of those in round t <= K."""
    state = memory.state
    for j in range(hearing.learners.shape[0]):
        arm = shared_arm(t, hearing.learners[j], state.n[:, j])
        state.begins[j] = arm >= 0
        if arm >= 0:
            state.action[j] = arm


@step
def tell(t: int, hearing: Hearing, rules: Rules, memory: Memory) -> None:
    """Who tells of its pull of round t, and how many messages are sent in that round."""
    state, ring = memory.state, memory.ring
    slots = ring.arm.shape[0]
    told, arms = ring.told[t % slots], ring.arm[t % slots]
    for v in range(told.shape[0]):
        j = hearing.learner_of[v]
        told[v] = (
            t <= rules.n_arms
            or rules.always_tells[v]
            or worth_telling(arms[v], state.mean[:, j], state.n[:, j], rules.quiet)
        )
    for hop in range(min(hearing.gamma, t)):
        then = ring.told[(t - hop) % slots]
        for v in range(then.shape[0]):
            if then[v]:
                state.sent[0] += rules.copies[hop, v]


@step
def note_sent(t: int, memory: Memory, output: Output) -> None:
    """If round t is the next checkpoint, note the messages sent so far."""
    if t == output.marks[memory.state.mark[0]]:
        output.messages[memory.state.mark[0]] = memory.state.sent[0]


@step
def publish_told(t: int, values: Floats, rules: Rules, memory: Memory) -> None:
    """Rows of KMP-UCB where not everybody tells: whoever is silent is known by its last words."""
    state, rows = memory.state, memory.rows
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    told = memory.ring.told[slot]
    for arm in range(values.shape[0]):
        for v in range(values.shape[1]):
            if not told[v]:
                rows.n[slot, arm, v] = rows.n[before, arm, v]
                rows.mean[slot, arm, v] = rows.mean[before, arm, v]
            elif t <= rules.n_arms and (state.begins[v] or not rules.shared_start):
                rows.n[slot, arm, v] = 0.0
            else:
                rows.n[slot, arm, v] = state.n[arm, v]
                rows.mean[slot, arm, v] = values[arm, v]
        rows.n_news[slot, arm] = note_news(rows.n[slot, arm], rows.n[before, arm], rows.news[slot, arm])
        rank(rows.n[slot, arm], rows.top[before, arm], rows.top[slot, arm])
