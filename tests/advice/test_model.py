"""The model's tests against known truth: false alarms, power, groups, dates; a small run and a large one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import (
    LAWS,
    Truth,
    chosen_only,
    common_shocks,
    homogeneous,
    log_of,
    missing,
    one_change,
    own_arms,
    slow_drift,
    two_clusters,
)
from rumormill.advice.model_checks.dependence import check_dependence
from rumormill.advice.model_checks.drift import Drift, check_drift
from rumormill.advice.model_checks.homogeneity import LEVEL, Homogeneity, check_homogeneity, group_agents
from rumormill.advice.reading.log import Log
from rumormill.advice.reward_table import RewardTable, build_reward_table


def table_of(log: Log, seed: int = 0) -> RewardTable:
    return build_reward_table(log, np.random.default_rng(seed))


def examined(log: Log, seed: int = 0) -> tuple[Homogeneity, Drift]:
    table = table_of(log, seed)
    return check_homogeneity(table, np.random.default_rng(seed)), check_drift(
        table, np.random.default_rng(seed)
    )


def homogeneous_logs(count: int, first: int = 0) -> list[Log]:
    """All laws in turn, with holes and chosen arms only among them."""
    logs = []
    for number, law in zip(range(first, first + count), itertools.cycle(LAWS), strict=False):
        log = log_of(homogeneous(law, agents=8 + number % 9, rounds=200 + 20 * (number % 5)).table(number))
        dress = number // len(LAWS) % 3
        logs.append(
            log if dress == 0 else missing(log, 0.3, number) if dress == 1 else chosen_only(log, number)
        )
    return logs


def alarms(logs: list[Log]) -> int:
    found = [examined(log, seed) for seed, log in enumerate(logs)]
    return sum(same.differs or drift.drifts for same, drift in found)


def test_homogeneous_logs_are_called_so() -> None:
    """At two tests of level 1/200, 20 logs give an alarm with probability 0.18, three with 0.0008."""
    assert alarms(homogeneous_logs(20)) <= 2


@pytest.mark.slow
def test_false_alarms_in_500_logs() -> None:
    """At most 2 %. With two tests of level 1/200, more than 10 of 500 happen in 1 % of such runs."""
    assert alarms(homogeneous_logs(500, first=1_000)) <= 10


def close_clusters(seed: int, agents: int = 12, rounds: int = 300) -> Log:
    """Two clusters whose best arms are apart by twice the error of one agent's mean."""
    return log_of(two_clusters(agents, rounds, gap=2 / np.sqrt(rounds)).table(seed))


def finds_two(seed: int, agents: int) -> bool:
    same, _ = examined(close_clusters(seed, agents), seed)
    return same.best_differs and len(same.groups) >= 2


def test_two_close_clusters_are_found() -> None:
    """At a power of 95 % fewer than 9 of 12 have probability 0.0002."""
    assert sum(finds_two(seed, 12) for seed in range(12)) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("agents", [12, 20, 50])
def test_power_for_two_close_clusters(agents: int) -> None:
    assert sum(finds_two(seed, agents) for seed in range(100)) >= 95


def test_groups_are_those_that_were_made() -> None:
    same, drift = examined(log_of(two_clusters().table(3)))
    assert same.groups == (tuple(range(6)), tuple(range(6, 12)))
    assert same.best_of_group == (0, 1)
    assert same.value == pytest.approx(0.5, abs=0.1)
    assert not drift.drifts
    costs, _ = examined(log_of(two_clusters().table(3), objective="minimise", sign=-1.0))
    assert costs.groups == same.groups


def test_every_agent_its_own() -> None:
    same, _ = examined(log_of(own_arms().table(4)))
    assert same.groups == tuple((v,) for v in range(8))
    assert same.best_of_group == tuple(range(8))


def test_levels_that_differ_leave_the_best_arm_alone() -> None:
    """Some agents are slower with every arm: nobody should choose differently for that."""
    values = homogeneous("gaussian").table(5) + 10 * np.arange(12)[None, :, None]
    same, _ = examined(log_of(values))
    assert not same.differs


