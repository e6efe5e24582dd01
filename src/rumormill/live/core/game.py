"""One game at one node: its decisions, streams and agent, and the records of all that changes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rumormill.live.core.agent_adapter import Player
from rumormill.live.core.decisions import Choices, Known
from rumormill.live.core.frames import Head, Item, Rows
from rumormill.live.core.node_config import GameSetup
from rumormill.live.core.records import Choice, Expired, Own, Peer, Record, Reserve, Skipped
from rumormill.live.core.signatures import BEGIN, Chain, Point, Sealer, chained
from rumormill.live.core.streams import (
    UNKNOWN,
    Key,
    Stream,
    believed,
    is_newer,
    makes_sense,
    most_samples,
    packable,
)
from rumormill.mesh.file import Limits
from rumormill.validate import LARGEST_REWARD

# Of own heads that are not on disk yet, so many are remembered.
MOST_HEADS = 1_024


class Knowledge:
    """The agent, the own choices, and all streams."""

    def __init__(
        self, setup: GameSetup, node: int, epoch: int, limits: Limits, sealer: Sealer | None = None
    ) -> None:
        self.setup, self.node, self.limits, self.sealer = setup, node, limits, sealer
        self.player = Player(setup, node)
        self.choices = Choices(setup.n_arms, limits)
        # Signed items are told from one point to another: a batch more is kept, so that `retain` can be had.
        self._retain = limits.retain + (limits.batch if sealer is not None else 0)
        self.own = Stream((node, epoch), self._retain, hops=0, chain=self._chain())
        self.streams: dict[Key, Stream] = {self.own.key: self.own}
        self.durable = 0
        """The last item of the own stream that is on disk: more is not told."""
        # (record, seq, digest) of own items not on disk
        self._waiting: deque[tuple[int, int, bytes]] = deque()
        self._heads: deque[tuple[int, Head]] = deque(maxlen=MOST_HEADS)  # (seq, head) likewise
        self._reserves: deque[tuple[int, int]] = deque()  # (record, upto) likewise
        self.void = 0
        """Items that were no samples: arm out of range, reward not a number."""
        self.late = self.chosen = self.observed = 0
        self._other_game = False  # the records are of a game that had this name before
        self.differing = 0
        """Choices that a replay made otherwise: always 0, or the agent is not deterministic."""

    def _chain(self) -> Chain | None:
        return None if self.sealer is None else Chain(self.limits.batch)

    # --- games of one name --------------------------------------------------------------------------

    @property
    def numbers(self) -> tuple[int, int, bytes]:
        """The last decision number, the last item of the own stream, and the digest up to it."""
        digest = b"" if self.own.chain is None else self.own.chain.digest
        return self.choices.asked, self.own.upto, digest

    def follow(self, numbers: tuple[int, int, bytes], durable: int = 0, record: int = 0) -> None:
        """Begin behind an earlier game of this name: no number and no item may stand for two things.

        What of its stream is not on disk yet is so when `record` is.
        """
        t, seq, digest = numbers
        self.choices.begin_after(t)
        self.own.kept.restart(seq)
        self.durable = durable
        if self.own.chain is not None:
            self.own.chain.digest = digest or BEGIN
        self._waiting.clear()
        self._await_disk(record, seq)

    # --- the disk -----------------------------------------------------------------------------------

    def _await_disk(self, record: int, seq: int) -> None:
        """An own item is told when its record is on disk; 0 is none."""
        if seq:
            chain = self.own.chain
            self._waiting.append((record, seq, b"" if chain is None else chain.digest))

    def committed(self, record: int) -> bool:
        """Everything up to this record is on disk; True if there is more of the own stream to tell."""
        while self._reserves and self._reserves[0][0] <= record:
            self.choices.reserved = self._reserves.popleft()[1]
        before, digest = self.durable, b""
        while self._waiting and self._waiting[0][0] <= record:
            _, self.durable, digest = self._waiting.popleft()
            if self.own.chain is not None and self.durable % self.limits.batch == 0:
                self._sign(self.durable, digest, None)
        while self._heads and self._heads[0][0] <= self.durable:
            self.own.head = self._heads.popleft()[1]
        if digest:
            self._sign(self.durable, digest, self.own.head)
        return self.durable > before

    def _sign(self, upto: int, digest: bytes, head: Head | None) -> None:
        if self.sealer is not None and self.own.chain is not None:
            point = self.sealer.seal(self.setup.name, self.own.key, upto, digest, head)
            self.own.chain.add(point, min(self.own.kept.floor, upto))

    # --- streams ------------------------------------------------------------------------------------

    def stream(self, key: Key) -> Stream | None:
        """The stream, begun if it is new; None if its origin has too many."""
        found = self.streams.get(key)
        if found is None:
            epochs = sum(origin == key[0] for origin, _ in self.streams)
            if epochs >= self.limits.epochs:
                return None
            # Not offered to anybody until it is known by how many hops it came; the own ones came by none.
            hops = 0 if key[0] == self.node else UNKNOWN
            found = self.streams[key] = Stream(key, self._retain, hops, self._chain())
        return found

    def forget(self, stream: Stream) -> None:
        """A stream of which nothing was ever proven."""
        if stream.upto == 0 and stream is not self.own:
            self.streams.pop(stream.key, None)

    # --- restart ------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Everything that was replayed is on disk."""
        self.committed(0)
        self.durable = self.own.upto
        while self._heads:
            self.own.head = self._heads.popleft()[1]
        self.choices.restart()

    def state(self) -> dict[str, Any]:
        """Everything that a restart needs, as of the last record."""
        return {
            "fingerprint": self.setup.fingerprint,
            "player": self.player.state(),
            "choices": self.choices.state(),
            "own": self.own.key[1],
            "waiting": [[seq, digest] for _, seq, digest in self._waiting] if self.sealer else [],
            "heads": [[seq, head.t, head.arm, head.rows] for seq, head in self._heads],
            "streams": [stream.state() for stream in self.streams.values()],
            "void": self.void,
        }

    def restore(self, state: dict[str, Any]) -> None:
        if state["fingerprint"] != self.setup.fingerprint:
            self._other_game = True
            own = next(each for each in state["streams"] if tuple(each[:2]) == self.own.key)
            earlier = Stream.from_state(own[:5], self._retain, 0)
            digest = bytes(own[5][0]) if len(own) > 5 else b""
            self.follow((int(state["choices"]["reserved"]), earlier.upto, digest))
            return
        self.player.restore(state["player"])
        self.choices.restore(state["choices"])
        for each in state["streams"]:
            hops = 0 if int(each[0]) == self.node else UNKNOWN
            stream = Stream.from_state(each, self._retain, hops, self._chain())
            self.streams[stream.key] = stream
        self.own = self.streams[self.own.key]
        # Also those that were not on disk then are now: the snapshot came after them.
        self._waiting.extend((0, int(seq), bytes(digest)) for seq, digest in state.get("waiting", ()))
        for seq, t, arm, rows in state["heads"]:
            self._heads.append((int(seq), Head(int(t), int(arm), tuple(map(tuple, rows)))))
        self.void = int(state["void"])


