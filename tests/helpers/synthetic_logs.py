"""Synthetic logs with a known source, and fresh data from the same source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import rumormill as rm
from rumormill.advice.reading.log import Log
from rumormill.arms.varying import expected, paid

Array = NDArray[np.float64]

LAWS: dict[str, Any] = {
    "alpha 1.2": lambda mean: rm.AlphaStable(alpha=1.2, loc=mean),
    "alpha 1.5": lambda mean: rm.AlphaStable(alpha=1.5, loc=mean),
    "alpha 1.9": lambda mean: rm.AlphaStable(alpha=1.9, loc=mean),
    "log-normal": lambda mean: rm.LogNormal(mu=0.0, sigma=1.0).at_mean(mean),
    "gaussian": lambda mean: rm.Gaussian(loc=mean),
}
MEANS = (0.0, 0.3, 0.6, 1.0)


@dataclass(frozen=True)
class Truth:
    """Where a log came from."""

    name: str
    source: Any
    agents: int
    rounds: int
    shocks: float = 0.0

    def table(self, seed: int) -> Array:
        """Fresh rewards [round, agent, arm], more is better."""
        stream = self.source.stream(np.random.SeedSequence(seed), self.agents, self.rounds)
        values = paid(stream, 0, self.rounds)
        if self.shocks:
            rng = np.random.default_rng(seed)
            values = values + self.shocks * rng.standard_normal((self.rounds, 1, 1))
        return np.ascontiguousarray(values)


def bandit(means: Any, law: str = "gaussian") -> rm.Bandit:
    return rm.Bandit([LAWS[law](float(mean)) for mean in means])


def homogeneous(law: str, agents: int = 12, rounds: int = 300) -> Truth:
    return Truth(f"homogeneous {law}", bandit(MEANS, law), agents, rounds)


def two_clusters(agents: int = 12, rounds: int = 300, gap: float = 1.0, law: str = "gaussian") -> Truth:
    first, second = bandit([gap, 0.0, -gap, -gap], law), bandit([0.0, gap, -gap, -gap], law)
    half = agents // 2
    members = [list(range(half)), list(range(half, agents))]
    return Truth("two clusters", rm.Clusters([first, second], members=members), agents, rounds)


def own_arms(agents: int = 8, rounds: int = 300, gap: float = 1.0) -> Truth:
    each = [bandit(np.where(np.arange(agents) == v, gap, 0.0)) for v in range(agents)]
    return Truth("every agent its own", rm.Clusters(each), agents, rounds)


def one_change(agents: int = 12, rounds: int = 300) -> Truth:
    later = rounds // 2 + 1
    return Truth(
        "one change", rm.Piecewise([(1, bandit(MEANS)), (later, bandit(MEANS[::-1]))]), agents, rounds
    )


def slow_drift(agents: int = 12, rounds: int = 300) -> Truth:
    moving = rm.Trend(bandit(MEANS), to=list(MEANS[::-1]), rounds=rounds)
    return Truth("slow drift", moving, agents, rounds)


def common_shocks(agents: int = 12, rounds: int = 300) -> Truth:
    return Truth("common shocks", bandit(MEANS), agents, rounds, shocks=1.0)


def log_of(values: Array, *, objective: Any = "maximise", unit: str = "", sign: float = 1.0) -> Log:
    """A full log of a table; with sign -1 the table's rewards are recorded as costs."""
    rounds, agents, arms = values.shape
    t, v, k = np.meshgrid(np.arange(rounds), np.arange(agents), np.arange(arms), indexing="ij")
    return Log(
        "log",
        tuple(f"arm{i}" for i in range(arms)),
        tuple(f"agent{i}" for i in range(agents)),
        objective,
        unit,
        t.ravel().astype(np.float64),
        v.ravel().astype(np.int32),
        k.ravel().astype(np.int32),
        sign * values.ravel(),
        True,
    )


def missing(log: Log, share: float, seed: int) -> Log:
    return log.taken(np.random.default_rng(seed).random(len(log.value)) >= share)


def chosen_only(log: Log, seed: int) -> Log:
    """One arm per agent and round: uniform at first, then more and more the best so far (epsilon-greedy)."""
    rounds, agents, arms = int(log.time[-1]) + 1, log.n_agents, log.n_arms
    rng, values = np.random.default_rng(seed), log.value.reshape(rounds, agents, arms)
    sums, counts = np.zeros((agents, arms)), np.zeros((agents, arms))
    picked = np.zeros(values.shape, dtype=bool)
    for t in range(rounds):
        greedy = (log.sign * sums / np.maximum(counts, 1) + np.where(counts == 0, np.inf, 0.0)).argmax(axis=1)
        arm = np.where(rng.random(agents) < 0.3, rng.integers(arms, size=agents), greedy)
        picked[t, np.arange(agents), arm] = True
        sums[np.arange(agents), arm] += values[t, np.arange(agents), arm]
        counts[np.arange(agents), arm] += 1
    return log.taken(picked.ravel())


def write_long(log: Log, path: Path, reward: str = "reward") -> Path:
    assert log.agents is not None
    frame = pl.DataFrame(
        {
            "time": log.time,
            "agent": np.array(log.agents)[log.agent],
            "arm": np.array(log.arms)[log.arm],
            reward: log.value,
        }
    )
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return path


# --- advice evaluated on fresh data ---------------------------------------------------------------------


@dataclass(frozen=True)
class FreshLosses:
    """Loss per request against the own best arm, from the true means, on fresh tables."""

    recommended: Array
    alone: Array
    best: float
    """Mean loss of the candidate that is best on half of the tables, on the other half, both ways."""
    scale: float
    """The mean outcome of the best arm: what 5 % are taken of."""


def evaluate(truth: Truth, advice: Any, fresh: int = 4, first: int = 10_000) -> FreshLosses:
    """Play the recommendation and every finalist on fresh tables."""
    from rumormill.advice.replay import LogProblem

    networks, group_of = advice.networks, advice.model.homogeneity.group_of
    means = expected(truth.source, 0, truth.rounds, truth.agents)
    best = means.max(axis=2)

    def losses(setting: Any) -> Array:
        found = []
        for number in range(fresh):
            values = truth.table(first + number)
            stage = LogProblem(
                values,
                "maximise",
                networks,
                advice.model.moments,
                group_of,
                drifts=False,
                remembers=False,
                seed=np.random.SeedSequence(0),
                levels=advice.known.levels,
            )
            actions, _ = stage.actions_on(setting, values)
            paid_mean = np.take_along_axis(means, actions[:, :, None], axis=2)[:, :, 0]
            found.append(float((best - paid_mean).mean()))
        return np.array(found)

    all_losses = {each.candidate: losses(each.candidate) for each in advice.choice.finals}
    halves = (slice(0, None, 2), slice(1, None, 2))
    others = [
        min(all_losses.values(), key=lambda each: float(each[here].mean()))[there].mean()
        for here, there in (halves, halves[::-1])
    ]
    return FreshLosses(
        all_losses[advice.choice.chosen.candidate],
        all_losses[advice.choice.alone.candidate],
        float(np.mean(others)),
        float(np.abs(best).mean()),
    )
