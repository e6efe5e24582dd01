"""A node inside an application: the same process and event loop, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from rumormill.errors import RumormillError
from rumormill.live.io.client import Chosen, NodeError, choose_body, content, token_of
from rumormill.live.io.http import Request, Response
from rumormill.live.io.runtime import Runtime, Settings

# Seconds between two looks at whether the first decision numbers are on disk.
GLANCE = 0.005


class EmbeddedNode:
    """A node in this process: decisions from memory, observations that are on disk when they are awaited.

    It runs in the application's event loop and writes from a thread of its own. Links, journal and promises
    are those of `rumormill node` (docs/live.md); signals and HTTP are left to the application.

    Parameters
    ----------
    mesh : Path
        The mesh file.
    name : str
        Which of its nodes this is.
    data : Path
        The folder of its journal, made if there is none.
    keys : Path, optional
        The folder of its keys; by default `keys` beside the mesh file.

    Examples
    --------
    >>> async def main(mesh: Path) -> None:
    ...     async with EmbeddedNode(mesh, "n0", Path("n0.data")) as node:
    ...         choice = node.choose("mirrors")
    ...         await node.observe(choice, 41.5)  # on disk
    >>> main.__name__
    'main'
    """

    def __init__(self, mesh: Path, name: str, data: Path, *, keys: Path | None = None) -> None:
        self._settings = Settings(mesh=Path(mesh), name=name, data=Path(data), http="", keys=keys)
        self._runtime: Runtime | None = None
        self._running: asyncio.Task[int] | None = None

    async def __aenter__(self) -> Self:
        self._runtime = runtime = Runtime(self._settings)
        self._running = asyncio.ensure_future(runtime.serve())
        while not runtime.ready and not self._running.done():
            await asyncio.sleep(GLANCE)
        if self._running.done():
            await self._ended()
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._runtime is not None
        self._runtime.stop()
        await self._ended()

    async def _ended(self) -> None:
        assert self._running is not None
        code = await self._running
        if code:
            assert self._runtime is not None
            raise RumormillError(f"the node has ended with a defect: {self._runtime.defect}")

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
        """The next decision, as `Client.choose`; NodeError with status 503 if not ready."""
        return Chosen.read(self._now("/v1/choose", **choose_body(game, class_, ttl, allowed, k, propensity)))

    async def observe(self, choice: Chosen | str, reward: float, *, weight: int = 1) -> int:
        """Report the reward of a decision; its number in the node's stream, once it is on disk."""
        found = self._ask("/v1/observe", token=token_of(choice), reward=reward, weight=weight)
        answer = found if isinstance(found, Response) else await found
        return int(content(answer.status, answer.body)["seq"])

    def abandon(self, choice: Chosen | str) -> bool:
        """The reward of a decision will not arrive; False if it was not open."""
        return bool(self._now("/v1/abandon", token=token_of(choice))["abandoned"])

    def status(self) -> dict[str, Any]:
        """What `GET /v1/status` shows."""
        return self._now("/v1/status")

    def reload(self) -> None:
        """Read the mesh file and the keys again, as `rumormill node` does on SIGHUP."""
        assert self._runtime is not None
        self._runtime.reload()

    def _now(self, path: str, **body: Any) -> dict[str, Any]:
        found = self._ask(path, **body)
        if isinstance(found, Response):
            return dict(content(found.status, found.body))
        found.cancel()
        raise NodeError(503, "no decision numbers are reserved on disk yet")

    def _ask(self, path: str, **body: Any) -> Response | asyncio.Future[Response]:
        """The sidecar's answer, without a connection: the same rules and words as over HTTP."""
        if self._runtime is None or self._runtime.draining:
            raise NodeError(0, "the node is not running: use `async with`")
        request = Request("POST" if body else "GET", path, {}, msgspec.json.encode(body))
        return self._runtime.sidecar.respond(request)