class Refused(Exception):
    """An observation that is not taken; `kind` is one of conflict, old, future, number, arm."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Accepted:
    """An observation that was taken. It may be acknowledged once `record` is on disk."""

    seq: int
    record: int
    late: bool = False
    repeat: bool = False


class Game(Knowledge):
    """What one node does in one game."""

    # --- decisions -------------------------------------------------------------------------------------

    def choose(self, now: float, ttl: float, alone: bool, log: Callable[[Record], int]) -> tuple[int, int]:
        """(t, arm) of the next decision."""
        choices, name = self.choices, self.setup.name
        t = choices.take_number()
        for old in choices.outdated():
            self._close(old, log)
        arm = self.player.choose(t, choices.pending, alone)
        choices.add(t, arm, now + ttl)
        self.chosen += 1
        log(Choice(name, t, arm, now + ttl, alone))
        self.reserve(log)
        return t, arm

    def reserve(self, log: Callable[[Record], int]) -> None:
        """Ask for the next block of decision numbers if there are few left."""
        if self.choices.wants_reserve():
            self.choices.asked = max(self.choices.asked, self.choices.next_t - 1) + self.limits.block
            record = Reserve(self.setup.name, self.choices.asked, self.setup.fingerprint)
            self._reserves.append((log(record), self.choices.asked))

    def observe(self, t: int, arm: int, reward: float, log: Callable[[Record], int]) -> Accepted:
        """Take the reward of an own decision, or say why not."""
        self._require_sample(arm, reward)
        choices = self.choices
        if not 1 <= t < choices.next_t:
            raise Refused("future", f"decision {t} was never made")
        if choices.too_old(t):
            raise Refused(
                "old", f"decision {t} is more than {self.limits.window:,} decisions ago, or of another game"
            )
        known = choices.known(t)
        if known is not None:
            if (known.arm, known.reward) != (arm, reward):
                raise Refused("conflict", f"decision {t} already has another reward")
            return Accepted(known.seq, known.record, repeat=True)
        was_open = choices.open.get(t)
        if was_open is not None and was_open.arm != arm:
            raise Refused("conflict", f"decision {t} was for another arm")
        choices.close(t)
        seq = self._take_own(t, arm, reward)
        record = log(Own(self.setup.name, t, arm, reward, seq))
        self._await_disk(record, seq)
        choices.remember(t, Known(arm, reward, seq, record))
        self.observed += 1
        self.late += was_open is None
        return Accepted(seq, record, late=was_open is None)

    def _require_sample(self, arm: int, reward: float) -> None:
        if not self.is_sample(arm, reward):
            if 0 <= arm < self.setup.n_arms:
                raise Refused(
                    "number", f"reward {reward!r} is not a finite number of at most {LARGEST_REWARD:g}"
                )
            raise Refused("arm", f"there is no arm {arm}")

    def is_sample(self, arm: int, reward: float) -> bool:
        """Whether an agent may be given this; NaN fails every comparison."""
        return 0 <= arm < self.setup.n_arms and -LARGEST_REWARD <= reward <= LARGEST_REWARD

    def _take_own(self, t: int, arm: int, reward: float) -> int:
        """Give the own sample to the agent; its place in the stream, 0 if the agent keeps it to itself."""
        told = self.player.own(t, arm, reward)
        return 0 if told is None else self._publish(t, arm, reward, told.rows)

    def _publish(self, t: int, arm: int, reward: float, rows: Rows) -> int:
        self.own.kept.append([(t, arm, reward)])
        if self.own.chain is not None:
            self.own.chain.digest = chained(self.own.chain.digest, [(t, arm, reward)])
        newest = self._heads[-1][1] if self._heads else self.own.head
        if newest is None or t > newest.t:
            self._heads.append((self.own.upto, Head(t, arm, rows)))
        return self.own.upto

    def abandon(self, t: int, log: Callable[[Record], int]) -> bool:
        """The reward of a choice will not come; False if it was not open."""
        if t not in self.choices.open:
            return False
        self._close(t, log)
        return True

    def expire(self, now: float, log: Callable[[Record], int]) -> None:
        for t in self.choices.overdue(now):
            self._close(t, log)

    def _close(self, t: int, log: Callable[[Record], int]) -> None:
        self.choices.close(t)
        log(Expired(self.setup.name, t))

    # --- streams of others -----------------------------------------------------------------------------

    def proven(self, stream: Stream, first: int, items: list[Item], head: Head | None, seal: bytes) -> bool:
        """Whether the origin signed these items (no hole before them); always, without signatures."""
        if self.sealer is None or stream.chain is None:
            return True
        last = first + len(items) - 1
        if last < stream.upto:
            return False  # known, and no longer to be checked
        news = [packable(item) for item in items[stream.upto + 1 - first :]]
        point = Point(last, chained(stream.chain.digest, news), head, seal)
        return self.sealer.holds(self.setup.name, stream.key, point)

    def accept(
        self,
        stream: Stream,
        first: int,
        items: list[Item],
        head: Head | None,
        log: Callable[[Record], int],
        seal: bytes = b"",
    ) -> int:
        """Take in what is new of items first, first + 1, ... (no hole before them); how many were new."""
        news = items[stream.upto + 1 - first :] if first <= stream.upto else items
        if news or is_newer(stream, head):
            start = stream.upto + 1
            self._take(stream, news, head, seal)
            log(Peer(self.setup.name, *stream.key, start, news, head, seal))
        return len(news)

    def _take(self, stream: Stream, items: list[Item], told: Head | None, seal: bytes) -> None:
        origin, head = stream.key[0], self._acceptable(stream, told)
        items = [packable(item) for item in items]
        for t, arm, reward in items:
            if not self.is_sample(arm, reward):
                self.void += 1
            elif origin == self.node:  # of an earlier epoch, before the own disk was lost
                self.player.own(t, arm, reward)
            else:
                self.player.others(origin, arm, reward)
        if items:
            stream.kept.append(items)
            stream.skip_since = None
        if stream.chain is not None:
            stream.chain.digest = chained(stream.chain.digest, items)
            stream.chain.add(Point(stream.upto, stream.chain.digest, told, seal), stream.kept.floor)
        if head is not None:
            stream.head = head
            if origin != self.node:
                self.player.hear(stream.key, head)

    def _acceptable(self, stream: Stream, head: Head | None) -> Head | None:
        """The head if it is newer than what is known, less what it claims and cannot be."""
        if head is None or not is_newer(stream, head):
            return None
        if not makes_sense(head, self.setup.n_arms):
            self.void += 1
            return None
        if not head.rows:
            return head
        origin = stream.key[0]
        reach = self.setup.reach.get(origin, (origin,))
        found = believed(head, most_samples(self.streams.values(), reach))
        self.void += sum(n != said for (_, n), (_, said) in zip(found.rows, head.rows, strict=True))
        return found

    def skip(
        self, stream: Stream, upto: int, log: Callable[[Record], int], proof: Point | None = None
    ) -> None:
        """Give up what nobody in reach has any more."""
        signed = () if proof is None else proof[1:]
        record = Skipped(self.setup.name, *stream.key, upto, *signed)
        self._skip(stream, record)
        log(record)

    def _skip(self, stream: Stream, record: Skipped) -> None:
        # The waiting ends only with an item: of a fast stream more may be gone by now.
        stream.kept.restart(record.upto)
        if stream.chain is not None:
            stream.chain.digest = record.digest
            stream.chain.add(Point(record.upto, record.digest, record.head, record.seal), record.upto)

    # --- other links, other games ----------------------------------------------------------------------

    def reconfigure(self, setup: GameSetup, sealer: Sealer | None = None) -> None:
        """The same game on other links: the agent goes on with its new part of the plan."""
        state = self.player.state()
        self.setup, self.sealer = setup, sealer
        self.player = Player(setup, self.node)
        self.player.restore(state)
        for stream in self.streams.values():
            stream.hops = 0 if stream.key[0] == self.node else UNKNOWN

    def _start_anew(self) -> None:
        fresh = Game(self.setup, self.node, self.own.key[1], self.limits, self.sealer)
        fresh.follow(self.numbers)
        self.__dict__.update(fresh.__dict__)

    def _pass_by(self, record: Record) -> None:
        """A record of an earlier game: only its numbers matter."""
        if isinstance(record, Reserve):
            self.choices.begin_after(record.upto)
        elif isinstance(record, Own) and record.seq:
            digest = b""
            if self.own.chain is not None:
                item = (record.t, record.arm, record.reward)
                digest = chained(self.own.chain.digest, [item])
            self.follow((self.choices.asked, record.seq, digest))

    # --- restart ---------------------------------------------------------------------------------------

    def replay(self, record: Record) -> None:
        """Do again what a record says was done."""
        if isinstance(record, Reserve):
            other = record.fingerprint not in ("", self.setup.fingerprint)
            if other and not self._other_game:
                self._start_anew()
            self._other_game = other
        if self._other_game:
            self._pass_by(record)
            return
        match record:
            case Reserve(upto=upto):
                self.choices.reserved = self.choices.asked = upto
            case Choice(t=t, arm=arm, expires=expires, alone=alone):
                self.choices.next_t = t + 1
                self.differing += self.player.choose(t, self.choices.pending, alone) != arm
                self.choices.add(t, arm, expires)
            case Own(t=t, arm=arm, reward=reward, seq=seq):
                self.choices.next_t = max(self.choices.next_t, t + 1)
                self.choices.close(t)
                told = self.player.own(t, arm, reward)
                if seq:  # what was published stays so, whatever a quiet agent says now
                    self._publish(t, arm, reward, () if told is None else told.rows)
                self._await_disk(0, seq)
                self.choices.remember(t, Known(arm, reward, seq, 0))
            case Expired(t=t):
                self.choices.close(t)
            case Peer(origin=origin, epoch=epoch, items=items, head=head, seal=seal):
                stream = self.stream((origin, epoch))
                assert stream is not None
                self._take(stream, items, head, seal)
            case Skipped(origin=origin, epoch=epoch):
                stream = self.stream((origin, epoch))
                assert stream is not None
                self._skip(stream, record)
