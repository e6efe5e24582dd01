"""Arms are names: a new revision of a game keeps what was learned of the arms that stay."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rumormill as rm
from live.making import GAME, MOMENTS, maker, node_config
from live.processes import cluster, wait_until
from live.test_node import commit, exchange, link
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import NodeConfig
from rumormill.live.io.folder import observations, pack, unpack
from rumormill.mesh.edit import plan
from rumormill.mesh.file import read_mesh, write_mesh

PAIR = rm.Network.complete(2)
POLICIES = [
    rm.DecentralizedMPUCB(gamma=1, clique_filter=False),
    rm.KMPUCB(gamma=1),
    rm.KMPUCB(gamma=1, estimator=rm.SelfTuned()),
    rm.CentralizedMPUCB(gamma=1),
    rm.OriginMedianUCB(gamma=1, f=0),
]


def revised(
    policy: Any, v: int, arms: tuple[str, ...], kind: str = "costs", *, signed: bool = False
) -> NodeConfig:
    config = node_config(policy, PAIR, v, signed=signed)
    game = dataclasses.replace(
        config.games[0],
        arms=arms,
        n_arms=len(arms),
        kind=kind,
        fingerprint=f"{kind} {arms}",
        make_agent=maker(policy, PAIR, v, len(arms), MOMENTS),
    )
    return dataclasses.replace(config, games=(game,))


def play(node: Node, n: int) -> list[int]:
    """Rewards by the name of the arm."""
    worth = {"ams": 1.0, "fra": 2.0, "waw": 3.0, "lon": 4.0}
    names, found = node.games[GAME].config.arms, []
    for i in range(n):
        token = node.choose(GAME, node.now, 60.0)
        node.observe(GAME, token.t, token.arm, worth[names[token.arm]] + 0.01 * (i % 5))
        found.append(token.arm)
    commit(node)
    return found


def learned(node: Node) -> dict[str, tuple[int, Any]]:
    """(samples, state of the estimator) of every arm."""
    game = node.games[GAME]
    state = unpack(pack(game.adapter.state()))
    return {
        name: (n, state["agent"]["samples"][arm])
        for arm, (name, n) in enumerate(zip(game.config.arms, game.adapter.samples, strict=True))
    }


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_arms_come_and_go(policy: Any) -> None:
    before, after = ("fra", "ams", "waw"), ("waw", "lon", "fra")
    nodes = [Node(revised(policy, v, before)) for v in (0, 1)]
    for node in nodes:
        node.tick(0.0)
        node.start()
        commit(node)
    link(nodes)
    for _ in range(4):
        for node in nodes:
            play(node, 15)
        exchange(nodes)
    known, start = [learned(node) for node in nodes], pack(nodes[0].snapshot())
    for v, node in enumerate(nodes):
        node.reconfigure(revised(policy, v, after))
    for was, node in zip(known, nodes, strict=True):
        now = learned(node)
        assert now["lon"][0] == 0
        assert (now["waw"], now["fra"]) == (was["waw"], was["fra"])
    journal = nodes[0].take_journal()
    # The change from the records, or a start with the new file: the same.
    again = Node(revised(policy, 0, after))
    again.restart(unpack(start), journal)
    assert learned(again) == learned(nodes[0])
    late = Node(revised(policy, 0, after))
    late.restart(unpack(start), [])
    late.tick(0.0)
    late.start()
    assert learned(late) == learned(nodes[0])
    third = Node(revised(policy, 0, after))
    third.restart(unpack(start), late.take_journal())
    assert learned(third) == learned(nodes[0])
    for node in nodes:
        node.link_down(1)
        commit(node)
    link(nodes, 2)
    arms = [arm for node in nodes for arm in play(node, 40)]
    exchange(nodes, 2)
    assert learned(nodes[0])["lon"][0] > 0
    assert after.index("lon") in arms
    assert not nodes[0].violations
    total = [sum(node.games[GAME].adapter.samples) for node in nodes]
    kept = [was["waw"][0] + was["fra"][0] for was in known]
    assert total == [each + 80 for each in kept]


def test_the_last_signature_of_a_stream_is_carried_over() -> None:
    """It proves to others that the items before a new revision were: they are skipped, not waited for."""
    policy, before, after = POLICIES[0], ("fra", "ams", "waw"), ("waw", "lon", "fra")
    nodes = [Node(revised(policy, v, before, signed=True)) for v in (0, 1)]
    for node in nodes:
        node.tick(0.0)
        node.start()
        commit(node)
    link(nodes)
    play(nodes[0], 6)
    exchange(nodes)
    nodes[1].reconfigure(revised(policy, 1, after, signed=True))
    stream = nodes[1].games[GAME].streams[(0, 1)]
    assert stream.chain is not None
    assert [point.upto for point in stream.chain.points] == [stream.upto] == [6]


def test_another_objective_is_another_game() -> None:
    policy, arms = POLICIES[0], ("fra", "ams", "waw")
    node = Node(revised(policy, 0, arms))
    node.tick(0.0)
    node.start()
    commit(node)
    play(node, 10)
    node.reconfigure(revised(policy, 0, ("fra", "ams"), kind="rewards"))
    assert sum(node.games[GAME].adapter.samples) == 0


def test_a_new_mesh_file_with_other_arms(tmp_path: Path) -> None:
    """On SIGHUP, with processes."""
    told: Counter[str] = Counter()
    with cluster(tmp_path, [(0, 1)]) as made:
        for v in (0, 1):
            made.start(v)
        with made.client(0) as client:
            for _ in range(30):
                choice = client.choose(GAME)
                client.observe(choice, 10.0 + len(choice.arm))
                told[choice.arm] += 1
        wait_until(lambda: made.samples(1) == 30)
        rows = {row["arm"]: row for row in made.status(1)["games"][GAME]["arms"]}
        file = read_mesh(made.mesh).file
        file.games[0].arms = ["waw", "lon", "fra"]
        file.revision += 1
        write_mesh(made.mesh, file)
        plan(made.mesh)
        for v in (0, 1):
            made.hang_up(v)
        wait_until(lambda: "lon" in {row["arm"] for row in made.status(1)["games"][GAME]["arms"]})
        now = {row["arm"]: row for row in made.status(1)["games"][GAME]["arms"]}
        assert now["lon"]["samples"] == 0
        assert all(now[arm]["samples"] == rows[arm]["samples"] for arm in ("waw", "fra"))
        before = made.samples(1)
        wait_until(lambda: made.status(0)["links"][0]["up"] and "lon" in str(made.status(0)["games"]))
        with made.client(0) as client:
            for _ in range(10):
                choice = client.choose(GAME)
                client.observe(choice, 5.0)
                told[choice.arm] += 1
        wait_until(lambda: made.samples(1) == before + 10)
        # The log has every reward under the name that its arm had then.
        assert Counter(row[2] for row in observations(made.mesh, [made.data(0)], None)[1]) == told
