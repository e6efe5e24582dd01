"""Build the site: `python -m scripts.docs [FOLDER]`. Every warning is an error; no network is needed."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from scripts.docs.stage import ROOT, stage
from sphinx.cmd.build import main as sphinx


def build(folder: Path) -> int:
    """Sources into FOLDER/source, pages into FOLDER/html."""
    source, html = folder / "source", folder / "html"
    stage(source)
    _mathjax(source / "_static")
    shutil.rmtree(html, ignore_errors=True)
    code: int = sphinx(["-W", "--keep-going", "-n", "-q", "-E", "-b", "html", str(source), str(html)])
    return code


def _mathjax(static: Path) -> None:
    """One file that sets formulas without asking anybody; the package has the whole of MathJax."""
    package = find_spec("sphinx-mathjax-offline")
    assert package is not None
    assert package.origin is not None
    static.mkdir(exist_ok=True)
    shutil.copy(Path(package.origin).parent / "static" / "mathjax" / "tex-svg.js", static / "tex-svg.js")


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    code = build(out)
    if code == 0:
        print(f"the site: {out / 'html' / 'index.html'}")
    sys.exit(code)
