"""Loss, delay, absence, churn and falsehood: each as its definition says, uniform by uniform."""

import math
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.counter_rng import CHURN, CORRUPT, DELAY, LOSS, uniform
from rumormill.protocol import Conditions, World
from rumormill.seeds import root_seed, seed_word, stream_seed

NETWORK = rm.Network.ring(5)
SOURCE = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0), rm.Gaussian(loc=0.5)])


def conditions(**world: Any) -> Conditions:
    return World(**world).of_trial(NETWORK, SOURCE, 200, stream_seed(root_seed(7), 0))


def arrivals(channel: rm.Imperfect, seed: int) -> dict[tuple[int, int, int, int], int]:
    """(sender, receiver, origin, round of origin) -> the round at whose end the copy arrives."""
    sequence = np.random.SeedSequence(seed)
    carrier = channel.open(NETWORK, sequence)
    found = {}
    for t in range(1, 61):
        for a in range(5):
            for b in NETWORK.neighbours(a).tolist():
                carrier.send(t, a, b, [rm.Message(v, t, a, float(a)) for v in range(3)])
        for b in range(5):
            for m in carrier.deliver(t, b):
                found[m.arm, b, m.origin, m.round] = t
    return found


def late(channel: rm.Imperfect, u: float) -> int:
    if isinstance(channel.delay, int):
        return math.floor(u * (channel.delay + 1))
    _, q, longest = channel.delay
    return min(longest, math.floor(math.log(1 - u) / math.log(1 - q)))


@pytest.mark.parametrize(
    "channel",
    [
        rm.Imperfect(p=0.5),
        rm.Imperfect(p=0.5, per="copy"),
        rm.Imperfect(p=0.7, symmetric=True, delay=3),
        rm.Imperfect(p=0.7, symmetric=True, per="copy", delay=("geometric", 0.4, 5)),
        rm.Imperfect(delay=("geometric", 0.1, 4)),
    ],
    ids=repr,
)
def test_every_copy_arrives_when_its_uniforms_say(channel: rm.Imperfect) -> None:
    seed = 11
    word = seed_word(np.random.SeedSequence(seed))
    expected = {}
    for t in range(1, 61):
        for a in range(5):
            for b in NETWORK.neighbours(a).tolist():
                ends = (min(a, b), max(a, b)) if channel.symmetric else (a, b)
                end = t + late(channel, uniform(word, DELAY, a, b, t))
                for v in range(3):
                    key = (*ends, t) if channel.per == "link" else (*ends, v, t)
                    if uniform(word, LOSS, *key) < channel.p and end <= 60:
                        expected[a, b, v, t] = end
    assert arrivals(channel, seed) == expected


def test_presence_is_what_absences_and_spells_say() -> None:
    here = conditions(absences=((1, 3, 5), (1, 5, 9), (4, 190, 400)), churn=rm.Churn(up=20, down=4))
    expected = np.ones((200, 5), dtype=bool)
    for v in range(5):
        end, spell = 0, 0
        while end < 200:
            mean = 20 if spell % 2 == 0 else 4
            length = 1 + math.floor(
                math.log(1 - uniform(here.seed, CHURN, v, spell)) / math.log(1 - 1 / mean)
            )
            if spell % 2:
                expected[end : end + length, v] = False
            end, spell = end + length, spell + 1
    expected[2:9, 1] = expected[189:, 4] = False
    np.testing.assert_array_equal(here.up(1, 201), expected)
    for first, stop in ((1, 2), (5, 9), (60, 130), (199, 201)):
        np.testing.assert_array_equal(here.up(first, stop), expected[first - 1 : stop - 1])


def test_corruption_is_what_its_uniforms_say() -> None:
    at_origin = conditions(corruption=rm.Corruption(rate=0.3, shift=1.0))
    found = at_origin.corrupt(10, 60)
    assert found.any()
    for t in range(10, 60):
        assert found[t - 10].tolist() == [uniform(at_origin.seed, CORRUPT, v, t) < 0.3 for v in range(5)]
    at_receiver = conditions(corruption=rm.Corruption(rate=0.3, shift=1.0, at="receiver"))
    assert not at_receiver.corrupt(10, 60).any()
    for t in range(10, 60):
        u = uniform(at_receiver.seed, CORRUPT, 2, 3, t)
        assert at_receiver.corrupt_for(2, 3, t) == (u < 0.3)


def test_draws_of_a_law_do_not_depend_on_the_blocks_asked_for() -> None:
    here = conditions(corruption=rm.Corruption(rate=0.3, law=rm.AlphaStable(alpha=1.5, loc=3.0)))
    whole = here.drawn(1, 201)
    again = conditions(corruption=rm.Corruption(rate=0.3, law=rm.AlphaStable(alpha=1.5, loc=3.0)))
    np.testing.assert_array_equal(again.drawn(50, 190), whole[49:189])
    assert again.drawn_for(3, 77) == whole[76, 3]


@pytest.mark.parametrize(
    ("attack", "size", "said"),
    [
        ("promote", None, (0, 2.0, (5.0, -5.0, -5.0))),
        ("flood", None, (0, 1000.0, (5.0, -5.0, -5.0))),
        ("slander", None, (1, -5.0, (5.0, -5.0, 5.0))),
        ("promote", 0.25, (0, 0.25, (5.0, -5.0, -5.0))),
    ],
)
def test_what_liars_say(attack: Any, size: float | None, said: tuple[Any, ...]) -> None:
    lie = rm.Byzantine(agents=[1], attack=attack, size=size).lie(SOURCE)
    assert (lie.arm, lie.reward, lie.means) == said


