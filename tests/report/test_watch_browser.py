"""The animation in a real browser: slider, keys, policies, one agent's rumours; dark, narrow, and still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import chromium, needs_chromium
from report.conftest import small_spec
from rumormill.experiments.analyse.summary import Summary
from rumormill.experiments.report.html_page import write_report
from rumormill.experiments.spec.reading import at_scale, decode
from rumormill.experiments.watch.cases import watch_data, watched, write_watch_page

pytestmark = needs_chromium

SPEC = small_spec(
    "watched",
    channel={"type": "imperfect", "p": 0.6, "delay": 1},
    policies=[{"type": "kmp", "zeta": 1.0, "gamma": 2}, {"type": "robust", "zeta": 1.0}],
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def seen() -> Any:
    return watched(at_scale(decode(SPEC)), rounds=12, agents=30)


@pytest.fixture(scope="module")
def page_file(seen: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_watch_page(seen, tmp_path_factory.mktemp("watch") / "watch.html")


class Visit:
    """An open page, with everything it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        options = {"viewport": {"width": 1200, "height": 900}, **options}
        self.page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.complaints.append(request.url))
        self.page.goto(path.as_uri())
        self.until("words.textContent !== ''")
        assert self.complaints == [path.as_uri()]
        self.complaints.clear()

    def text(self, part: str) -> str:
        return str(self.page.locator(f"#watch-{part}").text_content())

    def picture(self) -> str:
        return str(self.page.evaluate("document.getElementById('watch-net').toDataURL()"))

    def until(self, condition: str, old: str = "") -> None:
        """Wait until this holds of the parts of the page; the page's own rules allow no other way."""
        self.page.evaluate(
            "async old => { const [words, net, now] = ['words', 'net', 'now']"
            ".map(id => document.getElementById(`watch-${id}`));"
            f"while (!({condition})) await new Promise(requestAnimationFrame); }}",
            old,
        )

    def go_to(self, number: int) -> None:
        self.page.locator("#watch-round").fill(str(number))

    def done(self) -> None:
        assert self.complaints == []
        self.page.close()


def test_the_slider_and_the_keys_show_other_rounds(browser: Any, page_file: Path, seen: Any) -> None:
    visit = Visit(browser, page_file)
    assert visit.text("now") == "round 1 of 12"
    pictures = [visit.picture()]
    visit.page.locator("#watch-round").focus()
    for number in range(2, 13):
        visit.page.keyboard.press("ArrowRight")
        assert visit.text("now") == f"round {number} of 12"
        pictures.append(visit.picture())
    assert len(set(pictures)) == 12
    visit.page.keyboard.press("Home")
    assert visit.text("now") == "round 1 of 12"
    assert visit.picture() == pictures[0]
    # What is said of a round is what was recorded of it.
    visit.go_to(5)
    record = seen.plays[0].record
    here = [bundle for bundle in record.bundles if bundle.sent == 5]
    lost = sum(bundle.missing for bundle in here)
    late = sum(len(bundle.messages) for bundle in here if (bundle.arrived or 0) > 5)
    total = sum(len(bundle.messages) for bundle in here)
    assert lost > 0
    assert late > 0
    assert (
        f"{total} messages on {len(here)} links: {lost} lost, {late} late, {total - lost - late} on time"
        in (visit.text("words"))
    )
    best = int((record.actions[4] == record.best[4]).sum())
    assert visit.text("words").startswith(f"{best} of 12 agents pull")
    assert "lost" in visit.text("key")
    assert "late" in visit.text("key")
    visit.done()


def test_one_agent_can_be_followed_and_policies_changed(browser: Any, page_file: Path, seen: Any) -> None:
    visit = Visit(browser, page_file)
    visit.go_to(7)
    everybody = visit.picture()
    visit.page.locator("#watch-origin").select_option("3")
    assert f"Agent 3 pulls arm {seen.plays[0].record.actions[6, 3]} and gets" in visit.text("words")
    followed = visit.picture()
    assert followed != everybody
    visit.page.locator("#watch-origin").select_option("")
    # A click on an agent does the same, and another one undoes it.
    box = visit.page.locator("#watch-net").bounding_box()
    place = box["width"], box["height"]
    size = max(5, min(13, 0.09 * (place[0] * place[1] / 12) ** 0.5)) + 8
    x, y = watch_data(seen)["places"][3]
    at = {"x": size + x * (place[0] - 2 * size), "y": size + (1 - y) * (place[1] - 2 * size)}
    visit.page.locator("#watch-net").click(position=at)
    assert visit.page.locator("#watch-origin").input_value() == "3"
    assert visit.picture() == followed
    visit.page.locator("#watch-net").click(position=at)
    assert visit.picture() == everybody
    visit.page.locator("#watch-policy").select_option("1")
    assert "Nothing is sent." in visit.text("words")
    assert visit.picture() != everybody
    visit.done()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_it_plays_and_stops(browser: Any, page_file: Path, motion: str) -> None:
    visit = Visit(browser, page_file, reduced_motion=motion)
    before = visit.picture()
    button = visit.page.locator("#watch-play")
    button.focus()
    visit.page.keyboard.press("Space")
    assert button.text_content() == "Pause"
    assert visit.page.locator("#watch-words").get_attribute("aria-live") == "off"
    # Two pictures of one round: within it things move, or nothing does.
    moved = visit.page.evaluate(
        """async () => {
            const [net, now] = ['net', 'now'].map(id => document.getElementById(`watch-${id}`));
            const first = new Map();
            while (now.textContent !== 'round 4 of 12') {
                const picture = net.toDataURL(), round = now.textContent;
                if (first.has(round) && first.get(round) !== picture) return true;
                first.set(round, picture);
                await new Promise(requestAnimationFrame);
            }
            return false;
        }"""
    )
    assert moved == (motion == "no-preference")
    visit.until("now.textContent !== 'round 1 of 12'")
    visit.page.keyboard.press("Space")
    assert button.text_content() == "Play"
    visit.go_to(1)
    assert visit.picture() == before
    visit.done()


def test_it_ends_with_the_last_round_and_begins_again(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file)
    visit.go_to(12)
    button = visit.page.locator("#watch-play")
    button.click()
    assert visit.text("now") == "round 1 of 12"
    visit.go_to(12)
    assert button.text_content() == "Play"
    visit.done()


def test_it_fits_a_telephone_and_the_dark(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, viewport={"width": 400, "height": 800}, color_scheme="light")
    assert visit.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    light = visit.picture()
    visit.page.emulate_media(color_scheme="dark")
    visit.until("net.toDataURL() !== old", light)
    visit.page.set_viewport_size({"width": 900, "height": 800})
    visit.until("net.width >= 800 * window.devicePixelRatio")
    visit.done()


def test_a_report_has_it_too(browser: Any, sweep_summary: Summary, tmp_path: Path) -> None:
    visit = Visit(browser, write_report(sweep_summary, tmp_path / "report.html"))
    assert visit.text("now") == "round 1 of 40"
    assert visit.page.locator("#watch-regret .curve").count() == 5
    assert visit.page.locator("#curves .curve").count() == 5
    visit.done()
