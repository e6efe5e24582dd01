"""Segments of retained items on disk: rows of the journal's database, written by its thread."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rumormill.errors import DataError
from rumormill.live.core.streams import checksum

# Segments that were read last are kept in memory: a neighbour that catches up reads each several times.
RECENT_SEGMENTS = 64


class DiskItems:
    """The segments of one node; those that are not written yet are in memory."""

    def __init__(self, file: Path, next_number: int) -> None:
        self._file, self._next = file, next_number
        self._unwritten: dict[int, bytes] = {}
        self._new: list[tuple[int, bytes]] = []
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._base: sqlite3.Connection | None = None

    def put(self, data: bytes) -> int:
        """Store a segment; its number."""
        number = self._next
        self._next += 1
        self._unwritten[number] = data
        self._new.append((number, data))
        return number

    def get(self, number: int) -> bytes:
        """A segment."""
        found = self._unwritten.get(number) or self._recent.pop(number, None) or self._read(number)
        self._recent[number] = found
        if len(self._recent) > RECENT_SEGMENTS:
            self._recent.popitem(last=False)
        return found

    def drop(self, number: int) -> None:
        """Nothing: the next snapshot deletes the segments that it does not name."""

    def _read(self, number: int) -> bytes:
        if self._base is None:
            self._base = sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, check_same_thread=False)
        row = self._base.execute("SELECT data FROM items WHERE id = ?", (number,)).fetchone()
        return b"" if row is None else bytes(row[0])  # its checksum does not fit

    def take(self) -> list[tuple[int, bytes]]:
        """The segments since the last call."""
        taken, self._new = self._new, []
        return taken

    def written(self, numbers: Iterable[int]) -> None:
        """These are on disk; called by the journal's thread."""
        for number in numbers:
            self._unwritten.pop(number, None)

    def close(self) -> None:
        """Close the database."""
        if self._base is not None:
            self._base.close()


def named_segments(state: dict[str, Any] | None) -> dict[int, bytes]:
    """The segments that a snapshot names, and their checksums."""
    return {
        int(number): bytes(check)
        for game in (state or {}).values()
        if isinstance(game, dict)
        for row in game.get("streams", ())
        if len(row) > 6
        for _, number, check in row[6][2]
    }


def verify_segments(base: sqlite3.Connection, named: dict[int, bytes]) -> None:
    """DataError if a segment is missing or changed."""
    for number, data in base.execute("SELECT id, data FROM items ORDER BY id") if named else ():
        wanted = named.pop(number, None)
        if wanted is not None and checksum(data) != wanted:
            raise DataError(f"segment {number} of the retained items is changed")
    if named:
        raise DataError(f"{len(named)} segments of the retained items are missing")
