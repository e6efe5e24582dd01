"""The report in a real browser: it renders, reacts, asks nobody, and fits a telephone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.browser import chromium, needs_chromium
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.report.html_page import write_report
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import decode
from rumormill.plotting.style import looks

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def pages(
    plain_summary: Summary, sweep_summary: Summary, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    spec = {
        **plain_summary.manifest.spec,
        "name": "two",
        "policies": [{"type": "kmp"}, {"type": "robust"}],
        "sweep": {"gamma": [0, 1], "zeta": [0.01, 0.1, 1.0]},
        "scale": {"custom": {"horizon": 10, "trials": 2}},
    }
    two = summarise(run(decode(spec), folder / "two", 1))
    many = {
        **{key: value for key, value in spec.items() if key != "network"},
        "name": "many",
        "policies": [{"type": "robust", "zeta": 0.1 * k, "label": f"Robust {k}"} for k in range(1, 11)],
        "networks": {"er": {"kind": "erdos_renyi", "n": 6, "p": 0.7}, "ring": {"kind": "ring", "n": 6}},
        "sweep": {"alpha": [1.2, 1.5, 1.9, 2.0], "network": ["er", "ring"]},
        "arms": {"law": "alpha-stable", "alpha": 1.9, "means": [0.0, 5e4, 9e4]},
    }
    return {
        "many": write_report(summarise(run(decode(many), folder / "many", 1)), folder / "many.html"),
        "two": write_report(two, folder / "two.html"),
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
        self.page.wait_for_selector("#curves .curve")

    def curves(self, chart: str = "curves") -> dict[str, list[float]]:
        """The curves that are drawn, by name."""
        found: dict[str, list[float]] = self.page.evaluate(
            "id => Object.fromEntries(document.getElementById(id).chart.series.map(s => [s.name, s.y]))",
            chart,
        )
        assert list(found) == [
            group.get_attribute("data-name") for group in self.page.locator(f"#{chart} .curve").all()
        ]
        return found

    def heights(self, chart: str = "curves") -> list[float]:
        """Where the labels of the regret axis stand, from the top."""
        places: list[float] = self.page.evaluate(
            "id => [...document.querySelectorAll(`#${id} text.tick[text-anchor=end]`)]"
            ".map(e => e.getBoundingClientRect().top)",
            chart,
        )
        return places


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


@pytest.mark.parametrize(
    "visit", [(name, w) for name in ("many", "plain") for w in (1280, 400)], indirect=True
)
def test_words_of_a_chart_do_not_touch_and_are_not_cut_off(visit: Visit) -> None:
    for chart in ("curves", "sweep") if visit.page.locator("#sweep svg").count() else ("curves",):
        boxes = visit.page.evaluate(
            """id => [...document.querySelectorAll(`#${id} svg, #${id} svg text`)]
                 .map(e => e.getBoundingClientRect().toJSON())""",
            chart,
        )
        around, *words = boxes
        for i, a in enumerate(words):
            assert around["left"] <= a["left"] <= a["right"] <= around["right"]
            for b in words[:i]:
                apart = a["right"] <= b["left"] or b["right"] <= a["left"]
                assert apart or a["bottom"] <= b["top"] + 2 or b["bottom"] <= a["top"] + 2, (a, b)


@pytest.mark.parametrize("visit", [("many", 1280), ("many", 400)], indirect=True)
def test_of_many_policies_eight_are_drawn_first_side_by_side(visit: Visit) -> None:
    assert len(visit.curves()) == 8
    assert "2 with more regret are not drawn" in visit.page.locator("#policies").inner_text()
    places = visit.page.evaluate(
        """[...document.querySelectorAll("#sweep .curve")].map(curve =>
             [...curve.querySelectorAll("path[transform]")].map(e => e.getBoundingClientRect().x))"""
    )
    for at in zip(*places, strict=True):  # the markers of all policies at one value
        assert min(np.diff(at)) > 2
    left, right = visit.page.evaluate(
        "[0, 1].map(i => document.querySelector('#sweep').chart && "
        "document.querySelector('#sweep svg').getBoundingClientRect()[i ? 'right' : 'left'])"
    )
    assert left < min(map(min, places)) <= max(map(max, places)) < right
    visit.page.get_by_label("Robust 1", exact=True).set_checked(True)
    visit.page.get_by_label("Robust 10", exact=True).set_checked(True)
    assert len(visit.curves()) >= 9
    assert len(visit.page.locator("#watch-regret .curve").all()) == 8
    visit.page.locator("#watch-policy").select_option("9")
    names = [each.get_attribute("data-name") for each in visit.page.locator("#watch-regret .curve").all()]
    assert len(names) == 8
    assert "Robust 10" in names


@pytest.mark.parametrize("visit", [("many", 1280)], indirect=True)
def test_long_tables_are_folded_and_raw_keys_are_no_words(visit: Visit) -> None:
    assert visit.page.locator("#numbers details summary").inner_text() == "80 rows"
    assert not visit.page.locator("#numbers table").is_visible()
    assert visit.page.locator("#settings details").count() == 1
    assert visit.page.get_by_label("network", exact=True).inner_text().split("\n") == ["Erdős–Rényi", "ring"]


@pytest.mark.parametrize("visit", [("plain", 1200), ("plain", 400)], indirect=True)
def test_policies_can_be_toggled(visit: Visit, plain_run: RunFolder) -> None:
    assert list(visit.curves()) == plain_run.policies
    visit.page.get_by_label("Consensus").uncheck()
    assert list(visit.curves()) == [name for name in plain_run.policies if name != "Consensus"]
    visit.page.get_by_label("Consensus").check()
    assert list(visit.curves()) == plain_run.policies
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_swatches_have_the_dash_and_the_marker(visit: Visit, plain_run: RunFolder) -> None:
    dashes = visit.page.evaluate(
        "[...document.querySelectorAll('#policies .swatch path:first-child')]"
        ".map(e => e.getAttribute('stroke-dasharray'))"
    )
    assert dashes == [look.dash for look in looks(plain_run.policies).values()]
    drawn = visit.page.evaluate(
        "[...document.querySelectorAll('#curves .mean')].map(e => e.getAttribute('stroke-dasharray'))"
    )
    assert drawn == dashes


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_axes_are_logarithmic_and_can_be_plain(visit: Visit) -> None:
    def labels() -> list[str]:
        return [str(text) for text in visit.page.locator("#curves text[text-anchor=end]").all_text_contents()]

    assert "0" not in labels()
    visit.page.get_by_label("logarithmic regret").uncheck()
    assert labels()[0] == "0"
    steps = np.diff(visit.heights())
    assert np.ptp(steps) < 2  # labels evenly apart, to the pixel
    visit.page.get_by_label("logarithmic rounds").uncheck()
    assert "0" in visit.page.locator("#curves text.tick[text-anchor=middle]").all_text_contents()
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("plain", 1200), ("plain", 400)], indirect=True)
def test_pointing_shows_numbers(visit: Visit) -> None:
    box = visit.page.locator("#curves svg").bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    hint = visit.page.locator("#curves .hint")
    hint.wait_for()
    assert "KMP: " in hint.text_content()
    visit.page.mouse.move(1, 1)
    assert not hint.is_visible()


@pytest.mark.parametrize("visit", [("sweep", 1200)], indirect=True)
def test_a_sweep_has_its_chart_and_a_choice_of_points(visit: Visit) -> None:
    assert [len(y) for y in visit.curves("sweep").values()] == [3] * 5
    first = visit.curves()
    visit.page.get_by_label("γ (hops)", exact=True).select_option(label="0")
    second = visit.curves()
    assert first["KMP"] != second["KMP"]
    assert first["Robust"] == second["Robust"]  # lone agents do not care how far messages travel
    visit.page.get_by_label("KMP").uncheck()
    assert "KMP" not in visit.curves("sweep")
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("two", 1200), ("two", 400)], indirect=True)
def test_two_axes_are_looked_at_one_at_a_time(visit: Visit) -> None:
    assert [len(y) for y in visit.curves("sweep").values()] == [2, 2]
    visit.page.get_by_label("sweep along").select_option(label="factor ζ")
    at_one = visit.curves("sweep")
    assert [len(y) for y in at_one.values()] == [3, 3]
    assert visit.page.locator("#held").text_content() == "Held: γ (hops): 1."
    visit.page.get_by_label("γ (hops)", exact=True).select_option(label="0")
    at_zero = visit.curves("sweep")
    assert at_one["Robust"] == at_zero["Robust"]
    assert visit.page.locator("#held").text_content() == "Held: γ (hops): 0."
    ticks = visit.page.locator("#sweep text.tick[text-anchor=middle]")
    assert ticks.all_text_contents() == ["0.01", "0.1", "1"]
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_no_sweep_no_chart_of_it(visit: Visit) -> None:
    assert not visit.page.locator("#sweep").is_visible()
    assert visit.page.locator("#axes select").count() == 0


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_a_saved_chart_has_its_key(visit: Visit, plain_run: RunFolder, tmp_path: Path) -> None:
    for kind in ("SVG", "PNG"):
        with visit.page.expect_download() as download:
            visit.page.locator("#regret").get_by_role("button", name=kind).last.click()
        download.value.save_as(tmp_path / kind)
        assert download.value.suggested_filename == f"plain-curves.{kind.lower()}"
    assert (tmp_path / "PNG").read_bytes().startswith(b"\x89PNG")
    drawing = (tmp_path / "SVG").read_text()
    for name in [*plain_run.policies, "mean, 95 % band (6 trials)"]:
        assert f">{name}</text>" in drawing


@pytest.mark.parametrize("visit", [("plain", 1200)], indirect=True)
def test_the_key_is_printed(visit: Visit) -> None:
    visit.page.emulate_media(media="print")
    assert visit.page.locator("#policies .swatch").first.is_visible()
    assert not visit.page.locator("#axes").is_visible()
    assert not visit.page.locator(".files").last.is_visible()


@everywhere
def test_dark_where_the_reader_likes_it_dark(visit: Visit) -> None:
    def brightness(what: str) -> int:
        shade: str = visit.page.evaluate(f"getComputedStyle(document.body).{what}")
        return sum(int(part) for part in re.findall(r"\d+", shade)[:3])

    assert brightness("backgroundColor") > 600 > 200 > brightness("color")
    visit.page.emulate_media(color_scheme="dark")
    assert brightness("backgroundColor") < 100 < 600 < brightness("color")
    turned = visit.page.evaluate(
        "[...document.querySelectorAll('.chart svg, .swatch, figure img')]"
        ".map(e => getComputedStyle(e).filter)"
    )
    assert set(turned) == {"invert(1) hue-rotate(180deg) brightness(1.4)"}


@pytest.mark.parametrize("visit", [("sweep", 400)], indirect=True)
def test_a_wide_table_says_that_it_scrolls(visit: Visit) -> None:
    box = visit.page.locator("#numbers .scroll")
    assert "more" in box.get_attribute("class").split()
    box.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    visit.page.locator("#numbers .scroll:not(.more)").wait_for()
