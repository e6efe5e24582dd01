"""Files that are whole or not there: what happens in which order, and what is left after an error."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from rumormill.files import StoreError, write_atomically


def test_the_data_and_the_name_are_on_the_disk_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash at any moment leaves the old file or the new one: data, then the name, then the folder."""
    done: list[str] = []
    path, fsync, replace = tmp_path / "file", os.fsync, os.replace

    def synced(handle: int) -> None:
        whole = os.readlink(f"/proc/self/fd/{handle}") if Path("/proc/self/fd").exists() else ""
        done.append(f"sync {Path(whole).name}")
        if whole.endswith(".draft"):
            assert Path(whole).read_bytes() == b"new"  # nothing is left in the buffer
        fsync(handle)

    def replaced(old: Any, new: Any) -> None:
        done.append(f"rename {Path(old).name}")
        assert path.read_bytes() == b"old"
        replace(old, new)

    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert done == ["sync .file.draft", "rename .file.draft", f"sync {tmp_path.name}"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "no room left"), (errno.EDQUOT, "no room left"), (errno.EIO, "cannot")],
)
def test_an_error_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fails(handle: int) -> None:
        raise OSError(number, "it does not work")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StoreError, match=said):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="it is no file"):
        write_atomically(tmp_path / "folder", b"new")
