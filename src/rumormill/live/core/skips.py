"""Skips: items that no neighbour retains are skipped after a timeout, and the skip is recorded.

A Skip is a fact only if the origin sent it over its own link, or signed it. Without signatures a relay has to
show what follows: it is asked for the items behind its floor, and the skip is recorded together with them.

An old copy of a disk: neighbours know more of a node's own stream than its disk does.

After a start from a disk, new own items are *held*: acknowledged, but not sent until all neighbours have
reported how far they know the own stream. If one shows more of it, the disk is an old copy, and the node
draws a new epoch: the held items become the first of a new stream, the earlier one a stream of the past.
"""

from __future__ import annotations

from collections.abc import Callable

from rumormill.live.core.exchange import NOT_KNOWN, Exchange, Link, NodeState, SharedGame
from rumormill.live.core.frames import Have, Key, Obs, Skip, encode
from rumormill.live.core.game import LiveGame
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.signatures import FORGED, Point, chained
from rumormill.live.core.streams import UNKNOWN, Stream, packable

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


class OldCopy:
    """The part of a node that finds out whether its disk is the newest."""

    def __init__(
        self, node: NodeState, exchange: Exchange, skips: Skips, draw_epoch: Callable[[], None]
    ) -> None:
        """`draw_epoch` begins new own streams in all games."""
        self._node, self._exchange, self._draw_epoch = node, exchange, draw_epoch
        exchange.own_shown = self._obs
        skips.own_shown = self._skip

    def tick(self) -> None:
        """Send the held items of games of whose own stream no neighbour knows more."""
        for game in self._node.games.values():
            held = game.held
            if held is not None and held.release is None and self._is_newest(game, held.upto):
                game.release(self._node.log)

    def _is_newest(self, game: LiveGame, upto: int) -> bool:
        """Whether neighbours have answered, and none of them knows more, or shows it in time."""
        node, waited, key = self._node, self._waited(game), game.own.key
        linked = {link.peer: link.games.get(game.config.name) for link in node.links.values() if link.epoch}
        answered = [each for each in linked.values() if each is not None and each.answered]
        if any(each.claims.get(key, 0) > upto for each in answered):
            return waited > WAITS * node.config.limits.silence
        missing = node.config.neighbours - {
            peer for peer, each in linked.items() if each is None or each.answered
        }
        return bool(answered) and (not missing or waited > node.config.limits.silence)

    def _waited(self, game: LiveGame) -> float:
        assert game.held is not None
        if game.held.since is None:
            game.held.since = self._node.now
        return self._node.now - game.held.since

    def _known(self, game: LiveGame) -> int:
        """The items of the own stream that others may know."""
        return game.own.upto if game.held is None else game.held.upto

    def _obs(self, link: Link, game: LiveGame, frame: Obs) -> None:
        """A neighbour sends items of the own stream, because it knows more of it than was reported to it."""
        node, held, last = self._node, game.held, frame.first + len(frame.items) - 1
        if last <= self._known(game):
            return  # overtaken by what was sent since
        if (
            held is None
            or held.release
            or frame.first < 1
            or not 0 < len(frame.items) <= node.config.limits.batch
        ):
            node.violations["own"] += 1
            return
        new = [packable(item) for item in frame.items[max(0, held.upto + 1 - frame.first) :]]
        if game.signer is not None:
            digest = chained(held.digest, new)
            if not game.signer.verifies(
                game.config.name, game.own.key, Point(last, digest, frame.head, frame.signature)
            ):
                node.violations[FORGED] += 1
                return
        # The copy may have been made while items were held that were sent later: those are no other items.
        if frame.first > held.upto + 1 or game.advance_held(new) < len(new):
            self._draw_epoch()

    def _skip(self, link: Link, game: LiveGame, frame: Skip) -> None:
        """A neighbour no longer retains what follows on the disk: ask for what it has behind that."""
        node, held, key = self._node, game.held, game.own.key
        if frame.upto <= self._known(game):
            return  # overtaken by what was sent since
        if held is None or held.release:
            node.violations["skip"] += 1
        elif game.signer is None:
            row = (*key, frame.upto, 0)
            link.control.append(encode(Have(game.config.name, [row], full=False)))
        elif game.signer.verifies(
            frame.game, key, Point(frame.upto, frame.digest, frame.head, frame.signature)
        ):
            self._draw_epoch()
        else:
            node.violations[FORGED] += 1
