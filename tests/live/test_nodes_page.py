"""The page of several nodes: whom it asks, what it lets through, who may ask it."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from live.processes import ARMS, GAME, cluster, page_of, wait_until
from rumormill.live.io import nodes_page
from rumormill.live.io.http import HttpServer, Request, Response
from rumormill.live.io.nodes_page import NodesPage

LOCAL = {"host": "127.0.0.1:7490"}
STATUS = {"node": "n0", "mesh": "m", "ready": True, "links": [], "games": {"g": {}}, "alarms": []}


class OneNode:
    """A node that answers with what it was asked, and keeps the heads of the requests."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def respond(self, request: Request) -> Response:
        self.asked.append(request)
        found = STATUS if request.path == "/v1/status" else {"query": request.query}
        return Response(200, json.dumps(found).encode())


def with_page(
    run: Callable[[NodesPage, OneNode], Awaitable[None]], token: str | None = None, every: float = 0.01
) -> None:
    """A page of two nodes: one that answers, and one that does not."""

    async def main() -> None:
        node = OneNode()
        server = HttpServer(node.respond)
        await server.start("127.0.0.1", 0)
        page = NodesPage([f"http://127.0.0.1:{server.port}", "http://127.0.0.1:1"], token)
        following = [asyncio.ensure_future(page.follow(at)) for at in range(2)]
        try:
            await asyncio.wait_for(run(page, node), 60)
        finally:
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            await server.stop(0.1)

    before, nodes_page.EVERY = nodes_page.EVERY, every
    try:
        asyncio.run(main())
    finally:
        nodes_page.EVERY = before


async def ask(page: NodesPage, path: str, query: str = "", method: str = "GET", **headers: str) -> Any:
    found = page.respond(Request(method, path, LOCAL | headers, b"", query))
    answer = found if isinstance(found, Response) else await found
    return answer.status, json.loads(answer.body) if answer.body[:1] in b"{[" else answer.body


def test_rows_and_what_is_let_through() -> None:
    async def run(page: NodesPage, node: OneNode) -> None:
        await asyncio.sleep(0.05)
        assert node.asked == [], "nobody looks at the page"
        rows = (await ask(page, "/v1/nodes"))[1]
        assert [row.get("error") for row in rows] == ["", ""], "not asked yet"
        while any(row.get("error") == "" for row in rows):
            await asyncio.sleep(0.01)
            rows = (await ask(page, "/v1/nodes"))[1]
        assert (rows[0]["node"], rows[0]["ready"], rows[0]["choose"]) == ("n0", True, None)
        assert "games" not in rows[0], "rows are short"
        assert "does not answer" in rows[1]["error"]
        assert await ask(page, "/nodes/0/v1/status") == (200, STATUS)
        assert (await ask(page, "/nodes/1/v1/status"))[0] == 502
        assert await ask(page, "/nodes/0/v1/history", "game=a%2Fb") == (200, {"query": "game=a%2Fb"})
        assert (await ask(page, "/nodes/1/v1/history"))[0] == 502
        for path in ("/nodes/2/v1/status", "/nodes/0/metrics", "/nodes/0/v1/choose", "/nodes/-1/v1/status"):
            assert (await ask(page, path))[0] == 404
        assert (await ask(page, "/nodes/0/v1/history", method="POST"))[0] == 405
        assert {each.method for each in node.asked} == {"GET"}
        assert (await ask(page, "/"))[1].count(b"<body data-several>") == 1

    with_page(run)


def test_nobody_looks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_page, "IDLE_AFTER", 0.1)

    async def run(page: NodesPage, node: OneNode) -> None:
        await ask(page, "/v1/nodes")
        while not node.asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        before = len(node.asked)
        await asyncio.sleep(0.2)
        assert len(node.asked) == before

    with_page(run)


def test_who_may_ask() -> None:
    """As at a node: no page of another site, no name that DNS was made to give, nobody without the token."""

    async def open_(page: NodesPage, node: OneNode) -> None:
        assert (await ask(page, "/v1/nodes", origin="http://127.0.0.1:7490"))[0] == 200
        assert (await ask(page, "/v1/nodes", origin="http://evil.example"))[0] == 403
        assert (await ask(page, "/v1/nodes", host="evil.example:7490"))[0] == 403

    async def closed(page: NodesPage, node: OneNode) -> None:
        for path in ("/", "/v1/nodes", "/nodes/0/v1/status"):
            assert (await ask(page, path))[0] == 401
        right = {"authorization": "Bearer secret"}
        assert (await ask(page, "/v1/nodes", **right))[0] == 200
        while not node.asked:
            await asyncio.sleep(0.01)
        assert node.asked[0].headers["authorization"] == "Bearer secret"

    with_page(open_)
    with_page(closed, token="secret")


def test_the_command_with_real_nodes(tmp_path: Path) -> None:
    """Numbers of choose and alarms come from the nodes; a node that is killed keeps its name."""

    def rows() -> Any:
        with urllib.request.urlopen(f"{url}/v1/nodes", timeout=60) as answer:
            return json.loads(answer.read())

    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(0)
        made.start(1)
        with made.client(0) as client, page_of(made, [0, 1]) as url:
            for _ in range(20):
                client.observe(client.choose(), 10.0)
            wait_until(lambda: (rows()[0].get("choose") or {}).get("p99_ms") is not None)
            wait_until(lambda: [row.get("alarms") for row in rows()] == [[], []])
            choose = rows()[0]["choose"]
            assert 0 < choose["p50_ms"] <= choose["p99_ms"]
            assert rows()[1]["choose"]["p99_ms"] is None, "nobody asked this one"
            found = client._exchange("GET", f"/v1/history?game={GAME}", None)[1]
            assert list(json.loads(found)["games"]) == [GAME]
            assert len(json.loads(found)["games"][GAME]["hour"]["samples"]) == len(ARMS)
            assert client._exchange("GET", "/v1/history?game=none", None)[0] == 404
            buckets = client._exchange("GET", "/metrics", None)[1].decode()
            assert 'rumormill_choose_seconds_bucket{le="+Inf"} 20\n' in buckets
            assert "rumormill_choose_seconds_count 20\n" in buckets
            made.kill(1)
            wait_until(lambda: "does not answer" in rows()[1].get("error", ""))
            assert rows()[1]["node"] == "n1"
            wait_until(lambda: rows()[0]["alarms"] == ["no link to 1 of 1 neighbours: n1"])
