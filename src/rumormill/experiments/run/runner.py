"""Run an experiment into a folder; run it again to go on where it stopped."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Mapping
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from rumormill.engine.workers import Executor
from rumormill.errors import DataError, RumormillError, SlowEngineNotice
from rumormill.experiments.plan import Cell, ExperimentPlan, plan_of
from rumormill.experiments.run import store
from rumormill.experiments.run.cache import NETWORK_CACHE, one_blas_thread
from rumormill.experiments.run.cell import CellOutcome, PlayCells
from rumormill.experiments.run.executors import executor_of
from rumormill.experiments.run.manifest import (
    MANIFEST,
    Machine,
    Manifest,
    Timings,
    best_constants,
    describe_constants,
    describe_networks,
    fingerprint,
    of_spec,
    read_manifest,
    refuse_difference,
    slow_notices,
    spec_of,
    write_manifest,
)
from rumormill.experiments.run.store import Parts, RunFolder
from rumormill.experiments.spec.building import n_choosing, wider
from rumormill.experiments.spec.reading import at_scale, encode, own_sources
from rumormill.experiments.spec.schema import Spec
from rumormill.text import VERSION

LIBRARIES = ("numpy", "numba", "scipy", "networkx", "rustworkx", "polars")


class RunInterrupted(RumormillError):
    """Ctrl-C: what is done is kept, and running again goes on."""

    def __init__(self, path: Path, done: int, total: int, unit: str = "cells") -> None:
        super().__init__(f"stopped after {done} of {total} {unit}, all kept in {path}; run it again to go on")
        self.path, self.done, self.total, self.unit = path, done, total, unit


class Progress(Protocol):
    """What a display hears. All calls come from one thread, except `rounds`."""

    def notice(self, text: str) -> None: ...
    def start(self, total_cells: int, done_cells: int) -> None: ...
    def cell_done(self, cell: Cell, summary: Mapping[str, float]) -> None: ...
    def rounds(self, deliveries: int) -> None: ...
    def finish(self) -> None: ...


class Silence:
    """No display; what a user has to know becomes a warning."""

    def notice(self, text: str) -> None:
        warnings.warn(text, SlowEngineNotice, stacklevel=4)

    def start(self, total_cells: int, done_cells: int) -> None: ...
    def cell_done(self, cell: Cell, summary: Mapping[str, float]) -> None: ...
    def rounds(self, deliveries: int) -> None: ...
    def finish(self) -> None: ...


def run(
    spec: Spec,
    out: str | PathLike[str],
    jobs: int | None = None,
    progress: Progress | None = None,
    executor: str | Executor | None = None,
) -> RunFolder:
    """Play every cell that the folder does not hold yet, then write the table.

    The table depends on the spec alone: not on `jobs` or `executor` ("threads", "processes", "ray", or one of
    your own), nor on how often the run was stopped or killed.
    """
    spec = at_scale(spec)
    path = Path(out)
    workers = executor_of(executor, jobs)
    store.refuse_foreign(path)
    with store.locked(path):
        spec = _with_added(path, spec)
        manifest = _open_manifest(path, spec)
        parts = Parts(path / store.PARTS, manifest.key)
        try:
            _Session(path, plan_of(spec), manifest, parts, progress or Silence()).complete(workers)
        except KeyboardInterrupt:
            total = spec.size.trials * len(manifest.points)
            raise RunInterrupted(path, len(parts.done), total) from None
        finally:
            parts.close()
            NETWORK_CACHE.clear()
        return RunFolder(path, manifest)


class _Session:
    """One attempt at a run: plays what is missing, stores outcomes, writes table and manifest."""

    def __init__(
        self, path: Path, plan: ExperimentPlan, manifest: Manifest, parts: Parts, progress: Progress
    ) -> None:
        self.path, self.plan, self.manifest, self.progress = path, plan, manifest, progress
        self.parts = parts
        parts.remove_rest()
        self.began = time.monotonic()
        self.store_s = 0.0

    def complete(self, executor: Executor) -> None:
        """Play what is missing, then write the table; where the best lies at an end of a grid, go on."""
        described_s, more = self.play(executor), self.more()
        while more is not None:
            self.plan, self.manifest.status = plan_of(more), "running"
            self.manifest.spec = encode(more)
            self.manifest.points = [point.values for point in self.plan.points]
            described_s, more = described_s + self.play(executor), self.more()
        if self.manifest.status == "running":
            self.finish(described_s)

    def more(self) -> Spec | None:
        """The spec with a wider grid, where it asks for one."""
        spec = self.plan.spec
        if spec.tune is None or self.manifest.status == "done":
            return None
        choosing = n_choosing(spec.tune, spec.size.trials)
        parts = self.parts.read(trials=choosing)
        return wider(spec, best_constants(spec, store.assemble(self.path, self.manifest, parts)))

    def play(self, executor: Executor) -> float:
        """Play what is missing; the seconds it took to describe the networks."""
        done = {*self.parts.done}
        cells = self.plan.cells(executor.jobs)
        todo = [cell for cell in cells if cell not in done]
        if not todo and self.manifest.status == "done" and _results_intact(self.path, self.manifest):
            return 0.0
        with one_blas_thread():
            self.manifest.status = "running"
            started = time.thread_time()
            if not self.manifest.networks:
                self.manifest.networks = describe_networks(self.plan)
            self.manifest.constants = describe_constants(self.plan, self.manifest.constants)
            described_s = time.thread_time() - started
            write_manifest(self.path, self.manifest)
            for notice in slow_notices(self.plan) if todo else []:
                self.progress.notice(notice)
            self.progress.start(len(cells), len(done))
            try:
                threads = max(1, executor.jobs // max(1, len(todo)))
                executor.run(todo, PlayCells(self.plan.spec, threads), self.keep, self.tick)
                self.parts.sync()
            finally:
                self.progress.finish()
        return described_s

    def tick(self, deliveries: float) -> None:
        self.progress.rounds(int(deliveries))

    def keep(self, cell: Cell, outcome: CellOutcome) -> None:
        start = time.thread_time()
        notes = {
            "kernel_s": repr(outcome.kernel_s),
            "prepare_s": repr(outcome.prepare_s),
            "game": outcome.game,
        }
        self.parts.append(cell, outcome.frame, notes)
        self.store_s += time.thread_time() - start
        self.progress.cell_done(cell, outcome.regret)

    def finish(self, described_s: float) -> None:
        """The table, and the manifest with its checksum."""
        started = time.thread_time()
        parts = self.parts.read()
        frame = store.assemble(self.path, self.manifest, parts)
        self.manifest.results_sha256 = store.write_results(self.path, frame)
        self.manifest.games_sha256 = store.write_games(self.path, self.manifest, parts)
        self.manifest.status = "done"
        kernel_s = sum(float(notes["kernel_s"]) for notes in parts.notes)
        prepare_s = sum(float(notes["prepare_s"]) for notes in parts.notes)
        self.manifest.timings = Timings(
            kernel_s=round(kernel_s, 3),
            prepare_s=round(prepare_s + described_s, 3),
            wall_s=round(time.monotonic() - self.began, 3),
            store_s=round(self.store_s + time.thread_time() - started, 3),
        )
        write_manifest(self.path, self.manifest)


def _with_added(path: Path, spec: Spec) -> Spec:
    """The spec with the values that this very run has added to its grid before."""
    if spec.tune is None or not (path / MANIFEST).exists():
        return spec
    try:
        old = read_manifest(path)
    except DataError:
        return spec
    before = spec_of(old).tune
    if old.spec_sha256 != fingerprint(spec) or before is None:
        return spec
    return replace(spec, tune=replace(spec.tune, added=before.added))


def _open_manifest(path: Path, spec: Spec) -> Manifest:
    """The manifest that is there, if it is of this very run; else a new one."""
    own = own_sources(spec)
    fresh = Manifest(
        **of_spec(spec),
        spec=encode(spec),
        spec_sha256=fingerprint(spec),
        versions=_versions(),
        machine=Machine(cores=os.cpu_count() or 1, system=f"{platform.system()} {platform.machine()}"),
        own=own,
        folder=spec.folder if own else None,
    )
    if not (path / MANIFEST).exists():
        return fresh
    try:
        old = read_manifest(path)
    except DataError:
        _require_own_parts(path, fresh)
        return fresh
    refuse_difference(path, old, fresh)
    if (old.spec, old.folder) != (fresh.spec, fresh.folder):  # other words, the same numbers
        old.spec, old.folder = fresh.spec, fresh.folder
        write_manifest(path, old)
    return old


def _require_own_parts(path: Path, fresh: Manifest) -> None:
    """A damaged manifest is written anew only where the parts prove that the folder is of this very run."""
    if Parts(path / store.PARTS, fresh.key).done:
        return
    if (path / store.RESULTS).exists() or any((path / store.PARTS).iterdir()):
        raise DataError(
            f"{path / MANIFEST} is damaged, and no part beside it is of this run: choose another folder"
        )


def _results_intact(path: Path, manifest: Manifest) -> bool:
    try:
        return len(RunFolder(path, manifest).frame) > 0
    except RumormillError:
        return False


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "rumormill": VERSION}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
