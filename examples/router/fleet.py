"""A fake fleet of model providers: real HTTP servers with chat completions, streaming included.

python examples/router/fleet.py --ports 17501 17502 17503 17504 --brown-out 30 60

Every provider has a port. The time to the first token has heavy tails, some requests fail, one provider
limits its rate, one has a brown-out. What a request meets depends on the seed, the provider and the
text of its last message, not on when it comes: rules that send the same requests meet the same chances.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

TOKENS = 12
"""Tokens of every answer."""
TIMEOUT = 10.0
"""Seconds after which gateways give up a request; means below are of min(time, TIMEOUT)."""


@dataclass(frozen=True)
class Provider:
    """One provider: its law of the time to the first token, in seconds, and its faults."""

    name: str
    typical: float
    """The mean time to the first token, without a time-out."""
    tail: float = 0.0
    """The tail index of a Pareto law; 0 for a log-normal one."""
    errors: float = 0.0
    """The share of requests that get a 500."""
    limit: float = math.inf
    """Requests a second beyond which it answers 429."""
    dollars_per_million: float = 1.0
    """The price of a million tokens."""
    slower: float = 1.0
    """By how much a brown-out slows it."""
    brown_errors: float = 0.0
    """The share of requests that get a 503 in a brown-out."""

    def draw(self, rng: random.Random, brown: bool) -> float:
        """Seconds to the first token."""
        if self.tail:
            seconds = self.typical * (self.tail - 1) / self.tail * rng.paretovariate(self.tail)
        else:
            seconds = self.typical * math.exp(rng.gauss(-0.5, 1.0))
        return seconds * (self.slower if brown else 1.0)

    def mean(self, brown: bool) -> float:
        """The mean of min(time to first token, TIMEOUT)."""
        slower = self.slower if brown else 1.0
        end, tail = TIMEOUT / slower, self.tail
        if tail:
            least = self.typical * (tail - 1) / tail
            return slower * (self.typical - math.pow(least / end, tail) * end / (tail - 1))
        z = math.log(end / self.typical) + 0.5
        return slower * (self.typical * normal(z - 1) + end * normal(-z))

    @property
    def dollars(self) -> float:
        """The price of one answer."""
        return TOKENS * self.dollars_per_million / 1e6


FLEET = [
    Provider("arbor", 0.20, tail=1.6, errors=0.01, dollars_per_million=15.0, slower=6.0, brown_errors=0.05),
    Provider("birch", 0.35, tail=1.8, errors=0.01, dollars_per_million=10.0),
    Provider("cedar", 0.55, errors=0.02, limit=6.0, dollars_per_million=2.0),
    Provider("dogwood", 0.45, tail=2.2, dollars_per_million=6.0),
]


@dataclass
class Fleet:
    """The servers, what they draw from, and what they saw."""

    seed: int
    began: float
    brown_out: tuple[float, float]
    log: Path | None = None
    scale: float = 1.0
    """Factor of all times to the first token: a small one for a short demonstration."""
    seen: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    tokens: dict[str, tuple[float, float]] = field(default_factory=dict)

    def is_brown(self) -> bool:
        """Whether the brown-out lasts now."""
        first, last = self.brown_out
        return first <= time.time() - self.began < last

    def over_the_limit(self, provider: Provider) -> bool:
        """A token bucket that holds a second's worth."""
        now = time.monotonic()
        then, left = self.tokens.get(provider.name, (now, provider.limit))
        left = min(provider.limit, left + (now - then) * provider.limit) if provider.limit < math.inf else 1.0
        self.tokens[provider.name] = (now, left - (left >= 1.0))
        return left < 1.0

    def meet(self, provider: Provider, key: str) -> tuple[int, float]:
        """The status of a request and the seconds until its first byte."""
        self.seen[provider.name, key] += 1
        rng = random.Random(f"{self.seed}/{provider.name}/{key}/{self.seen[provider.name, key]}")
        brown = self.is_brown()
        seconds, coin = self.scale * provider.draw(rng, brown), rng.random()
        if self.over_the_limit(provider):
            return 429, 0.002
        if coin < provider.errors:
            return 500, min(seconds, 0.2)
        if brown and coin > 1 - provider.brown_errors:
            return 503, min(seconds, 0.2)
        return 200, seconds

    async def serve(
        self, provider: Provider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection: requests until it is closed."""
        try:
            while line := await reader.readline():
                headers = {}
                while (header := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    headers[name.lower()] = value.strip().lower()
                body = await reader.readexactly(int(headers.get(b"content-length", 0)))
                if line.startswith(b"POST /v1/chat/completions"):
                    async for part in self.answer(provider, json.loads(body)):
                        writer.write(part)
                        await writer.drain()
                else:
                    writer.write(response(404, {"error": {"message": "POST /v1/chat/completions"}}))
                if headers.get(b"connection") == b"close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError, LookupError, TypeError, ValueError):
            pass
        except asyncio.CancelledError:  # the fleet ends
            pass
        finally:
            writer.close()

    async def answer(self, provider: Provider, request: dict[str, Any]) -> AsyncIterator[bytes]:
        """The bytes of one response, as they become ready."""
        key = str(request["messages"][-1]["content"])
        status, seconds = self.meet(provider, key)
        if self.log is not None:
            row = {
                "at": round(time.time() - self.began, 4),
                "provider": provider.name,
                "key": key,
                "status": status,
                "seconds": round(seconds, 5),
            }
            with self.log.open("a") as out:
                out.write(json.dumps(row) + "\n")
        await asyncio.sleep(seconds)
        if status != 200:
            words = {429: "rate limit reached", 500: "internal error", 503: "overloaded"}[status]
            yield response(status, {"error": {"message": f"{provider.name}: {words}", "code": status}})
            return
        usage = {"prompt_tokens": 8, "completion_tokens": TOKENS, "total_tokens": 8 + TOKENS}
        head = {"id": f"chatcmpl-{key}", "created": int(time.time()), "model": provider.name}
        if not request.get("stream"):
            message = {"role": "assistant", "content": "la " * TOKENS}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            yield response(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        head["object"] = "chat.completion.chunk"
        for part, end in (("la ", None), ("la " * (TOKENS - 1), "stop")):
            delta = {"role": "assistant", "content": part}
            yield event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
            await asyncio.sleep(0.01)
        yield event({**head, "choices": [], "usage": usage})
        yield chunk(b"data: [DONE]\n\n") + chunk(b"")


def normal(z: float) -> float:
    """The distribution function of the standard normal law."""
    return (1 + math.erf(z / math.sqrt(2))) / 2


def response(status: int, body: dict[str, object]) -> bytes:
    data = json.dumps(body).encode()
    extra = "Retry-After: 1\r\n" if status == 429 else ""
    head = (
        f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(body: dict[str, object]) -> bytes:
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


async def run(fleet: Fleet, ports: Sequence[int]) -> None:
    """Serve until cancelled."""
    servers = [
        await asyncio.start_server(partial(fleet.serve, provider), "127.0.0.1", port)
        for provider, port in zip(FLEET, ports, strict=True)
    ]
    names = ", ".join(f"{provider.name} {port}" for provider, port in zip(FLEET, ports, strict=True))
    print(f"providers listen: {names}", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ports", type=int, nargs=len(FLEET), default=range(17501, 17505))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--began", type=float, help="seconds since 1970 from which times count; now")
    parser.add_argument("--brown-out", type=float, nargs=2, default=(1e9, 1e9), metavar=("FIRST", "LAST"))
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all times to the first token")
    parser.add_argument("--log", type=Path, help="a JSON line per request")
    given = parser.parse_args()
    fleet = Fleet(given.seed, given.began or time.time(), tuple(given.brown_out), given.log, given.scale)
    asyncio.run(run(fleet, given.ports))


if __name__ == "__main__":
    main()
