"""Suites: the shipped one is what it is said to be, own ones are read strictly, purposes share no chance."""

from __future__ import annotations

from pathlib import Path

import pytest

import rumormill as rm
from rumormill.arena.play import point_of, source_of
from rumormill.arena.suite import entry_of, read_suite, seed_of, shipped_entries
from rumormill.experiments.spec.schema import Spec

from .conftest import SUITE


def test_arena_1_has_its_176_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMORMILL_DATA", str(tmp_path))  # without the real network
    full = read_suite("arena-1", "full", "published")
    assert (len(full.cells), len(full.left_out)) == (3 * 11 * 4, 11 * 4)
    assert full.trials == 24
    spec = full.cells[0].spec
    assert (spec.size.horizon, spec.n_arms, spec.network.settings["n"]) == (5000, 5, 50)
    quick = read_suite("arena-1", "quick", "published")
    assert 10 < len(quick.cells) < 30
    assert {cell.name for cell in quick.cells} < {cell.name for cell in full.cells}


def test_a_missing_network_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUMORMILL_DATA", str(tmp_path))
    found = read_suite("arena-1", "full", "published", ["*/gauss/perfect"])
    assert [cell.name for cell in found.cells] == [
        "er/gauss/perfect",
        "ba/gauss/perfect",
        "ring/gauss/perfect",
    ]
    assert list(found.left_out) == ["gnutella/gauss/perfect"]


def test_tuning_and_published_seeds_differ_everywhere() -> None:
    games = {
        (seeds, cell.spec.seed)
        for seeds in ("tuning", "published")
        for cell in read_suite("arena-1", "quick", seeds).cells
    }
    tuning, published = ({seed for purpose, seed in games if purpose == p} for p in ("tuning", "published"))
    assert not tuning & published
    assert len(published) == 13  # one per network and law: the worlds share it
    assert seed_of("arena-1", "published", "er/gauss") != seed_of("arena-2", "published", "er/gauss")


def test_the_worlds_of_a_game_share_its_arms() -> None:
    cells = read_suite("arena-1", "quick", "tuning", ["er/gauss/*"]).cells
    (policy,) = entry_of("Alone", {"type": "robust"}, None).policies
    means = [source_of(cell, point_of(cell, [policy], None), 3).means.tolist() for cell in cells]
    assert len(cells) == 4
    assert means.count(means[0]) == 4


def test_what_determines_a_game_is_in_its_key(suite_file: Path) -> None:
    keys = set()
    for old, new in (("", ""), ("horizon = 40", "horizon = 41"), ("p = 0.7", "p = 0.6"), ("n = 4", "n = 5")):
        suite_file.write_text(SUITE.replace(old, new))
        keys.add(read_suite(str(suite_file), "quick", "published", ["*/lossy"]).cells[0].key)
    assert len(keys) == 4
    suite_file.write_text(SUITE.replace("trials = 6", "trials = 7"))  # more trials of the same game
    assert read_suite(str(suite_file), "quick", "published", ["*/lossy"]).cells[0].key in keys


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', 'name = "arena-1"', "is that of the shipped suite"),
        ("[worlds.perfect]", "[worlds.perfect]\nchanel = 1", r"worlds.perfect.chanel: unknown key"),
        ('law = "gaussian"', 'law = "gausian"', r"cell ring/gauss/perfect: arms.law = 'gausian'"),
        ('kind = "ring"', 'kind = "rung"', r"cell ring/gauss/perfect: network.kind = 'rung'"),
        ("horizon = 40", "horizon = 0", "horizon"),
        ("trials = 6", "trails = 6", "unknown field trails .*did you mean 'trials'"),
        ("[networks.ring]", "[network.ring]", "unknown field network: did you mean 'networks'"),
        ("[worlds.perfect]", '[logs.gauss]\nfile = "a.csv"\n[worlds.perfect]', "logs.gauss is a law too"),
        ("[scale.quick]", "[scale.slow]", "has no scale 'quick'"),
    ],
)
def test_mistakes_in_a_suite_are_named(suite_file: Path, old: str, new: str, message: str) -> None:
    assert old in SUITE
    suite_file.write_text(SUITE.replace(old, new))
    with pytest.raises(rm.InputError, match=message):
        read_suite(str(suite_file), "quick", "published")


LOG = '\n[logs.mirrors]\nfile = "mirrors.csv"\n'


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        (60, "", 'cell ring/mirrors/perfect: .*say so with objective = "minimise"'),
        (20, 'objective = "minimise"', "cell ring/mirrors/perfect: the log has 20 rounds"),
        (60, 'objectiv = "minimise"', "cell ring/mirrors/perfect: .*did you mean 'objective'"),
        (0, 'objective = "minimise"', "cell ring/mirrors/perfect: .*mirrors.csv is empty"),
    ],
)
def test_mistakes_in_a_log_are_named(suite_file: Path, rows: int, keys: str, message: str) -> None:
    lines = "".join(f"{t},c{v},{20 + v + t % 3},{22 + t % 5}\n" for t in range(rows) for v in range(3))
    (suite_file.parent / "mirrors.csv").write_text("time,client,near_latency_ms,far_latency_ms\n" + lines)
    suite_file.write_text(SUITE + LOG + keys)
    with pytest.raises((rm.InputError, rm.DataError), match=message):
        read_suite(str(suite_file), "quick", "published")


def test_what_a_log_lacks_is_said(suite_file: Path) -> None:
    lines = "".join(f"{t},c{v},{'near' if t % 2 else 'far'},{20 + v}\n" for t in range(80) for v in range(3))
    (suite_file.parent / "mirrors.csv").write_text("time,client,mirror,latency_ms\n" + lines)
    suite_file.write_text(SUITE + LOG + 'objective = "minimise"')
    notes = read_suite(str(suite_file), "quick", "published").notes
    assert notes[-1].startswith("logs.mirrors: 80 rounds, 3 agents, 2 arms; 50 % of the rewards")
    assert not [note for note in notes if "--" in note]


def test_a_suite_that_is_no_text_is_refused(suite_file: Path) -> None:
    suite_file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(rm.InputError, match="codec can't decode"):
        read_suite(str(suite_file), "quick", "published")


def test_patterns_that_fit_nothing_are_refused(suite_file: Path) -> None:
    with pytest.raises(rm.InputError, match="no cell is left"):
        read_suite(str(suite_file), "quick", "published", ["er/*"])
    with pytest.raises(rm.InputError, match="there is no such file"):
        read_suite("arena-7", "quick", "published")


def test_every_entry_of_the_leaderboard_can_be_made() -> None:
    entries = shipped_entries()
    assert len(entries) >= 9
    for name, settings in entries.items():
        spec: Spec = entry_of(name, settings, None)
        assert spec.labels == [name]


def test_a_change_comes_at_its_share_of_the_rounds() -> None:
    (cell,) = read_suite("arena-1", "quick", "published", ["er/gauss/change"]).cells
    assert cell.spec.arms.changes is not None
    assert (cell.spec.size.horizon, cell.spec.arms.changes[0].at) == (500, 251)
