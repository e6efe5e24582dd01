"""The notebooks of the site: executed again, they show the same."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from scripts import notebooks

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))


def texts(notebook: dict[str, Any]) -> list[list[str]]:
    """What every cell shows, without pictures."""
    found = []
    for cell in notebook["cells"]:
        data = [output.get("data", {"text": output.get("text")}) for output in cell.get("outputs", [])]
        text = ["".join(each) for one in data for form, each in one.items() if form != "image/png"]
        found.append([re.sub(r'base64,[^"]*', "base64,", each) for each in text])
    return found


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_it_is_a_notebook(path: Path) -> None:
    """Format 4.5, as Jupyter wants it: ids that differ, sources and outputs of the right form."""
    notebook = notebooks.read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert notebook["cells"][0]["cell_type"] == "markdown"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any("image/png" in str(cell["outputs"]) for cell in code), "a notebook without a picture"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_executed_again_it_shows_the_same(path: Path) -> None:
    stored = notebooks.read(path)
    fresh = notebooks.executed(copy.deepcopy(stored))
    assert texts(fresh) == texts(stored)


def test_a_cell_that_fails_is_named() -> None:
    broken = notebooks.from_text("# %%\nx = 1\n# %%\nx / 0\n")
    with pytest.raises(RuntimeError, match=r"(?s)x / 0.*ZeroDivisionError"):
        notebooks.executed(broken)


def test_a_cell_shows_what_a_kernel_would() -> None:
    text = "# %%\nprint('a')\n7\n# %%\n7;\n# %%\nimport matplotlib.pyplot as plt\n_ = plt.plot([1, 2])\n"
    kinds = [
        [output["output_type"] for output in cell["outputs"]]
        for cell in notebooks.executed(notebooks.from_text(text))["cells"]
    ]
    assert kinds == [["stream", "execute_result"], [], ["display_data"]]
