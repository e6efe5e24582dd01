"""One page for several nodes: a server that asks the nodes of a fixed list, and answers the browser.

The browser asks this server alone, so nodes go on refusing pages of other origins, and the token of the nodes
never reaches a script. Only GET, only these nodes, only their status and history.
"""

from __future__ import annotations

import asyncio
import re
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any

from rumormill.live.io.client import PATIENCE, AsyncClient, NodeError
from rumormill.live.io.http import HttpServer, Request, Response
from rumormill.live.io.sidecar import error_response, json_response, page_response, refusal, sidecar_address

# Seconds between two questions to a node, and after the last question of a page until nodes are not asked.
EVERY, IDLE_AFTER = 1.0, 10.0
# Of one node: its number in the list, and what is asked.
NODE = re.compile(r"/nodes/([0-9]{1,5})/v1/(status|history)")
Answer = dict[str, Any] | NodeError
# What a row of the table is made of.
ROW = ("mesh", "revision", "ready", "uptime", "choose", "alarms", "links")


class NodesPage:
    """The latest status of every node of the list, asked once a second while a page is open."""

    def __init__(self, urls: Sequence[str], token: str | None, is_unix: bool = False) -> None:
        self._urls, self._token, self._is_unix = list(urls), token, is_unix
        self._nodes = [AsyncClient(url, token=token, timeout=PATIENCE, attempts=1) for url in urls]
        self._latest: list[Answer] = [NodeError(0, "") for _ in urls]
        self._names: dict[int, str] = {}
        self._asked = float("-inf")

    async def follow(self, at: int) -> None:
        """Ask one node, until cancelled."""
        async with self._nodes[at]:
            while True:
                if asyncio.get_running_loop().time() - self._asked < IDLE_AFTER:
                    self._latest[at] = found = await self._ask(at, "/v1/status")
                    self._names |= {at: found["node"]} if isinstance(found, dict) else {}
                await asyncio.sleep(EVERY)

    async def _ask(self, at: int, path: str) -> Answer:
        try:
            return await self._nodes[at].get(path)
        except NodeError as error:
            return error

    def respond(self, request: Request) -> Response | Future[Response]:
        """The response to any request."""
        refused = refusal(request, self._token, self._is_unix)
        if refused is not None:
            return refused
        if request.method not in ("GET", "HEAD"):
            return error_response(405, "this page is only read", {"Allow": "GET, HEAD"})
        found = NODE.fullmatch(request.path)
        if request.path == "/":
            return page_response(b" data-several")
        if request.path == "/v1/nodes":
            self._asked = asyncio.get_running_loop().time()
            return json_response([self._row(at) for at in range(len(self._urls))])
        if found is None or int(found[1]) >= len(self._urls):
            return error_response(404, f"{request.path[:200]} is not offered")
        if found[2] == "history":
            return asyncio.ensure_future(self._history(int(found[1]), request.query))
        return _response(self._latest[int(found[1])])

    async def _history(self, at: int, query: str) -> Response:
        return _response(await self._ask(at, f"/v1/history?{query}"))

    def _row(self, at: int) -> dict[str, Any]:
        """One node in short, or why it does not answer ("": not asked yet); earlier versions tell less."""
        status, row = self._latest[at], {"url": self._urls[at], "node": self._names.get(at)}
        if isinstance(status, NodeError):
            return row | {"error": str(status)}
        return row | {key: status.get(key) for key in ROW}


def _response(found: Answer) -> Response:
    return error_response(502, str(found)) if isinstance(found, NodeError) else json_response(found)


def serve_page(urls: Sequence[str], http: str, token: str | None, started: Callable[[str], None]) -> None:
    """Serve the page at `http` until interrupted; the token is given to nodes and asked of the browser."""
    host, port, unix = sidecar_address(http, token)

    async def main() -> None:
        page = NodesPage(urls, token, unix is not None)
        server = HttpServer(page.respond)
        await server.start(host, port, unix)
        started(f"http://{host}:{server.port}/" if host else http)
        try:
            await asyncio.gather(*map(page.follow, range(len(urls))))
        finally:
            await server.stop()

    asyncio.run(main())
