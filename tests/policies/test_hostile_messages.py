"""What arrives is looked at before it is believed: hostile messages are counted and dropped, never more."""

import math
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from msgspec import structs

import rumormill as rm
from rumormill.counter_rng import DISCARD, key_of, key_with, uniform
from rumormill.engine.reference import Game, seats
from rumormill.policies.averaging import ConsensusPart
from rumormill.policies.centralized import LeaderPart
from rumormill.policies.decentralized import CliquePart
from rumormill.policies.forgetting import Forget
from rumormill.policies.message_passing_policy import HopPart
from rumormill.protocol import PerfectCarrier, Relay
from rumormill.protocol.message import Heard, Line, SentRound, checked_rows

MOMENTS = rm.Moments(eps=1.0, u=100.0, rho=1.0)
PLAIN: dict[str, Any] = {"gamma": 1, "zeta": 1e-6, "moments": MOMENTS}
K, NOW = 2, 10
ROWS = ((0.5, 3.0), (0.25, 4.0))
# Two neighbours, each of whom hears three agents, itself included.
REACH: dict[str, Any] = {"group": 3, "origins": {1: 3, 2: 3}, "delay": 2}


def seat(part: Any) -> rm.Seat:
    return rm.Seat(agent=0, n_arms=K, neighbours=(1, 2), n_agents=5, part=part)


def agents() -> list[Any]:
    """One of every family, in round 10."""
    made: list[Any] = [
        rm.DecentralizedMPUCB(clique_filter=False, **PLAIN).agent(seat(CliquePart(1, None, **REACH))),
        rm.DecentralizedMPUCB(hold=4, clique_filter=False, **PLAIN).agent(seat(CliquePart(1, None, **REACH))),
        rm.CentralizedMPUCB(**PLAIN).agent(seat(LeaderPart(1, 1, 1, **REACH))),
        rm.KMPUCB(**PLAIN).agent(seat(HopPart(1, **REACH))),
        rm.KMPUCB(guard=1, **PLAIN).agent(seat(HopPart(1, **REACH))),
        rm.OriginMedianUCB(**PLAIN).agent(seat(HopPart(1, **REACH))),
        rm.ConsensusUCB(moments=MOMENTS).agent(seat(ConsensusPart(0.25, 1.0))),
    ]
    for agent in made:
        for t in range(1, NOW + 1):
            agent.observe(t, agent.choose(t), 0.5)
            if t < NOW:
                agent.receive([])
    return made


def rows_of(agent: Any) -> Any:
    return ROWS if agent.validator.rows else ()


def plain(agent: Any) -> Any:
    """All that the agent knows, but how much it refused."""
    state = agent.state()
    if "relay" in state:
        state["relay"] = {**state["relay"], "refused": 0}
    return state


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"origin": 3}, "not in reach"),
        ({"origin": 77}, "there is no such agent"),
        ({"origin": -1}, "there is no such agent"),
        ({"arm": K}, "there is no such arm"),
        ({"arm": -1}, "there is no such arm"),
        ({"arm": 0.5}, "an arm is a whole number"),
        ({"reward": math.nan}, "no number"),
        ({"reward": math.inf}, "not finite"),
        ({"reward": -1e101}, "beyond all measure"),
        ({"reward": "1"}, "no number"),
        ({"reward": None}, "no number"),
        ({"round": NOW + 1}, "of the future"),
        ({"round": 0}, "before the first round"),
        ({"round": "10"}, "no number"),
        ({"origin": [1]}, "no number"),
        ({"rows": ((math.nan, 1.0), (0.0, 1.0))}, "no number"),
        ({"rows": ((-math.inf, 1.0), (0.0, 1.0))}, "not finite"),
        ({"rows": ((0.0, math.inf), (0.0, 1.0))}, "not finite"),
        ({"rows": ((0.0, -1.0), (0.0, 1.0))}, "fewer than none"),
        ({"rows": ((0.0, 1.0),)}, "one row for two arms"),
        ({"rows": ((0.0, 1.0, 2.0), (0.0, 1.0))}, "no pair"),
        ({"rows": (("a", 1.0), (0.0, 1.0))}, "no number"),
    ],
    ids=lambda value: str(value),
)
def test_a_hostile_message_is_counted_and_changes_nothing(change: dict[str, Any], why: str) -> None:
    for agent in agents():
        good = {"origin": 1, "round": NOW, "arm": 1, "reward": 0.5, "rows": rows_of(agent)}
        before = plain(agent)
        agent.receive([rm.Message(**{**good, **change})])
        assert agent.refused == 1, (agent, why)
        after = plain(agent)
        assert after == before, (agent, why)


