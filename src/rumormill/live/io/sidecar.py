"""The sidecar: the HTTP and JSON interface of a node for the application on the same machine."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import re
import time
from asyncio import Future
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import parse_qs

import msgspec

from rumormill.errors import ContractError, InputError
from rumormill.live.core.classes import LABEL
from rumormill.live.core.decisions import NotReady
from rumormill.live.core.game import Refused
from rumormill.live.core.node import Token
from rumormill.live.io import status
from rumormill.live.io.http import BadRequest, Request, Response
from rumormill.mesh.file import MOST_ARMS, GamePart, split_address
from rumormill.text import nearest

MOST_AT_ONCE = 1_000
MOST_OBSERVATIONS = 10_000
# Observations of a batch that are accepted before other requests get a turn.
SLICE = 200
# Seconds that choose waits for numbers, when more are asked for at once than are reserved ahead.
PATIENCE = 1.0
MOST_TTL = 7 * 86_400.0
CODES = {"conflict": 409, "old": 410, "future": 404, "number": 422, "arm": 404}
# Host names under which a browser on this machine reaches the sidecar; any other is DNS rebinding.
LOCAL = {"127.0.0.1", "localhost", "[::1]"}
# Paths that need no token.
OPEN = {"/healthz", "/readyz"}


# A token: epoch, decision, arm, game.
TOKEN = re.compile(r"([0-9a-f]{1,15})-([0-9a-f]{1,15})-([0-9]{1,5})-(.+)", re.DOTALL)


class ChooseIn(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /v1/choose."""

    game: str | None = None
    request_class: str | None = msgspec.field(default=None, name="class")
    ttl: float | None = None
    count: float | None = None
    """A whole number, as k: JSON may write it as 2.0."""
    allowed: list[str] | None = None
    k: float | None = None
    propensity: bool = False


class Observation(msgspec.Struct, forbid_unknown_fields=True):
    """One of many observations."""

    token: str
    reward: Any
    weight: Any = 1


