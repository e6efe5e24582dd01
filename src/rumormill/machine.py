"""How much memory there is for this process: what the machine has free, and what its control groups leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

# Where the system does not say.
USUAL_BYTES = 8e9
MEMINFO, OWN_GROUPS, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# Limit, use, and the line of memory.stat with what of it can be given back at once: version 2, version 1.
NAMES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_bytes() -> float:
    """Memory that can be had now without swapping: the least of what the machine and each group leave."""
    rooms = [_room(folder, *names) for folder in _groups() for names in NAMES]
    return min([_free(), *(room for room in rooms if room is not None)])


def _free() -> float:
    kilobytes = _table(MEMINFO).get("MemAvailable")
    return USUAL_BYTES if kilobytes is None else kilobytes * 1024


def _groups() -> Iterator[Path]:
    """The folders of the groups that this process is in, and of those around them.

    In a container the path is often that of the host, and its own group is the top folder.
    """
    for line in _text(OWN_GROUPS).splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "memory"):
            top = GROUPS / kinds
            inner = top / path.strip("/")
            yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(top))


def _room(folder: Path, limit: str, used: str, returnable: str) -> float | None:
    try:
        most = float(_text(folder / limit))
        now = float(_text(folder / used))
    except ValueError:  # no such file, or "max"
        return None
    return max(most - now + _table(folder / "memory.stat").get(returnable, 0.0), 0.0)


def _table(path: Path) -> dict[str, float]:
    """Lines of a name and a number."""
    words = (line.split() for line in _text(path).splitlines())
    return {pair[0].rstrip(":"): float(pair[1]) for pair in words if len(pair) > 1 and pair[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