def test_relays_pass_on_what_was_sent_not_what_was_understood() -> None:
    """On a path of three, everything is falsified for the receiver: by 1, not by 2 after two hops."""
    table = np.zeros((12, 3, 2))
    heard: dict[int, list[float]] = {0: [], 1: [], 2: []}

    class Noting:
        def __init__(self, seat: rm.Seat) -> None:
            self.seat, self.relay = seat, rm.Relay(seat.agent, 2)

        def choose(self, t: int) -> int:
            return 0

        def observe(self, t: int, arm: int, reward: float) -> None:
            self.relay.post(rm.Message(self.seat.agent, t, arm, reward))

        def outgoing(self, t: int) -> list[rm.Message]:
            return self.relay.outgoing(t)

        def receive(self, messages: list[rm.Message]) -> None:
            heard[self.seat.agent] += [m.reward for m in self.relay.accept(messages)]

    corruption = rm.Corruption(rate=1.0, shift=1.0, at="receiver")
    game: dict[str, Any] = {"horizon": 12, "rng": 1, "engine": "reference"}
    rm.simulate(rm.Replay(table, means=[0.0, 1.0]), rm.Network.path(3), Noting, corruption=corruption, **game)
    assert {v: set(said) for v, said in heard.items()} == {0: {1.0}, 1: {1.0}, 2: {1.0}}
    assert [len(said) for said in heard.values()] == [12 + 11, 24, 12 + 11]


@pytest.mark.parametrize(
    ("world", "words"),
    [
        ({"channel": {"type": "lossy", "p": 1.5}}, "channel.p = 1.5"),
        ({"absences": [(5, 1, 2)]}, "there is no agent 5"),
        ({"absences": [(0, 3, 2)]}, "the last round is not before the first"),
        ({"absences": 5}, "a list of \\(agent, first round, last round\\)"),
        ({"outages": None}, "a list of \\(agent, agent, first round, last round\\)"),
        ({"absences": [(0, 3)]}, "a list of \\(agent, first round, last round\\)"),
        ({"outages": [(0, 2, 1, 2)]}, "there is no link between the agents 0 and 2"),
        ({"churn": 3}, "churn = 3 is not allowed"),
        ({"byzantine": rm.Byzantine(agents=[9])}, "there is no agent 9"),
    ],
    ids=lambda value: str(value),
)
def test_worlds_that_cannot_be_are_refused(world: dict[str, Any], words: str) -> None:
    with pytest.raises(rm.InputError, match=words):
        rm.simulate(SOURCE, NETWORK, rm.KMPUCB(gamma=1), horizon=5, rng=1, engine="reference", **world)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rm.Imperfect(per="packet"), "per = 'packet'"),  # type: ignore[arg-type]
        (lambda: rm.Imperfect(delay=-1), "delay = -1"),
        (lambda: rm.Imperfect(delay=("geometric", 0.0, 3)), "delay q = 0.0"),
        (lambda: rm.Imperfect(delay=("uniform", 0.5, 3)), "geometric"),  # type: ignore[arg-type]
        (lambda: rm.Imperfect(delay=("geometric", 1e-300, 3)), "delay q = 1e-300"),
        (lambda: rm.Imperfect(delay=("geometric", 0.5, -1)), "delay D = -1"),
        (lambda: rm.Churn(up=0.5, down=2), "up = 0.5"),
        (lambda: rm.Churn(up=1e17, down=2), "up = 1e\\+17"),
        (lambda: rm.Corruption(rate=0.1), "one of shift, scale and law, not none of them"),
        (lambda: rm.Corruption(rate=0.1, shift=1.0, scale=2.0), "not shift and scale"),
        (lambda: rm.Byzantine(agents=[0], attack="whisper"), "attack = 'whisper'"),  # type: ignore[arg-type]
        (lambda: rm.CentralizedMPUCB(patience=-1), "patience = -1"),
        (lambda: rm.DecentralizedMPUCB(hold=0), "hold = 0"),
        (lambda: rm.DecentralizedMPUCB(discard="RCL"), "discard = 'RCL'"),  # type: ignore[arg-type]
        (lambda: rm.KMPUCB(guard=-1), "guard = -1"),
        (lambda: rm.OriginMedianUCB(spare=0), "spare = 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(make: Any, words: str) -> None:
    with pytest.raises(rm.InputError, match=words):
        make()


@pytest.mark.parametrize("absences", [[], [(0, 2, 3)]])
def test_what_is_no_message_is_told_of_in_one_line(absences: list[tuple[int, int, int]]) -> None:
    class Babbling(rm.Channel):
        def open(self, network: rm.Network, seed: np.random.SeedSequence) -> Any:
            return self

        def send(self, t: int, sender: int, receiver: int, messages: Any) -> None:
            """Nothing is carried."""

        def deliver(self, t: int, receiver: int) -> list[Any]:
            return ["hello"]

    with pytest.raises(rm.ContractError, match="brought 'hello' to agent 0 in round 1"):
        rm.simulate(
            SOURCE,
            NETWORK,
            rm.KMPUCB(gamma=1),
            horizon=5,
            rng=1,
            engine="reference",
            channel=Babbling(),
            absences=absences,
        )
