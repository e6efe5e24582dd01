"""Exchange of streams between neighbours, and the state kept per link.

Both sides of a link send how far they are in every stream, when the link comes up and every few seconds; the
other side sends the items that follow. Nothing is repeated within a connection, because TCP loses nothing;
items lost with a broken connection are sent again after the next such message.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rumormill.live.core.frames import Have, Head, Item, Key, Obs, Skip, encode
from rumormill.live.core.game import LiveGame
from rumormill.live.core.node_config import LAST_DECISION, NodeConfig
from rumormill.live.core.records import Record
from rumormill.live.core.signatures import FORGED, Point
from rumormill.live.core.streams import UNKNOWN, Stream


@dataclass
class SharedGame:
    """The state of one game on one link."""

    answered: bool = False  # whether the peer has sent a full Have
    since: float = 0.0  # when the first one arrived
    has: dict[Key, int] = field(default_factory=dict)
    """How far the peer is in every stream: as it reported, or as it was sent since."""
    hops: dict[Key, int] = field(default_factory=dict)  # of every stream to the peer, as it reported
    claims: dict[Key, int] = field(default_factory=dict)  # how far it is, as it reported itself
    floors: dict[Key, int] = field(default_factory=dict)  # items up to here it reported not to retain
    proofs: dict[Key, Point] = field(default_factory=dict)  # signed: the origin's point at that floor
    asked: dict[Key, int] = field(default_factory=dict)
    """The floor behind which the peer was asked to show items since its last Skip."""
    skip_sent: dict[Key, int] = field(default_factory=dict)
    """The floor of the last Skip sent; the stream is not sent further until the peer answers."""
    unsent: dict[Key, None] = field(default_factory=dict)  # streams that may have items to send, in order


@dataclass
class Link:
    """One connection to a neighbour."""

    peer: int
    opened: float
    last_frame: float  # when the last frame arrived
    pinged: float
    next_have: float
    counted: float  # when the allowance was computed
    allowance: float  # frames that may arrive at once (token bucket)
    epoch: int | None = None  # None until the peer's Hello
    games: dict[str, SharedGame] = field(default_factory=dict)
    control: deque[bytes] = field(default_factory=deque)  # frames that are sent before all others
    urgent: bool = False  # whether the peer waits for a frame in `control`
    closing: str | None = None  # why the driver should close it
    outdated: bool = False
    """Whether the games were agreed under an earlier mesh file: frames that arrive are dropped."""
    pause_until: float = 0.0  # the driver should not read from it before this time


NOT_KNOWN = -1
"""The hops in a Have for a stream whose number of hops is not known."""


class NodeState:
    """The state that all parts of a node share: configuration, games, links, clock, counters, journal."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.games: dict[str, LiveGame] = {}
        self.links: dict[int, Link] = {}
        self.now = 0.0
        self.violations: Counter[str] = Counter()
        """Frames that no correct peer sends, by kind."""
        self._journal: list[Record] = []
        self._records = 0
        self._leader_seen: dict[str, float] = {}  # per game, when items of its leader last arrived

    def log(self, record: Record) -> int:
        """Append a record to the journal; its number."""
        self._journal.append(record)
        self._records += 1
        return self._records

    def is_class(self, link: Link, name: str) -> bool:
        """Whether it is a request class of a game that the link shares."""
        return False

    def shared(self, link: Link, name: str) -> SharedGame | None:
        """The state of a game on a link; None if it is not shared."""
        return link.games.get(name)

    def note_leader(self, game: LiveGame, origin: int) -> None:
        """Restart a follower's timeout if the origin is its leader."""
        if origin == game.config.leader:
            self._leader_seen[game.config.name] = self.now


