"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from rumormill.errors import DataError, RumormillError


class StoreError(RumormillError):
    """The folder of a run cannot be written, or belongs to another run."""


def write_atomically(path: Path, data: bytes) -> None:
    """All of the data under this name, or nothing."""
    if path.exists() and not path.is_file():  # a device or a folder would be replaced by the draft
        raise StoreError(f"{path} cannot be written: it is there already, and it is no file")
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise _unwritten(path, error) from None


def append(path: Path, handle: int, data: bytes) -> None:
    """All of the data at the end of an open file, or nothing."""
    end = os.lseek(handle, 0, os.SEEK_END)
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError as error:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, end)
        raise _unwritten(path, error) from None


def synced(path: Path, handle: int) -> None:
    """Wait until what was written to an open file is on the disk."""
    try:
        os.fsync(handle)
        _sync_folder(path.parent)
    except OSError as error:
        raise _unwritten(path, error) from None


def _unwritten(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreError(
            f"no room left to write {path}: what is done is kept; free some space and run again to go on"
        )
    return StoreError(f"{path} cannot be written: {error.strerror or error}")


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders: what is renamed there is durable without
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(handle: int) -> bool:
    """Lock an open file for this process, whose end releases it; False where another holds it."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return _lock_on_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_on_windows(handle: int) -> bool:
    msvcrt: Any = import_module("msvcrt")
    os.lseek(handle, 0, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def read_bytes(path: Path) -> bytes:
    """All of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
