"""One game at one node: its decisions, streams and agent, and the records of all that changes them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from rumormill.arms.base import levelled
from rumormill.live.core.agent_adapter import AgentAdapter
from rumormill.live.core.decisions import Decisions, Known, check_of
from rumormill.live.core.frames import Head, Item, Key, Rows, head_from
from rumormill.live.core.node_config import GameConfig
from rumormill.live.core.records import (
    REMOVED,
    Born,
    Carried,
    Constrained,
    Decision,
    Drawn,
    DrawnOwn,
    Expired,
    Hold,
    Own,
    Peer,
    Record,
    Renewed,
    Reserve,
    ScaledOwn,
    ShiftedOwn,
    Skipped,
    Weighted,
    last_item,
    limits_of,
    sample_of,
    weight_of,
)
from rumormill.live.core.signatures import BEGIN, Chain, Point, Signer, chained
from rumormill.live.core.streams import (
    UNKNOWN,
    ItemStore,
    Stream,
    capped,
    is_newer,
    is_valid_head,
    most_samples,
    packable,
)
from rumormill.live.core.verdicts import Verdicts
from rumormill.mesh.file import Limits
from rumormill.validate import LARGEST_REWARD

# Own heads kept while their items are not on disk.
MOST_HEADS = 1_024


@dataclass
class Held:
    """The own stream as found on disk: later items are not sent until it is known to be the newest."""

    upto: int
    digest: bytes = b""
    head: Head | None = None
    since: float | None = None  # when neighbours were first asked
    release: int | None = None
    """The record that says it is the newest: when that is on disk, later items may be sent."""


class GameState:
    """The state of one game on one node: the agent, the own decisions, all streams."""

    def __init__(
        self,
        config: GameConfig,
        node: int,
        epoch: int,
        limits: Limits,
        signer: Signer | None = None,
        store: ItemStore | None = None,
    ) -> None:
        self.config, self.node, self.limits, self.signer = config, node, limits, signer
        self._store = store
        self.adapter = AgentAdapter(config, node)
        self.decisions = Decisions(config.n_arms, limits)
        self.verdicts = Verdicts(config.n_arms, config.moments)
        # Signed items are sent from one point to the next: one more batch, so that `retain` items can be had.
        self._retain = limits.retain + (limits.batch if signer is not None else 0)
        self.own = self._new_stream((node, epoch))
        self.streams: dict[Key, Stream] = {self.own.key: self.own}
        self.durable = 0
        """The last item of the own stream that is on disk; later ones are not sent."""
        self.held: Held | None = None
        """None once the own stream on disk is known to be the newest."""
        # (record, seq, digest) of own items not on disk
        self._waiting: deque[tuple[int, int, bytes]] = deque()
        self._heads: deque[tuple[int, Head]] = deque(maxlen=MOST_HEADS)  # (seq, head) likewise
        self._reserves: deque[tuple[int, int]] = deque()  # (record, upto) likewise
        self.void = 0
        """Items that are no samples: arm out of range, reward not finite."""
        self.late = self.chosen = self.observed = 0
        self._is_other_game = False  # records of an earlier game of this name
        self.is_carried = False  # whether what an earlier revision learned was taken over from its snapshot
        self.born: Born | None = None
        """Of a request class: the record that made it."""
        self.differing = 0
        """Decisions that a replay made differently: 0 if the agent is deterministic."""

    def _new_stream(self, key: Key) -> Stream:
        """A stream without items; not offered until its number of hops is known, own ones came by none."""
        chain = None if self.signer is None else Chain(self.limits.batch)
        return Stream(key, self._retain, 0 if key[0] == self.node else UNKNOWN, chain, self._store)

    @property
    def published(self) -> int:
        """The last item of the own stream that may be sent."""
        return self.durable if self.held is None else min(self.durable, self.held.upto)

    # --- games of one name --------------------------------------------------------------------------

    @property
    def numbers(self) -> tuple[int, int, bytes]:
        """The last decision number, the last item of the own stream, and the digest up to it."""
        digest = b"" if self.own.chain is None else self.own.chain.digest
        return self.decisions.requested, self.own.upto, digest

    def follow(self, numbers: tuple[int, int, bytes], durable: int = 0, record: int = 0) -> None:
        """Continue behind an earlier game of this name: no decision or item number is used twice.

        Items of its stream that are not on disk yet are durable once `record` is.
        """
        t, seq, digest = numbers
        self.decisions.begin_after(t)
        self.own.retained.restart(seq)
        self.durable = durable
        if self.own.chain is not None:
            self.own.chain.digest = digest or BEGIN
        self._waiting.clear()
        self._publish_after(record, seq)

    def learn_from(self, state: dict[str, Any]) -> bool:
        """Take over what another revision has learned of the arms that stay, and how far it was."""
        kind, *arms = state.get("arms", [""])
        places = [arms.index(name) if name in arms else None for name in self.config.arms]
        if kind != self.config.kind or not any(place is not None for place in places):
            return False
        if not self.adapter.carry(state["player"], places):
            return False
        self._continue([[*row[:2], last_item(row)[0], *row[5:6]] for row in state["streams"]])
        return True

    def _continue(self, reached: list[Any]) -> None:
        """Go on with the streams of others behind the items that another revision has accepted."""
        for origin, epoch, upto, *chain in reached:
            stream = self.stream((int(origin), int(epoch)))
            if stream is not None and stream is not self.own:
                stream.retained.restart(int(upto))
                if stream.chain is not None:  # its last point is proof that the items before it were
                    digest, points = chain[0]
                    stream.chain.restore([digest, [point for point in points if point[0] == upto]])

    def log_carried(self, log: Callable[[Record], int]) -> None:
        """Record what was taken over, after the first record of this revision."""
        reached = [
            [*stream.key, stream.upto, *([] if stream.chain is None else [stream.chain.state()])]
            for stream in self.streams.values()
        ]
        log(Carried(self.config.name, msgspec.msgpack.encode([self.adapter.state(), reached])))

    # --- the disk -----------------------------------------------------------------------------------

    def _publish_after(self, record: int, seq: int) -> None:
        """Publish item `seq` of the own stream (0: none) once `record` is on disk."""
        if seq:
            chain = self.own.chain
            self._waiting.append((record, seq, b"" if chain is None else chain.digest))

    def committed(self, record: int) -> bool:
        """Records up to this one are on disk; True if there are own items to send."""
        while self._reserves and self._reserves[0][0] <= record:
            self.decisions.reserved = self._reserves.popleft()[1]
        self.decisions.committed(record)
        before, digest = self.published, b""
        if self.held is not None and self.held.release is not None and self.held.release <= record:
            self.held = None
        while self._waiting and self._waiting[0][0] <= record:
            _, seq, after = self._waiting.popleft()
            # From every point one batch reaches the next: also over the items of a weighted reward.
            jumps = seq - self.durable > 1 and seq // self.limits.batch > self.durable // self.limits.batch
            if jumps and digest:
                self._sign(self.durable, digest, None)
            self.durable, digest = seq, after
            if self.own.chain is not None and (jumps or seq % self.limits.batch == 0):
                self._sign(seq, digest, None)
        while self._heads and self._heads[0][0] <= self.durable:
            self.own.head = self._heads.popleft()[1]
        if digest:
            self._sign(self.durable, digest, self.own.head)
        return self.published > before

    def _sign(self, upto: int, digest: bytes, head: Head | None) -> None:
        """Sign a point of the own stream, in a mesh with signatures."""
        if self.signer is not None and self.own.chain is not None:
            point = self.signer.sign_point(self.config.name, self.own.key, upto, digest, head)
            self.own.chain.add(point, min(self.own.retained.floor, upto))

    # --- streams ------------------------------------------------------------------------------------

    def stream(self, key: Key) -> Stream | None:
        """The stream, created if it is new; None if its origin has too many."""
        found = self.streams.get(key)
        if found is None:
            epochs = sum(origin == key[0] for origin, _ in self.streams)
            if epochs >= self.limits.epochs:
                return None
            found = self.streams[key] = self._new_stream(key)
        return found

    def forget(self, stream: Stream) -> None:
        """Drop a stream of which nothing was verified, neither an item nor a Skip."""
        if stream.upto == 0 and stream.skip_since is None and stream is not self.own:
            self.streams.pop(stream.key, None)

    # --- restart ------------------------------------------------------------------------------------

    def restart(self) -> None:
        """End a replay: everything replayed is on disk."""
        self.committed(0)
        self.durable = self.own.upto
        while self._heads:
            self.own.head = self._heads.popleft()[1]
        self.decisions.restart()

    def state(self) -> dict[str, Any]:
        """As plain data, as of the last record, for snapshots."""
        verdicts = {} if self.verdicts.moments is None else {"verdicts": self.verdicts.state()}
        born = {} if self.born is None else {"born": [self.born.mean, self.born.n, self.born.spread]}
        return (
            verdicts
            | born
            | {
                "fingerprint": self.config.fingerprint,
                "arms": [self.config.kind, *self.config.arms],
                "player": self.adapter.state(),
                "choices": self.decisions.state(),
                "own": self.own.key[1],
                "waiting": [[seq, digest] for _, seq, digest in self._waiting] if self.signer else [],
                "heads": [[seq, head.t, head.arm, head.rows] for seq, head in self._heads],
                "streams": [stream.state() for stream in self.streams.values()],
                "void": self.void,
                **({} if self.held is None or self.held.release else {"held": _plain_held(self.held)}),
            }
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` described."""
        if state["fingerprint"] != self.config.fingerprint:
            self._is_other_game = True
            own = next(each for each in state["streams"] if tuple(each[:2]) == self.own.key)
            self.follow((int(state["choices"]["reserved"]), *last_item(own)))
            self.is_carried = self.learn_from(state)
            return
        self.adapter.restore(state["player"])
        self.decisions.restore(state["choices"])
        for each in state["streams"]:
            stream = self._new_stream((int(each[0]), int(each[1])))
            stream.restore(each)
            self.streams[stream.key] = stream
        self.own = self.streams[self.own.key]
        # Durable now, even if they were not when the snapshot was made: it was written after them.
        self._waiting.extend((0, int(seq), bytes(digest)) for seq, digest in state.get("waiting", ()))
        for seq, t, arm, rows in state["heads"]:
            self._heads.append((int(seq), Head(int(t), int(arm), tuple(map(tuple, rows)))))
        self.void = int(state["void"])
        self.verdicts.restore(state.get("verdicts"))
        if "held" in state:
            upto, digest, head = state["held"]
            self.held = Held(int(upto), bytes(digest), head_from(head))


