"""Decisions of the node beside a gateway, for requests that must neither wait nor fail because of it.

`choose` returns None when the node does not answer within `timeout` seconds: the gateway then takes its own
rule. A node that is not there, or was too slow three times in a row, is not asked for `pause` seconds.
`report` never waits: a thread sends values in batches and keeps them while the node is away.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence

from rumormill.live.io.client import AsyncClient, Chosen, Client, NodeError

BATCH = 1_000
TOO_SLOW = 3
"""Time-outs in a row after which a node is away."""
EVERY = 0.05
"""Seconds between two batches of values."""


class Guard:
    """A node that may be away.

    - `url`, `token`: as for `rumormill.Client`; `game` may be left out if the mesh has one.
    - `timeout`: seconds that a request waits for a decision, at most.
    - `pause`: seconds in which a node that is away is not asked.
    - `keep`: values that are kept while the node is away; beyond that the oldest are dropped and counted.
    """

    def __init__(
        self,
        url: str,
        game: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 0.05,
        pause: float = 1.0,
        keep: int = 10_000,
    ) -> None:
        self._url, self._game, self._token = url, game, token
        self._timeout, self._pause, self._keep = timeout, pause, keep
        self._clients: list[Client] = []
        self._async = AsyncClient(url, token=token, timeout=timeout, attempts=1)
        self._ask_again, self._late = 0.0, 0
        self._values: deque[tuple[str, float]] = deque()
        self._ending = threading.Event()
        self.counts: Counter[str] = Counter()
        """decided, late (no answer in time), away (none), skipped (not asked), reported, refused, dropped."""
        self.seconds: deque[float] = deque(maxlen=10_000)
        """How long the last decisions took."""
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def choose(self, allowed: Sequence[str] | None = None, class_: str | None = None) -> Chosen | None:
        """The node's decision, among all arms or those that are allowed; None if it is away."""
        if self._is_away():
            return None
        began = time.perf_counter()
        try:
            choice = self._ask(allowed, class_)
        except NodeError as error:
            self._failed(error)
            return None
        return self._decided(choice, began)

    async def achoose(self, allowed: Sequence[str] | None = None, class_: str | None = None) -> Chosen | None:
        """`choose` for asyncio, in one event loop."""
        if self._is_away():
            return None
        began = time.perf_counter()
        try:
            choice = await self._async.choose(self._game, allowed=allowed, class_=class_)
        except NodeError as error:
            self._failed(error)
            return None
        return self._decided(choice, began)

    def _is_away(self) -> bool:
        away = time.monotonic() < self._ask_again
        self.counts["skipped"] += away
        return away

    def _failed(self, error: NodeError) -> None:
        late = error.status == 0 and "timed out" in str(error)
        self.counts["late" if late else "away"] += 1
        self._late = self._late + 1 if late else TOO_SLOW
        if self._late >= TOO_SLOW:
            self._ask_again = time.monotonic() + self._pause

    def _decided(self, choice: Chosen, began: float) -> Chosen:
        self._late = 0
        self.seconds.append(time.perf_counter() - began)
        self.counts["decided"] += 1
        return choice

    def _ask(self, allowed: Sequence[str] | None, class_: str | None) -> Chosen:
        """Ask over a connection that is idle; over a new one if the node has closed that."""
        fresh = not self._clients
        client = self._new(self._timeout) if fresh else self._clients.pop()
        try:
            choice = client.choose(self._game, allowed=allowed, class_=class_)
        except NodeError as error:
            if fresh or error.status or "timed out" in str(error):
                raise
            self._clients.clear()
            return self._ask(allowed, class_)
        self._clients.append(client)
        return choice

    def _new(self, timeout: float) -> Client:
        return Client(self._url, token=self._token, timeout=timeout, attempts=1)

    def report(self, choice: Chosen | str, value: float) -> None:
        """What a request cost or earned, in the unit of the game; returns at once."""
        if len(self._values) >= self._keep:
            self._values.popleft()
            self.counts["dropped"] += 1
        self._values.append((choice if isinstance(choice, str) else choice.token, value))

    def _send(self) -> None:
        """Send values until the end. What was not acknowledged is sent again: a repeat changes nothing."""
        with self._new(5.0) as client:
            batch: list[tuple[str, float]] = []
            while not self._ending.wait(EVERY) or self._values:
                while self._values and len(batch) < BATCH:
                    batch.append(self._values.popleft())
                try:
                    rows = client.observe_many(batch) if batch else []
                except NodeError:
                    if self._ending.wait(EVERY):
                        return
                    continue
                batch.clear()
                for row in rows:
                    self.counts["reported" if row["status"] == 200 else "refused"] += 1

    def close(self, wait: float = 2.0) -> None:
        """Send what is left, for `wait` seconds at most."""
        self._ending.set()
        self._sender.join(wait)
        for client in self._clients:
            client.close()

    async def aclose(self, wait: float = 2.0) -> None:
        """`close` for asyncio, in the event loop of `achoose`."""
        self._async.close()
        await asyncio.to_thread(self.close, wait)
