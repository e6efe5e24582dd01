"""What is drawn already and would come out the same is left as it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import rumormill.experiments
from rumormill.experiments.figures.style import sheet_in_use
from rumormill.experiments.run.files import write_atomically

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Summary

RECORD = "drawn.json"


def key_of(summary: Summary) -> str | None:
    """Everything that a picture of a run depends on, in short; None while the run is under way."""
    manifest = summary.manifest
    if manifest.status != "done" or manifest.results_sha256 is None:
        return None
    parts = (
        manifest.results_sha256,
        manifest.spec_sha256,
        summary.bounds is not None,
        sheet_in_use(),
        _code(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@cache
def _code() -> str:
    """What draws: the files of this package, and the version of matplotlib."""
    found = hashlib.sha256(metadata.version("matplotlib").encode())
    for folder in rumormill.experiments.__path__:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".py", ".js", ".css", ".html"):
                found.update(path.read_bytes())
    return found.hexdigest()


def drawn_once(folder: Path, name: str, key: str | None, draw: Callable[[], list[Path]]) -> list[Path]:
    """The files of a figure: those that are there, if they were drawn for this key, else new ones."""
    record = _read(folder / RECORD)
    known = record.get(name, [])
    if key is not None and known[:1] == [key] and all((folder / file).is_file() for file in known[1:]):
        return [folder / file for file in known[1:]]
    paths = draw()
    if key is not None and folder.is_dir():
        record[name] = [key, *(path.name for path in paths)]
        write_atomically(folder / RECORD, json.dumps(record, indent=1).encode())
    return paths


def _read(path: Path) -> dict[str, list[str]]:
    """The record; where it is missing or damaged, everything is drawn again."""
    try:
        found = json.loads(path.read_bytes())
        return {str(name): [str(each) for each in known] for name, known in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