class Exchange:
    """The part of a node that sends and receives streams."""

    def __init__(self, node: NodeState) -> None:
        self._node = node
        # (game, origin): tokens left, and when they were counted
        self._tokens: dict[tuple[str, int], tuple[float, float]] = {}
        self.skips_before: Callable[[LiveGame, Stream, int], bool] = lambda game, stream, first: False
        """Whether the items before `first` were skipped, because no neighbour retains them."""
        self.own_shown: Callable[[Link, LiveGame, Obs], None] = lambda link, game, frame: None
        """Called with items of the own stream."""

    # --- sending ------------------------------------------------------------------------------------

    def mark_unsent(self, game: LiveGame, key: Key) -> None:
        """Mark a stream that has new items on every link that shares the game."""
        for link in self._node.links.values():
            shared = link.games.get(game.config.name)
            if shared is not None:
                shared.unsent[key] = None

    def send_have(self, link: Link) -> None:
        """Send how far this node is in every stream of every shared game."""
        link.next_have = self._node.now + self._node.config.limits.have_every
        for name in link.games:
            self.send_have_of_game(link, self._node.games[name])

    def send_have_of_game(self, link: Link, game: LiveGame) -> None:
        """Send how far this node is in every stream of one game."""
        rows = [self._row(game, stream) for stream in game.streams.values()]
        link.control.append(encode(Have(game.config.name, rows, full=True)))

    def _row(self, game: LiveGame, stream: Stream) -> tuple[int, int, int, int]:
        upto = game.published if stream is game.own else stream.upto
        return (*stream.key, upto, stream.hops if stream.hops < UNKNOWN else NOT_KNOWN)

    def announce(self, game: LiveGame, stream: Stream) -> None:
        """Send how far this node is in a stream after a skip, and mark its items as unsent."""
        self.mark_unsent(game, stream.key)
        self.send_have_of(game, stream)

    def send_have_of(self, game: LiveGame, stream: Stream) -> None:
        """Send how far this node is in one stream."""
        for link in self._node.links.values():
            if game.config.name in link.games:
                row = self._row(game, stream)
                link.control.append(encode(Have(game.config.name, [row], full=False)))

    def next_frame(self, link: Link) -> bytes | None:
        """The next frame for a peer; None if it has everything."""
        for name, shared in link.games.items():
            game = self._node.games[name]
            while shared.answered and shared.unsent:
                key = next(iter(shared.unsent))
                stream = game.streams.get(key)  # None: nothing of it was verified, and it was dropped
                frame = None if stream is None else self._stream_frame(link, game, shared, stream)
                if frame is not None:
                    return frame
                shared.unsent.pop(key, None)
        return None

    def _stream_frame(self, link: Link, game: LiveGame, shared: SharedGame, stream: Stream) -> bytes | None:
        """The next Obs or Skip of a stream; None if there is nothing to send."""
        key, name = stream.key, game.config.name
        last = game.published if stream is game.own else stream.upto
        first = shared.has.get(key, 0) + 1
        if first > last or not self._offered(link, game, shared, stream):
            return None
        # Only durable items count, also for a Skip: a crash may undo the others.
        floor = min(stream.retained.floor, last)
        if first <= floor:
            if shared.skip_sent.get(key, -1) >= floor:
                return None  # wait until the peer has skipped them, or has them from another node
            return self._skip_frame(name, shared, stream, floor, last)
        count, head, signature = min(last - first + 1, self._node.config.limits.batch), stream.head, b""
        if stream.chain is not None:
            point = stream.chain.step(first, last)
            if point is None:
                return None
            count, head, signature = point.upto - first + 1, point.head, point.signature
        items = stream.retained.between(first, count)
        shared.has[key] = first + count - 1
        # Round robin: this stream goes behind the others.
        del shared.unsent[key]
        shared.unsent[key] = None
        hops = min(stream.hops + 1, game.config.gamma)
        return encode(Obs(name, *key, hops, first, items, head, signature))

    def _skip_frame(
        self, name: str, shared: SharedGame, stream: Stream, floor: int, last: int
    ) -> bytes | None:
        """A Skip up to the floor; with signatures, up to the next signed point."""
        signed: tuple[Any, ...] = ()
        upto = floor
        if stream.chain is not None:
            point = stream.chain.above(floor)
            if point is None or point.upto > last:
                return None
            upto, signed = point.upto, point[1:]
        shared.skip_sent[stream.key] = floor
        return encode(Skip(name, *stream.key, upto, *signed))

    def _offered(self, link: Link, game: LiveGame, shared: SharedGame, stream: Stream) -> bool:
        """Whether a stream is sent to a peer: within the hop budget, or back to an origin that lost it."""
        origin, epoch = stream.key
        if origin == link.peer:  # of its newest stream it reports how far it is: if not as far, it lost items
            return game.config.gamma > 0 and (epoch != link.epoch or stream.key in shared.claims)
        return stream.hops < game.config.gamma and origin in self._node.config.members

    # --- receiving ----------------------------------------------------------------------------------

    def have(self, link: Link, frame: Have) -> None:
        """A peer reports how far it is: replace what is known of it."""
        shared = self._node.shared(link, frame.game)
        if shared is None:
            return
        game = self._node.games[frame.game]
        if frame.full:
            shared.answered, shared.since = True, shared.since or self._node.now
            shared.has, shared.hops, shared.claims, shared.skip_sent = {}, {}, {}, {}
            shared.unsent = dict.fromkeys(game.streams)
        most = len(self._node.config.members) * self._node.config.limits.epochs
        seen: set[Key] = set()
        for origin, epoch, upto, hops in frame.streams:
            if origin not in self._node.config.members:
                continue  # by an earlier or a later mesh file
            key = (origin, epoch)
            if key in seen or (key not in shared.has and len(shared.has) >= most):
                self._node.violations["have"] += 1
                return
            seen.add(key)
            if not 0 <= upto <= LAST_DECISION or not NOT_KNOWN <= hops <= game.config.gamma:
                self._node.violations["have"] += 1
                continue
            if key == game.own.key and upto > game.own.upto and game.held is None:
                self._node.violations["ahead"] += 1  # a false claim: the disk is the newest
            hops = UNKNOWN if hops == NOT_KNOWN else hops
            shared.has[key] = shared.claims[key] = upto
            shared.hops[key] = hops
            shared.skip_sent.pop(key, None)
            if key in game.streams:
                shared.unsent[key] = None
                self._lower_hops(game, game.streams[key], hops + 1)

    def _lower_hops(self, game: LiveGame, stream: Stream, hops: int) -> None:
        """Record a shorter path and announce it: it may be shorter for neighbours too."""
        if hops < stream.hops and hops <= game.config.gamma:
            stream.hops = hops
            self.mark_unsent(game, stream.key)
            self.send_have_of(game, stream)

    def obs(self, link: Link, frame: Obs) -> None:
        """A peer sends items of a stream."""
        found = self._checked(link, frame)
        if found is None:
            return
        game, shared, stream = found
        last = frame.first + len(frame.items) - 1
        shared.has[stream.key] = max(shared.has.get(stream.key, 0), last)
        shared.claims[stream.key] = max(shared.claims.get(stream.key, 0), last)
        shared.hops[stream.key] = min(shared.hops.get(stream.key, UNKNOWN), frame.hops - 1)
        hole = frame.first > stream.upto + 1
        skipped = hole and self.skips_before(game, stream, frame.first)
        after_floor = game.signer is None and shared.floors.get(stream.key, frame.first) < frame.first
        if hole and not skipped and after_floor:
            # Asked for, but by now another neighbour can supply what comes before; else it is asked again.
            shared.asked.pop(stream.key, None)
            return
        self._take(link, game, stream, frame.hops, frame.first, frame.items, frame.head, frame.signature)
        if skipped:
            self.announce(game, stream)

    def _checked(self, link: Link, frame: Obs) -> tuple[LiveGame, SharedGame, Stream] | None:
        """The stream of a frame; None, and a violation, if no correct peer sends it."""
        node = self._node
        shared = node.shared(link, frame.game)
        if shared is None:
            if not node.is_class(link, frame.game):
                node.violations["game"] += 1
            return None
        game = node.games[frame.game]
        key = (frame.origin, frame.epoch)
        if key == game.own.key:
            self.own_shown(link, game, frame)
            return None
        # One hop means directly from the origin.
        back = frame.origin == node.config.node
        if not 1 <= frame.hops <= game.config.gamma or (
            frame.hops == 1 and frame.origin != link.peer and not back
        ):
            node.violations["hops"] += 1
            return None
        if not 1 <= frame.first <= LAST_DECISION or not 0 < len(frame.items) <= node.config.limits.batch:
            node.violations["batch"] += 1
            return None
        if frame.origin not in node.config.members:
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
        game: LiveGame,
        stream: Stream,
        hops: int,
        first: int,
        items: list[Item],
        head: Head | None,
        signature: bytes = b"",
    ) -> None:
        """Accept items that are verified and follow what is known; else count a violation."""
        node = self._node
        hole = first > stream.upto + 1
        known = first + len(items) - 1 < stream.upto
        if stream.chain is not None and not known and not hole:
            if not game.proven(stream, first, items, head, signature):
                node.violations[FORGED] += 1
                game.forget(stream)
                return
        elif stream.chain is not None and stream.upto == 0:
            node.violations["hole"] += 1
            game.forget(stream)
            return
        self._lower_hops(game, stream, hops)
        if hole:
            node.violations["hole"] += 1  # sent again after the next Have
            return
        if stream.chain is not None and known:
            return  # the head cannot be verified without the items
        new = game.accept(stream, first, items, head, node.log, signature)
        if new:
            node.note_leader(game, stream.key[0])
            self.mark_unsent(game, stream.key)
            self._charge_items(link, game, stream.key[0], new)

    def _charge_items(self, link: Link, game: LiveGame, origin: int, items: int) -> None:
        """Limit the items of one origin per second (token bucket): pause the link that exceeds it."""
        rate, now = self._node.config.limits.rate, self._node.now
        left, since = self._tokens.get((game.config.name, origin), (rate, now))
        left = min(rate, left + (now - since) * rate) - items
        self._tokens[(game.config.name, origin)] = (left, now)
        if left < 0:
            link.pause_until = max(link.pause_until, now - left / rate)
