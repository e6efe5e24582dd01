"""The command line called in this process, in an empty folder, with no data files around."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rumormill.cli import main

SPEC = """
name = "mine"
seed = 5
horizon = 30
trials = 5

[network]
kind = "ring"
n = 6

[arms]
law = "gaussian"
K = 2

[[policies]]
type = "kmp"
zeta = 1.0

[[policies]]
type = "robust"
zeta = 1.0

[[claims]]
kind = "beats"
policy = "KMP"
than = "Robust"
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Cli = Callable[..., Answer]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RUMORMILL_DATA", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*words: str) -> Answer:
        with pytest.raises(SystemExit) as end:
            main(words)
        shown = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Answer(end.value.code, shown.out, shown.err)

    return call


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    return path
