"""Parts, manifests and constants of a run, piece by piece, without playing an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from helpers.small_experiments import OPEN, TINY
from rumormill.engine import Trial
from rumormill.errors import DataError, InputError
from rumormill.experiments.plan import Cell, plan_of
from rumormill.experiments.run import store
from rumormill.experiments.run import store as store_module
from rumormill.experiments.run.cache import NetworkCache
from rumormill.experiments.run.cell import _table
from rumormill.experiments.run.manifest import (
    Machine,
    Manifest,
    best_constants,
    fingerprint,
    gamma_of,
    of_spec,
    read_manifest,
    refuse_difference,
    run_key,
    write_manifest,
)
from rumormill.experiments.run.store import MARK, FinishedCells, Parts
from rumormill.experiments.spec.reading import at_scale, encode, parse_spec
from rumormill.experiments.spec.schema import Spec
from rumormill.files import StoreError

SPEC = at_scale(parse_spec(TINY))


def manifest_of(spec: Spec = SPEC, **changes: Any) -> Manifest:
    made = Manifest(
        **of_spec(spec),
        spec=encode(spec),
        spec_sha256=fingerprint(spec),
        versions={"rumormill": "1.0"},
        machine=Machine(cores=1, system="none"),
    )
    return msgspec.structs.replace(made, **changes)


def rows(policy: str, trial: int) -> pl.DataFrame:
    return pl.DataFrame({"policy": [policy] * 2, "trial": [trial] * 2, "t": [1, 2], "regret": [0.5, 1.0]})


# --- parts ----------------------------------------------------------------------------------------------


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path, "key")
    for cell in (Cell(10_000, 0), Cell(0, 1), Cell(2_000, 0)):
        made.append(cell, rows("Robust", cell.trial), {"note": str(cell.point)})
    made.close()
    return made


def test_cells_are_read_back_in_order_by_their_own_run_alone(parts: Parts, tmp_path: Path) -> None:
    cells = [Cell(0, 1), Cell(2_000, 0), Cell(10_000, 0)]
    for each in (parts, Parts(tmp_path, "key")):
        assert {*each.done} == {*cells}
        read = each.read()
        assert read.cells == cells
        assert [notes["note"] for notes in read.notes] == ["0", "2000", "10000"]
        assert read.heights == [2, 2, 2]
        assert read.frame["trial"].to_list() == [1, 1, 0, 0, 0, 0]
        assert each.read(trials=1).cells == cells[1:]
    assert not Parts(tmp_path, "other key").done


def test_a_record_under_another_cell_does_not_count(parts: Parts, tmp_path: Path) -> None:
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    place = data.index(MARK) + len(MARK)
    file.write_bytes(data[:place] + (7).to_bytes(4, "little") + data[place + 4 :])
    assert {*Parts(tmp_path, "key").done} == {Cell(0, 1), Cell(2_000, 0)}


def test_what_comes_after_damage_counts(parts: Parts, tmp_path: Path) -> None:
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    second = data.index(MARK, 1)
    file.write_bytes(data[: second - 40] + b"noise" + data[second:-1])
    left = Parts(tmp_path, "key")
    assert {*left.done} == {Cell(0, 1)}
    left.append(Cell(0, 0), rows("Robust", 0), {})
    left.close()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["0001.cells", "0002.cells"]
    assert Parts(tmp_path, "key").read().cells == [Cell(0, 0), Cell(0, 1)]


def test_files_are_begun_anew_when_they_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "FULL", 1)
    monkeypatch.setattr(store_module, "TOGETHER", 2)
    made = Parts(tmp_path, "key")
    for trial in range(3):
        made.append(Cell(0, trial), rows("Robust", trial), {})
    made.close()
    assert len(list(tmp_path.iterdir())) == 3
    read = Parts(tmp_path, "key").read()
    assert [cell.trial for cell in read.cells] == [0, 1, 2]
    assert read.frame["trial"].to_list() == [0, 0, 1, 1, 2, 2]


def test_files_without_a_finished_cell_are_deleted(parts: Parts, tmp_path: Path) -> None:
    (good,) = tmp_path.iterdir()
    (tmp_path / "0002.cells").write_bytes(good.read_bytes()[:100])
    (tmp_path / ".x.draft").write_bytes(b"half")
    Parts(tmp_path, "key").remove_rest()
    assert list(tmp_path.iterdir()) == [good]


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    second = store.locked(tmp_path)
    with store.locked(tmp_path), pytest.raises(StoreError, match="is in use by another run"):
        second.__enter__()
    with store.locked(tmp_path):
        pass


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    store.refuse_foreign(tmp_path)
    (tmp_path / "parts").mkdir()
    store.refuse_foreign(tmp_path)
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"is not empty \(it holds 'thesis\.tex'\)"):
        store.refuse_foreign(tmp_path)


def test_the_table_is_sorted_by_point_and_by_the_order_of_the_spec(tmp_path: Path) -> None:
    cells = [Cell(1, 0), Cell(0, 1), Cell(0, 0)]
    frames = [
        pl.concat([rows("Robust", trial)[::-1], rows("Alone", trial)]).with_columns(gamma=pl.lit(5 - point))
        for point, trial in cells
    ]
    finished = FinishedCells(cells, [frame.height for frame in frames], [{}] * 3, pl.concat(frames))
    made = store.assemble(tmp_path, manifest_of(policies=["Robust", "Alone"]), finished)
    expected = [
        (5 - point, policy, trial, t)
        for point, trials in ((0, (0, 1)), (1, (0,)))
        for policy in ("Robust", "Alone")
        for trial in trials
        for t in (1, 2)
    ]
    assert made.select("gamma", "policy", "trial", "t").rows() == expected
    with pytest.raises(DataError, match="has no finished cell yet"):
        store.assemble(tmp_path, manifest_of(), FinishedCells([], [], [], pl.DataFrame()))


def test_the_rows_of_a_cell_by_hand() -> None:
    """Two policies, marks at rounds 2 and 4, eleven agents."""
    plan = plan_of(at_scale(parse_spec(TINY.replace("horizon = 50", "horizon = 4\ncheckpoints = 2"))))
    agents = np.arange(11.0)
    trials = [
        Trial(
            agent_regret=scale * np.array([agents, 2 * agents]),
            messages=np.array([10, 20]),
            wire_bytes=np.array([100, 200]),
            **{
                name: None
                for name in Trial.__dataclass_fields__
                if name not in ("agent_regret", "messages", "wire_bytes")
            },
        )
        for scale in (1.0, 10.0)
    ]
    frame = _table(plan, Cell(0, 1), trials)
    assert frame["t"].to_list() == [2, 4, 2, 4]
    assert frame["policy"].to_list() == [label for label in plan.spec.labels for _ in range(2)]
    assert frame["regret"].to_list() == [55.0, 110.0, 550.0, 1100.0]
    assert frame["agent_q90"].to_list() == [9.0, 18.0, 90.0, 180.0]
    assert frame["agent_q10"].to_list() == [1.0, 2.0, 10.0, 20.0]
    assert frame["messages"].to_list() == [10, 20, 10, 20]
    assert set(frame["trial"]) == {1}


# --- the manifest ---------------------------------------------------------------------------------------


def test_what_decides_the_numbers_of_a_run() -> None:
    assert fingerprint(parse_spec(TINY)) == fingerprint(parse_spec('title = "other words"\n' + TINY))
    assert fingerprint(parse_spec(TINY)) != fingerprint(parse_spec(TINY.replace("seed = 7", "seed = 8")))
    assert len({run_key("a", "1", {}), run_key("b", "1", {}), run_key("a", "2", {})}) == 3
    assert run_key("a", "1", {"mine": "x"}) != run_key("a", "1", {"mine": "y"})
    assert run_key("a", "1", {"m": "x", "n": "y"}) == run_key("a", "1", {"n": "y", "m": "x"})


def test_a_manifest_of_one_changed_letter_is_refused(tmp_path: Path) -> None:
    write_manifest(tmp_path, manifest_of())
    assert read_manifest(tmp_path) == manifest_of()
    path = tmp_path / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"seed": 7', b'"seed": 8'))
    with pytest.raises(DataError, match="its checksum does not fit"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"versions": {"rumormill": "2.0"}}, r"was begun with rumormill 1\.0, this is 2\.0"),
        ({"own": {"mine": "x"}}, r"was begun with another mine\.py"),
    ],
)
def test_what_a_run_must_not_go_on_with(tmp_path: Path, changes: dict[str, Any], said: str | None) -> None:
    old, new = manifest_of(), manifest_of(**changes)
    if said is None:
        refuse_difference(tmp_path, old, new)
        return
    with pytest.raises(InputError, match=said):
        refuse_difference(tmp_path, old, new)


# --- constants and networks -----------------------------------------------------------------------------


def test_the_reach_of_a_trial_is_that_of_its_farthest_policy() -> None:
    class Plan:
        def __init__(self, gamma: int | None) -> None:
            self.gamma = gamma

    assert gamma_of([Plan(1), Plan(4), Plan(None), object()]) == 4
    assert gamma_of([object()]) is None


TUNED = TINY.replace("trials = 2", "trials = 4") + '\n[tune]\nknobs = ["zeta"]\ngrid = [0.1, 1.0, 10.0]\n'


def test_the_largest_constant_within_a_quarter_of_the_least() -> None:
    """Trials 0 and 1 choose; in trial 2, which reports, another would have been best."""
    spec = at_scale(parse_spec(TUNED))
    regret = {"0.1": (100.0, 100.0, 100.0), "1.0": (120.0, 130.0, 100.0), "10.0": (130.0, 130.0, 0.0)}
    printed = {"printed": (1.0, 1.0, 1.0)}
    frame = pl.DataFrame(
        [
            {"policy": "KMP", "constant": constant, "trial": trial, "t": t, "regret": value * t}
            for constant, values in {**regret, **printed}.items()
            for trial, value in enumerate(values)
            for t in (1, 2)
        ]
    )
    assert best_constants(spec, frame) == {("KMP",): 1.0}


def test_networks_are_shared_by_points_not_by_trials_or_seeds() -> None:
    cache = NetworkCache()
    points = plan_of(at_scale(parse_spec(OPEN + "[sweep]\ngamma = [0, 1]\n"))).points
    other = plan_of(at_scale(parse_spec(OPEN.replace("seed = 7", "seed = 8")))).points[0]
    assert cache.at(points[0], 0) is cache.at(points[1], 0)
    assert cache.at(points[0], 0) is not cache.at(points[0], 1)
    assert cache.at(points[0], 0) is not cache.at(other, 0)
