"""Propensities of live nodes: recorded with decisions, carried to the log, exported, evaluated.

That they are the simulator's to the bit is in test_lockstep.py.
"""

from __future__ import annotations

import asyncio
import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from live.making import GAME, node_config
from live.processes import Cluster
from rumormill.cli import main
from rumormill.errors import DataError, InputError
from rumormill.live import EmbeddedNode
from rumormill.live.core.node import Node
from rumormill.live.core.records import (
    Constrained,
    Decision,
    Drawn,
    DrawnOwn,
    Own,
    Record,
    ScaledOwn,
    ShiftedOwn,
    Weighted,
    decode,
    encode,
)
from rumormill.live.io.folder import check_folder, export, pack, read_log, unpack
from rumormill.live.io.journal import Journal
from rumormill.mesh.file import Limits, read_mesh, write_mesh

GREEDY = rm.EpsilonGreedy(gamma=1, rate=0.4)


def lonely(policy: Any = GREEDY, **given: Any) -> Node:
    """One of two nodes, whose neighbour is away."""
    return ready(Node(node_config(policy, rm.Network.path(2), 0, **given)))


def ready(node: Node) -> Node:
    node.start()
    written(node)
    return node


def written(node: Node) -> list[Record]:
    found = node.take_journal()
    node.committed(node.records)
    return list(found)


def play(node: Node, n: int) -> None:
    for _ in range(n):
        token = node.choose(GAME, 1.0, 60.0)
        node.observe(GAME, token.t, token.arm, token.arm / 9 + math.sin(token.t**2))


def test_nothing_is_recorded_unless_somebody_asks() -> None:
    node = lonely()
    play(node, 20)
    token = node.choose(GAME, 1.0, 60.0)
    node.choose(GAME, 1.0, 60.0, [0, 2])
    assert token.propensity is None
    assert {type(each) for each in written(node)} == {Decision, Constrained, Own}
    asked = node.choose(GAME, 1.0, 60.0, None, 1, True)
    assert asked.propensity == pytest.approx(0.6 + 0.4 / 3) or asked.propensity == pytest.approx(0.4 / 3)
    node.observe(GAME, asked.t, asked.arm, 1.0)
    made = written(node)
    assert [type(each) for each in made] == [Drawn, DrawnOwn]
    assert [each.propensity for each in made] == [asked.propensity] * 2  # type: ignore[union-attr]


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_restart_keeps_them(with_snapshot: bool) -> None:
    """Late rewards of decisions before it have them, as at a node that was not stopped."""
    node = Node(node_config(rm.Default(gamma=1), rm.Network.path(2), 0, propensities=True))
    node.start()
    journal = written(node)
    play(node, 200)  # before, an arm is below its share and taken for certain
    late = [node.choose(GAME, 1.0, 5.0) for _ in range(4)]
    node.tick(20.0)  # they expire
    assert len({token.propensity for token in late}) > 1
    journal += written(node)
    assert len([each for each in journal if isinstance(each, Drawn)]) == 204
    again = Node(node.config)
    if with_snapshot:
        again.restart(unpack(pack(node.snapshot())), [])
    else:
        again.restart(None, journal)
    assert again.games[GAME].differing == 0
    assert again.games[GAME].decisions.propensities == {token.t: token.propensity for token in late}
    ready(again)
    for each in (node, again):
        for token in late:
            taken = each.observe(GAME, token.t, token.arm, 2.0, 3)
            assert taken.late
    told = [[each for each in written(one) if isinstance(each, Own)] for one in (node, again)]
    assert told[0] == told[1]
    assert [each.propensity for each in told[0]] == [token.propensity for token in late]  # type: ignore[attr-defined]
    assert not again.games[GAME].decisions.propensities
    assert again.choose(GAME, 21.0, 5.0).propensity is not None


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(2, 7), st.integers(0, 80), st.sampled_from([rm.Default, rm.ThompsonKMP, rm.EpsilonGreedy]))
def test_of_any_size_a_replay_has_the_same(n_arms: int, rounds: int, policy: Any) -> None:
    """Records as read from disk; every third decision gets no reward, others choose among two arms."""
    node = Node(node_config(policy(gamma=1), rm.Network.path(2), 0, n_arms=n_arms, propensities=True))
    node.start()
    journal, waiting = written(node), {}
    for i in range(rounds):
        token = node.choose(GAME, 1.0, 60.0, [0, 1] if i % 3 == 1 else None)
        assert token.propensity is not None
        assert 0.0 < token.propensity <= 1.0 + 1e-12
        if i % 3:
            node.observe(GAME, token.t, token.arm, math.sin(i * i))
        else:
            waiting[token.t] = token.propensity
    journal += written(node)
    again = Node(node.config)
    again.restart(None, [decode(encode(each)) for each in journal])
    assert again.games[GAME].differing == 0
    assert again.games[GAME].decisions.propensities == node.games[GAME].decisions.propensities == waiting


