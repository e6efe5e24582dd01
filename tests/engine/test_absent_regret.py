"""Regret of arms that vary, from actions given by hand: who does not pull loses nothing."""

from __future__ import annotations

import numpy as np
import pytest

import rumormill as rm
from rumormill.engine import result
from rumormill.engine.result import regrets

# Arm 0 pays 1 in rounds 1-2 and 0 later, arm 1 pays 0 and then 3; arm 2 always 0.5.
FIRST = rm.Bandit([rm.Gaussian(loc=mean) for mean in (1.0, 0.0, 0.5)])
LATER = rm.Bandit([rm.Gaussian(loc=mean) for mean in (0.0, 3.0, 0.5)])
CHANGES = rm.Piecewise([(1, FIRST), (3, LATER)])
# Agent 0 pulls always, agent 1 is absent in rounds 2 and 4, agent 2 in every round.
ACTIONS = np.array([[0, 2, -1], [1, -1, -1], [1, 0, -1], [2, -1, -1]])


def test_who_does_not_pull_has_no_regret() -> None:
    own, common = regrets(ACTIONS, CHANGES, np.array([2, 4]))
    assert own.tolist() == [[1.0, 0.5, 0.0], [3.5, 3.5, 0.0]]
    # The pulls of agents 0 and 1 would have paid 3, 9 and 3 with arms 0, 1 and 2: arm 1 is the common one.
    assert common.tolist() == [[-1.0, -0.5, 0.0], [1.5, 2.5, 0.0]]


def test_looking_at_fewer_rounds_at_a_time_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = regrets(ACTIONS, CHANGES, np.array([1, 3, 4]))
    monkeypatch.setattr(result, "ROUNDS", 1)
    for before, after in zip(whole, regrets(ACTIONS, CHANGES, np.array([1, 3, 4])), strict=True):
        np.testing.assert_array_equal(before, after)


def test_costs_count_the_other_way() -> None:
    costs = rm.Piecewise(
        [
            (1, rm.Bandit([rm.Gaussian(loc=mean) for mean in (1.0, 4.0)], objective="minimise")),
            (2, rm.Bandit([rm.Gaussian(loc=mean) for mean in (5.0, 4.5)], objective="minimise")),
        ]
    )
    own, common = regrets(np.array([[0, 1], [0, -1]]), costs, np.array([2]))
    assert own.tolist() == [[0.5, 3.0]]
    # Arm 0 costs agents 0 and 1 together 7, arm 1 12.5: the common one is arm 0.
    assert common.tolist() == [[0.0, 3.0]]
