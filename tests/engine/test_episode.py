"""Episodes: the same game as `simulate`, round by round, with a view of every agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers.small_games import BANDIT, NETWORK

FAULTS: dict[str, dict[str, Any]] = {
    "none": {},
    "late": {"channel": rm.Imperfect(p=0.7, delay=3)},
    "absent": {"absences": [(0, 3, 8)], "churn": rm.Churn(up=10, down=3)},
    "lies": {"byzantine": rm.Byzantine(agents=(1,))},
}
SEASONS = rm.Seasonal(BANDIT, amplitude=(0.5, 0.2, 0.1)[: BANDIT.n_arms], period=7)


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("bandit", [BANDIT, SEASONS], ids=["fixed", "seasonal"])
def test_it_is_trial_zero_of_simulate(faults: str, bandit: Any) -> None:
    policy = rm.KMPUCB(gamma=2)
    size: dict[str, Any] = {"horizon": 30, "rng": 5, "actions": True, "rewards": True, **FAULTS[faults]}
    result = rm.simulate(bandit, NETWORK, policy, **size)
    episode = rm.Episode(bandit, NETWORK, policy, horizon=30, **FAULTS[faults])
    steps = list(episode.reset(seed=5))
    assert result.actions is not None
    assert result.rewards is not None
    np.testing.assert_array_equal([step.arms for step in steps], result.actions[0])
    np.testing.assert_array_equal([step.rewards for step in steps], result.rewards[0])
    assert sum(step.messages for step in steps) == result.messages[0, -1]
    np.testing.assert_allclose(np.cumsum([step.regret for step in steps]), result.regret[0], atol=1e-9)
    assert [step.done for step in steps] == [False] * 29 + [True]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), agents=st.integers(3, 8), gamma=st.integers(0, 3))
def test_random_networks_and_sizes(seed: int, agents: int, gamma: int) -> None:
    network = {"kind": "erdos_renyi", "n": agents, "p": 0.6}
    policy = rm.DecentralizedMPUCB(gamma=gamma)
    episode = rm.Episode(BANDIT, network, policy, horizon=9)
    arms = [step.arms for step in episode.reset(seed)]
    result = rm.simulate(BANDIT, network, policy, horizon=9, rng=seed, actions=True, engine="reference")
    np.testing.assert_array_equal(arms, result.actions[0])  # type: ignore[index]


def test_agents_know_what_was_sent_within_reach() -> None:
    """On a path of four and a budget of two hops: everything of distance d is d - 1 rounds old."""
    episode = rm.Episode(BANDIT, rm.Network.path(4), rm.DecentralizedMPUCB(gamma=2), horizon=10).reset(1)
    for _ in range(3):
        episode.step()
    known = sorted((message.origin, message.round) for message in episode.known(0))
    assert known == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert len(episode.agents) == 4
    assert episode.in_flight() == []


def test_messages_in_flight_arrive_when_they_said() -> None:
    channel = rm.Imperfect(p=0.6, delay=4)
    episode = rm.Episode(BANDIT, NETWORK, rm.DecentralizedMPUCB(gamma=1), horizon=30, channel=channel).reset(
        2
    )
    for _ in range(10):
        episode.step()
    under_way = episode.in_flight()
    assert under_way
    assert {each.arrives for each in under_way} <= set(range(11, 15))
    for t in range(11, 15):
        episode.step()
        for each in under_way:
            known = {(message.origin, message.round) for message in episode.known(each.receiver)}
            if each.arrives <= t:
                assert (each.message.origin, each.message.round) in known


def test_a_caller_can_impose_arms() -> None:
    episode = rm.Episode(BANDIT, NETWORK, "kmp", horizon=5).reset(1)
    free = episode.step()
    again = rm.Episode(BANDIT, NETWORK, "kmp", horizon=5).reset(1).step({2: 1})
    assert (free.arms == 0).all()
    assert again.arms.tolist() == [1 if v == 2 else 0 for v in range(NETWORK.n_agents)]
    with pytest.raises(rm.ContractError, match="agent 2 chose 99 in round 2"):
        episode.step({2: 99})
    with pytest.raises(rm.InputError, match="agent = 99 is not allowed"):
        episode.step({99: 1})


def test_misuse_is_named() -> None:
    episode = rm.Episode(BANDIT, NETWORK, "kmp", horizon=1)
    assert "not begun" in repr(episode)
    for call in (episode.step, episode.in_flight, lambda: episode.known(0), lambda: episode.agents):
        with pytest.raises(rm.InputError, match=r"call reset\(seed\) first"):
            call()
    episode.reset(3).step()
    assert repr(episode) == f"Episode(round 1 of 1, {NETWORK.n_agents} agents)"
    with pytest.raises(rm.InputError, match="the episode of 1 round is over"):
        episode.step()
    with pytest.raises(rm.InputError, match="bandit is a int"):
        rm.Episode(3, NETWORK, "kmp")  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="rng = None"):
        episode.reset(None)  # type: ignore[arg-type]
