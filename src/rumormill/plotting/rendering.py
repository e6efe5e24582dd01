"""Figures as files: PNG, SVG and PDF, the same bytes every time; what objects show in a notebook: HTML."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.files import StoreError, write_atomically
from rumormill.plotting.style import style
from rumormill.text import cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


# Dots per inch; half of them per CSS inch, so that pictures are sharp on dense screens.
DPI = 192


def html_table(rows: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """A table with one line per row; numbers stand to the right."""
    heads = list(rows[0]) if rows else []
    lines = [_line("th", heads, [False] * len(heads))] if heads else []
    for row in rows:
        values = [row[head] for head in heads]
        numbers = [isinstance(value, int | float) for value in values]
        lines.append(_line("td", [cell(value) for value in values], numbers))
    caption = f"<caption style='text-align:left'>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[str], right: Sequence[bool]) -> str:
    sides = ("right" if each else "left" for each in right)
    inside = (
        f"<{tag} style='text-align:{side}'>{escape(text)}</{tag}>"
        for text, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(inside)}</tr>"


def html_lines(lines: Sequence[str]) -> str:
    """Sentences, a paragraph each."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process."""
    return "ipykernel" in sys.modules


def shown_when_returned(figure: Figure) -> Figure:
    """The figure, which a notebook shows as the value of a cell, whichever backend is in use."""
    vars(figure)["_repr_png_"] = lambda: png_of(figure)
    return figure


def png_of(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=DPI, facecolor="white")
    return data.getvalue()


def html_picture(axes: Axes, about: str) -> str:
    """The figure of the axes as an image inside of the page; `about` is read where it cannot be seen."""
    figure: Any = axes.figure
    width = round(float(figure.get_size_inches()[0]) * 96)
    encoded = base64.b64encode(png_of(figure)).decode()
    return f'<img width="{width}" alt="{escape(about)}" src="data:image/png;base64,{encoded}">'
