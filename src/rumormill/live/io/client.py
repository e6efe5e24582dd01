"""A small client of the sidecar, for applications in Python; only the standard library is needed.

with Client("http://127.0.0.1:7480") as node:
    choice = node.choose("mirrors")
    latency = fetch_from(choice.arm)
    node.observe(choice, latency)
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from rumormill.errors import RumormillError

# A repeat of an observation gets the same answer, so trying again is always right.
ATTEMPTS = 4
PAUSE = 0.1


class NodeError(RumormillError):
    """What the node answered instead; `status` is that of HTTP, 0 if there was no answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Chosen:
    """One decision of the node."""

    arm: str
    token: str
    game: str
    expires: float


class _Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """One connection to a node; not for several threads at once."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7480",
        *,
        token: str | None = None,
        timeout: float = 5.0,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`url` is http://HOST:PORT, or unix:PATH."""
        self._url, self._token, self._timeout, self._attempts = url, token, timeout, attempts
        self._connection: http.client.HTTPConnection | None = None

    def choose(self, game: str | None = None, *, ttl: float | None = None) -> Chosen:
        """The arm to take now."""
        found = self._call("POST", "/v1/choose", {"game": game, "ttl": ttl})
        return Chosen(found["arm"], found["token"], found["game"], found["expires"])

    def observe(self, choice: Chosen | str, reward: float) -> int:
        """What came of it; its number in the node's stream. Returns when it is on disk."""
        token = choice if isinstance(choice, str) else choice.token
        return int(self._call("POST", "/v1/observe", {"token": token, "reward": reward})["seq"])

    def abandon(self, choice: Chosen | str) -> bool:
        """Nothing will come of it."""
        token = choice if isinstance(choice, str) else choice.token
        return bool(self._call("POST", "/v1/abandon", {"token": token})["abandoned"])

    def status(self) -> dict[str, Any]:
        """What the node knows."""
        found: dict[str, Any] = self._call("GET", "/v1/status", None)
        return found

    def _call(self, method: str, path: str, body: Any) -> Any:
        """One request; tried again while the node is away or not ready."""
        failed: NodeError = NodeError(0, "no attempt was made")
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(PAUSE * 2**attempt)
            try:
                status, text = self._exchange(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failed = NodeError(0, f"{self._url} does not answer: {error}")
                continue
            if status == 200:
                return json.loads(text)
            failed = NodeError(status, _reason(text))
            if status != 503:
                break
        raise failed

    def _exchange(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _connect(self) -> http.client.HTTPConnection:
        if self._url.startswith("unix:"):
            return _Unix(self._url.removeprefix("unix:"), self._timeout)
        parts = urlsplit(self._url)
        return http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=self._timeout)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient:
    """The same for asyncio: each call in a thread, one connection per call in flight."""

    def __init__(self, url: str = "http://127.0.0.1:7480", *, token: str | None = None, timeout: float = 5.0):
        self._given = {"token": token, "timeout": timeout}
        self._url = url
        self._idle: list[Client] = []

    async def choose(self, game: str | None = None, *, ttl: float | None = None) -> Chosen:
        """The arm to take now."""
        found: Chosen = await self._do("choose", game, ttl=ttl)
        return found

    async def observe(self, choice: Chosen | str, reward: float) -> int:
        """What came of it. Returns when it is on disk."""
        found: int = await self._do("observe", choice, reward)
        return found

    async def abandon(self, choice: Chosen | str) -> bool:
        """Nothing will come of it."""
        found: bool = await self._do("abandon", choice)
        return found

    async def status(self) -> dict[str, Any]:
        """What the node knows."""
        found: dict[str, Any] = await self._do("status")
        return found

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        client = self._idle.pop() if self._idle else Client(self._url, **self._given)  # type: ignore[arg-type]
        try:
            return await asyncio.to_thread(getattr(client, name), *args, **kwargs)
        finally:
            self._idle.append(client)

    def close(self) -> None:
        for client in self._idle:
            client.close()
        self._idle.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _reason(text: bytes) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace")[:200]


PATIENCE = 5.0


def look(urls: Sequence[str], token: str | None = None) -> list[dict[str, Any] | NodeError]:
    """What every node says of itself, or why it does not."""
    with ThreadPoolExecutor(min(len(urls), 32)) as asking:
        return list(asking.map(lambda url: _ask(url, token), urls))


def _ask(url: str, token: str | None) -> dict[str, Any] | NodeError:
    try:
        with Client(url, token=token, timeout=PATIENCE, attempts=1) as client:
            return client.status()
    except NodeError as error:
        return error


def row(url: str, found: dict[str, Any] | NodeError) -> dict[str, Any]:
    """One node in a line; all its games together."""
    if isinstance(found, NodeError):
        state = f"answers {found.status}" if found.status else "does not answer"
        return {"node": url, "state": state} | dict.fromkeys(
            ("links", "rewards", "prefers", "behind", "refused"), "–"
        )
    games = list(found["games"].values())
    prefers = [
        each["prefers"]
        for game in games
        for each in game["streams"]
        if (each["node"], each["epoch"]) == (found["node"], found["epoch"]) and each["prefers"]
    ]
    return {
        "node": found["node"],
        "state": "ready" if found["ready"] else found["trouble"] or "not ready",
        "links": f"{sum(link['up'] for link in found['links'])} of {len(found['links'])}",
        "rewards": sum(game["observed"] for game in games),
        "prefers": ", ".join(prefers) or "–",
        "behind": sum(each["lag"] for game in games for each in game["streams"]),
        "refused": sum(found["violations"].values()),
    }


def others(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What one node knows of everybody: a row per game and stream."""
    return [
        {
            "game": name,
            "of": each["node"],
            "items": each["upto"],
            "behind": each["lag"],
            "prefers": each["prefers"] or "–",
        }
        for name, game in found["games"].items()
        for each in game["streams"]
    ]
