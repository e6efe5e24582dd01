"""Figures as files: PNG, SVG and PDF, the same bytes every time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.files import StoreError, write_atomically
from rumormill.plotting.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Nothing that changes from run to run goes into a file.
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
KINDS = tuple(METADATA)
# Fonts as wide as those of the layout, where those are not installed.
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


def made_folder(folder: Path, what: str = "figures") -> None:
    """The folder, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made for {what}: {error.strerror or error}") from None


def save(figure: Figure, stem: Path, kinds: tuple[str, ...] = KINDS) -> list[Path]:
    """Write the figure as files of these kinds."""
    return [write_figure(figure, stem.with_name(f"{stem.name}.{kind}")) for kind in kinds]
