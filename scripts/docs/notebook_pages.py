"""Notebooks as pages of the site: text, code and the stored outputs, with the file to download."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from scripts.docs.pictures import shown_at_half
from scripts.notebooks import read, text_of

INLINE_IMAGE = re.compile(r'src="data:image/png;base64,([^"]+)"')


def pages(source: Path) -> None:
    """Beside every notebook in SOURCE/notebooks its page; pictures become files."""
    for path in sorted((source / "notebooks").glob("*.ipynb")):
        parts = [
            part for number, cell in enumerate(read(path)["cells"]) for part in _cell(cell, path, number)
        ]
        parts.insert(
            1, f"Download: {{download}}`{path.name} <{path.name}>` (it was executed; this page shows it)."
        )
        path.with_suffix(".md").write_text("\n\n".join(parts) + "\n", "utf-8")


def _cell(cell: dict[str, Any], path: Path, number: int) -> list[str]:
    text = text_of(cell)
    if cell["cell_type"] == "markdown":
        return [re.sub(r"(\]\([^)]*)\.ipynb\)", r"\1.md)", text)]
    shown = [_output(each, path, f"{number}-{place}") for place, each in enumerate(cell["outputs"])]
    return [f"```python\n{text}\n```", *shown]


def _output(output: dict[str, Any], path: Path, name: str) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if "image/png" in data:
        return _picture(path, name, data["image/png"])
    if "text/html" not in data:
        return f"```text\n{''.join(data['text/plain'])}\n```"
    html = "".join(data["text/html"])
    pictures = [_picture(path, f"{name}-{i}", found) for i, found in enumerate(INLINE_IMAGE.findall(html))]
    table = re.sub(r"<img [^>]*>", "", html)
    # Table heads that do not stand in <thead> are of polars and of rumormill alike: the theme styles both.
    parts = [f'```{{raw}} html\n<div class="table-wrapper">{table}</div>\n```']
    return "\n\n".join([*parts, *pictures])


def _picture(path: Path, name: str, encoded: str) -> str:
    """The image as a file beside the notebook, and shown."""
    file = path.with_name(f"{path.stem}-{name}.png")
    file.write_bytes(base64.b64decode(encoded))
    return shown_at_half(file, file.name, "What the cell above shows")
