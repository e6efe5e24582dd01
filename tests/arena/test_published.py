"""The leaderboard of docs/arena.md is that of the entries in the package, whole and of today's rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from scripts.arena_page import END, GROUPS, PAGES, TABLES, WORLDS, leaderboards, pages, short

from helpers.real_graphs import FOLDER, needs_real_graphs
from rumormill.arena.entries import EntryStore, rules_of, shipped_folder
from rumormill.arena.suite import entry_of, read_suite, shipped_entries

each = pytest.mark.parametrize("name", TABLES)


def refuse(line: str) -> None:
    pytest.fail(line)


@pytest.fixture(autouse=True)
def _where_the_graphs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the cells of the real network are left out."""
    monkeypatch.setenv("RUMORMILL_DATA", str(FOLDER))


@needs_real_graphs
def test_the_tables_of_the_pages_are_those_of_the_entries() -> None:
    texts = [path.read_text("utf-8") for path in PAGES]
    for name, rows in pages().items():
        parts = [text.partition(f"<!-- {name} -->\n")[2] for text in texts]
        assert [part.partition(f"\n{END}")[0] for part in parts if part] == [rows], name


def ratios(world: str, entry: str, *laws: str) -> list[float]:
    """Regret ÷ floor of an entry in the cells of a world, or of some laws."""
    (row,) = (each for each in leaderboards()[world]["entries"] if each["entry"] == entry)
    cells = row["by_cell"].items()
    return [cell["ratio"] for name, cell in cells if not laws or name.split("/")[1] in laws]


def score(world: str, entry: str, *laws: str) -> str:
    found = ratios(world, entry, *laws)
    return short(math.exp(math.fsum(map(math.log, found)) / len(found)))


def more(one: str, other: str, world: str = "perfect") -> list[float]:
    return [a / b for a, b in zip(ratios(world, one), ratios(world, other), strict=True)]


def facts() -> Iterator[tuple[str, list[Any]]]:
    """Sentences of docs/tournament.md, and the numbers of the tables in them."""
    rows = {each["entry"]: each for each in leaderboards()["perfect"]["entries"]}
    one = rows["Default"]
    second = leaderboards()["perfect"]["entries"][1]["entry"]
    found = [score("perfect", "Default"), second, score("perfect", second), one["lost"], one["trials"]]
    yield "{} × the floor (the next, {}: {}), {} of {} trials lost", found
    huber = ratios("perfect", "Huber (symmetric)", *GROUPS["symmetric"], *GROUPS["one skewed shape"])
    yield "within {} × the floor in each such cell with a perfect channel", [short(max(huber))]
    heavy = [score("perfect", "KMP", law) for law in ("stable-1.2", "stable-1.5")]
    yield "the price is {} × the floor at α = 1.2 and {} × at 1.5", heavy
    alone = more("Alone", "KMP")
    found = [sum(x > 1 for x in alone), short(min(alone)), short(max(alone))]
    yield "more regret than KMP at ζ = 1 in {} of the 44 cells with a perfect channel, {} to {} times", found
    yield "{} of 44 cells with a perfect channel have a mean of at most 2 × the floor", [one["good"]]
    order = sum(x >= 1 for x in more("Decentralized", "KMP"))
    found = [order, score("perfect", "KMP"), score("perfect", "Decentralized")]
    yield "KMP ≤ Decentralized holds at ζ = 1 in {} of 44 cells (scores {} and {})", found
    found = [score("perfect", name) for name in ("coop-UCB2", "KMP")]
    yield "coop-UCB2 has the smaller score ({} against {})", found
    names = ["coop-UCB2", "KMP", "Alone", "Default"]
    yield "coop-UCB2 {}, KMP {}, Alone {} and Default {}", [score("change", name) for name in names]
    names = ["Default", "Huber (symmetric)", "KMP, ζ = 1/4", "KMP", "Alone"]
    yield (
        "Default has {}, Huber (symmetric) {}, KMP at ζ = 1/4 {}, KMP {}, Alone {}",
        [score("lossy", name) for name in names],
    )
    names = ["KMP", "Origin median", "Default", "ThompsonKMP", "Alone"]
    yield (
        "KMP has {}, Origin median {}, Default {}, ThompsonKMP {}, Alone {}",
        [score("liar", name) for name in names],
    )
    worse = [sum(x <= 1 for x in more("Alone", "Default", world)) for world in WORLDS]
    yield (
        "no better than agents alone in {} cells with a perfect channel, {} after a change, {} with losses "
        "and {} with a liar",
        worse,
    )


@needs_real_graphs
def test_sentences_of_the_verdicts_follow_from_the_tables() -> None:
    page = " ".join(PAGES[-1].read_text("utf-8").split())
    for sentence, values in facts():
        assert sentence.format(*values) in page


@each
def test_published_entries_are_known(name: str) -> None:
    scale, patterns, trials = TABLES[name]
    suite = read_suite("arena-1", scale, "published", patterns, trials)
    entries = EntryStore(shipped_folder(suite), None, refuse).others(set())
    assert {entry.label for entry in entries} <= set(shipped_entries())
    whole = [one for one in entries if not any(one.missing(cell, trials) for cell in suite.cells)]
    assert "Default" in {one.label for one in whole}
    assert len(whole) >= 7


@pytest.mark.slow  # a policy changed on purpose has to be played again: `rumormill arena --entries NAME`
@each
def test_published_entries_are_of_todays_rules(name: str) -> None:
    suite = read_suite("arena-1", TABLES[name][0], "published", TABLES[name][1])
    table = shipped_entries()
    entries = EntryStore(shipped_folder(suite), None, refuse).others(set())
    stale = [
        one.label for one in entries if one.rules != rules_of(entry_of(one.label, table[one.label], None))
    ]
    assert not stale


def test_small_games_show_a_rule_for_bounded_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forced samples of the default depend on it: without, an entry would be taken for today's."""
    spec = entry_of("Default", shipped_entries()["Default"], None)
    before = rules_of(spec)
    assert rules_of(spec) == before
    monkeypatch.setattr("rumormill.default_rule.bounded", lambda *given: False)
    assert rules_of(spec) != before
