"""A load generator: requests at random times to a gateway, and how long each waited for its first token.

python examples/router/load.py http://127.0.0.1:17600 --rate 10 --seconds 20

Arrivals do not wait for answers (an open loop), and depend on the seed alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

Send = Callable[[str], Awaitable[float | None]]
"""Sends a request with a text; the seconds to the first token, or None if it failed."""


async def drive(
    send: Send, name: str, *, rate: float, start: float, until: float, seed: int
) -> list[dict[str, object]]:
    """Requests at `rate` a second between two moments (seconds since 1970); a row for each.

    `late` is how long after its arrival the event loop came to a request.
    """
    rng = random.Random(f"{seed}/{name}")
    rows: list[dict[str, object]] = []

    async def one(key: str, due: float) -> None:
        at = time.time()
        first = await send(key)
        rows.append({"key": key, "at": at, "first": first, "late": at - due})

    at, tasks = start, list[asyncio.Task[None]]()
    while (at := at + rng.expovariate(rate)) < until:
        await asyncio.sleep(max(0.0, at - time.time()))
        tasks.append(asyncio.create_task(one(f"{name}/{len(tasks)}", at)))
    await asyncio.gather(*tasks)
    return rows


async def post(url: str, key: str) -> float | None:
    """One streamed chat completion over HTTP."""
    parts, began = urlsplit(url), time.perf_counter()
    messages = [{"role": "user", "content": key}]
    body = json.dumps({"model": "chat", "messages": messages, "stream": True}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(head.encode() + body)
        status = (await reader.readuntil(b"\r\n\r\n"))[9:12]
        await reader.readline()
        first = time.perf_counter() - began
        await reader.read()
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        return None
    return first if status == b"200" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="of the gateway")
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    async def send(key: str) -> float | None:
        return await post(given.url, key)

    now = time.time()
    rows = asyncio.run(
        drive(send, "load", rate=given.rate, start=now, until=now + given.seconds, seed=given.seed)
    )
    took = sorted(float(row["first"]) for row in rows if isinstance(row["first"], float))
    middle, high = (1000 * took[int(q * len(took))] for q in (0.5, 0.95))
    print(f"{len(rows)} requests, {len(rows) - len(took)} failed")
    print(f"first token after {middle:.0f} ms (median), {high:.0f} ms (95 %)")


if __name__ == "__main__":
    main()
