"""The invariants I1 to I11, from what nodes write down, acknowledge and hold in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

from live.making import GAME
from live.simulation.mesh import SIDE, Mesh
from live.simulation.parts import N_ARMS, Broken, Sent
from rumormill.live.core.decisions import check_of
from rumormill.live.core.frames import Key
from rumormill.live.core.game import LiveGame
from rumormill.live.core.node import Node
from rumormill.live.core.records import Decision, Own, Peer, Record, Renewed, Skipped, weight_of
from rumormill.live.core.signatures import FORGED
from rumormill.live.core.streams import UNKNOWN, Stream
from rumormill.live.io.folder import pack, unpack

HARMLESS = {"hole"}  # a repeated or overtaken frame
# While some have the new mesh file and some the old one: an unknown member, a key that is new.
IN_A_ROLL_OUT = {"origin", "skip", FORGED}
MADE_UP = 40  # an epoch that no node has


class Invariants(Mesh):
    """Every check raises Broken."""

    # --- a restart ----------------------------------------------------------------------------------

    def _check_restart(self, v: int, node: Node) -> None:
        """I10: snapshot and records, or all records from the first: the same state."""
        again = self.fresh(v, self.hosts[v].disk.first_epoch)
        again.restart(None, self.hosts[v].disk.log)
        if again.games[GAME].differing or node.games[GAME].differing:
            raise Broken(f"I10: node {v} makes other decisions when its journal is replayed")
        self._same(v, node, again, "a snapshot")
        # What an earlier revision learned is in its snapshot, not in its records.
        carried = SIDE in node.games and node.games[SIDE].is_carried
        if self._side(node) != self._side(again) and not carried:
            raise Broken(f"I10: node {v}: side is {self._side(node)}, by its journal {self._side(again)}")
        if self._classes(node) != self._classes(again):
            raise Broken(f"I10: node {v}: {self._classes(node)}, by its journal {self._classes(again)}")
        for sent in self.hosts[v].sent.values():
            if sent.acked and not self._remembers(node.games[GAME], sent):
                raise Broken(f"I1: node {v} lost the acknowledged {sent.token}")

    def _classes(self, node: Node) -> Any:
        """All request classes, in their order of use, and what is left of those that were forgotten."""
        kept = [
            [name, game.numbers, game.adapter.samples, self._reached(game)]
            for name, game in node.games.items()
            if "/" in name
        ]
        return kept, {name: game.numbers for name, game in node._removed.items() if "/" in name}

    @staticmethod
    def _reached(game: LiveGame) -> dict[Key, int]:
        """How far each stream is; one without items leaves no record."""
        return {key: stream.upto for key, stream in game.streams.items() if stream.upto}

    def _side(self, node: Node) -> Any:
        """The second game, or what is left of it."""
        game = node.games.get(SIDE)
        if game is None:
            return node._removed[SIDE].numbers if SIDE in node._removed else None
        streams = self._reached(game)
        # Records of another revision are not replayed: what it learned is in its snapshot, or in a record.
        samples = None if game._is_other_game else game.adapter.samples
        counts = samples and [each.count for each in game.adapter.agent.samples._arms]
        return [game.numbers, game.decisions.first_t, samples, counts, streams]

    def _remembers(self, game: LiveGame, sent: Sent) -> bool:
        if game.decisions.too_old(sent.token.t):
            return True
        known = game.decisions.known(sent.token.t)
        return known is not None and known.check == check_of(sent.token.arm, sent.reward)

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
            copied = self.fresh(v, game.own.key[1]).games[GAME]
            copied.restore(unpack(pack(game.state())))
            t = max(each.decisions.next_t for each in games)
            arms.append(copied.adapter.choose(t, copied.decisions.pending, False))
        if arms[0] != arms[1]:
            raise Broken(f"I10: node {v} from {how} chooses {arms[0]}, not {arms[1]}")

    def _plain(self, node: Node) -> dict[str, Any]:
        game = node.games[GAME]
        state = unpack(pack(game.state()))
        decisions = state["choices"]
        # Which points an origin signed depends on when its disk was done; the digest does not.
        streams = {
            (row[0], row[1]): [*row[2:5], *[signatures[0] for signatures in row[5:6] if signatures]]
            for row in state["streams"]
        }
        if state["heads"]:  # whether it is on disk yet does not matter here
            streams[game.own.key][2] = state["heads"][-1][1:]
        return {
            "player": state["player"],
            "open": decisions["open"],
            "pending": list(game.decisions.pending),
            "known": [
                (t, known.check, known.seq)
                for t in range(1, game.decisions.next_t)
                if not game.decisions.too_old(t) and (known := game.decisions.known(t)) is not None
            ]
            if game.decisions.next_t < 5000
            else [],
            "streams": {key: row for key, row in streams.items() if key == game.own.key or row[1] or row[0]},
        }

    # --- what nodes write down ----------------------------------------------------------------------

    def write(self, v: int) -> None:
        """Records go to the disk, which may take its time."""
        host = self.hosts[v]
        if host.node is None:
            return
        for record in host.node.take_journal():
            self._check_record(v, record)
            host.disk.rest.append(record)
            host.written += 1
        host.epoch = host.node.config.epoch

    def _check_record(self, v: int, record: Record) -> None:
        if "/" in record.game:  # a request class
            return
        if record.game == SIDE:
            self._check_side(v, record)
            return
        if isinstance(record, Peer):
            key = (record.origin, record.epoch)
            part = self.truth.get(key, [])[record.first - 1 : record.first - 1 + len(record.items)]
            if [tuple(item) for item in record.items] != part:
                raise Broken(f"I4, I5: node {v} accepted {record}, its origin has {part} on disk")
            if key[0] not in self.file(v).members:
                raise Broken(f"I12: node {v} takes items of node {key[0]}, which its mesh file has not")
            if key[0] != v and self.distance[v][key[0]] > self.gamma:
                raise Broken(f"I8: node {v} has a stream of {key[0]}, which is too far")
        if isinstance(record, Skipped):
            self._check_skip(v, record)
        if isinstance(record, Decision):
            name = (v, self.hosts[v].epoch, record.t)
            if name in self.tokens:
                raise Broken(f"I6: decision {name} was made twice")
            self.tokens.add(name)

    def _check_side(self, v: int, record: Record) -> None:
        if isinstance(record, Peer):
            truth = self.side_truth.get((record.origin, record.epoch), [])
            part = truth[record.first - 1 : record.first - 1 + len(record.items)]
            if [tuple(item) for item in record.items] != part:
                raise Broken(f"I4, I5: node {v} accepted {record}, its origin has {part} on disk")
        if isinstance(record, Decision):
            name = (v, self.hosts[v].epoch, record.t)
            if name in self.side_tokens:
                raise Broken(f"I6: decision {name} of the second game was made twice")
            self.side_tokens.add(name)

    def _check_skip(self, v: int, record: Skipped) -> None:
        """I7: nothing is given up that a linked neighbour can supply, as far as it has said so.

        What a neighbour got since it last spoke, or learnt of its distance, nobody can know here: items that
        are on the way may be given up. What counts is therefore what came over the link, written down by the
        network itself and not by the node, and what the neighbour then really keeps.
        """
        key, had = (record.origin, record.epoch), self._held_before(v, record)
        if record.epoch == MADE_UP and record.origin in self.lied:
            return  # a lie about its own stream, and signed
        if record.upto > len(self.truth.get(key, ())):
            raise Broken(f"I7: node {v} gave up {key} to {record.upto}, which never were")
        for link, each in self.wires.items():
            if v not in each.ends:
                continue
            (w,) = set(each.ends) - {v}
            other = self.hosts[w].node
            told, hops = self.said.get((link, v), {}).get(key, (0, self.gamma))
            stream = None if other is None else other.games[GAME].streams.get(key)
            told = 0 if stream is None else min(told, stream.upto)  # more is a lie
            if (
                stream is None
                or told <= had
                or hops == self.gamma
                or key[0] not in self.file(w).members
                or not (stream.hops < self.gamma or key[0] == v)
            ):
                continue
            if stream.floor < min(told, record.upto):
                kept = stream.floor + 1
                raise Broken(f"I7: node {v} gave up {key} to {record.upto}, of which {w} keeps {kept}")

    def _held_before(self, v: int, record: Skipped) -> int:
        held, epoch = 0, self.hosts[v].disk.first_epoch
        for each in [*self.hosts[v].disk.log, *self.hosts[v].disk.rest]:
            if each.game != GAME:
                continue
            if isinstance(each, Renewed):
                held = each.upto if (v, epoch) == (record.origin, record.epoch) else held
                epoch = each.epoch
            if isinstance(each, Peer) and (each.origin, each.epoch) == (record.origin, record.epoch):
                held = each.first + len(each.items) - 1
            if isinstance(each, Skipped) and (each.origin, each.epoch) == (record.origin, record.epoch):
                held = each.upto
        return held

    # --- what nodes hold ----------------------------------------------------------------------------

    def check_state(self, v: int) -> None:
        """I2, I3, I8, I9 from the state of a node and all it ever wrote."""
        node = self.node(v)
        game = node.games[GAME]
        self.write(v)
        log = [each for each in (*self.hosts[v].disk.log, *self.hosts[v].disk.rest) if each.game == GAME]
        expected = [0] * N_ARMS
        upto: Counter[Key] = Counter()
        epoch = self.hosts[v].disk.first_epoch
        clique = getattr(game.adapter.agent, "clique", None)
        for record in log:
            if isinstance(record, Own):
                expected[record.arm] += weight_of(record)
            elif isinstance(record, Peer):
                key = (record.origin, record.epoch)
                if record.first != upto[key] + 1:
                    raise Broken(f"I3: node {v} took {record} after item {upto[key]}")
                upto[key] += len(record.items)
                for _, arm, _ in record.items:
                    expected[arm] += clique is None or record.origin in clique or record.origin == v
            elif isinstance(record, Skipped):
                upto[(record.origin, record.epoch)] = record.upto
            elif isinstance(record, Renewed):
                upto[(v, epoch)], epoch = record.upto, record.epoch
        counts = [samples.count for samples in game.adapter.agent.samples._arms]
        if counts != expected:
            raise Broken(f"I2: the agent of node {v} has {counts} samples, its journal {expected}")
        for key, stream in game.streams.items():
            if stream is not game.own and stream.upto != upto[key]:
                raise Broken(f"I3: node {v} is at {stream.upto} of {key}, its journal at {upto[key]}")
            if stream.hops != UNKNOWN and not self.distance[v][key[0]] <= stream.hops <= self.gamma:
                raise Broken(f"I8: node {v} has {key} by {stream.hops} hops")
            if stream is game.own and game.durable == stream.upto:
                least = min(stream.upto, self.hosts[v].retain)
                if stream.upto - stream.floor < least:
                    raise Broken(f"I7: node {v} can tell {stream.upto - stream.floor} items, not {least}")
            retain = self.hosts[v].retain + self.limits.batch * self.signed
            if stream.chain is not None and len(stream.chain.points) > 3 + 2 * retain:
                raise Broken(f"I9: node {v} keeps {len(stream.chain.points)} points of {key}")
            kept = stream.retained
            if kept.last - kept.floor > retain or len(kept._ring) > max(16, min(retain, 2 * kept._segment)):
                raise Broken("I9: more items are kept than allowed")
            if len(kept._segments) > 2 + retain // kept._segment:
                raise Broken("I9: more segments are kept than needed")
            self._check_items(v, stream)
        self._check_memory(v, game, node)

    def _check_items(self, v: int, stream: Stream) -> None:
        """What is retained is what the origin told, in memory and on disk."""
        kept, told = stream.retained, self.truth.get(stream.key, [])
        if stream.key != (v, self.hosts[v].epoch) and kept.last > kept.floor and kept.last <= len(told):
            items = [tuple(item) for item in kept.between(kept.floor + 1, kept.last - kept.floor)]
            if items != told[kept.floor : kept.last]:
                raise Broken(f"I4: node {v} retains other items of {stream.key} than there are")

    def _check_memory(self, v: int, game: LiveGame, node: Node) -> None:
        pending = [0] * N_ARMS
        for each in game.decisions.open.values():
            pending[each.arm] += 1
        if pending != list(game.decisions.pending):
            raise Broken(f"node {v} counts {game.decisions.pending} pending pulls of {pending}")
        most = self.size * self.limits.epochs
        if len(game.decisions.open) > self.limits.max_open or len(game.streams) > most:
            raise Broken(f"I9: node {v} holds too much")
        for link in node.links.values():
            for shared in link.games.values():
                sizes = [
                    len(x) for x in (shared.has, shared.hops, shared.claims, shared.floors, shared.unsent)
                ]
                if max(sizes) > 2 * most:
                    raise Broken(f"I9: node {v} remembers too much of node {link.peer}")
        self._check_links(v, node)
        found = set(node.violations) - ({"fingerprint"} if self.changes else set())
        found -= IN_A_ROLL_OUT if self.members else set()
        if not self.lied and found - HARMLESS:
            raise Broken(f"node {v} counts {dict(node.violations)}, and nobody lied")
        if not self.lied and not self.was_hostile and found - (HARMLESS if self.members else set()):
            raise Broken(f"node {v} counts {dict(node.violations)} on clean links")

    def _check_links(self, v: int, node: Node) -> None:
        """I12: no link that the node's own mesh file forbids."""
        file = self.file(v)
        for number, link in node.links.items():
            serial = self.shown[number, link.peer]
            if link.closing is None and (link.peer not in file.linked(v) or serial in file.revoked):
                raise Broken(f"I12: node {v} keeps a link to node {link.peer} with certificate {serial}")

    def violations(self) -> dict[int, dict[str, int]]:
        """What nodes count that no correct peer causes."""
        return {
            v: {kind: n for kind, n in host.node.violations.items() if kind not in HARMLESS}
            for v, host in enumerate(self.hosts)
            if host.node is not None
        }

    def check_all(self) -> None:
        for v in range(self.size):
            if self.hosts[v].node is not None:
                self.check_state(v)

    # --- the end ------------------------------------------------------------------------------------

    def missing(self) -> list[str]:
        found, file = [], self.newest
        distance = self.distances(file.edges)
        for (origin, epoch), items in self.truth.items():
            for v in file.members if origin in file.members else ():
                if distance[v][origin] > self.gamma or (v == origin and epoch == self.hosts[v].epoch):
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
        for w in self.newest.linked(v):
            stream = self.node(w).games[GAME].streams.get((origin, epoch))
            if stream is None or not (stream.hops < self.gamma or v == origin):
                continue
            if self.signed or stream.floor < stream.upto:  # else it can show nothing that follows a skip
                best = max(best, stream.upto)
        return best

    def check_spread(self) -> None:
        """I7: everybody within reach has everything that is still kept."""
        missing = self.missing() + (self.side_missing() if self.changes else [])
        if missing:
            raise Broken(f"I7: {'; '.join(missing)}")

    def side_missing(self) -> list[str]:
        """Of the second game, everybody within reach is as far as the origin, by items or by skips.

        Without signatures a skip goes beyond the origin's neighbours only with items that follow it: not
        while the neighbours have none to show, because they took the last one in an earlier revision.
        """
        return [
            f"node {v} is at {known} of the second game of node {w}, which is at {own.upto}"
            for v in range(self.size)
            for w in range(self.size)
            if v != w and self.distance[v][w] <= self.gamma
            for own in [self.node(w).games[SIDE].own]
            for known in [self._upto(v, own.key)]
            if known != own.upto
            and (self.signed or self.distance[v][w] == 1 or self._can_be_shown(v, own.key))
        ]

    def _can_be_shown(self, v: int, key: Key) -> bool:
        """Whether a neighbour retains items of a stream of the second game that it may send on."""
        streams = [self.node(w).games[SIDE].streams.get(key) for w in self.newest.linked(v)]
        return any(each and each.hops < self.gamma and each.floor < each.upto for each in streams)

    def _upto(self, v: int, key: Key) -> int:
        stream = self.node(v).games[SIDE].streams.get(key)
        return 0 if stream is None else stream.upto
