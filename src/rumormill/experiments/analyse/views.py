"""Parts of a run's table, and the words for its parameters, as figures and report need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from rumormill.experiments.run.store import RunFolder

Point = dict[str, Any]

AXIS_NAMES = {
    "gamma": "γ (hops)",
    "alpha": "tail index α",
    "zeta": "factor ζ",
    "eps": "ε",
    "M": "agents",
}
SYMBOLS = {"gamma": "γ", "alpha": "α", "zeta": "ζ", "eps": "ε"}


def points(run: RunFolder) -> list[Point]:
    """The sweep points in order; one empty point when nothing is swept."""
    if not run.axes:
        return [{}]
    return [dict(row) for row in run.frame.select(run.axes).unique(maintain_order=True).to_dicts()]


def part(run: RunFolder, policy: str, point: Point) -> pl.DataFrame:
    """The rows of one policy at one sweep point."""
    import polars as pl

    keep = pl.col("policy") == policy
    for axis, value in point.items():
        keep &= pl.col(axis) == value
    return run.frame.filter(keep)


def curves(frame: pl.DataFrame, column: str = "regret") -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rounds recorded, and the column as (trials, rounds)."""
    ordered = frame.sort("trial", "t")
    rounds = np.unique(ordered["t"].to_numpy())
    return rounds, ordered[column].to_numpy().reshape(-1, len(rounds)).astype(np.float64)


def at_end(frame: pl.DataFrame, column: str = "regret") -> NDArray[np.float64]:
    """The last value of every trial."""
    return curves(frame, column)[1][:, -1]


def in_words(point: Point) -> str:
    """A sweep point as a title."""
    return ", ".join(f"{SYMBOLS.get(axis, axis)} = {value_name(value)}" for axis, value in point.items())


def axis_name(axis: str) -> str:
    """What a sweep parameter is called on an axis."""
    return AXIS_NAMES.get(axis, axis.replace("_", " "))


def value_name(value: Any) -> str:
    """A sweep value as people write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def horizon(run: RunFolder) -> int:
    """The last round recorded."""
    return int(run.frame["t"].to_numpy().max())


def spread(items: Sequence[Point], most: int) -> list[Point]:
    """At most so many, first and last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
