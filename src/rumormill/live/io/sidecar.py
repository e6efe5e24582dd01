"""The sidecar: the HTTP and JSON interface of a node for the application on the same machine."""

from __future__ import annotations

import base64
import binascii
import hmac
from asyncio import Future
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Protocol

import msgspec

from rumormill.live.core.decisions import NotReady
from rumormill.live.core.game import Refused
from rumormill.live.core.node import Token
from rumormill.live.io import status
from rumormill.live.io.http import BadRequest, Request, Response
from rumormill.text import nearest

MOST_AT_ONCE = 1_000
MOST_TTL = 7 * 86_400.0
CODES = {"conflict": 409, "old": 410, "future": 404, "number": 422, "arm": 404}
# Host names under which a browser on this machine reaches the sidecar; any other is DNS rebinding.
LOCAL = {"127.0.0.1", "localhost", "[::1]"}
# Paths that need no token.
OPEN = {"/healthz", "/readyz"}


class ChooseIn(msgspec.Struct):
    """The body of POST /v1/choose."""

    game: str | None = None
    ttl: float | None = None
    count: int | None = None


class Observation(msgspec.Struct):
    """One of many observations."""

    token: str
    reward: Any


class ObserveIn(msgspec.Struct):
    """The body of POST /v1/observe."""

    token: str | None = None
    reward: Any = None
    observations: list[Observation] | None = None


class AbandonIn(msgspec.Struct):
    """The body of POST /v1/abandon."""

    token: str


class Process(status.RunningNode, Protocol):
    """The parts of a node's process that the sidecar needs beside its status."""

    token: str | None
    unix: str | None
    draining: bool

    def flush_if_full(self) -> None:
        """Write records that no request waits for, if there are many."""

    def when_durable(self, record: int, response: Response) -> Response | Future[Response]:
        """The response, once a record is on disk."""

    def failed(self, what: str, error: Exception) -> None:
        """Log a defect."""


