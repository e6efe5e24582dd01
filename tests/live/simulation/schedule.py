"""One schedule: steps and faults drawn from its seed, then everything is mended and time passes."""

from __future__ import annotations

from live.making import GAME
from live.simulation.applications import Applications
from live.simulation.machines import copied
from live.simulation.parts import Broken
from rumormill.live.core.frames import Key

FAULTS = (
    *(
        "back up",
        "old copy",
        "old copy",
        "damage",
        "crash",
        "crash",
        "lose",
        "cut",
        "cut",
        "stall",
        "stall",
        "block",
        "unblock",
        "full",
        "clock",
        "time",
    ),
    *("snapshot", "snapshot", "lie", *["boast"] * 4, "forge", "forge", "forge", "nonsense", "abandon"),
)
MEMBERS = (
    *[kind for kind in FAULTS if kind not in ("lie", "forge")],
    *("add", "remove", "replace", "rotate", "rotate", "relink", *["reload"] * 12, *["retire"] * 2),
)
CHANGES = (*FAULTS, *["change"] * 3, *["betray"] * 6)


class World(Applications):
    """One schedule."""

    def run(self) -> None:
        edges = sorted(self.newest.edges)
        for edge in edges:
            self.connect(*edge)
        for step in range(self.steps):
            self.now += self.rng.choice([0.0, 0.01, 0.2])
            self.step(edges)
            if step % 50 == 0:
                self.check_all()
        if self.absence:
            self.leave_and_return(edges)
        self.mend(edges)
        self.check_all()
        self.check_spread()
        if self.members:
            self.check_calm()

    def step(self, edges: list[tuple[int, int]]) -> None:
        rng = self.rng
        v = rng.randrange(self.size)
        kind = rng.random()
        if self.hosts[v].away:
            return
        if self.members:
            edges = sorted(self.all_edges)
        if self.hosts[v].node is None:
            if self.members and kind > 0.9:
                self.reload(v)
            if self.changes and kind > 0.9:
                self.change(v, rng.choice([None, 0, 1]))
            if kind < 0.3:
                self.start(v)
            return
        if self.changes and rng.random() < 0.3:
            self.play_side(v)
        if self.changes and rng.random() < 0.03:
            self.change(v, rng.choice([None, 0, 1]))
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

    def fault(self, v: int, edges: list[tuple[int, int]]) -> None:
        rng = self.rng
        kind = rng.choice(MEMBERS if self.members else CHANGES if self.changes else FAULTS)
        if kind == "crash":
            self.crash(v)
        elif kind == "lose" and rng.random() < 0.4:
            self.lose_disk(v)
        elif kind == "back up":
            self.back_up(v)
        elif kind == "old copy":
            self.put_back(v, edges)
        elif kind == "damage" and rng.random() < 0.3:
            self.damage(v)
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
        elif kind == "boast" and self.hostile and self.wires:
            link = rng.choice(list(self.wires))
            self.boast(link, rng.choice(self.wires[link].ends))
        elif kind == "forge" and self.hostile and self.signed and self.wires:
            link = rng.choice(list(self.wires))
            self.forge(link, rng.choice(self.wires[link].ends))
        elif kind == "change":
            self.change(v, rng.choice([None, 0, 1]))
        elif kind == "betray" and self.signed and self.wires:
            link = rng.choice(list(self.wires))
            self.betray(link, rng.choice(self.wires[link].ends))
        elif kind in ("add", "remove", "replace", "rotate", "relink"):
            self.edit(kind)
        elif kind == "reload":
            self.reload(v, with_keys=rng.random() < 0.8)
        elif kind == "retire" and v not in self.newest.members:
            self.crash(v)
            self.hosts[v].away = True
        elif kind == "nonsense":
            self.nonsense(v)
        elif kind == "abandon" and self.hosts[v].sent:
            self.node(v).abandon(GAME, rng.choice(list(self.hosts[v].sent)))

    def put_back(self, v: int, edges: list[tuple[int, int]]) -> None:
        """An old copy of the disk in its place: the node takes rewards, then meets its neighbours."""
        host, copy, key = self.hosts[v], self.hosts[v].backup, (v, self.hosts[v].epoch)
        if copy is None or copy.epoch(GAME) != key[1] or self._epochs(v) >= self.limits.epochs - 1:
            return
        self.crash(v)
        old_classes = host.backup_class_items < host.class_items
        had, newest = host.backup_items, host.backup_items == len(self.truth.get(key, ()))
        # Only who shows more of its stream can tell a node that it is old.
        if self.changes or not (newest or any(self._shows_more(w, key, had) for w in self._met(v, edges))):
            return
        host.disk, host.sent, host.unsure = copied(copy), {}, {GAME: []}
        host.disk.full = False
        self.start(v)
        self.tokens = {token for token in self.tokens if token[:2] != key}
        for _ in range(self.rng.randrange(6)):
            self.choose(v)
            self.observe(v)
            self.commit(v)
        for _ in range(60):
            self.meet(v, edges)
            if self.node(v).games[GAME].held is None:
                break
        renewed = host.epoch != key[1]
        if renewed == newest and not (renewed and old_classes):
            raise Broken(f"I13: node {v} has epoch {host.epoch} after an old copy, newest: {newest}")

    def _met(self, v: int, edges: list[tuple[int, int]]) -> list[int]:
        """The neighbours that a start would be linked to."""
        found = []
        for a, b in edges:
            w = a if b == v else b
            if v not in (a, b) or (a, b) in self.blocked or self.hosts[w].node is None:
                continue
            serials = [self.serial(each, self.hosts[each].key) for each in (v, w)]
            config = self.config(v)
            if (
                not self.node(w).refusal(v, serials[0])
                and w in config.neighbours
                and serials[1] not in config.revoked
            ):
                found.append(w)
        return found

    def _shows_more(self, w: int, key: Key, had: int) -> bool:
        stream = self.node(w).games[GAME].streams.get(key)
        return stream is not None and stream.upto > had and stream.floor < stream.upto

    def meet(self, v: int, edges: list[tuple[int, int]]) -> None:
        """Half a second on the links of one node, which do nothing strange."""
        self.now += 0.5
        for edge in edges:
            if v in edge:
                self.connect(*edge)
        for link in [link for link, each in self.wires.items() if v in each.ends]:
            self.wires[link].stalled = self.wires[link].hostile = False
            for sender in self.wires[link].ends:
                self.node(sender).tick(self.clock(sender))
                self.pull(link, sender, 100_000)
            for sender in self.wires[link].ends:
                while link in self.wires and self.wires[link].ways[sender]:
                    self.deliver(link, sender)
        self.commit(v)
        self.drop_closing(v)

    def leave_and_return(self, edges: list[tuple[int, int]]) -> None:
        """One node is cut off while the others go on; then it comes back, over links that stall."""
        away = self.rng.choice([v for v in range(self.size) if len(self.network.neighbours(v)) > 1] or [0])
        cables = [edge for edge in edges if away in edge]
        self.blocked = set(cables)
        for link in [link for link, each in self.wires.items() if each.ends in self.blocked]:
            self.cut(link)
        others = [edge for edge in edges if away not in edge]
        for _ in range(self.steps // 3):
            self.now += 0.1
            v = self.rng.choice([v for v in range(self.size) if v != away])
            if self.hosts[v].node is None:
                self.start(v)
            self.choose(v)
            self.observe(v)
            self.commit(v)
            for edge in others:
                self.connect(*edge)
            self.traffic()
        self.blocked.clear()
        if self.hosts[away].node is None:
            self.start(away)
        for _ in range(self.steps // 3):
            self.now += self.rng.choice([0.0, 0.2, 0.5])
            for edge in cables:
                self.connect(*edge)
            its = [link for link, each in self.wires.items() if away in each.ends]
            if its and self.rng.random() < 0.3:
                each = self.wires[self.rng.choice(its)]
                each.stalled = not each.stalled
            for link in its:
                for sender in self.wires[link].ends:
                    self.pull(link, sender, 1)
                    self.deliver(link, sender)
            self.node(away).tick(self.clock(away))
            self.drop_closing(away)
            self.write(away)

    def mend(self, edges: list[tuple[int, int]]) -> None:
        """The last fault is over: everything is up, and time passes."""
        self.blocked.clear()
        if self.members:
            edges = sorted(self.newest.edges)
            self.finish_roll_out()
        for v, host in enumerate(self.hosts):
            if host.away:
                continue
            host.disk.full = False
            if self.changes and host.side != 0:
                self.change(v, 0)
            if host.node is None:
                self.start(v)
        for second in range(120):
            if second == 7:
                self.hostile = False
                for each in self.wires.values():
                    each.stalled = each.hostile = False
            self.pass_second(edges)
            if len(self.wires) == len(edges) and self.quiet():
                break

    def pass_second(self, edges: list[tuple[int, int]]) -> None:
        """All nodes tick, all disks catch up, all frames arrive."""
        self.now += 1.0
        running = [v for v in range(self.size) if not self.hosts[v].away]
        for edge in edges:
            self.connect(*edge)
        for v in running:
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
        for v in running:
            self.drop_closing(v)

    def finish_roll_out(self) -> None:
        """Removed nodes end; all others have the newest mesh file and keys."""
        for v, host in enumerate(self.hosts):
            if v in self.newest.members:
                self.reload(v)
            elif not host.away:
                if host.node is not None:
                    self.crash(v)
                host.away = True

    def check_calm(self) -> None:
        """A mesh whose nodes all have the same file counts no violations, whoever was removed before."""
        for each in self.wires.values():
            each.stalled = each.hostile = False
        before = self.violations()
        for _ in range(8):
            self.pass_second(sorted(self.newest.edges))
        if self.violations() != before:
            raise Broken(f"I12: nodes with one mesh file count {self.violations()} after {before}")

    def quiet(self) -> bool:
        """Everything is on disk, and everybody has it."""
        for v, host in enumerate(self.hosts):
            self.write(v)
            if host.disk.rest:
                return False
        return not self.missing() and not (self.changes and self.side_missing())


def run(seed: int, steps: int = 300, **kind: bool) -> None:
    """One schedule of a kind (absence, changes, members); what fails names its seed."""
    try:
        World(seed, steps, **kind).run()
    except Broken as error:
        raise Broken(f"seed {seed}: {error}") from error
