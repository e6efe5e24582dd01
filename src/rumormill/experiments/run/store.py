"""The folder of a run: finished cells, the final table, the manifest, and a lock.

manifest.json     what was run, with what, how long it took
results.parquet   the tidy table, once all cells are done
games.parquet     the arms of every trial: means, gaps, moment bounds, agents, reach of messages
parts/            the finished cells: records with checksums in files that grow
lock              held by the run that is under way, and freed by the system whatever ends it

A record is written by one call and counts if its checksum fits: a kill at any moment loses at most the cells
under way, and damage the cells that it hits. The checksum covers the run and the cell too. Once in SYNC_S
seconds what was appended is made durable: when the power fails, cells of so many seconds are played again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import mmap
import os
import re
import struct
import time
from collections.abc import Iterator, KeysView
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from rumormill.errors import DataError, InputError
from rumormill.experiments.plan import Cell
from rumormill.experiments.run.manifest import (
    GAMES,
    MANIFEST,
    Manifest,
    frame_of,
    game_rows,
    read_manifest,
    spec_of,
)
from rumormill.experiments.spec.schema import Spec
from rumormill.files import StoreError as StoreError
from rumormill.files import append, lock, read_bytes, synced
from rumormill.files import write_atomically as write_atomically
from rumormill.text import plural, shown

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

ENDING = ".cells"
MARK = b"\x93RMC"
OLD_NAME = re.compile(r"(\d{4,})-(\d{5,})-([0-9a-f]{32})\.parquet")
HEAD = struct.Struct("<4sIIQ16s")  # mark, point, trial, length of the rest, checksum
FULL = 64 << 20
"""Bytes after which a new file is begun: none has to be read that does not fit the memory."""
SYNC_S = 1.0
TOGETHER = 1_000
"""Cells whose rows become one table while they are read: a table of its own takes 10 kB, however small."""
_read_record = msgspec.msgpack.Decoder(tuple[dict[str, str], bytes]).decode


@dataclass(frozen=True, eq=False)
class FinishedCells:
    """Cells as read back, in order: how many rows each has, its notes, and the rows of all."""

    cells: list[Cell]
    heights: list[int]
    notes: list[dict[str, str]]
    frame: pl.DataFrame


class Parts:
    """The finished cells of one run. Every record is verified once, when the object is made."""

    def __init__(self, folder: Path, run_key: str) -> None:
        self._folder, self._key = folder, run_key.encode()
        self._places: dict[Cell, tuple[Path, int, int]] = {}
        self._handle: int | None = None
        self._size, self._synced = FULL, time.monotonic()
        for path in sorted(folder.glob("*.parquet")):
            self._places |= dict.fromkeys(self._of_earlier_version(path), (path, 0, 0))
        for path in sorted(folder.glob(f"*{ENDING}")):
            self._places |= {cell: (path, start, stop) for cell, start, stop in self._records(path)}

    @property
    def done(self) -> KeysView[Cell]:
        """The finished cells; what is damaged, half-written or of another run is left out."""
        return self._places.keys()

    def _records(self, path: Path) -> Iterator[tuple[Cell, int, int]]:
        """The valid records of a file: the cell, and where its rows begin and end."""
        with _mapped(path) as data, memoryview(data) as view:
            at, end = 0, len(data)
            while 0 <= at <= end - HEAD.size:
                mark, point, trial, length, found = HEAD.unpack_from(data, at)
                start, stop = at + HEAD.size, at + HEAD.size + length
                cell = Cell(point, trial)
                if mark == MARK and stop <= end and self._checksum(cell, view[start:stop]) == found:
                    yield cell, start, stop
                    at = stop
                else:
                    at = data.find(MARK, at + 1)

    def _of_earlier_version(self, path: Path) -> list[Cell]:
        """The cell of a file that holds one: so they were stored up to version 0.2."""
        name = OLD_NAME.fullmatch(path.name)
        if name is None:
            return []
        data = self._key + f" {int(name[1])} {int(name[2])} ".encode() + read_bytes(path)
        fits = hashlib.sha256(data).hexdigest()[:32] == name[3]
        return [Cell(int(name[1]), int(name[2]))] if fits else []

    def _checksum(self, cell: Cell, data: bytes | memoryview) -> bytes:
        """It covers where the rows belong too: those of another cell or run do not count."""
        found = hashlib.sha256(self._key + struct.pack("<II", *cell))
        found.update(data)
        return found.digest()[:16]

    def append(self, cell: Cell, frame: pl.DataFrame, notes: dict[str, str]) -> None:
        """The rows of a finished cell."""
        buffer = io.BytesIO()
        frame.write_ipc_stream(buffer, compression="zstd")
        data = msgspec.msgpack.encode((notes, buffer.getvalue()))
        if self._size >= FULL or self._handle is None:
            self._begin()
        head = HEAD.pack(MARK, *cell, len(data), self._checksum(cell, data))
        assert self._handle is not None
        append(self._path, self._handle, head + data)
        self._places[cell] = self._path, self._size + HEAD.size, self._size + HEAD.size + len(data)
        self._size += HEAD.size + len(data)
        if time.monotonic() - self._synced > SYNC_S:
            self.sync()

    def _begin(self) -> None:
        """Begin a file: an earlier one may end in half a record."""
        self.close()
        numbers = [int(path.stem) for path in self._folder.glob(f"*{ENDING}") if path.stem.isdecimal()]
        self._path = self._folder / f"{max(numbers, default=0) + 1:04d}{ENDING}"
        self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._size = 0

    def sync(self) -> None:
        """Make durable what was appended."""
        if self._handle is not None:
            synced(self._path, self._handle)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Nothing is appended for now."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def remove_rest(self) -> None:
        """Delete files without a valid record."""
        kept = {path for path, _, _ in self._places.values()}
        for entry in self._folder.iterdir():
            if entry not in kept and not entry.is_dir():
                entry.unlink()

    def read(self, *, trials: int | None = None) -> FinishedCells:
        """All finished cells, or those of the first trials."""
        import polars as pl

        places = sorted(each for each in self._places.items() if trials is None or each[0].trial < trials)
        heights, notes, tables, frames = [], [], [], []
        with contextlib.ExitStack() as opened:
            files = {path for _, (path, _, _) in places if path.suffix == ENDING}
            data = {path: opened.enter_context(_mapped(path)) for path in files}
            for number, (_, (path, start, stop)) in enumerate(places, 1):
                if path in data:
                    note, rows = _read_record(data[path][start:stop])
                    frames.append(pl.read_ipc_stream(io.BytesIO(rows)))
                else:
                    note = pl.read_parquet_metadata(path)
                    frames.append(pl.read_parquet(path))
                notes.append(note)
                heights.append(frames[-1].height)
                if len(frames) == TOGETHER or number == len(places):
                    tables.append(pl.concat(frames, rechunk=True))
                    frames.clear()
        table = pl.concat(tables) if tables else pl.DataFrame()
        return FinishedCells([cell for cell, _ in places], heights, notes, table)


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | bytes]:
    """The bytes of a file, without copying them."""
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                yield b""
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield data
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


RESULTS, PARTS, LOCK = "results.parquet", "parts", "lock"


@dataclass(frozen=True, repr=False)
class RunFolder:
    """A run on disk. While it is under way, `frame` holds the cells finished so far."""

    path: Path
    manifest: Manifest

    def __repr__(self) -> str:
        """One line: the folder, the size, the state."""
        known = self.manifest
        size = f"{plural(known.trials, 'trial')} of {plural(known.horizon, 'round')}, seed {known.seed}"
        return f"RunFolder({str(self.path)!r}: {known.name}, {size}, {known.status})"

    @cached_property
    def spec(self) -> Spec:
        """What was run."""
        return spec_of(self.manifest)

    @property
    def axes(self) -> list[str]:
        """The columns of the sweep."""
        return self.manifest.axes

    @property
    def policies(self) -> list[str]:
        """The labels of the policies, in the order of the spec."""
        return self.manifest.policies

    @property
    def done(self) -> bool:
        return self.manifest.status == "done"

    @cached_property
    def frame(self) -> pl.DataFrame:
        if not self.done:
            return assemble(self.path, self.manifest, Parts(self.path / PARTS, self.manifest.key).read())
        return self._table(RESULTS, self.manifest.results_sha256)

    @cached_property
    def games(self) -> pl.DataFrame | None:
        """The arms of every trial with what is known of them; None for a run that is older or not done."""
        known = self.manifest.games_sha256
        return self._table(GAMES, known) if self.done and known else None

    def _table(self, name: str, checksum: str | None) -> pl.DataFrame:
        import polars as pl

        data = read_bytes(self.path / name)
        if hashlib.sha256(data).hexdigest() != checksum:
            raise DataError(f"{self.path / name} is damaged: run it again to rebuild it from its parts")
        return pl.read_parquet(io.BytesIO(data))

    def plot(self) -> Figure:
        """Group regret: against the round, or against the parameter of the sweep."""
        from rumormill.experiments.figures import main_figure

        return main_figure(self)


def load(path: str | PathLike[str]) -> pl.DataFrame:
    """Read the table of a run: one row per policy, sweep point, trial and checkpoint.

    Parameters
    ----------
    path : path
        The folder of the run.

    Returns
    -------
    polars.DataFrame
        Columns policy, trial, t, regret, messages, …, and one per swept parameter. While a run is under way
        it holds the cells finished so far.

    Examples
    --------
    >>> import rumormill as rm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = rm.run("fig1a", folder, scale="quick", trials=1, horizon=10)
    ...     table = rm.load(folder)
    >>> table["t"].max()
    10

    References
    ----------
    docs/tutorials/reproduce.md: runs and their folders.
    """
    return open_run(path).frame


def open_run(path: str | PathLike[str]) -> RunFolder:
    """Open the folder of a run for reading.

    Parameters
    ----------
    path : path
        The folder of the run.

    Returns
    -------
    RunFolder
        `spec`, `frame` (the table), `games` (the arms of every trial) and `plot()`.

    Raises
    ------
    InputError, DataError
        There is no run in the folder, or its manifest is damaged.

    Examples
    --------
    >>> import rumormill as rm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = rm.run("fig1a", folder, scale="quick", trials=1, horizon=10)
    ...     rm.open_run(folder).policies[0]
    'KMP'

    References
    ----------
    docs/tutorials/reproduce.md: runs and their folders.
    """
    if not isinstance(path, str | PathLike):
        raise InputError(f"path = {shown(path)} is not allowed: the folder of a run")
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no folder {path}: give the folder of a run")
    if not (path / MANIFEST).is_file():
        what = f"it has no {MANIFEST}" if path.is_dir() else "it is a file"
        raise InputError(f"{path} is not the folder of a run: {what}")
    return RunFolder(path, read_manifest(path))


# --- writing --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the folder; a second run is refused. The lock dies with the process, however it ends."""
    try:
        (path / PARTS).mkdir(parents=True, exist_ok=True)
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"{path} cannot be used as the folder of a run: {error.strerror or error}") from None
    try:
        if not lock(handle):
            raise StoreError(f"{path} is in use by another run: wait, or choose another folder")
        yield
    finally:
        os.close(handle)


