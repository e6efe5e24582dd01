"""Giving up: what no neighbour keeps any more is skipped, after a while, and that is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rumormill.live.core.exchange import Link, Shared
from rumormill.live.core.frames import Skip
from rumormill.live.core.game import Game
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.signatures import Point
from rumormill.live.core.streams import UNKNOWN, Key, Stream

if TYPE_CHECKING:
    from rumormill.live.core.node import Node

# A neighbour that says it has more of a stream and does not tell it is waited for so many times as long, from
# when its link came up: what a broken link did not bring is no fault of the neighbour's.
WAITS = 10


class GivingUp:
    """The part of a node that decides what will not come any more."""

    def __init__(self, node: Node, tell: Callable[[Game, Stream], None]) -> None:
        self._node, self._tell = node, tell

    def skip(self, link: Link, frame: Skip) -> None:
        """A peer no longer keeps what comes next here."""
        node, shared = self._node, link.games.get(frame.game)
        if shared is None or frame.origin not in node.setup.members or not 1 <= frame.upto <= LAST_DECISION:
            node.violations["skip"] += 1
            return
        game, key = node.games[frame.game], (frame.origin, frame.epoch)
        stream = None if key == game.own.key else game.stream(key)
        if stream is None:
            node.violations["skip"] += 1
            return
        if game.sealer is not None:
            proof = Point(frame.upto, frame.digest, frame.head, frame.seal)
            if not game.sealer.holds(frame.game, key, proof):
                node.violations["seal"] += 1
                game.forget(stream)
                return
            if frame.upto >= shared.floors.get(key, 0):
                shared.proofs[key] = proof
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
                upto = self._beyond_reach(game, stream, stream.skip_since)
                proof = None if game.sealer is None else self._proof(game, stream.key, upto)
                if upto > stream.upto and (proof is not None or game.sealer is None):
                    game.skip(stream, upto, node.log, proof)
                    self._tell(game, stream)

    def _beyond_reach(self, game: Game, stream: Stream, since: float) -> int:
        """Up to where no linked neighbour keeps a stream; 0 while one cannot be asked."""
        floors = []
        long_ago = self._node.now - WAITS * self._node.setup.limits.skip_after
        for link in self._node.links.values():
            if link.epoch is None or link.closing is not None:
                return 0
            shared = link.games.get(game.setup.name)
            if shared is None:
                continue
            if not shared.answered:
                return 0
            floor = shared.floors.get(stream.key, 0)
            # One that says it keeps what comes next, and for long does not tell it, is not waited for.
            patient = max(since, link.opened) > long_ago
            if self._supplies(game, shared, stream, patient) and (patient or floor > stream.upto):
                floors.append(floor)
        return min(floors, default=0)

    def _proof(self, game: Game, key: Key, upto: int) -> Point | None:
        """The origin's word on a floor that a neighbour told."""
        for link in self._node.links.values():
            shared = link.games.get(game.setup.name)
            proof = None if shared is None else shared.proofs.get(key)
            if proof is not None and proof.upto == upto:
                return proof
        return None

    def _supplies(self, game: Game, shared: Shared, stream: Stream, patient: bool) -> bool:
        """Whether a neighbour has more of a stream than is here, and may tell it."""
        key, gamma = stream.key, game.setup.gamma
        if shared.claims.get(key, 0) <= stream.upto:
            return False
        hops = shared.hops.get(key, UNKNOWN)
        return key[0] == self._node.setup.node or hops < gamma or (hops == UNKNOWN and patient)
