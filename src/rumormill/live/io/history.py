"""What a node did in the last hour, by seconds, and in the last day, by minutes: bounded, for the dashboard.

It is kept in memory only: after a restart it begins anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

HOUR, DAY = (1.0, 3_600), (60.0, 1_440)
"""(seconds between two points, number of points)."""


@dataclass(frozen=True)
class GamePoint:
    """One game at one moment."""

    chosen: int
    regret: float
    samples: tuple[int, ...]


class PointRing:
    """Points at equal distances in time; the oldest leave."""

    def __init__(self, every: float, most: int) -> None:
        self._every = every
        self._points: deque[tuple[float, dict[str, GamePoint]]] = deque(maxlen=most)

    def due(self, now: float) -> bool:
        """Whether the next point is due."""
        return not self._points or now - self._points[-1][0] >= self._every

    def add(self, now: float, games: dict[str, GamePoint]) -> None:
        """Add a point."""
        self._points.append((now, games))

    def columns(self, game: str, n_arms: int) -> dict[str, Any]:
        """The points of one game, column by column; those of an earlier game with other arms are left out."""
        found = [
            (when, point)
            for when, games in self._points
            if (point := games.get(game)) is not None and len(point.samples) == n_arms
        ]
        return {
            "time": [round(when, 1) for when, _ in found],
            "chosen": [point.chosen for _, point in found],
            "regret": [round(point.regret, 6) for _, point in found],
            "samples": [[point.samples[arm] for _, point in found] for arm in range(n_arms)],
        }


class History:
    """The rings of all games of a node."""

    def __init__(self) -> None:
        self._hour, self._day = PointRing(*HOUR), PointRing(*DAY)

    def due(self, now: float) -> bool:
        """Whether the next point is due."""
        return self._hour.due(now)

    def add(self, now: float, games: dict[str, GamePoint]) -> None:
        """Add a point to every ring in which it is due."""
        for ring in (self._hour, self._day):
            if ring.due(now):
                ring.add(now, games)

    def columns(self, arms: dict[str, int]) -> dict[str, Any]:
        """All games: their last hour and their last day; `arms` has the number of arms of each."""
        return {
            game: {"hour": self._hour.columns(game, n), "day": self._day.columns(game, n)}
            for game, n in arms.items()
        }
