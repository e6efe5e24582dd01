"""A node inside an asyncio application: every worker asks for a mirror and reports how long it took.

python examples/embedded.py mesh.toml n0 n0.data
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from rumormill.live import EmbeddedNode

WORKERS, REQUESTS = 4, 25


async def worker(node: EmbeddedNode) -> None:
    for _ in range(REQUESTS):
        choice = node.choose("mirrors")  # from memory: no await
        latency = random.expovariate(1 / 40.0)  # in its place: the request to the mirror choice.arm
        await asyncio.sleep(0)
        await node.observe(choice, latency)  # returns when it is on disk


async def main(mesh: Path, name: str, data: Path) -> None:
    async with EmbeddedNode(mesh, name, data) as node:
        await asyncio.gather(*(worker(node) for _ in range(WORKERS)))
        for row in node.status()["games"]["mirrors"]["arms"]:
            print(row["arm"], row["samples"], row["mean"])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
