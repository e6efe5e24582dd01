"""A node: a state machine that makes decisions, accepts rewards and exchanges streams with its neighbours.

It has no socket, clock, file or randomness. A driver calls `choose`, `observe`, `abandon`, `tick`, `link_up`,
`link_down` and `receive`; it writes the records of `take_journal` to a disk and calls `committed`; it sends
the bytes of `frames`. Every change to an agent's state is a record: replaying them gives the same state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rumormill.live.core.classes import MOST_NAMES, pooled_prior, prior_from, template_of
from rumormill.live.core.decisions import NotReady
from rumormill.live.core.exchange import Exchange, Link, NodeState, SharedGame
from rumormill.live.core.frames import (
    LARGE_FRAME,
    PROTO_MAX,
    PROTO_MIN,
    SMALL_FRAME,
    Bye,
    Frame,
    Have,
    Hello,
    Obs,
    Ping,
    Pong,
    ProtocolError,
    Skip,
    decode,
    encode,
)
from rumormill.live.core.game import Accepted, LiveGame, Refused
from rumormill.live.core.node_config import GameConfig, NodeConfig
from rumormill.live.core.records import REMOVED, Born, Decision, Own, Record, RemovedGame, Renewed, Reserve
from rumormill.live.core.signatures import BEGIN
from rumormill.live.core.skips import OldCopy, Skips
from rumormill.live.core.streams import ItemStore, MemoryItems

WORN_OUT = "the disk is an old copy, and this node has had too many epochs: give it a new name"
# Frames that may wait for a peer that does not read, beside four per stream; then the link is closed.
MOST_CONTROL = 1_024
# Bytes that count as one more frame; of a row of a Have and of an item of an Obs, at most.
BYTES_OF_FRAME, BYTES_OF_ROW, BYTES_OF_ITEM = 256, 37, 28


@dataclass(frozen=True)
class Token:
    """One decision: all that is needed to report its reward later."""

    game: str
    epoch: int
    t: int
    arm: int
    expires: float
    others: tuple[int, ...] = ()
    """Of a decision for several arms: the next ones of the ranking."""
    propensity: float | None = None
    """The probability of the arm, if it was asked for and the policy says it."""


class Node(NodeState):
    """One node of a mesh, with all its games."""

    def __init__(self, config: NodeConfig, store: ItemStore | None = None) -> None:
        """`store` has the segments of retained items; by default they are in memory."""
        super().__init__(config)
        self._store = MemoryItems() if store is None else store
        self.games = {each.name: self._game(each) for each in config.games}
        # Games that are not in the mesh file any more: their numbers are not used again if they return.
        self._removed: dict[str, RemovedGame] = {}
        self._clock: float | None = None  # the driver's clock at its last call
        self._durable = 0
        self._exchange = Exchange(self)
        self._skips = Skips(self, self._exchange)
        self._old_copy = OldCopy(self, self._exchange, self._skips, self._draw_epoch)
        self._is_restarted = False
        self._templates = {each.name: each for each in config.games}
        self.is_worn_out = False
        """Whether the disk is an old copy and the node has had too many epochs to draw another."""

    def _game(self, config: GameConfig) -> LiveGame:
        node, epoch = self.config.node, self.config.epoch
        return LiveGame(config, node, epoch, self.config.limits, self.config.signer, self._store)

    # --- decisions ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Request the first block of decision numbers; call once, after `restart` if there is one."""
        self._log_removals()
        for game in self.games.values():
            game.reserve(self.log)
            if game.is_carried:
                game.log_carried(self.log)
            if self._is_restarted:
                game.hold(self.log)

    def _log_removals(self) -> None:
        """Record that games were removed: one that returns starts anew, behind the numbers it has used."""
        for name, game in self._removed.items():
            if not game.logged:
                game.logged = True
                self.log(game.record(name))

    @property
    def ready(self) -> bool:
        """Whether every game can make a decision now."""
        return not self.is_worn_out and all(self.games[name].decisions.ready for name in self._templates)

    def choose(
        self,
        game: str,
        now: float,
        ttl: float,
        allowed: list[int] | None = None,
        k: int = 1,
        propensity: bool = False,
    ) -> Token:
        """The next decision, for the best k of the allowed arms; NotReady without numbers on disk."""
        self._pass_time(now)
        if self.is_worn_out:
            raise NotReady(WORN_OUT)
        played = self._opened(game)
        alone = self._alone(played)
        t, (arm, *others), chance = played.choose(self.now, ttl, alone, self.log, allowed, k, propensity)
        self._note_use(game)
        return Token(game, self.config.epoch, t, arm, self.now + ttl, tuple(others), chance)

    def observe(self, game: str, t: int, arm: int, reward: float, weight: int = 1) -> Accepted:
        """Accept the reward of a decision; acknowledge it when `committed` has reached its record."""
        if self.is_worn_out:
            raise NotReady(WORN_OUT)
        if game not in self.games and template_of(game, self._templates) is not None:
            raise Refused("old", f"the class {game} is forgotten: it was not used for long")
        taken = self.games[game].observe(t, arm, reward, self.log, weight)
        if not taken.repeat:
            self._note_use(game)
        return taken

    def abandon(self, game: str, t: int, arm: int | None = None) -> bool:
        """Close a decision whose reward (of its first `arm`) will not arrive."""
        return game in self.games and self.games[game].abandon(t, self.log, arm)

    # --- request classes ----------------------------------------------------------------------------

    def _opened(self, name: str) -> LiveGame:
        """A game; a class is made if it is new."""
        template = template_of(name, self._templates) if name not in self.games else None
        if template is not None:
            kept = self._classes(template)
            if name not in self._removed and len(self._removed) + len(self.games) >= MOST_NAMES:
                raise Refused("arm", f"class: this node has seen {MOST_NAMES:,} names of classes, no more")
            if len(kept) >= template.classes:
                self._forget(kept[0])
            self._make_class(name, template)
        return self.games[name]

    def _note_use(self, name: str) -> None:
        """A class that has a new record of its own comes last in the order of use."""
        if name not in self._templates:
            self.games[name] = self.games.pop(name)

    def _classes(self, template: GameConfig) -> list[str]:
        """The classes of a template, those that were not used for longest first."""
        return [name for name in self.games if name.rpartition("/")[0] == template.name]

    def _make_class(self, name: str, template: GameConfig) -> None:
        """Make a class, with a prior from the newest samples of all games of its template."""
        others = [self.games[template.name], *(self.games[each] for each in self._classes(template))]
        born = pooled_prior(name, template.n_arms, others)
        self.log(born)
        game = self._born(born, template, self._records)
        game.reserve(self.log)
        if self._is_restarted:  # of this one too neighbours may know more
            game.hold(self.log)
        for link in self.links.values():
            if template.name in link.games:
                link.games[name] = SharedGame()
                self._exchange.send_have_of_game(link, game)

    def _born(self, born: Born, template: GameConfig, record: int = 0) -> LiveGame:
        """The game of a class as a record describes it, behind the numbers that it has used before."""
        assert template.of_class is not None
        game = self._game(template.of_class(born.game, prior_from(born)))
        game.born = born
        if born.game in self._removed:
            game.follow(self._removed.pop(born.game).numbers, record=record)
        self.games[born.game] = game
        return game

    def _forget(self, name: str) -> None:
        """Forget a class but for the numbers that it has used."""
        self._removed[name] = RemovedGame(*self.games.pop(name).numbers)
        for link in self.links.values():
            link.games.pop(name, None)
        self._log_removals()

    def is_class(self, link: Link, name: str) -> bool:
        template = template_of(name, self._templates)
        return template is not None and template.name in link.games

    def shared(self, link: Link, name: str) -> SharedGame | None:
        """The state of a game on a link; a class that a neighbour reports is made if there is room."""
        found, template = link.games.get(name), template_of(name, self._templates)
        if found is None and template is not None and self.is_class(link, name) and name not in self.games:
            room = len(self._classes(template)) < template.classes
            if room and len(self._removed) + len(self.games) < MOST_NAMES:
                self._make_class(name, template)
        return link.games.get(name)

    def _alone(self, game: LiveGame) -> bool:
        """Whether a follower's leader has sent nothing for longer than `patience`."""
        leader = game.config.leader
        if leader is None or leader == self.config.node:
            return False
        return self.now - self._leader_seen.setdefault(game.config.name, self.now) > game.config.patience

    # --- the journal --------------------------------------------------------------------------------

    def take_journal(self) -> list[Record]:
        """The records since the last call, in order."""
        taken, self._journal = self._journal, []
        return taken

    @property
    def unwritten(self) -> int:
        """The number of records that were not taken yet."""
        return len(self._journal)

    @property
    def records(self) -> int:
        """The number of records in all."""
        return self._records

    @property
    def durable(self) -> int:
        """The number of records that are on disk."""
        return self._durable

    def committed(self, n: int) -> None:
        """The first n records are on disk."""
        self._durable = max(self._durable, n)
        for game in self.games.values():
            if game.committed(self._durable):
                self._exchange.mark_unsent(game, game.own.key)

    def restart(self, state: dict[str, Any] | None, journal: Iterable[Record]) -> None:
        """Restore a snapshot and replay the records after it."""
        own, begin = (self.config.node, self.config.epoch), b"" if self.config.signer is None else BEGIN
        for name, each in (state or {}).items():
            template = template_of(name, self._templates)
            if "born" in each and template is not None and name not in self.games:
                self._born(Born(name, *each["born"]), template)
            if name in self.games:
                self.games[name].restore(each)
            else:
                self._removed[name] = RemovedGame.from_state(each, own)
        self._is_restarted = state is not None
        for record in journal:
            self._is_restarted = True
            if isinstance(record, Renewed):
                self.config = dataclasses.replace(self.config, epoch=record.epoch)
            template = template_of(record.game, self._templates)
            if isinstance(record, Born) and template is not None and record.game not in self._templates:
                self._born(record, template)
            elif record.game in self.games:
                self._replay(record, template)
            else:
                removed = self._removed.setdefault(record.game, RemovedGame(digest=begin))
                removed.replay(record)
        for game in self.games.values():
            game.restart()

    def _replay(self, record: Record, template: GameConfig | None) -> None:
        """Repeat what a record of a game describes; a class may end with it, or be used."""
        game = self.games[record.game]
        if template is not None and record.game not in self._templates:
            if isinstance(record, Reserve) and record.fingerprint == REMOVED:
                self._removed[record.game] = RemovedGame(*self.games.pop(record.game).numbers, logged=True)
                return
            if isinstance(record, Decision | Own):
                self._note_use(record.game)
        game.replay(record)

    def reconfigure(self, config: NodeConfig) -> None:
        """Apply a new mesh file: games and links come and go; a game with another fingerprint starts anew.

        All links are closed, because the games that they share were agreed when they came up.
        """
        self.config = config
        games = {}
        for each in config.games:
            game = self.games.get(each.name)
            if game is not None and game.config.fingerprint == each.fingerprint:
                game.reconfigure(each, config.signer)
            else:
                earlier, game = game, self._game(each)
                if earlier is not None:
                    game.follow(earlier.numbers, earlier.durable, self._records)
                elif each.name in self._removed:
                    game.follow(self._removed.pop(each.name).numbers, record=self._records)
                game.reserve(self.log)
                if earlier is not None and game.learn_from(earlier.state()):
                    game.log_carried(self.log)
                if earlier is not None and earlier.held is not None:
                    game.hold(self.log)
            games[each.name] = game
        self._templates = {each.name: each for each in config.games}
        for name, game in self.games.items():
            template = template_of(name, self._templates) if name not in games else None
            if template is not None and template.of_class and template.fingerprint == game.config.fingerprint:
                prior = None if game.born is None else prior_from(game.born)
                game.reconfigure(template.of_class(name, prior), config.signer)
                games[name] = game
            elif name not in games:
                self._removed[name] = RemovedGame(*game.numbers)
        self.games = games
        self._log_removals()
        self._close_links("a new mesh file")

    def _draw_epoch(self) -> None:
        """The disk is an old copy: begin new own streams, with an epoch above all known ones."""
        own, games = self.config.node, self.games.values()
        epochs = {epoch for game in games for origin, epoch in game.streams if origin == own}
        self.is_worn_out = len(epochs) >= self.config.limits.epochs
        if self.is_worn_out:
            return
        epoch = max(int(1000 * self.now), 1 + max(epochs))
        self.config = dataclasses.replace(self.config, epoch=epoch)
        for game in games:
            game.renew(epoch, self.log)
        for name, earlier in self._removed.items():
            record = Renewed(name, epoch, earlier.seq)
            earlier.replay(record)
            self.log(record)
        self._close_links("a new epoch")

    def _close_links(self, why: str) -> None:
        for link in self.links.values():
            link.closing = link.closing or why
            link.outdated = True
            link.games.clear()

    def snapshot(self) -> dict[str, Any]:
        """The state as of the last record, as plain data."""
        own = (self.config.node, self.config.epoch)
        removed = {name: game.state(own) for name, game in self._removed.items()}
        return {**removed, **{name: game.state() for name, game in self.games.items()}}

    # --- time and links -----------------------------------------------------------------------------

    def _pass_time(self, now: float) -> None:
        """Advance the node's own time, which never goes back even if the driver's clock does."""
        self.now = now if self._clock is None else self.now + max(0.0, now - self._clock)
        self._clock = now

    def tick(self, now: float) -> None:
        """Timeouts, pings and repeated Haves; call a few times a second."""
        self._pass_time(now)
        for game in self.games.values():
            game.expire(self.now, self.log)
        limits = self.config.limits
        for link in self.links.values():
            if link.epoch is None and self.now - link.opened > limits.silence:
                link.closing = link.closing or "no hello"
            if self.now - link.last_frame > limits.silence:
                link.closing = link.closing or "silent"
            if len(link.control) > MOST_CONTROL + 4 * sum(len(game.streams) for game in self.games.values()):
                link.closing = link.closing or "it does not read"
            if self.now - link.pinged >= limits.ping_every:
                link.pinged = self.now
                link.control.append(encode(Ping()))
            if link.epoch is not None and self.now >= link.next_have:
                self._exchange.send_have(link)
        self._old_copy.tick()
        self._skips.skip_unavailable()  # last: silent links are marked as closing before

    def refusal(self, peer: int | None, serial: str) -> tuple[str, str] | None:
        """(kind, reason) to refuse a peer with this certificate; None if it may be linked."""
        if serial in self.config.revoked:
            return "revoked", f"its certificate {serial} is revoked"
        return None if peer in self.config.neighbours else ("stranger", "it is no neighbour")

    def link_up(self, link: int, peer: int) -> None:
        """A connection to a neighbour whose identity the driver has verified."""
        config, now = self.config, self.now
        opened = Link(
            peer,
            opened=now,
            last_frame=now,
            pinged=now,
            next_have=now,
            counted=now,
            allowance=config.limits.frames,
        )
        self.links[link] = opened
        games = [(each.name, each.fingerprint) for each in config.games]
        hello = Hello(PROTO_MIN, PROTO_MAX, config.mesh, config.node, config.epoch, games)
        opened.control.append(encode(hello))

    def link_down(self, link: int) -> None:
        """The connection is closed; frames under way may or may not have arrived."""
        self.links.pop(link, None)

    def receive(self, link: int, body: bytes) -> None:
        """A frame without its length prefix. After a ProtocolError the driver closes the link."""
        at = self.links[link]
        at.last_frame = self.now
        self._charge(at, len(body))
        try:
            frame = decode(body)
            if frame is not None and not at.outdated:
                self._handle(at, frame)
        except ProtocolError as error:
            self.violations["hostile"] += 1
            at.closing = at.closing or str(error)
            raise

    @property
    def largest_frame(self) -> int:
        """Bytes of the largest frame that a correct neighbour sends: a larger one is refused unread.

        A neighbour may have another revision of the mesh file, with more nodes.
        """
        config, limits = self.config, self.config.limits
        rows = 4 * len(config.members) * limits.epochs + 1_024
        arms = max((game.n_arms for game in config.games), default=0)
        names = sum(len(game.name.encode()) + 24 for game in config.games)
        most = max(BYTES_OF_ROW * rows, BYTES_OF_ITEM * limits.batch + 20 * arms)
        return min(SMALL_FRAME + 2 * names + most, LARGE_FRAME)

    def _charge(self, link: Link, size: int) -> None:
        """Limit the frames and bytes of a link per second (token bucket): pause a link that exceeds it."""
        rate = self.config.limits.frames
        used = 1 + size / BYTES_OF_FRAME
        link.allowance = min(rate, link.allowance + (self.now - link.counted) * rate) - used
        link.counted = self.now
        if link.allowance < 0:
            link.pause_until = max(link.pause_until, self.now - link.allowance / rate)

    def is_paused(self, link: int) -> bool:
        """Whether the driver should not read from a link now."""
        return self.links[link].pause_until > self.now

    def is_urgent(self, link: int) -> bool:
        """Whether the peer of a link waits for a frame, so that it should be sent at once."""
        return self.links[link].urgent

    def _handle(self, link: Link, frame: Frame) -> None:
        """Dispatch a frame."""
        match frame:
            case Hello():
                self._greet(link, frame)
            case Ping(nonce=nonce):
                link.control.append(encode(Pong(nonce)))
            case Pong():
                pass
            case Bye(reason=reason):
                link.closing = f"the peer closed the link: {reason[:100]}"
            case _ if link.epoch is None:
                raise ProtocolError("a frame before Hello")
            case Have():
                self._exchange.have(link, frame)
            case Obs():
                self._exchange.obs(link, frame)
            case Skip():
                self._skips.receive(link, frame)

    def _greet(self, link: Link, hello: Hello) -> None:
        """Check a peer's Hello and agree on the games to exchange."""
        config = self.config
        if hello.node != link.peer:
            raise ProtocolError(f"node {link.peer} says it is node {hello.node}")
        if hello.mesh != config.mesh:
            raise ProtocolError(f"a node of another mesh, {hello.mesh[:60]!r}")
        if link.epoch is not None:
            raise ProtocolError("a second hello")
        if hello.proto_min > PROTO_MAX or hello.proto_max < PROTO_MIN:
            link.closing = f"protocol versions {hello.proto_min} to {hello.proto_max} are not supported"
            link.control.append(encode(Bye("version")))
            return
        link.epoch = hello.epoch
        theirs = dict(hello.games)
        for game in config.games:
            if theirs.get(game.name) == game.fingerprint:
                link.games[game.name] = SharedGame()
            elif game.name in theirs:
                self.violations["fingerprint"] += 1
        for name in self.games:
            if name not in self._templates and self.is_class(link, name):
                link.games[name] = SharedGame()
        self._exchange.send_have(link)
        link.urgent = True

    # --- output -------------------------------------------------------------------------------------

    def frames(self, link: int, limit: int) -> list[bytes]:
        """The frames to send over a link now: about `limit` bytes at most, at least one frame if any."""
        at = self.links[link]
        at.urgent = False
        found: list[bytes] = []
        while at.control and limit > 0:
            found.append(at.control.popleft())
            limit -= len(found[-1])
        if at.epoch is None:
            return found
        while limit > 0 and (frame := self._exchange.next_frame(at)) is not None:
            found.append(frame)
            limit -= len(frame)
        return found

    def send_bye(self, reason: str) -> None:
        """Send Bye over every link."""
        for link in self.links.values():
            link.control.append(encode(Bye(reason)))
