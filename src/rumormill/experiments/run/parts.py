"""Finished cells on disk: records with checksums, appended to a few files.

A record is written by one call and counts if its checksum fits: a kill at any moment loses at most the cells
under way, and damage the cells that it hits. The checksum covers the run and the cell too. Once in SYNC_S
seconds what was appended is made durable: when the power fails, cells of so many seconds are played again.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rumormill.errors import DataError
from rumormill.experiments.plan import Cell
from rumormill.files import append, read_bytes, synced

if TYPE_CHECKING:
    import polars as pl

ENDING = ".cells"
MARK = b"\x93RMC"
OLD_NAME = re.compile(r"(\d{4,})-(\d{5,})-([0-9a-f]{32})\.parquet")
HEAD = struct.Struct("<4sIIQ16s")  # mark, point, trial, length of the rest, checksum
FULL = 64 << 20
"""Bytes after which a new file is begun: none has to be read that does not fit the memory."""
SYNC_S = 1.0
_read_record = msgspec.msgpack.Decoder(tuple[dict[str, str], bytes]).decode


@dataclass(frozen=True, eq=False)
class FinishedCell:
    """The rows of a cell as read back, and the notes written with them."""

    cell: Cell
    frame: pl.DataFrame
    notes: dict[str, str]


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

    def read(self, *, trials: int | None = None) -> list[FinishedCell]:
        """All finished cells, or those of the first trials, in order."""
        import polars as pl

        found: list[FinishedCell] = []
        by_file: dict[Path, list[tuple[Cell, int, int]]] = {}
        for cell, (path, start, stop) in self._places.items():
            if trials is None or cell.trial < trials:
                by_file.setdefault(path, []).append((cell, start, stop))
        for path, records in by_file.items():
            if path.suffix != ENDING:
                found.append(
                    FinishedCell(records[0][0], pl.read_parquet(path), pl.read_parquet_metadata(path))
                )
                continue
            with _mapped(path) as data:
                for cell, start, stop in records:
                    notes, rows = _read_record(data[start:stop])
                    found.append(FinishedCell(cell, pl.read_ipc_stream(io.BytesIO(rows)), notes))
        return sorted(found, key=lambda one: one.cell)


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