def refuse_foreign(path: Path) -> None:
    """Refuse a folder with things in it that are not of a run."""
    if path.is_dir() and not (path / MANIFEST).exists():
        others = sorted({entry.name for entry in path.iterdir()} - {PARTS, LOCK, f".{MANIFEST}.draft"})
        if others:
            raise InputError(f"{path} is not empty (it holds {others[0]!r}): choose a new or an empty folder")


# --- tables -------------------------------------------------------------------------------------------


def assemble(path: Path, manifest: Manifest, finished: FinishedCells) -> pl.DataFrame:
    """The table of these cells, sorted by (sweep point, policy, trial, t)."""
    import polars as pl

    if not finished.cells:
        raise DataError(f"{path} has no finished cell yet: run it again to go on")
    order = {label: number for number, label in enumerate(manifest.policies)}
    points = np.repeat([cell.point for cell in finished.cells], finished.heights)
    table = finished.frame.with_columns(
        pl.col("policy").replace_strict(order, return_dtype=pl.Int64).alias("__policy"),
        pl.Series("__point", points),
    )
    return table.sort("__point", "__policy", "trial", "t").drop("__point", "__policy")


def write_results(path: Path, frame: pl.DataFrame) -> str:
    """The final table; returns its checksum. The same rows give the same bytes."""
    return _write_table(path / RESULTS, frame.rechunk())


def write_games(path: Path, manifest: Manifest, finished: FinishedCells) -> str:
    """The table of games, from the notes of the cells; returns its checksum."""
    rows = [
        row
        for cell, notes in zip(finished.cells, finished.notes, strict=True)
        if "game" in notes and cell.point < len(manifest.points)
        for row in game_rows(manifest.points[cell.point], cell.trial, notes["game"])
    ]
    return _write_table(path / GAMES, frame_of(rows)) if rows else ""


def _write_table(path: Path, frame: pl.DataFrame) -> str:
    """Write a table; returns its checksum."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", compression_level=9, row_group_size=1 << 20)
    write_atomically(path, buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()
