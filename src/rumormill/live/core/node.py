"""A node: a state machine that chooses, observes, tells its neighbours and remembers.

No socket, clock, file or randomness is in it. A driver calls `choose`, `observe`, `abandon`, `tick`,
`link_up`, `link_down`, `receive`; it writes what `take_journal` gives to a disk and says so with
`committed`; it sends what `frames` gives. All that changes the state of an agent is a record, in
order: a node that is given its records again is the same node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rumormill.live.core.exchange import Exchange, Link, Shared
from rumormill.live.core.frames import (
    PROTO_MAX,
    PROTO_MIN,
    Bye,
    Frame,
    Have,
    Hello,
    Hostile,
    Obs,
    Ping,
    Pong,
    Round,
    Skip,
    decode,
    encode,
)
from rumormill.live.core.game import Accepted, Game
from rumormill.live.core.node_config import GameSetup, NodeSetup
from rumormill.live.core.records import Record
from rumormill.live.core.skips import GivingUp

# So many frames wait for a peer that does not read, and four for each stream; then the link is closed.
MOST_CONTROL = 1_024


@dataclass(frozen=True)
class Token:
    """One decision: all that is needed to say later what came of it."""

    game: str
    epoch: int
    t: int
    arm: int
    expires: float


class Node:
    """One node of a mesh, with all its games."""

    def __init__(self, setup: NodeSetup) -> None:
        self.setup = setup
        self.games = {each.name: self._game(each) for each in setup.games}
        self.links: dict[int, Link] = {}
        self.now = 0.0
        self._clock: float | None = None  # the driver's, when it last said so
        self.violations: Counter[str] = Counter()
        self._journal: list[Record] = []
        self._records = 0  # written so far, taken or not
        self._durable = 0
        self._heard_leader: dict[str, float] = {}  # per game, when its leader was last heard
        self._exchange = Exchange(self)
        self._giving_up = GivingUp(self, self._exchange.told_more)

    def _game(self, setup: GameSetup) -> Game:
        return Game(setup, self.setup.node, self.setup.epoch, self.setup.limits, self.setup.sealer)

    # --- decisions ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Ask for the first block of decision numbers; call once, after the restart if there is one."""
        for game in self.games.values():
            game.reserve(self.log)

    @property
    def ready(self) -> bool:
        """Whether every game can make a decision now."""
        return all(game.choices.ready for game in self.games.values())

    def choose(self, game: str, now: float, ttl: float) -> Token:
        """The next decision; NotReady while there are no numbers on disk."""
        self._pass_time(now)
        played = self.games[game]
        t, arm = played.choose(self.now, ttl, self._alone(played), self.log)
        return Token(game, self.setup.epoch, t, arm, self.now + ttl)

    def observe(self, game: str, t: int, arm: int, reward: float) -> Accepted:
        """The reward of a decision. To be acknowledged when `committed` has reached the record."""
        return self.games[game].observe(t, arm, reward, self.log)

    def abandon(self, game: str, t: int) -> bool:
        """The reward of a decision will not come."""
        return self.games[game].abandon(t, self.log)

    def _alone(self, game: Game) -> bool:
        """Whether a follower's leader has been silent for longer than its patience."""
        leader = game.setup.leader
        if leader is None or leader == self.setup.node or self.setup.lockstep:
            return False
        return self.now - self._heard_leader.setdefault(game.setup.name, self.now) > game.setup.patience

    def leader_spoke(self, game: Game, origin: int) -> None:
        if origin == game.setup.leader:
            self._heard_leader[game.setup.name] = self.now

    # --- the journal --------------------------------------------------------------------------------

    def log(self, record: Record) -> int:
        """Write a record down; its number."""
        self._journal.append(record)
        self._records += 1
        return self._records

    def take_journal(self) -> list[Record]:
        """The records that were not taken yet, in order."""
        taken, self._journal = self._journal, []
        return taken

    @property
    def unwritten(self) -> int:
        """How many were not taken yet."""
        return len(self._journal)

    @property
    def records(self) -> int:
        """How many records were written in all."""
        return self._records

    @property
    def durable(self) -> int:
        """How many of them are on disk."""
        return self._durable

    def committed(self, n: int) -> None:
        """The first n records are on disk."""
        self._durable = max(self._durable, n)
        for game in self.games.values():
            if game.committed(self._durable):
                self._exchange.news(game, game.own.key)

    def restart(self, state: dict[str, Any] | None, journal: Iterable[Record]) -> None:
        """Become what a snapshot and the records after it describe."""
        for name, each in (state or {}).items():
            if name in self.games:
                self.games[name].restore(each)
        for record in journal:
            if record.game in self.games:
                self.games[record.game].replay(record)
        for game in self.games.values():
            game.restart()

    def reconfigure(self, setup: NodeSetup) -> None:
        """A new mesh file: games and links come and go; a game with another fingerprint starts anew.

        All links have to be made again, for what is shared over them was agreed when they came up.
        """
        self.setup = setup
        games = {}
        for each in setup.games:
            game = self.games.get(each.name)
            if game is not None and game.setup.fingerprint == each.fingerprint:
                game.reconfigure(each, setup.sealer)
            else:
                earlier, game = game, self._game(each)
                if earlier is not None:
                    game.follow(earlier.numbers, earlier.durable, self._records)
                game.reserve(self.log)
            games[each.name] = game
        self.games = games
        for link in self.links.values():
            link.closing = link.closing or "a new mesh file"

    def snapshot(self) -> dict[str, Any]:
        """The state as of the last record written, as plain data."""
        return {name: game.state() for name, game in self.games.items()}

    # --- time and links -----------------------------------------------------------------------------

    def _pass_time(self, now: float) -> None:
        """Clocks jump: in here time never goes back, and goes on from where it was."""
        self.now = now if self._clock is None else self.now + max(0.0, now - self._clock)
        self._clock = now

    def tick(self, now: float) -> None:
        """Call a few times a second."""
        self._pass_time(now)
        for game in self.games.values():
            game.expire(self.now, self.log)
        limits = self.setup.limits
        for link in self.links.values():
            if link.epoch is None and self.now - link.opened > limits.silence:
                link.closing = link.closing or "no hello"
            if self.now - link.heard > limits.silence:
                link.closing = link.closing or "silent"
            if len(link.control) > MOST_CONTROL + 4 * sum(len(game.streams) for game in self.games.values()):
                link.closing = link.closing or "it does not read"
            if self.now - link.pinged >= limits.ping_every:
                link.pinged = self.now
                link.control.append(encode(Ping()))
            if link.epoch is not None and self.now >= link.next_have:
                self._exchange.tell_have(link)
        self._giving_up.give_up()  # last: a link that has been silent for long says nothing of its peer

    def link_up(self, link: int, peer: int) -> None:
        """A connection to a neighbour, whose identity the driver has checked."""
        setup, now = self.setup, self.now
        opened = Link(
            peer, opened=now, heard=now, pinged=now, next_have=now, counted=now, allowance=setup.limits.frames
        )
        self.links[link] = opened
        games = [(each.name, each.fingerprint) for each in setup.games]
        hello = Hello(PROTO_MIN, PROTO_MAX, setup.mesh, setup.node, setup.epoch, games)
        opened.control.append(encode(hello))

    def link_down(self, link: int) -> None:
        """The connection is gone; what was on the way may or may not have come."""
        self.links.pop(link, None)

    def receive(self, link: int, body: bytes) -> None:
        """A frame (without its length). Hostile: close the link."""
        at = self.links[link]
        at.heard = self.now
        self._charge(at)
        try:
            frame = decode(body)
            if frame is not None:
                self._handle(at, frame)
        except Hostile as error:
            self.violations["hostile"] += 1
            at.closing = at.closing or str(error)
            raise

    def _charge(self, link: Link) -> None:
        """Every frame costs something, also one that says nothing: too many have to wait in the network."""
        rate = self.setup.limits.frames
        link.allowance = min(rate, link.allowance + (self.now - link.counted) * rate) - 1
        link.counted = self.now
        if link.allowance < 0:
            link.pause_until = max(link.pause_until, self.now - link.allowance / rate)

    def rests(self, link: int) -> bool:
        """Whether nothing should be read from a link for now."""
        return self.links[link].pause_until > self.now

    def is_asked(self, link: int) -> bool:
        """Whether there is something to be said over a link at once, because the peer waits for it."""
        return self.links[link].asked

    def _handle(self, link: Link, frame: Frame) -> None:
        match frame:
            case Hello():
                self._greet(link, frame)
            case Ping(nonce=nonce):
                link.control.append(encode(Pong(nonce)))
            case Pong():
                pass
            case Bye(reason=reason):
                link.closing = f"the peer said goodbye: {reason[:100]}"
            case _ if link.epoch is None:
                raise Hostile("a peer that does not say hello first")
            case Have():
                self._exchange.have(link, frame)
            case Obs() if self.setup.lockstep:
                link.held.append((link.round + 1, frame))
            case Obs():
                self._exchange.obs(link, frame)
            case Skip():
                self._giving_up.skip(link, frame)
            case Round(t=t):
                link.round = t

    def _greet(self, link: Link, hello: Hello) -> None:
        setup = self.setup
        if hello.node != link.peer:
            raise Hostile(f"node {link.peer} says it is node {hello.node}")
        if hello.mesh != setup.mesh:
            raise Hostile(f"a node of another mesh, {hello.mesh[:60]!r}")
        if link.epoch is not None:
            raise Hostile("a second hello")
        if hello.proto_min > PROTO_MAX or hello.proto_max < PROTO_MIN:
            link.closing = f"it speaks versions {hello.proto_min} to {hello.proto_max} of the protocol"
            link.control.append(encode(Bye("version")))
            return
        link.epoch = hello.epoch
        theirs = dict(hello.games)
        for game in setup.games:
            if theirs.get(game.name) == game.fingerprint:
                link.games[game.name] = Shared()
            elif game.name in theirs:
                self.violations["fingerprint"] += 1
        self._exchange.tell_have(link)
        link.asked = True

    # --- what goes out ------------------------------------------------------------------------------

    def frames(self, link: int, limit: int) -> list[bytes]:
        """What is to be sent over a link now: about `limit` bytes at most, and at least one frame if any."""
        at = self.links[link]
        at.asked = False
        found: list[bytes] = []
        while at.control and limit > 0:
            found.append(at.control.popleft())
            limit -= len(found[-1])
        if at.epoch is None or self.setup.lockstep:
            return found
        while limit > 0 and (frame := self._exchange.next_frame(at)) is not None:
            found.append(frame)
            limit -= len(frame)
        return found

    def say_goodbye(self, reason: str) -> None:
        """Tell every neighbour that this node stops."""
        for link in self.links.values():
            link.control.append(encode(Bye(reason)))

    # --- lock step ----------------------------------------------------------------------------------

    def finish_round(self, t: int) -> None:
        """All that is to be told in this round is known: put it on every link, then the round's end."""
        for link in self.links.values():
            while (frame := self._exchange.next_frame(link)) is not None:
                link.control.append(frame)
            link.control.append(encode(Round(t)))

    def round_over(self, t: int) -> bool:
        """Take in what came in round t, once every neighbour has ended it; False if one has not."""
        if any(link.round < t for link in self.links.values()):
            return False
        arrived: list[tuple[Link, Obs]] = []
        for link in self.links.values():
            arrived += [(link, frame) for number, frame in link.held if number <= t]
            link.held = [(number, frame) for number, frame in link.held if number > t]
        self._exchange.obs_in_order(arrived)
        return True
