"""The notebooks of the site: executed again, they show the same."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from scripts import notebooks
from scripts.docs.names import places, with_links
from scripts.docs.pictures import BLOCK
from scripts.docs.stage import FENCE

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


# --- pages ----------------------------------------------------------------------------------------------

DOCS = notebooks.ROOT / "docs"
PROSE = [*sorted(DOCS.rglob("*.md")), notebooks.ROOT / "CHANGELOG.md", notebooks.ROOT / "CONTRIBUTING.md"]


def test_the_cookbook_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "cookbook.md").read_text("utf-8")
    recipes = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(recipes) >= 21
    names: dict[str, Any] = {}
    for recipe in recipes:
        exec(compile(recipe, "cookbook.md", "exec"), names)


def test_index_and_tutorials_have_pictures() -> None:
    for path in [DOCS / "index.md", *sorted((DOCS / "tutorials").glob("*.md"))]:
        shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", path.read_text("utf-8"))
        assert shown, path.name
        assert all((path.parent / name).is_file() for name in shown), path.name
    assert len(BLOCK.findall((DOCS / "heavy-tails.md").read_text("utf-8"))) == 4


def test_prose_links_into_the_api() -> None:
    """At least a hundred links, each to a heading that is there."""
    linked = 0
    for path in PROSE:
        pieces = FENCE.split(path.read_text("utf-8"))
        text = "".join(with_links(each, "page.md") for each in pieces if not each.startswith("```"))
        linked += len(re.findall(r"\]\(reference/api/\w+\.md#rm\w+\)", text))
    assert linked >= 100
    assert with_links("`rm.KMPUCB(gamma=1)`", "tutorials/a.md") == (
        "[`rm.KMPUCB(gamma=1)`](../reference/api/policies.md#rmkmpucb)"
    )
    assert with_links("# `rm.KMPUCB`", "a.md") == "# `rm.KMPUCB`"
    assert with_links("[`rm.KMPUCB`](x.md) `rm.nothing`", "a.md") == "[`rm.KMPUCB`](x.md) `rm.nothing`"
    assert len(places()) > 80


def test_the_glossary_has_every_symbol_of_the_tables() -> None:
    text = (DOCS / "glossary.md").read_text("utf-8")
    for symbol in (r"\varepsilon", "u", r"\rho", r"\zeta", r"\gamma", "L", r"\alpha", r"\Delta"):
        assert f"| ${symbol}$" in text, symbol
