"""The node's face to the application on the same machine: HTTP and JSON."""

from __future__ import annotations

import base64
import binascii
import hmac
from asyncio import Future
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from rumormill.live.core.decisions import NotReady
from rumormill.live.core.game import Refused
from rumormill.live.core.node import Token
from rumormill.live.io import status
from rumormill.live.io.http import Answer, BadRequest, Request
from rumormill.text import nearest

if TYPE_CHECKING:
    from rumormill.live.io.runtime import Runtime

MOST_AT_ONCE = 1_000
MOST_TTL = 7 * 86_400.0
CODES = {"conflict": 409, "old": 410, "future": 404, "number": 422, "arm": 404}
# Names under which a browser on this machine reaches the sidecar: any other is a page elsewhere that made its
# own name point here.
LOCAL = {"127.0.0.1", "localhost", "[::1]"}
# What needs no token.
OPEN = {"/healthz", "/readyz"}


class ChooseIn(msgspec.Struct):
    game: str | None = None
    ttl: float | None = None
    count: int | None = None


class Observation(msgspec.Struct):
    token: str
    reward: Any


class ObserveIn(msgspec.Struct):
    token: str | None = None
    reward: Any = None
    observations: list[Observation] | None = None


class AbandonIn(msgspec.Struct):
    token: str


class Sidecar:
    """Answers requests: at once, or, where the disk has to be waited for, by and by."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._routes: dict[tuple[str, str], Callable[[Request], Answer | Future[Answer]]] = {
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

    def answer(self, request: Request) -> Answer | Future[Answer]:
        """The answer to any request."""
        refused = self._refusal(request)
        if refused is not None:
            return refused
        route = self._routes.get((request.method, request.path))
        if route is None:
            known = any(path == request.path for _, path in self._routes)
            return _said(405 if known else 404, f"{request.method} {request.path[:200]} is not offered")
        try:
            return route(request)
        except NotReady as error:
            return _said(503, str(error))
        except Refused as error:
            return _said(CODES[error.kind], str(error))
        except BadRequest as error:
            return _said(error.status, str(error))
        except Exception as error:  # the connection, and the node, go on
            self._runtime.failed(f"{request.method} {request.path}", error)
            return _said(500, "this should not happen; the node's log says more")

    def _refusal(self, request: Request) -> Answer | None:
        """Who may not ask: without the token, or from a page of another site."""
        token, headers = self._runtime.settings.token, request.headers
        host, origin = headers.get("host"), headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _said(403, "pages of other sites may not ask")
        if token is None:
            if host is not None and self._runtime.unix is None and _name(host) not in LOCAL:
                return _said(403, f"{host[:100]} is not this machine: ask 127.0.0.1 or localhost")
        elif request.path not in OPEN and not _is_given(headers.get("authorization", ""), token):
            # A browser then asks its user: any name, and the token as the password.
            ask = {"WWW-Authenticate": 'Basic realm="rumormill"'}
            return _said(401, "give the token: Authorization: Bearer ...", ask)
        return None

    # --- decisions ----------------------------------------------------------------------------------

    def _choose(self, request: Request) -> Answer:
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
        runtime = self._runtime
        token = runtime.node.choose(game, runtime.clock(), ttl)
        runtime.may_wait()
        arm = runtime.mesh.games[game].arms[token.arm]
        return {"token": token_text(token), "game": game, "arm": arm, "expires": token.expires}

    def _observe(self, request: Request) -> Answer | Future[Answer]:
        asked = _read(request.body, ObserveIn)
        if asked.observations is None:
            if asked.token is None:
                raise BadRequest(400, "give token and reward, or observations")
            seq, record, late = self._take(asked.token, asked.reward)
            answer = _json({"accepted": True, "seq": seq, "late": late})
            return self._runtime.when_on_disk(record, answer)
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
        return self._runtime.when_on_disk(last, _json({"results": rows}))

    def _take(self, text: str, reward: Any) -> tuple[int, int, bool]:
        token = self._token(text)
        if not isinstance(reward, int | float) or isinstance(reward, bool):
            raise Refused("number", "reward: a finite number")
        sign = -1.0 if self._runtime.mesh.games[token.game].objective == "minimise" else 1.0
        try:
            taken = self._runtime.node.observe(token.game, token.t, token.arm, sign * float(reward))
        except OverflowError:
            raise Refused("number", "reward: a finite number") from None
        return taken.seq, taken.record, taken.late

    def _abandon(self, request: Request) -> Answer:
        token = self._token(_read(request.body, AbandonIn).token)
        was_open = self._runtime.node.abandon(token.game, token.t)
        self._runtime.may_wait()
        return _json({"abandoned": was_open})

    def _game(self, name: str | None) -> str:
        games = self._runtime.mesh.games
        if name is None and len(games) == 1:
            return next(iter(games))
        if name is None or name not in games:
            raise BadRequest(404, f"game: one of {', '.join(games)}{nearest(name or '', games)}")
        return name

    def _token(self, text: str) -> Token:
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

    # --- looking ------------------------------------------------------------------------------------

    def _status(self, request: Request) -> Answer:
        return _json(status.status(self._runtime))

    def _healthy(self, request: Request) -> Answer:
        return Answer(200, b"ok\n", "text")

    def _ready(self, request: Request) -> Answer:
        if self._runtime.ready:
            return Answer(200, b"ready\n", "text")
        return _said(503, self._runtime.journal.trouble or "not ready")

    def _metrics(self, request: Request) -> Answer:
        return Answer(200, status.metrics(self._runtime).encode(), "text/plain; version=0.0.4")

    def _events(self, request: Request) -> Answer:
        return Answer(body=self.picture(), events=True)

    def picture(self) -> bytes:
        """The state as an event."""
        return msgspec.json.encode(status.status(self._runtime))

    def _page(self, request: Request) -> Answer:
        page = files("rumormill.live").joinpath("page/index.html").read_bytes()
        # Nothing is loaded from anywhere else, and nothing may be.
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        )
        return Answer(200, page, "html", {"Content-Security-Policy": policy})

    def _openapi(self, request: Request) -> Answer:
        return Answer(200, files("rumormill.live").joinpath("page/openapi.json").read_bytes())


def token_text(token: Token) -> str:
    """A decision as the application carries it."""
    return f"{token.epoch:x}-{token.t:x}-{token.arm}-{token.game}"


def _read(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise BadRequest(400, str(error)) from None
    except RecursionError:
        raise BadRequest(400, "too deep") from None


def _json(value: Any) -> Answer:
    return Answer(200, msgspec.json.encode(value))


def _said(code: int, text: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(code, msgspec.json.encode({"error": text}), headers=headers or {})


def _name(host: str) -> str:
    """The host without the port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _is_given(authorization: str, token: str) -> bool:
    """Whether a header carries the token, as a bearer's or as a password."""
    kind, _, given = authorization.partition(" ")
    if kind.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    return hmac.compare_digest(given.encode(), token.encode())