class Sidecar:
    """The routes: each returns a Response, or a Future that resolves when the record is durable."""

    def __init__(self, runtime: Process) -> None:
        self._runtime = runtime
        self._routes: dict[tuple[str, str], Callable[[Request], Response | Future[Response]]] = {
            ("POST", "/v1/choose"): self._choose,
            ("POST", "/v1/observe"): self._observe,
            ("POST", "/v1/abandon"): self._abandon,
            ("GET", "/v1/status"): self._status,
            ("GET", "/healthz"): self._healthy,
            ("GET", "/readyz"): self._ready,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/events"): self._events,
            ("GET", "/"): self._page,
            ("GET", "/openapi.json"): self._openapi,
        }

    def respond(self, request: Request) -> Response | Future[Response]:
        """The response to any request."""
        refused = self._refusal(request)
        if refused is not None:
            return refused
        method = "GET" if request.method == "HEAD" else request.method  # the server leaves the body out
        route = self._routes.get((method, request.path))
        if route is None:
            offered = [each for each, path in self._routes if path == request.path]
            text = f"{request.method} {request.path[:200]} is not offered"
            if not offered:
                return _error(404, text)
            return _error(405, text, {"Allow": ", ".join([*offered, *["HEAD"] * ("GET" in offered)])})
        try:
            return route(request)
        except NotReady as error:
            return _error(503, str(error))
        except Refused as error:
            return _error(CODES[error.kind], str(error))
        except BadRequest as error:
            return _error(error.status, str(error))
        except Exception as error:  # neither the connection nor the node ends
            self._runtime.failed(f"{request.method} {request.path}", error)
            return _error(500, "this should not happen; the node's log says more")

    def _refusal(self, request: Request) -> Response | None:
        """The refusal of a request without the token, or from a page of another site; None if allowed."""
        token, headers = self._runtime.token, request.headers
        host, origin = headers.get("host"), headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _error(403, "pages of other sites may not ask")
        if token is None:
            if host is not None and self._runtime.unix is None and _name(host) not in LOCAL:
                return _error(403, f"{host[:100]} is not this machine: ask 127.0.0.1 or localhost")
        elif request.path not in OPEN and not _is_given(headers.get("authorization", ""), token):
            # A browser then asks its user for any name, and the token as the password.
            ask = {"WWW-Authenticate": 'Basic realm="rumormill"'}
            return _error(401, "give the token: Authorization: Bearer ...", ask)
        return None

    # --- decisions ----------------------------------------------------------------------------------

    def _choose(self, request: Request) -> Response:
        asked = _read(request.body, ChooseIn)
        name = self._game(asked.game)
        part = self._runtime.mesh.games[name]
        ttl = part.ttl if asked.ttl is None else asked.ttl
        if not 0 < ttl <= MOST_TTL:
            raise BadRequest(422, f"ttl: seconds above 0, at most {MOST_TTL:g}")
        if self._runtime.draining:
            raise NotReady("the node is stopping")
        if asked.count is None:
            return _json(self._one(name, ttl))
        if not 1 <= asked.count <= MOST_AT_ONCE:
            raise BadRequest(422, f"count: 1 to {MOST_AT_ONCE}")
        made = []
        for _ in range(asked.count):
            try:
                made.append(self._one(name, ttl))
            except NotReady:
                if not made:
                    raise
                break
        return _json({"choices": made})

    def _one(self, game: str, ttl: float) -> dict[str, Any]:
        """One decision."""
        runtime = self._runtime
        token = runtime.node.choose(game, runtime.clock(), ttl)
        runtime.flush_if_full()
        arm = runtime.mesh.games[game].arms[token.arm]
        return {"token": token_text(token), "game": game, "arm": arm, "expires": token.expires}

    def _observe(self, request: Request) -> Response | Future[Response]:
        asked = _read(request.body, ObserveIn)
        if asked.observations is None:
            if asked.token is None:
                raise BadRequest(400, "give token and reward, or observations")
            seq, record, late = self._take(asked.token, asked.reward)
            response = _json({"accepted": True, "seq": seq, "late": late})
            return self._runtime.when_durable(record, response)
        if len(asked.observations) > MOST_AT_ONCE:
            raise BadRequest(422, f"at most {MOST_AT_ONCE} observations at once")
        rows: list[dict[str, Any]] = []
        last = 0
        for each in asked.observations:
            try:
                seq, record, late = self._take(each.token, each.reward)
                last = max(last, record)
                rows.append({"status": 200, "seq": seq, "late": late})
            except Refused as error:
                rows.append({"status": CODES[error.kind], "error": str(error)})
            except BadRequest as error:
                rows.append({"status": error.status, "error": str(error)})
        return self._runtime.when_durable(last, _json({"results": rows}))

    def _take(self, text: str, reward: Any) -> tuple[int, int, bool]:
        """Accept one observation: (seq, record, late)."""
        token = self._token(text)
        if not isinstance(reward, int | float) or isinstance(reward, bool):
            raise Refused("number", "reward: a finite number")
        sign = -1.0 if self._runtime.mesh.games[token.game].objective == "minimise" else 1.0
        try:
            taken = self._runtime.node.observe(token.game, token.t, token.arm, sign * float(reward))
        except OverflowError:
            raise Refused("number", "reward: a finite number") from None
        return taken.seq, taken.record, taken.late

    def _abandon(self, request: Request) -> Response:
        token = self._token(_read(request.body, AbandonIn).token)
        was_open = self._runtime.node.abandon(token.game, token.t)
        self._runtime.flush_if_full()
        return _json({"abandoned": was_open})

    def _game(self, name: str | None) -> str:
        """The named game, or the only one."""
        games = self._runtime.mesh.games
        if name is None and len(games) == 1:
            return next(iter(games))
        if name is None or name not in games:
            raise BadRequest(404, f"game: one of {', '.join(games)}{nearest(name or '', games)}")
        return name

    def _token(self, text: str) -> Token:
        """The decision that a token names."""
        try:
            epoch, t, arm, game = text.split("-", 3)
            token = Token(game, int(epoch, 16), int(t, 16), int(arm), 0.0)
        except ValueError:
            raise BadRequest(400, "token: as it was given by choose") from None
        if token.game not in self._runtime.mesh.games:
            raise BadRequest(404, f"there is no game {token.game[:100]!r}")
        if token.epoch != self._runtime.epoch:
            raise Refused("old", "this decision was made before the node lost its disk")
        return token

    # --- status -------------------------------------------------------------------------------------

    def _status(self, request: Request) -> Response:
        return _json(status.status(self._runtime))

    def _healthy(self, request: Request) -> Response:
        wrong = self._runtime.not_alive
        return Response(200, b"ok\n", "text") if wrong is None else _error(503, wrong)

    def _ready(self, request: Request) -> Response:
        if self._runtime.ready:
            return Response(200, b"ready\n", "text")
        return _error(503, self._runtime.not_alive or self._runtime.journal.fault or "not ready")

    def _metrics(self, request: Request) -> Response:
        return Response(200, status.metrics(self._runtime).encode(), "text/plain; version=0.0.4")

    def _events(self, request: Request) -> Response:
        return Response(body=self.status_event(), events=True)

    def status_event(self) -> bytes:
        """The status as an event."""
        return msgspec.json.encode(status.status(self._runtime))

    def _page(self, request: Request) -> Response:
        page = files("rumormill.live").joinpath("page/index.html").read_bytes()
        # The page loads nothing from elsewhere, and may not.
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        )
        return Response(200, page, "html", {"Content-Security-Policy": policy})

    def _openapi(self, request: Request) -> Response:
        return Response(200, files("rumormill.live").joinpath("page/openapi.json").read_bytes())


def token_text(token: Token) -> str:
    """A decision as text, for the application."""
    return f"{token.epoch:x}-{token.t:x}-{token.arm}-{token.game}"


def _read(body: bytes, kind: type[Any]) -> Any:
    """The body of a request; BadRequest if it does not fit."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise BadRequest(400, str(error)) from None
    except RecursionError:
        raise BadRequest(400, "too deep") from None


def _json(value: Any) -> Response:
    return Response(200, msgspec.json.encode(value))


def _error(code: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(code, msgspec.json.encode({"error": text}), headers=headers or {})


def _name(host: str) -> str:
    """The host without the port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _is_given(authorization: str, token: str) -> bool:
    """Whether a header carries the token, as a bearer token or as a password."""
    kind, _, given = authorization.partition(" ")
    if kind.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    return hmac.compare_digest(given.encode(), token.encode())
