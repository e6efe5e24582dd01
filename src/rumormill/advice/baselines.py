"""What every way of choosing came to on the rest of the log: the lines that advice is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.choice import Choice
from rumormill.advice.replay import TIMES, Replayed, Stage, spread_out
from rumormill.advice.reward_table import Table
from rumormill.arms.objective import sign_of
from rumormill.stats.winsorize import moved_in, robust_mean

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """What one way of choosing came to on the rest of the log, in the user's unit."""

    name: str
    mean: float
    low: float
    high: float
    median: float
    p90: float

    def row(self) -> dict[str, Any]:
        return {
            "way": self.name,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "median": self.median,
            "p90": self.p90,
        }


def lines_of(table: Table, first: Stage, rest: Stage, choice: Choice, cut: int) -> list[Line]:
    """The chosen setting, and the four ways it is to be measured against, on the rest of the log."""
    sign = sign_of(rest.objective)
    n_agents, n_arms = first.values.shape[1:]
    seen = first.values[:cut]
    known = np.array([[robust_mean(seen[:, v, k])[0] for k in range(n_arms)] for v in range(n_agents)])
    common = int((sign * np.array([robust_mean(seen[:, :, k].ravel())[0] for k in range(n_arms)])).argmax())
    own = (sign * known).argmax(axis=1)
    lines = [
        _replayed_line("recommended", rest, choice.on_rest[choice.chosen.setting]),
        _replayed_line("agents alone", rest, choice.on_rest[choice.alone.setting]),
        _fixed_line(f"always {table.log.arms[common]}, the best common arm", rest, np.full(n_agents, common)),
        _fixed_line("always the own best arm", rest, own),
    ]
    if table.kind == "chosen":
        log = table.log
        values = log.value[table.slot >= cut]
        mean, error = robust_mean(values)
        lines.append(_line("what the log itself did", values, mean, mean - 2 * error, mean + 2 * error))
    return lines


def _replayed_line(name: str, rest: Stage, played: Replayed) -> Line:
    start = rest.count_from
    values = np.take_along_axis(rest.values[start:], played.actions[start:, :, None], axis=2).ravel()
    return _line(name, values, *_band(values, played.paid))


def _fixed_line(name: str, rest: Stage, arms: NDArray[np.int64]) -> Line:
    agents = np.arange(len(arms))
    paid = np.array(
        [
            [
                moved_in(rest.log(number + 1, time)[0][rest.count_from :, agents, arms].ravel()).mean()
                for time in range(TIMES)
            ]
            for number in range(rest.logs)
        ]
    )
    values = rest.values[rest.count_from :, agents, arms].ravel()
    return _line(name, values, *_band(values, paid))


def _band(values: Array, paid: Array) -> tuple[float, float, float]:
    """The mean of the recorded order, and the band of the logs that might have been around it."""
    middle, around = float(moved_in(values).mean()), spread_out(paid)
    return middle, middle + around.low - around.estimate, middle + around.high - around.estimate


def _line(name: str, values: Array, mean: float, low: float, high: float) -> Line:
    return Line(name, mean, low, high, float(np.median(values)), float(np.quantile(values, 0.9)))
