"""What one node knows of one game: held in memory, told when it is on disk, saved and restored."""

from __future__ import annotations

from collections import deque
from typing import Any

from rumormill.live.choices import Choices
from rumormill.live.frames import Head
from rumormill.live.player import Player
from rumormill.live.seals import BEGIN, Chain, Sealer
from rumormill.live.setup import GameSetup, Limits
from rumormill.live.streams import UNKNOWN, Key, Stream

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