def test_a_message_that_is_too_old_is_refused() -> None:
    """One hop and a delay of at most two rounds: ages 0, 1 and 2. Averages know no delay at all."""
    for agent in agents()[:-1]:
        for age, refused in ((2, 0), (3, 1)):
            agent.receive([rm.Message(1, NOW - age, 1, 0.5, rows_of(agent))])
            assert agent.refused == refused


def test_a_sound_message_is_believed_among_hostile_ones() -> None:
    for agent in agents():
        rows = rows_of(agent)
        sound = rm.Message(1, NOW, 1, 0.5, rows)
        hostile = [rm.Message(3, NOW, 1, 0.5, rows), rm.Message(2, NOW, 1, math.nan, rows), sound]
        hostile += [rm.Message("x", NOW, 0, 0.0, rows), rm.Message(1, None, 0, 0.0, rows)]  # type: ignore[arg-type]
        before = plain(agent)
        agent.receive(hostile)
        assert agent.refused == 4
        assert plain(agent) != before


def test_rows_may_not_claim_more_than_can_be_known() -> None:
    """In round r an agent that hears three, itself included, has at most 3 r samples of an arm.

    What such a message says of a pull may be true.
    """
    for claim, refused in ((3.0 * NOW, 0), (3.0 * NOW + 1, 1)):
        agent = rm.KMPUCB(**PLAIN).agent(seat(HopPart(1, **REACH)))
        for t in range(1, NOW + 1):
            agent.choose(t)
        agent.receive([rm.Message(1, NOW, 1, 0.5, ((0.5, claim), (0.5, 0.0)))])
        assert agent.refused == refused
        assert (1 in agent.heard) == (not refused)
        assert sum(n for _, n in agent.samples.estimates(NOW)) == 1


def test_what_is_refused_is_neither_passed_on_nor_remembered() -> None:
    agent = rm.DecentralizedMPUCB(**{**PLAIN, "gamma": 3}, clique_filter=False).agent(
        seat(CliquePart(3, None, **REACH))
    )
    agent.observe(1, agent.choose(1), 0.0)
    agent.outgoing(1)
    agent.receive([rm.Message(1, 1, 9, 0.0)])
    agent.observe(2, agent.choose(2), 0.0)
    assert [m.origin for m in agent.outgoing(2)] == [0]
    agent.receive([rm.Message(1, 1, 0, 0.0)])  # the true one comes later
    agent.observe(3, agent.choose(3), 0.0)
    assert [m.origin for m in agent.outgoing(3)] == [1, 0]


def test_hold_keeps_samples_back_by_hand() -> None:
    """hold = 3: a sample of round 1 counts from the end of round 3 on, however early it came."""
    agent: Any = rm.DecentralizedMPUCB(hold=3, clique_filter=False, **PLAIN).agent(
        rm.Seat(agent=0, n_arms=K, neighbours=(1, 2))
    )
    counts = []
    for t in range(1, 6):
        agent.observe(t, agent.choose(t), 0.0)
        agent.receive([rm.Message(1, t, 0, 1.0), rm.Message(2, t, 1, 1.0)])
        counts.append(sum(n for _, n in agent.samples.estimates(max(t, 2))))
    assert counts == [1, 2, 3 + 2, 4 + 4, 5 + 6]


def test_discarding_draws_by_origin_and_round() -> None:
    """On a star the centre hears four, every leaf one: the centre uses a quarter, leaves use everything."""
    policy = rm.DecentralizedMPUCB(discard="RCL-LF", **PLAIN)
    plan = policy.plan(rm.Network.star(5))
    seed = 12345
    for v, share in ((0, 0.25), (1, 1.0)):
        part = replace(plan.part(v), coins=key_with(key_of(seed, DISCARD), v))
        assert part.keep == share
        assert part.origins is not None
        agent: Any = policy.agent(rm.Seat(agent=v, n_arms=K, part=part))
        used = 0
        for t in range(1, 201):
            agent.choose(t)
            told = [rm.Message(w, t, 0, 0.0) for w in part.origins]
            agent.receive(told)
            used += sum(uniform(seed, DISCARD, v, w, t) < share for w in part.origins)
        assert sum(n for _, n in agent.samples.estimates(200)) == used


