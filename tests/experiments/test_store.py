"""The folder of a run: nothing half-written counts, nothing damaged is read, one run at a time."""

import errno
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rumormill
from helpers.small_experiments import SWEPT, TINY, finished_cells
from rumormill.errors import DataError, InputError
from rumormill.experiments.analyse.summary import summarise
from rumormill.experiments.figures.network import network_figures
from rumormill.experiments.plan import plan_of
from rumormill.experiments.run import manifest as networks
from rumormill.experiments.run import store
from rumormill.experiments.run.manifest import fingerprint, read_manifest, write_manifest
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import MARK, Parts, RunFolder, load, open_run
from rumormill.experiments.spec.reading import parse_spec
from rumormill.files import StoreError

COLUMNS = [
    "experiment", "policy", "gamma", "trial", "t", "regret", "agent_min", "agent_q10", "agent_q25",
    "agent_q50", "agent_q75", "agent_q90", "agent_max", "messages", "wire_bytes",
]  # fmt: skip


@pytest.fixture(scope="module")
def swept_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run, to be copied by tests that damage it."""
    return run(parse_spec(SWEPT), tmp_path_factory.mktemp("store") / "swept")


@pytest.fixture
def copy(swept_run: RunFolder, tmp_path: Path) -> Path:
    """A copy of the finished run whose table was lost."""
    shutil.copytree(swept_run.path, tmp_path / "copy")
    (tmp_path / "copy" / "results.parquet").unlink()
    return tmp_path / "copy"


def file_of(folder: Path) -> Path:
    """The only file of finished cells."""
    (found,) = (folder / "parts").iterdir()
    return found


def records(data: bytes) -> list[bytes]:
    return [MARK + each for each in data.split(MARK)[1:]]


def test_the_table_is_tidy_and_sorted(swept_run: RunFolder) -> None:
    frame = load(swept_run.path)
    assert frame.columns == COLUMNS
    assert frame.schema["gamma"] == pl.Int64
    assert frame.shape[0] == 3 * 3 * 12 * 4
    order = {label: i for i, label in enumerate(["KMP", "Centralized", "Consensus"])}
    rows = list(frame.select("gamma", pl.col("policy").replace_strict(order), "trial", "t").iter_rows())
    assert rows == sorted(rows)
    assert frame["t"].unique().sort().to_list() == [100, 200, 300, 400]
    assert rumormill.load(swept_run.path).equals(frame)


def test_the_numbers_of_the_table_fit_together(swept_run: RunFolder) -> None:
    frame = load(swept_run.path)
    spread = ["agent_min", "agent_q10", "agent_q25", "agent_q50", "agent_q75", "agent_q90", "agent_max"]
    for low, high in itertools.pairwise(spread):
        assert (frame[low] <= frame[high]).all()
    assert (frame["regret"] <= 30 * frame["agent_max"] + 1e-9).all()
    assert (frame["regret"] >= 30 * frame["agent_min"] - 1e-9).all()
    silent = frame.filter(pl.col("gamma") == 0, pl.col("policy") != "Consensus")
    assert (silent["messages"] == 0).all()
    # Without messages every agent is alone, whatever the policy is called.
    alone = [silent.filter(pl.col("policy") == label)["regret"].to_list() for label in ("KMP", "Centralized")]
    assert alone[0] == alone[1]


def test_what_nobody_can_draw_is_only_counted(monkeypatch: pytest.MonkeyPatch, swept_run: RunFolder) -> None:
    spec = swept_run.spec
    small = networks.describe_networks(plan_of(spec))
    monkeypatch.setattr(networks, "DRAWN_AGENTS", 29)
    large = networks.describe_networks(plan_of(spec))
    assert large.keys() == small.keys()
    for point, facts in large.items():
        assert (facts.edges, facts.edges_of, facts.cliques, facts.leaders) == (None, None, None, None)
        assert facts.n_leaders == len(small[point].leaders or [])
        assert (facts.n_edges, facts.diameter, facts.gamma) == (60, small[point].diameter, small[point].gamma)
    links = np.array(small["0"].edges, "<i8")
    assert {facts.edges_sha256 for facts in large.values()} == {hashlib.sha256(links.tobytes()).hexdigest()}
    summary = summarise(swept_run)
    assert network_figures(summary)
    monkeypatch.setattr(summary.manifest, "networks", large)
    assert network_figures(summary) == {}


def test_the_manifest_says_what_was_run(swept_run: RunFolder) -> None:
    manifest = json.loads((swept_run.path / "manifest.json").read_text())
    assert manifest["status"] == "done"
    assert manifest["scale"] == "custom"
    assert (manifest["trials"], manifest["horizon"], manifest["seed"]) == (12, 400, 3)
    assert manifest["points"] == [{"gamma": 0}, {"gamma": 1}, {"gamma": 3}]
    assert manifest["axes"] == ["gamma"]
    assert manifest["policies"] == ["KMP", "Centralized", "Consensus"]
    assert manifest["versions"]["rumormill"] == rumormill.__version__
    assert set(manifest["timings"]) == {"wall_s", "kernel_s", "prepare_s", "store_s"}
    first, last = manifest["networks"]["0"], manifest["networks"]["2"]
    assert len(first["edges"]) == first["n_edges"] == 60
    assert (first["gamma"], last["gamma"], last["edges_of"]) == (0, 3, "0")
    assert first["leaders"] == list(range(30))
    assert 1 <= len(last["leaders"]) < 30
    opened = open_run(swept_run.path)
    assert opened.spec == parse_spec(SWEPT)
    assert (opened.axes, opened.policies, opened.done) == (["gamma"], manifest["policies"], True)


def test_a_run_draws_itself(swept_run: RunFolder) -> None:
    import matplotlib.pyplot as plt

    figure = open_run(swept_run.path).plot()
    assert figure.axes
    plt.close(figure)


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "tail", "remove", "swap"])
def test_a_damaged_record_is_found_and_computed_again(copy: Path, swept_run: RunFolder, damage: str) -> None:
    file = file_of(copy)
    each = records(file.read_bytes())
    data, middle = each[7], len(each[7]) // 2
    if damage == "truncate":
        each[7] = data[:middle]
    elif damage == "flip":
        each[7] = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
    elif damage == "empty":
        each[7] = b""
    elif damage == "tail":
        each[20:] = [each[20][:9]]
    elif damage == "remove":
        each = []
    else:
        each[20] = data[:12] + each[20][12:]
    file.write_bytes(b"".join(each))
    again = run(parse_spec(SWEPT), copy)
    assert (copy / "results.parquet").read_bytes() == (swept_run.path / "results.parquet").read_bytes()
    assert len(finished_cells(copy)) == 36
    assert_frame_equal(again.frame, swept_run.frame, check_exact=True)


def test_a_flipped_bit_is_found_anywhere(swept_run: RunFolder, tmp_path: Path) -> None:
    data, copy = records(file_of(swept_run.path).read_bytes())[0], tmp_path / "0001.cells"
    key = swept_run.manifest.key
    for place in (*range(40), *range(40, len(data), 97)):
        copy.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert not Parts(tmp_path, key).done
    copy.write_bytes(data)
    assert len(Parts(tmp_path, key).done) == 1


def test_a_damaged_record_is_never_read(copy: Path) -> None:
    manifest = read_manifest(copy)
    manifest.status = "running"
    write_manifest(copy, manifest)
    file = file_of(copy)
    file.write_bytes(file.read_bytes()[:-1])
    assert len(load(copy)) == 35 * 3 * 4


def test_parts_of_another_run_do_not_count(copy: Path, tmp_path: Path) -> None:
    """Another spec, another version of ours, another file of the user's own."""
    ours = read_manifest(copy)
    mixed = tmp_path / "mixed"
    shutil.copytree(copy / "parts", mixed / "parts")
    assert len(Parts(mixed / "parts", ours.key).done) == 36
    for field, value in (
        ("spec_sha256", fingerprint(parse_spec(SWEPT.replace("seed = 3", "seed = 4")))),
        ("versions", {**ours.versions, "rumormill": "0.0.1"}),
        ("own", {"own_policy": "0" * 64}),
    ):
        other = msgspec.structs.replace(ours, **{field: value})
        assert not Parts(mixed / "parts", other.key).done


