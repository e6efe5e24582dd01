"""What neighbours tell each other of their streams, and what to do with it.

Each says once per connection, and again every few seconds, how far it is in every stream. The other sends
what comes next. Nothing is repeated within a connection, for nothing is lost there; what a broken connection
lost is mended by the next word on how far one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rumormill.live.frames import Have, Head, Item, Obs, Skip, encode
from rumormill.live.game import Game
from rumormill.live.links import Link, Shared
from rumormill.live.streams import UNKNOWN, Key, Stream

if TYPE_CHECKING:
    from rumormill.live.node import Node

NOT_KNOWN = -1
"""What is said of the hops of a stream that came by a way that was forgotten."""
# A neighbour that has a stream but forgot by how many hops may be able to supply it; so many waits are given.
WAITS_FOR_UNKNOWN = 10


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

    def _tell_one(self, game: Game, stream: Stream) -> None:
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
            shared.told_skip[key] = floor
            return encode(Skip(name, *key, floor))
        count = min(last - first + 1, self._node.setup.limits.batch)
        items = stream.kept.between(first, count)
        shared.has[key] = first + count - 1
        # The peers of one that tells go on in turn: this stream goes behind the others.
        del shared.news[key]
        shared.news[key] = None
        hops = min(stream.hops + 1, game.setup.gamma)
        return encode(Obs(name, *key, hops, first, items, stream.head))

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
                or upto < 0
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
            self._tell_one(game, stream)

    def obs(self, link: Link, frame: Obs) -> None:
        """A peer tells a part of a stream."""
        found = self._checked(link, frame)
        if found is None:
            return
        game, shared, stream = found
        last = frame.first + len(frame.items) - 1
        shared.has[stream.key] = max(shared.has.get(stream.key, 0), last)
        shared.claims[stream.key] = max(shared.claims.get(stream.key, 0), last)
        shared.hops.setdefault(stream.key, frame.hops - 1)
        self._take(link, game, stream, frame.hops, frame.first, frame.items, frame.head)

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
        if frame.first < 1 or not 0 < len(frame.items) <= node.setup.limits.batch:
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
    ) -> None:
        node = self._node
        self._lower_hops(game, stream, hops)
        if first > stream.upto + 1:
            node.violations["hole"] += 1  # the next word on how far this node is will mend it
            return
        new = game.accept(stream, first, items, head, node.log)
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

    # --- giving up ----------------------------------------------------------------------------------

    def skip(self, link: Link, frame: Skip) -> None:
        """A peer no longer keeps what comes next here."""
        node, shared = self._node, link.games.get(frame.game)
        if shared is None or frame.origin not in node.setup.members or frame.upto < 1:
            node.violations["skip"] += 1
            return
        game, key = node.games[frame.game], (frame.origin, frame.epoch)
        stream = None if key == game.own.key else game.stream(key)
        if stream is None:
            node.violations["skip"] += 1
            return
        shared.floors[key] = max(shared.floors.get(key, 0), frame.upto)
        shared.claims[key] = max(shared.claims.get(key, 0), frame.upto)
        shared.hops.setdefault(key, UNKNOWN)
        if frame.upto > stream.upto and stream.skip_since is None:
            stream.skip_since = node.now

    def give_up(self) -> None:
        """Skip what was waited for long enough and no neighbour can supply."""
        node = self._node
        for game in node.games.values():
            for stream in game.streams.values():
                waited = 0.0 if stream.skip_since is None else node.now - stream.skip_since
                if stream.skip_since is None or waited < node.setup.limits.skip_after:
                    continue
                patient = waited < WAITS_FOR_UNKNOWN * node.setup.limits.skip_after
                upto = self._beyond_reach(game, stream, patient)
                if upto > stream.upto:
                    game.skip(stream, upto, node.log)
                    self.news(game, stream.key)
                    self._tell_one(game, stream)

    def _beyond_reach(self, game: Game, stream: Stream, patient: bool) -> int:
        """Up to where no linked neighbour keeps a stream; 0 while one has not said what it has."""
        floors = []
        for link in self._node.links.values():
            if link.epoch is None:
                return 0
            shared = link.games.get(game.setup.name)
            if shared is None:
                continue
            if not shared.answered:
                return 0
            if self._supplies(game, shared, stream, patient):
                floors.append(shared.floors.get(stream.key, 0))
        return min(floors, default=0)

    def _supplies(self, game: Game, shared: Shared, stream: Stream, patient: bool) -> bool:
        """Whether a neighbour has more of a stream than is here, and may tell it."""
        key, gamma = stream.key, game.setup.gamma
        if shared.claims.get(key, 0) <= stream.upto:
            return False
        hops = shared.hops.get(key, UNKNOWN)
        return key[0] == self._node.setup.node or hops < gamma or (hops == UNKNOWN and patient)
