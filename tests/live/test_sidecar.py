"""The sidecar: idempotent, exact in its refusals; the client; export; the mesh file's mistakes."""

from __future__ import annotations

import asyncio
import base64
import csv
import doctest
import http.client
import json
import math
import os
import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import rumormill as rm
from live.processes import ARMS, GAME, Cluster, cluster
from rumormill import catalogue
from rumormill.cli import main
from rumormill.errors import DataError, InputError
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import NodeConfig, node_config
from rumormill.live.io import status
from rumormill.live.io.client import AsyncClient, Client, NodeError
from rumormill.live.io.folder import export, observations
from rumormill.live.io.runtime import load_signer
from rumormill.live.io.status import arm_rows
from rumormill.mesh.edit import add, init, plan
from rumormill.mesh.file import GamePart, read_mesh

LIVE = {
    "decentralized",
    "centralized",
    "kmp",
    "origin-median",
    "robust",
    "klinf-ucb",
    "alpha-ts",
    "dpe2",
    "rmm-ucb",
    "coop-se",
    "epsilon-greedy",
    "default",
    "thompson-kmp",
    "adar-ucb",
}
"""Policies whose messages travel hops, or that send none."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("mesh"), [(0, 1)]) as built:
        built.start(0)
        yield built


def call(made: Cluster, path: str, body: Any = None, method: str = "POST") -> tuple[int, Any]:
    with made.client(0) as client:
        status, text = client._exchange(method, path, body)
        return status, json.loads(text)


def test_choose_observe_and_repeat(made: Cluster) -> None:
    status, choice = call(made, "/v1/choose", {"game": GAME, "ttl": 60})
    assert (status, choice["arm"] in ARMS) == (200, True)
    first = call(made, "/v1/observe", {"token": choice["token"], "reward": 31.5})
    assert first[0] == 200
    assert first[1]["accepted"]
    assert call(made, "/v1/observe", {"token": choice["token"], "reward": 31.5})[1]["seq"] == first[1]["seq"]
    assert call(made, "/v1/observe", {"token": choice["token"], "reward": 31.6})[0] == 409


@pytest.mark.parametrize("reward", [None, "12", True, [1], 1e300, 10**400])
def test_rewards_that_are_none(made: Cluster, reward: Any) -> None:
    token = call(made, "/v1/choose")[1]["token"]
    assert call(made, "/v1/observe", {"token": token, "reward": reward})[0] == 422
    assert call(made, "/v1/abandon", {"token": token}) == (200, {"abandoned": True})
    assert call(made, "/v1/abandon", {"token": token}) == (200, {"abandoned": False})


def test_tokens_that_are_none(made: Cluster) -> None:
    token = call(made, "/v1/choose")[1]["token"]
    epoch, t, arm, game = token.split("-")
    other = (int(arm) + 1) % 3
    for text, code in (
        ("nonsense", 400),
        (f"1-{t}-{arm}-{game}", 410),
        (f"{epoch}-ffffff-{arm}-{game}", 404),
        (f"{epoch}-{t}-7-{game}", 404),
        (f"{epoch}-{t}-{other}-{game}", 409),
        (f"{epoch}-{t}-{arm}-chess", 404),
    ):
        assert call(made, "/v1/observe", {"token": text, "reward": 1.0})[0] == code, text
    assert call(made, "/v1/choose", {"game": "chess"})[0] == 404
    assert call(made, "/v1/choose", {"ttl": -1})[0] == 422
    assert call(made, "/v1/choose", {"count": 0})[0] == 422


def test_batches(made: Cluster) -> None:
    decisions = call(made, "/v1/choose", {"count": 20})[1]["choices"]
    assert len({choice["token"] for choice in decisions}) == 20
    assert len({choice["arm"] for choice in decisions}) > 1, "open decisions do not all take one arm"
    told = [{"token": choice["token"], "reward": 20.0} for choice in decisions]
    told.append({"token": "nonsense", "reward": 1.0})
    rows = call(made, "/v1/observe", {"observations": told})[1]["results"]
    assert [row["status"] for row in rows] == [200] * 20 + [400]


def test_allowed_arms_and_rankings(made: Cluster) -> None:
    for arm in ARMS:
        choice = call(made, "/v1/choose", {"allowed": [arm]})[1]
        assert choice["arm"] == arm
        assert call(made, "/v1/abandon", {"token": choice["token"]}) == (200, {"abandoned": True})
    status, choice = call(made, "/v1/choose", {"allowed": list(ARMS[:2]), "k": 3})
    assert (status, {choice["arm"], choice["others"][0]["arm"]}) == (200, set(ARMS[:2]))
    tokens = [choice["token"], choice["others"][0]["token"]]
    seqs = {call(made, "/v1/observe", {"token": token, "reward": 31.5})[1]["seq"] for token in tokens}
    assert len(seqs) == 2
    for wrong, code in (({"allowed": ["x"]}, 404), ({"allowed": []}, 422), ({"k": 0}, 422)):
        assert call(made, "/v1/choose", wrong)[0] == code
    with made.client(0) as client:
        found = client.choose(allowed=ARMS[1:], k=2)
        assert {found.arm, *(each.arm for each in found.others)} == set(ARMS[1:])
        assert client.observe(found.others[0], 31.5) > 0
        assert client.abandon(found)


def test_a_batch_of_ten_thousand(made: Cluster) -> None:
    tokens = [
        choice["token"]
        for _ in range(10)
        for choice in call(made, "/v1/choose", {"count": 1000, "ttl": 600})[1]["choices"]
    ]
    assert len(set(tokens)) == 10_000
    before = made.status(0)["games"][GAME]["observed"]
    with made.client(0) as client:
        rows = client.observe_many([(token, 20.0) for token in tokens])
    assert [row["status"] for row in rows] == [200] * 10_000
    assert made.status(0)["games"][GAME]["observed"] == before + 10_000
    seqs = [row["seq"] for row in rows]
    assert seqs == list(range(seqs[0], seqs[0] + 10_000))
    body = {"observations": [{"token": tokens[0], "reward": 1.0}] * 10_001}
    assert call(made, "/v1/observe", body)[0] == 422


def test_weights(made: Cluster) -> None:
    choice = call(made, "/v1/choose")[1]
    before = made.samples(0)
    for weight in (0, -3, 1.5, "2", True, 513, None):
        body = {"token": choice["token"], "reward": 21.0, "weight": weight}
        assert call(made, "/v1/observe", body)[0] == 422, weight
    with made.client(0) as client:
        seq = client.observe(choice["token"], 21.0, weight=12)
        assert client.observe(choice["token"], 21.0, weight=12) == seq
    assert made.samples(0) == before + 12


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/choose", {"gmae": GAME}),
        ("/v1/observe", {"token": "1-1-1-g", "reward": 1.0, "observations": []}),
        ("/v1/observe", {"token": "1-1-1-g", "rewrd": 1.0}),
        ("/v1/observe", {"observations": [{"token": "1-1-1-g", "reward": 1.0, "wieght": 2}]}),
        ("/v1/observe", {"token": "0x1-1-1-g", "reward": 1.0}),
        ("/v1/observe", {"token": "1_0-1-1-g", "reward": 1.0}),
        ("/v1/abandon", {"token": "1-1-1-g", "why": 1}),
        ("/v1/observe", []),
        ("/v1/observe", {}),
    ],
)
def test_bodies_of_another_form(made: Cluster, path: str, body: Any) -> None:
    assert call(made, path, body)[0] == 400


def test_costs_are_reported_as_given(made: Cluster) -> None:
    with made.client(0) as client:
        for _ in range(12):
            choice = client.choose()
            client.observe(choice, 20.0 + ARMS.index(choice.arm))
        client.choose()
        rows = client.status()["games"][GAME]["arms"]
    means = [row["mean"] for row in rows if row["mean"] is not None]
    assert means
    assert all(mean > 0 for mean in means)


def test_pages_for_people_and_machines(made: Cluster) -> None:
    with made.client(0) as client:
        for path, found in (
            ("/", b"<!doctype html>"),
            ("/openapi.json", b'"openapi"'),
            ("/metrics", b"rumormill_choices_total"),
            ("/healthz", b"ok"),
            ("/readyz", b"ready"),
        ):
            status, text = client._exchange("GET", path, None)
            assert status == 200, path
            assert found in text, path


def test_metrics_in_the_text_format(made: Cluster) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", made.http[0], timeout=60)) as client:
        client.request("GET", "/metrics")
        answer = client.getresponse()
        text = answer.read().decode()
    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4"
    sample = re.compile(
        r'(rumormill_[a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+\})? (-?[0-9.]+(?:e[-+]?\d+)?|NaN|[-+]Inf)'
    )
    helped, typed, seen = set(), {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line.removeprefix("# HELP ").partition(" ")
            assert words.endswith(".")
            assert name not in helped
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split()
            assert name in helped
            assert (kind == "counter") == name.endswith("_total")
            typed[name] = kind
        else:
            found = sample.fullmatch(line)
            assert found is not None, line
            base = re.sub("_(bucket|sum|count)$", "", found[1]) if typed.get(found[1]) is None else found[1]
            assert base in typed, line
            assert line.rpartition(" ")[0] not in seen
            seen.add(line.rpartition(" ")[0])
    assert helped == set(typed)
    assert f'rumormill_build_info{{version="{rm.__version__}"' in text
    assert re.search(r"^rumormill_tick_age_seconds \d", text, re.MULTILINE)
    assert re.search(r"^rumormill_alive 1$", text, re.MULTILINE)


def test_counters_have_all_their_digits() -> None:
    assert status._number(123_456_789_012) == "123456789012"
    assert status._number(float(1 << 40) + 0.5) == "1099511627776.5"
    assert [status._number(x) for x in (math.nan, math.inf, -math.inf)] == ["NaN", "+Inf", "-Inf"]
    assert status._number(True) == "1"


def test_openapi_names_every_route(made: Cluster) -> None:
    described = call(made, "/openapi.json", method="GET")[1]["paths"]
    assert set(described) == {
        *("/v1/choose", "/v1/observe", "/v1/abandon", "/v1/status", "/v1/history"),
        *("/healthz", "/readyz", "/metrics", "/events", "/openapi.json"),
    }


def test_events(made: Cluster) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", made.http[0], timeout=60)) as connection:
        connection.request("GET", "/events")
        with connection.getresponse() as answer:
            for _ in range(2):  # the state at once, and again after a second
                line = answer.readline()
                assert json.loads(line.removeprefix(b"data: "))["node"] == "n0"
                assert answer.readline() == b"\n"


def test_the_asynchronous_client(made: Cluster) -> None:
    async def use() -> list[int]:
        async with AsyncClient(f"http://127.0.0.1:{made.http[0]}") as client:
            decisions = await asyncio.gather(*(client.choose() for _ in range(5)))
            return await asyncio.gather(*(client.observe(choice, 9.0) for choice in decisions))

    assert len(set(asyncio.run(use()))) == 5


def test_the_asynchronous_client_outlives_restarts_and_cancelled_calls(tmp_path: Path) -> None:
    async def use(built: Cluster) -> None:
        async with AsyncClient(f"http://127.0.0.1:{built.http[0]}", timeout=60.0, attempts=1) as client:
            given_up = asyncio.create_task(client.status())
            await asyncio.sleep(0)
            given_up.cancel()
            choice = await client.choose(allowed=ARMS[1:], k=2)
            assert {choice.arm, choice.others[0].arm} == set(ARMS[1:])
            assert await client.abandon(await client.choose())
            with pytest.raises(NodeError) as refused:
                await client.choose("chess")
            assert refused.value.status == 404
            assert await client.observe(choice, 9.0) == 1
            await asyncio.to_thread(built.kill, 0)
            with pytest.raises(NodeError) as away:
                await client.status()
            assert away.value.status == 0
            await asyncio.to_thread(built.start, 0)
            assert await client.observe(await client.choose(), 9.0) == 2
            await asyncio.to_thread(built.kill, 0)
            await asyncio.to_thread(built.start, 0)
            assert await client.observe(await client.choose(), 9.0) == 3  # the idle connection was gone

    with cluster(tmp_path, [(0, 1)]) as built:
        built.start(0)
        asyncio.run(use(built))


def test_the_asynchronous_client_does_not_wait_for_a_node_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = AsyncClient(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05, attempts=2)
        with pytest.raises(NodeError, match="timed out"):
            asyncio.run(client.choose())


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_the_example_of_the_client_runs(made: Cluster, client: type) -> None:
    text = client.__doc__ or ""
    code = textwrap.dedent(text.partition("Example:\n")[2])
    code = code or "".join(each.source for each in doctest.DocTestParser().get_examples(text))
    before = made.status(0)["games"]["mirrors"]["observed"]
    names: dict[str, Any] = {"Client": Client, "NodeError": NodeError}
    for shown in ('"http://127.0.0.1:7480"', '"http://127.0.0.1:1", timeout=0.1'):
        code = code.replace(shown, f'"http://127.0.0.1:{made.http[0]}"')
    exec(code, names)
    if client is AsyncClient:
        asyncio.run(names["fetch"]())
    assert made.status(0)["games"]["mirrors"]["observed"] == before + 1


def test_the_client_says_what_the_node_said(made: Cluster) -> None:
    with made.client(0) as client, pytest.raises(NodeError, match="token") as caught:
        client.observe("nonsense", 1.0)
    assert caught.value.status == 400


def test_export(made: Cluster, tmp_path: Path) -> None:
    for choice in call(made, "/v1/choose", {"count": 12})[1]["choices"]:
        assert call(made, "/v1/observe", {"token": choice["token"], "reward": 12.5})[0] == 200
    part, rows = observations(made.mesh, [made.data(0)], None)
    assert part.name == GAME
    count = export(made.mesh, [made.data(0)], tmp_path / "log.csv")
    table = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert len(table) == count == len(rows)
    assert set(table[0]) == {"time", "agent", "arm", "cost"}
    assert all(row["agent"] == "n0" and row["arm"] in ARMS and float(row["cost"]) > 0 for row in table)
    export(made.mesh, [made.data(0)], tmp_path / "log.parquet")
    export(made.mesh, [made.data(0)], tmp_path / "wide.csv", wide=True)
    assert set(next(csv.DictReader((tmp_path / "wide.csv").read_text().splitlines()))) == set(ARMS)


def test_a_token_keeps_others_out(tmp_path: Path) -> None:
    with cluster(tmp_path, [(0, 1)]) as built:
        words = ["node", "--mesh", str(built.mesh), "--name", "n0", "--http", "0.0.0.0:0"]
        done = subprocess.run(
            [sys.executable, "-c", "from rumormill.cli import main; main()", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
        )
        assert done.returncode == 2
        assert "is open to others" in done.stderr


LIGHT = """
import sys
import textwrap
import rumormill.live.io.runtime, rumormill.live.io.sidecar, rumormill.live.io.client
from pathlib import Path
from rumormill.live.core.node_config import node_config
from rumormill.mesh.file import read_mesh
node_config(read_mesh(Path(sys.argv[1])), "n0", 1)
heavy = {"numba", "scipy", "networkx", "rustworkx", "polars", "matplotlib", "dimod", "cryptography"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_node_is_light(made: Cluster) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(made.mesh)], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "[]"


