"""An old copy of a disk: neighbours know more of a node's own stream than its disk does.

After a start from a disk, new own items are *held*: acknowledged, but not sent until all neighbours have
reported how far they know the own stream. If one shows more of it, the disk is an old copy, and the node
draws a new epoch: the held items become the first of a new stream, the earlier one a stream of the past.
"""

from __future__ import annotations

from collections.abc import Callable

from rumormill.live.core.exchange import Exchange, Link, NodeState
from rumormill.live.core.frames import Have, Obs, Skip, encode
from rumormill.live.core.game import LiveGame
from rumormill.live.core.signatures import FORGED, Point, chained
from rumormill.live.core.skips import WAITS, Skips
from rumormill.live.core.streams import packable


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
