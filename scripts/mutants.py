"""Plant the faults of mutations.toml one at a time in a copy of the tree, and see that a test notices each.

    python scripts/mutants.py [--only TEXT ...] [--jobs N] [--patience SECONDS]
    python scripts/mutants.py --sample N [--seed S] [--map FOLDER] [--thorough]      (see mutation_sample)

Kernels run uncompiled here, which is quicker than compiling each anew, but for the groups that
mutations.toml names. Exit status 1 if a fault goes
unnoticed, or if the text it changes is no longer found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from scripts import mutation_sample  # noqa: E402

COPIED = ("src", "tests", "scripts", "docs", "examples", "pyproject.toml", "constraints.txt", "Makefile",
          "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff")  # fmt: skip
PACKAGE = Path("src/rumormill")
# Processor seconds for the tests of one fault: one that makes a loop endless is noticed by this. By the clock
# WAITING times as long, so that other work on the machine does not pass for a fault.
PATIENCE, WAITING = 180.0, 8
# The share of sampled faults that the ordinary tests have to notice.
GOAL = 0.9


@dataclass(frozen=True)
class Mutant:
    """One fault: a text in a file, what stands there instead, and the tests that should notice."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    compiled: bool = False

    @property
    def name(self) -> str:
        return f"{self.file}: {_short(self.old)} -> {_short(self.new)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def read(path: Path) -> list[Mutant]:
    """The faults; refused if a text does not stand exactly once in its file."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    mutants = [
        Mutant(
            each["file"],
            each["old"],
            each["new"],
            tuple(table["tests"][each["tests"]]),
            each["tests"] in table["compiled"],
        )
        for each in table["mutant"]
    ]
    stale = []
    for mutant in mutants:
        found = (ROOT / PACKAGE / mutant.file).read_text(encoding="utf-8").count(mutant.old)
        if found != 1:
            stale.append(f"{mutant.name}\n  the text stands {found} times in its file: bring it up to date")
    if stale:
        raise SystemExit("\n".join(stale))
    return mutants


class Copies:
    """Copies of the tree, one per job."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            place = folder / str(number)
            place.mkdir()
            for name in COPIED:
                source = ROOT / name
                if source.is_dir():
                    shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(source, place / name)
            self._free.put(place)

    @contextmanager
    def one(self) -> Iterator[Path]:
        """A copy for oneself."""
        place = self._free.get()
        try:
            yield place
        finally:
            self._free.put(place)


