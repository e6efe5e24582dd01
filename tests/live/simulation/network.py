"""The network: connections that break, stall, repeat and reorder, and peers that lie."""

from __future__ import annotations

from collections import deque

from live.making import GAME, fake_signer
from live.simulation.invariants import MADE_UP
from live.simulation.machines import Machines
from live.simulation.parts import Broken, Wire
from rumormill.live.core import frames as wire
from rumormill.live.core.frames import HEAD, ProtocolError
from rumormill.live.core.signatures import BEGIN, chained


class Network(Machines):
    """Frames on the way."""

    def connect(self, a: int, b: int) -> None:
        up = self.hosts[a].node is not None and self.hosts[b].node is not None
        if not up or (a, b) in self.blocked or any(each.ends == (a, b) for each in self.wires.values()):
            return
        serials = {v: self.serial(v, self.hosts[v].key) for v in (a, b)}
        if self.members and any(self.node(v).refusal(w, serials[w]) for v, w in ((a, b), (b, a))):
            return
        link = self.next_link
        self.next_link += 1
        self.wires[link] = Wire((a, b), {a: deque(), b: deque()}, self.hostile and self.rng.random() < 0.6)
        self.shown.update({(link, v): serial for v, serial in serials.items()})
        self.node(a).link_up(link, b)
        self.node(b).link_up(link, a)

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
            self.write(receiver)  # what it skips is checked by what it was told so far
            self._note_said(link, receiver, frame[HEAD.size :])
        except ProtocolError as error:
            if "second hello" not in str(error) and sender not in self.lied:
                raise Broken(f"node {receiver} calls node {sender} hostile: {error}") from None
            self.cut(link)

    def _note_said(self, link: int, hearer: int, body: bytes) -> None:
        """What the hearer now knows that the other end can supply; what no honest node says is left out."""
        said = self.said.setdefault((link, hearer), {})
        match wire.decode(body):
            case wire.Have(game=game, streams=rows, full=full) if game == GAME:
                if full:
                    said.clear()
                for origin, epoch, upto, hops in rows:
                    if origin < self.size and upto >= 0 and -1 <= hops <= self.gamma:
                        said[(origin, epoch)] = (upto, hops)
            case wire.Obs(game=game, origin=origin, epoch=epoch, hops=hops, first=first, items=items):
                honest = game == GAME and origin < self.size and 1 <= hops <= self.gamma and first > 0
                if honest and len(items) <= self.limits.batch:
                    upto, before = said.get((origin, epoch), (0, hops - 1))
                    nearest = hops - 1 if before < 0 else min(before, hops - 1)
                    said[(origin, epoch)] = (max(upto, first + len(items) - 1), nearest)

    def _flows(self, link: int, sender: int) -> bool:
        return bool(self.wires[link].ways.get(sender)) and not self.wires[link].stalled

    def traffic(self) -> None:
        if not self.wires:
            return
        link = self.rng.choice(list(self.wires))
        sender = self.rng.choice(self.wires[link].ends)
        self.pull(link, sender, self.rng.choice([1, 300, 5000]))
        for _ in range(self.rng.choice([1, 3, 20])):
            if link in self.wires:
                self.deliver(link, sender)

    def drop_closing(self, v: int) -> None:
        for link, each in list(self.node(v).links.items()):
            if each.closing is not None and link in self.wires:
                self.cut(link)

    def forge(self, link: int, sender: int) -> None:
        """What a member that passes on can make up, with its own signature, or with one of other words.

        It knows exactly how far the receiver is.
        """
        (receiver,) = set(self.wires[link].ends) - {sender}
        others = [v for v in range(self.size) if v not in (sender, receiver)]
        if not others:
            return
        self.lied.add(sender)
        third = self.rng.choice(others)
        epoch, item = self.hosts[third].epoch, (1, 0, 77.0)
        key = (third, epoch)
        stream = self.node(receiver).games[GAME].streams.get(key)
        known, digest, signature = 0, BEGIN, b"no seal"
        if stream is not None and stream.chain is not None:
            known, digest = stream.upto, stream.chain.digest
            signature = stream.chain.points[-1].signature if stream.chain.points else signature
        own = fake_signer(sender).sign_point(GAME, key, known + 1, chained(digest, [item]), None)
        head, hops = wire.Head(1 << 30, 0, ()), self.gamma
        made: list[wire.Frame] = [
            wire.Obs(GAME, third, epoch, hops, known + 1, [item]),
            wire.Obs(GAME, third, epoch, hops, known + 1, [item], None, signature),
            wire.Obs(GAME, third, epoch, hops, known + 1, [item], None, own.signature),
            wire.Obs(GAME, third, epoch, hops, known + 1, [item], None, own.signature),
            wire.Obs(GAME, third, epoch, hops, max(known, 1), [item], head, signature),
            wire.Obs(GAME, third, epoch + 50, hops, 1, [item], None, own.signature),
            wire.Skip(GAME, third, epoch, known + 1000, bytes(32), None, signature),
            wire.Skip(GAME, third, epoch, known + 1, *own[1:]),
        ]
        self.wires[link].ways[sender].append(wire.encode(self.rng.choice(made)))

    def betray(self, link: int, sender: int) -> None:
        """A member signs a Skip in a stream of its own that is not; then a Have, and items not signed."""
        self.lied.add(sender)
        key = (sender, MADE_UP)
        point = fake_signer(sender).sign_point(GAME, key, self.rng.randint(1, 5), BEGIN, None)
        node = self.node(sender)
        rows = [node._exchange._row(node.games[GAME], each) for each in node.games[GAME].streams.values()]
        made: list[wire.Frame] = [
            wire.Skip(GAME, *key, point.upto, point.digest, None, point.signature),
            wire.Have(GAME, rows, full=True),
            wire.Obs(GAME, *key, 1, 1, [(1, 0, 0.5)], None, b"no seal"),
        ]
        for frame in made if self.rng.random() < 0.5 else self.rng.choices(made, k=3):
            self.wires[link].ways[sender].append(wire.encode(frame))

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

    def boast(self, link: int, sender: int) -> None:
        """A member claims much of others' streams that it no longer keeps, and shows nothing of it."""
        if self.signed:
            return
        (receiver,) = set(self.wires[link].ends) - {sender}
        self.lied.add(sender)
        for third in set(range(self.size)) - {sender}:
            key, upto = (third, self.hosts[third].epoch), self.rng.choice([self.rng.randint(1, 60), 1 << 40])
            away = self.distance[receiver][third]
            hops = away - 1 if 1 <= away <= self.gamma else -1
            for frame in (wire.Have(GAME, [(*key, upto, hops)], full=False), wire.Skip(GAME, *key, upto)):
                self.wires[link].ways[sender].append(wire.encode(frame))
