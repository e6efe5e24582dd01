"""As much of HTTP/1.1 as a sidecar on the same machine needs: small requests, answers, an event stream.

Bounded in every way: the size of a request, the time to send it, the number of connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

MOST_HEAD = 16 * 1024
MOST_BODY = 1024 * 1024
MOST_CONNECTIONS = 512
PATIENCE = 10.0  # seconds for a request to come in whole
IDLE = 75.0  # seconds between two requests
TYPES = {"json": "application/json", "html": "text/html; charset=utf-8", "text": "text/plain; charset=utf-8"}


@dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """One answer; `events` makes it a stream of server-sent events."""

    status: int = 200
    body: bytes = b""
    kind: str = "json"
    headers: dict[str, str] = field(default_factory=dict)
    events: AsyncIterator[bytes] | None = None


class BadRequest(Exception):
    """A request that is not understood."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


Handler = Callable[[Request], Awaitable[Answer]]


class HttpServer:
    """Serves a handler on an address or on a Unix socket."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], bool] = {}  # whether it is answering a request
        self._draining = False
        self.refused = 0

    async def start(self, host: str | None, port: int, unix: str | None = None) -> None:
        if unix is not None:
            self._server = await asyncio.start_unix_server(self._accept, unix, limit=MOST_HEAD)
        else:
            self._server = await asyncio.start_server(self._accept, host, port, limit=MOST_HEAD)

    @property
    def port(self) -> int:
        assert self._server is not None
        name = self._server.sockets[0].getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    async def stop(self, patience: float = 5.0) -> None:
        """No new requests; those that came in are answered."""
        self._draining = True
        if self._server is not None:
            self._server.close()
        for task, busy in list(self._open.items()):
            if not busy:
                task.cancel()
        if self._open:
            await asyncio.wait(list(self._open), timeout=patience)
        for task in list(self._open):
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= MOST_CONNECTIONS or self._draining:
            self.refused += 1
            writer.close()
            return
        self._open[task] = False
        try:
            while not self._draining and await self._serve(task, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
            pass
        finally:
            self._open.pop(task, None)
            writer.close()

    async def _serve(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """One request and its answer; whether another may follow."""
        try:
            async with asyncio.timeout(IDLE):
                first = await reader.read(1)
            if not first:
                return False
            self._open[task] = True
            async with asyncio.timeout(PATIENCE):
                request = await self._read(first, reader)
            answer = await self._handler(request)
            keep = request.headers.get("connection", "").lower() != "close"
        except BadRequest as error:
            answer, keep = Answer(error.status, str(error).encode(), "text"), False
        except asyncio.LimitOverrunError:
            answer, keep = Answer(431, b"the head of the request is too long", "text"), False
        if answer.events is not None:
            await self._stream(writer, answer)
            return False
        writer.write(self._head(answer, keep) + answer.body)
        await writer.drain()
        self._open[task] = False
        return keep

    async def _read(self, first: bytes, reader: asyncio.StreamReader) -> Request:
        head = first + await reader.readuntil(b"\r\n\r\n")
        try:
            start, *lines = head[:-4].decode("latin-1").split("\r\n")
            method, target, version = start.split(" ")
            headers = {
                name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)
            }
            length = int(headers.get("content-length", "0"))
        except ValueError:
            raise BadRequest(400, "this is not HTTP") from None
        if not version.startswith("HTTP/1.") or length < 0:
            raise BadRequest(400, "this is not HTTP/1.1")
        if "transfer-encoding" in headers:
            raise BadRequest(411, "give a Content-Length")
        if length > MOST_BODY:
            raise BadRequest(413, f"a body of at most {MOST_BODY} bytes is allowed")
        body = await reader.readexactly(length) if length else b""
        return Request(method, unquote(target.partition("?")[0]), headers, body)

    def _head(self, answer: Answer, keep: bool) -> bytes:
        lines = [
            f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
            f"Content-Type: {TYPES.get(answer.kind, answer.kind)}",
            f"Content-Length: {len(answer.body)}",
            f"Connection: {'keep-alive' if keep else 'close'}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            *(f"{name}: {value}" for name, value in answer.headers.items()),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _stream(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        assert answer.events is not None
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
            b"Connection: close\r\n\r\n"
        )
        async for event in answer.events:
            if self._draining:
                return
            writer.write(b"data: " + event + b"\n\n")
            async with asyncio.timeout(PATIENCE):  # who does not read is let go
                await writer.drain()
