"""How much memory there is: what the machine says, and the control groups, in both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from rumormill import system_memory as machine


def a_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str], free: int | None = 1000
) -> None:
    for name, text in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(groups)
    (folder / "meminfo").write_text("" if free is None else f"MemTotal: 9 kB\nMemAvailable:  {free} kB\n")
    monkeypatch.setattr(machine, "MEMINFO", folder / "meminfo")
    monkeypatch.setattr(machine, "OWN_GROUPS", folder / "own")
    monkeypatch.setattr(machine, "GROUPS", folder / "groups")


def group(limit: str, used: int, cache: int = 0) -> dict[str, str]:
    return {
        "memory.max": f"{limit}\n",
        "memory.current": f"{used}\n",
        "memory.stat": f"inactive_file {cache}\n",
    }


def old_group(limit: int, used: int) -> dict[str, str]:
    return {"memory.limit_in_bytes": f"{limit}\n", "memory.usage_in_bytes": f"{used}\n"}


def under(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("", {}, 1_024_000),
        ("0::/\n", group("max", 7), 1_024_000),
        ("0::/\n", group("5000", 2000), 3_000),
        ("0::/\n", group("5000", 2000, cache=500), 3_500),
        ("0::/\n", group("5000", 6000), 0),
        ("0::/a/b\n", {**under("a/b", group("9000", 0)), **under("a", group("4000", 1000))}, 3_000),
        ("0::/of/the/host\n", group("5000", 0), 5_000),  # a container that does not see its path
        ("3:memory:/x\n1:cpu:/y\n", under("memory/x", old_group(8000, 500)), 7_500),
        ("3:memory:/x\n", under("memory", old_group(2**63 - 4096, 0)), 1_024_000),
        ("3:cpu:/x\n", under("cpu/x", old_group(80, 0)), 1_024_000),
    ],
)
def test_the_least_of_all_limits(
    own: str, files: dict[str, str], expected: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_machine(tmp_path, monkeypatch, own, files)
    assert machine.available_bytes() == expected


def test_where_the_system_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(tmp_path, monkeypatch, "", {}, free=None)
    assert machine.available_bytes() == machine.USUAL_BYTES
