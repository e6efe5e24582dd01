"""A reverse proxy for chat completions: the node beside it decides which provider gets a request.

python examples/router/proxy.py --node http://127.0.0.1:7480 birch=http://127.0.0.1:17502 cedar=http://127.0.0.1:17503

A request that fails before its first byte is sent to another provider. While the node is away, or without
--node, a provider is taken at random.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import ssl
import sys
import time
from urllib.parse import urlsplit

from guard import Guard

from rumormill.recipes import FirstToken

OURS = (b"host:", b"connection:")
REFUSED = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


class Proxy:
    """Forwards requests to providers, given as {arm of the game: URL}."""

    def __init__(self, providers: dict[str, str], guard: Guard | None, recipe: FirstToken) -> None:
        self.providers, self.guard, self.recipe = providers, guard, recipe

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request; the answer is passed on as it comes."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
            sizes = [int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")]
            body = await reader.readexactly(sum(sizes))
            head = b"\r\n".join(line for line in lines if not line.lower().startswith(OURS))
            await self.forward(head, body, writer)
        writer.close()

    async def forward(self, head: bytes, body: bytes, client: asyncio.StreamWriter) -> None:
        """Try providers until one answers; every attempt is a decision with a cost of its own."""
        left, answer = dict(self.providers), REFUSED
        while left:
            choice = await self.guard.achoose(list(left)) if self.guard is not None else None
            name = random.choice(list(left)) if choice is None else choice.arm
            began, seconds, failed = time.perf_counter(), None, True
            async with contextlib.AsyncExitStack() as closing:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # TimeoutError is an OSError
                    async with asyncio.timeout(self.recipe.timeout):
                        upstream, sink = await connect(left.pop(name))
                        closing.callback(sink.close)
                        sink.write(head + b"\r\nConnection: close\r\n\r\n" + body)
                        answer = await upstream.readuntil(b"\r\n\r\n") + await upstream.read(65536)
                    failed = answer[9:12] in (b"408", b"429") or answer[9:10] == b"5"
                    seconds = time.perf_counter() - began
                if choice is not None and self.guard is not None:
                    self.guard.report(choice, self.recipe.value(seconds, failed=failed))
                if not failed:
                    while answer:
                        client.write(answer)
                        await client.drain()
                        answer = await upstream.read(65536)
                    return
        client.write(answer)


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a provider."""
    parts = urlsplit(url)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    return await asyncio.open_connection(parts.hostname, parts.port or (443 if tls else 80), ssl=tls)


async def run(proxy: Proxy, port: int) -> None:
    """Serve until cancelled."""
    async with await asyncio.start_server(proxy.serve, "127.0.0.1", port) as server:
        print(f"the proxy listens on 127.0.0.1:{port}", flush=True)
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("providers", nargs="+", metavar="ARM=URL")
    parser.add_argument("--port", type=int, default=17600)
    parser.add_argument("--node", help="URL of the node; without it providers are taken at random")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds to the first token")
    parser.add_argument("--failure", type=float, help="seconds that a failure costs; the time-out")
    given = parser.parse_args()
    providers = dict(each.split("=", 1) for each in given.providers)
    guard = Guard(given.node) if given.node else None
    recipe = FirstToken(timeout=given.timeout, failure=given.failure)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        asyncio.run(run(Proxy(providers, guard, recipe), given.port))
    finally:
        if guard is not None:
            guard.close()
            print(json.dumps({"counts": guard.counts, "choose": list(guard.seconds)}), flush=True)


if __name__ == "__main__":
    main()
