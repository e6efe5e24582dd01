"""Which tests execute which lines: a pytest plugin that records it, and a map that is read back.

    python -m pytest -p scripts.mutation_map ...      with RUMORMILL_MAP=FOLDER

Tests that fail or take longer than MOST_SECONDS are left out, and all but MOST_OF_ONE of a function's cases.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import pytest

MOST_SECONDS, MOST_OF_ONE = 6.0, 10


class Recorder:
    """Switches the context of the coverage data to every test in turn, and keeps the time of each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}
        source = Path("src/rumormill").resolve()
        self.data = coverage.Coverage(data_file=folder / "lines", source=[str(source)], config_file=False)
        self.data.start()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_function = defaultdict(list)
        for item in items:
            by_function[item.nodeid.partition("[")[0]].append(item)
        kept = set()
        for cases in by_function.values():
            step = max(1.0, len(cases) / MOST_OF_ONE)
            kept |= {cases[int(place * step)].nodeid for place in range(min(MOST_OF_ONE, len(cases)))}
        items[:] = [item for item in items if item.nodeid in kept]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.data.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.data.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        signal.signal(signal.SIGALRM, _too_slow)
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        started = time.perf_counter()
        try:
            result = yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.seconds[item.nodeid] = time.perf_counter() - started
        return result

    def pytest_sessionfinish(self) -> None:
        self.data.stop()
        self.data.save()
        (self.folder / "seconds.json").write_text(json.dumps(self.seconds), encoding="utf-8")


def _too_slow(number: int, frame: FrameType | None) -> None:
    pytest.skip("takes too long here")


def pytest_configure(config: Any) -> None:
    if place := os.environ.get("RUMORMILL_MAP"):
        config.pluginmanager.register(Recorder(Path(place)))


class TestMap:
    """What was recorded: the tests that passed, by file and line."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
        self._data = coverage.CoverageData(str(folder / "lines"))
        self._data.read()
        self._files = {path.partition("src/rumormill/")[2]: path for path in self._data.measured_files()}
        self._lines: dict[str, dict[int, list[str]]] = {}

    def tests_of(self, file: str, lines: tuple[int, int]) -> list[str]:
        """Tests that execute one of the lines, the quickest of the room's own first."""
        if file not in self._lines:
            path = self._files.get(file)
            self._lines[file] = {} if path is None else self._data.contexts_by_lineno(path)
        found = {
            test
            for line, tests in self._lines[file].items()
            if lines[0] <= line <= lines[1]
            for test in tests
            if test in self.seconds
        }
        room = f"tests/{file.partition('/')[0]}/"
        return sorted(found, key=lambda test: (not test.startswith(room), self.seconds[test], test))
