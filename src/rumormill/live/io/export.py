"""The observations of nodes as a table, read from their journals."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rumormill.errors import InputError
from rumormill.live.io.journal import read_log
from rumormill.mesh.file import GamePart, read_mesh
from rumormill.text import nearest


def observations(
    path: Path, folders: Iterable[Path], game: str | None
) -> tuple[GamePart, list[tuple[Any, ...]]]:
    """(game, rows of (time, agent, arm, reward)) from the folders of nodes, oldest first."""
    mesh = read_mesh(path)
    if game is None and len(mesh.games) != 1:
        raise InputError(f"which game: --game {' or '.join(mesh.games)}")
    part = next(iter(mesh.games.values())) if game is None else mesh.games.get(game)
    if part is None:
        raise InputError(f"{path} has no game {game!r}{nearest(str(game), mesh.games)}")
    sign = -1.0 if part.objective == "minimise" else 1.0
    rows = []
    for folder in folders:
        owner, found = read_log(folder)
        prefix = f"mesh {mesh.file.name}, node "
        if not owner.startswith(prefix):
            raise InputError(f"{folder} belongs to {owner}, not to mesh {mesh.file.name}")
        rows += [
            (when, owner.removeprefix(prefix), part.arms[arm], sign * reward)
            for when, name, _, arm, reward in found
            if name == part.name and arm < len(part.arms)
        ]
    rows.sort(key=lambda row: row[0])
    return part, rows


def export(
    path: Path, folders: Iterable[Path], out: Path, *, game: str | None = None, wide: bool = False
) -> int:
    """Write the log: a row per observation, or (wide) a column per arm as `rumormill advise` reads it."""
    part, rows = observations(path, folders, game)
    if wide:
        columns = {arm: [row[3] for row in rows if row[2] == arm] for arm in part.arms}
        length = min(len(column) for column in columns.values())
        table: dict[str, list[Any]] = {arm: column[:length] for arm, column in columns.items()}
    else:
        times = [datetime.datetime.fromtimestamp(row[0], datetime.UTC).isoformat() for row in rows]
        names = ("agent", "arm", value_name(part))
        table = {"time": times} | {key: [row[i] for row in rows] for i, key in enumerate(names, 1)}
    _write_table(out, table)
    return len(rows)


def value_name(game: GamePart) -> str:
    """What the values of a game are called in its log."""
    return "cost" if game.objective == "minimise" else "reward"


def _write_table(out: Path, table: dict[str, list[Any]]) -> None:
    suffix = out.suffix.lower()
    out.parent.mkdir(parents=True, exist_ok=True)
    if suffix in (".parquet", ".pq"):
        import polars as pl

        pl.DataFrame(table).write_parquet(out)
    elif suffix in (".csv", ".tsv"):
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if suffix == ".csv" else "\t")
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    else:
        raise InputError(f"{out} is no table: its name must end in .csv, .tsv, .parquet or .pq")
