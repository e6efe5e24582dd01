"""A node inside an application: the example runs, and its promises are those of a process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from live.processes import GAME, Cluster, cluster, wait_until
from rumormill.live import EmbeddedNode, NodeError
from rumormill.live.io.folder import read_log

EXAMPLE = Path(__file__).parents[2] / "examples" / "embedded.py"


def test_the_example(tmp_path: Path) -> None:
    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(1)
        words = [sys.executable, str(EXAMPLE), str(made.mesh), "n0", str(made.data(0))]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
        assert sum(int(line.split()[1]) for line in done.stdout.splitlines()) == 100
        assert len(read_log(made.data(0))[1]) == 100
        again = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
        assert sum(int(line.split()[1]) for line in again.stdout.splitlines()) == 200
        wait_until(lambda: made.samples(1) >= 100)


def test_refusals_are_those_of_the_sidecar(tmp_path: Path) -> None:
    made = Cluster(tmp_path, [(0, 1)])
    node = EmbeddedNode(made.mesh, "n0", made.data(0))

    async def live() -> None:
        async with node:
            choice = node.choose()
            assert choice.game == GAME
            assert await node.observe(choice, 12.0) == await node.observe(choice.token, 12.0) == 1
            for status, reward in ((409, 13.0), (422, float("inf"))):
                with pytest.raises(NodeError) as refused:
                    await node.observe(choice, reward)
                assert refused.value.status == status
            with pytest.raises(NodeError, match="one of mirrors"):
                node.choose("chess")
            assert node.abandon(node.choose(ttl=5.0))
            ranked = node.choose(allowed=["fra", "waw"], k=2)
            assert {ranked.arm, ranked.others[0].arm} == {"fra", "waw"}
            assert node.abandon(ranked)
            assert node.status()["games"][GAME]["observed"] == 1
            node.reload()  # the same file: not taken

    asyncio.run(live())
    with pytest.raises(NodeError, match="not running"):
        node.choose()
    assert len(read_log(made.data(0))[1]) == 1
