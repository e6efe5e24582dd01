"""The manifest: a flipped bit is never shown as another number, and folders of 0.1.0 can be read."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from helpers.small_experiments import SWEPT, TINY
from rumormill.cli import main
from rumormill.errors import DataError, InputError
from rumormill.experiments.analyse.summary import summarise
from rumormill.experiments.run import manifest as manifest_module
from rumormill.experiments.run.manifest import (
    MANIFEST,
    Manifest,
    difference,
    fingerprint,
    of_spec,
    read_manifest,
    spec_of,
    write_manifest,
)
from rumormill.experiments.run.runner import _open_manifest, run
from rumormill.experiments.run.store import RunFolder, load, open_run
from rumormill.experiments.spec.reading import at_scale, encode, named_spec, parse_spec

OLD = Path(__file__).parent / "data" / "run-0.1.0"


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(parse_spec(TINY), tmp_path_factory.mktemp("manifest") / "tiny")


@pytest.fixture
def copy(tiny_run: RunFolder, tmp_path: Path) -> Path:
    shutil.copytree(tiny_run.path, tmp_path / "copy")
    return tmp_path / "copy"


def test_it_reads_back_as_it_was_written(tiny_run: RunFolder, tmp_path: Path) -> None:
    manifest = read_manifest(tiny_run.path)
    assert manifest == tiny_run.manifest
    assert (manifest.format, manifest.status, manifest.own, manifest.folder) == (3, "done", {}, None)
    manifest.spec["title"] = 'Ünïcode "quotes" \u2028 and \\ more'
    manifest.points = [{"alpha": 1.0, "gamma": 1, "filter": True, "word": "1e5"}]
    write_manifest(tmp_path, manifest)
    again = read_manifest(tmp_path)
    assert again == manifest
    assert [type(value) for value in again.points[0].values()] == [float, int, bool, str]


def test_a_machine_that_does_not_say_how_many_cores_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert _open_manifest(tmp_path, at_scale(parse_spec(TINY))).machine.cores == 1


def test_it_can_be_read_by_people_and_other_programs(tiny_run: RunFolder) -> None:
    text = (tiny_run.path / MANIFEST).read_text()
    assert json.loads(text)["policies"] == ["Decentralized", "Robust"]
    assert max(map(len, text.splitlines())) < 200
    assert re.search(r'"edges": \[ \[ 0, 1 \], ', text)


def test_every_flipped_bit_is_found(tiny_run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (tiny_run.path / MANIFEST).read_bytes()
    assert len(data) < 4000
    for place in range(len(data)):
        for bit in range(8) if place < 100 else [place % 8]:
            bad = data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :]
            monkeypatch.setattr(manifest_module, "read_bytes", lambda file, bad=bad: bad)
            with pytest.raises(DataError, match="is damaged"):
                read_manifest(tiny_run.path)


def test_what_is_cut_added_or_edited_is_found(tiny_run: RunFolder, tmp_path: Path) -> None:
    data = (tiny_run.path / MANIFEST).read_bytes()
    edited = data.replace(b'"trials": 2', b'"trials": 3')
    for bad in (b"", b"{}", b"[]", b"\xff", data[:-1], data[:50], data + b" ", edited, data + data):
        (tmp_path / MANIFEST).write_bytes(bad)
        with pytest.raises(DataError, match="is damaged"):
            open_run(tmp_path)


def test_a_newer_format_is_called_so(tiny_run: RunFolder, tmp_path: Path) -> None:
    write_manifest(tmp_path, msgspec.structs.replace(tiny_run.manifest, format=4))
    with pytest.raises(DataError, match="has the format 4; this version reads formats 1 to 3"):
        read_manifest(tmp_path)


def test_the_format_before_can_be_read(tiny_run: RunFolder, tmp_path: Path) -> None:
    """It had neither constants nor games: such a run is shown without them."""
    shutil.copytree(tiny_run.path, tmp_path / "old")
    old = msgspec.structs.replace(tiny_run.manifest, format=2, constants={}, games_sha256="")
    write_manifest(tmp_path / "old", old)
    opened = open_run(tmp_path / "old")
    assert opened.games is None
    assert opened.frame.equals(tiny_run.frame)
    assert summarise(opened).constants == []


# --- going on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 30, 90, 700, -2])
def test_a_damaged_manifest_is_rebuilt_where_the_parts_prove_what_they_are(
    copy: Path, tiny_run: RunFolder, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray((copy / MANIFEST).read_bytes())
    data[place] ^= 2
    (copy / MANIFEST).write_bytes(data)
    monkeypatch.setattr("rumormill.experiments.run.cell.play_trial", None)  # nothing is played again
    again = run(parse_spec(TINY), copy).manifest
    for field in ("spec", "points", "networks", "results_sha256", "status", "versions"):
        assert getattr(again, field) == getattr(tiny_run.manifest, field)
    assert load(copy).equals(tiny_run.frame)


def test_a_damaged_manifest_of_another_run_is_not_written_over(copy: Path) -> None:
    (copy / MANIFEST).write_bytes(b"{}")
    before = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    with pytest.raises(DataError, match="is damaged, and no part beside it is of this run: choose another"):
        run(parse_spec(TINY.replace("seed = 7", "seed = 8")), copy)
    assert {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()} == before


def test_a_damaged_manifest_without_parts_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b'{"format": ')
    assert run(parse_spec(TINY), tmp_path).done


def test_other_words_are_the_same_run(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = '[[claims]]\nkind = "beats"\npolicy = "Decentralized"\nthan = "Robust"\n'
    other = parse_spec(TINY.replace("seed = 7", 'seed = 7\ntitle = "Better"') + claim)
    assert fingerprint(other) == fingerprint(parse_spec(TINY))
    monkeypatch.setattr("rumormill.experiments.run.cell.play_trial", None)
    run(other, copy)
    assert open_run(copy).spec == other


def test_the_first_difference_is_named() -> None:
    one = encode(parse_spec(SWEPT))
    assert difference(one, {**one, "seed": 4}) == "seed was 3, now 4"
    other = encode(parse_spec(SWEPT.replace("[0, 1, 3]", "[0, 1, 2]")))
    assert difference(one, other) == "sweep.gamma[2] was 3, now 2"


# --- folders of 0.1.0 -----------------------------------------------------------------------------------


def test_a_folder_of_the_first_version_is_read() -> None:
    old = open_run(OLD)
    assert (old.manifest.format, old.done, old.axes) == (1, True, ["alpha"])
    assert old.policies == ["Decentralized", "Robust"]
    assert len(old.frame) == 2 * 2 * 2 * 2
    assert old.spec.policies[0].settings["gamma"] == 1
    assert old.manifest.networks["0"].cliques == [[0, 1, 5], [2, 3, 4]]
    assert old.manifest.timings is not None


def test_the_same_spec_gives_the_same_numbers_as_the_first_version(tmp_path: Path) -> None:
    old = open_run(OLD)
    new = run(old.spec, tmp_path / "new")
    assert (tmp_path / "new" / "results.parquet").read_bytes() == (OLD / "results.parquet").read_bytes()
    assert new.frame.equals(old.frame)
    assert new.manifest.networks == old.manifest.networks


def test_a_folder_of_the_first_version_that_is_not_finished_is_read_from_its_parts(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    (tmp_path / "old" / "results.parquet").unlink()
    change(tmp_path / "old", status="running", timings={})
    assert not open_run(tmp_path / "old").done
    assert load(tmp_path / "old").equals(pl.read_parquet(OLD / "results.parquet"))


def test_a_folder_of_the_first_version_is_not_gone_on_with(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    with pytest.raises(InputError, match=r"was begun with rumormill 0.1.0 \(format 1\), this is .*: choose"):
        run(open_run(OLD).spec, tmp_path / "old")
    assert load(tmp_path / "old").equals(load(OLD))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"trials": 3}, "its trials does not follow from its spec"),
        ({"policies": ["Decentralized", "Robast"]}, "its policies does not follow"),
        ({"points": [{"alpha": 1.5}, {"alpha": 1.8}]}, "its points does not follow"),
        ({"horizon": 51}, "its horizon does not follow"),
        ({"spec_sha256": "0" * 64}, "its spec does not match its checksum"),
        ({"status": "dond"}, "Invalid enum value 'dond'"),
        ({"machine": {}}, "missing required field `cores`"),
        ({"colour": 1}, "unknown field `colour`"),
        ({"format": 2}, "its checksum is not there"),
    ],
)
def test_damage_to_a_manifest_of_the_first_version_is_found(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    change(tmp_path / "old", **changes)
    with pytest.raises(DataError, match=f"is damaged .*{reason}"):
        open_run(tmp_path / "old")


def change(folder: Path, **changes: Any) -> None:
    """Edit a manifest that has no checksum."""
    plain = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**plain, **changes}))


def test_runs_of_shipped_specs_by_the_first_version_have_the_claims_of_the_paper() -> None:
    spec = at_scale(named_spec("fig1e"), "quick")
    plain = {key: value for key, value in encode(spec).items() if key != "claims"}
    old = Manifest(
        **of_spec(spec),
        format=1,
        spec=plain,
        spec_sha256="",
        versions={"rumormill": "0.1.0"},
        machine=open_run(OLD).manifest.machine,
    )
    assert spec_of(old).claims == spec.claims
    kept = [policy for policy in plain["policies"] if policy["label"] != "KMP"]
    fewer = spec_of(msgspec.structs.replace(old, spec={**plain, "policies": kept}))
    assert fewer.claims == spec.claims[:2]


def test_a_folder_of_the_first_version_is_shown_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    for command in ("show", "report"):
        with pytest.raises(SystemExit) as end:
            main([command, str(tmp_path / "old")])
        assert end.value.code == 0, capsys.readouterr().err
    assert "tiny (custom): group regret at round 50, 2 trials, seed 7" in capsys.readouterr().out
    assert (tmp_path / "old" / "report.html").exists()
