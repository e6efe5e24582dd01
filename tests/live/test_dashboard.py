"""The node's page in a browser, with a running mesh: live, without a network, narrow, in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import chromium, needs_chromium
from live.processes import ARMS, GAME, Cluster, cluster, page_of, wait_until
from rumormill.mesh.file import read_mesh, write_mesh

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


CLASSES = ["eu", "us-large-with-a-long-name"]

# Texts that are cut off, boxes of text in a drawing that lie on each other, cards that do.
CLIPPED = """() => [...document.querySelectorAll(".scroll, section, td, th, h1, h2, li, button")]
  .filter((each) => each.offsetParent && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.id + ": " + each.textContent.slice(0, 60))"""
OVERLAPS = """() => {
  const found = [], seen = (each) => each.getClientRects().length;
  const all = (what) => [...document.querySelectorAll(what)].filter(seen);
  const groups = [all("section"), ...all("svg").map((svg) => [...svg.querySelectorAll("text")])];
  for (const group of groups) group.forEach((a, i) => group.slice(i + 1).forEach((b) => {
    const r = a.getBoundingClientRect(), s = b.getBoundingClientRect();
    if (r.left < s.right - 1 && s.left < r.right - 1 && r.top < s.bottom - 1 && s.top < r.bottom - 1)
      found.push(a.textContent.slice(0, 30) + " | " + b.textContent.slice(0, 30));
  }));
  return found;
}"""


@pytest.fixture(scope="module")
def classy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two of three nodes of a game with classes, in which another arm is best in each."""
    with cluster(tmp_path_factory.mktemp("classes"), [(0, 1), (1, 2)], gamma=2) as built:
        file = read_mesh(built.mesh).file
        file.games[0].classes = 5
        write_mesh(built.mesh, file)
        built.start(0)
        built.start(1)
        for v in range(2):
            with built.client(v) as client:
                for i in range(90):
                    at = i % 3
                    choice = client.choose(class_=[None, *CLASSES][at])
                    client.observe(choice, (5.0 if choice.arm == ARMS[at] else 20.0) + i % 7)
        yield built


def test_several_nodes_on_one_page(classy: Cluster, tmp_path: Path) -> None:
    """A row per node; a node and a class are chosen; nothing is clipped; only the page's server is asked."""
    with page_of(classy, [0, 1, 2]) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        faults: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on("request", lambda each: asked.append(each.url))
        page.set_default_timeout(120_000)
        page.goto(f"{url}/?node=n1")
        page.wait_for_selector("#nodes .good >> nth=1")
        page.wait_for_selector("#which:has-text('n1 in test')")
        page.wait_for_selector("#times path", state="attached")
        page.wait_for_selector("#alarms li:has-text('no link to 1 of 2 neighbours: n2')")
        with classy.client(1) as client:
            client.abandon(client.choose())  # those of the fixture may be more than a minute ago
        page.wait_for_selector("#nodes tr:nth-child(3) td:nth-child(5):not(:has-text('–'))")
        assert page.inner_text("#title") == "2 of 3 nodes answer: test"
        rows = [row.split() for row in page.inner_text("#nodes").splitlines()]
        assert rows[1][:2] == ["n0", "ready"]
        assert rows[2][:2] == ["n1", "ready"]
        assert float(rows[2][3]) <= float(rows[2][4]), "p50 and p99"
        assert rows[2][5:] == ["1", "of", "2", "1"], "links and alarms"
        assert "no answer" in " ".join(rows[3])
        assert "ms" in page.inner_text("#speed")
        assert page.locator("#classtable tr").count() == 1 + len(CLASSES)
        # A class: its own game, also in the address of the page, and after a reload.
        page.select_option("#class", CLASSES[1])
        page.wait_for_selector(f"#games h2:has-text('{GAME}/{CLASSES[1]}')")
        page.wait_for_selector("#share path", state="attached")
        assert page.url == f"{url}/?node=n1&class={CLASSES[1]}"
        page.reload()
        page.wait_for_selector(f"#games h2:has-text('{GAME}/{CLASSES[1]}')")
        assert page.inner_text("#which") == "n1 in test"
        page.wait_for_selector("#times path", state="attached")
        for width in (1280, 800, 400):
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.screenshot(path=tmp_path / f"nodes-{width}-{scheme}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(CLIPPED) == []
            assert page.evaluate(OVERLAPS) == []
        # Another node, then one that is away: nothing of the one before is shown for it.
        page.click("#nodes button >> nth=0")
        page.wait_for_selector("#which:has-text('n0 in test')")
        page.wait_for_selector("#times path", state="attached")
        page.click("#nodes button >> nth=2")
        page.wait_for_selector("#state:has-text('this node does not answer')")
        page.wait_for_selector("main", state="hidden")
        assert faults == []
        assert [each for each in asked if not each.startswith(f"{url}/")] == []


def test_a_node_that_goes_away_and_comes_back(classy: Cluster) -> None:
    """What was last known stays, dimmed, under its name; then it goes on."""
    with page_of(classy, [0, 1]) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{url}/?node=n1")
        page.wait_for_selector("#which:has-text('n1 in test')")
        page.wait_for_selector("#state.good")
        classy.kill(1)
        page.wait_for_selector("body.gone")
        assert page.is_visible("#games")
        assert "n1 no answer" in " ".join(page.inner_text("#nodes").split())
        classy.start(1)
        page.wait_for_selector("#state.good")
        page.wait_for_selector("body:not(.gone)")
        wait_until(lambda: page.inner_text("#title") == "2 of 2 nodes answer: test")
