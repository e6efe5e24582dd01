"""The part of HTTP/1.1 that a local sidecar needs: small requests, responses, server-sent events.

Bounded are the size of a request (its head and its Content-Length), the time to send it, the time to read the
response, and the number of connections: one too many closes the oldest that is idle. Pipelined requests of a
connection are answered one at a time. Heads are parsed by httptools (llhttp, strict): what RFC 9112 forbids
is refused with 400 and the connection closed.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import unquote

import httptools

MOST_HEAD = 16 * 1024
MOST_BODY = 2 * 1024 * 1024
MOST_CONNECTIONS = 512
MOST_OF_ADDRESS = 256  # connections of one address other than this machine's
MOST_STREAMS = 64  # clients of the event stream
PATIENCE = 10.0  # seconds to receive a whole request, and for the client to read a response
IDLE = 75.0  # seconds between two requests
AT_ONCE = 16  # pipelined requests of one connection before others get a turn
SWEEP = 1.0  # seconds between two checks of the deadlines
TYPES = {"json": "application/json", "html": "text/html; charset=utf-8", "text": "text/plain; charset=utf-8"}
END = b"\r\n\r\n"
# Method, target, version, with one space between; an empty line before them is ignored.
REQUEST_LINE = re.compile(rb"(?:\r\n)?[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e]+ HTTP/1\.[01]\r\n")
BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STREAM = "HTTP/1.1 200 OK|Content-Type: text/event-stream|Cache-Control: no-store|Connection: close||"
STREAM_START = STREAM.replace("|", "\r\n").encode()


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One response; `events` starts a stream of published events, the body first."""

    status: int = 200
    body: bytes = b""
    kind: str = "json"
    headers: dict[str, str] = field(default_factory=dict)
    events: bool = False


@dataclass(frozen=True, slots=True)
class RequestHead:
    """All of a request but its body."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    length: int
    """Bytes of the body."""
    keep: bool
    """Whether the connection stays open after the response."""
    waits: bool
    """Whether the client waits for 100 Continue before it sends the body."""


class BadRequest(Exception):
    """A request that is malformed or refused."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


Handler = Callable[[Request], "Response | Future[Response]"]
"""Returns a Response, or a Future that resolves to one."""


class HttpServer:
    """Serves a handler on an address or on a Unix socket."""

    def __init__(self, handler: Handler, refuse: Callable[[str], None] = lambda why: None) -> None:
        """`refuse` is called with the reason when a connection is closed without a response."""
        self.handler, self.refuse = handler, refuse
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self.open: set[HttpConnection] = set()
        self.draining = False
        self._empty: Future[None] | None = None

    async def start(self, host: str | None, port: int, unix: str | None = None) -> None:
        """Listen on an address or a Unix socket."""
        loop = asyncio.get_running_loop()
        if unix is not None:
            self._server = await loop.create_unix_server(lambda: HttpConnection(self), unix)
        else:
            self._server = await loop.create_server(lambda: HttpConnection(self), host, port)
        self._sweep()

    @property
    def port(self) -> int:
        """The TCP port; 0 for a Unix socket."""
        assert self._server is not None
        name = self._server.sockets[0].getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    @property
    def watched(self) -> bool:
        """Whether any client receives events."""
        return any(each.streaming for each in self.open)

    def publish(self, event: bytes) -> None:
        """Send an event to all clients of the event stream."""
        for each in list(self.open):
            if each.streaming:
                each.send_event(event)

    def admit(self, connection: HttpConnection) -> bool:
        """Whether a new connection may stay; if there are too many, the oldest that is idle is closed.

        Those go first that were never answered with success: they hold no token, or ask nothing.
        """
        others = [each for each in self.open if each.address == connection.address]
        if is_local(connection.address) or len(others) < MOST_OF_ADDRESS:
            others = [] if len(self.open) < MOST_CONNECTIONS else list(self.open)
        if not self.draining and others:
            self.refuse("a connection too many")
            idle = [each for each in others if each.is_idle]
            if not idle:
                return False
            oldest = min(idle, key=lambda each: (each.was_served, each.since))
            self.open.discard(oldest)
            oldest.abort()
        return not self.draining

    def closed(self, connection: HttpConnection) -> None:
        """A connection has ended."""
        self.open.discard(connection)
        if not self.open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def _sweep(self) -> None:
        """Close connections whose deadline is over."""
        loop = asyncio.get_running_loop()
        self._sweeping = loop.call_later(SWEEP, self._sweep)
        now = loop.time()
        for each in list(self.open):
            if each.deadline <= now:
                if each.is_slow:
                    self.refuse("an incomplete request, or a response that is not read")
                each.abort()

    async def stop(self, patience: float = 5.0) -> None:
        """Stop accepting requests; answer those under way."""
        self.draining = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
        for each in list(self.open):
            each.finish()
        for _ in range(2):  # first wait for responses, then for the connections to close
            if not self.open:
                break
            self._empty = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._empty], timeout=patience)
            for each in list(self.open):
                each.abort()
        if self._server is not None:
            await self._server.wait_closed()


