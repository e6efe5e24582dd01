"""Groups whose agents follow different policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.small_games import BANDIT, NETWORK
from rumormill.errors import SlowEngineNotice

SIZE: dict[str, Any] = {"horizon": 40, "trials": 2, "rng": 3, "actions": True, "engine": "reference"}
POLICIES = [rm.KMPUCB(gamma=2), rm.DecentralizedMPUCB(gamma=1), rm.CentralizedMPUCB(gamma=1), rm.RobustUCB()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_group_of_one_policy_is_that_policy(policy: Any) -> None:
    mixed = rm.simulate(BANDIT, NETWORK, {(0, 2): policy, ...: policy}, **SIZE)
    alone = rm.simulate(BANDIT, NETWORK, policy, **SIZE)
    np.testing.assert_array_equal(mixed.actions, alone.actions)
    np.testing.assert_array_equal(mixed.messages, alone.messages)


def test_agents_that_never_talk_are_as_if_alone() -> None:
    """Among message passers, an agent of RobustUCB takes the actions that it takes among its like."""
    ring = rm.Network.ring(8)
    mixed = rm.simulate(BANDIT, ring, {range(3): "robust", ...: rm.KMPUCB(gamma=2)}, **SIZE)
    alone = rm.simulate(BANDIT, ring, "robust", **SIZE)
    assert mixed.actions is not None
    assert alone.actions is not None
    np.testing.assert_array_equal(mixed.actions[:, :, :3], alone.actions[:, :, :3])
    assert (mixed.actions[:, :, 3:] != alone.actions[:, :, 3:]).any()
    assert mixed.label == "Robust + KMP"


def test_groups_stand_beside_policies() -> None:
    policies = {"half": {range(2): "kmp", ...: "robust"}, "all": "kmp"}
    with pytest.warns(SlowEngineNotice, match="2 KMPUCB"):
        found = rm.compare(BANDIT, NETWORK, policies, horizon=20, trials=2, rng=1)
    assert [result.engine for result in found.results.values()] == ["reference", "fast"]


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ({0: "kmp"}, "agent 1 has no policy"),
        ({(0, 1): "kmp", 1: "robust", ...: "kmp"}, "agent 1 is in two groups"),
        ({(0, 99): "kmp", ...: "kmp"}, r"agents = \(0, 99\) is not allowed: numbers from 0 to"),
        ({(): "kmp", ...: "kmp"}, r"agents = \(\) is not allowed"),
        ({1.5: "kmp", ...: "kmp"}, "agents = 1.5 is not allowed"),
    ],
)
def test_wrong_groups(group: Any, said: str) -> None:
    with pytest.raises(rm.InputError, match=said):
        rm.simulate(BANDIT, NETWORK, group, horizon=5, rng=1, engine="reference")


def test_faults_are_refused() -> None:
    with pytest.raises(rm.InputError, match="several policies requires a fault-free channel"):
        rm.simulate(
            BANDIT, NETWORK, {0: "kmp", ...: "robust"}, horizon=5, rng=1, churn=rm.Churn(up=5, down=2)
        )