def test_of_several_arms_the_first_has_one() -> None:
    node = lonely(propensities=True)
    play(node, 10)
    token = node.choose(GAME, 1.0, 60.0, [0, 2], 2)
    assert token.propensity in (pytest.approx(0.8), pytest.approx(0.2))
    written(node)
    for arm in (*token.others, token.arm):
        node.observe(GAME, token.t, arm, 1.0)
    first, second = written(node)
    assert type(first) is Own
    assert isinstance(second, DrawnOwn)
    assert second.propensity == token.propensity


def test_what_is_kept_of_decisions_without_a_reward_is_bounded() -> None:
    node = lonely(propensities=True, limits=Limits(max_open=8))
    made = [node.choose(GAME, 1.0, 60.0) for _ in range(12)]
    assert list(node.games[GAME].decisions.propensities) == [token.t for token in made[4:]]
    written(node)
    node.observe(GAME, made[0].t, made[0].arm, 1.0)  # late, its propensity is gone
    assert [type(each) for each in written(node)] == [Own]


def test_a_policy_that_does_not_say_its_own() -> None:
    node = lonely(rm.KMPUCB(gamma=1), propensities=True)
    assert node.choose(GAME, 1.0, 60.0).propensity == 1.0  # it draws nothing
    agent: Any = node.games[GAME].adapter.agent
    agent.propensity = lambda arm: float("nan")
    written(node)
    assert node.choose(GAME, 1.0, 60.0).propensity is None
    assert [type(each) for each in written(node)] == [Decision]


def test_the_log_has_them_before_and_after_a_snapshot(tmp_path: Path) -> None:
    """Of a weighted reward the first row; rows without one are stored as they were before there were any."""
    told: list[Record] = [
        Own("g", 1, 0, 1.0, 1),
        Weighted("g", 2, 0, 2.0, 3, "", 2),
        DrawnOwn("g", 3, 1, 3.0, 5, "b", 2, 0.25),
        ShiftedOwn("g", 4, 1, 4.0, 6, "b", 1, 0.5, 9.0),
        ScaledOwn("g", 5, 1, 5.0, 7, "b", 1, float("nan"), 9.0, 2.0),
    ]
    logs = []
    for name, with_snapshot in (("plain", False), ("snapshot", True)):
        journal = Journal(tmp_path / name, "mesh m, node n", fresh_epoch=lambda: 7, clock=lambda: 5.0)
        journal.write(told)
        if with_snapshot:
            journal.write_snapshot(pack({}))
        journal.start(lambda n: None)
        assert journal.close()
        assert "7 own observations" in check_folder(tmp_path / name)
        logs.append([tuple(row[2:]) for row in read_log(tmp_path / name)[1]])
    rows = [(1, 0, 1.0, None), (2, 0, 2.0, None), (2, 0, 2.0, None), (3, "b", 3.0, 0.25), (3, "b", 3.0, None)]
    rows += [(4, "b", 4.0, 0.5), (5, "b", 5.0, None)]
    assert logs == [rows, rows]
    reader = Journal(tmp_path / "snapshot", "mesh m, node n", fresh_epoch=lambda: 7)
    ((data,),) = reader._base.execute("SELECT data FROM log").fetchall()
    reader.close()
    assert [len(row) for row in msgspec.msgpack.decode(data)] == [5, 5, 5, 6, 5, 6, 5]


