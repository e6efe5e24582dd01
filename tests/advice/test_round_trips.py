"""Round-trip times as they are recorded: own nearest mirrors, days, waits that last, shocks, timeouts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.synthetic_logs import log_of
from rumormill.advice.advise import advise
from rumormill.advice.problem import Candidate
from rumormill.advice.replay import LogProblem
from rumormill.advice.report_text import LogAdvice, recommendation

Array = NDArray[np.float64]
TIMEOUT = 5.0


def round_trips(seed: int, clients: int, mirrors: int, slices: int) -> Array:
    """Seconds (slice, client, mirror), everything that is known to happen to them at once."""
    rng = np.random.default_rng(seed)
    away = np.linalg.norm(rng.random((clients, 1, 2)) - rng.random((1, mirrors, 2)), axis=2)
    detours = np.exp(0.25 * rng.standard_normal((clients, mirrors)))
    base = 0.02 + 0.25 * away * detours + 0.02 * rng.random((clients, 1))
    spread = 0.05 + 0.3 * rng.random((clients, mirrors)) * rng.random((1, mirrors))
    lasting, noise = rng.uniform(0.2, 0.8), rng.standard_normal((slices, clients, mirrors))
    for t in range(1, slices):
        noise[t] = lasting * noise[t - 1] + np.sqrt(1 - lasting**2) * noise[t]
    phase = 2 * np.pi * (np.arange(slices) / slices * rng.integers(1, 8) + rng.random())
    day = 1 + 0.15 * np.sin(phase)[:, None, None] * rng.random((1, 1, mirrors))
    of_mirror = np.maximum(0, rng.standard_normal((slices, 1, mirrors)) - 1.5) * rng.random((1, 1, mirrors))
    of_all = np.maximum(0, rng.standard_normal((slices, 1, 1)) - 2)
    values = base * day * np.exp(spread * noise + 1.5 * of_mirror + 0.4 * of_all)
    values += np.where(rng.random(values.shape) < 0.02, 0.05 * rng.pareto(1.5, values.shape), 0.0)
    return np.where(rng.random(values.shape) < 0.003, TIMEOUT, np.minimum(values, TIMEOUT))


def paid(advice: LogAdvice, values: Array, setting: Candidate, beginnings: int = 6) -> Array:
    """The mean on the recorded table in its own order, and begun at other times."""
    stage = LogProblem(
        values,
        "minimise",
        advice.networks,
        advice.model.moments,
        advice.model.homogeneity.group_of,
        drifts=False,
        remembers=True,
        seed=np.random.SeedSequence(0),
        levels=advice.known.levels,
    )
    found = []
    for begin in range(beginnings):
        table = np.roll(values, -begin * len(values) // beginnings, axis=0)
        actions, _ = stage.actions_on(setting, table)
        found.append(np.take_along_axis(table, actions[:, :, None], axis=2).mean())
    return np.array(found)


def check(seed: int, clients: int, mirrors: int, slices: int) -> None:
    values = round_trips(seed, clients, mirrors, slices)
    advice = advise(log_of(values, objective="minimise", unit="s"), seed=seed)
    assert recommendation(advice)[0].startswith("The arms are not the same for all agents")
    recommended = paid(advice, values, advice.choice.chosen.candidate)
    alone = paid(advice, values, advice.choice.alone.candidate)
    assert recommended[0] <= 1.05 * alone[0]
    assert recommended.mean() <= 1.05 * alone.mean()
    assert recommended[0] < values.mean(axis=(0, 1)).min()  # always the best common mirror


def test_round_trips_are_not_made_longer() -> None:
    check(1, 16, 4, 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_round_trips_are_not_made_longer(seed: int) -> None:
    check(seed, 24 + 2 * seed, 4 + seed % 3, 300 + 20 * seed)
