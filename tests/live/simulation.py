"""Real nodes on a simulated network, with simulated disks, applications and clocks. One seed, one schedule.

Faults happen while the schedule lasts; then everything is mended and time passes. The invariants I1 to I11
are checked all the time: from what nodes write down, from what they acknowledge, from their state.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

import rumormill as rm
from live.making import GAME, node_setup
from rumormill.live import frames as wire
from rumormill.live.choices import NotReady
from rumormill.live.frames import HEAD, Hostile
from rumormill.live.game import Game, Refused
from rumormill.live.node import Node, Token
from rumormill.live.records import Choice, Own, Peer, Record, Skipped
from rumormill.live.setup import Limits
from rumormill.live.snapshot import pack, unpack
from rumormill.live.streams import UNKNOWN

N_ARMS = 3
HARMLESS = {"hole"}  # a repeated or overtaken frame


FAULTS = (
    *("crash", "crash", "lose", "cut", "cut", "stall", "stall", "block", "unblock", "full", "clock", "time"),
    *("snapshot", "snapshot", "lie", "nonsense", "abandon"),
)


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Disk:
    """Safe records, and those that a crash may or may not keep (any prefix of them)."""

    safe: list[Record] = field(default_factory=list)
    rest: list[Record] = field(default_factory=list)
    state: bytes | None = None  # the snapshot, behind which `safe` begins
    waiting: tuple[int, bytes] | None = None  # (records before it, snapshot) not on disk yet
    full: bool = False
    log: list[Record] = field(default_factory=list)  # all safe ones ever: not on the disk, for the checks


@dataclass
class Sent:
    """What an application knows of a decision."""

    token: Token
    reward: float
    answer: tuple[int, int] | None = None  # (seq, record)
    acked: bool = False


@dataclass
class Host:
    """One machine: its disk stays, its node comes and goes."""

    disk: Disk
    epoch: int
    retain: int
    node: Node | None = None
    offset: float = 0.0
    written: int = 0  # records of this process handed to the disk
    safe: int = 0  # of those, on disk
    sent: dict[int, Sent] = field(default_factory=dict)


@dataclass
class Wire:
    """One connection: frames on the way in both directions."""

    ends: tuple[int, int]
    ways: dict[int, deque[bytes]]  # by sender
    hostile: bool
    stalled: bool = False  # it is up, but nothing comes through


class World:
    """One schedule."""

    def __init__(self, seed: int, steps: int = 300) -> None:
        self.rng = rng = random.Random(seed)
        self.steps = steps
        self.network = self._network(rng)
        self.gamma = rng.choice([1, 1, 2, 2, 3])
        self.policy = self._policy(rng)
        self.gamma = self.policy.plan(self.network).part(0).gamma  # never more than the diameter
        self.limits = Limits(
            window=rng.choice([40, 400, 4000]),
            max_open=rng.choice([3, 8, 50]),
            block=rng.choice([4, 16, 64]),
            batch=rng.choice([1, 1, 3, 16]),
            have_every=3.0,
            skip_after=rng.choice([1.0, 6.0]),
            ping_every=2.0,
            silence=8.0,
        )
        self.now = 1000.0
        self.size = self.network.n_agents
        self.distance = self._distances()
        few = rng.random() < 0.7
        self.hosts = [
            Host(Disk(), epoch=1, retain=rng.choice([2, 4, 30] if few else [30, 1000]))
            for _ in range(self.size)
        ]
        self.truth: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        self.tokens: set[tuple[int, int, int]] = set()
        self.wires: dict[int, Wire] = {}
        self.blocked: set[tuple[int, int]] = set()
        self.next_link = 1
        self.hostile = self.was_hostile = rng.random() < 0.5
        self.upto: dict[tuple[int, int], Counter[tuple[int, int]]] = {}
        self.lied: set[int] = set()
        for v in range(self.size):
            self.start(v)

    def _network(self, rng: random.Random) -> rm.Network:
        n = rng.randint(2, 6)
        edges = {(rng.randrange(v), v) for v in range(1, n)}
        for _ in range(rng.randint(0, n)):
            a, b = rng.sample(range(n), 2)
            edges.add((min(a, b), max(a, b)))
        return rm.Network.from_edges(sorted(edges))

    def _policy(self, rng: random.Random) -> Any:
        kind = rng.choice(["everybody", "cliques", "leaders", "kmp"])
        if kind == "cliques":
            return rm.DecentralizedMPUCB(gamma=self.gamma)
        if kind == "leaders":
            return rm.CentralizedMPUCB(gamma=self.gamma)
        if kind == "kmp":
            return rm.KMPUCB(gamma=self.gamma)
        return rm.DecentralizedMPUCB(gamma=self.gamma, clique_filter=False)

    def _distances(self) -> list[list[int]]:
        far = 99
        d = [[0 if v == w else far for w in range(self.size)] for v in range(self.size)]
        for v in range(self.size):
            for w in self.network.neighbours(v).tolist():
                d[v][w] = 1
        for k in range(self.size):
            for v in range(self.size):
                for w in range(self.size):
                    d[v][w] = min(d[v][w], d[v][k] + d[k][w])
        return d

    # --- machines -----------------------------------------------------------------------------------

    def fresh(self, v: int) -> Node:
        made = node_setup(
            self.policy,
            self.network,
            v,
            n_arms=N_ARMS,
            epoch=self.hosts[v].epoch,
            limits=replace(self.limits, retain=self.hosts[v].retain),
            patience=4.0,
        )
        return Node(made)

    def start(self, v: int) -> None:
        host, disk = self.hosts[v], self.hosts[v].disk
        node = self.fresh(v)
        node.restart(None if disk.state is None else unpack(disk.state), disk.safe)
        self._check_restart(v, node)
        node.tick(self.clock(v))
        node.start()
        host.node, host.written, host.safe = node, 0, 0

    def _check_restart(self, v: int, node: Node) -> None:
        """I10: snapshot and records, or all records from the first: the same state."""
        again = self.fresh(v)
        again.restart(None, self.hosts[v].disk.log)
        if again.games[GAME].differing or node.games[GAME].differing:
            raise Broken(f"I10: node {v} makes other choices when its journal is replayed")
        self._same(v, node, again, "a snapshot")
        for sent in self.hosts[v].sent.values():
            if sent.acked and not self._remembers(node.games[GAME], sent):
                raise Broken(f"I1: node {v} lost the acknowledged {sent.token}")

    def _remembers(self, game: Game, sent: Sent) -> bool:
        if game.choices.too_old(sent.token.t):
            return True
        known = game.choices.known(sent.token.t)
        return known is not None and (known.arm, known.reward) == (sent.token.arm, sent.reward)

    def _same(self, v: int, one: Node, two: Node, how: str) -> None:
        states = [self._plain(node) for node in (one, two)]
        if states[0] != states[1]:
            keys = [
                (key, states[0][key], states[1][key]) for key in states[0] if states[0][key] != states[1][key]
            ]
            raise Broken(f"I10: node {v} from {how} is another one: {keys}")
        games = [node.games[GAME] for node in (one, two)]
        arms = []
        for game in games:
            copied = self.fresh(v).games[GAME]
            copied.restore(unpack(pack(game.state())))
            t = max(each.choices.next_t for each in games)
            arms.append(copied.player.choose(t, copied.choices.pending, False))
        if arms[0] != arms[1]:
            raise Broken(f"I10: node {v} from {how} chooses {arms[0]}, not {arms[1]}")

    def _plain(self, node: Node) -> dict[str, Any]:
        game = node.games[GAME]
        state = unpack(pack(game.state()))
        choices = state["choices"]
        streams = {(row[0], row[1]): row[2:] for row in state["streams"]}
        if state["heads"]:  # whether it is on disk yet does not matter here
            streams[game.own.key][2] = state["heads"][-1][1:]
        return {
            "player": state["player"],
            "open": choices["open"],
            "pending": list(game.choices.pending),
            "known": [
                (t, known.arm, known.reward, known.seq)
                for t in range(1, game.choices.next_t)
                if not game.choices.too_old(t) and (known := game.choices.known(t)) is not None
            ]
            if game.choices.next_t < 5000
            else [],
            "streams": {key: row for key, row in streams.items() if key == game.own.key or row[1] or row[0]},
        }

    def crash(self, v: int) -> None:
        host, disk = self.hosts[v], self.hosts[v].disk
        node = host.node
        assert node is not None
        self.write(v)
        kept = self.rng.choice([0, len(disk.rest), self.rng.randint(0, len(disk.rest))])
        whole = kept == len(disk.rest)
        self._advance(v, kept)
        disk.rest.clear()
        disk.waiting = None
        for link in [link for link, each in self.wires.items() if v in each.ends]:
            self.cut(link)
        host.node = None
        for sent in host.sent.values():
            sent.answer = sent.answer if sent.acked else None  # the application asks again
        if whole:
            again = self.fresh(v)
            again.restart(None, disk.log)
            # Numbers that were reserved are all used up by a restart.
            node.games[GAME].choices.next_t = again.games[GAME].choices.next_t
            self._same(v, node, again, "its journal")

    def lose_disk(self, v: int) -> None:
        if self.hosts[v].epoch >= self.limits.epochs - 1:
            return
        self.crash(v)
        host = self.hosts[v]
        host.disk, host.epoch, host.sent = Disk(), host.epoch + 1, {}

    def write(self, v: int) -> None:
        """Records go to the disk, which may take its time."""
        host = self.hosts[v]
        if host.node is None:
            return
        for record in host.node.take_journal():
            self._check_record(v, record)
            host.disk.rest.append(record)
            host.written += 1

    def snapshot(self, v: int) -> None:
        host = self.hosts[v]
        if host.node is not None and host.disk.waiting is None:
            self.write(v)
            host.disk.waiting = (len(host.disk.rest), pack(host.node.snapshot()))

    def commit(self, v: int) -> None:
        """The disk has caught up, or is full and nothing happens."""
        host, disk = self.hosts[v], self.hosts[v].disk
        self.write(v)
        if host.node is None or disk.full:
            return
        count = len(disk.rest) if self.rng.random() < 0.8 else self.rng.randint(0, len(disk.rest))
        host.safe += count
        self._advance(v, count)
        host.node.committed(host.safe)
        for sent in host.sent.values():
            if sent.answer is not None and not sent.acked and sent.answer[1] <= host.node.durable:
                sent.acked = True

    def _advance(self, v: int, count: int) -> None:
        """So many records come to the disk, and the snapshot, if it is behind no more than these."""
        disk = self.hosts[v].disk
        moved, disk.rest = disk.rest[:count], disk.rest[count:]
        disk.safe += moved
        disk.log += moved
        self._note(v, moved)
        if disk.waiting is None:
            return
        before, state = disk.waiting
        if before > count:
            disk.waiting = (before - count, state)
            return
        # It becomes current: what is before it is deleted in the same transaction.
        disk.state, disk.waiting = state, None
        disk.safe = moved[before:]

    def _note(self, v: int, moved: list[Record]) -> None:
        """What an origin has on disk is the truth."""
        told = self.truth.setdefault((v, self.hosts[v].epoch), [])
        for record in moved:
            if isinstance(record, Own) and record.seq:
                if record.seq != len(told) + 1:
                    raise Broken(f"I3: node {v} numbers its items {record.seq} after {len(told)}")
                told.append((record.t, record.arm, record.reward))

    # --- invariants on what nodes write down --------------------------------------------------------

    def _check_record(self, v: int, record: Record) -> None:
        upto = self.upto.setdefault((v, self.hosts[v].epoch), Counter())
        if isinstance(record, Peer):
            key = (record.origin, record.epoch)
            known = self.node(v).games[GAME].streams[key]
            truth = self.truth.get(key, [])
            part = truth[record.first - 1 : record.first - 1 + len(record.items)]
            if [tuple(item) for item in record.items] != part:
                raise Broken(f"I4, I5: node {v} accepted {record}, its origin has {part} on disk")
            if key[0] != v and self.distance[v][key[0]] > self.gamma:
                raise Broken(f"I8: node {v} has a stream of {key[0]}, which is too far")
            del known
        if isinstance(record, Skipped):
            self._check_skip(v, record)
        if isinstance(record, Choice):
            name = (v, self.hosts[v].epoch, record.t)
            if name in self.tokens:
                raise Broken(f"I6: decision {name} was made twice")
            self.tokens.add(name)
        del upto

    def _check_skip(self, v: int, record: Skipped) -> None:
        """I7: nothing is given up that a linked neighbour can supply."""
        key = (record.origin, record.epoch)
        for each in self.wires.values():
            if v not in each.ends:
                continue
            (w,) = set(each.ends) - {v}
            other = self.hosts[w].node
            if other is None or not self._agreed(v, w):
                continue
            stream, had = other.games[GAME].streams.get(key), self._held_before(v, record)
            link = next(at for at in self.node(v).links.values() if at.peer == w)
            # What the neighbour got, or learnt of its distance, since it last said so, nobody can know here.
            told, hops = (each.get(key) for each in (link.games[GAME].claims, link.games[GAME].hops))
            if stream is None or told is None or told <= had or hops == self.gamma:
                continue
            if not (stream.hops < self.gamma or key[0] == v):
                continue
            if stream.kept.floor < min(told, record.upto):
                raise Broken(
                    f"I7: node {v} gave up {key} to {record.upto}, of which {w} keeps {stream.kept.floor + 1}"
                )

    def _agreed(self, v: int, w: int) -> bool:
        link = next((each for each in self.node(v).links.values() if each.peer == w), None)
        return link is not None and GAME in link.games and link.games[GAME].answered

    def _held_before(self, v: int, record: Skipped) -> int:
        held = 0
        for each in [*self.hosts[v].disk.log, *self.hosts[v].disk.rest]:
            if isinstance(each, Peer) and (each.origin, each.epoch) == (record.origin, record.epoch):
                held = each.first + len(each.items) - 1
            if isinstance(each, Skipped) and (each.origin, each.epoch) == (record.origin, record.epoch):
                held = each.upto
        return held

    def check_state(self, v: int) -> None:
        """I2, I3, I8, I9 from the state of a node and all it ever wrote."""
        node = self.node(v)
        game = node.games[GAME]
        self.write(v)
        log = [*self.hosts[v].disk.log, *self.hosts[v].disk.rest]
        expected = [0] * N_ARMS
        upto: Counter[tuple[int, int]] = Counter()
        clique = getattr(game.player.agent, "clique", None)
        for record in log:
            if isinstance(record, Own):
                expected[record.arm] += 1
            elif isinstance(record, Peer):
                key = (record.origin, record.epoch)
                if record.first != upto[key] + 1:
                    raise Broken(f"I3: node {v} took {record} after item {upto[key]}")
                upto[key] += len(record.items)
                for _, arm, _ in record.items:
                    expected[arm] += clique is None or record.origin in clique or record.origin == v
            elif isinstance(record, Skipped):
                upto[(record.origin, record.epoch)] = record.upto
        counts = [samples.count for samples in game.player.agent.samples._arms]
        if counts != expected:
            raise Broken(f"I2: the agent of node {v} has {counts} samples, its journal {expected}")
        for key, stream in game.streams.items():
            if stream is not game.own and stream.upto != upto[key]:
                raise Broken(f"I3: node {v} is at {stream.upto} of {key}, its journal at {upto[key]}")
            if stream.hops != UNKNOWN and not self.distance[v][key[0]] <= stream.hops <= self.gamma:
                raise Broken(f"I8: node {v} has {key} by {stream.hops} hops")
            retain = self.hosts[v].retain
            if stream.kept.last - stream.kept.floor > retain or len(stream.kept._ring) > max(16, retain):
                raise Broken("I9: more items are kept than allowed")
        self._check_memory(v, game, node)

    def _check_memory(self, v: int, game: Game, node: Node) -> None:
        pending = [0] * N_ARMS
        for each in game.choices.open.values():
            pending[each.arm] += 1
        if pending != list(game.choices.pending):
            raise Broken(f"node {v} counts {game.choices.pending} pending pulls of {pending}")
        most = self.size * self.limits.epochs
        if len(game.choices.open) > self.limits.max_open or len(game.streams) > most:
            raise Broken(f"I9: node {v} holds too much")
        for link in node.links.values():
            for shared in link.games.values():
                sizes = [len(x) for x in (shared.has, shared.hops, shared.claims, shared.floors, shared.news)]
                if max(sizes) > 2 * most:
                    raise Broken(f"I9: node {v} remembers too much of node {link.peer}")
        if not self.lied and set(node.violations) - HARMLESS:
            raise Broken(f"node {v} counts {dict(node.violations)}, and nobody lied")
        if not self.lied and not self.was_hostile and node.violations:
            raise Broken(f"node {v} counts {dict(node.violations)} on clean links")

    def node(self, v: int) -> Node:
        node = self.hosts[v].node
        assert node is not None
        return node

    def clock(self, v: int) -> float:
        return self.now + self.hosts[v].offset

    # --- the network --------------------------------------------------------------------------------

    def connect(self, a: int, b: int) -> None:
        up = self.hosts[a].node is not None and self.hosts[b].node is not None
        if not up or (a, b) in self.blocked or any(each.ends == (a, b) for each in self.wires.values()):
            return
        link = self.next_link
        self.next_link += 1
        self.wires[link] = Wire((a, b), {a: deque(), b: deque()}, self.hostile and self.rng.random() < 0.6)
        self.node(a).link_up(link, b)
        self.node(b).link_up(link, a)

    def cut(self, link: int) -> None:
        for v in self.wires.pop(link).ends:
            if self.hosts[v].node is not None:
                self.node(v).link_down(link)

    def pull(self, link: int, sender: int, limit: int) -> None:
        each = self.wires[link]
        if each.stalled:
            return
        way = each.ways[sender]
        for frame in self.node(sender).frames(link, limit):
            way.append(frame)
            if each.hostile and self._about_streams(frame) and self.rng.random() < 0.1:
                way.append(frame)  # a repeat
        for i in range(len(way) - 1) if each.hostile else ():
            if self.rng.random() < 0.3 and self._about_streams(way[i]) and self._about_streams(way[i + 1]):
                way[i], way[i + 1] = way[i + 1], way[i]  # one overtakes the other

    def _about_streams(self, frame: bytes) -> bool:
        return frame[HEAD.size + 2 : HEAD.size + 5] in (b"obs", b"hav", b"ski")

    def deliver(self, link: int, sender: int) -> None:
        each = self.wires[link]
        if each.stalled or not each.ways[sender]:
            return
        (receiver,) = set(each.ends) - {sender}
        frame = each.ways[sender].popleft()
        try:
            self.node(receiver).receive(link, frame[HEAD.size :])
        except Hostile as error:
            if "second hello" not in str(error) and sender not in self.lied:
                raise Broken(f"node {receiver} calls node {sender} hostile: {error}") from None
            self.cut(link)

    def lie(self, link: int, sender: int) -> None:
        """A frame that no honest node sends, and that must change nothing."""
        each, rng = self.wires[link], self.rng
        (receiver,) = set(each.ends) - {sender}
        self.lied.add(sender)
        third = rng.randrange(self.size)
        epoch = self.hosts[third].epoch
        item = (1, 0, 0.5)
        made: list[wire.Frame] = [
            wire.Obs(GAME, third, epoch, 0, 1, [item]),
            wire.Obs(GAME, third, epoch, self.gamma + 1, 1, [item]),
            wire.Obs(GAME, third, epoch, self.gamma, 0, [item]),
            wire.Obs(GAME, third, epoch, self.gamma, 1, [item] * (self.limits.batch + 1)),
            wire.Obs(GAME, 77, 1, 1, 1, [item]),
            wire.Obs(GAME, receiver, self.hosts[receiver].epoch, 1, 1, [item]),
            wire.Obs("chess", third, epoch, 1, 1, [item]),
            wire.Have(GAME, [(77, e, 5, 0) for e in range(200)], full=False),
            wire.Have(GAME, [(third, epoch, -4, 0)], full=False),
            wire.Have(GAME, [(third, epoch, 0, 99)], full=False),
            wire.Skip(GAME, 77, 1, 10),
            wire.Skip(GAME, receiver, self.hosts[receiver].epoch, 10),
        ]
        if third not in (sender, receiver):
            made.append(wire.Obs(GAME, third, epoch, 1, 1, [item]))  # in another's name
        body = wire.encode(rng.choice(made))
        if rng.random() < 0.2:
            body = HEAD.pack(9) + rng.randbytes(9)
        each.ways[sender].append(body)

    # --- the application ----------------------------------------------------------------------------

    def choose(self, v: int) -> None:
        host, node = self.hosts[v], self.node(v)
        choices = node.games[GAME].choices
        try:
            token = node.choose(GAME, self.clock(v), self.rng.choice([0.5, 5.0, 60.0]))
        except NotReady:
            if choices.next_t <= choices.reserved and len(choices.open) < self.limits.max_open:
                raise Broken(f"I11: node {v} does not answer") from None
            return
        if (v, host.epoch, token.t) in self.tokens:
            raise Broken(f"I6: node {v} used decision {token.t} before")
        self.tokens.add((v, host.epoch, token.t))
        self._undo_token(v, host.epoch, token.t)
        reward = self.rng.gauss(token.arm, 1.0) * self.rng.choice([1, 1, 1, 30])
        host.sent[token.t] = Sent(token, reward)

    def _undo_token(self, v: int, epoch: int, t: int) -> None:
        self.tokens.discard((v, epoch, t))  # its record notes it again
        self.write(v)

    def observe(self, v: int) -> None:
        host = self.hosts[v]
        if not host.sent:
            return
        recent = list(host.sent)[-12:]
        sent = host.sent[self.rng.choice(recent if self.rng.random() < 0.9 else list(host.sent))]
        self.tell(v, sent, sent.reward)

    def tell(self, v: int, sent: Sent, reward: float) -> None:
        node, token = self.node(v), sent.token
        try:
            answer = node.observe(GAME, token.t, token.arm, reward)
        except Refused as refused:
            if refused.kind == "old" and node.games[GAME].choices.too_old(token.t):
                return
            if refused.kind == "conflict" and reward != sent.reward:
                return
            raise Broken(f"node {v} refuses {token}: {refused}") from None
        if reward != sent.reward:
            raise Broken(f"I6: node {v} took a second reward of {token}")
        if sent.answer is not None and sent.answer[0] != answer.seq and sent.acked:
            raise Broken(f"I6: node {v} answers {answer.seq} after {sent.answer[0]}")
        sent.answer = (answer.seq, answer.record)

    def nonsense(self, v: int) -> None:
        """Requests that must be refused."""
        node, rng = self.node(v), self.rng
        next_t = node.games[GAME].choices.next_t
        host = self.hosts[v]
        bad = [(next_t + 5, 0, 1.0), (0, 0, 1.0), (1, N_ARMS, 1.0), (1, 0, float("nan")), (1, 0, 1e200)]
        t, arm, reward = rng.choice(bad)
        try:
            node.observe(GAME, t, arm, reward)
        except Refused:
            pass
        else:
            raise Broken(f"node {v} took {(t, arm, reward)}")
        taken = [sent for sent in host.sent.values() if sent.answer is not None]
        if taken:
            sent = rng.choice(taken)
            self.tell(v, sent, sent.reward + 1.0)

    # --- the schedule -------------------------------------------------------------------------------

    def run(self) -> None:
        edges = [(a, b) for a in range(self.size) for b in self.network.neighbours(a).tolist() if a < b]
        for edge in edges:
            self.connect(*edge)
        for step in range(self.steps):
            self.now += self.rng.choice([0.0, 0.01, 0.2])
            self.step(edges)
            if step % 50 == 0:
                self.check_all()
        self.mend(edges)
        self.check_all()
        self.check_spread()

    def check_all(self) -> None:
        for v in range(self.size):
            if self.hosts[v].node is not None:
                self.check_state(v)

    def step(self, edges: list[tuple[int, int]]) -> None:
        rng = self.rng
        v = rng.randrange(self.size)
        kind = rng.random()
        if self.hosts[v].node is None:
            if kind < 0.3:
                self.start(v)
            return
        if kind < 0.25:
            self.choose(v)
        elif kind < 0.45:
            self.observe(v)
        elif kind < 0.57:
            self.commit(v)
        elif kind < 0.82:
            self.traffic()
        elif kind < 0.86:
            self.node(v).tick(self.clock(v))
            self.drop_closing(v)
        elif kind < 0.89:
            self.connect(*rng.choice(edges))
        else:
            self.fault(v, edges)

    def traffic(self) -> None:
        if not self.wires:
            return
        link = self.rng.choice(list(self.wires))
        sender = self.rng.choice(self.wires[link].ends)
        self.pull(link, sender, self.rng.choice([1, 300, 5000]))
        for _ in range(self.rng.choice([1, 3, 20])):
            if link in self.wires:
                self.deliver(link, sender)

    def fault(self, v: int, edges: list[tuple[int, int]]) -> None:
        rng = self.rng
        kind = rng.choice(FAULTS)
        if kind == "crash":
            self.crash(v)
        elif kind == "lose" and rng.random() < 0.4:
            self.lose_disk(v)
        elif kind == "cut" and self.wires:
            self.cut(rng.choice(list(self.wires)))
        elif kind == "stall" and self.wires:
            each = self.wires[rng.choice(list(self.wires))]
            each.stalled = not each.stalled
        elif kind == "block":
            self.blocked.add(rng.choice(edges))
            for link in [link for link, each in self.wires.items() if each.ends in self.blocked]:
                self.cut(link)
        elif kind == "unblock" and self.blocked:
            self.blocked.pop()
        elif kind == "full":
            self.hosts[v].disk.full = not self.hosts[v].disk.full
        elif kind == "clock":
            self.hosts[v].offset = rng.choice([-100.0, 0.0, 0.0, 50.0])
        elif kind == "time":
            self.now += rng.choice([1.0, 4.0])
        elif kind == "snapshot":
            self.snapshot(v)
        elif kind == "lie" and self.hostile and self.wires:
            link = rng.choice(list(self.wires))
            self.lie(link, rng.choice(self.wires[link].ends))
        elif kind == "nonsense":
            self.nonsense(v)
        elif kind == "abandon" and self.hosts[v].sent:
            self.node(v).abandon(GAME, rng.choice(list(self.hosts[v].sent)))

    def drop_closing(self, v: int) -> None:
        for link, each in list(self.node(v).links.items()):
            if each.closing is not None and link in self.wires:
                self.cut(link)

    def mend(self, edges: list[tuple[int, int]]) -> None:
        """The last fault is over: everything is up, and time passes."""
        self.blocked.clear()
        for v, host in enumerate(self.hosts):
            host.disk.full = False
            if host.node is None:
                self.start(v)
        for second in range(120):
            self.now += 1.0
            if second == 7:
                self.hostile = False
                for each in self.wires.values():
                    each.stalled = each.hostile = False
            for edge in edges:
                self.connect(*edge)
            for v in range(self.size):
                self.node(v).tick(self.clock(v))
                self.commit(v)
            for _ in range(3):
                for link in list(self.wires):
                    ends = self.wires[link].ends
                    for v in ends:
                        self.pull(link, v, 100_000)
                    for v in ends:
                        while link in self.wires and self._flows(link, v):
                            self.deliver(link, v)
            for v in range(self.size):
                self.drop_closing(v)
            if len(self.wires) == len(edges) and self.quiet():
                break

    def _flows(self, link: int, sender: int) -> bool:
        return bool(self.wires[link].ways.get(sender)) and not self.wires[link].stalled

    def quiet(self) -> bool:
        """Everything is on disk, and everybody has it."""
        for v, host in enumerate(self.hosts):
            self.write(v)
            if host.disk.rest:
                return False
        return not self.missing()

    def missing(self) -> list[str]:
        found = []
        for (origin, epoch), items in self.truth.items():
            for v in range(self.size):
                if self.distance[v][origin] > self.gamma or (v == origin and epoch == self.hosts[v].epoch):
                    continue
                stream = self.node(v).games[GAME].streams.get((origin, epoch))
                upto = 0 if stream is None else stream.upto
                kept = self._someone_keeps(origin, epoch, v)
                if upto < min(len(items), kept):
                    found.append(f"node {v} is at {upto} of {(origin, epoch)}, which has {len(items)}")
        return found

    def _someone_keeps(self, origin: int, epoch: int, v: int) -> int:
        """How far a stream still exists within reach: all of it while its origin has its disk."""
        if self.hosts[origin].epoch == epoch:
            return 1 << 60
        best = 0
        for w in self.network.neighbours(v).tolist():
            stream = self.node(w).games[GAME].streams.get((origin, epoch))
            if stream is not None and (stream.hops < self.gamma or v == origin):
                best = max(best, stream.upto)
        return best

    def check_spread(self) -> None:
        """I7: everybody within reach has everything that is still kept."""
        missing = self.missing()
        if missing:
            raise Broken(f"I7: {'; '.join(missing)}")


def run(seed: int, steps: int = 300) -> None:
    """One schedule; what fails names its seed."""
    try:
        World(seed, steps).run()
    except Broken as error:
        raise Broken(f"seed {seed}: {error}") from error