def mesh_with(folder: Path, policy: str) -> Cluster:
    """Two nodes, of which one is played; costs of three arms, propensities recorded."""
    made = Cluster(folder, [(0, 1)], policy=policy)
    file = read_mesh(made.mesh).file
    file.games[0].propensities = True
    write_mesh(made.mesh, file)
    return made


async def played(made: Cluster, rounds: int, weight: int = 1, seed: int = 1) -> list[tuple[str, float]]:
    """Decisions of node 0, ten at a time; arms and propensities as they were answered."""
    means = dict(zip(read_mesh(made.mesh).file.games[0].arms, (3.0, 4.0, 6.0), strict=True))
    rng, said = np.random.default_rng(seed), []
    async with EmbeddedNode(made.mesh, "n0", made.data(0)) as node:
        for _ in range(rounds // 10):
            chosen = [node.choose() for _ in range(10)]
            costs = [means[each.arm] * float(rng.gamma(4.0, 0.25)) for each in chosen]
            await asyncio.gather(
                *(node.observe(each, cost, weight=weight) for each, cost in zip(chosen, costs, strict=True))
            )
            for each in chosen:
                assert each.propensity is not None
                said.append((each.arm, each.propensity))
    return said


def test_from_nodes_to_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log of two runs with a restart between them, exported and evaluated without an option."""
    made = mesh_with(tmp_path, "epsilon-greedy")
    file = read_mesh(made.mesh).file
    file.games[0].policy["rate"] = 0.9
    file.limits = Limits(block=4_096)  # reserved at any speed: known draws after a restart
    write_mesh(made.mesh, file)
    said = asyncio.run(played(made, 900))
    said += asyncio.run(played(made, 300, weight=2, seed=2))
    log = tmp_path / "log.csv"
    assert export(made.mesh, [made.data(0)], log) == 900 + 2 * 300
    rows = list(csv.DictReader(log.read_text().splitlines()))
    assert list(rows[0]) == ["time", "agent", "arm", "cost", "propensity"]
    assert [(row["arm"], float(row["propensity"])) for row in rows if row["propensity"]] == said
    arms = read_mesh(made.mesh).file.games[0].arms
    asked = itertools.chain(*(("--policy", f"always={arm}") for arm in arms))
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(log), *asked, "--policy", "uniform", "--json"])
    assert left.value.code == 0
    found = json.loads(capsys.readouterr().out)
    # 1,200 choices, the same ones in every run.
    for each, mean in zip(found, (3.0, 4.0, 6.0, 13.0 / 3.0), strict=True):
        assert each["without"] == 300
        assert each["doubly_robust"]["low"] < mean < each["doubly_robust"]["high"]
    with pytest.raises(SystemExit):
        main(["evaluate", str(log)])
    assert "300 rows without a propensity are left out of the estimates" in capsys.readouterr().err
    export(made.mesh, [made.data(0)], tmp_path / "log.parquet")
    assert rm.evaluate(tmp_path / "log.parquet", "uniform") == rm.evaluate(log, "uniform")
    assert rm.read_log(log, objective="minimise").n_arms == 3  # advice reads it too


def test_a_log_without_any_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("arm,reward,propensity\n" + "a,1.0,\n" * 9)
    with pytest.raises(InputError, match="is empty: without propensities a log cannot tell"):
        rm.evaluate(log, "uniform")


def test_the_default_and_the_mesh_file(tmp_path: Path) -> None:
    made = mesh_with(tmp_path, "default")
    said = asyncio.run(played(made, 240))
    assert 0.0 < min(chance for _, chance in said) < 1.0
    assert "propensities = true" in made.mesh.read_text()
    made.mesh.write_text(made.mesh.read_text().replace("propensities = true", 'propensities = "yes"'))
    with pytest.raises(DataError, match=r"games\[0\].propensities = 'yes' is not allowed: expected bool"):
        read_mesh(made.mesh)