class HttpConnection(asyncio.Protocol):
    """The connection of one client."""

    def __init__(self, server: HttpServer) -> None:
        self._server, self._loop = server, asyncio.get_running_loop()
        self._buffer = bytearray()
        # The head of the request under way, and where its body begins.
        self._head: tuple[RequestHead, int] | None = None
        self._bodyless = False  # whether the response under way is to HEAD
        self._wire: asyncio.Transport | None = None
        self._answering: Future[Response] | None = None
        self._keep = True
        self._writable = True  # whether the client reads what is written
        self._paused = False  # whether reading from the client is paused
        self.streaming = False
        self.since = self._loop.time()
        """When it was opened, or last answered."""
        self.was_served = False
        self.address = ""
        self.deadline = self.since + PATIENCE

    # --- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._wire = transport
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        if self._server.admit(self):
            self._server.open.add(self)
        else:
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        if self.streaming or not self._keep:
            return
        self._buffer += data
        self._advance()
        # Pipelined requests beyond one of full size are not read before the response.
        if len(self._buffer) > MOST_HEAD + MOST_BODY and not self._paused and self._wire is not None:
            self._paused = True
            self._wire.pause_reading()

    def pause_writing(self) -> None:
        self._writable = False
        self.deadline = self._loop.time() + PATIENCE

    def resume_writing(self) -> None:
        self._writable = True
        self.deadline = float("inf") if self.streaming else self._loop.time() + IDLE
        self._advance()

    @property
    def is_slow(self) -> bool:
        """Whether a request or a response is incomplete; else the connection is only idle."""
        return bool(self._buffer) or not self._writable

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered; one may be incomplete."""
        return self._answering is None and not self.streaming

    def abort(self) -> None:
        """Close the connection at once."""
        if self._wire is not None:
            self._wire.abort()

    def finish(self) -> None:
        """Accept no further request."""
        self._keep = False
        if self._answering is None and self._wire is not None:
            self._wire.close()

    # --- requests -----------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Answer complete requests one after the other; after `AT_ONCE` other connections get a turn."""
        for turn in itertools.count():
            if not self._keep or not self._writable or self.streaming or self._answering is not None:
                return
            if turn == AT_ONCE:
                self._loop.call_soon(self._advance)
                return
            try:
                request = self._next()
            except BadRequest as error:
                self._bodyless = False
                self._send(Response(error.status, str(error).encode(), "text"), keep=False)
                return
            if request is None:
                return
            self._bodyless = request.method == "HEAD"
            response = self._server.handler(request)
            if isinstance(response, Response):
                self._send(response, self._keep)
            else:
                self._answering, self.deadline = response, float("inf")
                response.add_done_callback(self._answered)

    def _answered(self, done: Future[Response]) -> None:
        """Send the response of a future."""
        self._answering = None
        if done.cancelled():
            self.abort()
            return
        self._send(done.result(), self._keep)
        self._advance()

    def _next(self) -> Request | None:
        """The next request; None if it is not complete yet."""
        buffer = self._buffer
        if not buffer:
            self.deadline = self._loop.time() + IDLE
            return None
        if self._head is None:
            at = buffer.find(END, 0, MOST_HEAD + len(END))
            if at < 0:
                if len(buffer) > MOST_HEAD:
                    raise BadRequest(431, "the head of the request is too long")
                if BARE_LINE_FEED.search(buffer):  # else its end would be waited for until the deadline
                    raise BadRequest(400, "lines of the head end with CR LF")
                self._hurry()
                return None
            self._head = read_head(bytes(buffer[: at + len(END)])), at + len(END)
        head, start = self._head
        end = start + head.length
        if len(buffer) < end:
            if head.waits and len(buffer) == start and self._wire is not None:
                self._head = replace(head, waits=False), start
                self._wire.write(CONTINUE)
            self._hurry()
            return None
        body = bytes(buffer[start:end])
        del buffer[:end]
        self._head = None
        self._keep = self._keep and head.keep
        if self._paused and self._wire is not None:
            self._paused = False
            self._wire.resume_reading()
        self.deadline = self._loop.time() + PATIENCE
        return Request(head.method, head.path, head.headers, body, head.query)

    def _hurry(self) -> None:
        """Set the deadline of a request at its first bytes."""
        self.deadline = min(self.deadline, self._loop.time() + PATIENCE)

    # --- responses ----------------------------------------------------------------------------------

    def _send(self, response: Response, keep: bool) -> None:
        """Write a response; close the connection unless `keep`."""
        if self._wire is None or self._wire.is_closing():
            return
        self._keep = keep and not self._server.draining
        if response.events and sum(each.streaming for each in self._server.open) >= MOST_STREAMS:
            response = Response(503, b'{"error":"too many clients of the event stream"}')
        self.since, self.was_served = self._loop.time(), self.was_served or response.status < 400
        if response.events:
            self.streaming, self.deadline = True, float("inf")
            self._wire.write(STREAM_START)
            if self._bodyless:
                self._wire.close()
            else:
                self.send_event(response.body)
            return
        body = b"" if self._bodyless else response.body
        self._wire.write(_response_head(response, self._keep) + body)
        if not self._keep:
            self._wire.close()

    def send_event(self, event: bytes) -> None:
        """Write an event, unless the client does not read; then its deadline closes the connection."""
        if self._writable and self._wire is not None:
            self._wire.write(b"data: " + event + b"\n\n")


