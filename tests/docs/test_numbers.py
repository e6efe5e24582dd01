"""Measured tables stand in their pages as they were stored, and those older than their code are named."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from scripts import measured_tables as numbers

TABLES = numbers.read_tables()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_stands_in_its_page_as_it_was_stored(table: numbers.Table) -> None:
    assert table.of_page() == numbers.read_store()[table.name]["text"], "run `make numbers`"


@pytest.mark.filterwarnings("default:measured on older code")
def test_tables_that_are_older_than_their_code_are_named() -> None:
    stale = [f"{each.name} ({each.page})" for each in numbers.older(TABLES)]
    if stale:
        warnings.warn(f"measured on older code: {', '.join(stale)}; `make numbers`", stacklevel=1)
    assert {each.name for each in TABLES} == set(numbers.read_store())


def copied(table: numbers.Table, folder: Path) -> None:
    for place in (
        *(Path("src") / "rumormill" / code for code in table.code),
        Path(table.page),
        numbers.STORE,
    ):
        source, target = numbers.ROOT / place, folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def test_a_change_of_the_code_makes_a_table_old(tmp_path: Path) -> None:
    table = next(each for each in TABLES if each.name == "speed")
    copied(table, tmp_path)
    before = table.code_sha256(tmp_path)
    assert before == table.code_sha256()
    file = next((tmp_path / "src" / "rumormill" / table.code[0]).rglob("*.py"))
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert table.code_sha256(tmp_path) != before
    assert numbers.older([table], tmp_path) == [table]


def test_a_number_that_is_changed_by_hand_is_seen_and_put_right(tmp_path: Path) -> None:
    table = next(each for each in TABLES if each.name == "speed")
    copied(table, tmp_path)
    page = tmp_path / table.page
    stored = numbers.read_store(tmp_path)[table.name]["text"]
    page.write_text(page.read_text(encoding="utf-8").replace(stored, stored.replace("0.", "9.")), "utf-8")
    assert numbers.differing([table], tmp_path) == [table]
    table.put(stored, tmp_path)
    assert page.read_text(encoding="utf-8") == (numbers.ROOT / table.page).read_text(encoding="utf-8")
