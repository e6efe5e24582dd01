"""Memory available to this process, and refusal of requests that cannot fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rumormill.errors import InputError
from rumormill.text import memory

# Where the system does not say.
USUAL_BYTES = 8e9
# Less is not asked about: looking takes a millisecond, as long as a small game.
UNNOTICED_BYTES = 16e6
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


# Tables per round (levels, scales, leaving samples), and numbers kept per agent and round if asked for.
BYTES_PER_ROUND, BYTES_PER_ACTION = 64, 8
MOST_BYTES = 8e9


def refuse_impossible(n_agents: int, horizon: int, trials: int = 1, *, keep_actions: bool = False) -> None:
    """Refuse a simulation whose tables would not fit into memory."""
    needed = float(BYTES_PER_ROUND) * horizon
    if keep_actions:
        needed += float(BYTES_PER_ACTION) * horizon * n_agents * trials
    if needed > MOST_BYTES:
        what = f"keeping every action of {n_agents:,} agents takes" if keep_actions else "its tables take"
        raise InputError(
            f"horizon = {horizon:,} is not possible: {what} "
            f"{memory(needed)}, at most {memory(MOST_BYTES)} are allowed; take fewer rounds"
        )


# What the compiled engine keeps, in bytes: per agent and arm (counts, sums, means, powers, pulls), the same
# for the rows of KMP-UCB and for each round they are told in, per agent and round on the way, and per pair
# that hear each other (neighbourhoods, and lists in two orders).
PER_ARM, PER_ARM_OF_ROWS, PER_ROW, PER_SAMPLE, PER_PAIR = 64, 36, 20, 36, 32


def trial_bytes(
    n_agents: int, n_arms: int, *, pairs: int, slots: int, shares_rows: bool, marks: int, columns: int
) -> float:
    """About what one trial takes: its state, its draws (two chunks of 64 rounds), regret at the marks."""
    per_arm = PER_ARM + (PER_ARM_OF_ROWS + PER_ROW * slots if shares_rows else 0)
    draws = 64.0 * 8 * columns * (2 if columns == 1 else 3)
    return n_agents * (float(per_arm) * n_arms + PER_SAMPLE * slots + draws + 8.0 * marks) + PER_PAIR * pairs


def refuse_without_memory(needed: float, what: str) -> None:
    """Refuse what this machine has no room for now."""
    if needed < UNNOTICED_BYTES:
        return
    there = available_bytes()
    if needed > there:
        raise InputError(
            f"{what} takes about {memory(needed)} of memory, {memory(there)} are there; take fewer agents, "
            "arms, checkpoints or trials at a time (workers=1, jobs=1), or a smaller gamma"
        )