def settings_of(path: Path) -> NodeConfig:
    """What node n0 of a mesh file starts with."""
    mesh = read_mesh(path)
    return node_config(mesh, "n0", 1, signer=load_signer(mesh, "n0", path.parent / "keys"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "n0"', 'name = "n1"', "given twice"),
        ('arms = ["fra", "ams", "waw"]', 'arms = ["fra"]', "2 to 65,534 names"),
        ('neighbours = ["n0"]', 'neighbours = ["n9"]', "there is no node 'n9'"),
        ('type = "decentralized"', 'type = "decentralised"', "decentralized"),
        ("gamma = 1\nclique", "gama = 1\nclique", "gama: unknown key"),
        ("revision", "revisoin", "revisoin"),
        ("[games.policy]", '[games.policy]\nestimator = "catoni"', "keeps every sample"),
        ("[games.policy]", '[games.policy]\nestimator = "robust-moss"', "number of rounds"),
        ("[games.moments]", "[limits]\nretain = 10\n[games.nothing]", "nothing"),
        ('name = "mirrors"', 'name = "mirrors"\nrestart = 500', "does not forget"),
        ("revision", "signed = true\nrevision", "key of node .n0. cannot be read"),
        ("127.0.0.1:", "127.0.0.1", "give HOST:PORT"),
        ("[games.moments]\neps = 0.5", "[games.moments]\neps = 7", "eps"),
    ],
)
def test_mistakes_in_the_mesh_file(made: Cluster, tmp_path: Path, old: str, new: str, said: str) -> None:
    text = made.mesh.read_text()
    assert old in text
    path = tmp_path / "mesh.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises((InputError, DataError), match=said):
        settings_of(path)


