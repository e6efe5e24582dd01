"""The edges of a node without a process: routes, the client, TLS contexts, addresses, the journal."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
import ssl
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rumormill.errors import DataError, InputError
from rumormill.live.core.decisions import NotReady
from rumormill.live.core.node import Token
from rumormill.live.core.records import Own
from rumormill.live.io.client import Client, NodeError, status_row
from rumormill.live.io.folder import FILE, export, observations, pack, unpack
from rumormill.live.io.http import Request, Response
from rumormill.live.io.journal import Journal
from rumormill.live.io.runtime import Runtime
from rumormill.live.io.sidecar import Sidecar, sidecar_address, token_text
from rumormill.live.io.status import History
from rumormill.mesh import edit
from rumormill.mesh.file import GamePart, Mesh, read_mesh
from rumormill.mesh.keys import load_tls

MOMENTS = {"eps": 0.5, "u": 1.0, "rho": 1.0}


def made_mesh(folder: Path, objective: Any = "minimise") -> Mesh:
    """Two nodes, one game of two arms."""
    game = GamePart(
        name="g", arms=["a", "b"], objective=objective, policy={"type": "robust"}, moments=MOMENTS
    )
    path = edit.init(folder, "test", game)
    edit.add(path, "n0", "127.0.0.1:7400", [])
    edit.add(path, "n1", "127.0.0.1:7401", ["n0"])
    return read_mesh(path)


class FakeProcess:
    """What the sidecar needs of a process; decisions are numbered, the disk is far behind."""

    def __init__(self, mesh: Mesh, token: str | None = None, most: int = 10_000) -> None:
        self.mesh, self.token, self.unix, self.draining, self.epoch = mesh, token, None, False, 7
        self.node, self.history = self, History()
        self.journal = SimpleNamespace(fault="the disk is full")  # more numbers are not waited for
        self.made = 0
        self.most = most
        self.seen: list[tuple[str, int, int, float]] = []
        self.waited: list[int] = []

    def clock(self) -> float:
        return 1000.0

    def flush_if_full(self) -> None: ...

    def failed(self, what: str, error: Exception) -> None:
        raise error

    def choose(self, game: str, now: float, ttl: float, *limits: Any) -> Token:
        if self.made == self.most:
            raise NotReady("too many")
        self.made += 1
        return Token(game, self.epoch, self.made, self.made % 2, now + ttl)

    def observe(self, game: str, t: int, arm: int, reward: float, weight: int) -> Any:
        self.seen.append((game, t, arm, reward))
        return SimpleNamespace(seq=t, record=100 - t, late=False)

    def when_durable(self, record: int, response: Response) -> Response:
        self.waited.append(record)
        return response


@pytest.fixture
def process(tmp_path: Path) -> FakeProcess:
    return FakeProcess(made_mesh(tmp_path))


def ask(
    process: FakeProcess, path: str, body: Any = None, method: str = "POST", **headers: str
) -> tuple[int, Any]:
    given = {"host": "127.0.0.1:7480", **headers}
    request = Request(method, path, given, b"" if body is None else json.dumps(body).encode())

    async def answered() -> Response:
        found = Sidecar(process).respond(request)  # type: ignore[arg-type]
        return found if isinstance(found, Response) else await found

    answer = asyncio.run(answered())
    return answer.status, json.loads(answer.body) if answer.body[:1] == b"{" else answer.body


# --- routes ---------------------------------------------------------------------------------------------


def test_decisions_and_their_tokens(process: FakeProcess) -> None:
    status, choice = ask(process, "/v1/choose", {"ttl": 5})
    assert status == 200
    assert choice == {"token": "7-1-1-g", "game": "g", "arm": "b", "expires": 1005.0}
    assert token_text(Token("a-b", 17, 26, 3, 0.0)) == "11-1a-3-a-b"
    status, many = ask(process, "/v1/choose", {"count": 3})
    assert [each["token"] for each in many["choices"]] == ["7-2-0-g", "7-3-1-g", "7-4-0-g"]
    assert many["choices"][0]["expires"] == 1300.0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"ttl": 0}, 422),
        ({"ttl": -1}, 422),
        ({"ttl": 7 * 86_400}, 200),
        ({"ttl": 7 * 86_400 + 1}, 422),
        ({"count": 0}, 422),
        ({"count": 1000}, 200),
        ({"count": 1001}, 422),
        ({"game": "h"}, 404),
        ({"count": "x"}, 400),
    ],
)
def test_limits_of_a_request(process: FakeProcess, body: Any, status: int) -> None:
    assert ask(process, "/v1/choose", body)[0] == status


def test_fewer_decisions_than_asked_for_are_better_than_none(tmp_path: Path) -> None:
    process = FakeProcess(made_mesh(tmp_path), most=2)
    assert len(ask(process, "/v1/choose", {"count": 5})[1]["choices"]) == 2
    assert ask(process, "/v1/choose", {"count": 5})[0] == 503
    process.most, process.draining = 10, True
    assert ask(process, "/v1/choose", {})[0] == 503


def test_costs_are_rewards_below_zero(process: FakeProcess, tmp_path: Path) -> None:
    assert ask(process, "/v1/observe", {"token": "7-1a-1-g", "reward": 2.5})[1]["seq"] == 26
    assert process.seen == [("g", 26, 1, -2.5)]
    gains = FakeProcess(made_mesh(tmp_path / "gains", "maximise"))
    ask(gains, "/v1/observe", {"token": "7-1a-1-g", "reward": 2.5})
    assert gains.seen == [("g", 26, 1, 2.5)]


def test_many_observations_wait_for_the_last_of_them(process: FakeProcess) -> None:
    """Records 99 and 98: the answer may be sent when both are on disk."""
    rows = [{"token": "7-1-0-g", "reward": 1}, {"token": "7-2-0-g", "reward": 2}]
    rows += [{"token": "6-1-0-g", "reward": 1}, {"token": "7-1-0-h", "reward": 1}]
    rows += [{"token": "7-1-0-g", "reward": True}]
    status, answer = ask(process, "/v1/observe", {"observations": rows})
    assert status == 200
    assert [each["status"] for each in answer["results"]] == [200, 200, 410, 404, 422]
    assert process.waited == [99]
    assert ask(process, "/v1/observe", {"observations": rows[:1] * 10_001})[0] == 422


@pytest.mark.parametrize("reward", [True, "1", None, [1], 10**400])
def test_rewards_must_be_numbers(process: FakeProcess, reward: Any) -> None:
    assert ask(process, "/v1/observe", {"token": "7-1-0-g", "reward": reward})[0] == 422
    assert process.seen == []


def test_only_this_machine_may_ask_without_a_token(process: FakeProcess) -> None:
    assert ask(process, "/v1/choose", {}, host="evil.example")[0] == 403
    assert ask(process, "/v1/choose", {}, host="[::1]:7480")[0] == 200
    assert ask(process, "/v1/choose", {}, origin="http://evil.example")[0] == 403
    assert ask(process, "/v1/choose", {}, origin="http://127.0.0.1:7480")[0] == 200


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    process = FakeProcess(made_mesh(tmp_path), token="secret")
    password = base64.b64encode(b"anyone:secret").decode()
    name = base64.b64encode(b"secret:anything").decode()
    for given, status in (
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Bearer secret"}, 200),
        ({"authorization": f"Basic {password}"}, 200),
        ({"authorization": f"Basic {name}"}, 401),
        ({"authorization": "Basic ?"}, 401),
    ):
        assert ask(process, "/v1/choose", {}, host="node.example", **given)[0] == status
    assert ask(process, "/v1/choose", {}, "GET", authorization="Bearer secret")[0] == 405
    assert ask(process, "/elsewhere", {}, authorization="Bearer secret")[0] == 404


# --- the client -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "asked", "ending"),
    [
        ([503, 503, 200], 3, None),
        ([503] * 9, 4, 503),
        ([409, 200], 1, 409),
        ([0, 200], 2, None),
        ([0] * 9, 4, 0),
    ],
)
def test_which_requests_are_repeated(
    answers: list[int], asked: int, ending: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0: no answer. After 503 and without an answer, with pauses of 0.2, 0.4 and 0.8 seconds."""
    pauses: list[float] = []
    left = iter(answers)
    closed = []

    def exchange(self: Client, method: str, path: str, body: Any) -> tuple[int, bytes]:
        status = next(left)
        if not status:
            raise ConnectionError("gone")
        return status, b'{"abandoned": true}' if status == 200 else b'{"error": "no"}'

    monkeypatch.setattr(Client, "_exchange", exchange)
    monkeypatch.setattr(Client, "close", lambda self: closed.append(1))
    monkeypatch.setattr("time.sleep", pauses.append)
    if ending is None:
        assert Client().abandon("t")
    else:
        with pytest.raises(NodeError) as failed:
            Client().abandon("t")
        assert failed.value.status == ending
    assert len(list(left)) == len(answers) - asked
    assert pauses == pytest.approx([0.2, 0.4, 0.8][: asked - 1])
    assert len(closed) == answers[:asked].count(0)  # a broken connection is not used again


