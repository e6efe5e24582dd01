"""Pictures of pages: a block that begins with `# picture: NAME: WORDS` is run; what it draws follows."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from scripts.notebooks import in_empty_folder, outputs

BLOCK = re.compile(r"^```python\n# picture: ([\w-]+): ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown_at_half(file: Path, name: str, words: str) -> str:
    """A picture that has two dots for every pixel of the page."""
    width = int.from_bytes(file.read_bytes()[16:20], "big")  # of a PNG: its header
    return f"```{{image}} {name}\n:alt: {words}\n:width: {width // 2}px\n```"


def with_pictures(page: str, folder: Path) -> str:
    """The page with every such block followed by its picture, a file of the folder; WORDS describe it."""

    def drawn(found: re.Match[str]) -> str:
        name, words, code = found.groups()
        with in_empty_folder({}):
            shown = outputs(code, {"__name__": "__main__"}, 1)
        (data,) = (output["data"]["image/png"] for output in shown if output["output_type"] == "display_data")
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.png"
        file.write_bytes(base64.b64decode(data))
        return f"```python\n{code}```\n\n{shown_at_half(file, f'{folder.name}/{name}.png', words)}"

    return BLOCK.sub(drawn, page)