def test_a_mesh_refuses_wrong_nodes(made: Cluster) -> None:
    with pytest.raises(InputError, match="already"):
        add(made.mesh, "n0", "127.0.0.1:9", [])
    with pytest.raises(InputError, match="no node 'n7'"):
        add(made.mesh, "n3", "127.0.0.1:9", ["n7"])
    with pytest.raises(InputError, match="name of a node"):
        add(made.mesh, "../n3", "127.0.0.1:9", [])


@pytest.mark.parametrize("name", sorted(set(catalogue.POLICIES) - LIVE))
def test_policies_that_a_node_cannot_run_are_refused(made: Cluster, tmp_path: Path, name: str) -> None:
    text = made.mesh.read_text()
    path = tmp_path / "mesh.toml"
    start, end = text.index("[games.policy]"), text.index("[games.moments]")
    path.write_text(text[:start] + f'[games.policy]\ntype = "{name}"\n\n' + text[end:])
    with pytest.raises(InputError, match="cannot be played live"):
        plan(path)


@pytest.mark.parametrize("estimator", ["self-tuned", "clipped"])
def test_a_game_of_unknown_moments(tmp_path: Path, estimator: str) -> None:
    """Also its status can be asked for; without moments only where none are needed."""
    game = GamePart(name="g", arms=["a", "b"], policy={"type": "kmp", "gamma": 1, "estimator": estimator})
    if estimator == "clipped":
        with pytest.raises(InputError, match="needs moments"):
            init(tmp_path, "m", game)
        return
    path = init(tmp_path, "m", game)
    add(path, "n0", "127.0.0.1:7400", [])
    plan(path)
    node = Node(node_config(read_mesh(path), "n0", 1))
    node.start()
    node.committed(node.records)
    for reward in (1.0, 2.0, 1.5):
        token = node.choose("g", 1.0, 60.0)
        node.observe("g", token.t, token.arm, reward)
    rows = arm_rows(node.games["g"], ["a", "b"], 1.0)
    assert sum(row["samples"] for row in rows) == 3


