"""The leaderboard of docs/arena.md is that of the entries in the package, whole and of today's rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.arena_page import TABLES, published, table, verdicts

from helpers.real_graphs import FOLDER, needs_real_graphs
from rumormill.arena.entries import EntryStore, rules_of, shipped_folder
from rumormill.arena.suite import entry_of, read_suite, shipped_entries

DOCS = Path(__file__).parents[2] / "docs"
each = pytest.mark.parametrize("name", TABLES)


def printed(page: str, name: str) -> str:
    """A table of a page, between its marks."""
    text = (DOCS / page).read_text("utf-8")
    (found,) = re.findall(rf"<!-- {re.escape(name)} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    return str(found)


def refuse(line: str) -> None:
    pytest.fail(line)


@pytest.fixture(autouse=True)
def _where_the_graphs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the cells of the real network are left out."""
    monkeypatch.setenv("RUMORMILL_DATA", str(FOLDER))


@each
@needs_real_graphs
def test_the_table_of_the_page_is_that_of_the_entries(name: str) -> None:
    assert printed("arena.md", name) == table(published(*TABLES[name]))


@needs_real_graphs
def test_the_verdicts_are_those_of_the_entries() -> None:
    assert printed("tournament.md", "verdicts") == verdicts(published(*TABLES["full"]))


@each
def test_published_entries_are_whole_and_known(name: str) -> None:
    scale, patterns, trials = TABLES[name]
    suite = read_suite("arena-1", scale, "published", patterns, trials)
    entries = EntryStore(shipped_folder(suite), None, refuse).others(set())
    assert {entry.label for entry in entries} <= set(shipped_entries())
    assert len(entries) >= 7
    for entry in entries:
        assert not [cell.name for cell in suite.cells if entry.missing(cell, trials)]


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
