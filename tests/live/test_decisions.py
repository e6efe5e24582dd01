"""Decision numbers under load: reserved ahead by rate; rewards that never come close no door."""

from __future__ import annotations

from typing import Any

import pytest

import rumormill as rm
from live.making import GAME, nodes_of
from rumormill.live.core import decisions as decisions_of
from rumormill.live.core.decisions import Decisions
from rumormill.live.core.game import Refused
from rumormill.live.core.node import Node
from rumormill.live.core.records import Reserve, decode, encode
from rumormill.live.io.folder import pack, unpack
from rumormill.mesh.file import Limits


def made(limits: Limits) -> Node:
    node = nodes_of(rm.DecentralizedMPUCB(gamma=1), rm.Network.complete(2), limits=limits)[0]
    node.tick(0.0)
    node.start()
    node.take_journal()
    node.committed(node.records)
    return node


def drive(node: Node, rate: int, seconds: float, disk: float, start: float = 0.0) -> int:
    """Choose at a steady rate while every commit takes `disk` seconds; how often the node was not ready."""
    refused, begun, waiting = 0, start, node.records
    for i in range(int(rate * seconds)):
        now = start + i / rate
        if now >= begun + disk:  # what was logged when the last commit began is on disk
            node.committed(waiting)
            begun, waiting = now, node.records
            node.take_journal()
        if node.ready:
            node.choose(GAME, now, 0.5)
        else:
            refused += 1
        if i % 512 == 0:
            node.tick(now)
    return refused


def test_numbers_are_reserved_ahead_by_the_rate() -> None:
    """Ten thousand a second, and a disk of 120 ms: the first second is a ramp from nothing."""
    node = made(Limits())
    assert drive(node, rate=2_000, seconds=1.5, disk=0.12) == 0
    assert drive(node, rate=8_000, seconds=1.5, disk=0.12, start=1.5) == 0
    assert drive(node, rate=10_000, seconds=1.0, disk=0.5, start=3.0) == 0


def test_a_quiet_node_reserves_little() -> None:
    """A restart uses up what is reserved."""
    node = made(Limits(block=64))
    drive(node, rate=20, seconds=20.0, disk=0.05)
    decisions = node.games[GAME].decisions
    assert decisions.requested - decisions.next_t < 3 * 64
    busy = made(Limits(block=64, window=4_000))
    drive(busy, rate=5_000, seconds=2.0, disk=0.05)
    assert busy.games[GAME].decisions.requested - busy.games[GAME].decisions.next_t < 4_000 // 2


def test_a_pause_lowers_the_rate() -> None:
    """A thousand within a second, then nothing for 999 seconds: one a second, not a million."""
    node = made(Limits(block=64))
    drive(node, rate=1_000, seconds=1.0, disk=0.01)
    node.choose(GAME, 1_000.0, 0.5)
    decisions = node.games[GAME].decisions
    before = decisions.requested
    decisions.next_t = before + 1  # all that is reserved is used up
    assert decisions.to_reserve() == before + 2 * 64


def test_rewards_that_never_come_do_not_close_the_node() -> None:
    """More decisions than may be open, none of them ever answered: the oldest are closed."""
    node = made(Limits(max_open=100))
    last = 0
    for i in range(1_000):
        assert node.ready
        last = node.choose(GAME, 0.001 * i, 300.0).t
        node.committed(node.records)
    decisions = node.games[GAME].decisions
    assert list(decisions.open) == list(range(last - 99, last + 1))
    assert sum(decisions.pending) == 100
    assert node.observe(GAME, 5, 1, 1.0).late, "its reward came after all"


def test_a_replay_closes_the_same_decisions() -> None:
    node = made(Limits(max_open=7, block=64))
    records = [Reserve(GAME, 64, node.games[GAME].config.fingerprint)]
    for i in range(40):
        node.choose(GAME, 0.1 * i, 300.0)
    again = made(Limits(max_open=7, block=64))
    again.restart(None, records + node.take_journal())
    assert again.games[GAME].decisions.open == node.games[GAME].decisions.open
    assert again.games[GAME].decisions.pending == node.games[GAME].decisions.pending


# --- late rewards -------------------------------------------------------------------------------------------


def restarted(node: Node, limits: Limits) -> Node:
    again = nodes_of(rm.DecentralizedMPUCB(gamma=1), rm.Network.complete(2), limits=limits)[0]
    again.restart(unpack(pack(node.snapshot())), [])
    again.tick(node.now)
    again.start()
    again.committed(again.records)
    return again


@pytest.mark.parametrize("through_a_restart", [False, True])
def test_rewards_hours_late(monkeypatch: pytest.MonkeyPatch, through_a_restart: bool) -> None:
    """Fewer are stored in full than are waited for; of the others a checksum tells repeats from conflicts."""
    monkeypatch.setattr(decisions_of, "RECENT", 50)
    limits = Limits(window=1_000, max_open=20, block=4)
    node = made(limits)
    tokens = []
    for i in range(900):
        tokens.append(node.choose(GAME, 10.0 * i, 300.0))
        node.committed(node.records)
    seqs = {}
    for token in [*tokens[5:100:3], *tokens[400:]]:
        seqs[token.t] = node.observe(GAME, token.t, token.arm, 0.5 * token.t).seq
    late = node.observe(GAME, tokens[200].t, tokens[200].arm, 7.0)
    assert late.late
    again = node.observe(GAME, tokens[200].t, tokens[200].arm, 7.0)
    assert (again.record, again.repeat) == (late.record, True), "a repeat waits for the same record"
    node.take_journal()
    node.committed(node.records)
    if through_a_restart:
        node = restarted(node, limits)
    for t, seq in seqs.items():
        arm = tokens[t - 1].arm
        answer = node.observe(GAME, t, arm, 0.5 * t)
        assert (answer.seq, answer.record <= node.durable, answer.repeat) == (seq, True, True)
        with pytest.raises(Refused, match="another reward"):
            node.observe(GAME, t, arm, 0.5 * t + 1.0)
    assert node.observe(GAME, tokens[120].t, tokens[120].arm, 1.0).late
    assert sum(node.games[GAME].adapter.samples) == len(seqs) + 2


