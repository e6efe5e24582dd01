"""The index and the tutorials are followed to the letter: nothing is added to a printed line."""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts import newcomer

from rumormill.cli import main
from rumormill.experiments import figures
from rumormill.experiments.run import runner
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import at_scale
from rumormill.experiments.spec.schema import Spec

DOCS = Path(__file__).parents[2] / "docs"
# Pages with nodes have a test of their own, with processes.
PAGES = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.stem not in ("live", "routing"))


def follow(page: Path, call: Callable[[list[str]], str]) -> str:
    """Follow a page in this folder; its lines are calls of rumormill."""

    def type_line(line: str) -> str:
        program, *words = shlex.split(line)
        assert program == "rumormill"
        return call(words)

    def python(file: Path) -> None:
        runpy.run_path(str(file))

    return newcomer.follow(page, Path.cwd(), type_line, python)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a few trials and rounds, in the folders of those that are printed; one picture per run."""
    play, draw = runner.run, figures.draw_all

    def few(spec: Spec, *rest: Any, **options: Any) -> RunFolder:
        size = next(iter(spec.scale.values()))
        return play(
            at_scale(spec, None, trials=min(size.trials, 4), horizon=min(size.horizon, 60)), *rest, **options
        )

    monkeypatch.setattr(runner, "run", few)
    monkeypatch.setattr(
        figures, "draw_all", lambda summary, folder, **more: draw(summary, folder, ["regret"], **more)
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder; the modules of a page are of that page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")  # or tables are broken into lines
    for name in ("gossip", "world"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("page", [DOCS / "index.md", *PAGES], ids=lambda page: str(page.stem))
def test_the_page(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is added to a printed line; the games behind it are smaller."""

    def call(words: list[str]) -> str:
        with pytest.raises(SystemExit) as end:
            main(words)
        captured = capsys.readouterr()
        assert end.value.code == 0, f"{words}\n{captured.err}"
        return captured.out

    printed = follow(page, call)
    if page.stem == "own-policy":
        report = Path("runs/mine-30x500/report.html").read_text("utf-8")
        for said in (printed, report):
            assert "Gossip 5 % beats Robust" in said
            assert "Decentralized beats Gossip 5 %" in said


@pytest.mark.slow
@pytest.mark.parametrize("page", [DOCS / "index.md", *PAGES], ids=lambda page: str(page.stem))
def test_the_page_at_its_size(page: Path) -> None:
    """A process for every printed line, at the size of the page."""

    def call(words: list[str]) -> str:
        done = subprocess.run([sys.executable, "-m", "rumormill", *words], capture_output=True, text=True)
        assert done.returncode == 0, f"{words}\n{done.stderr}"
        return done.stdout

    follow(page, call)
