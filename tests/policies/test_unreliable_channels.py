"""Messages that are late, overtake each other or are lost: agents and the oracle still act alike."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers import oracle
from helpers.channels import Unreliable
from helpers.oracle_adapters import Game, actions_of, policy_of
from helpers.strategies import SLOW_TO_DRAW, games
from rumormill.policies.averaging import ConsensusPart
from rumormill.policies.centralized import LeaderPart

MOMENTS = rm.Moments(eps=1.0, u=100.0, rho=1.0)


@pytest.mark.parametrize("policy", ["decentralized", "centralized", "kmp"])
def test_agents_behind_an_unreliable_channel_equal_the_oracle(policy: str) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=SLOW_TO_DRAW)
    @given(games(policies=(policy,), longest=30), st.integers(0, 4), st.sampled_from((0.0, 0.2)))
    def check(game: Game, longest: int, lost: float) -> None:
        table, graph, rules, *_ = game
        made = policy_of(rules)
        channel = Unreliable(longest=longest, lost=lost, salt=len(table))
        actions = actions_of(table, graph, made, channel=channel)
        # A budget beyond the diameter is not cut to it: messages take detours.
        _, gaps, _ = oracle.follow(table, graph, rules, actions, oracle.World(bundles=channel.late))
        assert gaps.max() < 1e-9, np.argwhere(gaps >= 1e-9)[0]

    check()


def test_an_unreliable_channel_that_is_on_time_is_perfect() -> None:
    table = np.random.default_rng(0).standard_cauchy((40, 6, 3))
    for gamma in (0, 1, 3):
        policy = rm.KMPUCB(gamma=gamma, zeta=0.5, moments=MOMENTS)
        graph = nx.cycle_graph(6)
        late = actions_of(table, graph, policy, channel=Unreliable(longest=0))
        np.testing.assert_array_equal(late, actions_of(table, graph, policy))


def test_kmp_keeps_the_row_of_the_newest_origin_round_by_hand() -> None:
    """Not the row that came last: a message of round 4 that comes after one of round 5 changes nothing."""
    agent = rm.KMPUCB(gamma=1, zeta=1e-6, moments=MOMENTS).agent(rm.Seat(agent=0, n_arms=2, neighbours=(1,)))
    for t in (1, 2):
        agent.observe(t, agent.choose(t), 0.0)
        agent.receive([])

    def told(round_: int, *means: float) -> rm.Message:
        # Rows of 90 + round samples: more than the own one or two, and more in later rounds.
        return rm.Message(1, round_, 0, 0.0, tuple((mean, 90.0 + round_) for mean in means))

    agent.choose(3)
    agent.receive([told(3, 0.0, 1.0)])
    assert agent.choose(4) == 1
    assert agent.choose(5) == 1
    agent.receive([told(5, 1.0, 0.0)])
    assert agent.choose(6) == 0
    agent.receive([told(4, 0.0, 1.0)])  # overtaken: its samples count, its rows do not
    assert agent.choose(7) == 0
    assert agent.heard[1].round == 5
    agent.receive([told(7, 0.0, 1.0), told(6, 1.0, 0.0)])  # together, in the wrong order
    assert agent.choose(8) == 1


def test_a_follower_copies_the_newest_leader_action_by_hand() -> None:
    seat = rm.Seat(agent=2, n_arms=2, neighbours=(1,), part=LeaderPart(gamma=2, leader=0, distance=2))
    agent = rm.CentralizedMPUCB(gamma=2, zeta=1e-6, moments=MOMENTS).agent(seat)
    for t in (1, 2):
        agent.observe(t, agent.choose(t), float(t))
        agent.receive([])
    assert agent.choose(3) == 1  # no leader heard of yet: the arm that paid 2
    agent.receive([rm.Message(0, 2, 0, 0.0), rm.Message(1, 3, 1, 0.0)])
    assert agent.choose(4) == 0  # what the leader did, not what a neighbour did later
    agent.receive([rm.Message(0, 4, 1, 0.0), rm.Message(0, 3, 0, 0.0)])
    assert agent.choose(5) == 1
    agent.receive([rm.Message(0, 1, 0, 0.0)])  # overtaken
    assert agent.choose(6) == 1


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5])
def test_a_follower_decides_for_itself_up_to_its_distance_by_hand(distance: int) -> None:
    """Even if a leader's message came too early, a follower d hops away copies from round d + 1 on."""
    seat = rm.Seat(agent=9, n_arms=2, neighbours=(1,), part=LeaderPart(5, leader=0, distance=distance))
    agent = rm.CentralizedMPUCB(gamma=5, zeta=1e-6, moments=MOMENTS).agent(seat)
    for t in (1, 2):
        agent.observe(t, agent.choose(t), float(t))  # arm 1 is better by far
        agent.receive([rm.Message(0, t, 0, 1.0)])  # the leader says arm 0
    chosen = [agent.choose(t) for t in range(3, 8)]
    assert chosen == [1 if t <= distance else 0 for t in range(3, 8)]


def test_consensus_averages_with_the_newest_row_by_hand() -> None:
    """Two messages of one neighbour in one round, in either order: (1 - w) own + w newest, w = 1/4."""
    told = [rm.Message(1, t, 0, 0.0, ((float(8 * t), 1.0), (0.0, 1.0))) for t in (1, 2)]
    for messages in (told, told[::-1]):
        seat = rm.Seat(agent=0, n_arms=2, neighbours=(1,), n_agents=2, part=ConsensusPart(0.25, 0.0))
        agent = rm.ConsensusUCB(moments=MOMENTS).agent(seat)
        agent.observe(2, 0, 4.0)
        agent.receive(messages)
        assert agent.sums == [0.75 * 4 + 0.25 * 16, 0.0]
        assert agent.counts == [1.0, 0.25]


def test_a_consensus_agent_goes_on_from_its_state_with_its_last_message() -> None:
    seat = rm.Seat(agent=0, n_arms=2, neighbours=(1,), n_agents=2, part=ConsensusPart(0.25, 0.0))
    agent, other = (rm.ConsensusUCB(moments=MOMENTS).agent(seat) for _ in range(2))
    assert agent.state()["last"] is None
    agent.observe(1, 0, 4.0)
    other.restore(agent.state())
    assert other.outgoing(1) == agent.outgoing(1) != []


def test_the_plan_tells_every_follower_its_leader_and_distance() -> None:
    """Path of 7, leaders 1 and 5, gamma 2: both have three agents in reach, so the nearest leads."""
    plan = rm.CentralizedMPUCB(gamma=2, leaders=[1, 5]).plan(rm.Network.path(7))
    parts = [plan.part(v) for v in range(7)]
    assert [part.leader for part in parts] == [1, 1, 1, 1, 5, 5, 5]
    assert [part.distance for part in parts] == [1, 0, 1, 2, 1, 0, 1]
    assert {part.gamma for part in parts} == {2}
