"""Request classes: made on demand, agreed without a centre, bounded, forgotten, restored."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rumormill as rm
from live.making import GAME, MOMENTS, maker, node_config
from live.processes import Cluster, cluster, wait_until
from rumormill.live.core import node as node_module
from rumormill.live.core import streams
from rumormill.live.core.classes import WEIGHT
from rumormill.live.core.frames import HEAD
from rumormill.live.core.game import Refused
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import GameConfig
from rumormill.live.core.records import Born, Record, Reserve, decode, encode
from rumormill.live.io.client import NodeError
from rumormill.live.io.folder import pack, unpack

POLICY = rm.KMPUCB(gamma=2, zeta=0.3)
LIMIT = 1 << 40


def config(v: int, network: rm.Network, most: int = 2, policy: Any = POLICY) -> Any:
    made = node_config(policy, network, v)
    (game,) = made.games

    def of_class(name: str, prior: rm.Prior | None) -> GameConfig:
        make = maker(policy, network, v, 3, MOMENTS, prior)
        return dataclasses.replace(game, name=name, make_agent=make)

    return dataclasses.replace(made, games=(dataclasses.replace(game, classes=most, of_class=of_class),))


class Together:
    """Nodes on a path; everything that is sent arrives, and disks take everything at once."""

    def __init__(self, n: int, **given: Any) -> None:
        network = rm.Network.path(n)
        self.nodes = [Node(config(v, network, **given)) for v in range(n)]
        self.links = [(v, int(w)) for v in range(n) for w in network.neighbours(v)]
        self.journals: list[list[Record]] = [[] for _ in range(n)]
        for v, w in self.links:
            self.nodes[v].link_up(w, w)
        for node in self.nodes:
            node.start()
        self.settle()

    def settle(self) -> None:
        for _ in range(8):
            for v, node in enumerate(self.nodes):
                self.journals[v] += [decode(encode(each)) for each in node.take_journal()]
                node.committed(node.records)
            for v, w in self.links:
                for frame in self.nodes[v].frames(w, LIMIT):
                    self.nodes[w].receive(v, frame[HEAD.size :])

    def play(self, v: int, name: str, rewards: Iterable[float]) -> None:
        for reward in rewards:
            while True:
                try:
                    token = self.nodes[v].choose(name, 0.0, 60.0)
                    break
                except Exception:
                    self.settle()
            self.nodes[v].observe(name, token.t, token.arm, reward)
        self.settle()

    def restarted(self, v: int) -> Node:
        again = Node(self.nodes[v].config)
        again.restart(None, self.journals[v])
        return again


def samples(node: Node, name: str) -> int:
    return sum(node.games[name].adapter.samples)


def test_nodes_agree_on_a_class_without_a_centre() -> None:
    mesh = Together(3)
    mesh.play(0, f"{GAME}/large", [1.0] * 12)
    assert [samples(node, f"{GAME}/large") for node in mesh.nodes] == [12, 12, 12]
    mesh.play(2, f"{GAME}/large", [2.0] * 5)
    assert [samples(node, f"{GAME}/large") for node in mesh.nodes] == [17, 17, 17]
    assert all(samples(node, GAME) == 0 and node.ready for node in mesh.nodes)
    assert not any(node.violations for node in mesh.nodes)


def test_a_class_begins_with_the_prior_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEGMENT", 1_024)  # simulations make it small
    mesh = Together(2)
    for number in range(30):
        mesh.play(0, f"{GAME}/a", [float(number % 3 == 2) + 0.01 * number])
    mesh.play(1, f"{GAME}/b", [])
    mesh.nodes[1].choose(GAME, 0.0, 60.0)
    with pytest.raises(Exception, match="reserved"):
        mesh.nodes[1].choose(f"{GAME}/b", 0.0, 60.0)
    born = mesh.nodes[1].games[f"{GAME}/b"].born
    assert born is not None
    assert max(born.n) == WEIGHT
    agent = mesh.nodes[1].games[f"{GAME}/b"].adapter.agent
    assert agent.samples.prior is not None
    assert mesh.nodes[0].games[f"{GAME}/a"].born == Born(f"{GAME}/a", [0.0] * 3, [0] * 3, [0.0] * 3)


def test_the_least_recently_used_is_forgotten_and_returns_behind_its_numbers() -> None:
    mesh = Together(2, most=2)
    for name in ("a", "b"):
        mesh.play(0, f"{GAME}/{name}", [1.0] * 3)
    mesh.play(0, f"{GAME}/a", [1.0])
    token = mesh.nodes[0].choose(f"{GAME}/b", 0.0, 60.0)
    mesh.play(0, f"{GAME}/a", [1.0])
    mesh.play(0, f"{GAME}/c", [1.0] * 2)
    assert set(mesh.nodes[0].games) == {GAME, f"{GAME}/a", f"{GAME}/c"}
    with pytest.raises(Refused, match="forgotten"):
        mesh.nodes[0].observe(f"{GAME}/b", token.t, token.arm, 1.0)
    # The neighbour has no room: it keeps what it has.
    assert set(mesh.nodes[1].games) == {GAME, f"{GAME}/a", f"{GAME}/b"}
    mesh.play(0, f"{GAME}/b", [5.0])
    for node in mesh.nodes:
        node.tick(11.0)  # time for the next Have
    mesh.settle()
    back = mesh.nodes[0].games[f"{GAME}/b"]
    assert back.decisions.next_t > token.t
    assert samples(mesh.nodes[1], f"{GAME}/b") == 4, "three before, one since: none twice"
    assert back.own.upto == 4


def test_a_restart_knows_all_classes() -> None:
    mesh = Together(2, most=2)
    for name in ("a", "b", "a", "c", "b"):
        mesh.play(0, f"{GAME}/{name}", [1.0, 2.0, 4.0])
    node, again = mesh.nodes[0], mesh.restarted(0)
    later = Node(node.config)
    later.restart(unpack(pack(node.snapshot())), [])
    for other in (again, later):
        assert list(other.games) == list(node.games)
        assert set(other._removed) == set(node._removed)
        for name, game in node.games.items():
            assert other.games[name].born == game.born
            assert other.games[name].numbers[1:] == game.numbers[1:]
            assert other.games[name].adapter.samples == game.adapter.samples
            assert msgspec.msgpack.encode(other.games[name].adapter.state()) == msgspec.msgpack.encode(
                game.adapter.state()
            )
            assert other.games[name].differing == 0
    fingerprints = [each.fingerprint for each in mesh.journals[0] if isinstance(each, Reserve)]
    assert fingerprints.count("removed") == 2


def test_no_more_names_than_a_node_can_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "MOST_NAMES", 4)
    mesh = Together(2, most=2)
    for name in ("a", "b", "c"):
        mesh.play(0, f"{GAME}/{name}", [1.0])
    with pytest.raises(Refused, match="seen 4 names"):
        mesh.nodes[0].choose(f"{GAME}/d", 0.0, 60.0)
    mesh.play(0, f"{GAME}/a", [1.0])
    assert set(mesh.nodes[0].games) == {GAME, f"{GAME}/a", f"{GAME}/c"}


def test_a_new_mesh_file_keeps_classes() -> None:
    mesh = Together(2)
    mesh.play(0, f"{GAME}/a", [1.0] * 3)
    node = mesh.nodes[0]
    node.reconfigure(config(0, rm.Network.path(2), most=5))
    assert samples(node, f"{GAME}/a") == 3
    node.reconfigure(node_config(POLICY, rm.Network.path(2), 0))
    assert set(node.games) == {GAME}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with cluster(tmp_path_factory.mktemp("mesh"), [(0, 1)]) as built:
        text = built.mesh.read_text()
        built.mesh.write_text(text.replace("[[games]]\n", "[[games]]\nclasses = 3\n"))
        built.start(0)
        built.start(1)
        yield built


def test_over_http(made: Cluster, tmp_path: Path) -> None:
    with made.client(0) as client, made.client(1) as other:
        choice = client.choose(class_="large-eu", k=2)
        assert choice.game == "mirrors/large-eu"
        assert client.observe(choice, 12.0) == 1
        wait_until(lambda: "mirrors/large-eu" in other.status()["games"])
        wait_until(
            lambda: sum(row["samples"] for row in other.status()["games"]["mirrors/large-eu"]["arms"]) == 1
        )
        for wrong in ("", "a/b", "x" * 65):
            with pytest.raises(NodeError) as refused:
                client.choose(class_=wrong)
            assert refused.value.status == 422
        assert "mirrors/large-eu" in client._call("GET", "/v1/history", None)["games"]