@pytest.mark.parametrize("name", sorted(LIVE))
def test_the_status_of_every_policy_that_a_node_runs(tmp_path: Path, name: str) -> None:
    """Before the first reward and after some; a node asks for it every second."""
    moments = {"eps": 0.5, "u": 150.0, "rho": 100.0}
    game = GamePart(name="g", arms=["a", "b"], policy={"type": name}, objective="minimise", moments=moments)
    path = init(tmp_path, "m", game)
    add(path, "n0", "127.0.0.1:7400", [])
    plan(path)
    node = Node(node_config(read_mesh(path), "n0", 1))
    node.start()
    node.committed(node.records)
    for n in range(6):
        rows = arm_rows(node.games["g"], ["a", "b"], -1.0)
        assert sum(row["samples"] for row in rows) == n
        token = node.choose("g", 1.0, 60.0)
        node.observe("g", token.t, token.arm, 20.0 + n)


def test_a_browser_may_give_the_token_as_a_password(tmp_path: Path) -> None:
    with cluster(tmp_path, [(0, 1)]) as built:
        os.environ["RUMORMILL_TOKEN"] = "secret"
        try:
            built.start(0)
        finally:
            del os.environ["RUMORMILL_TOKEN"]
        password = base64.b64encode(b"me:secret").decode()
        for given, code in ((None, 401), ("Bearer wrong", 401), (f"Basic {password}", 200), ("Basic !", 401)):
            headers = {} if given is None else {"Authorization": given}
            with closing(http.client.HTTPConnection("127.0.0.1", built.http[0], timeout=60)) as connection:
                connection.request("GET", "/v1/status", headers=headers)
                with connection.getresponse() as answer:
                    assert answer.status == code
                    assert code == 200 or answer.headers["WWW-Authenticate"].startswith("Basic")


