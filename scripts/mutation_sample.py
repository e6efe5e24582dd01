"""Small automatic faults at random places of the whole tree: what share do the ordinary tests notice?

    python scripts/mutants.py --sample 300 --seed 1 [--map FOLDER] [--thorough] [--jobs N]

First the ordinary tests are run once, uncompiled, to see which test executes which line (`mutation_map`;
kept in FOLDER if one is given, and taken from there). Each fault is then tried with the tests that execute
its line: the quickest of its room first, and if those pass, a larger selection; if --thorough, at last all
tests of its room. Faults that change nothing anybody could see stand under [[equivalent]] in mutations.toml
and do not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.mutation_map import CUT_OFF, TestMap
from scripts.mutation_sites import Site, sites_of

# Seconds of tests for a fault: at first, and if those notice nothing.
FIRST, SECOND = 6.0, 30.0
# Processor seconds for all tests of a room: only an endless loop takes longer.
ROOM = 1500.0
# The map: processes for one room (each ends at a test that takes too long), and seconds for each.
MOST_PIECES, LONGEST = 40, 600.0
# Rooms that play games together: the tests of one notice faults of another.
PLAYING = ("kernels", "engine", "policies")
# LLVM IR is not executed uncompiled: tests/kernels/test_lanes.py compares each loop with its plain twin.
NOT_SAMPLED = ("kernels/simd/", "kernels/jit.py")

# Tests of documents, browsers and whole processes, whose lines are executed elsewhere; and files that take
# minutes uncompiled.
NOT_RUN = (
    "tests/docs/",
    *(
        f"tests/live/test_{name}"
        for name in ("dashboard", "loop", "processes", "security", "sidecar", "sockets")
    ),
    *(f"tests/live/test_{name}" for name in ("simulation", "supervision", "tutorial")),
    *(f"tests/report/test_{name}" for name in ("browser", "watch_browser")),
    *(f"tests/test_{name}" for name in ("contributing", "examples", "house", "wheel", "front_door")),
    *(f"tests/advice/test_{name}" for name in ("advise", "model.py", "round_trips")),
    *(f"tests/cli/test_{name}" for name in ("any_size", "the_loop")),
    *(f"tests/engine/test_{name}" for name in ("crowds", "fast_equals_reference")),
    *(f"tests/experiments/test_{name}" for name in ("bounds", "cluster", "real_graphs")),
    *(f"tests/policies/test_{name}" for name in ("beyond_the_paper", "recommended")),
    "tests/theory/test_verification",
)


@dataclass(frozen=True)
class Fault:
    """A sampled fault, and how its lines read before and after."""

    site: Site
    before: str
    after: str

    @property
    def room(self) -> str:
        return self.site.file.partition("/")[0] if "/" in self.site.file else "(top)"

    @property
    def name(self) -> str:
        return (
            f"{self.site.file}:{self.site.line} ({self.site.kind})\n    - {self.before}\n    + {self.after}"
        )


def sample(package: Path, count: int, seed: int) -> list[Fault]:
    """Faults drawn uniformly over all sites; the first `n` of a larger sample are the sample of size `n`."""
    sites: list[Site] = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith(NOT_SAMPLED):
            sites += sites_of(path, name)
    drawn = random.Random(seed).sample(sites, len(sites))[:count]
    return [Fault(site, *site.change((package / site.file).read_bytes())) for site in drawn]


def record(place: Path, room: str, folder: Path) -> None:
    """What each ordinary test of a room executes; after one that takes too long another process goes on."""
    paths = os.pathsep.join([str(place / "src"), str(place)])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    quiet = ["-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning", "-p", "scripts.mutation_map"]
    seen: list[str] = []
    for number in range(MOST_PIECES):
        made = folder / f"{room}.{number:02}"
        record_file = made.with_name(f"{made.name}.json")
        environment |= {"RUMORMILL_MAP": str(made.resolve()), "RUMORMILL_MAPPED": "\n".join(seen)}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *quiet, *rooms(place)[room]]
        with subprocess.Popen(
            command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            for end in (run.terminate, run.kill):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    run.wait(LONGEST)
                    break
                end()
        if run.returncode != CUT_OFF or not record_file.exists():
            break
        seen += json.loads(record_file.read_text(encoding="utf-8"))["seen"]
    (folder / f"{room}.done").touch()


def rooms(place: Path) -> dict[str, list[str]]:
    """The test files by folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(place.glob("tests/**/test_*.py")):
        file = path.relative_to(place).as_posix()
        if not file.startswith(NOT_RUN):
            found[path.parent.name].append(file)
    return found


