"""A Skip is believed only with what follows it, or from the origin itself: no member cuts off another."""

from __future__ import annotations

import pytest

import rumormill as rm
from live.making import GAME, nodes_of
from rumormill.live.core import frames as wire
from rumormill.live.core.node import Node
from rumormill.mesh.file import Limits

ORIGIN, RELAY, FAR, LIAR = range(4)
EDGES = [(ORIGIN, RELAY), (RELAY, FAR), (RELAY, LIAR)]
FAR_AWAY = 1 << 40


class Path:
    """Nodes that pass on everything at once; once the liar has lied, it sends nothing else."""

    def __init__(self, limits: Limits) -> None:
        policy = rm.DecentralizedMPUCB(gamma=2, clique_filter=False)
        self.nodes = nodes_of(policy, rm.Network.from_edges(EDGES), limits=limits)
        self.now = 0.0
        self.down: set[int] = set()
        self.lies: tuple[wire.Frame, ...] = ()
        for node in self.nodes:
            node.tick(0.0)
            node.start()
        for name in range(len(EDGES)):
            self.connect(name)
        self.pass_time(1)

    def connect(self, name: int) -> None:
        a, b = EDGES[name]
        self.down.discard(name)
        self.nodes[a].link_up(name, b)
        self.nodes[b].link_up(name, a)

    def cut(self, name: int) -> None:
        self.down.add(name)
        for v in EDGES[name]:
            self.nodes[v].link_down(name)

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            for node in self.nodes:
                node.tick(self.now)
                node.take_journal()
                node.committed(node.records)
            for _ in range(4):
                for name, (a, b) in enumerate(EDGES):
                    if name not in self.down:
                        self.deliver(name, a, b)
                        self.deliver(name, b, a)

    def deliver(self, name: int, sender: int, receiver: int) -> None:
        frames = self.nodes[sender].frames(name, 1 << 30)
        if sender == LIAR and self.lies:
            frames = [wire.encode(frame) for frame in self.lies]
        for frame in frames:
            self.nodes[receiver].receive(name, frame[4:])

    def play(self, v: int, n: int) -> None:
        node: Node = self.nodes[v]
        for _ in range(n):
            token = node.choose(GAME, self.now, 60.0)
            node.observe(GAME, token.t, token.arm, 0.5)
            node.take_journal()
            node.committed(node.records)

    def upto(self, v: int, origin: int = ORIGIN) -> int:
        return int(self.nodes[v].games[GAME].streams[(origin, 1)].upto)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("shown", [False, True])
def test_a_skip_far_ahead_cuts_off_no_idle_origin(shown: bool, linked: bool) -> None:
    """The node behind the relay never met the liar, and gets what the origin tells next."""
    path = Path(Limits(skip_after=2.0, have_every=3.0))
    path.play(ORIGIN, 10)
    path.pass_time(2)
    skip = wire.Skip(GAME, ORIGIN, 1, FAR_AWAY)
    path.lies = (wire.Have(GAME, [(ORIGIN, 1, FAR_AWAY, 1)], full=False), skip) if shown else (skip,)
    if not linked:
        path.cut(0)
    path.pass_time(60)
    assert (path.upto(RELAY), path.upto(FAR)) == (10, 10)
    if not linked:
        path.connect(0)
    path.play(ORIGIN, 3)
    path.pass_time(3)
    assert (path.upto(RELAY), path.upto(FAR)) == (13, 13)


def test_while_the_origin_is_linked_nobody_else_says_how_far_it_is() -> None:
    path = Path(Limits(skip_after=2.0, have_every=3.0))
    path.play(ORIGIN, 10)
    path.pass_time(2)
    path.lies = (
        wire.Have(GAME, [(ORIGIN, 1, 900, 1)], full=False),
        wire.Skip(GAME, ORIGIN, 1, 800),
        wire.Obs(GAME, ORIGIN, 1, 2, 801, [(801, 0, 0.5)]),
    )
    path.pass_time(20)
    path.play(ORIGIN, 3)
    path.pass_time(3)
    assert (path.upto(RELAY), path.upto(FAR)) == (13, 13)


@pytest.mark.parametrize("name", [0, 1])
def test_what_nobody_keeps_is_skipped_with_what_follows(name: int) -> None:
    """The relay, or the node behind it, was away for longer than items are kept."""
    path = Path(Limits(retain=8, skip_after=2.0, have_every=3.0))
    path.play(ORIGIN, 4)
    path.pass_time(2)
    path.cut(name)
    for _ in range(5):
        path.play(ORIGIN, 10)
        path.pass_time(1)
    path.connect(name)
    path.pass_time(20)
    assert (path.upto(RELAY), path.upto(FAR)) == (54, 54)
    assert sum(path.nodes[FAR].games[GAME].adapter.samples) == 12


def test_a_skip_is_recorded_with_items_and_not_before() -> None:
    path = Path(Limits(retain=8, skip_after=2.0, have_every=3.0))
    path.cut(1)
    path.play(ORIGIN, 50)
    path.pass_time(2)
    path.connect(1)
    stream = None
    for _ in range(30):
        path.pass_time(1)
        stream = path.nodes[FAR].games[GAME].streams.get((ORIGIN, 1), stream)
        assert stream is None or stream.upto == 0 or stream.upto - stream.retained.floor == 8
    assert path.upto(FAR) == 50
