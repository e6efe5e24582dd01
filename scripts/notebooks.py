"""Execute the notebooks of the site in place: `python -m scripts.notebooks [FILE ...]`.

A notebook is JSON; its cells are plain Python. What a kernel would show is shown: printed text, the value of
the last line as HTML or text, and open figures. No Jupyter is needed; the files open in it.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
Cell = dict[str, Any]


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with fresh outputs; the first cell that fails raises."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    with in_empty_folder(names):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["execution_count"] = count
                cell["outputs"] = outputs(text_of(cell), names, count)
    return notebook


@contextlib.contextmanager
def in_empty_folder(names: dict[str, Any]) -> Iterator[None]:
    """Cells write where nothing lies about; classes that they define belong to a module."""
    before, main = Path.cwd(), sys.modules["__main__"]
    module = ModuleType("__main__")
    vars(module).update(names)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.modules["__main__"] = module
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            os.chdir(before)


def outputs(code: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run one cell; what it shows, in the order of a kernel."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    tree, value = ast.parse(code), None
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(tree, "<cell>", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        except Exception:
            raise RuntimeError(f"{code}\n{traceback.format_exc()}") from None
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None and not code.rstrip().endswith(";"):
        data = shown(value)
        found.append(
            {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}
        )
    for number in plt.get_fignums():
        from rumormill.plotting.rendering import png_of

        picture = base64.b64encode(png_of(plt.figure(number))).decode()
        data = {"image/png": picture, "text/plain": ["<Figure>"]}
        found.append({"output_type": "display_data", "metadata": {}, "data": data})
    plt.close("all")
    return found


def shown(value: Any) -> dict[str, Any]:
    """The forms of a value: HTML or an image where it has them, and text."""
    data: dict[str, Any] = {}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = lines(value._repr_html_())
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode()
    return {**data, "text/plain": lines(repr(value))}


def lines(text: str) -> list[str]:
    """Text as notebooks store it: a list of lines."""
    return text.splitlines(keepends=True)


def text_of(cell: Cell) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def read(path: Path) -> dict[str, Any]:
    """A notebook."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def write(path: Path, notebook: dict[str, Any]) -> None:
    """The notebook, in a form whose differences can be read."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def from_text(text: str) -> dict[str, Any]:
    """A notebook without outputs from cells parted by lines `# %%`; `# %% [markdown]` begins a text."""
    cells: list[Cell] = []
    for number, part in enumerate(text.split("# %%")[1:]):
        first, _, body = part.partition("\n")
        cell: Cell = {"id": f"cell-{number}", "metadata": {}, "source": lines(body.strip())}
        if "markdown" in first:
            cell["cell_type"] = "markdown"
        else:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main(paths: list[Path]) -> None:
    """Execute these notebooks, or all of them; a `.py` of cells becomes a notebook first."""
    for path in paths or sorted(FOLDER.glob("*.ipynb")):
        if path.suffix == ".py":
            notebook, path = from_text(path.read_text("utf-8")), FOLDER / f"{path.stem}.ipynb"
        else:
            notebook = read(path)
        write(path, executed(notebook))
        print(path)


if __name__ == "__main__":
    main([Path(word).resolve() for word in sys.argv[1:]])