def test_requests_that_are_sent_ahead_are_answered_in_order(made: Cluster) -> None:
    ask = b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"
    with socket.create_connection(("127.0.0.1", made.http[0]), timeout=60) as client:
        client.sendall(5 * ask + b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        text = b""
        while data := client.recv(65536):
            text += data
    numbers = [int(token.split(b"-")[1], 16) for token in text.split(b'"token":"')[1:]]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert text.endswith(b"ok\n")


def test_methods(made: Cluster) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", made.http[0], timeout=60)) as client:
        for method, path, status, allow in (
            ("DELETE", "/v1/choose", 405, "POST"),
            ("POST", "/v1/status", 405, "GET, HEAD"),
            ("HEAD", "/v1/choose", 405, "POST"),
            ("HEAD", "/v1/status", 200, None),
            ("HEAD", "/healthz", 200, None),
            ("HEAD", "/nowhere", 404, None),
        ):
            client.request(method, path)
            answer = client.getresponse()
            assert (answer.status, answer.getheader("Allow")) == (status, allow)
            assert (answer.read() == b"") == (method == "HEAD")


def test_a_client_that_goes_away_while_the_disk_is_waited_for(made: Cluster) -> None:
    token = call(made, "/v1/choose")[1]["token"]
    body = json.dumps({"token": token, "reward": 3.25}).encode()
    with socket.create_connection(("127.0.0.1", made.http[0]), timeout=60) as client:
        client.sendall(
            b"POST /v1/observe HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
    # It may or may not have been taken; asked again the answer is the same as for everybody.
    assert call(made, "/v1/observe", {"token": token, "reward": 3.25})[0] == 200


def test_names_with_spaces_and_dots(tmp_path: Path) -> None:
    """What is written can be read again, whatever things are called."""
    game = GamePart(
        name='my "game".1',
        arms=["a b", "ü"],
        policy={"type": "centralized", "gamma": 1},
        moments={"eps": 0.5, "u": 1.0, "rho": 1.0},
    )
    path = init(tmp_path, "the mesh", game)
    add(path, "n.0", "127.0.0.1:7400", [])
    add(path, "n_1", "127.0.0.1:7401", ["n.0"])
    plan(path)
    again = read_mesh(path)
    assert set(again.file.plans[game.name].leader or ()) == {"n.0", "n_1"}
    assert again.games[game.name].arms == ["a b", "ü"]


def command_line(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert isinstance(end.value.code, int)
    return end.value.code


def test_watch(made: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    choice = call(made, "/v1/choose")[1]
    assert call(made, "/v1/observe", {"token": choice["token"], "reward": 31.5})[0] == 200
    url, nobody = (f"http://127.0.0.1:{port}" for port in (made.http[0], made.http[1]))
    assert command_line("mesh", "watch", url, nobody, "--once", "--json") == 0
    here, away = json.loads(capsys.readouterr().out)["nodes"]
    assert (here["node"], here["state"], here["links"], here["behind"]) == ("n0", "ready", "0 of 1", 0)
    assert here["rewards"] > 0
    assert here["prefers"] in ARMS
    assert (away["node"], away["state"]) == (nobody, "does not answer")
    assert command_line("mesh", "watch", url, "--once") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["node", "state", "links", "rewards", "prefers", "behind", "refused"]
    assert any(line.split()[:2] == [GAME, "n0"] for line in lines), "what it knows of whom"
    assert command_line("mesh", "watch", "n0", "--once") == 2
    assert "http://HOST:PORT" in capsys.readouterr().err


def test_a_mesh_of_nodes_that_play_alone_needs_no_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = {"eps": 0.5, "u": 1.0, "rho": 1.0}
    path = init(
        tmp_path, "alone", GamePart(name="g", arms=["a", "b"], policy={"type": "robust"}, moments=moments)
    )
    for v in range(2):
        add(path, f"n{v}", f"127.0.0.1:{7400 + v}", [])
    assert command_line("mesh", "plan", "--mesh", str(path)) == 0
    assert "every node plays alone" in capsys.readouterr().out
