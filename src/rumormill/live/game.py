"""One game at one node: its choices, its streams, its agent, and the records of all that changes them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rumormill.live.choices import Choices, Known
from rumormill.live.frames import Head, Item
from rumormill.live.player import Player
from rumormill.live.records import Choice, Expired, Own, Peer, Record, Reserve, Skipped
from rumormill.live.setup import GameSetup, Limits
from rumormill.live.streams import UNKNOWN, Key, Stream, packable
from rumormill.validate import LARGEST_REWARD

# Of own heads that are not on disk yet, so many are remembered.
MOST_HEADS = 1_024


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


class Game:
    """What one node knows of one game."""

    def __init__(self, setup: GameSetup, node: int, epoch: int, limits: Limits) -> None:
        self.setup, self.node, self.limits = setup, node, limits
        self.player = Player(setup, node)
        self.choices = Choices(setup.n_arms, limits)
        self.own = Stream((node, epoch), limits.retain, hops=0)
        self.streams: dict[Key, Stream] = {self.own.key: self.own}
        self.durable = 0
        """The last item of the own stream that is on disk: more is not told."""
        self._waiting: deque[tuple[int, int]] = deque()  # (record, seq) of own items not on disk
        self._heads: deque[tuple[int, Head]] = deque(maxlen=MOST_HEADS)  # (seq, head) likewise
        self._reserves: deque[tuple[int, int]] = deque()  # (record, upto) likewise
        self.void = 0
        """Items that were no samples: arm out of range, reward not a number."""
        self.late = self.chosen = self.observed = 0
        self._other_game = False  # the records are of a game that had this name before
        self.differing = 0
        """Choices that a replay made otherwise: always 0, or the agent is not deterministic."""

    # --- decisions ----------------------------------------------------------------------------------

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
            raise Refused("old", f"decision {t} is more than {self.limits.window:,} decisions ago")
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
        if seq:
            self._waiting.append((record, seq))
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
        if told is None:
            return 0
        self.own.kept.append([(t, arm, reward)])
        newest = self._heads[-1][1] if self._heads else self.own.head
        if newest is None or t > newest.t:
            self._heads.append((self.own.upto, Head(t, arm, told.rows)))
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

    def committed(self, record: int) -> bool:
        """Everything up to this record is on disk; True if there is more of the own stream to tell."""
        while self._reserves and self._reserves[0][0] <= record:
            self.choices.reserved = self._reserves.popleft()[1]
        before = self.durable
        while self._waiting and self._waiting[0][0] <= record:
            self.durable = self._waiting.popleft()[1]
        while self._heads and self._heads[0][0] <= self.durable:
            self.own.head = self._heads.popleft()[1]
        return self.durable > before

    # --- streams of others --------------------------------------------------------------------------

    def stream(self, key: Key) -> Stream | None:
        """The stream, begun if it is new; None if its origin has too many."""
        found = self.streams.get(key)
        if found is None:
            epochs = sum(origin == key[0] for origin, _ in self.streams)
            if epochs >= self.limits.epochs:
                return None
            # Not offered to anybody until it is known by how many hops it came; the own ones came by none.
            hops = 0 if key[0] == self.node else UNKNOWN
            found = self.streams[key] = Stream(key, self.limits.retain, hops)
        return found

    def accept(
        self, stream: Stream, first: int, items: list[Item], head: Head | None, log: Callable[[Record], int]
    ) -> int:
        """Take in what is new of items first, first + 1, ... (no hole before them); how many were new."""
        news = items[stream.upto + 1 - first :] if first <= stream.upto else items
        head = self._acceptable(stream, head)
        if news or head is not None:
            start = stream.upto + 1
            self._take(stream, news, head)
            log(Peer(self.setup.name, *stream.key, start, news, head))
        return len(news)

    def _take(self, stream: Stream, items: list[Item], head: Head | None) -> None:
        origin = stream.key[0]
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
        if head is not None:
            stream.head = head
            if origin != self.node:
                self.player.hear(stream.key, head)

    def _acceptable(self, stream: Stream, head: Head | None) -> Head | None:
        """The head if it is newer than what is known and claims nothing impossible."""
        if head is None or (stream.head is not None and head.t <= stream.head.t):
            return None
        if not 0 <= head.arm < self.setup.n_arms or len(head.rows) not in (0, self.setup.n_arms):
            self.void += 1
            return None
        if not head.rows:
            return head
        most = self._most_samples(stream.key[0])
        rows = tuple(
            (mean, n) if self._believable(mean, n, most) else (math.inf, 0.0) for mean, n in head.rows
        )
        self.void += sum(n != claimed for (_, n), (_, claimed) in zip(rows, head.rows, strict=True))
        return Head(head.t, head.arm, rows)

    def _believable(self, mean: float, n: float, most: float) -> bool:
        return 0 <= n <= most and (n == 0 or -LARGEST_REWARD <= mean <= LARGEST_REWARD)

    def _most_samples(self, origin: int) -> float:
        """More samples than the streams in reach of an origin could contain, as far as is known here.

        Streams arrive at their own pace, so that twice what is known, and some more, is believed.
        """
        known: dict[int, int] = {}
        for (v, _), stream in self.streams.items():
            known[v] = known.get(v, 0) + stream.upto
        most = max(known.values())
        return sum(2.0 * known.get(v, most) + 1024 for v in self.setup.reach.get(origin, (origin,)))

    def skip(self, stream: Stream, upto: int, log: Callable[[Record], int]) -> None:
        """Give up what nobody in reach has any more."""
        self._skip(stream, upto)
        log(Skipped(self.setup.name, *stream.key, upto))

    def _skip(self, stream: Stream, upto: int) -> None:
        # The waiting ends only with an item: of a fast stream more may be gone by now.
        stream.kept.restart(upto)

    def reconfigure(self, setup: GameSetup) -> None:
        """The same game on other links: the agent goes on with its new part of the plan."""
        state = self.player.state()
        self.setup = setup
        self.player = Player(setup, self.node)
        self.player.restore(state)
        for stream in self.streams.values():
            stream.hops = 0 if stream.key[0] == self.node else UNKNOWN

    # --- restart ------------------------------------------------------------------------------------

    def replay(self, record: Record) -> None:
        """Do again what a record says was done."""
        if isinstance(record, Reserve):
            self._other_game = record.fingerprint not in ("", self.setup.fingerprint)
        if self._other_game:
            return
        match record:
            case Reserve(upto=upto):
                self.choices.reserved = self.choices.asked = upto
            case Choice(t=t, arm=arm, expires=expires, alone=alone):
                self.choices.next_t = t + 1
                self.differing += self.player.choose(t, self.choices.pending, alone) != arm
                self.choices.add(t, arm, expires)
            case Own(t=t, arm=arm, reward=reward):
                self.choices.next_t = max(self.choices.next_t, t + 1)
                self.choices.close(t)
                seq = self._take_own(t, arm, reward)
                self.choices.remember(t, Known(arm, reward, seq, 0))
            case Expired(t=t):
                self.choices.close(t)
            case Peer(origin=origin, epoch=epoch, items=items, head=head):
                stream = self.stream((origin, epoch))
                assert stream is not None
                self._take(stream, items, head)
            case Skipped(origin=origin, epoch=epoch, upto=upto):
                stream = self.stream((origin, epoch))
                assert stream is not None
                self._skip(stream, upto)

    def restart(self) -> None:
        """Everything that was replayed is on disk."""
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
            "heads": [[seq, head.t, head.arm, head.rows] for seq, head in self._heads],
            "streams": [stream.state() for stream in self.streams.values()],
            "void": self.void,
        }

    def restore(self, state: dict[str, Any]) -> None:
        if state["fingerprint"] != self.setup.fingerprint:
            self._other_game = True
            return
        self.player.restore(state["player"])
        self.choices.restore(state["choices"])
        for each in state["streams"]:
            hops = 0 if int(each[0]) == self.node else UNKNOWN
            stream = Stream.from_state(each, self.limits.retain, hops)
            self.streams[stream.key] = stream
        self.own = self.streams[self.own.key]
        for seq, t, arm, rows in state["heads"]:
            self._heads.append((int(seq), Head(int(t), int(arm), tuple(map(tuple, rows)))))
        self.void = int(state["void"])
