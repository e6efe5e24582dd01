"""The report in a real browser: it renders, reacts, asks nobody, and fits a telephone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rumormill.experiments.analyse.summary import Summary
from rumormill.experiments.report.page import write_report
from rumormill.experiments.run.store import RunFolder

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium (CI tries to, as root)"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def pages(
    plain_summary: Summary, sweep_summary: Summary, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "plain": write_report(plain_summary, folder / "plain.html"),
        "sweep": write_report(sweep_summary, folder / "sweep.html"),
    }


class Visit:
    """An open page, with everything it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, width: int) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#curves .scatterlayer .trace")

    def traces(self, chart: str = "curves") -> list[dict[str, Any]]:
        """The curves as drawn: name and whether it is visible; bands have no name."""
        found: list[dict[str, Any]] = self.page.evaluate(
            "id => document.getElementById(id).data.filter(t => t.name)"
            ".map(t => ({name: t.name, visible: t.visible, y: t.y}))",
            chart,
        )
        return found

    def drawn(self, chart: str = "curves") -> int:
        return int(self.page.locator(f"#{chart} .scatterlayer .trace").count())


@pytest.fixture
def visit(browser: Any, pages: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[Visit]:
    name, width = request.param
    opened = Visit(browser, pages[name], width)
    yield opened
    opened.page.close()


everywhere = pytest.mark.parametrize(
    "visit", [("plain", 1200), ("plain", 400), ("sweep", 1200), ("sweep", 400)], indirect=True
)


@everywhere
def test_it_renders_quietly_and_asks_nobody(visit: Visit) -> None:
    assert visit.complaints == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in visit.requests)
    assert len([url for url in visit.requests if url.startswith("file:")]) == 1
    loaded = visit.page.evaluate("[...document.images].map(image => image.naturalWidth)")
    assert len(loaded) >= 3
    assert min(loaded) > 0


@everywhere
def test_it_fits_the_window(visit: Visit) -> None:
    page, window = visit.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert page <= window
    # Nothing sticks out, except inside of boxes that scroll by themselves.
    outside = visit.page.evaluate(
        """[...document.querySelectorAll("main *")]
             .filter(e => !e.closest(".scroll, pre, .chart") || e.matches(".scroll, pre, .chart"))
             .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1)
             .map(e => e.tagName + "." + e.className)"""
    )
    assert outside == []
    smallest = visit.page.evaluate(
        """Math.min(...[...document.querySelectorAll("p, td, th, label, dd, figcaption")]
             .filter(e => e.getClientRects().length).map(e => parseFloat(getComputedStyle(e).fontSize)))"""
    )
    assert smallest >= 13


@pytest.mark.parametrize("visit", [("plain", 1200), ("plain", 400)], indirect=True)
def test_policies_can_be_toggled(visit: Visit, plain_run: RunFolder) -> None:
    assert [trace["name"] for trace in visit.traces()] == plain_run.policies
    before = visit.drawn()
    visit.page.get_by_label("Consensus").uncheck()
    assert [t["name"] for t in visit.traces() if not t["visible"]] == ["Consensus"]
    assert visit.drawn() == before - 2  # the curve and its band
    visit.page.get_by_label("Consensus").check()
    assert all(trace["visible"] for trace in visit.traces())
    assert visit.drawn() == before
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_axes_can_be_logarithmic(visit: Visit) -> None:
    def kinds() -> list[str]:
        shown: list[str] = visit.page.evaluate(
            "['xaxis', 'yaxis'].map(a => document.getElementById('curves')._fullLayout[a].type)"
        )
        return shown

    assert kinds() == ["linear", "linear"]
    visit.page.get_by_label("logarithmic regret").check()
    assert kinds() == ["linear", "log"]
    visit.page.get_by_label("logarithmic rounds").check()
    assert kinds() == ["log", "log"]
    visit.page.get_by_label("logarithmic regret").uncheck()
    assert kinds() == ["log", "linear"]
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_hovering_shows_numbers(visit: Visit) -> None:
    box = visit.page.locator("#curves .nsewdrag").bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    label = visit.page.locator("#curves .hoverlayer")
    label.locator("text").first.wait_for()
    assert "KMP" in label.text_content()


@pytest.mark.parametrize("visit", [("sweep", 1200)], indirect=True)
def test_a_sweep_has_its_chart_and_a_choice_of_points(visit: Visit) -> None:
    assert visit.page.locator("#sweep").is_visible()
    assert [len(trace["y"]) for trace in visit.traces("sweep")] == [3] * 5
    first = visit.traces()
    visit.page.get_by_label("sweep point").select_option(label="γ = 2")
    second = visit.traces()
    assert first[0]["y"] != second[0]["y"]
    assert first[-1]["y"] == second[-1]["y"]  # lone agents do not care how far messages travel
    visit.page.get_by_label("KMP").uncheck()
    assert [t["visible"] for t in visit.traces("sweep")] == [False, True, True, True, True]
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_no_sweep_no_chart_of_it(visit: Visit) -> None:
    assert not visit.page.locator("#sweep").is_visible()
    assert not visit.page.locator("#point").is_visible()
