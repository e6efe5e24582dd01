"""Follow the site's text as a newcomer does: a fresh environment, and nothing but what the pages print.

    python -m scripts.newcomer [PAGE.md | NOTEBOOK.ipynb ...]

Installs this checkout with the extra `lab` into a new virtual environment in a temporary folder. Then the
index, three tutorials and the notebooks are followed there, each in an empty folder of its own: files are
written, lines are typed and Python is run exactly as printed. Exit status 1 at the first line that fails, or
if a page names a file below runs/ that none of its commands has written.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TUTORIALS = ("reproduce", "own-policy", "report")
BLOCK = re.compile(r"^```(sh|python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED_PATH = re.compile(r"\bruns/[\w./-]*\w")
FILE = re.compile(r"# (\S+\.(?:py|toml))\n")


def follow(page: Path, folder: Path, type_line: Callable[[str], str], python: Callable[[Path], None]) -> str:
    """Write the files, type the lines as printed, run the Python; what was printed."""
    text, printed = page.read_text("utf-8"), ""
    for kind, block in BLOCK.findall(text):
        name = FILE.match(block)
        if name:
            (folder / name[1]).write_text(block, "utf-8")
        elif kind == "python":
            (folder / "block.py").write_text(block, "utf-8")
            python(folder / "block.py")
        elif kind == "sh":
            printed += "".join(type_line(line) for line in block.splitlines())
    for path in sorted(set(PRINTED_PATH.findall(text))):
        if not (folder / path).exists():
            raise FileNotFoundError(f"{page.name} names {path}, which none of its commands writes")
    return printed


def cells(notebook: Path) -> str:
    """The code of a notebook as one script."""
    found = json.loads(notebook.read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in found if cell["cell_type"] == "code") + "\n"


class Newcomer:
    """A virtual environment of its own, and no other variable that could help."""

    def __init__(self, home: Path) -> None:
        self.bin = home / "venv" / "bin"
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        path = os.pathsep.join([str(self.bin), os.defpath])
        self.environment = {**kept, "HOME": str(home), "PATH": path, "MPLBACKEND": "agg"}
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
        pip = [str(self.bin / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), f"{ROOT}[lab]"], check=True)

    def run(self, command: str, folder: Path) -> str:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"$ {command}\n{done.stdout[-1000:]}{done.stderr[-1500:]}\nexit {done.returncode}"
            )
        return done.stdout

    def read(self, page: Path, folder: Path) -> None:
        if page.suffix == ".ipynb":
            (folder / "cells.py").write_text(cells(page), "utf-8")
            self.run("python cells.py", folder)
            return
        follow(
            page,
            folder,
            lambda line: self.run(line, folder),
            lambda file: print(self.run(f"python {file.name}", folder), end=""),
        )


def main(given: list[str]) -> int:
    pages = [Path(each).resolve() for each in given] or [
        DOCS / "index.md",
        *(DOCS / "tutorials" / f"{name}.md" for name in TUTORIALS),
        *sorted((DOCS / "notebooks").glob("*.ipynb")),
    ]
    with tempfile.TemporaryDirectory() as home:
        started = time.monotonic()
        newcomer = Newcomer(Path(home))
        print(f"installed: {time.monotonic() - started:.0f} s", flush=True)
        for page in pages:
            folder, started = Path(home) / page.stem, time.monotonic()
            folder.mkdir()
            newcomer.read(page, folder)
            print(f"{page.relative_to(ROOT)}: {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