def is_local(address: str) -> bool:
    """Whether an address is of this machine; a Unix socket has none."""
    return address in ("", "::1") or address.startswith(("127.", "::ffff:127."))


class _Headers:
    """Receives the headers of one request from the parser."""

    def __init__(self) -> None:
        self.target = b""
        self.found: list[tuple[str, str]] = []

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.found.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))


def read_head(data: bytes) -> RequestHead:
    """The head of a request, up to and with its empty line; BadRequest if RFC 9112 forbids it."""
    if REQUEST_LINE.match(data) is None:
        raise BadRequest(400, "this is not HTTP/1.1: the request line is wrong")
    found = _Headers()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        pass  # not offered: answered as if it had not been asked for
    except httptools.HttpParserInvalidMethodError:
        raise BadRequest(501, "this method is not implemented") from None
    except httptools.HttpParserError as error:
        if re.search(rb"\r\ntransfer-encoding[ \t]*:", data, re.IGNORECASE):
            raise BadRequest(501, "give a Content-Length; Transfer-Encoding is not implemented") from None
        raise BadRequest(400, f"this is not HTTP/1.1: {error}") from None
    headers: dict[str, str] = {}
    for name, value in found.found:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return _checked_head(parser, found, headers)


def _checked_head(
    parser: httptools.HttpRequestParser, found: _Headers, headers: dict[str, str]
) -> RequestHead:
    """The head, checked for what the parser lets through."""
    if "transfer-encoding" in headers:
        raise BadRequest(501, "give a Content-Length; Transfer-Encoding is not implemented")
    hosts = sum(name == "host" for name, _ in found.found)
    old = parser.get_http_version() == "1.0"
    if hosts > 1 or (hosts == 0 and not old):
        raise BadRequest(400, "give one Host")
    given, expected = headers.get("content-length", "0"), headers.get("expect", "").lower()
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise BadRequest(400, "Content-Length: a number")
    if int(given) > MOST_BODY:
        raise BadRequest(413, f"a body of at most {MOST_BODY} bytes is allowed")
    if expected not in ("", "100-continue"):
        raise BadRequest(417, "Expect: 100-continue alone is known")
    path, query = _path_and_query(found.target)
    return RequestHead(
        method=parser.get_method().decode("latin-1"),
        path=path,
        query=query,
        headers=headers,
        length=int(given),
        keep=not old and parser.should_keep_alive() and not _closes(headers),
        waits=bool(expected) and not old,
    )


def _closes(headers: dict[str, str]) -> bool:
    """Whether the client asks for the end of the connection: `close` among the options of Connection."""
    return "close" in (option.strip().lower() for option in headers.get("connection", "").split(","))


def _path_and_query(target: bytes) -> tuple[str, str]:
    """Path and query of a request's target, in origin form or in absolute form."""
    if not target.startswith((b"/", b"*")):
        try:
            url = httptools.parse_url(target)
        except httptools.HttpParserError:
            raise BadRequest(400, "the target is not a path") from None
        target = (url.path or b"/") + b"?" + (url.query or b"")
    path, _, query = target.decode("latin-1").partition("?")
    return unquote(path), query


def _response_head(response: Response, keep: bool) -> bytes:
    """Status line and headers."""
    fixed = _fixed_head(response.status, response.kind, keep)
    if response.headers:
        fixed += "".join(f"{name}: {value}\r\n" for name, value in response.headers.items()).encode("latin-1")
    return b"%sContent-Length: %d\r\n\r\n" % (fixed, len(response.body))


@lru_cache(maxsize=64)
def _fixed_head(status: int, kind: str, keep: bool) -> bytes:
    """The part of the head that does not depend on the body."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {TYPES.get(kind, kind)}",
        f"Connection: {'keep-alive' if keep else 'close'}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
    ]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")