def rooms_to_record(place: Path, folder: Path) -> list[str]:
    """The rooms that are not in the map yet."""
    return [room for room in rooms(place) if not (folder / f"{room}.done").exists()]


def read_map(folder: Path) -> TestMap:
    return TestMap(
        [path for path in sorted(folder.glob("*.[0-9][0-9]")) if path.with_name(f"{path.name}.json").exists()]
    )


def selections(tests: Sequence[str], seconds: dict[str, float]) -> tuple[list[str], list[str]]:
    """The tests to try first, and those to try if these notice nothing: one of every function, then more."""
    first, total = [], 0.0
    for test in tests:
        if total + seconds[test] <= FIRST:
            first.append(test)
            total += seconds[test]
    known = set(first)
    seen: Counter[str] = Counter()
    ranked = []
    for test in tests:
        function = test.partition("[")[0]
        if test not in known:
            ranked.append((seen[function], seconds[test], test))
        seen[function] += 1
    second, total = [], 0.0
    for _, cost, test in sorted(ranked):
        if total + cost <= SECOND:
            second.append(test)
            total += cost
    return first, second


def outcome_of_fault(
    fault: Fault, tests: TestMap, place: Path, package: Path, run: Callable[..., str], thorough: bool
) -> str:
    """What the tests of a fault say in a copy of the tree; "no test" where none executes its lines.

    `thorough`: where those of the map notice nothing, all tests of the room, with compiled kernels.
    """
    found = tests.tests_of(fault.site.file, fault.site.lines)
    if not found and not thorough:
        return "no test"
    path = place / package / fault.site.file
    source = path.read_bytes()
    path.write_bytes(fault.site.planted(source))
    try:
        for selection in selections(found, tests.seconds):
            if selection and (outcome := run(place, selection)) != "passed":
                return outcome
        if thorough:
            outcome = run(place, all_of_room(place, fault), compiled=True, patience=ROOM)
            if outcome != "passed":
                return outcome
        return "passed" if found else "no test"
    finally:
        path.write_bytes(source)


def all_of_room(place: Path, fault: Fault) -> list[str]:
    """The tests of the fault's room; of what games are played with, those of all three rooms."""
    folder = place / "tests" / fault.room
    if fault.room in PLAYING:
        return [f"tests/{room}" for room in PLAYING]
    if folder.is_dir():
        return [f"tests/{fault.room}"]
    return sorted(path.relative_to(place).as_posix() for path in place.glob("tests/test_*.py"))


def report(outcomes: Sequence[tuple[Fault, str]], equivalent: set[tuple[str, str, str]]) -> float:
    """Print the rates by room and the survivors; returns the share noticed of those that could be."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for fault, outcome in outcomes:
        same = (fault.site.file, fault.before, fault.after) in equivalent
        said = "equivalent" if same else "noticed" if outcome in ("failed", "too slow") else "survived"
        rooms[fault.room][said] += 1
        rooms["all"][said] += 1
        if said == "survived":
            survivors.append((fault, outcome))
    for fault, outcome in survivors:
        print(f"SURVIVED ({'no test runs it' if outcome == 'no test' else 'tests pass'})  {fault.name}")
    print(f"{'room':<14}{'faults':>8}{'equivalent':>12}{'noticed':>9}{'share':>8}")
    for room in sorted(rooms, key=lambda name: (name == "all", name)):
        counts = rooms[room]
        real = counts["noticed"] + counts["survived"]
        share = f"{counts['noticed'] / real:.0%}" if real else "-"
        print(f"{room:<14}{counts.total():>8}{counts['equivalent']:>12}{counts['noticed']:>9}{share:>8}")
    noticed, real = rooms["all"]["noticed"], rooms["all"]["noticed"] + rooms["all"]["survived"]
    low, high = wilson(noticed, real)
    print(
        f"{noticed} of {real} noticed: {noticed / max(real, 1):.1%} (95 % interval {low:.1%} to {high:.1%})"
    )
    return noticed / max(real, 1)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The Wilson interval of a share, 95 %."""
    if n == 0:
        return 0.0, 1.0
    z = 1.959964
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5 / (1 + z * z / n)
    return middle - reach, middle + reach