def test_a_node_as_a_row() -> None:
    streams = [
        {"node": "n0", "epoch": 7, "prefers": "a", "lag": 2},
        {"node": "n0", "epoch": 6, "prefers": "b", "lag": 1},
        {"node": "n1", "epoch": 7, "prefers": "b", "lag": 4},
    ]
    found = {
        "node": "n0", "epoch": 7, "ready": True, "trouble": None, "violations": {"hostile": 2, "slow": 1},
        "links": [{"up": True}, {"up": False}], "games": {"g": {"observed": 5, "streams": streams}},
    }  # fmt: skip
    assert status_row("http://x", found) == {
        "node": "n0", "state": "ready", "links": "1 of 2", "rewards": 5, "prefers": "a",
        "behind": 7, "refused": 3,
    }  # fmt: skip
    assert status_row("http://x", NodeError(401, "no"))["state"] == "answers 401"
    assert status_row("http://x", NodeError(0, "no"))["state"] == "does not answer"


# --- addresses and TLS ----------------------------------------------------------------------------------


def test_where_the_sidecar_answers() -> None:
    def at(http: str, token: str | None = None) -> tuple[str | None, int, str | None]:
        return sidecar_address(http, token)

    assert at("127.0.0.1:7480") == ("127.0.0.1", 7480, None)
    assert at("127.0.0.1:0") == ("127.0.0.1", 0, None)
    assert at("[::1]:7480") == ("::1", 7480, None)
    assert at("unix:/tmp/x") == (None, 0, "/tmp/x")
    assert at("0.0.0.0:7480", "secret") == ("0.0.0.0", 7480, None)
    with pytest.raises(InputError, match="is open to others: give a token"):
        at("0.0.0.0:7480")


