"""The plug-in with the real LiteLLM, against fake providers; `make test-router` makes its environment."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scripts.ports import free_ports

from live.processes import wait_until
from rumormill.live.io.client import Client
from rumormill.mesh.edit import add, init
from rumormill.mesh.file import GamePart, PlanPart, read_mesh, write_mesh
from rumormill.recipes import FirstToken

if importlib.util.find_spec("litellm") is None:
    pytest.skip("LiteLLM is not installed: run `make test-router`", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "router"))
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from fleet import FLEET, Fleet, Provider
from gateway import Task, make_router
from guard import Guard
from litellm import Router
from litellm_plugin import Classify, NodeStrategy, install

NEVER = (1e9, 1e9)
ASK: dict[str, Any] = {"model": "chat", "messages": [{"role": "user", "content": "Sing!"}]}


@contextmanager
def serving(providers: list[Provider]) -> Iterator[list[int]]:
    """The ports of providers that answer in a thread."""
    ports, ready = list[int](), threading.Event()
    fleet = Fleet(1, time.time(), NEVER)
    stop: list[Callable[[], object]] = []

    async def live() -> None:
        for each in providers:
            server = await asyncio.start_server(partial(fleet.serve, each), "127.0.0.1", 0)
            ports.append(server.sockets[0].getsockname()[1])
        end = asyncio.Event()
        stop.append(partial(asyncio.get_running_loop().call_soon_threadsafe, end.set))
        ready.set()
        await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    ready.wait()
    yield ports
    stop[0]()
    thread.join()


@contextmanager
def node(folder: Path, arms: list[str], **settings: Any) -> Iterator[str]:
    """The URL of a node of one's own."""
    http, port = free_ports(2)
    game = GamePart(
        name="chat", arms=arms, policy={"type": "default"}, objective="minimise", unit="s", **settings
    )
    mesh = init(folder, "test", game)
    add(mesh, "n0", f"127.0.0.1:{port}", [])
    file = read_mesh(mesh).file
    file.plans["chat"] = PlanPart(gamma=0)  # `rumormill mesh plan` needs the lab
    write_mesh(mesh, file)
    words = [
        "--mesh",
        str(mesh),
        "--name",
        "n0",
        "--data",
        str(folder / "n0.data"),
        "--http",
        f"127.0.0.1:{http}",
    ]
    command = [sys.executable, "-c", "from rumormill.cli import main; main()", "node", *words]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        with Client(f"http://127.0.0.1:{http}", attempts=8) as client:
            wait_until(lambda: bool(client.status()["ready"]))
        yield f"http://127.0.0.1:{http}"
    finally:
        process.kill()
        process.wait()


def routed(
    providers: list[Provider],
    ports: list[int],
    guard: Guard,
    recipe: FirstToken,
    *,
    classify: Classify | None = None,
    **given: Any,
) -> tuple[Router, list[tuple[str, float]]]:
    """A router that asks the guard, and the list of what it reports: (arm, value)."""
    deployments = [
        {
            "model_name": "chat",
            "litellm_params": {
                "model": f"openai/{each.name}",
                "api_base": f"http://127.0.0.1:{port}/v1",
                "api_key": "none",
            },
            "model_info": {"id": each.name, "input_cost_per_token": 0.0, "output_cost_per_token": 0.001},
        }
        for each, port in zip(providers, ports, strict=True)
    ]
    for old in [each for each in litellm.callbacks if isinstance(each, NodeStrategy)]:
        litellm.callbacks.remove(old)
    router = Router(model_list=deployments, **{"num_retries": 2, "timeout": 60.0, **given})
    reported: list[tuple[str, float]] = []
    report = guard.report

    def note(choice: Any, value: float) -> None:
        reported.append((providers[int(str(choice).split("-")[2])].name, value))
        report(choice, value)

    guard.report = note  # type: ignore[method-assign]
    install(router, guard, recipe, classify)
    return router, reported


async def streamed(router: Router, guard: Guard, n: int) -> list[str]:
    """The deployments that answered n streamed requests; closes the guard."""
    found = []
    for _ in range(n):
        stream = await router.acompletion(**ASK, stream=True)
        text = "".join([part.choices[0].delta.content or "" async for part in stream if part.choices])
        assert text.startswith("la ")
        found.append(stream._hidden_params["model_id"])
    await asyncio.sleep(0.5)  # LiteLLM logs in the background
    await guard.aclose(wait=60.0)
    return found


