"""The tutorials are followed to the letter, at small sizes, in one process."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import rumormill as rm
from rumormill.api import default_folder
from rumormill.cli import main

DOCS = Path(__file__).parents[2] / "docs"
# The mesh has a test of its own, with processes.
PAGES = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.stem != "live")
BLOCK = re.compile(r"^```(sh|python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r"\bruns/[\w-]+")
FILE = re.compile(r"# (\S+\.(?:py|toml))\n")
# So that all pages take seconds; what is written goes where the page says.
SMALLER = {
    "run": ["--trials", "4", "--horizon", "60"],
    "reproduce": ["--trials", "2", "--horizon", "40"],
    "report": ["--no-figures"],
}
# Reports take time to draw: one is enough.
WITH_REPORT = ("mine.toml", "runs/fig1a-quick")


def follow(page: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Write the files, call the commands, run the Python; what was printed."""
    printed = ""
    for kind, block in BLOCK.findall(page.read_text("utf-8")):
        name = FILE.match(block)
        if name:
            Path(name[1]).write_text(block, "utf-8")
        elif kind == "python":
            Path("block.py").write_text(block, "utf-8")
            runpy.run_path("block.py")
        elif kind == "sh":
            for line in block.splitlines():
                program, *words = shlex.split(line)
                assert program == "rumormill"
                with pytest.raises(SystemExit) as end:
                    main(smaller(words))
                captured = capsys.readouterr()
                assert end.value.code == 0, f"{line}\n{captured.err}"
                printed += captured.out
    return printed


def smaller(words: list[str]) -> list[str]:
    command, *rest = words
    if command not in SMALLER:
        return words
    if "--out" not in words and command != "report":
        rest += ["--out", str(as_printed(command, rest))]
    return [command, *rest, *SMALLER[command], *([] if rest[0] in WITH_REPORT else ["--no-report"])]


def as_printed(command: str, rest: list[str]) -> Path:
    """The folder that the printed command writes, without the smaller size."""
    if command == "run":
        return default_folder(rm.read_spec(rest[0]))
    (name,) = (word for word in rest if not word.startswith("--"))
    return Path("runs") / f"{name}-{'full' if '--full' in rest else 'quick'}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder; the modules of a page are of that page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")  # or tables are broken into lines
    for name in ("gossip", "world"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("page", [DOCS / "index.md", *PAGES], ids=lambda page: str(page.stem))
def test_the_page(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = follow(page, capsys)
    for folder in sorted(set(FOLDER.findall(page.read_text("utf-8")))):
        assert Path(folder).is_dir(), f"{page.name} names {folder}, which none of its commands writes"
    if page.stem == "own-policy":
        report = Path("runs/mine-30x500/report.html").read_text("utf-8")
        for said in (printed, report):
            assert "Gossip 5 % beats Robust" in said
            assert "Decentralized beats Gossip 5 %" in said
