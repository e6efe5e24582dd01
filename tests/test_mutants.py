"""Sampled faults: where they are put, which tests are tried, what is reported."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from scripts import mutation_sample  # noqa: E402
from scripts.mutation_sites import sites_of  # noqa: E402

CODE = '''"""Text with 1 < 2."""

LIMIT = 3


def first(x: int, most: int = 5) -> int:
    """More text."""
    if x < most and not x == 2:
        raise ValueError(f"{x + 1} is wrong")
    total = x - 1
    self.done = total
    return total  # ä


def second(values):
    return [value * 2.0 for value in values]
'''


def found(tmp_path: Path) -> dict[tuple[str, str], tuple[int, int]]:
    path = tmp_path / "code.py"
    path.write_text(CODE, encoding="utf-8")
    source = path.read_bytes()
    sites = sites_of(path, "code.py")
    for site in sites:
        ast.parse(site.planted(source))  # every fault is a program
        assert site.planted(source) != source
    return {site.change(source): site.lines for site in sites}


def test_every_kind_of_fault(tmp_path: Path) -> None:
    changes = found(tmp_path)
    assert {after for _, after in changes} == {
        "LIMIT = 4",
        "def first(x: int, most: int = 6) -> int:",
        "if (x <= most) and not x == 2:",
        "if x < most and (x == 2):",
        "if x < most and not (x != 2):",
        "if x < most and not x == 3:",
        "if (x < most or not x == 2):",
        "if (not (x < most and (not x == 2))):",
        "pass",
        "total = (x + 1)",
        "total = x - 2",
        "return None # ä",
        "return None",
        "return [(value / 2.0) for value in values]",
        "return [value * 4.0 for value in values]",
    }


def test_tests_that_execute_the_statement_are_asked(tmp_path: Path) -> None:
    lines = {after: lines for (_, after), lines in found(tmp_path).items()}
    assert lines["total = (x + 1)"] == (10, 10)
    assert lines["if (x <= most) and not x == 2:"] == (8, 8)
    assert lines["def first(x: int, most: int = 6) -> int:"] == (7, 12)  # a default: the whole function
    assert lines["LIMIT = 4"][1] > 1000  # a constant: the whole file


def test_a_larger_sample_begins_with_the_smaller(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    small, large = (mutation_sample.sample(tmp_path, count, 1) for count in (4, 9))
    assert small == large[:4]
    assert mutation_sample.sample(tmp_path, 9, 2) != large


def test_quick_tests_first_then_one_of_every_function() -> None:
    seconds = {"a[1]": 3.0, "a[2]": 3.0, "a[3]": 3.0, "b": 20.0, "c": 40.0}
    first, second = mutation_sample.selections(list(seconds), seconds)
    assert first == ["a[1]", "a[2]"]
    assert second == ["b", "a[3]"]  # c takes longer than all of them may


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    faults = mutation_sample.sample(tmp_path, 4, 1)
    outcomes = list(zip(faults, ["failed", "too slow", "passed", "no test"], strict=True))
    same = {("code.py", faults[2].before, faults[2].after)}
    assert mutation_sample.report(outcomes, set()) == 0.5
    assert mutation_sample.report(outcomes, same) == pytest.approx(2 / 3)
    shown = capsys.readouterr().out
    assert shown.count("SURVIVED") == 3
    assert "2 of 3 noticed: 66.7 % (95 % interval" in shown.replace("%", " %").replace("  ", " ")


@pytest.mark.slow
def test_what_a_test_executes(tmp_path: Path) -> None:
    """A small tree of its own: a quick test, one that takes too long, one that fails."""
    package = tmp_path / "src" / "rumormill"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "code.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_code.py").write_text(
        "from rumormill.code import one, two\n\n\ndef test_long():\n    while one():\n        pass\n\n\n"
        "def test_one():\n    assert one() == 1\n\n\ndef test_two():\n    assert two() == 3\n"
    )
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    assert mutation_sample.rooms_to_record(tmp_path, tmp_path) == ["tests"]
    mutation_sample.record(tmp_path, "tests", tmp_path)
    assert mutation_sample.rooms_to_record(tmp_path, tmp_path) == []
    tests = mutation_sample.read_map(tmp_path)
    assert tests.tests_of("code.py", (2, 2)) == ["tests/test_code.py::test_one"]
    assert tests.tests_of("code.py", (6, 6)) == []
    assert tests.tests_of("other.py", (1, 9)) == []