def test_streamed_requests_go_where_the_node_says_and_cost_what_they_took(tmp_path: Path) -> None:
    providers = [Provider("a", 0.01, tail=3.0), Provider("b", 0.02, tail=3.0), Provider("c", 0.3, tail=3.0)]
    with serving(providers) as ports, node(tmp_path, ["a", "b", "c"]) as url:
        guard = Guard(url, timeout=30.0)
        recipe = FirstToken(timeout=60.0, seconds_per_dollar=100.0)
        router, reported = routed(providers, ports, guard, recipe)
        answered = asyncio.run(streamed(router, guard, 24))
        assert guard.counts["reported"] == 24
        assert [arm for arm, _ in reported] == answered
        assert set(answered) == {"a", "b", "c"}
        # 12 tokens at a tenth of a cent, 100 seconds a dollar; c takes a fifth of a second at least.
        assert all(value >= 1.2 + (0.2 if arm == "c" else 0.0) for arm, value in reported)
        with Client(url) as client:
            assert client.status()["games"]["chat"]["observed"] == 24


def test_a_failed_attempt_is_a_cost_and_the_request_is_answered_elsewhere(tmp_path: Path) -> None:
    providers = [Provider("a", 0.01, errors=1.0), Provider("b", 0.01), Provider("c", 0.01, limit=0.01)]
    with serving(providers) as ports, node(tmp_path, ["a", "b", "c"]) as url:
        guard = Guard(url, timeout=30.0)
        router, reported = routed(
            providers, ports, guard, FirstToken(timeout=60.0, failure=5.0), num_retries=8
        )
        assert set(asyncio.run(streamed(router, guard, 12))) == {"b"}
        costs = {name: [value for arm, value in reported if arm == name] for name in "abc"}
        assert costs["a"]
        assert min(costs["a"]) >= 5.0
        assert len(costs["b"]) > 0
        assert max(costs["b"]) < 5.0


def test_a_time_out_is_reported_as_a_censored_value(tmp_path: Path) -> None:
    providers = [Provider("a", 3600.0, tail=3.0), Provider("b", 0.01)]
    with serving(providers) as ports, node(tmp_path, ["a", "b"]) as url:
        guard = Guard(url, timeout=30.0)
        recipe = FirstToken(timeout=1.0, failure=2.0)
        router, reported = routed(providers, ports, guard, recipe, timeout=1.0, stream_timeout=1.0)
        assert set(asyncio.run(streamed(router, guard, 6))) == {"b"}
        assert {value for arm, value in reported if arm == "a"} == {3.0}


def test_every_class_of_requests_learns_by_itself(tmp_path: Path) -> None:
    providers = [Provider("a", 0.01), Provider("b", 0.01)]
    with serving(providers) as ports, node(tmp_path, ["a", "b"], classes=4) as url:
        guard = Guard(url, timeout=30.0)
        sizes = iter(["short", "long", "long"])
        router, _ = routed(
            providers, ports, guard, FirstToken(timeout=60.0), classify=lambda model, messages: next(sizes)
        )
        asyncio.run(streamed(router, guard, 3))
        with Client(url) as client:
            games = client.status()["games"]
        assert (games["chat/short"]["observed"], games["chat/long"]["observed"]) == (1, 2)


def test_a_synchronous_caller_is_served_too(tmp_path: Path) -> None:
    providers = [Provider("a", 0.01), Provider("b", 0.01)]
    with serving(providers) as ports, node(tmp_path, ["a", "b"]) as url:
        guard = Guard(url, timeout=30.0)
        router, reported = routed(providers, ports, guard, FirstToken(timeout=60.0))
        answered = [router.completion(**ASK)._hidden_params["model_id"] for _ in range(6)]
        wait_until(lambda: guard.counts["reported"] == 6)
        assert sorted(arm for arm, _ in reported) == sorted(answered)
        guard.close()


def test_without_a_node_every_request_is_answered() -> None:
    providers = [Provider("a", 0.01), Provider("b", 0.01)]
    with serving(providers) as ports:
        guard = Guard("http://127.0.0.1:1", pause=0.2)
        router, reported = routed(providers, ports, guard, FirstToken(timeout=60.0))
        assert router.completion(**ASK).choices[0].message.content.startswith("la ")
        assert set(asyncio.run(streamed(router, guard, 20))) == {"a", "b"}
        assert not reported
        assert guard.counts["away"] >= 1


@pytest.mark.parametrize("rule", ["lowest latency", "random", "weighted"])
def test_the_rules_of_the_demonstration_are_those_of_litellm(rule: str, tmp_path: Path) -> None:
    ports = free_ports(len(FLEET))
    router = make_router(Task(rule, "n0", "", ports, 1.0, 1.0, 1, 10.0, 0.0, tmp_path / "out"))
    strategy = "latency-based-routing" if rule == "lowest latency" else "simple-shuffle"
    assert router.routing_strategy == strategy
    found = router.get_model_list("chat")
    assert [each["model_info"]["id"] for each in found] == [each.name for each in FLEET]
    assert ("weight" in found[0]["litellm_params"]) == (rule == "weighted")
