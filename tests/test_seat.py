"""A seat holds what a real node would know, and an agent can be born from one outside any simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.engine.reference import seats
from rumormill.policies.averaging import ConsensusPart
from rumormill.policies.centralized import LeaderPart
from rumormill.policies.decentralized import CliquePart
from rumormill.policies.message_passing_policy import HopPart
from rumormill.seeds import private_generator

MOMENTS = rm.Moments(eps=0.8, u=4.0, rho=3.5)
BANDIT = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in (0.2, 0.9, 0.5)])


def seat(agent: int, part: Any = None, **more: Any) -> rm.Seat:
    """One of two linked nodes that know each other and little else."""
    return rm.Seat(
        agent=agent,
        n_arms=3,
        neighbours=(1 - agent,),
        rng=np.random.default_rng(agent),
        moments=MOMENTS,
        part=part,
        **more,
    )


BORN = [
    (rm.RobustUCB(), None, {}),
    (rm.KMPUCB(gamma=1), None, {}),
    (rm.KMPUCB(), HopPart(1), {}),
    (rm.DecentralizedMPUCB(gamma=1, clique_filter=False), None, {}),
    (rm.DecentralizedMPUCB(), CliquePart(1, frozenset({0, 1})), {}),
    (rm.CentralizedMPUCB(), LeaderPart(1, leader=0, distance=1), {}),
    (rm.ConsensusUCB(), ConsensusPart(weight=0.5, epsilon=0.0), {"n_agents": 2}),
]


@pytest.mark.parametrize(("policy", "part", "more"), BORN, ids=lambda x: type(x).__name__)
def test_agents_are_born_without_a_simulator(policy: rm.Policy, part: Any, more: dict[str, Any]) -> None:
    """Two agents, messages handed over by hand, no horizon: what a live node does."""
    agents = [policy.agent(seat(v, part, **more)) for v in range(2)]
    chance, pulled = np.random.default_rng(3), set()
    for t in range(1, 60):
        for agent in agents:
            arm = agent.choose(t)
            agent.observe(t, arm, float(chance.standard_normal() + arm))
            pulled.add(arm)
        sent = [list(agent.outgoing(t)) for agent in agents]
        agents[0].receive(sent[1])
        agents[1].receive(sent[0])
    assert pulled == {0, 1, 2}


@pytest.mark.parametrize(
    ("policy", "given", "words"),
    [
        (rm.DecentralizedMPUCB(gamma=1), None, "is no CliquePart"),
        (rm.CentralizedMPUCB(gamma=1), HopPart(1), "is no LeaderPart"),
        (rm.KMPUCB(), None, "is no HopPart"),
        (rm.ConsensusUCB(), ConsensusPart(0.5, 0.0), "must know how many agents"),
        (rm.RobustUCB(confidence="anytime"), None, "must know how many agents"),
    ],
)
def test_what_an_agent_needs_and_does_not_get(policy: rm.Policy, given: Any, words: str) -> None:
    with pytest.raises(rm.InputError, match=words):
        policy.agent(seat(0, given))


def test_without_moments_a_robust_agent_says_so() -> None:
    with pytest.raises(rm.InputError, match="agent 0 has no moment bounds: give moments="):
        rm.RobustUCB().agent(rm.Seat(agent=0, n_arms=2))
    assert rm.RobustUCB(moments=MOMENTS).agent(rm.Seat(agent=0, n_arms=2)).choose(1) == 0


def test_a_seat_has_these_fields_and_no_others() -> None:
    names = [field.name for field in fields(rm.Seat)]
    assert names == [
        "agent",
        "n_arms",
        "neighbours",
        "rng",
        "moments",
        "horizon",
        "n_agents",
        "prior",
        "tries",
        "part",
    ]
    assert {name for name in dir(rm.Seat) if not name.startswith("_")} - set(names) == {
        "require_agents",
        "require_moments",
        "require_part",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"agent": -1}, "agent = -1"),
        ({"n_arms": 0}, "n_arms = 0"),
        ({"neighbours": 3}, "neighbours = 3"),
        ({"neighbours": ("a",)}, "neighbour = 'a'"),
        ({"rng": 7}, "rng = 7"),
        ({"moments": 2.0}, "moments = 2.0"),
        ({"horizon": 0}, "horizon = 0"),
        ({"n_agents": 1.5}, "n_agents = 1.5"),
        ({"problem": 1}, "problem is unknown"),
    ],
)
def test_bad_seats(given: dict[str, Any], words: str) -> None:
    with pytest.raises(rm.InputError, match=words):
        rm.Seat(**{"agent": 0, "n_arms": 2, **given})


def test_the_generator_draws_what_its_seed_says_and_hides_it() -> None:
    """Who could read the seed could draw the rewards of the trial."""
    seed = np.random.SeedSequence(7, spawn_key=(0, 1, 4))
    hidden, open_ = private_generator(seed), np.random.default_rng(seed)
    assert hidden.random(50).tolist() == open_.random(50).tolist()
    behind = hidden.bit_generator.seed_seq
    assert isinstance(behind, np.random.SeedSequence)
    assert behind.entropy != 7
    assert behind.spawn_key == ()
    other = private_generator(np.random.SeedSequence(7, spawn_key=(0, 1, 5)))
    assert hidden.spawn(1)[0].random() != other.spawn(1)[0].random()


# --- cheats ---------------------------------------------------------------------------------------------


class Cheat:
    """Sends nothing and pulls what it is told; subclasses get to know more than they should."""

    def __init__(self, place: rm.Seat) -> None:
        self.arms = place.n_arms

    def choose(self, t: int) -> int:
        return t % self.arms

    def observe(self, t: int, arm: int, reward: float) -> None: ...
    def outgoing(self, t: int) -> list[rm.Message]:
        return []

    def receive(self, messages: Sequence[rm.Message]) -> None: ...


@dataclass(frozen=True)
class WholePlan:
    network: rm.Network

    def part(self, agent: int) -> Any:
        return self


@dataclass(frozen=True)
class GivesTheNetwork(rm.Policy):
    def plan(self, network: rm.Network) -> WholePlan:
        return WholePlan(network)

    def agent(self, seat: rm.Seat) -> Cheat:
        return Cheat(seat)


@dataclass(frozen=True)
class InAClosure(GivesTheNetwork):
    def plan(self, network: rm.Network) -> Any:
        @dataclass(frozen=True)
        class Whole:
            def part(self, agent: int) -> Any:
                return {"ask": [lambda: network.n_agents]}

        return Whole()


class Remembers(rm.Policy):
    """Keeps what it saw while planning, where its agents find it."""

    def plan(self, network: rm.Network) -> Any:
        self.seen = network
        return super().plan(network)

    def agent(self, seat: rm.Seat) -> Cheat:
        made = Cheat(seat)
        made.boss = self  # type: ignore[attr-defined]
        return made


class Club(rm.Policy):
    """All agents know each other."""

    def __init__(self) -> None:
        self.members: list[Cheat] = []

    def agent(self, seat: rm.Seat) -> Cheat:
        made = Cheat(seat)
        self.members.append(made)
        made.club = self.members  # type: ignore[attr-defined]
        return made


class Clairvoyant(Cheat):
    """Knows the means of the checker's own bandit by heart."""

    def __init__(self, place: rm.Seat) -> None:
        super().__init__(place)
        self.means = np.array([0.1, 0.8, 0.4])


@pytest.mark.parametrize(
    ("policy", "secret"),
    [
        (GivesTheNetwork(), r"agent 0 see the network, through seat\.part\.network"),
        (InAClosure(), r"the network, through seat\.part\['ask'\]\[0\]'s closure"),
        (Remembers(), r"the network, through agent\.boss\.seen"),
        (Club(), "another agent, through agent.club"),
        (Clairvoyant, "the means, through agent.means"),
    ],
    ids=lambda x: getattr(x, "__name__", type(x).__name__),
)
def test_who_knows_too_much_is_caught(policy: Any, secret: str) -> None:
    with pytest.raises(rm.ContractError, match=secret):
        rm.checks.check_policy(policy)


def test_an_agent_that_knows_only_its_seat_passes() -> None:
    rm.checks.check_policy(Cheat)


def test_no_attribute_of_a_seat_leads_to_the_means() -> None:
    policy, network = rm.KMPUCB(gamma=1), rm.Network.ring(5)
    for place in seats(policy, policy.plan(network), BANDIT, network, 50, np.random.SeedSequence(3)):
        text = repr([getattr(place, name) for name in dir(place) if not name.startswith("__")])
        assert not any(str(mean) in text for mean in BANDIT.means.tolist())
