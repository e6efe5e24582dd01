"""Skips: items that no neighbour retains are skipped after a timeout, and the skip is recorded.

A Skip is a fact only if the origin sent it over its own link, or signed it. Without signatures a relay has to
show what follows: it is asked for the items behind its floor, and the skip is recorded together with them.
"""

from __future__ import annotations

from collections.abc import Callable

from rumormill.live.core.exchange import NOT_KNOWN, Exchange, Link, NodeState, SharedGame
from rumormill.live.core.frames import Have, Key, Skip, encode
from rumormill.live.core.game import LiveGame
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.signatures import FORGED, Point
from rumormill.live.core.streams import UNKNOWN, Stream

# A neighbour that claims more of a stream than it sends is waited for this many times `skip_after`, counted
# from when it first reported and from the last skip, of which it has to hear first: what a link loses or
# delays is not its fault.
WAITS = 10


class Skips:
    """The part of a node that decides which items will not arrive any more."""

    def __init__(self, node: NodeState, exchange: Exchange) -> None:
        self._node, self._announce = node, exchange.announce
        exchange.skips_before = self.skips_before
        self.own_shown: Callable[[Link, LiveGame, Skip], None] = lambda link, game, frame: None
        """Called with a Skip of the own stream."""

    def receive(self, link: Link, frame: Skip) -> None:
        """A peer no longer retains the items that come next here."""
        node, shared = self._node, link.games.get(frame.game)
        if shared is None and node.is_class(link, frame.game):
            return
        if shared is None or frame.origin not in node.config.members or not 1 <= frame.upto <= LAST_DECISION:
            node.violations["skip"] += 1
            return
        game, key = node.games[frame.game], (frame.origin, frame.epoch)
        if key == game.own.key:
            self.own_shown(link, game, frame)
            return
        stream = game.stream(key)
        if stream is None:
            node.violations["skip"] += 1
            return
        if game.signer is not None:
            proof = Point(frame.upto, frame.digest, frame.head, frame.signature)
            if not game.signer.verifies(frame.game, key, proof):
                node.violations[FORGED] += 1
                game.forget(stream)
                return
            if frame.upto < shared.floors.get(key, 0):
                return
            shared.proofs[key] = proof
        shared.floors[key] = frame.upto  # without a signature the last one counts: others may be lies
        shared.asked.pop(key, None)
        shared.claims[key] = max(shared.claims.get(key, 0), frame.upto)
        shared.hops.setdefault(key, UNKNOWN)
        if frame.upto > stream.upto and stream.skip_since is None:
            stream.skip_since = node.now

    def skip_unavailable(self) -> None:
        """Skip items whose timeout is over and that no neighbour can supply, or ask for what follows them."""
        node = self._node
        for game in node.games.values():
            for stream in game.streams.values():
                upto = self._unavailable(game, stream)
                if upto <= stream.upto:
                    continue
                proof = None if game.signer is None else self._proof(game, stream.key, upto)
                if proof is not None or (game.signer is None and self._is_origins(game, stream.key, upto)):
                    self._skip(game, stream, upto, proof)
                    self._announce(game, stream)
                elif game.signer is None:
                    self._ask(game, stream, upto)

    def _unavailable(self, game: LiveGame, stream: Stream) -> int:
        """Up to where no neighbour retains a stream, if it was waited for long enough; else 0."""
        since, after = stream.skip_since, self._node.config.limits.skip_after
        if since is None or self._node.now - since < after:
            return 0
        return self._common_floor(game, stream, since)

    def _is_origins(self, game: LiveGame, key: Key, upto: int) -> bool:
        """Whether the origin itself reported this floor."""
        return any(
            (link.peer, link.epoch) == key and link.games[game.config.name].floors.get(key, 0) >= upto
            for link in self._node.links.values()
            if game.config.name in link.games
        )

    def _ask(self, game: LiveGame, stream: Stream, upto: int) -> None:
        """Ask those neighbours for the items after `upto` that report to retain them."""
        key = stream.key
        row = (*key, upto, stream.hops if stream.hops < UNKNOWN else NOT_KNOWN)
        for link in self._node.links.values():
            shared = link.games.get(game.config.name)
            if shared is None or shared.floors.get(key, 0) != upto or shared.asked.get(key) == upto:
                continue
            if shared.claims.get(key, 0) > upto:
                shared.asked[key] = upto
                link.control.append(encode(Have(game.config.name, [row], full=False)))

    def skips_before(self, game: LiveGame, stream: Stream, first: int) -> bool:
        """Whether items from `first` on may be accepted although some before them are missing: skip those.

        Who sends items below the floor that it reported has lied about one of them.
        """
        if game.signer is not None or self._unavailable(game, stream) != first - 1:
            return False
        self._skip(game, stream, first - 1, None)
        return True

    def _skip(self, game: LiveGame, stream: Stream, upto: int, proof: Point | None) -> None:
        game.skip(stream, upto, self._node.log, proof)
        stream.skipped_at = self._node.now

    def _common_floor(self, game: LiveGame, stream: Stream, since: float) -> int:
        """Up to where no linked neighbour retains a stream; 0 while one of them has not answered."""
        floors = []
        long_ago = self._node.now - WAITS * self._node.config.limits.skip_after
        for link in self._node.links.values():
            if link.epoch is None or link.closing is not None:
                return 0
            shared = link.games.get(game.config.name)
            if shared is None:
                continue
            if not shared.answered:
                return 0
            if (link.peer, link.epoch) == stream.key and shared.claims.get(stream.key, 0) <= stream.upto:
                return 0  # the origin itself knows of no more
            floor = shared.floors.get(stream.key, 0)
            # A neighbour that claims the next item and does not send it for long is not waited for.
            patient = max(since, shared.since, stream.skipped_at) > long_ago
            if self._supplies(game, shared, stream, patient) and (patient or floor > stream.upto):
                floors.append(floor)
        return min(floors, default=0)

    def _proof(self, game: LiveGame, key: Key, upto: int) -> Point | None:
        """The origin's signed point at a floor that a neighbour sent."""
        for link in self._node.links.values():
            shared = link.games.get(game.config.name)
            proof = None if shared is None else shared.proofs.get(key)
            if proof is not None and proof.upto == upto:
                return proof
        return None

    def _supplies(self, game: LiveGame, shared: SharedGame, stream: Stream, patient: bool) -> bool:
        """Whether a neighbour has more of a stream than is known here, within the hop budget."""
        key, gamma = stream.key, game.config.gamma
        if shared.claims.get(key, 0) <= stream.upto:
            return False
        hops = shared.hops.get(key, UNKNOWN)
        return key[0] == self._node.config.node or hops < gamma or (hops == UNKNOWN and patient)
