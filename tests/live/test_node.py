"""Single rules of the node, and what the simulation once found, as small as it can be."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from live.making import GAME, node_config, nodes_of
from rumormill.errors import ContractError, DataError
from rumormill.live.core import frames as wire
from rumormill.live.core import streams
from rumormill.live.core.agent_adapter import AgentAdapter
from rumormill.live.core.decisions import NotReady
from rumormill.live.core.frames import HEAD, Have, Head, Obs, ProtocolError, Skip, Splitter
from rumormill.live.core.game import LiveGame, Refused
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import GameConfig
from rumormill.live.core.records import Own
from rumormill.live.core.signatures import FORGED, Chain, Point
from rumormill.live.core.streams import VOID, MemoryItems, RetainedItems
from rumormill.live.io.folder import pack, unpack
from rumormill.mesh.file import Limits
from rumormill.protocol import Message

EVERYBODY = rm.DecentralizedMPUCB(gamma=1, clique_filter=False)


def commit(node: Node) -> None:
    node.take_journal()
    node.committed(node.records)


def pair(policy: Any = EVERYBODY, **given: Any) -> list[Node]:
    """Two nodes, linked, that know what the other has."""
    nodes = nodes_of(policy, rm.Network.complete(2), **given)
    for node in nodes:
        node.tick(0.0)
        node.start()
        commit(node)
    link(nodes)
    return nodes


def link(nodes: Sequence[Node], name: int = 1) -> None:
    for node, peer in zip(nodes, (1, 0), strict=True):
        node.link_up(name, peer)
    exchange(nodes, name)


def exchange(nodes: Sequence[Node], name: int = 1, rounds: int = 6) -> list[wire.Frame]:
    """Deliver everything until nothing more is said; what was said."""
    said = []
    for _ in range(rounds):
        for sender, receiver in ((0, 1), (1, 0)):
            for frame in nodes[sender].frames(name, 1 << 30):
                decoded = wire.decode(frame[HEAD.size :])
                assert decoded is not None
                said.append(decoded)
                nodes[receiver].receive(name, frame[HEAD.size :])
    return said


def play(node: Node, n: int) -> None:
    for _ in range(n):
        token = node.choose(GAME, node.now, 60.0)
        node.observe(GAME, token.t, token.arm, 0.5 * token.arm)


def test_observations_reach_the_neighbour_when_they_are_on_disk() -> None:
    one, two = nodes = pair()
    play(one, 5)
    exchange(nodes)
    assert two.games[GAME].adapter.samples == [0, 0, 0]
    commit(one)
    exchange(nodes)
    assert sum(two.games[GAME].adapter.samples) == 5


def test_not_even_a_skip_is_told_before_it_is_on_disk() -> None:
    one, two = nodes = pair(limits=Limits(retain=2, skip_after=1.0))
    play(one, 9)
    assert not [frame for frame in exchange(nodes) if isinstance(frame, Skip)]
    commit(one)
    assert [frame.upto for frame in exchange(nodes) if isinstance(frame, Skip)] == [7]
    two.tick(5.0)
    exchange(nodes)
    assert two.games[GAME].streams[(0, 1)].upto == 9
    assert sum(two.games[GAME].adapter.samples) == 2


def test_what_a_neighbour_no_longer_keeps_is_not_forgotten_by_its_next_word() -> None:
    one, two = nodes = pair(limits=Limits(retain=2, skip_after=20.0, have_every=3.0, silence=1e9))
    play(one, 9)
    commit(one)
    for second in range(1, 19):
        for node in nodes:
            node.tick(float(second))
        exchange(nodes)
    assert two.links[1].games[GAME].floors == {(0, 1): 7}
    two.tick(21.0)
    assert two.games[GAME].streams[(0, 1)].upto == 7


def test_a_node_that_slept_gives_up_nothing_on_words_of_long_ago() -> None:
    one, two = nodes = pair(limits=Limits(retain=2, skip_after=1.0, silence=8.0))
    play(one, 9)
    commit(one)
    exchange(nodes)
    two.tick(30.0)
    assert two.links[1].closing == "silent"
    assert two.games[GAME].streams[(0, 1)].upto == 0


def test_a_neighbour_is_waited_for_from_when_its_link_came_up() -> None:
    """Agent 0 keeps nothing below 8 of its stream; agent 1 says that it has all of it, and tells nothing."""
    triangle_and_one = rm.Network.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)])
    policy = rm.DecentralizedMPUCB(gamma=2, clique_filter=False)
    peers = nodes_of(policy, triangle_and_one, limits=Limits(skip_after=1.0, silence=1e9))
    node = peers[2]
    node.tick(0.0)

    def link_up(name: int, peer: int, said: list[wire.Frame]) -> None:
        node.link_up(name, peer)
        peers[peer].link_up(name, 2)
        for frame in [*peers[peer].frames(name, 1 << 30), *map(wire.encode, said)]:
            node.receive(name, frame[HEAD.size :])

    link_up(1, 0, [Have(GAME, [(0, 1, 9, 0)], full=True), Skip(GAME, 0, 1, 7)])
    claim = Have(GAME, [(0, 1, 9, 1)], full=True)
    link_up(2, 1, [claim])
    for second in range(1, 10):
        node.tick(float(second))
    node.link_down(2)
    link_up(3, 1, [claim])
    for second in range(10, 19):
        node.tick(float(second))
        assert node.games[GAME].streams[(0, 1)].upto == 0
    node.tick(20.0)
    assert node.games[GAME].streams[(0, 1)].upto == 7, "one that never tells is not waited for for ever"


def test_time_goes_on_after_a_clock_was_set_back() -> None:
    (node, _) = pair()
    node.tick(100.0)
    node.tick(10.0)
    assert node.now == 100.0
    node.tick(15.0)
    assert node.now == 105.0


def test_open_choices_count_in_the_radius() -> None:
    (node, _) = pair()
    arms = [node.choose(GAME, 0.0, 60.0).arm for _ in range(9)]
    assert arms[:3] == [0, 1, 2]
    assert sorted(arms[3:6]) == [0, 1, 2], "arms without samples are taken in turn while rewards are out"
    (other, _) = pair()
    play(other, 40)
    assert len({other.choose(GAME, 0.0, 60.0).arm for _ in range(200)}) == 3


def test_numbers_wait_for_the_disk() -> None:
    node = nodes_of(EVERYBODY, rm.Network.complete(2))[0]
    node.start()
    with pytest.raises(NotReady, match="reserved"):
        node.choose(GAME, 0.0, 1.0)
    assert not node.ready
    commit(node)
    assert node.ready
    assert node.choose(GAME, 0.0, 1.0).t == 1


def test_too_many_open_choices() -> None:
    """The oldest is closed, and its reward is late if it comes; the others expire by age."""
    node = nodes_of(EVERYBODY, rm.Network.complete(2), limits=Limits(max_open=4))[0]
    node.start()
    commit(node)
    tokens = [node.choose(GAME, 0.0, 5.0) for _ in range(5)]
    assert list(node.games[GAME].decisions.open) == [2, 3, 4, 5]
    assert node.ready
    assert node.observe(GAME, tokens[0].t, tokens[0].arm, 1.0).late
    node.abandon(GAME, tokens[1].t)
    assert node.choose(GAME, 0.0, 5.0).t == 6
    node.tick(10.0)
    assert node.games[GAME].decisions.pending == [0, 0, 0]
    late = node.observe(GAME, tokens[2].t, tokens[2].arm, 1.0)  # expired, but it came after all
    assert late.late


@pytest.mark.parametrize(
    ("t", "arm", "reward", "kind"),
    [
        (1, 0, math.nan, "number"),
        (1, 0, math.inf, "number"),
        (1, 0, 1e101, "number"),
        (1, 3, 1.0, "arm"),
        (0, 0, 1.0, "future"),
        (10_000, 0, 1.0, "future"),
        (2, 0, 1.0, "conflict"),
    ],
)
def test_refusals(t: int, arm: int, reward: float, kind: str) -> None:
    (node, _) = pair()
    play(node, 1)
    node.choose(GAME, 0.0, 60.0)
    with pytest.raises(Refused) as caught:
        node.observe(GAME, t, arm, reward)
    assert caught.value.kind == kind


def test_rewards_of_long_ago_are_refused() -> None:
    node = nodes_of(EVERYBODY, rm.Network.complete(2), limits=Limits(window=10, block=64))[0]
    node.start()
    commit(node)
    tokens = [node.choose(GAME, 0.0, 60.0) for _ in range(12)]
    with pytest.raises(Refused, match="ago"):
        node.observe(GAME, tokens[0].t, tokens[0].arm, 1.0)
    assert node.observe(GAME, tokens[2].t, tokens[2].arm, 1.0).seq == 1
    assert 1 not in node.games[GAME].decisions.open, "what can no longer be answered is not waited for"


def test_heads_that_claim_the_impossible() -> None:
    one, two = nodes = pair(rm.KMPUCB(gamma=1))
    two.receive(1, wire.encode(Obs(GAME, 0, 1, 1, 1, [(1, 0, 1.0)], Head(1, 0, ((5.0, 1e9),) * 3)))[4:])
    heard = two.games[GAME].adapter.agent.heard[0]
    assert [n for _, n in heard.rows] == [0.0, 0.0, 0.0]
    assert two.games[GAME].void == 3
    del one, nodes


def test_a_leader_that_falls_silent() -> None:
    nodes = nodes_of(rm.CentralizedMPUCB(gamma=1, leaders=[0]), rm.Network.complete(2), patience=30.0)
    for node in nodes:
        node.tick(0.0)
        node.start()
        commit(node)
    link(nodes)
    leader, follower = nodes
    play(leader, 30)
    play(follower, 30)
    for node in nodes:
        commit(node)
    exchange(nodes)
    game = follower.games[GAME]
    follower.choose(GAME, 1.0, 60.0)
    assert not game.adapter.agent.deaf
    follower.choose(GAME, 40.0, 60.0)
    assert game.adapter.agent.deaf
    play(leader, 1)
    commit(leader)
    exchange(nodes)
    follower.choose(GAME, 41.0, 60.0)
    assert not game.adapter.agent.deaf


def test_an_origin_that_lost_its_disk_is_heard_again() -> None:
    player = AgentAdapter(node_config(rm.KMPUCB(gamma=1), rm.Network.complete(2), 1).games[0], 1)
    rows = ((1.0, 2.0),) * 3
    for key, t in (((0, 1), 50), ((0, 1), 40), ((0, 2), 3), ((0, 2), 4)):
        player.update_head(key, Head(t, t % 3, rows))
    heard = player.agent.heard[0]
    assert heard.arm == 4 % 3
    assert heard.round > 50


class Loner:
    """An own agent with nothing but the four methods, and a state."""

    def __init__(self, seat: rm.Seat) -> None:
        self.seat, self.seen = seat, [0.0] * seat.n_arms

    def choose(self, t: int) -> int:
        return t % self.seat.n_arms

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.seen[arm] += reward
        self.last = Message(self.seat.agent, t, arm, reward)

    def outgoing(self, t: int) -> list[Message]:
        return [self.last] if hasattr(self, "last") and self.last.round == t else []

    def receive(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.seen[message.arm] += message.reward

    def state(self) -> list[float]:
        return self.seen

    def restore(self, state: list[float]) -> None:
        self.seen = list(state)


class Quiet(Loner):
    """Tells only what arm 0 brought."""

    def outgoing(self, t: int) -> list[Message]:
        return [m for m in super().outgoing(t) if m.arm == 0]


def own_game(cls: Any) -> GameConfig:
    seat = rm.Seat(agent=0, n_arms=3)
    return GameConfig(name=GAME, n_arms=3, gamma=1, fingerprint="f", make_agent=lambda: cls(seat))


def test_an_own_agent_plays_live() -> None:
    player = AgentAdapter(own_game(Loner), 0)
    player.own(1, 2, 5.0)
    player.others(1, 2, 6.0)
    assert player.agent.seen == [0.0, 0.0, 11.0]
    fresh = AgentAdapter(own_game(Loner), 0)
    fresh.restore(unpack(pack(player.state())))
    assert fresh.agent.seen == [0.0, 0.0, 11.0]


def test_a_quiet_agents_stream_has_no_holes() -> None:
    game = LiveGame(own_game(Quiet), 0, 1, Limits())
    records: list[Any] = []

    def log(record: Any) -> int:
        records.append(record)
        return len(records)

    game.reserve(log)
    game.committed(1)
    for _ in range(9):
        t, (arm,), _ = game.choose(0.0, 60.0, False, log)
        game.observe(t, arm, 1.0, log)
    assert [record.seq for record in records if isinstance(record, Own)] == [0, 0, 1, 0, 0, 2, 0, 0, 3]


def test_a_quiet_agent_stopped_between_choice_and_reward_tells_the_same() -> None:
    """Whether a reward is told is judged by what was known when the arm was chosen."""
    policy = rm.KMPUCB(gamma=1, quiet=0.0)
    (one, _) = pair(policy)
    play(one, 12)
    token = one.choose(GAME, one.now, 60.0)
    again = Node(one.config)
    again.restart(unpack(pack(one.snapshot())), [])
    games = [one.games[GAME], again.games[GAME]]
    before = games[0].own.upto
    for game in games:
        assert max(game.adapter.agent.samples.latest)[0] == game.adapter.agent.samples.latest[token.arm][0]
        game.observe(token.t, token.arm, 9.0, lambda record: 1)
        assert game.own.upto == before  # the favourite's reward is nobody else's business


def test_an_agent_without_a_state_is_refused() -> None:
    class Forgetful(Loner):
        restore = None  # type: ignore[assignment]

    with pytest.raises(ContractError, match="restore"):
        AgentAdapter(own_game(Forgetful), 0)


def test_a_changed_game_starts_anew_and_an_equal_one_goes_on() -> None:
    nodes = pair()
    play(nodes[0], 6)
    commit(nodes[0])
    exchange(nodes)
    network = rm.Network.complete(2)
    same = node_config(EVERYBODY, network, 1)
    nodes[1].reconfigure(same)
    assert sum(nodes[1].games[GAME].adapter.samples) == 6
    assert nodes[1].links[1].closing
    other = node_config(rm.KMPUCB(gamma=1), network, 1)
    nodes[1].reconfigure(other)
    assert sum(nodes[1].games[GAME].adapter.samples) == 0
    again = Node(other)
    again.restart(unpack(pack(pair()[1].snapshot())), [])  # a snapshot of the other game is not taken
    assert sum(again.games[GAME].adapter.samples) == 0


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=12), st.integers(1, 50), st.sampled_from([2, 5, 99]), st.data())
def test_the_last_items_are_retained(sizes: list[int], limit: int, segment: int, data: st.DataObject) -> None:
    """In memory and in segments; also after a snapshot, a cut, and with a lower limit."""
    store, before = MemoryItems(), streams.SEGMENT
    streams.SEGMENT = segment
    try:
        check_retained(sizes, limit, store, data)
    finally:
        streams.SEGMENT = before


def test_a_segment_that_is_changed_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEGMENT", 4)
    store = MemoryItems()
    kept = RetainedItems(100, store)
    kept.append([(t, 0, 1.0) for t in range(1, 41)])
    store.segments[2] = bytes(len(store.segments[2]))
    assert [t for t, _, _ in kept.between(1, 4)] == [1, 2, 3, 4]
    assert [t for t, _, _ in kept.between(9, 12)] == list(range(9, 21))
    with pytest.raises(DataError, match="segment 2 of retained items is changed"):
        kept.between(3, 4)


def check_retained(sizes: list[int], limit: int, store: MemoryItems, data: st.DataObject) -> None:
    kept = RetainedItems(limit, store)
    all_items: list[wire.Item] = []
    for size in sizes:
        items = [(len(all_items) + i + 1, i % 7, float(i)) for i in range(size)]
        all_items += items
        kept.append(items)
        assert kept.last == len(all_items)
        assert kept.last - kept.floor == min(limit, len(all_items))
        assert kept.between(kept.floor + 1, kept.last - kept.floor) == all_items[kept.floor :]
        assert kept.newest(3) == all_items[max(kept._begin, kept.last - 3) :]
        if limit > kept._window:  # what is complete is on disk at once
            assert kept.last - kept._stored < kept._segment
    assert len(store.segments) <= 2 + limit // kept._segment
    for lower in (limit, max(1, limit // 3)):
        copied = MemoryItems()
        copied.segments = dict(store.segments)
        again = RetainedItems(lower, copied)
        again.restore(*kept.state())
        assert (again.floor, again.last) == (max(kept.floor, kept.last - lower), kept.last)
        assert again.between(again.floor + 1, again.last - again.floor) == all_items[again.floor :]
    last = data.draw(st.integers(0, kept.last))
    kept.truncate(last)
    all_items = [*all_items[:last], (7, 0, 1.0), (8, 0, 1.0), (9, 0, 1.0)]
    kept.append(all_items[last:])
    assert kept.between(kept.floor + 1, kept.last - kept.floor) == all_items[kept.floor :]


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_frame_or_hostile(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        wire.decode(data)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=5), st.integers(1, 7))
def test_frames_are_cut_anywhere(bodies: list[bytes], step: int) -> None:
    stream = b"".join(HEAD.pack(len(body)) + body for body in bodies)
    splitter, found = Splitter(), []
    for start in range(0, len(stream), step):
        found += splitter.feed(stream[start : start + step])
    assert found == bodies


def test_items_that_are_no_samples_keep_their_place() -> None:
    one, two = pair()
    items = [(1, 0, 1.0), (2, 70_000, 1.0), (-3, 0, 1.0), (4, 1, math.nan), (5, 1, 2.0)]
    two.receive(1, wire.encode(Obs(GAME, 0, 1, 1, 1, items))[4:])
    game = two.games[GAME]
    assert game.adapter.samples == [1, 1, 0]
    assert game.void == 3
    stream = game.streams[(0, 1)]
    assert stream.upto == 5
    assert stream.retained.between(2, 2) == [VOID, VOID]
    assert np.isnan(stream.retained.between(4, 1)[0][2])
    del one


def test_a_claim_to_more_than_there_is_changes_nothing() -> None:
    one, two = nodes = pair()
    one.receive(1, wire.encode(Have(GAME, [(0, 1, 999, 1)], full=False))[4:])
    assert one.violations["ahead"] == 1
    assert one.ready
    play(one, 3)
    commit(one)
    two.tick(11.0)  # the next honest word mends it
    exchange(nodes)
    assert sum(two.games[GAME].adapter.samples) == 3


def test_what_comes_too_fast_has_to_wait_in_the_network() -> None:
    one, two = nodes = pair(limits=Limits(rate=100.0))
    play(one, 350)
    commit(one)
    exchange(nodes)
    assert two.links[1].pause_until == pytest.approx(two.now + 2.5)


def test_a_flood_of_frames_has_to_wait_in_the_network() -> None:
    one, _ = pair(limits=Limits(frames=100.0))
    ping = wire.encode(wire.Ping(1))[4:]
    for _ in range(101):
        one.receive(1, ping)
    assert one.is_paused(1)
    one.tick(1.0)
    assert not one.is_paused(1), "after a while it is read again"


def test_a_peer_that_does_not_read_is_let_go() -> None:
    """It asks and asks: what waits for it must not grow without end."""
    one, _ = pair()
    ping = wire.encode(wire.Ping(1))[4:]
    for _ in range(3_000):
        one.receive(1, ping)
    one.tick(0.1)
    assert one.links[1].closing == "it does not read"


def test_a_liar_that_keeps_what_it_does_not_tell_is_not_waited_for_for_ever() -> None:
    """Node 1 says that it no longer keeps the beginning; node 3 says that it does, and never tells it."""
    node = nodes_of(rm.DecentralizedMPUCB(gamma=2, clique_filter=False), rm.Network.ring(4))[0]
    node.tick(0.0)
    for peer in (1, 3):
        node.link_up(peer, peer)
        games = [(GAME, node.games[GAME].config.fingerprint)]
        node.receive(peer, wire.encode(wire.Hello(1, 1, "test", peer, 1, games))[4:])
        node.receive(peer, wire.encode(Have(GAME, [(2, 1, 50, 1)]))[4:])
    node.receive(1, wire.encode(Skip(GAME, 2, 1, 40))[4:])
    stream = node.games[GAME].streams[(2, 1)]
    for second in range(1, 302):
        for peer in (1, 3):
            node.receive(peer, wire.encode(wire.Pong(0))[4:])
        node.tick(float(second))
        asked = [wire.decode(frame[4:]) for frame in node.frames(1, 1 << 30)]
        assert (Have(GAME, [(2, 1, 40, -1)], full=False) in asked) == (second == 300)
    assert stream.upto == 0, "a relay has to show what follows"
    node.receive(1, wire.encode(Obs(GAME, 2, 1, 2, 41, [(41, 0, 1.0), (42, 1, 1.0)]))[4:])
    assert stream.upto == 42


def test_items_below_a_reported_floor_do_not_prove_it() -> None:
    """Who reports that items up to 40 are gone and then sends item 21 has lied: nothing is skipped."""
    node = nodes_of(rm.DecentralizedMPUCB(gamma=2, clique_filter=False), rm.Network.ring(4))[0]
    node.tick(0.0)
    node.link_up(1, 1)
    games = [(GAME, node.games[GAME].config.fingerprint)]
    node.receive(1, wire.encode(wire.Hello(1, 1, "test", 1, 1, games))[4:])
    node.receive(1, wire.encode(Have(GAME, [(2, 1, 50, 1)]))[4:])
    node.receive(1, wire.encode(Skip(GAME, 2, 1, 40))[4:])
    for second in range(1, 60):
        node.receive(1, wire.encode(wire.Pong(0))[4:])
        node.tick(float(second))
        list(node.frames(1, 1 << 30))
    stream = node.games[GAME].streams[(2, 1)]
    node.receive(1, wire.encode(Obs(GAME, 2, 1, 2, 21, [(21, 0, 1.0)]))[4:])
    assert stream.upto == 0
    node.receive(1, wire.encode(Obs(GAME, 2, 1, 2, 41, [(41, 0, 1.0)]))[4:])
    assert stream.upto == 41


def test_items_of_nobody_are_not_taken() -> None:
    """Neither of a node that was removed, nor of one that never was."""
    network = rm.Network.from_edges([(0, 1), (1, 2)])
    node = nodes_of(rm.DecentralizedMPUCB(gamma=2, clique_filter=False), network)[0]
    node.link_up(1, 1)
    games = [(GAME, node.games[GAME].config.fingerprint)]
    node.receive(1, wire.encode(wire.Hello(1, 1, "test", 1, 1, games))[4:])
    node.receive(1, wire.encode(Have(GAME, []))[4:])
    for origin in (3, 77):
        node.receive(1, wire.encode(Obs(GAME, origin, 1, 2, 1, [(1, 0, 1.0)]))[4:])
    assert (node.violations["origin"], list(node.games[GAME].streams)) == (2, [(0, 1)])
    assert sum(node.games[GAME].adapter.samples) == 0


def test_what_is_told_shows_that_it_can_be_supplied() -> None:
    """A neighbour forgot by how many hops it has a stream; what it then tells says so."""
    network = rm.Network.from_edges([(0, 1), (1, 2)])
    node = nodes_of(rm.DecentralizedMPUCB(gamma=2, clique_filter=False), network)[0]
    node.link_up(1, 1)
    games = [(GAME, node.games[GAME].config.fingerprint)]
    node.receive(1, wire.encode(wire.Hello(1, 1, "test", 1, 1, games))[4:])
    node.receive(1, wire.encode(Have(GAME, [(2, 1, 50, -1)]))[4:])
    assert node.links[1].games[GAME].hops[(2, 1)] > 2
    node.receive(1, wire.encode(Obs(GAME, 2, 1, 2, 1, [(1, 0, 1.0)]))[4:])
    assert node.links[1].games[GAME].hops[(2, 1)] == 1


def test_a_peer_of_the_next_release() -> None:
    """More versions, more elements at the end, frames that are not known: all that is known is understood."""
    one, two = nodes_of(EVERYBODY, rm.Network.complete(2))
    for node in (one, two):
        node.tick(0.0)
        node.start()
        commit(node)
    two.link_up(1, 0)
    newer = msgspec.msgpack.encode
    games = [[GAME, two.games[GAME].config.fingerprint]]
    two.receive(1, newer(["hello", 1, 2, "test", 0, 1, games, "new", {"more": 1}]))
    two.receive(1, newer(["weather", "fine"]))
    two.receive(1, newer(["have", GAME, [], True, "new"]))
    two.receive(
        1, newer(["obs", GAME, 0, 1, 1, 1, [[1, 0, 1.0], [2, 1, 2.0]], [2, 1, [], "new"], b"", "new"])
    )
    two.receive(1, newer(["bye", "see you", "new"]))
    assert two.games[GAME].adapter.samples == [1, 1, 0]
    assert not two.violations
    said = [wire.decode(frame[HEAD.size :]) for frame in two.frames(1, 1 << 30)]
    assert {type(frame).__name__ for frame in said} >= {"Hello", "Have"}


def test_signed_items_reach_the_neighbour_and_survive_a_restart() -> None:
    nodes = pair(signed=True)
    for count in (3, 600, 700):  # more than a batch, in one commit
        play(nodes[0], count)
        commit(nodes[0])
        exchange(nodes)
    assert sum(nodes[1].games[GAME].adapter.samples) == 1303
    assert not nodes[1].violations
    again = Node(nodes[1].config)
    again.restart(unpack(pack(nodes[1].snapshot())), [])
    stream = again.games[GAME].streams[(0, 1)]
    assert stream.chain is not None
    assert stream.chain.digest == nodes[0].games[GAME].own.chain.digest  # type: ignore[union-attr]
    assert 2 <= len(stream.chain.points) <= 6, "one point for every batch, not one for every commit"


def test_a_repeated_last_item_is_verified_again() -> None:
    """It may bring a newer head: its signature is read, that of items further back is not."""
    nodes = pair(signed=True)
    play(nodes[0], 3)
    commit(nodes[0])
    exchange(nodes)
    items = nodes[1].games[GAME].streams[(0, 1)].retained.between(1, 3)
    nodes[1].receive(1, wire.encode(Obs(GAME, 0, 1, 1, 1, items[:2], None, b"false"))[4:])
    assert not nodes[1].violations
    nodes[1].receive(1, wire.encode(Obs(GAME, 0, 1, 1, 1, items, None, b"false"))[4:])
    assert nodes[1].violations == {FORGED: 1}


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(0, 60))
def test_a_chain_steps_from_any_point_to_the_last(steps: list[int], floor: int) -> None:
    """Whoever is at a point, kept or forgotten, can go on in steps of at most a batch."""
    chain, places = Chain(batch=9), [0]
    for step in steps:
        places.append(places[-1] + step)
        chain.add(Point(places[-1], b"", None, b""), min(floor, places[-1]))
    for place in places:
        if place >= floor and place < places[-1]:
            point = chain.step(place + 1, places[-1])
            assert point is not None
            assert place < point.upto <= place + 9


@pytest.mark.parametrize("signed", [False, True])
def test_a_game_that_is_changed_and_changed_back(signed: bool) -> None:
    """No decision number and no place in the stream stands for two things, also after a restart."""
    network = rm.Network.complete(2)
    nodes = pair(signed=signed)
    changed = node_config(rm.KMPUCB(gamma=1), network, 0, signed=signed)
    records: list[Any] = []

    def written(n: int) -> None:
        play(nodes[0], n)
        records.extend(nodes[0].take_journal())
        nodes[0].committed(nodes[0].records)

    first = Node(nodes[0].config)  # as in pair(), but its journal is kept
    nodes[0] = first
    first.tick(0.0)
    first.start()
    written(0)
    nodes[1].link_down(1)
    link(nodes, 2)
    token = first.choose(GAME, 0.0, 60.0)
    written(5)
    exchange(nodes, 2)
    first.reconfigure(changed)
    written(0)
    with pytest.raises(Refused) as caught:
        first.observe(GAME, token.t, token.arm, 1.0)
    assert caught.value.kind == "old"
    written(3)
    first.reconfigure(node_config(EVERYBODY, network, 0, signed=signed))
    written(0)
    written(4)
    for node, peer in zip(nodes, (1, 0), strict=True):
        node.link_down(2)
        node.link_up(3, peer)
    for second in range(1, 40):  # what was told of the other game is given up
        for node in nodes:
            node.tick(float(second))
        exchange(nodes, 3)
    assert not nodes[1].violations
    assert sum(nodes[1].games[GAME].adapter.samples) == 9
    assert nodes[1].games[GAME].streams[(0, 1)].upto == 12
    again = Node(first.config)
    again.restart(None, records)
    game, before = again.games[GAME], first.games[GAME]
    assert sum(game.adapter.samples) == 4
    assert game.own.upto == before.own.upto == 12
    assert game.own.retained.between(9, 4) == before.own.retained.between(9, 4)
    assert game.decisions.first_t == before.decisions.first_t
    from_snapshot = Node(changed)  # and the same if the last snapshot is of the other game
    from_snapshot.restart(unpack(pack(first.snapshot())), [])
    assert from_snapshot.games[GAME].own.upto == 12
    assert from_snapshot.games[GAME].decisions.next_t > before.decisions.next_t


@pytest.mark.parametrize("repeated", [False, True])
def test_items_that_were_asked_for_too_early_are_no_fault_and_are_asked_for_again(repeated: bool) -> None:
    """Another neighbour might supply the beginning: for now nothing is skipped; the Skip may be repeated."""
    node = nodes_of(rm.DecentralizedMPUCB(gamma=2, clique_filter=False), rm.Network.ring(4))[0]
    node.tick(0.0)

    def meet(peer: int) -> None:
        node.link_up(peer, peer)
        games = [(GAME, node.games[GAME].config.fingerprint)]
        node.receive(peer, wire.encode(wire.Hello(1, 1, "test", peer, 1, games))[4:])
        node.receive(peer, wire.encode(Have(GAME, [(2, 1, 50, 1)]))[4:])

    def asks(now: float) -> bool:
        for peer in node.links:
            node.receive(peer, wire.encode(wire.Pong(0))[4:])
        node.tick(now)
        frames = [wire.decode(frame[4:]) for frame in node.frames(1, 1 << 30)]
        return any(
            isinstance(each, Have) and (2, 1, 40) in [row[:3] for row in each.streams] for each in frames
        )

    skip = wire.encode(Skip(GAME, 2, 1, 40))[4:]
    items = wire.encode(Obs(GAME, 2, 1, 2, 41, [(41, 0, 1.0), (42, 1, 1.0)]))[4:]
    meet(1)
    node.receive(1, skip)
    stream = node.games[GAME].streams[(2, 1)]
    assert [second for second in range(1, 60) if asks(float(second))] == [30]
    meet(3)
    if repeated:
        node.receive(1, skip)
    node.receive(1, items)
    assert (stream.upto, dict(node.violations)) == (0, {})
    assert not asks(60.0), "node 3 may have what is missing"
    node.receive(3, skip)
    assert asks(61.0), "nobody has it"
    node.receive(1, items)
    assert (stream.upto, dict(node.violations)) == (42, {})


def test_after_a_skip_the_origin_has_time_to_hear_of_it() -> None:
    """It reports late that the beginning is gone: the rest, which it retains, is waited for."""
    node = nodes_of(rm.DecentralizedMPUCB(gamma=2, clique_filter=False), rm.Network.ring(4))[0]
    node.tick(0.0)
    for peer, hops in ((1, 0), (3, 1)):
        node.link_up(peer, peer)
        games = [(GAME, node.games[GAME].config.fingerprint)]
        node.receive(peer, wire.encode(wire.Hello(1, 1, "test", peer, 1, games))[4:])
        node.receive(peer, wire.encode(Have(GAME, [(1, 1, 50, hops)]))[4:])
    node.receive(3, wire.encode(Skip(GAME, 1, 1, 40))[4:])
    stream, asked = node.games[GAME].streams[(1, 1)], []
    for second in range(1, 600):
        if second == 290:
            node.receive(1, wire.encode(Skip(GAME, 1, 1, 14))[4:])
        for peer in (1, 3):
            node.receive(peer, wire.encode(wire.Pong(0))[4:])
        node.tick(float(second))
        assert stream.upto == (14 if second >= 290 else 0)
        frames = [wire.decode(frame[4:]) for frame in node.frames(3, 1 << 30)]
        if any(isinstance(each, Have) and (1, 1, 40) in [row[:3] for row in each.streams] for each in frames):
            asked.append(second)
    assert asked == [590], "ten times 30 seconds later"
