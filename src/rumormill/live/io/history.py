"""What a node did in the last hour, by seconds, and in the last day, by minutes: bounded, for the dashboard.

It is kept in memory only: after a restart it begins anew.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

HOUR, DAY = (1.0, 3_600), (60.0, 1_440)
"""(seconds between two points, number of points)."""
# Times of choose are counted in bins of an eighth of an octave from 1 µs on: a quantile is right to 5 %.
PER_OCTAVE, N_BINS = 8, 200
Quantiles = tuple[float | None, float | None]
# Seconds that the numbers of the status are computed from.
RECENT_SECONDS = 60


class ChooseTimes:
    """How long choose took, and how many choices it made: counts since the start."""

    def __init__(self) -> None:
        self.bins = [0] * N_BINS
        self.choices, self.seconds = 0, 0.0

    def add(self, seconds: float, choices: int) -> None:
        """One request that was answered with so many choices."""
        self.bins[min(int(PER_OCTAVE * math.log2(max(seconds * 1e6, 1.0))), N_BINS - 1)] += 1
        self.choices += choices
        self.seconds += seconds


def p50_and_p99(bins: list[int], before: list[int]) -> Quantiles:
    """Median and 99th percentile in ms of the requests since `before`; None if there were none."""
    new = [now - then for now, then in zip(bins, before, strict=True)]
    found: list[float | None] = []
    for share in (0.5, 0.99):
        rank, seen = share * sum(new), 0
        place = next((at for at, n in enumerate(new) if (seen := seen + n) >= rank > 0), None)
        found.append(None if place is None else float(f"{2 ** ((place + 0.5) / PER_OCTAVE) / 1e3:.3g}"))
    return found[0], found[1]


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
        self._points: deque[tuple[float, dict[str, GamePoint], Quantiles]] = deque(maxlen=most)
        self._bins = [0] * N_BINS

    def due(self, now: float) -> bool:
        """Whether the next point is due."""
        return not self._points or now - self._points[-1][0] >= self._every

    def add(self, now: float, games: dict[str, GamePoint], bins: list[int]) -> None:
        """Add a point; `bins` are the times of choose since the start."""
        self._points.append((now, games, p50_and_p99(bins, self._bins)))
        self._bins = bins

    def columns(self, game: str, n_arms: int) -> dict[str, Any]:
        """The points of one game, column by column; those of an earlier game with other arms are left out.

        Beside them p50 and p99 of choose, of all games, between each point and the one before.
        """
        found = [
            (when, point, times)
            for when, games, times in self._points
            if (point := games.get(game)) is not None and len(point.samples) == n_arms
        ]
        return {
            "time": [round(when, 1) for when, _, _ in found],
            "chosen": [point.chosen for _, point, _ in found],
            "regret": [round(point.regret, 6) for _, point, _ in found],
            "samples": [[point.samples[arm] for _, point, _ in found] for arm in range(n_arms)],
            **{name: [times[at] for _, _, times in found] for at, name in enumerate(("p50_ms", "p99_ms"))},
        }


class History:
    """The rings of all games of a node, and the times of choose."""

    def __init__(self) -> None:
        self._hour, self._day = PointRing(*HOUR), PointRing(*DAY)
        self.times = ChooseTimes()
        self._recent: deque[tuple[float, list[int], int]] = deque(maxlen=RECENT_SECONDS + 1)

    def due(self, now: float) -> bool:
        """Whether the next point is due."""
        return self._hour.due(now)

    def add(self, now: float, games: dict[str, GamePoint]) -> None:
        """Add a point to every ring in which it is due."""
        bins = list(self.times.bins)
        if not self._recent:  # what was before the first point counts too
            self._recent.append((now, [0] * N_BINS, 0))
        self._recent.append((now, bins, self.times.choices))
        for ring in (self._hour, self._day):
            if ring.due(now):
                ring.add(now, games, bins)

    def recent(self, now: float) -> dict[str, Any]:
        """Choices per second, and p50 and p99 of choose in ms, over the last minute or since the start."""
        when, bins, choices = self._recent[0] if self._recent else (now, self.times.bins, 0)
        p50, p99 = p50_and_p99(self.times.bins, bins)
        rate = (self.times.choices - choices) / max(now - when, 1.0)
        return {"seconds": round(now - when, 1), "per_second": round(rate, 2), "p50_ms": p50, "p99_ms": p99}

    def columns(self, arms: dict[str, int]) -> dict[str, Any]:
        """All games: their last hour and their last day; `arms` has the number of arms of each."""
        return {
            game: {"hour": self._hour.columns(game, n), "day": self._day.columns(game, n)}
            for game, n in arms.items()
        }
