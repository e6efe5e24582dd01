"""Files that are whole or not there; and tables as TOML, which the standard library only reads."""

from __future__ import annotations

import contextlib
import errno
import json
import math
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


def to_toml(table: dict[str, Any]) -> str:
    """Plain values as TOML text that reads back equal."""
    return "\n".join(_lines(table, ())).strip() + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """Simple values first: what follows a [header] belongs to it."""
    below = {key: value for key, value in table.items() if _is_below(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in below]
    for key, value in below.items():
        here = (*path, key)
        name = ".".join(_key(part) for part in here)
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *_lines(value, here)]
        else:
            for item in value:
                lines += ["", f"[[{name}]]", *_lines(item, here)]
    return lines


def _is_below(value: Any) -> bool:
    """Whether a value gets a header of its own."""
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    # Strings and numbers are written alike in both, but TOML wants the delete character escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
