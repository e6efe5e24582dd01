"""Every example in a docstring and in the README is executed."""

import doctest
import importlib
import pkgutil
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import rumormill

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(rumormill.__path__, "rumormill.")
    if not info.name.endswith("__main__")
)
README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["rumormill", *MODULES])
def test_docstrings(name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        outcome = doctest.testmod(
            importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        )
    assert outcome.failed == 0


def test_some_docstrings_have_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [t for name in MODULES for t in finder.find(importlib.import_module(name)) if t.examples]
    assert len(found) >= 5


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_readme(block: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_readme_has_examples() -> None:
    assert BLOCKS


def test_the_experiment_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer trials and rounds; the class of the README stands beside it."""
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run.runner import run
    from rumormill.experiments.spec.reading import at_scale, read_spec

    (toml,) = re.findall(r"^```toml\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (own,) = [block for block in BLOCKS if "class Stubborn" in block]
    (tmp_path / "stubborn.py").write_text(own.split("rm.checks")[0], "utf-8")
    (tmp_path / "mine.toml").write_text(toml, "utf-8")
    spec = at_scale(read_spec(tmp_path / "mine.toml"), trials=10, horizon=300)
    with pytest.warns(rumormill.SlowEngineNotice, match="Stubborn runs on the reference engine"):
        folder = run(spec, tmp_path / "run", jobs=1)
    (verdict,) = summarise(folder).verdicts
    assert (verdict.claim, verdict.word) == ("KMP beats Stubborn", "holds")
