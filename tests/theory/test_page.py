"""The page on the theory: its example runs, its formulas are closed."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    names: dict[str, object] = {}
    exec(example, names)
    assert not names["bound"].vacuous  # type: ignore[attr-defined]


def test_formulas_render() -> None:
    """On GitHub inline formulas end on their line, and lose backslashes before punctuation."""
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.S)
    assert PAGE.count("```") % 2 == 0
    for line in prose.splitlines():
        assert line.count("$") % 2 == 0, line
        for formula in re.findall(r"\$([^$]*)\$", line):
            assert not re.search(r"\\[,;{}]", formula), line
            assert formula.count("{") == formula.count("}"), line
            assert formula == formula.strip(), line
            if line.startswith("|"):
                assert "|" not in formula, line
