"""A neighbour that sends much, and clients that go away, cost little."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import msgspec
import pytest

import rumormill as rm
from live.making import GAME, nodes_of
from live.processes import Cluster
from rumormill.live.core import frames as wire
from rumormill.live.core.frames import HEAD, LARGE_FRAME, Have, Hello, ProtocolError, Splitter
from rumormill.live.core.node import Node
from rumormill.live.io.http import Request, Response
from rumormill.live.io.runtime import Runtime, Settings


def linked(size: int = 3) -> Node:
    """Node 0, linked with node 1."""
    node = nodes_of(rm.DecentralizedMPUCB(gamma=1, clique_filter=False), rm.Network.complete(size))[0]
    node.tick(0.0)
    node.link_up(1, 1)
    games = [(GAME, node.games[GAME].config.fingerprint)]
    node.receive(1, wire.encode(Hello(1, 1, "test", 1, 1, games))[4:])
    return node


def test_a_frame_that_no_neighbour_sends_is_refused_before_it_is_read() -> None:
    """A Have of 950 kB: the mesh has three nodes."""
    splitter = Splitter(linked().largest_frame)
    assert splitter.limit < 64 * 1024
    large = wire.encode(Have(GAME, [(1, 1, 5, 0)] * 190_000))
    assert 900_000 < len(large) < LARGE_FRAME
    with pytest.raises(ProtocolError, match="bytes"):
        splitter.feed(large[: HEAD.size + 1])


@pytest.mark.parametrize("size", [2, 30])
def test_the_largest_frames_of_a_neighbour_are_read(size: int) -> None:
    """All members with all their epochs in a Have; a full batch with large numbers and a head."""
    node = linked(size)
    limits, far = node.config.limits, 1 << 40
    rows = [(v, far + e, far, -1) for v in range(size) for e in range(limits.epochs)]
    head = wire.Head(far, 65_000, ((1e300, 1e300),) * 3)
    for frame in (
        Have(GAME, rows),
        wire.Obs(GAME, far, far, 9, far, [(far, 65_000, 1e300)] * limits.batch, head, bytes(64)),
    ):
        assert Splitter(node.largest_frame).feed(wire.encode(frame))


def test_a_link_is_paused_by_what_it_sends_in_bytes() -> None:
    """As many as it can: what is decoded in a second is bounded, and so is the work of one tick."""
    node = linked()
    rows = [(1, 1, 5, 0)] * 4_000
    body = wire.encode(Have(GAME, rows))[4:]
    taken = 0
    for _ in range(2_000):
        if not node.is_paused(1):
            node.receive(1, body)
            taken += len(body)
    assert 1_000_000 < taken < 3_000_000
    node.tick(0.1)
    for _ in range(2_000):
        if not node.is_paused(1):
            node.receive(1, body)
            taken += len(body)
    assert taken < 3_000_000


def test_a_row_that_is_repeated_ends_a_have() -> None:
    node = linked()
    node.receive(1, wire.encode(Have(GAME, [(1, 1, 5, 0), *[(2, 1, 7, 1)] * 1_000, (2, 1, 8, 1)]))[4:])
    assert node.links[1].games[GAME].claims == {(1, 1): 5, (2, 1): 7}
    assert node.violations["have"] == 1


def runtime_in(folder: Path) -> Runtime:
    made = Cluster(folder, [(0, 1)])
    return Runtime(Settings(mesh=made.mesh, name="n0", data=folder / "data", http="127.0.0.1:0"))


def test_others_get_a_turn_while_a_batch_is_accepted(tmp_path: Path) -> None:
    async def main() -> tuple[int, Response]:
        runtime, turns = runtime_in(tmp_path), 0
        rows = [{"token": f"1-{i + 1:x}-0-{GAME}", "reward": 1.0} for i in range(10_000)]
        body = msgspec.json.encode({"observations": rows})
        answer = runtime.sidecar.respond(Request("POST", "/v1/observe", {}, body))
        assert isinstance(answer, asyncio.Future)
        while not answer.done():
            turns += 1
            await asyncio.sleep(0)
        runtime.journal.close()
        return turns, answer.result()

    turns, response = asyncio.run(main())
    assert response.body.count(b'"status":410') == 10_000
    assert turns >= 50


def test_a_batch_of_decisions_waits_for_their_numbers(tmp_path: Path) -> None:
    """More at once than are reserved ahead: the answer comes when they are on disk."""

    async def main() -> None:
        runtime, loop = runtime_in(tmp_path), asyncio.get_running_loop()

        def on_commit(n: int) -> None:
            loop.call_soon_threadsafe(runtime._committed, n)

        runtime.journal.start(on_commit)
        runtime.node.start()
        for count in (1, 1_000, 1_000, 1_000, 1_000, 1):
            answer = runtime.sidecar.respond(
                Request("POST", "/v1/choose", {}, msgspec.json.encode({"count": count}))
            )
            response = answer if isinstance(answer, Response) else await answer
            assert response.body.count(b'"token"') == count
        runtime.journal.close()

    asyncio.run(main())


def test_requests_whose_clients_are_gone_are_forgotten(tmp_path: Path) -> None:
    """While the disk is full clients give up and ask again; none of it is kept."""

    async def main() -> int:
        runtime = runtime_in(tmp_path)
        runtime.journal.start(lambda n: None)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(3_000):
            waiting = runtime.when_durable(1 << 40, Response(200, bytes(200)))
            assert isinstance(waiting, asyncio.Future)
            waiting.cancel()
            await asyncio.sleep(0)
        del waiting
        gc.collect()
        kept = len(gc.get_objects()) - before
        waits = runtime.when_durable(7, Response(201))
        runtime._committed(7)
        assert isinstance(waits, asyncio.Future)
        assert waits.result().status == 201
        runtime.journal.close()
        return kept

    assert asyncio.run(main()) < 500