def outcome_of(
    place: Path, tests: Sequence[str], patience: float, found: bool = False, compiled: bool = False
) -> str:
    """What became of the tests in a copy: "passed", "failed" or "too slow".

    `found`: the tests were there before; if they are not any more, a fault took them away, and is noticed.
    """
    environment = {**os.environ, "PYTHONPATH": str(place / "src")} | (
        {} if compiled else {"NUMBA_DISABLE_JIT": "1"}
    )
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # else two faults within a second could be taken for one
    # Kernels that are not compiled divide by zero as loudly as NumPy does.
    quiet = ["-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    limited = ["sh", "-c", 'ulimit -t "$0" && exec "$@"', str(round(patience))]
    command = [*limited, sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", *quiet, *tests]
    waiting = WAITING * patience
    try:
        run = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, timeout=waiting, check=False
        )
    except subprocess.TimeoutExpired:
        return "too slow"
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "too slow"
    if run.returncode in (3, 4, 5) and found:
        return "failed"
    if run.returncode not in (0, 1, 2):
        raise SystemExit(f"{' '.join(tests)} cannot be run:\n{run.stdout.decode()[-2000:]}")
    return "passed" if run.returncode == 0 else "failed"


def try_out(mutant: Mutant, copies: Copies, patience: float) -> str:
    """What the tests say of one fault."""
    with copies.one() as place:
        path = place / PACKAGE / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            return outcome_of(place, mutant.tests, patience, compiled=mutant.compiled)
        finally:
            path.write_text(before, encoding="utf-8")


def without_fault(tests: Sequence[str], compiled: bool, copies: Copies, patience: float) -> str:
    """What the tests say of the tree as it is: faults show only against tests that pass without them."""
    with copies.one() as place:
        return outcome_of(place, tests, patience, compiled=compiled)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant known faults and see that a test notices each.")
    parser.add_argument("--only", nargs="*", default=[""], help="only faults with one of these in their name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, help="processor seconds for the tests of a fault"
    )
    parser.add_argument("--sample", type=int, default=0, help="so many faults at random places instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--map", type=Path, help="folder for what each test executes; used if it is there")
    parser.add_argument("--thorough", action="store_true", help="try all tests of a room before giving up")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies = Copies(Path(folder), options.jobs)
        options.map = options.map or Path(folder) / "map"
        return (sampled if options.sample else planted)(options, copies, pool)


def planted(options: argparse.Namespace, copies: Copies, pool: ThreadPoolExecutor) -> int:
    """The known faults; a table by file at the end."""
    known = read(Path(__file__).with_name("mutations.toml"))
    mutants = [each for each in known if any(text in each.name for text in options.only)]
    started = time.monotonic()
    groups = sorted({(mutant.tests, mutant.compiled) for mutant in mutants})
    sound = pool.map(lambda group: without_fault(group[0], group[1], copies, options.patience), groups)
    found = {tests: outcome for (tests, _), outcome in zip(groups, sound, strict=True)}
    unsound = {tests: outcome for tests, outcome in found.items() if outcome != "passed"}
    for tests, outcome in unsound.items():
        print(f"{' '.join(tests)}: {outcome} without any fault", flush=True)
    mutants = [mutant for mutant in mutants if mutant.tests not in unsound]
    outcomes = pool.map(lambda mutant: try_out(mutant, copies, options.patience), mutants)
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, outcome in zip(mutants, outcomes, strict=True):
        said = {"passed": "SURVIVED", "failed": "noticed"}.get(outcome, outcome)
        tally[mutant.file][said] += 1
        print(f"{said}  {mutant.name}", flush=True)
    for file, counts in sorted(tally.items()):
        print(f"{file:<48}{counts.total():>4} faults{counts.total() - counts['SURVIVED']:>4} noticed")
    survivors = sum(counts["SURVIVED"] for counts in tally.values())
    print(f"{len(mutants)} faults, {survivors} not noticed, {time.monotonic() - started:.0f} s")
    return 1 if survivors or unsound else 0


def sampled(options: argparse.Namespace, copies: Copies, pool: ThreadPoolExecutor) -> int:
    """Faults at random places, with the rate at which they are noticed."""
    table = tomllib.loads(Path(__file__).with_name("mutations.toml").read_text(encoding="utf-8"))
    equivalent = {(each["file"], each["old"], each["new"]) for each in table.get("equivalent", [])}
    faults = mutation_sample.sample(ROOT / PACKAGE, options.sample, options.seed)
    faults = [each for each in faults if any(text in each.name for text in options.only)]
    folder = options.map
    folder.mkdir(parents=True, exist_ok=True)

    def record(room: str) -> None:
        with copies.one() as place:
            mutation_sample.record(place, room, folder)

    list(pool.map(record, mutation_sample.rooms_to_record(ROOT, folder)))
    tests = mutation_sample.read_map(folder)

    def outcome_of_one(fault: mutation_sample.Fault) -> tuple[mutation_sample.Fault, str]:
        with copies.one() as place:
            run = partial(outcome_of, patience=options.patience, found=True)
            outcome = mutation_sample.outcome_of_fault(fault, tests, place, PACKAGE, run, options.thorough)
            print(f"{outcome}  {fault.site.file}:{fault.site.line}", file=sys.stderr, flush=True)
            return fault, outcome

    share = mutation_sample.report(list(pool.map(outcome_of_one, faults)), equivalent)
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
