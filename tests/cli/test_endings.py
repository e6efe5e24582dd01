"""How commands end: signals, full disks, poor terminals, missing libraries."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.small_experiments import finished_cells
from rumormill.cli.exit import Stop, explained, stoppable

COMMAND = [sys.executable, "-c", "from rumormill.cli import main; main()"]
POOR = {"PYTHONIOENCODING": "ascii", "LANG": "C", "LC_ALL": "C"}


def in_a_process(
    *words: str, folder: Path, environment: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, env={**os.environ, **environment}, capture_output=True, timeout=300
    )


# --- stopped --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code", "executor"),
    [
        (signal.SIGINT, 130, "threads"),
        (signal.SIGTERM, 143, "threads"),
        (signal.SIGTERM, 143, "processes"),
    ],
)
def test_a_signal_keeps_what_is_done_and_says_how_to_go_on(
    number: signal.Signals, code: int, executor: str, tmp_path: Path, spec_file: Path
) -> None:
    text = spec_file.read_text().replace("trials = 5", "trials = 100000")
    spec_file.write_text(text.replace("n = 6", "n = 40"))
    words = ["run", "mine.toml", "--out", "long", "--executor", executor, "--jobs", "2"]
    running = subprocess.Popen(
        [*COMMAND, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        parts = tmp_path / "long" / "parts"
        deadline = time.monotonic() + 120
        while not (parts.is_dir() and any(parts.glob("*.cells"))) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == code
    last = err.strip().splitlines()[-1]
    assert last.startswith("stopped: ")
    assert last.endswith(f"kept in long; go on with: rumormill {' '.join(words)}")
    done = int(last.split()[1].replace(",", ""))
    assert done == len(finished_cells(tmp_path / "long")) > 0
    assert "Traceback" not in err
    assert out == ""


def test_sigterm_outside_of_a_run(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rumormill.experiments.run import store

    def terminated(path: Path) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(store, "open_run", terminated)
    answer = cli("show", "a folder")
    assert answer.code == 143
    last = answer.err.strip().splitlines()[-1]
    assert last == "stopped: no file is half written; begin again with: rumormill show 'a folder'"
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_need_no_signals() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def code() -> int:
        with stoppable() as stop:
            return stop.code

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(code).result() == 130


# --- what the system says -------------------------------------------------------------------------------


def line(error: Exception, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = explained(error, ["run", "a b.toml"], Stop())
    (only,) = capsys.readouterr().err.splitlines()
    return code, only


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/x/figures/regret.png")
    assert line(full, capsys) == (
        1,
        "error: runs/x/figures/regret.png: No space left on device; make room, then go on with: "
        "rumormill run 'a b.toml' (what is done is kept)",
    )


def test_no_room_for_figures_names_the_file_and_the_way_on(cli: Any, spec_file: Path) -> None:
    assert cli("run", "mine.toml", "--out", "here", "--no-report").code == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))  # as if the disk were full
    try:
        answer = cli("report", "here")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert answer.code == 1
    assert answer.err == (
        "error: no room left to write here/figures/regret.png: what is done is kept; free some space and run "
        "again to go on\n"
    )
    assert list(Path("here/figures").iterdir()) == []


def test_a_device_is_not_replaced_by_a_page(cli: Any, spec_file: Path) -> None:
    assert cli("run", "mine.toml", "--out", "here", "--no-report").code == 0
    os.mkfifo("pipe")
    answer = cli("report", "here", "--out", "pipe", "--no-figures")
    assert (answer.code, answer.err) == (
        1,
        "error: pipe cannot be written: it is there already, and it is no file\n",
    )
    assert Path("pipe").is_fifo()


def test_other_files_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    refused = OSError(errno.EACCES, os.strerror(errno.EACCES), "page.html")
    assert line(refused, capsys) == (1, "error: page.html: Permission denied")
    assert line(OSError("odd"), capsys) == (1, "error: odd")


def test_a_missing_library_names_the_extra(capsys: pytest.CaptureFixture[str]) -> None:
    error = ModuleNotFoundError("No module named 'polars'", name="polars")
    expected = "error: polars is not installed, and this needs it: pip install 'rumormill[lab]'"
    assert line(error, capsys) == (1, expected)
    ours = ModuleNotFoundError("No module named 'rumormill.nowhere'", name="rumormill.nowhere")
    assert line(ours, capsys)[1].endswith("(a defect; --debug shows where)")


# --- a terminal without Greek letters -------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("network", "path", "n=20"),
        ("list", "policies"),
        ("coverage", "--n", "20", "--repeats", "10", "--delta", "0.1", "--estimator", "trimmed"),
    ],
)
def test_a_poor_terminal_gets_question_marks(words: tuple[str, ...], tmp_path: Path) -> None:
    done = in_a_process(*words, folder=tmp_path, environment=POOR)
    assert done.returncode == 0, done.stderr
    assert b"defect" not in done.stderr
    assert done.stdout


def test_a_whole_run_on_a_poor_terminal(tmp_path: Path, spec_file: Path) -> None:
    # Nor may a file be written in whatever the terminal speaks.
    poorer = {**POOR, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = in_a_process("run", "mine.toml", "--bounds", folder=tmp_path, environment=poorer)
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout
    assert max(done.stdout) < 128
    page = tmp_path / "runs" / "mine-5x30" / "report.html"
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_json_on_a_poor_terminal_loses_nothing(tmp_path: Path) -> None:
    done = in_a_process("list", "policies", "--json", folder=tmp_path, environment=POOR)
    assert done.returncode == 0
    rich = in_a_process(
        "list", "policies", "--json", folder=tmp_path, environment={"PYTHONIOENCODING": "utf-8"}
    )
    assert json.loads(done.stdout) == json.loads(rich.stdout)
    assert "γ" in rich.stdout.decode("utf-8")
