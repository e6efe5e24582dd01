"""Run an experiment into a folder; run it again to go on where it stopped."""

from __future__ import annotations

import os
import platform
import threading
import time
from contextlib import AbstractContextManager
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from rumormill.errors import InputError, RumormillError
from rumormill.experiments.run import store
from rumormill.experiments.run.cell import CellPlayer, Outcome
from rumormill.experiments.run.executors import Executor, LocalExecutor
from rumormill.experiments.run.store import Cell, RunFolder
from rumormill.experiments.spec.reading import at_scale, encode, points
from rumormill.experiments.spec.schema import Spec

LIBRARIES = ("rumormill", "numpy", "numba", "scipy", "networkx", "rustworkx", "dwave-samplers", "polars")


class RunInterrupted(RumormillError):
    """Ctrl-C: what is done is kept, and running again goes on."""

    def __init__(self, path: Path, done: int, total: int) -> None:
        super().__init__(f"stopped after {done} of {total} cells, all kept in {path}; run it again to go on")
        self.path, self.done, self.total = path, done, total


class Progress(Protocol):
    """What a display hears. All calls come from one thread, except `rounds`."""

    def start(self, total_cells: int, done_cells: int) -> None: ...
    def cell_done(self, cell: Cell, summary: dict[str, float]) -> None: ...
    def rounds(self, deliveries: int) -> None: ...
    def finish(self) -> None: ...


class Silence:
    """No display."""

    def start(self, total_cells: int, done_cells: int) -> None: ...
    def cell_done(self, cell: Cell, summary: dict[str, float]) -> None: ...
    def rounds(self, deliveries: int) -> None: ...
    def finish(self) -> None: ...


def run(
    spec: Spec,
    out: str | PathLike[str],
    jobs: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> RunFolder:
    """Play every cell that the folder does not hold yet, then write the table.

    The table depends on the spec alone: not on `jobs`, nor on how often the run was stopped or killed.
    """
    spec = at_scale(spec)
    path = Path(out)
    workers = LocalExecutor(jobs)
    store.refuse_foreign(path)
    with store.locked(path):
        manifest = _open_manifest(path, spec)
        try:
            _complete(path, spec, manifest, workers.jobs, executor or workers, progress or Silence())
        except KeyboardInterrupt:
            done = len(store.valid_parts(path, manifest["spec_sha256"]))
            raise RunInterrupted(path, done, spec.size.trials * len(manifest["points"])) from None
        return RunFolder(path, manifest)


def _complete(
    path: Path, spec: Spec, manifest: dict[str, Any], jobs: int, executor: Executor, progress: Progress
) -> None:
    """Play what is missing and write table and manifest."""
    began = time.monotonic()
    player = CellPlayer(spec, jobs)
    sha = manifest["spec_sha256"]
    done = store.valid_parts(path, sha)
    store.remove_invalid(path, done)
    todo = [cell for cell in player.cells if cell not in done]
    if not todo and manifest["status"] == "done" and _results_intact(path, manifest):
        return
    session = _Session(path, sha, progress)
    with _one_blas_thread():
        manifest["status"] = "running"
        started = time.thread_time()
        if not manifest["networks"]:
            manifest["networks"] = player.describe_networks()
        described_s = time.thread_time() - started
        store.write_manifest(path, manifest)
        progress.start(len(player.cells), len(done))
        try:
            executor.run(todo, player.play, session.keep, session.stop, session.tick)
        finally:
            progress.finish()
    started = time.thread_time()
    manifest["results_sha256"] = store.write_results(path, store.assemble(path, manifest))
    manifest["status"] = "done"
    timings = _timings(path, sha)
    timings["prepare_s"] += described_s
    # Sessions that were killed could not tell how long they took: these two count the last one only.
    timings["wall_s"] = time.monotonic() - began
    timings["store_s"] = session.store_s + time.thread_time() - started
    manifest["timings"] = {key: round(seconds, 3) for key, seconds in timings.items()}
    store.write_manifest(path, manifest)


class _Session:
    """Keeps what the workers bring."""

    def __init__(self, path: Path, spec_sha: str, progress: Progress) -> None:
        self.path, self.spec_sha, self.progress = path, spec_sha, progress
        self.stop = threading.Event()
        self.store_s = 0.0

    def tick(self, deliveries: float) -> None:
        self.progress.rounds(int(deliveries))

    def keep(self, cell: Cell, outcome: Outcome) -> None:
        start = time.thread_time()
        notes = {"kernel_s": repr(outcome.kernel_s), "prepare_s": repr(outcome.prepare_s)}
        store.write_part(self.path, self.spec_sha, cell, outcome.frame, notes)
        self.store_s += time.thread_time() - start
        self.progress.cell_done(cell, outcome.regret)


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Workers are threads already: threads of the linear algebra would only wait for each other.

    It also makes the last digits of eigenvectors independent of the number of cores.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits


def _open_manifest(path: Path, spec: Spec) -> dict[str, Any]:
    """The manifest that is there, if it is of this very spec; else a new one."""
    (scale,) = spec.scale
    fresh: dict[str, Any] = {
        "format": store.FORMAT,
        "name": spec.name,
        "scale": scale,
        "spec": encode(spec),
        "spec_sha256": store.fingerprint(spec),
        "seed": spec.seed,
        "versions": _versions(),
        "machine": {"cores": os.cpu_count() or 1, "system": f"{platform.system()} {platform.machine()}"},
        "axes": list(spec.sweep),
        "policies": spec.labels,
        "points": [point.values for point in points(spec)],
        "trials": spec.size.trials,
        "horizon": spec.size.horizon,
        "status": "running",
        "timings": {},
        "networks": {},
    }
    if not (path / store.MANIFEST).exists():
        return fresh
    old = store.read_manifest(path)
    if old["spec_sha256"] != fresh["spec_sha256"]:
        raise InputError(
            f"{path} holds another run ({_difference(old['spec'], fresh['spec'])}): choose another folder"
        )
    if old["versions"]["rumormill"] != fresh["versions"]["rumormill"]:
        raise InputError(
            f"{path} was begun with rumormill {old['versions']['rumormill']}, this is "
            f"{fresh['versions']['rumormill']}: choose another folder"
        )
    return old


def _difference(old: Any, new: Any, path: str = "") -> str:
    """The first key in which two specs differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *old]:
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return _difference(one, other, f"{path}[{number}]")
    return f"{path} was {old!r}, now {new!r}"


def _results_intact(path: Path, manifest: dict[str, Any]) -> bool:
    try:
        return len(RunFolder(path, manifest).frame) > 0
    except RumormillError:
        return False


def _timings(path: Path, spec_sha: str) -> dict[str, float]:
    """Processor seconds in kernels and in the preparation of graphs, over all cells."""
    total = {"kernel_s": 0.0, "prepare_s": 0.0}
    for part in store.valid_parts(path, spec_sha).values():
        _, notes = store.read_part(part)
        for key in total:
            total[key] += float(notes[key])
    return total


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in LIBRARIES}}