def test_both_sides_of_a_link_show_a_certificate(tmp_path: Path) -> None:
    made_mesh(tmp_path)
    found = load_tls(tmp_path / "keys", "n0")
    for context in (found.server, found.client):
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        (authority,) = context.get_ca_certs()
        assert authority["subject"] == ((("commonName", "rumormill mesh test"),),)


# --- the journal ----------------------------------------------------------------------------------------


def opened(folder: Path) -> Journal:
    return Journal(folder, "mesh test, node n0", fresh_epoch=lambda: 7, clock=lambda: 50.0)


def own(first: int, last: int) -> list[Own]:
    return [Own("g", t, t % 2, float(t), t) for t in range(first, last + 1)]


def write(folder: Path, *batches: list[Own] | bytes) -> None:
    """Queue all of it before the writer starts: one transaction."""
    made = opened(folder)
    for batch in batches:
        made.write_snapshot(batch) if isinstance(batch, bytes) else made.write(batch)
    made.start(lambda n: None)
    assert made.close()


def test_a_transaction_is_on_the_disk_when_it_commits(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as made:
        assert made._base.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert made._base.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_snapshot_stands_for_the_records_queued_before_it(tmp_path: Path) -> None:
    write(tmp_path, own(1, 3))
    write(tmp_path, own(4, 5), pack({"upto": 5}), own(6, 7))
    with closing(opened(tmp_path)) as made:
        assert made.found.state == {"upto": 5}
        assert [record.t for record in made.found.records if isinstance(record, Own)] == [6, 7]


def test_a_record_that_is_missing_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, own(1, 5))
    with closing(sqlite3.connect(tmp_path / FILE)) as base, base:
        base.execute("DELETE FROM records WHERE id = 3")
    with pytest.raises(DataError, match="record 3 is missing"):
        opened(tmp_path)


def test_links_are_not_read_while_the_disk_is_behind() -> None:
    def congested(backlog: int, fault: str | None = None) -> bool:
        runtime: Any = SimpleNamespace(journal=SimpleNamespace(backlog=backlog, fault=fault))
        return Runtime.congested.fget(runtime)  # type: ignore[attr-defined, no-any-return]

    assert [congested(0), congested(20_000), congested(20_001)] == [False, False, True]
    assert congested(0, "the disk is full")


def test_snapshots_have_a_checksum() -> None:
    data = pack({"a": 1})
    assert unpack(data) == {"a": 1}
    for broken in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b"\0" + data[1:], data[:16], b""):
        with pytest.raises(DataError, match="the snapshot is damaged"):
            unpack(broken)


def test_what_is_exported(tmp_path: Path) -> None:
    """Costs as they were reported, oldest first, of this game and of arms that are there."""
    mesh = made_mesh(tmp_path)
    write(tmp_path / "late", own(1, 4))
    early = Journal(tmp_path / "early", "mesh test, node n1", fresh_epoch=lambda: 7, clock=lambda: 10.0)
    early.write([Own("g", 1, 0, -4.0, 1), Own("other", 1, 0, 9.0, 1), Own("g", 2, 2, 9.0, 2)])
    early.start(lambda n: None)
    assert early.close()
    folders = [tmp_path / "late", tmp_path / "early"]
    _, rows = observations(mesh.path, folders, None)
    late = [(50.0, "n0", "ab"[t % 2], -float(t), None) for t in (1, 2, 3, 4)]
    assert rows == [(10.0, "n1", "a", 4.0, None), *late]
    assert export(mesh.path, folders, tmp_path / "wide.csv", wide=True) == 5
    assert (tmp_path / "wide.csv").read_text().split() == ["a,b", "4.0,-1.0", "-2.0,-3.0"]
    export(mesh.path, folders, tmp_path / "long.tsv")
    first = (tmp_path / "long.tsv").read_text().splitlines()[:2]
    assert first == ["time\tagent\tarm\tcost", "1970-01-01T00:00:10+00:00\tn1\ta\t4.0"]
