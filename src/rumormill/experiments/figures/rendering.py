"""How figures become files: PNG, SVG and PDF, the same bytes every time; unchanged ones are not redrawn."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rumormill.experiments
from rumormill.experiments.figures.style import sheet_in_use, style
from rumormill.files import StoreError, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary

# Nothing that changes from run to run goes into a file.
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
KINDS = tuple(METADATA)
# Fonts as wide as those that the figure was laid out with, where those are not installed.
STAND_INS = {"DejaVu Sans": "Verdana, sans-serif", "STIXGeneral": "'STIX Two Text', 'Times New Roman', serif"}


def rendered(figure: Figure, kind: str, **options: Any) -> bytes:
    """The figure as a PNG, SVG or PDF file, the same bytes every time."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, metadata=METADATA[kind], **options)
    return with_stand_ins(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def with_stand_ins(svg: bytes) -> bytes:
    """The drawing with further fonts named after those that may be missing where it is looked at."""
    text = svg.decode()
    for font, others in STAND_INS.items():
        for old in (f"'{font}', sans-serif", f"'{font}'"):
            if old in text:
                text = text.replace(old, f"'{font}', {others}")
                break
    return text.encode()


def write_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as the ending of the name says, .png, .svg or .pdf: all of it or nothing."""
    made_folder(path.parent)
    write_atomically(path, rendered(figure, path.suffix.removeprefix(".")))
    return path


def write_caption(caption: str, stem: Path) -> Path:
    """The caption beside the figure, as plain text."""
    path = stem.with_name(f"{stem.name}.txt")
    write_atomically(path, f"{caption}\n".encode())
    return path


def made_folder(folder: Path) -> None:
    """The folder, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made for figures: {error.strerror or error}") from None


def save(figure: Figure, stem: Path, kinds: tuple[str, ...] = KINDS) -> list[Path]:
    """Write the figure as PNG, SVG and PDF."""
    return [write_figure(figure, stem.with_name(f"{stem.name}.{kind}")) for kind in kinds]


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
