"""The shape of ``src/``: names, sizes, import cycles, plain words, and where a term of the field is found.

Numbers in capitals are limits. A change that exceeds one either simplifies the code or raises the limit
in the same commit, with the reason.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import networkx
import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "rumormill"
MODULES = sorted(path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py"))
TEXTS = sorted(
    path.relative_to(SRC).as_posix()
    for path in SRC.rglob("*")
    if path.suffix in {".py", ".toml", ".js", ".css", ".html"}
)

# 45,200 lines: what 0.2 could do, durable journals, keys. Raised for new capabilities: more algorithms,
# the arena, priors and forgetting (both engines), notebooks, request classes, constraints, recipes, offsets,
# scales.
MOST_MODULES = 245
MOST_LINES = 56_275
LONGEST_FUNCTION = 60
MOST_LONG_FUNCTIONS = 8
MOST_REPEATED_NAMES = 22

# Module names that occur more than once, and why the modules are the same thing in another room.
REPEATED_NAMES = {
    "advise": "the command and what it calls",
    "base": "the abstract class of a room",
    "bounds": "the bounds of the theory and those of a run",
    "consensus": "the policy and its kernel",
    "counter_rng": "the generator and its compiled form",
    "coverage": "the command and what it calls",
    "errors": "the exceptions of the package and those of a spec",
    "faults": "the fault model and its realisation in a trial",
    "kmp": "the policy and its kernel",
    "network": "the command, the class and its figure",
    "simulate": "the command and what it calls",
    "state": "the arrays of a kernel and how they are filled",
}

# A term of the field, and the file that a reader who greps for it should open.
TERMS = {
    "winsorise": "stats.py",
    "bootstrap": "stats.py",
    "hold-out": "advice/search.py",
    "permutation test": "advice/model_checks/homogeneity.py",
    "certificate": "mesh/keys.py",
    "Content-Length": "live/io/http.py",
    "bitmask": "kernels/flooding.py",
    "checkpoint": "engine/result.py",
    "hop budget": "protocol/relay.py",
    "CUSUM": "formulas.py",
    "Hill": "advice/model_checks/tails.py",
    "confidence radius": "estimators/radius.py",
    "UCB index": "kernels/decide.py",
    "clique cover": "graphs/cover.py",
    "dominating set": "graphs/leaders.py",
    "adversary": "protocol/adversary.py",
    "churn": "protocol/faults.py",
    "journal": "live/io/journal.py",
    "CSR": "graphs/adjacency.py",
    "median of means": "estimators/median_of_means.py",
    "simulated annealing": "graphs/independent_sets.py",
}


@cache
def text(name: str) -> str:
    return (SRC / name).read_text(encoding="utf-8")


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(text(module))


def lines_with(name: str, pattern: str) -> int:
    """As ``git grep -ic``: the lines of a file that match."""
    return sum(bool(re.search(pattern, line, re.IGNORECASE)) for line in text(name).splitlines())


def long_functions() -> Iterator[tuple[str, str, int]]:
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    yield module, node.name, lines


def test_number_of_modules() -> None:
    assert len(MODULES) <= MOST_MODULES


def test_number_of_lines() -> None:
    assert sum(len(text(module).splitlines()) for module in MODULES) <= MOST_LINES


def test_long_functions() -> None:
    found = list(long_functions())
    assert len(found) <= MOST_LONG_FUNCTIONS, found


def test_module_names_that_occur_twice() -> None:
    counts = Counter(Path(module).stem for module in MODULES if not module.endswith("__init__.py"))
    repeated = {name for name, times in counts.items() if times > 1}
    assert repeated == set(REPEATED_NAMES)
    assert len(REPEATED_NAMES) <= MOST_REPEATED_NAMES


def test_class_names_that_occur_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    repeated = {name: modules for name, modules in places.items() if len(modules) > 1}
    assert not repeated


def test_import_cycles() -> None:
    """Imports inside functions and under TYPE_CHECKING count as well."""
    graph = grimp.build_graph("rumormill", exclude_type_checking_imports=False, cache_dir=None)
    imports = networkx.DiGraph(
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    )
    cycles = [sorted(part) for part in networkx.strongly_connected_components(imports) if len(part) > 1]
    cycles += [[module] for module in imports if imports.has_edge(module, module)]
    assert not cycles


@pytest.mark.parametrize(("package", "room"), [("llvmlite", "kernels/simd/"), ("numba", "kernels/")])
def test_packages_of_one_room(package: str, room: str) -> None:
    """Imports only; llvmlite stays where a twin in plain Python stands beside it."""
    pattern = rf"^\s*(import|from) {package}\b"
    assert not [module for module in MODULES if not module.startswith(room) and lines_with(module, pattern)]


def test_plain_words() -> None:
    """No word that hides a technical term; ``scripts/plain_words.toml`` has the list and the terms."""
    words = tomllib.loads((ROOT / "scripts" / "plain_words.toml").read_text(encoding="utf-8"))["words"]
    pattern = re.compile("|".join(words), re.IGNORECASE)
    found = []
    for name in TEXTS:
        for match in pattern.finditer(text(name)):
            number = text(name).count("\n", 0, match.start())
            if "plain-words: allow" not in text(name).splitlines()[number]:
                found.append(f"{name}:{number + 1}: {match[0]}")
    assert not found


def test_the_fast_tests_cover_every_room() -> None:
    """`make test-fast` names files that exist, of every folder of tests."""
    fast = (ROOT / "Makefile").read_text(encoding="utf-8").partition("FAST :=")[2].partition("\n\n")[0]
    calls = re.findall(r"\(call in,([^,]+),([^)]*)\)", fast)
    files = [ROOT / "tests" / room / f"test_{name}.py" for room, names in calls for name in names.split()]
    assert not [str(file) for file in files if not file.exists()]
    rooms = {room for room, _ in calls} | {Path(name).name for name in re.findall(r"tests/\w+", fast)}
    folders = {path.parent.relative_to(ROOT / "tests").parts[:1] for path in ROOT.glob("tests/**/test_*.py")}
    assert {folder[0] for folder in folders if folder} <= rooms


def test_planted_faults_are_up_to_date() -> None:
    """`make mutants` takes long; that it finds its texts and its tests is seen here."""
    planted = tomllib.loads((ROOT / "scripts" / "mutations.toml").read_text(encoding="utf-8"))
    stale = [each for each in planted["mutant"] if text(each["file"]).count(each["old"]) != 1]
    assert not stale
    for test in {test for group in planted["tests"].values() for test in group}:
        file, _, function = test.partition("::")
        assert f"def {function.partition('[')[0]}" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("term", sorted(TERMS))
def test_a_term_leads_to_its_file(term: str) -> None:
    """The file is first or second by matching lines, ties in the order of ``git grep``."""
    counts = {name: lines_with(name, re.escape(term)) for name in TEXTS}
    ranked = sorted((name for name in TEXTS if counts[name]), key=lambda name: (-counts[name], name))
    assert TERMS[term] in ranked[:2], ranked[:4]
