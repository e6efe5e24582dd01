"""What neighbours tell each other of their streams, and the state kept per link.

What neighbours tell each other of their streams, and what to do with it.

Each says once per connection, and again every few seconds, how far it is in every stream. The other sends
what comes next. Nothing is repeated within a connection, for nothing is lost there; what a broken connection
lost is mended by the next word on how far one is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rumormill.live.core.frames import Have, Head, Item, Obs, Skip, encode
from rumormill.live.core.game import Game
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.signatures import Point
from rumormill.live.core.streams import UNKNOWN, Key, Stream

if TYPE_CHECKING:
    from rumormill.live.core.node import Node


@dataclass
class Shared:
    """One game over one link."""

    answered: bool = False
    """Whether the peer has said what it has."""
    has: dict[Key, int] = field(default_factory=dict)
    """How far the peer is in every stream, as it said, or as was told since."""
    hops: dict[Key, int] = field(default_factory=dict)
    """By how many hops the peer has every stream, as it said."""
    claims: dict[Key, int] = field(default_factory=dict)
    """How far the peer is by its own words alone."""
    floors: dict[Key, int] = field(default_factory=dict)
    """Up to where the peer said it no longer keeps a stream."""
    proofs: dict[Key, Point] = field(default_factory=dict)
    """In a mesh with signatures: the origin's word on that floor."""
    told_skip: dict[Key, int] = field(default_factory=dict)
    """Up to where it was told that a stream is no longer kept here; nothing more of it until it answers."""
    news: dict[Key, None] = field(default_factory=dict)
    """Streams of which there may be something to tell, in order."""


@dataclass
class Link:
    """One connection to a neighbour."""

    peer: int
    opened: float
    heard: float
    pinged: float
    next_have: float
    counted: float
    """When the allowance was counted."""
    allowance: float
    """Frames that may come at once."""
    epoch: int | None = None
    """None until the peer has said hello."""
    games: dict[str, Shared] = field(default_factory=dict)
    control: deque[bytes] = field(default_factory=deque)
    """Frames that go before everything else."""
    asked: bool = False
    """Whether the peer waits for something in `control`."""
    closing: str | None = None
    """Why the driver should close it."""
    pause_until: float = 0.0
    """Until when the driver should not read from it."""
    round: int = 0
    """Lock step: the last round that the peer has ended."""
    held: list[tuple[int, Obs]] = field(default_factory=list)
    """Lock step: (round, frame) that came before the round's end."""


NOT_KNOWN = -1
"""What is said of the hops of a stream that came by a way that was forgotten."""


