"""Nodes with one thing wrong each. The simulation has to notice every one of them.

Each mutant is (class, name of the method, the wrong method).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rumormill.live.core.agent_adapter import AgentAdapter
from rumormill.live.core.decisions import Decisions
from rumormill.live.core.exchange import Exchange
from rumormill.live.core.frames import Have, Obs, encode
from rumormill.live.core.game import Accepted, LiveGame
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import NodeConfig
from rumormill.live.core.records import Own, RemovedGame
from rumormill.live.core.signatures import Chain, Signer
from rumormill.live.core.skips import Skips
from rumormill.live.core.streams import RetainedItems

Mutant = tuple[type, str, Callable[..., Any]]

_observe, _take_own, _accept, _have, _about = (
    LiveGame.observe,
    LiveGame._take_own,
    LiveGame.accept,
    Exchange.have,
    Exchange._stream_frame,
)
_committed, _state, _restore = LiveGame.committed, Decisions.state, LiveGame.restore
_append, _own, _skip = RetainedItems.append, AgentAdapter.own, LiveGame.skip


def tells_before_the_disk(self: LiveGame, *given: Any) -> Accepted:
    found = _observe(self, *given)
    self.durable = self.own.upto
    return found


def acknowledges_before_the_disk(self: LiveGame, *given: Any) -> Accepted:
    found = _observe(self, *given)
    return Accepted(found.seq, 0, found.late, found.repeat)


def uses_numbers_before_the_disk(self: LiveGame, log: Any) -> None:
    _reserve(self, log)
    self.decisions.reserved = self.decisions.requested


_reserve = LiveGame.reserve


def goes_on_inside_the_block(self: Decisions) -> None:
    self.requested = self.reserved


def snapshot_forgets_the_last_block(self: Decisions) -> dict[str, Any]:
    return {**_state(self), "reserved": self.reserved}


def snapshot_forgets_rewards(self: Decisions) -> dict[str, Any]:
    return {**_state(self), "known": b""}


def takes_a_reward_twice(self: Decisions, t: int, *known: Any) -> None:
    return


def overwrites_rewards(self: Decisions, t: int) -> None:
    return None


def counts_no_hops(self: Exchange, link: Any, game: LiveGame, shared: Any, stream: Any) -> bytes | None:
    hops, stream.hops = stream.hops, max(stream.hops - 1, 0)
    try:
        return _about(self, link, game, shared, stream)
    finally:
        stream.hops = hops


def offers_beyond_the_budget(self: Exchange, link: Any, game: LiveGame, shared: Any, stream: Any) -> bool:
    return bool(stream.key[0] != link.peer)


def offers_nothing_to_an_origin(self: Exchange, link: Any, game: LiveGame, shared: Any, stream: Any) -> bool:
    return bool(stream.key != (link.peer, link.epoch)) and _offered(self, link, game, shared, stream)


_offered = Exchange._offered


def takes_duplicates(
    self: LiveGame, stream: Any, first: int, items: Any, head: Any, log: Any, signature: bytes = b""
) -> int:
    return _accept(self, stream, stream.upto + 1, items, head, log, signature)


def ignores_holes(
    self: Exchange, link: Any, game: LiveGame, stream: Any, hops: int, first: int, *rest: Any
) -> None:
    self._lower_hops(game, stream, hops)
    items, head, *signature = rest
    if game.accept(stream, min(first, stream.upto + 1), items, head, self._node.log, *signature):
        self.mark_unsent(game, stream.key)


def gives_up_the_highest_floor(self: Skips, game: LiveGame, stream: Any, since: float) -> int:
    floors = [
        shared.floors.get(stream.key, 0)
        for link in self._node.links.values()
        for shared in link.games.values()
    ]
    return max(floors, default=0)


def asks_only_those_who_gave_up(self: Skips, game: LiveGame, shared: Any, stream: Any, patient: bool) -> bool:
    """Who still keeps it, and has only said so, does not count."""
    return bool(shared.floors.get(stream.key, 0) > stream.upto)


def believes_relays(self: Skips, game: LiveGame, key: Any, upto: int) -> bool:
    """A relay's Skip is taken for the origin's."""
    return True


def never_gives_up(self: Skips) -> None:
    return


def forgets_hops(self: Exchange, link: Any, frame: Have) -> None:
    lower, self._lower_hops = self._lower_hops, lambda *given: None  # type: ignore[method-assign]
    _have(self, link, frame)
    self._lower_hops = lower  # type: ignore[method-assign]


def lowers_hops_too_far(self: Exchange, game: LiveGame, stream: Any, hops: int) -> None:
    stream.hops = min(stream.hops, max(hops - 1, 1))


def skips_without_a_record(self: LiveGame, stream: Any, upto: int, log: Any, proof: Any = None) -> None:
    _skip(self, stream, upto, lambda record: 0, proof)


def heads_without_a_record(
    self: LiveGame, stream: Any, first: int, items: Any, head: Any, log: Any, signature: bytes = b""
) -> int:
    def without(record: Any) -> int:
        return int(log(msgspec.structs.replace(record, head=None)))

    return _accept(self, stream, first, items, head, without, signature)


def keeps_pulls_pending(self: Decisions, t: int) -> Any:
    return self.open.pop(t, None)


def closes_without_a_record(self: LiveGame, t: int, log: Any) -> None:
    self.decisions.close(t)


def refuses_its_own_past(self: Exchange, link: Any, frame: Obs) -> Any:
    if frame.origin == self._node.config.node:
        return None
    return _checked(self, link, frame)


_checked = Exchange._checked


def believes_old_words(self: Exchange, link: Any, frame: Have) -> None:
    shared = link.games.get(frame.game)
    before = {} if shared is None else dict(shared.has)
    _have(self, link, frame)
    if shared is not None:
        for key, upto in before.items():
            shared.has[key] = max(shared.has.get(key, 0), upto)


def keeps_everything(self: RetainedItems, items: Any) -> None:
    self._limit = 1 << 40
    _append(self, items)


def keeps_one_too_few(self: RetainedItems, items: Any) -> None:
    _append(self, items)
    if self.last - self.floor > 1:
        self.floor += 1


def commits_one_too_many(self: LiveGame, record: int) -> bool:
    return _committed(self, record + 1)


def gives_own_samples_twice(self: AgentAdapter, t: int, arm: int, reward: float) -> Any:
    told = _own(self, t, arm, reward)
    self.agent.samples.add(arm, reward)
    return told


def says_nothing_again(self: Exchange, link: Any) -> None:
    """Only the first word of a connection: a hole is never mended."""
    if link.next_have > link.opened:
        link.next_have = self._node.now + 1e9
        return
    link.next_have = self._node.now + 3.0
    for name in link.games:
        game = self._node.games[name]
        rows = [self._row(game, stream) for stream in game.streams.values()]
        link.control.append(encode(Have(name, rows, full=True)))


def forgets_open_choices(self: Node, *given: Any) -> None:
    _restart(self, *given)
    for game in self.games.values():
        game.decisions.open.clear()
        game.decisions.pending = [0] * game.config.n_arms


_restart = Node.restart


def believes_any_seal(self: LiveGame, *given: Any) -> bool:
    return True


def asks_no_origin(self: Signer, game: str, key: Any, point: Any) -> bool:
    """Whether anybody at all signed it."""
    words = self._message(game, key, point.upto, point.digest, point.head)
    return any(self.verify(v, words, point.signature) for v in range(6))


def keeps_one_point(self: Chain, point: Any, floor: int) -> None:
    self.points = [point]


def forgets_the_chain(self: Chain, state: Any) -> None:
    _restore_chain(self, state)
    self.digest = bytes(32)


def publishes_what_it_would_tell_now(self: LiveGame, record: Any) -> None:
    """After a restart a quiet agent may tell more than it did."""
    if isinstance(record, Own) and not self._is_other_game:
        record = msgspec.structs.replace(record, seq=self.own.upto + 1)
    _replay(self, record)


_restore_chain, _replay = Chain.restore, LiveGame.replay

WRONG: list[Mutant] = [
    (LiveGame, "observe", tells_before_the_disk),
    (LiveGame, "observe", acknowledges_before_the_disk),
    (LiveGame, "reserve", uses_numbers_before_the_disk),
    (Decisions, "restart", goes_on_inside_the_block),
    (Decisions, "state", snapshot_forgets_the_last_block),
    (Decisions, "state", snapshot_forgets_rewards),
    (Decisions, "remember", takes_a_reward_twice),
    (Decisions, "known", overwrites_rewards),
    (Exchange, "_stream_frame", counts_no_hops),
    (Exchange, "_offered", offers_beyond_the_budget),
    (Exchange, "_offered", offers_nothing_to_an_origin),
    (LiveGame, "accept", takes_duplicates),
    (Exchange, "_take", ignores_holes),
    (Skips, "skip_unavailable", never_gives_up),
    (Skips, "_is_origins", believes_relays),
    (Exchange, "have", forgets_hops),
    (Exchange, "_lower_hops", lowers_hops_too_far),
    (LiveGame, "skip", skips_without_a_record),
    (LiveGame, "accept", heads_without_a_record),
    (Decisions, "close", keeps_pulls_pending),
    (LiveGame, "_close", closes_without_a_record),
    (Exchange, "_checked", refuses_its_own_past),
    (Exchange, "have", believes_old_words),
    (RetainedItems, "append", keeps_everything),
    (LiveGame, "committed", commits_one_too_many),
    (AgentAdapter, "own", gives_own_samples_twice),
    (Exchange, "send_have", says_nothing_again),
    (Node, "restart", forgets_open_choices),
    (LiveGame, "replay", publishes_what_it_would_tell_now),
    (LiveGame, "proven", believes_any_seal),
    (Signer, "verifies", asks_no_origin),
    (Chain, "add", keeps_one_point),
    (Chain, "restore", forgets_the_chain),
]
# What is given up too early is noticed only where a node was away for long and the others keep little.
WRONG_AFTER_AN_ABSENCE: list[Mutant] = [
    (Skips, "_common_floor", gives_up_the_highest_floor),
    (Skips, "_supplies", asks_only_those_who_gave_up),
]
MUTANTS = {wrong.__name__: (cls, name, wrong) for cls, name, wrong in WRONG}
AFTER_AN_ABSENCE = {wrong.__name__: (cls, name, wrong) for cls, name, wrong in WRONG_AFTER_AN_ABSENCE}

_reconfigure, _replay_removed = Node.reconfigure, RemovedGame.replay


def links_keep_the_games_of_the_old_file(self: Node, config: NodeConfig) -> None:
    agreed = {name: dict(link.games) for name, link in self.links.items()}
    _reconfigure(self, config)
    for name, link in self.links.items():
        link.games, link.outdated = agreed[name], False


def a_removed_game_leaves_nothing(self: Node, config: NodeConfig) -> None:
    _reconfigure(self, config)
    self._removed.clear()


def a_removed_game_leaves_no_numbers_after_a_restart(self: RemovedGame, record: Any) -> None:
    before = self.t
    _replay_removed(self, record)
    self.t = before


AFTER_A_CHANGE: dict[str, Mutant] = {
    each.__name__: (cls, method, each)
    for cls, method, each in (
        (Node, "reconfigure", links_keep_the_games_of_the_old_file),
        (Node, "reconfigure", a_removed_game_leaves_nothing),
        (RemovedGame, "replay", a_removed_game_leaves_no_numbers_after_a_restart),
    )
}
