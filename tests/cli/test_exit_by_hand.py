"""Exit codes, streams and JSON, without running a command."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import signal
import sys

import pytest

from rumormill.cli.commands.coverage import _row
from rumormill.cli.exit import Stop, explained, missing_library, stoppable
from rumormill.cli.printing import note, print_json, with_band
from rumormill.errors import DataError, InputError, RumormillError
from rumormill.theory import CoverageRow


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("a\nb"), 2),
        (DataError("no"), 2),
        (RumormillError("no"), 1),
        (OSError(13, "Permission denied", "file"), 1),
        (ValueError("no"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(error, ["run", "x"], Stop()) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("number", "advised"),
    [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EFBIG, True), (errno.EACCES, False)],
)
def test_what_to_do_on_a_full_disk(number: int, advised: bool, capsys: pytest.CaptureFixture[str]) -> None:
    explained(OSError(number, "said", "file"), ["run", "x"], Stop())
    assert ("make room, then go on with: rumormill run x" in capsys.readouterr().err) == advised


def test_a_signal_has_its_own_code_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stoppable() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
    assert stop.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_which_extra_a_library_is_part_of() -> None:
    for name, extra in (("cryptography.x509", "node"), ("ray", "cluster"), ("polars", "lab")):
        assert f"rumormill[{extra}]" in missing_library(ModuleNotFoundError("no", name=name))


def test_json_has_no_nan_and_no_letter_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"a": math.nan, "b": [math.inf, 1.5], "γ": "é", "c": (1, None)}
    for encoding in ("utf-8", "ascii"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
        print_json(value)
        sys.stdout.flush()
        assert json.loads(raw.getvalue()) == {"a": None, "b": [None, 1.5], "γ": "é", "c": [1, None]}


def test_remarks_are_not_among_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    note("figure: x.png")
    assert capsys.readouterr() == ("", "figure: x.png\n")


def test_the_band_stands_behind_its_number() -> None:
    shown = with_band({"policy": "KMP", "regret": 3.0, "messages": 5}, "regret", "2 to 4")
    assert list(shown.items()) == [
        ("policy", "KMP"),
        ("regret", 3.0),
        ("95 % band", "2 to 4"),
        ("messages", 5),
    ]


@pytest.mark.parametrize(
    ("radius", "low", "high", "word"),
    [
        (1.0, 0.01, 0.05, "at most δ"),
        (1.0, 0.05, 0.2, "not decided"),
        (1.0, 0.11, 0.2, "above δ"),
        (math.inf, 0.0, 0.05, "no radius"),
    ],
)
def test_what_is_said_of_a_radius(radius: float, low: float, high: float, word: str) -> None:
    row = CoverageRow("mean", "law", 1.0, 10, 2.3, 0.1, radius, True, 100, 5, 3, 0.99, low, high)
    found = _row("mean", row)
    assert found["failures"] == word
    assert found["rate"] == 0.05
