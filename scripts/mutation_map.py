"""Which tests execute which lines: a pytest plugin that records it, and a map that is read back.

    RUMORMILL_MAP=FILE RUMORMILL_MAPPED=TESTS python -m pytest -p scripts.mutation_map ...

Left out are tests that fail, those that take more than MOST_SECONDS of the processor, and all but MOST_OF_ONE
cases of a function. A test that takes longer ends the process, with CUT_OFF: it may have threads that go on.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import pytest

MOST_SECONDS, MOST_OF_ONE = 2.0, 12
CUT_OFF = 75


class Recorder:
    """Switches the context of the coverage data to every test in turn, and keeps the time of each."""

    def __init__(self, file: Path, done: Sequence[str]) -> None:
        self.file, self.done = file, set(done)
        self.seconds: dict[str, float] = {}
        self.seen: list[str] = []
        source = Path("src/rumormill").resolve()
        self.data = coverage.Coverage(data_file=file, source=[str(source)], config_file=False)
        self.data.start()
        for number in (signal.SIGPROF, signal.SIGTERM):
            signal.signal(number, self.cut_off)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_function = defaultdict(list)
        for item in items:
            by_function[item.nodeid.partition("[")[0]].append(item)
        kept = set()
        for cases in by_function.values():
            step = max(1.0, len(cases) / MOST_OF_ONE)
            kept |= {cases[int(place * step)].nodeid for place in range(min(MOST_OF_ONE, len(cases)))}
        items[:] = [item for item in items if item.nodeid in kept and not self.is_done(item.nodeid)]

    def is_done(self, test: str) -> bool:
        """Whether another process has run it, or given up on another case of it."""
        return test in self.done or f"{test.partition('[')[0]}[" in self.done

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.data.switch_context(item.nodeid)
        self.seen.append(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.data.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        started = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - started
        return result

    def pytest_sessionfinish(self) -> None:
        self.data.stop()
        self.data.save()
        self.write_times()

    def write_times(self) -> None:
        found = {"seconds": self.seconds, "seen": self.seen}
        self.file.with_name(f"{self.file.name}.json").write_text(json.dumps(found), encoding="utf-8")

    def cut_off(self, number: int, frame: FrameType | None) -> None:
        """The lines of the tests before are in the file already; saving here could wait for its own lock."""
        self.seen.append(f"{(self.seen or [''])[-1].partition('[')[0]}[")
        self.write_times()
        os._exit(CUT_OFF)


def pytest_configure(config: Any) -> None:
    if place := os.environ.get("RUMORMILL_MAP"):
        config.pluginmanager.register(Recorder(Path(place), os.environ["RUMORMILL_MAPPED"].splitlines()))


class TestMap:
    """What was recorded: the tests that passed, by file and line."""

    __test__ = False

    def __init__(self, files: Sequence[Path]) -> None:
        self.seconds: dict[str, float] = {}
        self._parts: list[tuple[coverage.CoverageData, dict[str, str]]] = []
        self._lines: dict[str, dict[int, set[str]]] = {}
        for file in files:
            self.seconds |= json.loads(file.with_name(f"{file.name}.json").read_text(encoding="utf-8"))[
                "seconds"
            ]
            data = coverage.CoverageData(str(file))
            data.read()
            names = {path.partition("src/rumormill/")[2]: path for path in data.measured_files()}
            self._parts.append((data, names))

    def tests_of(self, file: str, lines: tuple[int, int]) -> list[str]:
        """Tests that execute one of the lines, the quickest of the room's own first."""
        if file not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            for data, names in self._parts:
                for line, tests in data.contexts_by_lineno(names[file]).items() if file in names else ():
                    found[line].update(tests)
            self._lines[file] = found
        every = {
            test
            for line, tests in self._lines[file].items()
            if lines[0] <= line <= lines[1]
            for test in tests
            if test in self.seconds
        }
        room = f"tests/{file.partition('/')[0]}/"
        return sorted(every, key=lambda test: (not test.startswith(room), self.seconds[test], test))