class Exchange:
    """The part of a node that talks about streams."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._spent: dict[
            tuple[str, int], tuple[float, float]
        ] = {}  # (game, origin): tokens left, as of when

    # --- telling ------------------------------------------------------------------------------------

    def news(self, game: Game, key: Key) -> None:
        """There is more of a stream: everybody may have to be told."""
        for link in self._node.links.values():
            shared = link.games.get(game.setup.name)
            if shared is not None:
                shared.news[key] = None

    def tell_have(self, link: Link) -> None:
        """Say how far one is in every stream of every shared game."""
        link.next_have = self._node.now + self._node.setup.limits.have_every
        for name in link.games:
            game = self._node.games[name]
            rows = [self._row(game, stream) for stream in game.streams.values()]
            link.control.append(encode(Have(name, rows, full=True)))

    def _row(self, game: Game, stream: Stream) -> tuple[int, int, int, int]:
        upto = game.durable if stream is game.own else stream.upto
        return (*stream.key, upto, stream.hops if stream.hops < UNKNOWN else NOT_KNOWN)

    def told_more(self, game: Game, stream: Stream) -> None:
        """A stream went on, though by giving up: say so, and tell what is there now."""
        self.news(game, stream.key)
        self.tell_one(game, stream)

    def tell_one(self, game: Game, stream: Stream) -> None:
        """Say at once how far one is in one stream."""
        for link in self._node.links.values():
            if game.setup.name in link.games:
                row = self._row(game, stream)
                link.control.append(encode(Have(game.setup.name, [row], full=False)))

    def next_frame(self, link: Link) -> bytes | None:
        """The next thing to tell a peer; None if it knows everything."""
        for name, shared in link.games.items():
            game = self._node.games[name]
            while shared.answered and shared.news:
                key = next(iter(shared.news))
                frame = self._about(link, game, shared, game.streams[key])
                if frame is not None:
                    return frame
                shared.news.pop(key, None)
        return None

    def _about(self, link: Link, game: Game, shared: Shared, stream: Stream) -> bytes | None:
        key, name = stream.key, game.setup.name
        last = game.durable if stream is game.own else stream.upto
        first = shared.has.get(key, 0) + 1
        if first > last or not self._offered(link, game, stream):
            return None
        # Nothing that is not on disk is told, not even that it is no longer kept: a crash may take it back.
        floor = min(stream.kept.floor, last)
        if first <= floor:
            if shared.told_skip.get(key, -1) >= floor:
                return None  # wait until the peer says that it has given up, or found it elsewhere
            return self._skip_frame(name, shared, stream, floor, last)
        count, head, seal = min(last - first + 1, self._node.setup.limits.batch), stream.head, b""
        if stream.chain is not None:
            point = stream.chain.step(first, last)
            if point is None:
                return None
            count, head, seal = point.upto - first + 1, point.head, point.seal
        items = stream.kept.between(first, count)
        shared.has[key] = first + count - 1
        # The peers of one that tells go on in turn: this stream goes behind the others.
        del shared.news[key]
        shared.news[key] = None
        hops = min(stream.hops + 1, game.setup.gamma)
        return encode(Obs(name, *key, hops, first, items, head, seal))

    def _skip_frame(self, name: str, shared: Shared, stream: Stream, floor: int, last: int) -> bytes | None:
        """Say that a stream is not kept up to here; with signatures, up to the next point that was signed."""
        signed: tuple[Any, ...] = ()
        upto = floor
        if stream.chain is not None:
            point = stream.chain.above(floor)
            if point is None or point.upto > last:
                return None
            upto, signed = point.upto, point[1:]
        shared.told_skip[stream.key] = floor
        return encode(Skip(name, *stream.key, upto, *signed))

    def _offered(self, link: Link, game: Game, stream: Stream) -> bool:
        """Whether a stream goes to a peer: within the hop budget, or back to an origin that lost it."""
        origin, epoch = stream.key
        if origin == link.peer:
            return epoch != link.epoch and game.setup.gamma > 0
        return stream.hops < game.setup.gamma and origin in self._node.setup.members

    # --- hearing ------------------------------------------------------------------------------------

    def have(self, link: Link, frame: Have) -> None:
        """A peer says how far it is."""
        shared = link.games.get(frame.game)
        if shared is None:
            return
        game = self._node.games[frame.game]
        if frame.full:
            shared.answered = True
            shared.has, shared.hops, shared.claims, shared.told_skip = {}, {}, {}, {}
            shared.news = dict.fromkeys(game.streams)
        most = len(self._node.setup.members) * self._node.setup.limits.epochs
        for origin, epoch, upto, hops in frame.streams:
            key = (origin, epoch)
            if key not in shared.has and len(shared.has) >= most:
                self._node.violations["have"] += 1
                return
            if (
                origin not in self._node.setup.members
                or not 0 <= upto <= LAST_DECISION
                or not NOT_KNOWN <= hops <= game.setup.gamma
            ):
                self._node.violations["have"] += 1
                continue
            if key == game.own.key and upto > game.own.upto:
                # A lie, or the own disk is an old copy: an operator has to look.
                self._node.violations["ahead"] += 1
            hops = UNKNOWN if hops == NOT_KNOWN else hops
            shared.has[key] = shared.claims[key] = upto
            shared.hops[key] = hops
            shared.told_skip.pop(key, None)
            if key in game.streams:
                shared.news[key] = None
                self._lower_hops(game, game.streams[key], hops + 1)

    def _lower_hops(self, game: Game, stream: Stream, hops: int) -> None:
        """A shorter way: tell it on, for others may be nearer than they know too."""
        if hops < stream.hops and hops <= game.setup.gamma:
            stream.hops = hops
            self.news(game, stream.key)
            self.tell_one(game, stream)

    def obs(self, link: Link, frame: Obs) -> None:
        """A peer tells a part of a stream."""
        found = self._checked(link, frame)
        if found is None:
            return
        game, shared, stream = found
        last = frame.first + len(frame.items) - 1
        shared.has[stream.key] = max(shared.has.get(stream.key, 0), last)
        shared.claims[stream.key] = max(shared.claims.get(stream.key, 0), last)
        shared.hops[stream.key] = min(shared.hops.get(stream.key, UNKNOWN), frame.hops - 1)
        self._take(link, game, stream, frame.hops, frame.first, frame.items, frame.head, frame.seal)

    def _checked(self, link: Link, frame: Obs) -> tuple[Game, Shared, Stream] | None:
        """The stream that a frame is about; None, and counted, if no honest peer sends it."""
        node = self._node
        shared = link.games.get(frame.game)
        if shared is None:
            node.violations["game"] += 1
            return None
        game = node.games[frame.game]
        key = (frame.origin, frame.epoch)
        if key == game.own.key:
            node.violations["own"] += 1
            return None
        # One hop means from the origin itself, which speaks for itself alone.
        back = frame.origin == node.setup.node
        if not 1 <= frame.hops <= game.setup.gamma or (
            frame.hops == 1 and frame.origin != link.peer and not back
        ):
            node.violations["hops"] += 1
            return None
        if not 1 <= frame.first <= LAST_DECISION or not 0 < len(frame.items) <= node.setup.limits.batch:
            node.violations["batch"] += 1
            return None
        if frame.origin not in node.setup.members:
            node.violations["origin"] += 1
            return None
        stream = game.stream(key)
        if stream is None:
            node.violations["epochs"] += 1
            return None
        return game, shared, stream

    def _take(
        self,
        link: Link,
        game: Game,
        stream: Stream,
        hops: int,
        first: int,
        items: list[Item],
        head: Head | None,
        seal: bytes = b"",
    ) -> None:
        node = self._node
        hole = first > stream.upto + 1
        known = first + len(items) - 1 < stream.upto
        if stream.chain is not None and not known and not hole:
            if not game.proven(stream, first, items, head, seal):
                node.violations["seal"] += 1
                game.forget(stream)
                return
        elif stream.chain is not None and stream.upto == 0:
            node.violations["hole"] += 1
            game.forget(stream)
            return
        self._lower_hops(game, stream, hops)
        if hole:
            node.violations["hole"] += 1  # the next word on how far this node is will mend it
            return
        if stream.chain is not None and known:
            return  # a head that comes with it cannot be checked any more
        new = game.accept(stream, first, items, head, node.log, seal)
        if new:
            node.leader_spoke(game, stream.key[0])
            self.news(game, stream.key)
            self._spend(link, game, stream.key[0], new)

    def _spend(self, link: Link, game: Game, origin: int, items: int) -> None:
        """One origin may take up only so much: what comes faster has to wait in the network."""
        rate, now = self._node.setup.limits.rate, self._node.now
        left, since = self._spent.get((game.setup.name, origin), (rate, now))
        left = min(rate, left + (now - since) * rate) - items
        self._spent[(game.setup.name, origin)] = (left, now)
        if left < 0:
            link.pause_until = max(link.pause_until, now - left / rate)

    def obs_in_order(self, arrived: Sequence[tuple[Link, Obs]]) -> None:
        """Lock step: all that came in a round, oldest decision first, then by origin."""
        singles = []
        for link, frame in arrived:
            found = self._checked(link, frame)
            if found is not None:
                game, shared, stream = found
                last = frame.first + len(frame.items) - 1
                shared.has[stream.key] = max(shared.has.get(stream.key, 0), last)
                for i, item in enumerate(frame.items):
                    head = frame.head if i == len(frame.items) - 1 else None
                    singles.append(
                        (item[0], frame.origin, frame.first + i, item, link, game, stream, frame, head)
                    )
        singles.sort(key=lambda each: each[:3])
        for _, _, seq, item, link, game, stream, frame, head in singles:
            self._take(link, game, stream, frame.hops, seq, [item], head)