class ObserveIn(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /v1/observe: one observation, or many."""

    token: str | msgspec.UnsetType = msgspec.UNSET
    reward: Any = msgspec.UNSET
    weight: Any = 1
    observations: list[Observation] | msgspec.UnsetType = msgspec.UNSET


class AbandonIn(msgspec.Struct, forbid_unknown_fields=True):
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
            ("GET", "/v1/history"): self._history,
            ("GET", "/healthz"): self._healthy,
            ("GET", "/readyz"): self._ready,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/events"): self._events,
            ("GET", "/"): lambda request: page_response(),
            ("GET", "/openapi.json"): self._openapi,
        }

    def respond(self, request: Request) -> Response | Future[Response]:
        """The response to any request."""
        refused = refusal(request, self._runtime.token, self._runtime.unix is not None)
        if refused is not None:
            return refused
        method = "GET" if request.method == "HEAD" else request.method  # the server leaves the body out
        route = self._routes.get((method, request.path))
        if route is None:
            offered = [each for each, path in self._routes if path == request.path]
            text = f"{request.method} {request.path[:200]} is not offered"
            if not offered:
                return error_response(404, text)
            return error_response(405, text, {"Allow": ", ".join([*offered, *["HEAD"] * ("GET" in offered)])})
        try:
            return route(request)
        except NotReady as error:
            return error_response(503, str(error))
        except Refused as error:
            return error_response(CODES[error.kind], str(error))
        except BadRequest as error:
            return error_response(error.status, str(error))
        except ContractError as error:  # an own policy whose agents rank no arms
            return error_response(422, str(error))
        except Exception as error:  # neither the connection nor the node ends
            self._runtime.failed(f"{request.method} {request.path}", error)
            return error_response(500, "this should not happen; the node's log says more")

    # --- decisions ----------------------------------------------------------------------------------

    def _choose(self, request: Request) -> Response | Future[Response]:
        begun = time.perf_counter()
        asked = _read(request.body, ChooseIn)
        name = self._game(asked.game)
        part = self._runtime.mesh.games[name]
        if asked.request_class is not None:
            name = _class_name(part, asked.request_class)
        ttl = part.ttl if asked.ttl is None else asked.ttl
        if not 0 < ttl <= MOST_TTL:
            raise BadRequest(422, f"ttl: seconds above 0, at most {MOST_TTL:g}")
        if self._runtime.draining:
            raise NotReady("the node is stopping")
        count = _whole("count", asked.count, MOST_AT_ONCE)
        allowed = None if asked.allowed is None else _places(part.arms, asked.allowed)
        k = _whole("k", asked.k, MOST_ARMS)
        one = partial(self._one, name, ttl, allowed, k, asked.propensity)
        made = self._some(one, count)
        answer = partial(self._chosen, made, asked.count is None, begun)
        if len(made) < count and self._runtime.journal.fault is None:
            return asyncio.ensure_future(self._rest(one, made, count, answer))
        return answer()

    def _chosen(self, made: list[dict[str, Any]], single: bool, begun: float) -> Response:
        """The response of choose; its time, from the request read to the response ready, is noted."""
        if not made:
            return error_response(503, "no decision numbers are reserved on disk yet")
        response = json_response(made[0] if single else {"choices": made})
        self._runtime.history.times.add(time.perf_counter() - begun, len(made))
        return response

    def _some(self, one: Callable[[], dict[str, Any]], most: int) -> list[dict[str, Any]]:
        """So many decisions, or fewer if no more numbers are reserved on disk."""
        made: list[dict[str, Any]] = []
        with contextlib.suppress(NotReady):
            while len(made) < most:
                made.append(one())
        return made

    async def _rest(
        self, one: Callable[[], dict[str, Any]], made: list[Any], count: int, answer: Callable[[], Response]
    ) -> Response:
        """Wait until more numbers are reserved on disk, for at most `PATIENCE` seconds."""
        runtime = self._runtime
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while len(made) < count and not runtime.draining:
                    reserved = runtime.when_durable(runtime.node.records, Response())
                    await (asyncio.sleep(0) if isinstance(reserved, Response) else reserved)
                    made += self._some(one, count - len(made))
        return answer()

    def _one(
        self, game: str, ttl: float, allowed: list[int] | None, k: int, propensity: bool
    ) -> dict[str, Any]:
        """One decision; of several arms the others have a token each."""
        runtime = self._runtime
        token = runtime.node.choose(game, runtime.clock(), ttl, allowed, k, propensity)
        runtime.flush_if_full()
        part = status.part_of(runtime, game)
        shared = {"game": game, "expires": token.expires}
        first, *others = (
            {"token": token_text(replace(token, arm=arm)), "arm": part.arms[arm], **shared}
            for arm in (token.arm, *token.others)
        )
        if propensity or part.propensities:
            first["propensity"] = token.propensity
        return first if k == 1 else first | {"others": others}

    def _observe(self, request: Request) -> Response | Future[Response]:
        asked = _read(request.body, ObserveIn)
        if isinstance(asked.observations, list):
            if isinstance(asked.token, str) or asked.reward is not msgspec.UNSET or asked.weight != 1:
                raise BadRequest(400, "give token and reward, or observations, not both")
            if len(asked.observations) > MOST_OBSERVATIONS:
                raise BadRequest(422, f"at most {MOST_OBSERVATIONS:,} observations at once")
            return asyncio.ensure_future(self._batch(asked.observations))
        if not isinstance(asked.token, str):
            raise BadRequest(400, "give token and reward, or observations")
        seq, record, late = self._take(asked.token, asked.reward, asked.weight)
        response = json_response({"accepted": True, "seq": seq, "late": late})
        return self._runtime.when_durable(record, response)

    async def _batch(self, observations: list[Observation]) -> Response:
        """Accept many observations, in slices so that other requests do not wait for all of them."""
        rows: list[dict[str, Any]] = []
        last = 0
        for number, each in enumerate(observations, 1):
            try:
                seq, record, late = self._take(each.token, each.reward, each.weight)
                last = max(last, record)
                rows.append({"status": 200, "seq": seq, "late": late})
            except Refused as error:
                rows.append({"status": CODES[error.kind], "error": str(error)})
            except BadRequest as error:
                rows.append({"status": error.status, "error": str(error)})
            except Exception as error:
                self._runtime.failed("POST /v1/observe", error)
                return error_response(500, "this should not happen; the node's log says more")
            if number % SLICE == 0:
                await asyncio.sleep(0)
        response = self._runtime.when_durable(last, json_response({"results": rows}))
        return response if isinstance(response, Response) else await response

    def _take(self, text: str, reward: Any, weight: Any) -> tuple[int, int, bool]:
        """Accept one observation: (seq, record, late)."""
        token = self._token(text)
        if not isinstance(reward, int | float) or isinstance(reward, bool):
            raise Refused("number", "reward: a finite number")
        if not isinstance(weight, int | float) or isinstance(weight, bool) or weight != int(weight):
            raise Refused("number", "weight: a whole number")
        part = self._runtime.mesh.part(token.game)
        sign = -1.0 if part is not None and part.objective == "minimise" else 1.0
        try:
            value = sign * float(reward)
        except OverflowError:
            raise Refused("number", "reward: a finite number") from None
        taken = self._runtime.node.observe(token.game, token.t, token.arm, value, int(weight))
        return taken.seq, taken.record, taken.late

    def _abandon(self, request: Request) -> Response:
        token = self._token(_read(request.body, AbandonIn).token)
        was_open = self._runtime.node.abandon(token.game, token.t, token.arm)
        self._runtime.flush_if_full()
        return json_response({"abandoned": was_open})

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
        found = TOKEN.fullmatch(text)
        if found is None:
            raise BadRequest(400, "token: as it was given by choose")
        token = Token(found[4], int(found[1], 16), int(found[2], 16), int(found[3]), 0.0)
        if self._runtime.mesh.part(token.game) is None:
            raise BadRequest(404, f"there is no game {token.game[:100]!r}")
        if token.epoch != self._runtime.epoch:
            raise Refused(
                "old", "this decision was made before the node lost its disk or was given an old copy of it"
            )
        return token

    # --- status -------------------------------------------------------------------------------------

    def _status(self, request: Request) -> Response:
        return json_response(status.status(self._runtime))

    def _history(self, request: Request) -> Response:
        arms = {name: game.config.n_arms for name, game in self._runtime.node.games.items()}
        for name in parse_qs(request.query).get("game", ()):
            if name not in arms:
                raise BadRequest(404, f"there is no game {name[:100]!r}")
            arms = {name: arms[name]}
        games = self._runtime.history.columns(arms)
        return json_response({"now": round(self._runtime.clock(), 1), "games": games})

    def _healthy(self, request: Request) -> Response:
        wrong = self._runtime.not_alive
        return Response(200, b"ok\n", "text") if wrong is None else error_response(503, wrong)

    def _ready(self, request: Request) -> Response:
        why = self._runtime.not_ready
        return Response(200, b"ready\n", "text") if why is None else error_response(503, why)

    def _metrics(self, request: Request) -> Response:
        return Response(200, status.metrics(self._runtime).encode(), "text/plain; version=0.0.4")

    def _events(self, request: Request) -> Response:
        return Response(body=self.status_event(), events=True)

    def status_event(self) -> bytes:
        """The status as an event."""
        return msgspec.json.encode(status.status(self._runtime))

    def _openapi(self, request: Request) -> Response:
        return Response(200, files("rumormill.live").joinpath("page/openapi.json").read_bytes())


def sidecar_address(http: str, token: str | None) -> tuple[str | None, int, str | None]:
    """(host, port, path of the Unix socket) of what `--http` says."""
    if http.startswith("unix:") or not http:
        return None, 0, http.removeprefix("unix:") or None
    any_port = http.endswith(":0")
    host, port = split_address(http[:-1] + "1" if any_port else http, "--http")
    local = host in ("127.0.0.1", "localhost", "::1")
    if not local and token is None:
        raise InputError(f"--http {http} is open to others: give a token with RUMORMILL_TOKEN")
    return host, 0 if any_port else port, None


def refusal(request: Request, token: str | None, is_unix: bool) -> Response | None:
    """The refusal of a request without the token, or from a page of another site; None if allowed."""
    headers = request.headers
    host, origin = headers.get("host"), headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return error_response(403, "pages of other sites may not ask")
    if token is None:
        if host is not None and not is_unix and _name(host) not in LOCAL:
            return error_response(403, f"{host[:100]} is not this machine: ask 127.0.0.1 or localhost")
    elif request.path not in OPEN and not _is_given(headers.get("authorization", ""), token):
        # A browser then asks its user for any name, and the token as the password.
        ask = {"WWW-Authenticate": 'Basic realm="rumormill"'}
        return error_response(401, "give the token: Authorization: Bearer ...", ask)
    return None


def page_response(marks: bytes = b"") -> Response:
    """The page, its body marked; it loads nothing from elsewhere, and may not."""
    page = files("rumormill.live").joinpath("page/index.html").read_bytes()
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    page = page.replace(b"<body>", b"<body" + marks + b">", 1)
    return Response(200, page, "html", {"Content-Security-Policy": policy})


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


def _whole(name: str, given: float | None, most: int) -> int:
    """A whole number from 1 to `most`, 1 if it is left out; BadRequest if it is none."""
    if given is not None and not (1 <= given <= most and given == int(given)):
        raise BadRequest(422, f"{name}: a whole number, 1 to {most}")
    return 1 if given is None else int(given)


def _class_name(part: GamePart, label: str) -> str:
    """The game of a request class; BadRequest if the game has none, or the name is not allowed."""
    if part.classes is None:
        raise BadRequest(404, f"class: the game {part.name} has no classes: set classes = N in the mesh file")
    if not LABEL.fullmatch(label):
        raise BadRequest(422, "class: 1 to 64 letters, digits or . _ : + -")
    return f"{part.name}/{label}"


def _places(arms: list[str], names: list[str]) -> list[int]:
    """The numbers of named arms, ascending; BadRequest if there is no such arm, or none is named."""
    unknown = [name for name in names if name not in arms]
    if unknown:
        raise BadRequest(404, f"allowed: there is no arm {unknown[0][:100]!r}{nearest(unknown[0], arms)}")
    if not names:
        raise BadRequest(422, "allowed: at least one arm")
    return sorted({arms.index(name) for name in names})


def json_response(value: Any) -> Response:
    """A value as JSON."""
    return Response(200, msgspec.json.encode(value))


def error_response(code: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal in words."""
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
