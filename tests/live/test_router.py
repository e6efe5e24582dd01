"""The router example without LiteLLM: guard, fleet, reverse proxy, scores, and a short demonstration."""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from live.processes import ARMS, GAME, Cluster, cluster, wait_until
from rumormill.recipes import FirstToken

EXAMPLE = Path(__file__).parents[2] / "examples" / "router"
sys.path.insert(0, str(EXAMPLE))

import fleet as fleet_module  # noqa: E402
from fleet import FLEET, TIMEOUT, Fleet, Provider  # noqa: E402
from guard import Guard  # noqa: E402
from load import drive, post  # noqa: E402
from proxy import Proxy  # noqa: E402
from scores import Truth, recovery, score, table  # noqa: E402
from simulate import by_mesh, excess, last_ten  # noqa: E402
from simulate import table as table_of  # noqa: E402

NEVER = (1e9, 1e9)


def test_a_node_that_goes_and_comes_back_loses_no_value(tmp_path: Path) -> None:
    async def use(made: Cluster) -> None:
        guard = Guard(f"http://127.0.0.1:{made.http[0]}", GAME, timeout=30.0, pause=0.0)
        some = [guard.choose(), await guard.achoose(), guard.choose(ARMS[:1]), await guard.achoose(ARMS[1:2])]
        choices = [choice for choice in some if choice is not None]
        assert [choice.arm for choice in choices[2:]] == ARMS[:2]
        for choice in choices[:3]:
            guard.report(choice, 20.0)
        await asyncio.to_thread(wait_until, lambda: guard.counts["reported"] == 3)
        await asyncio.to_thread(made.kill, 0)
        assert guard.choose() is None
        assert await guard.achoose() is None
        guard.report(choices[3], 30.0)
        await asyncio.to_thread(made.start, 0)
        await asyncio.to_thread(wait_until, lambda: guard.counts["reported"] == 4)
        assert guard.choose() is not None
        assert await guard.achoose() is not None
        await guard.aclose()
        assert guard.counts["refused"] == guard.counts["dropped"] == 0

    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(0)
        asyncio.run(use(made))
        assert made.samples(0) == 4


def test_a_node_that_hangs_or_is_not_there_is_skipped() -> None:
    async def ask(guard: Guard) -> None:
        for _ in range(5):
            assert await guard.achoose() is None
        await guard.aclose(wait=0.0)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hung = Guard(url, timeout=0.05, pause=3600.0, keep=2)
        for _ in range(5):
            assert hung.choose() is None
        assert (hung.counts["late"], hung.counts["skipped"]) == (3, 2)
        hung.close(wait=0.0)
        for i in range(3):
            hung.report(f"token-{i}", 1.0)
        assert hung.counts["dropped"] == 1
        hung = Guard(url, timeout=0.05, pause=3600.0)
        asyncio.run(ask(hung))
        assert (hung.counts["late"], hung.counts["skipped"]) == (3, 2)
    absent = Guard("http://127.0.0.1:1", pause=3600.0)
    asyncio.run(ask(absent))
    assert (absent.counts["away"], absent.counts["skipped"]) == (1, 4)


def test_a_request_meets_the_same_chances_under_every_rule() -> None:
    one, two = (Fleet(1, time.time(), NEVER) for _ in range(2))
    first = [one.meet(FLEET[0], f"n0/{i}") for i in range(50)]
    assert first == [two.meet(FLEET[0], f"n0/{i}") for i in reversed(range(50))][::-1]
    assert one.meet(FLEET[0], "n0/0") != first[0]  # the second attempt is another chance
    brown = Fleet(1, time.time(), (0.0, 1e9))
    slower = [brown.meet(FLEET[0], f"n0/{i}") for i in range(50)]
    assert all(
        b[1] == FLEET[0].slower * a[1] for a, b in zip(first, slower, strict=True) if a[0] == b[0] == 200
    )
    assert {status for status, _ in slower} >= {200, 503}


@pytest.mark.parametrize("brown", [False, True])
@pytest.mark.parametrize("provider", FLEET, ids=lambda each: each.name)
def test_means_are_those_of_the_draws(provider: Provider, brown: bool) -> None:
    """Values lie in [0, TIMEOUT]: Hoeffding's bound at a false-alarm rate of 1e-6 for 20,000 draws."""
    rng, n = random.Random(1), 20_000
    mean = sum(min(provider.draw(rng, brown), TIMEOUT) for _ in range(n)) / n
    assert abs(mean - provider.mean(brown)) < TIMEOUT * math.sqrt(math.log(2e6) / (2 * n))


