"""The node's page in a browser, with a running mesh: live, without a network, narrow, in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import chromium, needs_chromium
from live.processes import ARMS, Cluster, cluster

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("mesh"), [(0, 1), (1, 2)], gamma=2) as built:
        built.start(0)
        built.start(1)
        for v in range(2):
            with built.client(v) as client:
                for i in range(30):
                    choice = client.choose()
                    client.observe(choice, (10.0 if choice.arm == ARMS[1] else 400.0) + i % 7)
        yield built


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_the_page_shows_the_mesh(made: Cluster, tmp_path: Path, width: int, scheme: Any) -> None:
    url = f"http://127.0.0.1:{made.http[0]}"
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        faults: list[str] = []
        elsewhere: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: elsewhere.append(asked.url))
        page.set_default_timeout(120_000)  # a machine can be busy
        page.goto(url + "/")
        page.wait_for_selector("#state.good")
        page.wait_for_selector("#regret path", state="attached")
        assert page.inner_text("#title") == "n0 in test"
        assert page.locator("#network circle").count() == 3
        page.wait_for_selector("#links .good")  # its only neighbour is linked, or will be soon again
        assert page.locator("#links tr").count() == 2
        assert all(arm in page.inner_text("#games") for arm in ARMS)
        assert all(word in page.inner_text("#traffic") for word in ("in", "out", "refused"))
        assert "ms" in (page.text_content("#regret") or "")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "nothing sticks out to the side"
        page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert faults == []
    assert [asked for asked in elsewhere if not asked.startswith(url)] == []


def test_history_and_verdict_are_there_when_the_page_opens(made: Cluster, tmp_path: Path) -> None:
    """A page that opens late draws what was before; the proven arm is in a sentence; a wall shows less."""
    with made.client(0) as client:
        for i in range(10):
            choices = [client.choose() for _ in range(15)]
            client.observe_many((each, 10.0 if each.arm == ARMS[1] else 400.0 + i) for each in choices)
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{made.http[0]}/")
        for id_ in ("regret", "rate", "share"):
            page.wait_for_selector(f"#{id_} path", state="attached")
        page.wait_for_selector(".proven")
        assert page.inner_text(".proven").startswith(f"{ARMS[1]} is better than every other arm by at least")
        assert page.locator("#share path").count() == len(ARMS)
        page.screenshot(path=tmp_path / "history.png", full_page=True)
        page.select_option("#span", "day")  # one point so far
        page.wait_for_selector("#share text:has-text('two points are needed')", state="attached")
        page.goto(f"http://127.0.0.1:{made.http[0]}/?kiosk")
        page.wait_for_selector("#share path", state="attached")
        assert not page.is_visible("#network")
        assert page.is_visible("#share")
        assert page.evaluate("[0.4, 59, 61, 4839, 200000].map(duration)") == [
            *("0 s", "59 s", "1 min 1 s", "1 h 20 min", "2 d 7 h"),
        ]
        assert page.evaluate("[1210000, 12345, 0.5, 1.5e13].map((x) => number(x))") == [
            *("1.21 M", "12,345", "0.50", "15.0 T"),
        ]
    assert faults == []