def test_scales_that_differ_are_seen_but_leave_one_best_arm() -> None:
    values = homogeneous("gaussian").table(5) * (1 + np.arange(12) % 4)[None, :, None]
    same, _ = examined(log_of(values))
    assert same.differs
    assert same.best_of_group == (3,)


def test_one_change_is_found_where_it_is() -> None:
    same, drift = examined(log_of(one_change().table(6)))
    assert drift.drifts
    assert drift.best_changes
    assert drift.at == pytest.approx(0.5, abs=0.03)
    assert drift.period is None
    assert drift.segment_best == (3, 3, 3, 0, 0, 0)
    assert not same.differs


def test_slow_drift_is_found() -> None:
    _, drift = examined(log_of(slow_drift().table(6)))
    assert drift.drifts
    assert drift.best_changes
    assert drift.value > 0.1


def test_seasons_are_found_with_their_length() -> None:
    source = rm.Seasonal(homogeneous("gaussian").source, amplitude=[0.5, 0.0, 0.0, 0.0], period=50)
    _, drift = examined(log_of(Truth("season", source, 12, 300).table(2)))
    assert drift.drifts
    assert drift.period == pytest.approx(1 / 6, abs=0.02)
    assert not drift.best_changes


def test_changes_in_opposite_directions_do_not_cancel() -> None:
    up = rm.Piecewise([(1, rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=0.5)])), (151, _two(1.0, 0.5))])
    down = rm.Piecewise([(1, _two(1.0, 0.5)), (151, rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=0.5)]))])
    source = rm.Clusters([up, down], members=[range(6), range(6, 12)])
    _, drift = examined(log_of(Truth("opposite", source, 12, 300).table(2)))
    assert drift.drifts


def _two(first: float, second: float) -> rm.Bandit:
    return rm.Bandit([rm.Gaussian(loc=first), rm.Gaussian(loc=second)])


def test_common_shocks_are_neither_drift_nor_difference() -> None:
    log = log_of(common_shocks().table(7))
    same, drift = examined(log)
    near = check_dependence(table_of(log))
    assert not same.differs
    assert not drift.drifts
    assert near.shocks
    assert near.common == pytest.approx(0.5, abs=0.1)  # shock and noise have the same variance
    assert not near.remembers


def test_rewards_that_resemble_the_last_ones_are_seen() -> None:
    rng = np.random.default_rng(8)
    noise = rng.standard_normal((600, 6, 3))
    for t in range(1, 600):
        noise[t] = 0.6 * noise[t - 1] + 0.8 * noise[t]
    near = check_dependence(table_of(log_of(noise + np.arange(3))))
    assert near.remembers
    assert near.lag_one == pytest.approx(0.6, abs=0.1)
    assert not near.shocks


def test_a_log_without_agents_is_not_tested() -> None:
    from dataclasses import replace

    log = replace(log_of(homogeneous("gaussian", agents=1).table(1)), agents=None)
    same, _ = examined(log)
    assert not same.tested
    assert not same.differs


def test_groups_by_hand() -> None:
    """Two folds of ten values each; agent 2 gains nothing by leaving the common arm."""
    means = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.9, 0.0]])
    sums, n = np.stack([10 * means] * 2), np.full((2, 3, 3), 10.0)
    groups, arms = group_agents(sums, n, np.full((3, 3), 0.1))
    assert (groups, arms) == (((0, 2), (1,)), (0, 1))


def test_the_level_leaves_room_for_two_tests() -> None:
    assert 2 * LEVEL <= 0.01


def test_what_never_varies_is_the_same_for_everybody() -> None:
    """Rounding once made constants differ between agents, with a warning from the division by no variance."""
    values = np.broadcast_to(np.array([1.1, 2.3]), (120, 3, 2))
    with np.errstate(all="raise"):
        same, drift = examined(log_of(np.ascontiguousarray(values)))
    assert not same.differs
    assert not drift.drifts
