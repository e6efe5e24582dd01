"""Decision numbers under load: reserved ahead by rate; rewards that never come close no door."""

from __future__ import annotations

import rumormill as rm
from live.making import GAME, nodes_of
from rumormill.live.core.node import Node
from rumormill.live.core.records import Reserve
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
