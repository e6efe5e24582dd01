"""A client of the sidecar for applications in Python; it needs only the standard library."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

from rumormill.errors import InputError, RumormillError
from rumormill.text import nearest

# Observations are idempotent, so a request may always be repeated.
ATTEMPTS = 4
PAUSE = 0.1
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NodeError(RumormillError):
    """A request that failed.

    - `status`: the HTTP status; 0 if the node did not answer. 404 unknown game or token, 409 another reward
      was reported before, 410 the decision is too old, 422 the reward is not a finite number, 503 not ready.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Chosen:
    """One decision of the node."""

    arm: str
    """The name of the arm to pull."""
    token: str
    """Identifies the decision when its reward is reported."""
    game: str
    expires: float
    """When the node closes the decision without a reward, in seconds since 1970."""
    others: tuple[Chosen, ...] = ()
    """The next best arms, if several were asked for; each has a token and may be observed too, if tried."""

    propensity: float | None = None
    """The probability of this choice over the node's own draws, if it is recorded."""

    @classmethod
    def read(cls, answer: dict[str, Any]) -> Chosen:
        """From the answer of the sidecar."""
        others = tuple(map(cls.read, answer.get("others", ())))
        found = (answer["arm"], answer["token"], answer["game"], answer["expires"])
        return cls(*found, others, answer.get("propensity"))


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
    """A connection to the node on this machine: decisions and their rewards; use one per thread.

    Every method raises `NodeError` if the node refuses the request or does not answer.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:7480"
        Where the node answers: "http://HOST:PORT" or "unix:PATH".
    token : str, optional
        The node's RUMORMILL_TOKEN, if it requires one.
    timeout : float, default 5.0
        Seconds to wait for one response.
    attempts : int, default 4
        How often a request is tried while the node does not answer or is not ready, with pauses of 0.2, 0.4,
        0.8, ... seconds.

    Examples
    --------
    >>> with Client("http://127.0.0.1:1", timeout=0.1, attempts=1) as node:
    ...     try:
    ...         choice = node.choose("mirrors")
    ...         node.observe(choice, 41.5)  # the latency of the mirror choice.arm, in ms
    ...     except NodeError:
    ...         print("the node does not answer")
    the node does not answer

    References
    ----------
    docs/live.md: nodes and their HTTP interface.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7480",
        *,
        token: str | None = None,
        timeout: float = 5.0,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._url, self._token, self._timeout, self._attempts = url, token, timeout, attempts
        self._connection: http.client.HTTPConnection | None = None

    def choose(
        self,
        game: str | None = None,
        *,
        class_: str | None = None,
        ttl: float | None = None,
        allowed: Sequence[str] | None = None,
        k: int = 1,
        propensity: bool = False,
    ) -> Chosen:
        """The next decision.

        - `game`: its name; may be left out if the mesh has one game.
        - `class_`: the request class, where the game has classes; each learns by itself.
        - `ttl`: seconds until the decision is closed without a reward; by default as in the mesh file.
        - `allowed`: names of the arms that may be chosen now; by default all.
        - `k`: so many arms, best first; all but the first are in `others`. Observe each that was tried.
        - `propensity`: also the probability of this choice, recorded for `rumormill evaluate`; with
          `propensities = true` in the mesh file every choice has it.
        """
        return Chosen.read(
            self._call("POST", "/v1/choose", choose_body(game, class_, ttl, allowed, k, propensity))
        )

    def observe(self, choice: Chosen | str, reward: float, *, weight: int = 1) -> int:
        """Report the reward (or cost) of a decision; returns when it is on disk.

        - `choice`: what `choose` returned, or its token.
        - `reward`: a finite number, in the unit of the game.
        - `weight`: the number of samples that it counts as, 1 to 512.

        Returns its number in the node's stream, 0 if the policy does not publish it. Reporting the same
        reward again returns the same number.
        """
        return int(self._call("POST", "/v1/observe", observe_body(choice, reward, weight))["seq"])

    def observe_many(self, rewards: Iterable[tuple[Chosen | str, float]]) -> list[dict[str, Any]]:
        """Report up to 10,000 rewards in one request; returns when all are on disk.

        - `rewards`: pairs of what `choose` returned, or its token, and the reward.

        Returns a row for each: {"status": 200, "seq": ..., "late": ...}, or the status that it would have
        got alone and {"error": ...}.
        """
        rows = [{"token": token_of(each), "reward": reward} for each, reward in rewards]
        found: list[dict[str, Any]] = self._call("POST", "/v1/observe", {"observations": rows})["results"]
        return found

    def abandon(self, choice: Chosen | str) -> bool:
        """Close a decision whose reward will not arrive; False if it was not open.

        - `choice`: what `choose` returned, or its token.
        """
        return bool(self._call("POST", "/v1/abandon", {"token": token_of(choice)})["abandoned"])

    def status(self) -> dict[str, Any]:
        """The node's status: its games with their arms and streams, its links, counters of violations."""
        found: dict[str, Any] = self._call("GET", "/v1/status", None)
        return found

    def _call(self, method: str, path: str, body: Any) -> Any:
        """One request, repeated while the node does not answer or is not ready."""
        failed: NodeError = NodeError(0, "no attempt was made")
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(PAUSE * 2**attempt)
            try:
                return content(*self._exchange(method, path, body))
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failed = NodeError(0, f"{self._url} does not answer: {error}")
            except NodeError as error:
                failed = error
                if error.status != 503:
                    break
        raise failed

    def _exchange(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """One request and its response: (status, body)."""
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
        """Close the connection; the next call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient:
    """`Client` for asyncio, without threads; one connection per call in flight.

    For one event loop; close it before that ends. A call that is cancelled closes its connection. Every
    method raises `NodeError` as that of `Client` does.

    - `url`, `token`, `timeout`, `attempts`: as for `Client`.

    Example:

        from rumormill.live.io.client import AsyncClient

        async def fetch() -> None:
            async with AsyncClient("http://127.0.0.1:7480") as node:
                choice = await node.choose("mirrors")
                await node.observe(choice, 41.5)
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7480",
        *,
        token: str | None = None,
        timeout: float = 5.0,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._url, self._timeout, self._attempts = url, timeout, attempts
        bearer = "" if token is None else f"Authorization: Bearer {token}\r\n"
        host = "localhost" if url.startswith("unix:") else urlsplit(url).netloc
        self._headers = f"Host: {host}\r\nContent-Type: application/json\r\n{bearer}"
        self._idle: list[_Streams] = []

    async def choose(
        self,
        game: str | None = None,
        *,
        class_: str | None = None,
        ttl: float | None = None,
        allowed: Sequence[str] | None = None,
        k: int = 1,
        propensity: bool = False,
    ) -> Chosen:
        """The next decision; see `Client.choose`."""
        return Chosen.read(
            await self._call("POST", "/v1/choose", choose_body(game, class_, ttl, allowed, k, propensity))
        )

    async def observe(self, choice: Chosen | str, reward: float, *, weight: int = 1) -> int:
        """Report the reward of a decision; see `Client.observe`."""
        return int((await self._call("POST", "/v1/observe", observe_body(choice, reward, weight)))["seq"])

    async def abandon(self, choice: Chosen | str) -> bool:
        """Close a decision whose reward will not arrive; see `Client.abandon`."""
        return bool((await self._call("POST", "/v1/abandon", {"token": token_of(choice)}))["abandoned"])

    async def status(self) -> dict[str, Any]:
        """The node's status; see `Client.status`."""
        return await self.get("/v1/status")

    async def get(self, path: str) -> dict[str, Any]:
        """What the node answers to GET."""
        found: dict[str, Any] = await self._call("GET", path, None)
        return found

    async def _call(self, method: str, path: str, body: Any) -> Any:
        """One request, repeated while the node does not answer or is not ready."""
        failed: NodeError = NodeError(0, "no attempt was made")
        for attempt in range(self._attempts):
            if attempt:
                await asyncio.sleep(PAUSE * 2**attempt)
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._exchange(method, path, body)
                return content(*answer)
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                why = "timed out" if isinstance(error, TimeoutError) else error
                failed = NodeError(0, f"{self._url} does not answer: {why}")
            except NodeError as error:
                if error.status != 503:
                    raise
                failed = error
        raise failed

    async def _exchange(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """One request and its response: (status, body). The node may have closed idle connections."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Length: {len(data)}\r\n\r\n"
        while self._idle:
            with contextlib.suppress(ConnectionError, EOFError):
                return await self._over(self._idle.pop(), head.encode() + data)
        return await self._over(await self._connect(), head.encode() + data)

    async def _over(self, streams: _Streams, request: bytes) -> tuple[int, bytes]:
        """A request and its response over one connection, which is idle then."""
        reader, writer = streams
        try:
            writer.write(request)
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            text = await reader.readexactly(length)
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in lines:
            writer.close()
        else:
            self._idle.append(streams)
        return int(lines[0][9:12]), text

    async def _connect(self) -> _Streams:
        if self._url.startswith("unix:"):
            return await asyncio.open_unix_connection(self._url.removeprefix("unix:"))
        parts = urlsplit(self._url)
        return await asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port or 80)

    def close(self) -> None:
        """Close all idle connections."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


def token_of(choice: Chosen | str) -> str:
    """The token of a decision, given as such or as what `choose` returned."""
    return choice if isinstance(choice, str) else choice.token


def observe_body(choice: Chosen | str, reward: float, weight: int) -> dict[str, Any]:
    """The body of POST /v1/observe."""
    weighted = {} if weight == 1 else {"weight": weight}
    return {"token": token_of(choice), "reward": reward, **weighted}


def choose_body(
    game: str | None,
    class_: str | None,
    ttl: float | None,
    allowed: Sequence[str] | None,
    k: int,
    propensity: bool,
) -> dict[str, Any]:
    """The body of POST /v1/choose, without what is left out."""
    limits: dict[str, Any] = {
        "class": class_,
        "allowed": None if allowed is None else list(allowed),
        "k": None if k == 1 else k,
        "propensity": propensity or None,
    }
    return {"game": game, "ttl": ttl} | {key: value for key, value in limits.items() if value is not None}


def content(status: int, text: bytes) -> Any:
    """The body of a response; NodeError if it is a refusal."""
    if status == 200:
        return json.loads(text)
    try:
        reason = str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        reason = text.decode("utf-8", "replace")[:200]
    raise NodeError(status, reason)


PATIENCE = 5.0


def statuses(urls: Sequence[str], token: str | None = None) -> list[dict[str, Any] | NodeError]:
    """The status of every node, or the error of its request."""
    with ThreadPoolExecutor(min(len(urls), 32)) as asking:
        return list(asking.map(lambda url: _ask(url, token), urls))


def _ask(url: str, token: str | None) -> dict[str, Any] | NodeError:
    try:
        with Client(url, token=token, timeout=PATIENCE, attempts=1) as client:
            return client.status()
    except NodeError as error:
        return error


def status_row(url: str, found: dict[str, Any] | NodeError) -> dict[str, Any]:
    """One node as a row of a table; all its games together."""
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
        "state": "ready" if found["ready"] else found["trouble"] or "not ready",  # plain-words: allow
        "links": f"{sum(link['up'] for link in found['links'])} of {len(found['links'])}",
        "rewards": sum(game["observed"] for game in games),
        "prefers": ", ".join(prefers) or "–",
        "behind": sum(each["lag"] for game in games for each in game["streams"]),
        "refused": sum(found["violations"].values()),
    }


def stream_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The streams that one node knows: a row per game and stream."""
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


def verdict(url: str, game: str | None, token: str | None = None) -> dict[str, Any]:
    """What a node has proven of one game: the best arm, its margin, and the interval of every arm."""
    with Client(url, token=token, timeout=PATIENCE, attempts=1) as client:
        games = client.status()["games"]
    if game is None and len(games) != 1:
        raise InputError(f"the node has the games {', '.join(games) or 'none'}: name one with --game")
    name = next(iter(games)) if game is None else game
    if name not in games:
        raise InputError(f"the node has no game {name!r}{nearest(name, games)}")
    found = games[name]
    rows = [{key: row[key] for key in ("arm", "samples", "mean", "low", "high")} for row in found["arms"]]
    kept = {key: found[key] for key in ("objective", "unit")}
    return {"game": name, **kept, **found["verdict"], "arms": rows}


def verdict_text(found: dict[str, Any]) -> str:
    """The verdict of one game in a sentence."""
    level = f"{100 * found['confidence']:g} % at any time"
    if found["best"] is None:
        return f"no arm of {found['game']} is proven best yet ({level})" + (
            f": {found['reason']}" if found["reason"] else ""
        )
    unit = f" {found['unit']}" if found["unit"] else ""
    at = found.get("proven_at")  # unknown to nodes of before 0.3
    when = "" if at is None else f", {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"{found['best']} is better than every other arm by at least {found['margin']:.4g}{unit} "
        f"({level}; first seen after {found['samples']:,} samples{when})"
    )