def test_a_reward_later_than_the_window_in_seconds_is_refused() -> None:
    limits = Limits(window_seconds=3_600.0)
    node = made(limits)
    tokens = []
    for minute in range(150):
        tokens.append(node.choose(GAME, 60.0 * minute, 30.0))
        node.committed(node.records)
    node.tick(60.0 * 149)
    with pytest.raises(Refused, match="3600 seconds"):
        node.observe(GAME, tokens[80].t, tokens[80].arm, 1.0)
    assert node.observe(GAME, tokens[95].t, tokens[95].arm, 1.0).late
    node = restarted(node, limits)
    node.tick(60.0 * 160)
    with pytest.raises(Refused, match="3600 seconds"):
        node.observe(GAME, tokens[96].t, tokens[96].arm, 1.0)
    assert node.observe(GAME, tokens[110].t, tokens[110].arm, 1.0).late


def test_numbers_above_32_bits() -> None:
    """Of older decisions the last 32 bits are stored."""
    limits, far = Limits(window=200_000), (1 << 36) - 5
    decisions = Decisions(3, limits)
    decisions.next_t = far + 150_000
    held: dict[int, Any] = {}
    for i in (1, 7, 40_000, 149_999):
        decisions.remember(far + i, 1, float(i), i, 0)
        held[far + i] = decisions_of.check_of(1, float(i))
    for i in (100_001, 100_007):  # in the slots of two of them
        decisions.remember(far + i, 2, float(i), i, 0)
    again = Decisions(3, limits)
    again.restore(unpack(pack(decisions.state())))
    for each in (decisions, again):
        assert {t: known.check for t in held if (known := each.known(t)) is not None} == held
        assert each.known(far + 2) is None


# --- weights ------------------------------------------------------------------------------------------------


def test_a_weight_counts_as_so_many_samples() -> None:
    one, two = nodes_of(rm.DecentralizedMPUCB(gamma=1, clique_filter=False), rm.Network.complete(2))
    journal: list[Any] = []
    for node, peer in ((one, 1), (two, 0)):
        node.tick(0.0)
        node.start()
        journal = node.take_journal() if node is one else journal
        node.committed(node.records)
        node.link_up(1, peer)
    token = one.choose(GAME, 0.0, 60.0)
    answer = one.observe(GAME, token.t, token.arm, 2.5, 40)
    assert answer.seq == 40
    assert one.observe(GAME, token.t, token.arm, 2.5, 40).repeat
    other = one.choose(GAME, 0.0, 60.0)
    assert one.observe(GAME, other.t, other.arm, 1.0).seq == 41
    for weight in (0, -1, 513):
        with pytest.raises(Refused, match="weight"):
            one.observe(GAME, other.t, other.arm, 1.0, weight)
    journal += one.take_journal()
    one.committed(one.records)
    for _ in range(4):
        for sender, receiver in ((one, two), (two, one)):
            for frame in sender.frames(1, 1 << 30):
                receiver.receive(1, frame[4:])
    again = nodes_of(rm.DecentralizedMPUCB(gamma=1, clique_filter=False), rm.Network.complete(2))[0]
    again.restart(None, [decode(encode(record)) for record in journal])
    for node in (one, two, again):
        assert sum(node.games[GAME].adapter.samples) == 41
        assert node.games[GAME].adapter.samples[token.arm] == 40


def test_a_ranking_is_observed_arm_by_arm() -> None:
    """Each arm that was tried counts once; others are refused; a restart and a snapshot know all of it."""
    node = nodes_of(rm.DecentralizedMPUCB(gamma=1), rm.Network.complete(2))[0]
    node.start()
    journal = node.take_journal()
    node.committed(node.records)
    first = [node.choose(GAME, 0.0, 60.0).t for _ in range(3)]
    for t in first:
        node.observe(GAME, t, t - 1, float(t))
    token = node.choose(GAME, 0.0, 60.0, [0, 2], 2)
    assert sorted([token.arm, *token.others]) == [0, 2]
    game = node.games[GAME]
    assert sum(game.decisions.pending) == game.decisions.pending[token.arm] == 1
    (other,) = token.others
    taken = node.observe(GAME, token.t, other, 7.0)
    assert (taken.late, taken.repeat, sum(game.decisions.pending)) == (False, False, 1)
    assert node.observe(GAME, token.t, other, 7.0).seq == taken.seq
    with pytest.raises(Refused, match="another reward"):
        node.observe(GAME, token.t, other, 8.0)
    with pytest.raises(Refused, match="another arm"):
        node.observe(GAME, token.t, 1, 7.0)
    assert not node.abandon(GAME, token.t, other)
    again = [Node(node.config), Node(node.config)]
    again[0].restart(None, [decode(encode(each)) for each in journal + node.take_journal()])
    again[1].restart(unpack(pack(node.snapshot())), [])
    for each in (node, *again):
        assert each.games[GAME].differing == 0
        assert each.observe(GAME, token.t, other, 7.0).seq == taken.seq
        assert each.observe(GAME, token.t, token.arm, 3.0).seq == taken.seq + 1
        assert sum(each.games[GAME].decisions.pending) == 0
        assert each.games[GAME].adapter.samples[other] == 2
