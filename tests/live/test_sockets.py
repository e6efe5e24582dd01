"""Lock step over loopback sockets, with TLS: still the simulator's actions, round for round."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.lockstep import RoundNode
from live.making import GAME, node_config
from live.test_lockstep import bandit, by_the_simulator
from rumormill.engine.reference import BLOCK
from rumormill.live.io.transport import Transport
from rumormill.mesh.keys import load_tls, make_authority, make_keys
from rumormill.seeds import Role, root_seed, stream_seed

HORIZON = 130


def _raise(what: str, error: BaseException) -> None:
    raise AssertionError(what) from error


class Seat:
    """One node with its links, without a disk."""

    def __init__(self, node: RoundNode, names: dict[str, int], keys: Path) -> None:
        self.node = node
        name = f"n{node.config.node}"
        self.transport = Transport(node, names, load_tls(keys, name), lambda *line, **fields: None, _raise)

    def commit(self) -> None:
        self.node.take_journal()
        self.node.committed(self.node.records)


async def played(seats: list[Seat], pay: Any) -> list[list[int]]:
    try:
        return await _played(seats, pay)
    finally:
        for seat in seats:
            await seat.transport.stop()


async def _played(seats: list[Seat], pay: Any) -> list[list[int]]:
    ports = [await seat.transport.serve("127.0.0.1", 0) for seat in seats]
    for seat in seats:
        mine = seat.node.config
        seat.transport.dial({w: ("127.0.0.1", ports[w]) for w in mine.neighbours if w > mine.node})
        seat.node.start()
        seat.commit()

    async def until(true: Any) -> None:
        async with asyncio.timeout(120):
            while not true():
                await asyncio.sleep(0.001)

    def agreed() -> bool:
        return all(
            len(seat.node.links) == len(seat.node.config.neighbours)
            and all(link.games and link.games[GAME].answered for link in seat.node.links.values())
            for seat in seats
        )

    await until(agreed)
    rows = []
    for t in range(1, HORIZON + 1):
        row = []
        for v, seat in enumerate(seats):
            token = seat.node.choose(GAME, float(t), 60.0)
            seat.node.observe(GAME, token.t, token.arm, pay(v, t, token.arm))
            seat.commit()
            row.append(token.arm)
            seat.node.finish_round(t)
            seat.transport.pump(False)
        for seat in seats:
            await until(lambda seat=seat, t=t: seat.node.round_over(t))
            seat.commit()
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    "policy",
    [
        rm.CentralizedMPUCB(gamma=1),
        rm.DecentralizedMPUCB(gamma=2),
        rm.KMPUCB(gamma=2, quiet=0.25, start="shared"),
        rm.DecentralizedMPUCB(gamma=2, clique_filter=False, estimator=rm.SelfTuned(), quiet=0.0),
        rm.CentralizedMPUCB(gamma=2, estimator=rm.ClippedMean(), quiet=0.25),
    ],
)
def test_the_simulators_actions_over_sockets(policy: Any, tmp_path: Path) -> None:
    network = rm.Network.ring(5)
    source, seed = bandit(), 11
    rewards = source.stream(stream_seed(stream_seed(root_seed(seed), 0), Role.REWARDS), 5, HORIZON)
    draws = np.concatenate(
        [rewards.block(start, min(start + BLOCK, HORIZON)) for start in range(0, HORIZON, BLOCK)]
    )

    def pay(v: int, t: int, arm: int) -> float:
        draw = draws[t - 1, v, 0 if rewards.shared else arm]
        return float(rewards.loc[arm] + rewards.scale[arm] * draw)

    make_authority(tmp_path, "test")
    names = {f"n{v}": v for v in range(5)}
    for name in names:
        make_keys(tmp_path, name)

    async def play() -> list[list[int]]:
        given: dict[str, Any] = {"n_arms": source.n_arms, "moments": source.moments()}
        nodes = [RoundNode(node_config(policy, network, v, **given)) for v in range(5)]
        return await played([Seat(node, names, tmp_path) for node in nodes], pay)

    assert np.array_equal(asyncio.run(play()), by_the_simulator(policy, network, seed))
