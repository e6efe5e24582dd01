"""The leaderboard in a real browser: at 1280 px no table is wider than its box, and no word is cut off."""

from __future__ import annotations

import pytest
from scripts.arena_page import TABLES, published

from helpers.browser import chromium, needs_chromium
from rumormill.arena.score import page_html

pytestmark = needs_chromium


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_cut_off(width: int) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.set_content(page_html(published(*TABLES["quick"]), "rumormill arena --quick"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 1280:
            boxes = page.evaluate(
                "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
            )
            assert max(boxes) <= 0
        heads = page.evaluate(
            """[...document.querySelectorAll(".heat thead th span")].map(e =>
                 e.getBoundingClientRect().top - e.parentElement.getBoundingClientRect().top)"""
        )
        assert min(heads) >= 0
        beside = page.evaluate(
            """[...document.querySelectorAll(".bars .value")].map(e =>
                 e.getBoundingClientRect().left - e.previousElementSibling.getBoundingClientRect().right)"""
        )
        assert min(beside) >= 0
        assert complaints == []