def _plain_held(held: Held) -> list[Any]:
    """As plain data, for snapshots."""
    return [held.upto, held.digest, None if held.head is None else held.head.plain()]


class Refused(Exception):
    """An observation that is refused; `kind` is one of conflict, old, future, number, arm."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Accepted:
    """An accepted observation. It may be acknowledged once `record` is on disk."""

    seq: int
    record: int
    late: bool = False
    repeat: bool = False


class LiveGame(GameState):
    """One game of one node: decisions, rewards, and the streams of others."""

    # --- decisions -------------------------------------------------------------------------------------

    def choose(
        self,
        now: float,
        ttl: float,
        alone: bool,
        log: Callable[[Record], int],
        allowed: list[int] | None = None,
        k: int = 1,
        propensity: bool = False,
    ) -> tuple[int, list[int], float | None]:
        """(t, arms, propensity) of the next decision: the best k of the arms that are allowed (None: all).

        The propensity is worked out and recorded if it is asked for, here or by the configuration.
        """
        decisions = self.decisions
        t = decisions.take_number(now)
        for old in decisions.outdated():
            self._close(old, log)
        arm, *others = self.adapter.choose(t, decisions.pending, alone, allowed, k)
        chance = self.adapter.propensity(arm) if propensity or self.config.propensities else None
        decisions.add(t, arm, now + ttl, others, chance)
        self.chosen += 1
        row = (self.config.name, t, arm, now + ttl, alone)
        if chance is not None:
            log(Drawn(*row, allowed, others, chance))
        else:
            log(Decision(*row) if allowed is None and not others else Constrained(*row, allowed, others))
        self.reserve(log)
        return t, [arm, *others], chance

    def reserve(self, log: Callable[[Record], int]) -> None:
        """Request more decision numbers if few are left."""
        upto = self.decisions.to_reserve()
        if upto is not None:
            self.decisions.requested = upto
            self._reserves.append((log(Reserve(self.config.name, upto, self.config.fingerprint)), upto))

    def observe(
        self, t: int, arm: int, reward: float, log: Callable[[Record], int], weight: int = 1
    ) -> Accepted:
        """Accept the reward of an own decision, as `weight` samples; Refused says why not."""
        offset, scale = self.config.offset, self.config.scale
        sample = float(levelled(reward, offset, scale))
        for each in (reward, sample):
            self._require_sample(arm, each)
        if not 1 <= weight <= self.limits.batch:
            raise Refused("number", f"weight = {weight}: a whole number from 1 to {self.limits.batch}")
        decisions = self.decisions
        if not 1 <= t < decisions.next_t:
            raise Refused("future", f"decision {t} was never made")
        if decisions.too_old(t):
            raise Refused(
                "old",
                f"decision {t} is more than {self.limits.window:,} decisions or "
                f"{self.limits.window_seconds:g} seconds ago, or of another game",
            )
        further = arm in decisions.others.get(t, ())
        known = decisions.others[t][arm] if further else decisions.known(t)
        if known is not None:
            if known.check != check_of(arm, reward):
                raise Refused("conflict", f"decision {t} already has another reward")
            return Accepted(known.seq, known.record, repeat=True)
        was_open = decisions.open.get(t)
        if was_open is not None and was_open.arm != arm and not further:
            raise Refused("conflict", f"decision {t} was for another arm")
        seq = self._take_own(t, arm, sample, weight)
        row = (self.config.name, t, arm, reward, seq, self.config.arms[arm] if self.config.arms else "")
        chance = None if further else decisions.propensities.get(t)
        if offset or scale != 1.0:
            level = weight, math.nan if chance is None else chance, offset
            record = log(ShiftedOwn(*row, *level) if scale == 1.0 else ScaledOwn(*row, *level, scale))
        elif chance is not None:
            record = log(DrawnOwn(*row, weight, chance))
        else:
            record = log(Own(*row) if weight == 1 else Weighted(*row, weight))
        self._publish_after(record, seq)
        self._remember(t, arm, reward, seq, record)
        self.observed += 1
        self.late += was_open is None
        return Accepted(seq, record, late=was_open is None)

    def _remember(self, t: int, arm: int, reward: float, seq: int, record: int) -> None:
        """Store an accepted reward; that of the first arm closes its decision."""
        if arm in self.decisions.others.get(t, ()):
            self.decisions.others[t][arm] = Known(check_of(arm, reward), seq, record)
        else:
            self.decisions.close(t)
            self.decisions.propensities.pop(t, None)
            self.decisions.remember(t, arm, reward, seq, record)

    def _require_sample(self, arm: int, reward: float) -> None:
        """Refuse an arm out of range or a reward that is not finite."""
        if not self.is_sample(arm, reward):
            if 0 <= arm < self.config.n_arms:
                raise Refused(
                    "number", f"reward {reward!r} is not a finite number of at most {LARGEST_REWARD:g}"
                )
            raise Refused("arm", f"there is no arm {arm}")

    def is_sample(self, arm: int, reward: float) -> bool:
        """Whether arm and reward are in range; NaN fails every comparison."""
        return 0 <= arm < self.config.n_arms and -LARGEST_REWARD <= reward <= LARGEST_REWARD

    def _take_own(self, t: int, arm: int, reward: float, weight: int, published: bool | None = None) -> int:
        """Pass the own sample to the agent `weight` times; its last number in the stream, 0 if not sent.

        All of them are published or none: as the agent decides on the first one, or as a record says.
        """
        seq = 0
        self.verdicts.add(arm, reward)
        for _ in range(weight):
            sent = self.adapter.own(t, arm, reward)
            published = sent is not None if published is None else published
            if published:
                seq = self._publish(t, arm, reward, () if sent is None else sent.rows)
        return seq

    def _publish(self, t: int, arm: int, reward: float, rows: Rows) -> int:
        """Append an item to the own stream; its number."""
        self.own.retained.append([(t, arm, reward)])
        if self.own.chain is not None:
            self.own.chain.digest = chained(self.own.chain.digest, [(t, arm, reward)])
        newest = self._heads[-1][1] if self._heads else self.own.head
        if newest is None or t > newest.t:
            self._heads.append((self.own.upto, Head(t, arm, rows)))
        return self.own.upto

    def abandon(self, t: int, log: Callable[[Record], int], arm: int | None = None) -> bool:
        """Close a decision whose reward (of its first `arm`) will not arrive; False if it was not open."""
        if t not in self.decisions.open or arm not in (None, self.decisions.open[t].arm):
            return False
        self._close(t, log)
        return True

    def expire(self, now: float, log: Callable[[Record], int]) -> None:
        """Close decisions that have expired."""
        for t in self.decisions.overdue(now):
            self._close(t, log)

    def _close(self, t: int, log: Callable[[Record], int]) -> None:
        self.decisions.close(t)
        log(Expired(self.config.name, t))

    # --- streams of others -----------------------------------------------------------------------------

    def proven(
        self, stream: Stream, first: int, items: list[Item], head: Head | None, signature: bytes
    ) -> bool:
        """Whether the origin signed these items (no hole before them); True without signatures."""
        if self.signer is None or stream.chain is None:
            return True
        last = first + len(items) - 1
        if last < stream.upto:
            return False  # known already: its digest cannot be computed any more
        new = [packable(item) for item in items[stream.upto + 1 - first :]]
        point = Point(last, chained(stream.chain.digest, new), head, signature)
        return self.signer.verifies(self.config.name, stream.key, point)

    def accept(
        self,
        stream: Stream,
        first: int,
        items: list[Item],
        head: Head | None,
        log: Callable[[Record], int],
        signature: bytes = b"",
    ) -> int:
        """Accept the new ones of items first, first + 1, ... (no hole before them); how many were new."""
        new = items[stream.upto + 1 - first :] if first <= stream.upto else items
        if new or is_newer(stream, head):
            start = stream.upto + 1
            self._take(stream, new, head, signature)
            log(Peer(self.config.name, *stream.key, start, new, head, signature))
        return len(new)

    def _take(self, stream: Stream, items: list[Item], newest: Head | None, signature: bytes) -> None:
        """Pass items and head to the agent and append them to the stream."""
        origin, head = stream.key[0], self._acceptable(stream, newest)
        items = [packable(item) for item in items]
        kept = stream.retained
        last = kept.between(kept.last, 1)[0][:2] if kept.last > kept.floor else ()
        for t, arm, reward in items:
            if not self.is_sample(arm, reward):
                self.void += 1
                continue
            if (t, arm) != last:  # else a further copy of a weighted reward
                self.verdicts.add(arm, reward)
                last = (t, arm)
            if origin == self.node:  # an earlier epoch, before the own disk was lost
                self.adapter.own(t, arm, reward)
            else:
                self.adapter.others(origin, arm, reward)
        if items:
            stream.retained.append(items)
            stream.skip_since = None
        if stream.chain is not None:
            stream.chain.digest = chained(stream.chain.digest, items)
            stream.chain.add(
                Point(stream.upto, stream.chain.digest, newest, signature), stream.retained.floor
            )
        if head is not None:
            stream.head = head
            if origin != self.node:
                self.adapter.update_head(stream.key, head)

    def _acceptable(self, stream: Stream, head: Head | None) -> Head | None:
        """The head if it is newer than the known one, without rows that are impossible."""
        if head is None or not is_newer(stream, head):
            return None
        if not is_valid_head(head, self.config.n_arms):
            self.void += 1
            return None
        if not head.rows:
            return head
        origin = stream.key[0]
        reach = self.config.reach.get(origin, (origin,))
        found = capped(head, most_samples(self.streams.values(), reach))
        self.void += sum(n != given for (_, n), (_, given) in zip(found.rows, head.rows, strict=True))
        return found

    def skip(
        self, stream: Stream, upto: int, log: Callable[[Record], int], proof: Point | None = None
    ) -> None:
        """Skip items that no neighbour retains."""
        signed = () if proof is None else proof[1:]
        record = Skipped(self.config.name, *stream.key, upto, *signed)
        self._skip(stream, record)
        log(record)

    def _skip(self, stream: Stream, record: Skipped) -> None:
        # `skip_since` ends only with an item: more of a fast stream may be gone by now.
        stream.retained.restart(record.upto)
        if stream.chain is not None:
            stream.chain.digest = record.digest
            stream.chain.add(Point(record.upto, record.digest, record.head, record.signature), record.upto)

    # --- a disk that is an old copy --------------------------------------------------------------------

    def hold(self, log: Callable[[Record], int]) -> None:
        """Send no new own items until neighbours have shown that the disk is the newest."""
        if self.held is None:
            self._hold(True)
            log(Hold(self.config.name, True))

    def release(self, log: Callable[[Record], int]) -> None:
        """The disk is the newest: send new items once this is recorded on it."""
        assert self.held is not None
        self.held.release = log(Hold(self.config.name, False))

    def _hold(self, wanted: bool) -> None:
        head = self._heads[-1][1] if self._heads else self.own.head
        self.held = Held(*self.numbers[1:], head) if wanted else None

    def advance_held(self, shown: list[Item]) -> int:
        """Of items that follow the known ones elsewhere, how many are the held ones: these are known now."""
        held, count = self.held, 0
        assert held is not None
        if held.upto >= self.own.retained.floor:
            mine = self.own.retained.between(held.upto + 1, min(len(shown), self.own.upto - held.upto))
            while count < len(mine) and mine[count] == tuple(shown[count]):
                count += 1
            held.digest = held.digest and chained(held.digest, mine[:count])
            held.upto += count
        return count

    def renew(self, epoch: int, log: Callable[[Record], int]) -> None:
        """The disk is an old copy: begin another own stream with what was held."""
        for t in list(self.decisions.open):
            self._close(t, log)
        upto = self.durable if self.held is None else self.held.upto
        self._renew(epoch, upto, log(Renewed(self.config.name, epoch, upto)))

    def _renew(self, epoch: int, upto: int, record: int) -> None:
        past, batch = self.own, self.limits.batch
        newest = self._heads[-1][1] if self._heads else past.head
        first = max(upto, past.retained.floor) + 1
        moved = past.retained.between(first, past.upto - first + 1)
        past.head = past.head if self.held is None else self.held.head
        if past.chain is not None:
            past.chain.truncate(upto, self._digest_at(upto))
            self._sign(upto, past.chain.digest, past.head)  # later points may have replaced this one
        past.retained.truncate(upto)
        if upto == 0:
            del self.streams[past.key]  # a stream without items leaves no record
        self.own = self._new_stream((self.node, epoch))
        self.streams[self.own.key] = self.own
        self.held, self.durable = None, 0
        self._waiting.clear()
        self._heads.clear()
        for start in range(0, len(moved), batch):
            items = moved[start : start + batch]
            self.own.retained.append(items)
            if self.own.chain is not None:
                self.own.chain.digest = chained(self.own.chain.digest, items)
            self._publish_after(record, self.own.upto)
        if moved and newest is not None:
            self._heads.append((self.own.upto, newest))

    def _digest_at(self, upto: int) -> bytes:
        """The digest of the own stream up to an item that is held, on disk, or to be."""
        if self.held is not None:
            count = upto - self.held.upto  # in a replay, what was advanced
            more = self.own.retained.between(self.held.upto + 1, count)
            return chained(self.held.digest, more) if count else self.held.digest
        assert self.own.chain is not None
        found = {seq: digest for _, seq, digest in self._waiting}
        found |= {point.upto: point.digest for point in self.own.chain.points}
        return {0: BEGIN, **found, self.own.upto: self.own.chain.digest}[upto]

    # --- other links, other games ----------------------------------------------------------------------

    def reconfigure(self, config: GameConfig, signer: Signer | None = None) -> None:
        """The same game on other links: the agent continues with its new part of the plan."""
        state = self.adapter.state()
        self.config, self.signer = config, signer
        self.adapter = AgentAdapter(config, self.node)
        self.adapter.restore(state)
        if config.moments != self.verdicts.moments:
            self.verdicts = Verdicts(config.n_arms, config.moments)
        for stream in self.streams.values():
            stream.hops = 0 if stream.key[0] == self.node else UNKNOWN

    def _start_anew(self) -> None:
        """Begin another game of the same name."""
        for stream in self.streams.values():
            stream.retained.restart(stream.upto)
        fresh = LiveGame(self.config, self.node, self.own.key[1], self.limits, self.signer, self._store)
        fresh.follow(self.numbers)
        fresh.born = self.born
        self.__dict__.update(fresh.__dict__)

    def _pass_by(self, record: Record) -> None:
        """Take only the numbers from a record of an earlier game."""
        if isinstance(record, Reserve):
            self.decisions.begin_after(record.upto)
        elif isinstance(record, Own) and record.seq:
            digest = b""
            if self.own.chain is not None:
                item = (record.t, record.arm, sample_of(record))
                digest = chained(self.own.chain.digest, [item] * weight_of(record))
            self.follow((self.decisions.requested, record.seq, digest))
        elif isinstance(record, Renewed):
            self.own = self._new_stream((self.node, record.epoch))
            self.streams = {self.own.key: self.own}
            self.follow((self.decisions.requested, 0, b""))

    # --- restart ---------------------------------------------------------------------------------------

    def replay(self, record: Record) -> None:
        """Repeat what a record describes."""
        if isinstance(record, Reserve):
            other = record.fingerprint not in ("", self.config.fingerprint)
            if other and not self._is_other_game:
                self._start_anew()
            if self.is_carried and (not other or record.fingerprint == REMOVED):
                # What it learned, if anything, is in the next record.
                self.adapter, self.is_carried = AgentAdapter(self.config, self.node), False
                self.streams = {self.own.key: self.own}
            self._is_other_game = other
        if self._is_other_game:
            self._pass_by(record)
            return
        match record:
            case Reserve(upto=upto):
                self.decisions.reserved = self.decisions.requested = upto
            case Decision(t=t, arm=arm, expires=expires, alone=alone):
                self.decisions.next_t = t + 1
                allowed, others = limits_of(record)
                found = self.adapter.choose(t, self.decisions.pending, alone, allowed, 1 + len(others))
                self.differing += found != [arm, *others]
                chance = record.propensity if isinstance(record, Drawn) else None
                self.decisions.add(t, arm, expires, others, chance)
            case Own(t=t, arm=arm, reward=reward, seq=seq):
                self.decisions.next_t = max(self.decisions.next_t, t + 1)
                self._take_own(t, arm, sample_of(record), weight_of(record), published=seq > 0)
                self._publish_after(0, seq)
                self._remember(t, arm, reward, seq, 0)
            case Expired(t=t):
                self.decisions.close(t)
            case Peer(origin=origin, epoch=epoch, items=items, head=head, signature=signature):
                stream = self.stream((origin, epoch))
                assert stream is not None
                self._take(stream, items, head, signature)
            case Carried(state=state):
                player, reached = msgspec.msgpack.decode(state)
                self.adapter.restore(player)
                self._continue(reached)
            case Hold(held=held):
                self._hold(held)
            case Renewed(epoch=epoch, upto=upto):
                # Only what was on disk then had been signed.
                self._waiting = deque((int(seq > upto), seq, digest) for _, seq, digest in self._waiting)
                self.committed(0)
                self._renew(epoch, upto, 0)
            case Skipped(origin=origin, epoch=epoch):
                stream = self.stream((origin, epoch))
                assert stream is not None
                self._skip(stream, record)
