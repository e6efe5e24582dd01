"""`rumormill arena` from the command line: own policies, stored entries, damage, resume, logs, the page."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.browser import chromium, needs_chromium
from rumormill.arena import play
from rumormill.arena.entries import EntryStore, Played
from rumormill.arena.score import as_plain, leaderboard
from rumormill.arena.suite import entry_of, read_suite
from rumormill.engine.workers import Threads

from .conftest import SUITE, Call

TWO = ("--entries", "KMP", "--entries", "coop-UCB2")


def folder(tmp_path: Path) -> Path:
    return tmp_path / "out" / "mine-quick-published"


def test_an_own_policy_beside_stored_entries(
    arena: Call, own_policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = arena(*TWO, "--json")
    assert code == 0
    before = {each["entry"]: each for each in json.loads(out)["entries"]}
    assert before["KMP"]["cells"] == 2
    assert "does not support delay" in before["coop-UCB2"]["not_played"]["ring/gauss/lossy"]

    todos: list[play.Todo] = []
    real = play.play_todo
    monkeypatch.setattr(play, "play_todo", lambda todo, tick: todos.append(todo) or real(todo, tick))  # type: ignore[func-returns-value]
    code, out, _ = arena(own_policy, *TWO, "--json")
    assert code == 0
    assert {part.label for todo in todos for part in todo.parts} == {own_policy}  # only the new one is played
    assert len(todos) == 12
    after = {each["entry"]: each for each in json.loads(out)["entries"]}
    assert after["KMP"]["by_cell"] == before["KMP"]["by_cell"]
    assert after[own_policy]["messages_per_round"] == 0
    assert after[own_policy]["by_cell"]["ring/gauss/perfect"]["floor"] == pytest.approx(
        after["KMP"]["by_cell"]["ring/gauss/perfect"]["floor"]  # the same chance
    )
    assert json.loads((folder(tmp_path) / "arena.json").read_text())["sha256"] in out


def test_a_changed_own_policy_is_played_again(arena: Call, own_policy: str, tmp_path: Path) -> None:
    specs = [entry_of("mine", {"type": own_policy}, tmp_path)]
    store = EntryStore(tmp_path / "kept", None, print)
    first = store.open(specs[0])
    store.write(first)
    names = [path.name for path in (tmp_path / "kept").iterdir()]
    (tmp_path / "greedy_again.py").write_text((tmp_path / "greedy_of_mine.py").read_text() + "\n# changed\n")
    store.write(store.open(entry_of("mine", {"type": "greedy_again:Greedy"}, tmp_path)))
    assert len(names) == 1
    assert len(list((tmp_path / "kept").iterdir())) == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_entry_is_detected_and_played_again(arena: Call, tmp_path: Path, damage: str) -> None:
    _, out, _ = arena("--entries", "KMP", "--json")
    (path,) = folder(tmp_path).glob("kmp-*.json")
    whole = path.read_bytes()
    middle = whole.index(b'"trials":{"0":[') + 15
    digit = b"1" if whole[middle : middle + 1] != b"1" else b"2"
    broken = {
        "flip": whole[:middle] + digit + whole[middle + 1 :],
        "cut": whole[: len(whole) // 2],
        "empty": b"",
    }
    path.write_bytes(broken[damage])
    code, again, said = arena("--entries", "KMP", "--json")
    assert code == 0
    assert "is damaged" in said
    assert json.loads(again) == json.loads(out)
    assert path.read_bytes() == whole


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    arena: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = play.play_todo, iter(range(100))

    def stop(todo: play.Todo, tick: Any) -> list[Played]:
        if next(calls) == 7:
            raise KeyboardInterrupt
        return real(todo, tick)

    monkeypatch.setattr(play, "play_todo", stop)
    code, _, said = arena("--entries", "KMP")
    assert code == 130
    assert "7 of 12 trials are done and kept" in said
    monkeypatch.setattr(play, "play_todo", real)
    code, resumed, _ = arena("--entries", "KMP", "--json")
    assert code == 0
    (path,) = folder(tmp_path).glob("kmp-*.json")
    path.unlink()
    assert json.loads(arena("--entries", "KMP", "--json")[1]) == json.loads(resumed)


def test_more_trials_keep_the_first_ones(arena: Call) -> None:
    few = json.loads(arena("--entries", "KMP", "--trials", "6", "--json")[1])
    more = json.loads(arena("--entries", "KMP", "--trials", "8", "--json")[1])
    again = json.loads(arena("--entries", "KMP", "--trials", "6", "--json")[1])
    assert more["trials"] == 8
    assert again == few


def test_a_changed_game_is_played_again(arena: Call, suite_file: Path) -> None:
    before = json.loads(arena("--entries", "KMP", "--json")[1])
    suite_file.write_text(SUITE.replace("p = 0.7", "p = 0.2"))
    after = json.loads(arena("--entries", "KMP", "--json")[1])
    cells = [next(e["by_cell"] for e in each["entries"] if e["entry"] == "KMP") for each in (before, after)]
    assert cells[0]["ring/gauss/perfect"] == cells[1]["ring/gauss/perfect"]
    assert cells[0]["ring/gauss/lossy"] != cells[1]["ring/gauss/lossy"]


def test_entries_of_the_suite_are_played_and_wrong_names_refused(arena: Call) -> None:
    code, out, _ = arena("--entries", "Alone, half", "robust zeta=0.5 label=same", "--json")
    assert code == 0
    entries = {each["entry"]: each["by_cell"] for each in json.loads(out)["entries"]}
    assert entries["Alone, half"] == entries["same"]
    code, _, said = arena("--entries", "KPM")
    assert code == 2
    assert "--entries 'KPM' is not allowed" in said
    code, _, said = arena("kmp label=KMP", "--entries", "KMP")
    assert code == 2
    assert "two entries are called 'KMP'" in said


def test_purposes_are_kept_apart(arena: Call, tmp_path: Path) -> None:
    tables = [
        json.loads(arena("--entries", "KMP", "--seeds", seeds, "--json")[1])
        for seeds in ("tuning", "published")
    ]
    floors = [table["entries"][0]["by_cell"]["ring/gauss/perfect"]["floor"] for table in tables]
    assert floors[0] != floors[1]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "mine-quick-tuning",
        "mine-quick-published",
    }


def test_a_log_is_replayed_without_code(arena: Call, suite_file: Path) -> None:
    rng = np.random.default_rng(4)
    rows = "\n".join(
        f"{t},c{v},{20 + rng.pareto(2.5):.4f},{22 + rng.pareto(2.5):.4f}" for t in range(60) for v in range(3)
    )
    (suite_file.parent / "mirrors.csv").write_text("time,client,near,far\n" + rows)
    log = '\n[logs.mirrors]\nfile = "mirrors.csv"\nobjective = "minimise"\n'
    suite_file.write_text(SUITE + log)
    code, out, said = arena("--entries", "KMP", "--cells", "*/mirrors/*", "--json")
    assert (code, said.count("error")) == (0, 0)
    (kmp, uniform) = json.loads(out)["entries"]
    assert set(kmp["by_cell"]) == {"ring/mirrors/perfect", "ring/mirrors/lossy"}
    cell = kmp["by_cell"]["ring/mirrors/perfect"]
    assert 0 < cell["floor"] < uniform["by_cell"]["ring/mirrors/perfect"]["regret"]
    assert cell["median_low"] < cell["median_high"]  # other resamples in other trials
    suite_file.write_text(SUITE + log.replace("mirrors.csv", "nothing.csv"))
    code, _, said = arena("--entries", "KMP")
    assert code == 2
    assert "nothing.csv" in said


def test_the_table_for_people(arena: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    code, out, said = arena(*TWO)
    assert code == 0
    assert "coop-UCB2: not played in 1 cell (as ring/gauss/lossy): coop-UCB2 does not support delay" in out
    assert "leader" in out
    assert "arena.html" in said


def test_shipped_entries_are_used(suite_file: Path, tmp_path: Path) -> None:
    suite = read_suite(str(suite_file), "quick", "published")
    spec = entry_of("KMP", {"type": "kmp", "zeta": 1.0}, None)
    there = EntryStore(tmp_path / "there", None, print)
    entry = there.open(spec)
    entry.record(suite.cells[0]).trials[0] = Played(1.0, 2.0, 3.0, 4, 5)
    there.write(entry)
    here = EntryStore(tmp_path / "here", tmp_path / "there", print)
    assert here.open(spec).missing(suite.cells[0], 2) == [1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@needs_chromium
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_in_a_browser(arena: Call, tmp_path: Path, browser: Any, width: int) -> None:
    arena(*TWO)
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((folder(tmp_path) / "arena.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    first = page.locator("#table tbody tr:first-child td:first-child")
    page.click("#table th:nth-child(6) button")
    page.click("#table th:nth-child(2) button")
    best = first.inner_text()
    page.click("#table th:nth-child(2) button")
    assert first.inner_text() == "Uniform (expected)" != best
    page.select_option("#world", "lossy")
    page.click("#map td.none")
    assert "coop-UCB2, ring/gauss/lossy: not played" in page.inner_text("#cell")
    page.click("#map td:not(.none)")
    assert "× the floor" in page.inner_text("#cell")
    assert not complaints
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_the_suite_of_the_page_is_played_as_printed(arena: Call, suite_file: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "arena.md").read_text("utf-8")
    (block,) = re.findall(r"^```toml\n(# mine\.toml\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    (line,) = re.findall(r"^rumormill arena --suite mine\.toml .*$", page, re.MULTILINE)
    suite_file.write_text(block)
    code, out, _ = arena(*shlex.split(line)[4:], "--json")
    assert code == 0
    plain = json.loads(out)
    assert set(plain["cells"]) == {
        f"grid/{law}/{w}" for law in ("heavy", "costs") for w in ("perfect", "churn")
    }
    assert {each["entry"] for each in plain["entries"]} == {"KMP", "KMP, one hop", "Uniform (expected)"}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    horizon=st.integers(2, 60), n=st.integers(1, 6), trials=st.integers(1, 8), change=st.floats(0.01, 0.99)
)
def test_any_ordinary_size_has_a_score(
    tmp_path_factory: pytest.TempPathFactory, horizon: int, n: int, trials: int, change: float
) -> None:
    home = tmp_path_factory.mktemp("any")
    text = SUITE.replace("horizon = 40", f"horizon = {horizon}").replace("\nn = 4", f"\nn = {n}")
    text = text.replace('kind = "ring"', 'kind = "complete"')
    text += f'\n[worlds.change]\nchanges = [{{ at = {change!r}, means = "uniform" }}]\n'
    (home / "any.toml").write_text(text)
    suite = read_suite(str(home / "any.toml"), "quick", "tuning", ["*/perfect", "*/change"], trials)
    store = EntryStore(home / "out", None, print)
    entry = store.open(entry_of("Alone", {"type": "robust", "zeta": 1.0}, None))
    play.play_suite(suite, [entry], store, Threads(1))
    found = leaderboard(suite, [store.open(entry_of("Alone", {"type": "robust", "zeta": 1.0}, None))])
    alone = next(each for each in found.entries if each.label == "Alone")
    assert len(alone.cells) == 2
    assert 0 <= alone.score < np.inf
    json.dumps(as_plain(found), allow_nan=False)