def test_a_damaged_table_is_refused_and_made_again(swept_run: RunFolder, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(swept_run.path, folder)
    good = (folder / "results.parquet").read_bytes()
    (folder / "results.parquet").write_bytes(good[:-9] + b"x" + good[-8:])
    with pytest.raises(DataError, match="is damaged: run it again"):
        load(folder)
    run(parse_spec(SWEPT), folder)
    assert (folder / "results.parquet").read_bytes() == good


def test_a_folder_of_another_run_is_refused_with_the_difference(copy: Path, tmp_path: Path) -> None:
    before = sorted(copy.rglob("*"))
    with pytest.raises(InputError, match=r"holds another run \(seed was 3, now 4\): choose another folder"):
        run(parse_spec(SWEPT.replace("seed = 3", "seed = 4")), copy)
    with pytest.raises(InputError, match=r"sweep.gamma\[2\] was 3, now 2"):
        run(parse_spec(SWEPT.replace("[0, 1, 3]", "[0, 1, 2]")), copy)
    assert sorted(copy.rglob("*")) == before
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(InputError, match="is not empty"):
        run(parse_spec(TINY), tmp_path)
    assert not (tmp_path / "parts").exists()


def test_a_run_begun_with_another_version_is_refused(copy: Path) -> None:
    manifest = read_manifest(copy)
    manifest.versions["rumormill"] = "0.0.1"
    write_manifest(copy, manifest)
    with pytest.raises(InputError, match=r"was begun with rumormill 0.0.1, this is"):
        run(parse_spec(SWEPT), copy)


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "busy"
    with store.locked(folder), pytest.raises(StoreError, match="is in use by another run"):
        run(parse_spec(TINY), folder)
    assert run(parse_spec(TINY), folder).done


def test_a_second_process_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "busy"
    code = (
        "import sys; from pathlib import Path; from rumormill.experiments.run import store\n"
        "with store.locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="is in use by another run"):
            run(parse_spec(TINY), folder)
        holder.kill()
    assert run(parse_spec(TINY), folder).done  # the lock died with its holder


# --- no room --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["manifest.json", "parts", "results.parquet"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_clear_error_and_nothing_half_written_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    good = run(parse_spec(TINY), tmp_path / "good")
    folder = tmp_path / "full"
    real = os.fsync

    def full(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        if name in path and path.endswith((".draft", ".cells")):
            raise OSError(code, os.strerror(code))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"no room left to write .*what is done is kept; free some space"):
        run(parse_spec(TINY), folder)
    assert not list(folder.rglob("*.draft"))
    assert not list(folder.rglob(".*.draft"))
    monkeypatch.undo()
    assert run(parse_spec(TINY), folder).done
    assert (folder / "results.parquet").read_bytes() == (good.path / "results.parquet").read_bytes()


def test_a_limit_on_the_size_of_files_is_one_clear_error(tmp_path: Path) -> None:
    """The system itself refuses the write, in the middle of a file."""
    code = (
        "import resource, sys\n"
        "from rumormill.experiments.run.runner import run\n"
        "from rumormill.experiments.spec.reading import parse_spec\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))\n"
        "try: run(parse_spec(sys.stdin.read()), sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "full"],
        input=TINY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("StoreError no room left to write")
    assert not list((tmp_path / "full").rglob(".*.draft"))


def test_a_real_small_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be made here: {mounted.stderr.strip()}")
    try:
        with pytest.raises(StoreError, match="no room left to write"):
            run(parse_spec(SWEPT), disk / "run")
        assert 0 < len(finished_cells(disk / "run")) < 36
        data = file_of(disk / "run").read_bytes()
        assert len(records(data)) == len(finished_cells(disk / "run"))  # nothing half-written
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used as the folder of a run"):
        run(parse_spec(TINY), tmp_path / "file" / "run")


@pytest.mark.parametrize("path", [None, 3, ["run"]])
def test_a_path_that_is_none(path: Any) -> None:
    with pytest.raises(InputError, match="is not allowed: the folder of a run"):
        load(path)


def test_what_is_not_the_folder_of_a_run_is_called_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .*gone: give the folder of a run"):
        load(tmp_path / "gone")
    with pytest.raises(InputError, match=r"is not the folder of a run: it has no manifest.json"):
        load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not the folder of a run: it is a file"):
        load(tmp_path / "file")