def test_a_limited_provider_refuses_what_is_too_much() -> None:
    fleet = Fleet(1, time.time(), NEVER)
    limited = Provider("slow", 0.1, limit=5.0)
    statuses = [fleet.meet(limited, str(i))[0] for i in range(50)]
    assert statuses[:5] == [200] * 5
    assert statuses.count(429) >= 40


def test_the_proxy_answers_while_one_provider_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two providers fail all the time, one is not there; no caller notices."""
    bad = [Provider("a", 0.01, errors=1.0), Provider("b", 0.01, limit=0.1), Provider("d", 0.01)]
    monkeypatch.setattr(fleet_module, "FLEET", bad)

    async def live() -> list[dict[str, object]]:
        fleet = Fleet(1, time.time(), NEVER)
        ports, servers = {}, []
        for each in bad:
            server = await asyncio.start_server(partial(fleet.serve, each), "127.0.0.1", 0)
            servers.append(server)
            ports[each.name] = server.sockets[0].getsockname()[1]
        urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()} | {
            "c": "http://127.0.0.1:1"
        }
        gateway = await asyncio.start_server(
            Proxy(urls, None, FirstToken(timeout=60.0)).serve, "127.0.0.1", 0
        )
        own = gateway.sockets[0].getsockname()[1]
        now = time.time()
        send = partial(post, f"http://127.0.0.1:{own}")
        rows = await drive(send, "n0", rate=200.0, start=now, until=now + 0.2, seed=1)
        for server in (gateway, *servers):
            server.close()
            await server.wait_closed()
        return rows

    rows = asyncio.run(live())
    assert len(rows) > 20
    assert all(row["first"] is not None for row in rows)


def test_scores_from_rows_by_hand() -> None:
    truth = Truth(1, 0.1, (100.0, 200.0))
    means = truth.means(False)
    assert min(means, key=means.__getitem__) == "arbor"
    draw = truth.best_draw("arbor", "n0/0", False)
    rows: list[dict[str, Any]] = [
        {"key": "n0/0", "first": draw + 0.5},
        {"key": "n0/1", "first": None},
        {"key": "n0/2", "first": 1.0},
    ]
    log = [
        {"at": 1.0, "key": "n0/0", "provider": "arbor", "status": 500},
        {"at": 1.1, "key": "n0/0", "provider": "birch", "status": 200},
        {"at": 2.0, "key": "n0/1", "provider": "cedar", "status": 429},
    ]
    found = score("mine", rows, log, truth)
    assert (found["requests"], found["failed"], found["lost"], found["retries"]) == (3, 1, 1, 1)
    assert found["excess"] == pytest.approx(1000 * (means["cedar"] - means["arbor"]) / 2)
    late = 0.1 * TIMEOUT - truth.best_draw("arbor", "n0/1", False)
    assert found["measured"] == pytest.approx(1000 * (0.5 + late) / 2)
    assert "mine" in table([found])


def test_recovery_counts_requests_of_the_slowest_gateway() -> None:
    truth, best = Truth(1, 1.0, (100.0, 200.0)), {False: "arbor", True: "birch"}
    firsts = [
        {"at": 100.0 + i, "key": f"{name}/{i}", "provider": "arbor" if i < stays or i >= 110 else "birch"}
        for name, stays in (("n0", 7), ("n1", 12))
        for i in range(180)
    ]
    # 16 of the next 20 are elsewhere from the 4th before the change on; 14 of 20 are back 6 before all are.
    assert recovery(firsts, truth, best) == (8, 4)
    assert recovery([row for row in firsts if row["provider"] == "arbor"], truth, best)[0] is None


def test_the_simulation_scores_choices_by_known_means() -> None:
    seconds, means = table_of(3, 60)
    assert seconds.max() <= TIMEOUT
    assert excess(means.argmin(axis=2), means) == [0.0] * 4
    worst = excess(means.argmax(axis=2), means)
    for chosen in (last_ten(seconds, 3), by_mesh(seconds, means, 3, 0.99, 0.03)):
        assert set(chosen[:, 0]) == set(range(len(FLEET)))
        assert all(0.0 <= lost < most for lost, most in zip(excess(chosen, means), worst, strict=True))


def test_a_short_demonstration(tmp_path: Path) -> None:
    """Two gateways, a node killed and one cut off: no request is lost because of a node."""
    out = tmp_path / "rows.json"
    words = ["--proxy", "--seconds", "8", "--rate", "12", "--scale", "0.2", "--gateways", "2"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), *words, "--json", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["rule"]: row for row in json.loads(out.read_text(encoding="utf-8"))}
    assert set(rows) == {"rumormill", "random"}
    assert all(row["requests"] > 100 for row in rows.values())
    assert all(row["lost"] == 0 for row in rows.values())
    for text in ("look at http://127.0.0.1:", "n1 is killed", "is cut off", "excess latency"):
        assert text in done.stdout
