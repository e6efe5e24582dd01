"""A background task that fails ends the process: logged, neither ready nor alive, with its own exit code."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts.ports import free_ports

import rumormill as rm
from live.making import GAME, fake_signer, node_config
from live.processes import ARMS, cluster, wait_until
from live.test_node import EVERYBODY, commit, exchange, pair, play
from live.test_processes import all_have
from rumormill.live.core import frames as wire
from rumormill.live.core.node import Node
from rumormill.live.core.signatures import BEGIN
from rumormill.live.io.folder import pack, unpack
from rumormill.live.io.http import HttpConnection, Request
from rumormill.live.io.journal import Journal
from rumormill.live.io.runtime import DEFECT, Runtime, Settings, run_node
from rumormill.live.io.transport import Transport
from rumormill.mesh.edit import add, init, plan
from rumormill.mesh.file import GamePart, Limits, read_mesh, write_mesh

SECONDS = 30.0


def game_part(name: str, arms: list[str]) -> GamePart:
    return GamePart(
        name=name, arms=arms, policy={"type": "robust"}, moments={"eps": 0.5, "u": 1.0, "rho": 1.0}
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = init(tmp_path, "test", game_part(GAME, ARMS))
    for name, port in zip(("a", "b"), free_ports(2), strict=True):
        add(path, name, f"127.0.0.1:{port}", ["a"] if name == "b" else [])
    plan(path)
    return Settings(mesh=path, name="a", data=tmp_path / "a.data", http=f"unix:{tmp_path / 'http'}")


def broken(*given: Any) -> Any:
    raise KeyError("a defect")


async def broken_task(*given: Any) -> None:
    broken()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


CAUSES: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "the tick": (Node, "take_journal", broken),
    "the accept loop": (Transport, "_accept", broken_task),
    "dialling node 1": (Transport, "_dial", broken_task),
    "the journal's writer": (Journal, "_commit", broken),
}


@pytest.mark.parametrize("task", CAUSES)
def test_the_process_ends_with_the_task(
    task: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(*CAUSES[task])
    if task == "the tick":  # not through the flush at the start, which is a callback
        monkeypatch.setattr(Runtime, "schedule_flush", lambda self: None)
    assert run_node(settings) == DEFECT == 70
    said = lines(capsys.readouterr().err)
    failed = next(row for row in said if row.get("task") == task)
    assert failed["level"] == "critical"
    assert "Traceback" in failed["trace"]
    assert "KeyError" in failed["trace"]
    assert said[-1]["exit"] == DEFECT
    assert "exit code 70" in said[-1]["text"]
    assert "stopped" not in [row["text"] for row in said]


def ask(runtime: Runtime, path: str) -> int:
    answer = runtime.sidecar.respond(Request("GET", path, {"host": "localhost"}, b""))
    assert not isinstance(answer, asyncio.Future)
    return answer.status


def run_until(settings: Settings, use: Callable[[Runtime], Any]) -> tuple[int, Any]:
    """(exit code, what `use` returns) of a node in this process; `use` runs once it is ready."""

    async def main() -> tuple[int, Any]:
        runtime = Runtime(settings)
        running = asyncio.ensure_future(runtime.run())
        async with asyncio.timeout(SECONDS):
            while not runtime.ready:
                await asyncio.sleep(0.01)
            found = use(runtime)
            return await running, found

    return asyncio.run(main())


def test_a_callback_that_fails_is_a_failure_too(settings: Settings) -> None:
    def use(runtime: Runtime) -> None:
        asyncio.get_running_loop().call_soon(runtime.node.receive, 77, b"")  # there is no such link

    assert run_until(settings, use)[0] == DEFECT


def test_what_fails_elsewhere_or_in_a_request_is_only_logged(settings: Settings) -> None:
    def use(runtime: Runtime) -> str | None:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "no exception"})
        loop.call_exception_handler({"message": "of somebody else", "exception": KeyError("elsewhere")})
        try:
            runtime.node.receive(77, b"")
        except KeyError as own:
            of_a_request = {"exception": own, "protocol": HttpConnection(runtime.http)}
            loop.call_exception_handler({"message": "of a request", **of_a_request})
        before = runtime.defect
        runtime.fail("a task", KeyError("a defect"))
        return before

    assert run_until(settings, use) == (DEFECT, None)


def test_health_and_readiness_turn_red(settings: Settings) -> None:
    def use(runtime: Runtime) -> list[int]:
        before = [ask(runtime, "/healthz"), ask(runtime, "/readyz")]
        runtime.fail("a task", KeyError("a defect"))
        return [*before, ask(runtime, "/healthz"), ask(runtime, "/readyz")]

    assert run_until(settings, use) == (DEFECT, [200, 200, 503, 503])


def test_a_tick_that_is_late_is_not_alive(settings: Settings) -> None:
    file = read_mesh(settings.mesh).file
    file.limits = Limits(tick_within=2.5)
    write_mesh(settings.mesh, file)

    def use(runtime: Runtime) -> list[int]:
        found = []
        for age in (2.0, 3.0):
            runtime.ticked = runtime.clock() - age
            found += [ask(runtime, "/healthz"), ask(runtime, "/readyz")]
        runtime.stop()
        return found

    assert run_until(settings, use) == (0, [200, 200, 503, 503])


def test_a_reload_that_fails_ends_the_process(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runtime, "reload", broken)
    assert run_until(settings, lambda runtime: signal.raise_signal(signal.SIGHUP))[0] == DEFECT


def test_a_mesh_file_that_is_not_newer_is_refused_in_the_log(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def use(runtime: Runtime) -> None:
        runtime.reload()
        runtime.stop()

    assert run_until(settings, use)[0] == 0
    revision = read_mesh(settings.mesh).file.revision
    said = f"the mesh file was not taken: its revision {revision} is not above {revision}"
    assert said in [record.getMessage() for record in caplog.records]


def test_a_node_that_stops_ticks_no_more(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    drain, later = Runtime.drain, []

    async def slow(self: Runtime) -> None:
        last = self.ticked
        await asyncio.sleep(0.2)
        later.append(self.ticked - last)
        await drain(self)

    monkeypatch.setattr(Runtime, "drain", slow)
    monkeypatch.setattr("rumormill.live.io.runtime.TICK", 0.01)
    assert run_until(settings, lambda runtime: runtime.stop())[0] == 0
    assert later == [0.0]


# --- what made tasks fail --------------------------------------------------------------------------------


def test_three_frames_of_a_member_that_signs() -> None:
    """A signed Skip of its own new epoch, a full Have, an Obs with a wrong signature: the node goes on."""
    nodes = pair(signed=True)
    liar, two = nodes
    point = fake_signer(0).sign_point(GAME, (0, 40), 5, BEGIN, None)
    for frame in (
        wire.Skip(GAME, 0, 40, 5, *point[1:]),
        wire.Have(GAME, [(0, 1, 0, 0)], full=True),
        wire.Obs(GAME, 0, 40, 1, 1, [(1, 0, 0.5)], None, b"not its signature"),
    ):
        two.receive(1, wire.encode(frame)[4:])
    two.tick(1.0)
    play(two, 3)
    commit(two)
    exchange(nodes)
    assert sum(liar.games[GAME].adapter.samples) == 3


def test_a_stream_that_was_dropped_is_not_sent() -> None:
    """The same where nothing was verified: the stream is gone, and the next frame is of another."""
    nodes = pair(signed=True)
    two = nodes[1]
    two.games[GAME].stream((0, 40))
    two.receive(1, wire.encode(wire.Have(GAME, [(0, 1, 0, 0)], full=True))[4:])
    two.receive(1, wire.encode(wire.Obs(GAME, 0, 40, 1, 1, [(1, 0, 0.5)], None, b"not its"))[4:])
    assert (0, 40) not in two.games[GAME].streams
    play(two, 2)
    commit(two)
    exchange(nodes)
    assert sum(nodes[0].games[GAME].adapter.samples) == 2


@pytest.mark.parametrize("change", ["removed", "other arms"])
def test_frames_of_a_link_whose_games_are_others_now(change: str) -> None:
    """Between the new mesh file and the end of the link, the node ticks, sends, and receives."""
    network = rm.Network.complete(2)
    nodes = pair()
    play(nodes[0], 3)
    commit(nodes[0])
    play(nodes[1], 2)
    commit(nodes[1])
    late = [frame[4:] for frame in nodes[1].frames(1, 1 << 20)]
    config = node_config(rm.KMPUCB(gamma=1), network, 0, n_arms=4)
    if change == "removed":
        config = type(config)(**{**vars(config), "games": ()})
    for frame in late:
        nodes[0].receive(1, frame)
    before = nodes[0].violations.copy()
    nodes[0].reconfigure(config)
    nodes[0].frames(1, 1 << 20)
    for frame in [*late, wire.encode(wire.Have(GAME, [], full=True))[4:]]:
        nodes[0].receive(1, frame)
    nodes[0].tick(20.0)
    nodes[0].frames(1, 1 << 20)
    assert nodes[0].links[1].closing == "a new mesh file"
    assert nodes[0].violations == before


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_game_that_is_removed_and_returns(signed: bool, restarts: bool, snapshot: bool) -> None:
    """No decision number and no item number is used twice, whether the node restarts meanwhile or not."""
    network = rm.Network.complete(2)
    playing = node_config(EVERYBODY, network, 0, signed=signed)
    without = type(playing)(**{**vars(playing), "games": ()})
    node, records = Node(playing), []
    node.tick(0.0)
    node.start()

    def written() -> None:
        records.extend(node.take_journal())
        node.committed(node.records)

    written()
    play(node, 5)
    written()
    digest = node.games[GAME].numbers[2]
    if restarts:  # the file was changed while the node was down
        node = Node(without)
        node.restart(None, records)
        node.start()
    else:
        node.reconfigure(without)
    written()
    if snapshot:
        state = unpack(pack(node.snapshot()))
        node, records = Node(without), []
        node.restart(state, [])
        node.start()
        written()
    node.reconfigure(playing)
    written()
    game = node.games[GAME]
    assert game.decisions.next_t > 5
    assert game.own.upto == game.durable == 5
    assert game.numbers[2] == digest
    assert game.adapter.samples == [0, 0, 0]
    if not snapshot:
        play(node, 2)
        written()
        again = Node(playing)
        again.restart(None, records)
        assert again.games[GAME].own.upto == 7
        assert sum(again.games[GAME].adapter.samples) == 2
        assert again.games[GAME].differing == 0
        assert again.games[GAME].numbers[2] == node.games[GAME].numbers[2]


def test_games_and_arms_come_and_go_in_a_running_mesh(tmp_path: Path) -> None:
    with cluster(tmp_path, [(0, 1)]) as made:
        file = read_mesh(made.mesh).file
        other = game_part("side", ["x", "y"])
        other.policy = dict(file.games[0].policy)
        file.games.append(other)
        write_mesh(made.mesh, file)
        plan(made.mesh)
        for v in range(2):
            made.start(v, wait=False)
        wait_until(lambda: all(made.ready(v) for v in range(2)))

        def play_both(total: int) -> None:
            for v in range(2):
                with made.client(v) as client:
                    for _ in range(3):
                        client.observe(client.choose(GAME), 12.0)
            all_have(made, total)

        def reload(arms: list[str] | None) -> None:
            file = read_mesh(made.mesh).file
            file.games = [game for game in file.games if game.name != "side"]
            if arms is not None:
                other.arms = arms
                file.games.append(other)
            file.plans.pop("side", None)
            write_mesh(made.mesh, file)
            plan(made.mesh)
            wanted = read_mesh(made.mesh).file.revision
            for v in range(2):
                made.hang_up(v)
            wait_until(lambda: all(made.status(v)["revision"] == wanted for v in range(2)))

        with made.client(0) as client:
            for _ in range(3):
                client.observe(client.choose("side"), 1.0)
        play_both(6)
        reload(["x", "z", "y"])
        play_both(12)
        reload(None)
        play_both(18)
        reload(["x", "y"])
        play_both(24)
        time.sleep(0.6)  # one more tick
        assert all(made.ready(v) for v in range(2))
        assert not [row for v in range(2) for row in made.log(v) if row["level"] == "critical"]
