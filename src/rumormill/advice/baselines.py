"""Baselines of the recommendation on the hold-out of a log: agents alone, fixed arms, what the log did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.replay import TIMES, LogProblem, ReplayOutcome, interval_of_differences
from rumormill.advice.reward_table import RewardTable
from rumormill.advice.search import Recommendation
from rumormill.arms.objective import sign_of
from rumormill.stats.winsorize import winsorised, winsorised_mean

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Baseline:
    """Outcome of one way of choosing on the hold-out, in the user's unit."""

    name: str
    mean: float
    low: float
    high: float
    median: float
    p90: float

    def row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.name,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "median": self.median,
            "p90": self.p90,
        }


def baselines_of(table: RewardTable, first: LogProblem, choice: Recommendation, cut: int) -> list[Baseline]:
    """The recommended candidate and its baselines; arms are fixed on the rounds before `cut`."""
    rest = first.hold_out
    sign = sign_of(rest.objective)
    n_agents, n_arms = first.values.shape[1:]
    seen = first.values[:cut]
    known = np.array([[winsorised_mean(seen[:, v, k])[0] for k in range(n_arms)] for v in range(n_agents)])
    common = int(
        (sign * np.array([winsorised_mean(seen[:, :, k].ravel())[0] for k in range(n_arms)])).argmax()
    )
    own = (sign * known).argmax(axis=1)
    found = [
        _replayed("recommended", rest, rest.played[choice.chosen.candidate]),
        _replayed("agents alone", rest, rest.played[choice.alone.candidate]),
        _fixed(f"always {table.log.arms[common]}, the best common arm", rest, np.full(n_agents, common)),
        _fixed("always the own best arm", rest, own),
    ]
    if table.kind == "chosen":
        log = table.log
        values = log.value[table.slot >= cut]
        mean, error = winsorised_mean(values)
        found.append(_baseline("what the log itself did", values, mean, mean - 2 * error, mean + 2 * error))
    return found


def _replayed(name: str, rest: LogProblem, played: ReplayOutcome) -> Baseline:
    """The outcome of a candidate."""
    start = rest.count_from
    values = np.take_along_axis(rest.values[start:], played.actions[start:, :, None], axis=2).ravel()
    return _baseline(name, values, *_band(values, played.paid))


def _fixed(name: str, rest: LogProblem, arms: NDArray[np.int64]) -> Baseline:
    """The outcome of one fixed arm per agent, on the same resamples."""
    agents = np.arange(len(arms))
    paid = np.array(
        [
            [
                winsorised(rest.log(number + 1, time)[0][rest.count_from :, agents, arms].ravel()).mean()
                for time in range(TIMES)
            ]
            for number in range(rest.logs)
        ]
    )
    values = rest.values[rest.count_from :, agents, arms].ravel()
    return _baseline(name, values, *_band(values, paid))


def _band(values: Array, paid: Array) -> tuple[float, float, float]:
    """The winsorised mean of the recorded order, and the interval of the bootstrap resamples around it."""
    middle, around = float(winsorised(values).mean()), interval_of_differences(paid)
    return middle, middle + around.low - around.estimate, middle + around.high - around.estimate


def _baseline(name: str, values: Array, mean: float, low: float, high: float) -> Baseline:
    """A baseline with its median and 90th percentile."""
    return Baseline(name, mean, low, high, float(np.median(values)), float(np.quantile(values, 0.9)))
