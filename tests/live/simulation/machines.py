"""Machines: a node that starts, crashes, loses its disk; a disk that takes its time."""

from __future__ import annotations

from dataclasses import replace

from live.making import GAME
from live.simulation.invariants import Invariants
from live.simulation.mesh import SIDE
from live.simulation.parts import Broken, Disk, File
from rumormill.errors import DataError
from rumormill.live.core.records import (
    Hold,
    Mark,
    Own,
    Record,
    Renewed,
    last_items,
    stored_rows,
    verified,
    weight_of,
)
from rumormill.live.io.folder import pack, unpack
from rumormill.live.io.items import named_segments


class Machines(Invariants):
    """A crash keeps the safe part of a disk and any prefix of the rest."""

    def __init__(self, seed: int, steps: int = 300, **kind: bool) -> None:
        super().__init__(seed, steps, **kind)
        for v in range(self.size):
            if not self.hosts[v].away:
                self.start(v)

    def start(self, v: int) -> None:
        host, disk = self.hosts[v], self.hosts[v].disk
        node = self.fresh(v, disk.first_epoch if disk.state is None else disk.state_epoch, disk)
        node.restart(None if disk.state is None else unpack(disk.state), disk.safe)
        host.epoch = node.config.epoch
        self._check_restart(v, node)
        node.tick(self.clock(v))
        node.start()
        host.node, host.written, host.safe = node, 0, 0

    def change(self, v: int, side: int | None) -> None:
        """A new mesh file on one machine: the second game comes, goes, or has other arms."""
        self.hosts[v].side = side
        if self.hosts[v].node is not None:
            self.node(v).reconfigure(self.config(v))
            self.write(v)

    def edit(self, kind: str) -> None:
        """A new mesh file, as `rumormill mesh` writes it; machines read it later."""
        rng, file = self.rng, self.newest
        members, edges, keys, revoked = set(file.members), set(file.edges), list(file.keys), set(file.revoked)
        v = rng.choice(sorted(members))
        spare = next((w for w, host in enumerate(self.hosts) if host.away and w not in self.used), None)
        links = sorted(file.linked(v)) or [rng.choice(sorted(members - {v}))]
        if kind == "rotate":
            revoked.add(self.serial(v, keys[v]))
            keys[v] += 1
        if kind == "relink":
            a, b = sorted(rng.sample(sorted(members), 2))
            edges ^= {(a, b)}
        if (kind == "remove" and len(members) < 3) or (kind in ("add", "replace") and spare is None):
            return
        if kind in ("remove", "replace"):
            revoked.add(self.serial(v, keys[v]))
            members.discard(v)
            edges = {edge for edge in edges if v not in edge}
        if kind in ("add", "replace"):
            assert spare is not None
            self.used.add(spare)
            links = links if kind == "replace" else rng.sample(sorted(members), min(2, len(members)))
            edges |= {(w, spare) for w in links}  # a spare has a larger id than all before it
            members.add(spare)
        self.files.append(File(frozenset(members), frozenset(edges), tuple(keys), frozenset(revoked)))
        self.all_edges |= edges
        self.distance = self.distances(self.all_edges)
        if kind in ("add", "replace"):
            assert spare is not None
            self.hosts[spare].away, self.hosts[spare].file = False, len(self.files) - 1
            self.start(spare)

    def reload(self, v: int, with_keys: bool = True) -> None:
        """SIGHUP: the newest file and perhaps the newest keys; not taken if the node has no place in it."""
        host, file = self.hosts[v], self.newest
        if v not in file.members:
            return
        key = file.keys[v] if with_keys else host.key
        if self.serial(v, key) in file.revoked or (host.file, host.key) == (len(self.files) - 1, key):
            return
        self.write(v)
        host.file, host.key = len(self.files) - 1, key
        if host.node is not None:
            host.node.reconfigure(self.config(v))
            self.write(v)
            for link, each in list(host.node.links.items()):  # as the process does at once
                if each.closing is not None:
                    self.cut(link)

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
        named = named_segments(None if disk.state is None else unpack(disk.state))
        disk.segments = {number: disk.segments[number] for number in named}
        for link in [link for link, each in self.wires.items() if v in each.ends]:
            self.cut(link)
        host.node = None
        for sent in host.sent.values():
            sent.answer = sent.answer if sent.acked else None  # the application asks again
        if whole:
            again = self.fresh(v, disk.first_epoch)
            again.restart(None, disk.log)
            # Numbers that were reserved are all used up by a restart.
            node.games[GAME].decisions.next_t = again.games[GAME].decisions.next_t
            self._same(v, node, again, "its journal")

    def cut(self, link: int) -> None:
        for v in self.wires.pop(link).ends:
            self.said.pop((link, v), None)
            self.shown.pop((link, v), None)
            if self.hosts[v].node is not None:
                self.node(v).link_down(link)

    def lose_disk(self, v: int) -> None:
        if self._epochs(v) >= self.limits.epochs - 1:
            return
        self.crash(v)
        host = self.hosts[v]
        host.disk = Disk(first_epoch=host.epoch + 1)
        host.epoch, host.sent, host.unsure = host.epoch + 1, {}, {}

    def _epochs(self, v: int) -> int:
        return sum(origin == v for origin, _ in self.truth)

    def back_up(self, v: int) -> None:
        host, disk = self.hosts[v], self.hosts[v].disk
        held = [each.held for each in disk.log if isinstance(each, Hold) and each.game == GAME]
        if GAME in host.unsure or not disk.log or (held and held[-1]):
            return
        host.backup_items = len(self.truth.get((v, disk.epoch(GAME)), ()))
        host.backup_class_items = host.class_items
        self.hosts[v].backup = copied(disk)

    def damage(self, v: int) -> None:
        """The disk loses or changes a record, which the next start finds out; then the node joins anew."""
        disk = self.hosts[v].disk
        rows = stored_rows(0, b"", 0.0, disk.safe)
        if len(rows) < 2 or self._epochs(v) >= self.limits.epochs - 1:
            return
        mark = Mark(rows[-1].number, rows[-1].chain, last_items(disk.safe))
        if verified(0, b"", {}, rows, mark) != disk.safe:
            raise Broken(f"a sound disk of node {v} is not read as it was written")
        at = self.rng.randrange(len(rows))
        changed = bytearray(rows[at].data)
        changed[self.rng.randrange(len(changed))] ^= 1 << self.rng.randrange(8)
        kind = self.rng.choice(["tail", "hole", "flip", "older"])
        if kind == "tail":
            del rows[at:]
        elif kind == "hole":
            del rows[at]
        elif kind == "flip":
            rows[at] = rows[at]._replace(data=bytes(changed))
        else:  # the bytes of another record
            rows[at] = rows[at]._replace(data=rows[at - 1].data, chain=rows[at - 1].chain)
        try:
            verified(0, b"", {}, rows, mark)
        except DataError:
            self.lose_disk(v)
        else:
            raise Broken(f"{kind} {at}: the damaged disk of node {v} is served")

    def snapshot(self, v: int) -> None:
        host = self.hosts[v]
        if host.node is not None and host.disk.waiting is None:
            self.write(v)
            state, disk = host.node.snapshot(), host.disk
            unnamed = set(disk.segments) - set(named_segments(state))
            disk.waiting = (len(disk.rest), pack(state), host.node.config.epoch, unnamed)

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
        before, state, epoch, unnamed = disk.waiting
        if before > count:
            disk.waiting = (before - count, state, epoch, unnamed)
            return
        for number in unnamed:
            disk.segments.pop(number, None)
        # It becomes current: what is before it is deleted in the same transaction.
        disk.state, disk.state_epoch, disk.waiting = state, epoch, None
        disk.safe = moved[before:]

    def _note(self, v: int, moved: list[Record]) -> None:
        """What an origin has on disk is the truth."""
        host, disk = self.hosts[v], self.hosts[v].disk
        for record in moved:
            if "/" in record.game:  # a request class
                host.class_items += isinstance(record, Own)
                continue
            truth = self.side_truth if record.game == SIDE else self.truth
            key, unsure = (v, disk.epoch(record.game)), host.unsure.get(record.game)
            told = truth.setdefault(key, [])
            if isinstance(record, Own) and record.seq:
                items = [(record.t, record.arm, record.reward)] * weight_of(record)
                if unsure is not None:
                    unsure += items
                    continue
                if record.seq != len(told) + len(items):
                    raise Broken(f"I3: node {v} numbers its items {record.seq} after {len(told)}")
                told += items
            if isinstance(record, Hold) and not record.held:
                told += host.unsure.pop(record.game, [])
            if isinstance(record, Renewed):
                held = told[record.upto :] if unsure is None else host.unsure.pop(record.game)
                if unsure is None:
                    del told[record.upto :]
                disk.epochs[record.game] = record.epoch
                truth[(v, record.epoch)] = held[-(host.retain + self.limits.batch * self.signed) :]


def copied(disk: Disk) -> Disk:
    epochs = dict(disk.epochs)
    named = named_segments(None if disk.state is None else unpack(disk.state))
    segments = {number: disk.segments[number] for number in named}
    safe, log = [*disk.safe], [*disk.log]
    return replace(disk, epochs=epochs, segments=segments, safe=safe, log=log, rest=[], waiting=None)
