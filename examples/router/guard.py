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
from concurrent.futures import ThreadPoolExecutor

from rumormill.live.io.client import Chosen, Client, NodeError

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
        self._idle: list[Client] = []
        self._ask_again, self._late = 0.0, 0
        self._values: deque[tuple[str, float]] = deque()
        self._threads = ThreadPoolExecutor(8, "guard")
        self._ending = threading.Event()
        self.counts: Counter[str] = Counter()
        """decided, late (no answer in time), away (none), skipped (not asked), reported, refused, dropped."""
        self.seconds: deque[float] = deque(maxlen=10_000)
        """How long the last decisions took."""
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def choose(self) -> Chosen | None:
        """The node's decision; None if it is away."""
        if time.monotonic() < self._ask_again:
            self.counts["skipped"] += 1
            return None
        began = time.perf_counter()
        try:
            choice = self._ask()
        except NodeError as error:
            self._late = self._late + 1 if is_late(error) else TOO_SLOW
            if self._late >= TOO_SLOW:
                self._ask_again = time.monotonic() + self._pause
            self.counts["late" if is_late(error) else "away"] += 1
            return None
        self._late = 0
        self.seconds.append(time.perf_counter() - began)
        self.counts["decided"] += 1
        return choice

    async def achoose(self) -> Chosen | None:
        """`choose` for asyncio."""
        if time.monotonic() < self._ask_again:
            return self.choose()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.choose)

    def _ask(self) -> Chosen:
        """Ask over a connection that is open, or over a new one if the node has closed that."""
        while self._idle:
            client = self._idle.pop()
            try:
                return self._over(client)
            except NodeError as error:
                if error.status or is_late(error):
                    raise
        return self._over(Client(self._url, token=self._token, timeout=self._timeout, attempts=1))

    def _over(self, client: Client) -> Chosen:
        choice = client.choose(self._game)
        self._idle.append(client)
        return choice

    def report(self, choice: Chosen | str, value: float) -> None:
        """What a request cost or earned, in the unit of the game; returns at once."""
        if len(self._values) >= self._keep:
            self._values.popleft()
            self.counts["dropped"] += 1
        self._values.append((choice if isinstance(choice, str) else choice.token, value))

    def abandon(self, choice: Chosen) -> None:
        """A decision that was not followed; the node closes it."""
        self._threads.submit(self._abandon, choice)

    def _abandon(self, choice: Chosen) -> None:
        try:
            with Client(self._url, token=self._token, timeout=1.0, attempts=1) as client:
                client.abandon(choice)
        except NodeError:
            pass  # it expires

    def _send(self) -> None:
        """Send values until the end. What was not acknowledged is sent again: a repeat changes nothing."""
        with Client(self._url, token=self._token, timeout=5.0, attempts=1) as client:
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
        self._threads.shutdown(wait=False)
        for client in self._idle:
            client.close()


def is_late(error: NodeError) -> bool:
    """Whether the node is there and did not answer in time."""
    return error.status == 0 and "timed out" in str(error)
