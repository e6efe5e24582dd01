"""The site in a real browser, from the disk: pages, formulas, search."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import chromium, needs_chromium

ROOT = Path(__file__).parents[2]
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built here: one that lies about may be of other sources."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "scripts.docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Visit:
    """A window that notes what pages complain about and ask for."""

    def __init__(self, browser: Any, width: int, site: Path) -> None:
        self.site = site
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, name: str) -> None:
        path, mark, query = name.partition("?")
        self.page.goto((self.site / path).as_uri() + mark + query)


@pytest.fixture(scope="module")
def visit(site: Path) -> Iterator[Visit]:
    with chromium() as running:
        yield Visit(running, 1200, site)


def test_every_page_can_be_reached_and_is_quiet(visit: Visit) -> None:
    """From the first page, by links alone; nobody outside is asked for anything."""
    seen: set[str] = set()
    todo = ["index.html"]
    home = f"{visit.site.as_uri()}/"
    while todo:
        name = todo.pop()
        seen.add(name)
        visit.open(name)
        links: list[str] = visit.page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)")
        for link in links:
            path = link.partition("#")[0].partition("?")[0]
            if path.startswith(home) and path.endswith(".html"):
                found = path.removeprefix(home)
                if found not in seen and found not in todo:
                    todo.append(found)
        broken = visit.page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
        assert broken == [], name
    assert visit.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in visit.requests)
    written = {path.relative_to(visit.site).as_posix() for path in visit.site.rglob("*.html")}
    assert written - seen <= {"genindex.html", "search.html"}


@pytest.mark.parametrize(("name", "at_least"), [("theory.html", 200), ("algorithms.html", 50)])
def test_formulas_are_set(visit: Visit, name: str, at_least: int) -> None:
    visit.open(name)
    wanted = visit.page.locator(".math").count()
    visit.page.wait_for_function(
        "wanted => document.querySelectorAll('mjx-container svg').length >= wanted", arg=wanted
    )
    assert wanted >= at_least
    # What it does not know it shows in red.
    assert visit.page.locator("mjx-container [fill=red], mjx-container [data-mjx-error]").count() == 0
    assert visit.complaints == []


def test_the_search_finds(visit: Visit) -> None:
    visit.open("search.html?q=dominating")
    visit.page.wait_for_selector("ul.search li a")
    found = visit.page.locator("ul.search li a").all_text_contents()
    assert any("theory" in title.lower() for title in found)
    assert visit.complaints == []


def test_it_fits_a_telephone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 400, "height": 800})
    for name in ("index.html", "algorithms.html", "reference/spec.html", "tutorials/own-policy.html"):
        visit.open(name)
        page, window = visit.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert page <= window, name
    visit.page.set_viewport_size({"width": 1200, "height": 800})