def test_a_round_that_comes_twice_or_late_counts_once() -> None:
    agent: Any = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN).agent(seat(CliquePart(1, None, **REACH)))
    line, counts = Line([1, 2]), []
    for number, now in ((1, 1), (1, 1), (3, 3), (3, 3), (2, 3), (4, 4), (5, 5), (5, 5)):
        agent.choose(now)
        sent = SentRound.of([[rm.Message(v, number, 0, 0.5)] for v in range(3)], number, K)
        assert sent is not None
        agent.receive(Heard(sent, line))
        counts.append(sum(n for _, n in agent.samples.estimates(now)))
    assert counts == [2, 2, 4, 4, 6, 8, 10, 10]


class OneByOne(PerfectCarrier):
    """Perfect too, but another type: every receiver looks at each message."""


def odd_batches(m: rm.Message) -> list[Any]:
    """What may be sent in place of a message: mostly what no honest agent sends."""
    changes: list[dict[str, Any]] = [
        {"arm": bool(m.arm)},
        {"arm": K},
        {"arm": -1},
        {"round": 1},
        {"round": float(m.round)},
        {"origin": 3},
        {"origin": float(m.origin)},
        {"reward": math.nan},
        {"reward": 1e101},
        {"reward": 7},
        {"rows": ((0.0, 1e9), (0.0, 1.0))},
        {"rows": checked_rows(((0.0, 1e9), (0.0, 1.0)))},
        {"rows": checked_rows(((0.0, 1.0),))},
    ]
    return [[], [m, m], *([structs.replace(m, **each)] for each in changes)]


class Odd:
    """An agent that sends something odd in one round."""

    def __init__(self, inner: Any, which: int) -> None:
        self.inner, self.which = inner, which
        self.choose, self.observe = inner.choose, inner.observe
        self.receive, self.state = inner.receive, inner.state

    def outgoing(self, t: int) -> Any:
        sent = list(self.inner.outgoing(t))
        return odd_batches(sent[0])[self.which] if sent and t == 7 else sent


ODDITIES = len(odd_batches(rm.Message(0, 1, 0, 0.0)))


@pytest.mark.parametrize(
    "policy",
    [
        rm.DecentralizedMPUCB(clique_filter=False, **PLAIN),
        rm.DecentralizedMPUCB(**PLAIN),
        rm.DecentralizedMPUCB(hold=2, **PLAIN),
        rm.CentralizedMPUCB(**PLAIN),
        rm.KMPUCB(**PLAIN),
        rm.KMPUCB(guard=1, **PLAIN),
        rm.HTHMUCB(**PLAIN),
        rm.KMPUCB(forget=Forget(window=20), **PLAIN),
        rm.KMPUCB(quiet=0.5, **PLAIN),
        rm.Default(gamma=1),
    ],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize("who", [range(4, 5), range(9)], ids=["one", "all"])
def test_a_round_checked_at_once_is_what_its_messages_are_one_by_one(policy: rm.Policy, who: range) -> None:
    """Nine agents, some of them odd once: all know the same, and refused as many."""
    network, rounds = rm.Network.erdos_renyi(9, 0.5, rng=2), 9
    source, seed = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=0.5)]), np.random.SeedSequence(3)
    plan = policy.plan(network)

    def game(carrier: PerfectCarrier, which: int) -> Game:
        agents: list[Any] = [policy.agent(x) for x in seats(policy, plan, source, network, rounds, seed)]
        agents = [Odd(agent, which) if v in who else agent for v, agent in enumerate(agents)]
        return Game(agents, network, source.stream(seed, 9, rounds), carrier, rounds)

    for which in range(ODDITIES):
        whole, single, at_once = game(PerfectCarrier(), which), game(OneByOne(), which), 0
        for t in range(1, rounds + 1):
            with mock.patch.object(Relay, "accept", autospec=True, side_effect=Relay.accept) as accept:
                assert whole.play_round(t).arms == single.play_round(t).arms
            at_once += sum(type(call.args[1]) is Heard for call in accept.call_args_list)
            if t < 7:  # looking at a state writes down what is left to be written
                continue
            for one, other in zip(whole.agents, single.agents, strict=True):
                assert one.state() == other.state(), (which, t)  # type: ignore[attr-defined]
        assert at_once >= 9
