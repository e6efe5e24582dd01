"""The public conformance checks pass every built-in and catch every kind of cheat."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import rumormill as rm
from rumormill.estimators.base import Theory

ESTIMATORS = [rm.TrimmedMean(), rm.MedianOfMeans(), rm.Catoni(), rm.EmpiricalMean()]
POLICIES = [rm.ConsensusUCB()] + [
    policy(estimator=estimator, **extra)
    for estimator in ESTIMATORS
    for policy, extra in (
        (rm.DecentralizedMPUCB, {"gamma": 2}),
        (rm.DecentralizedMPUCB, {"gamma": 1, "clique_filter": False, "confidence": "anytime"}),
        (rm.CentralizedMPUCB, {"gamma": 1}),
        (rm.CentralizedMPUCB, {"gamma": 2, "leaders": "dominating"}),
        (rm.KMPUCB, {"gamma": 2, "c": 0.5}),
        (rm.RobustUCB, {}),
    )
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{type(p).__name__}")
def test_built_in_policies_pass(policy: Any) -> None:
    rm.checks.check_policy(policy)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, rm.TrimmedMean(variant="literal")], ids=repr)
def test_built_in_estimators_pass(estimator: Any) -> None:
    rm.checks.check_estimator(estimator)


class Greedy:
    """A sound policy: the best average of what it saw and heard from neighbours, now and then any arm."""

    def __init__(self, seat: Any) -> None:
        self.seat = seat
        self.sums, self.counts = np.zeros(seat.n_arms), np.zeros(seat.n_arms)
        self.known = set()  # type: ignore[var-annotated]
        self.message = None

    def choose(self, t: Any) -> Any:
        if t <= self.seat.n_arms:
            return t - 1
        if self.seat.rng.random() < 0.1:
            return int(self.seat.rng.integers(self.seat.n_arms))
        return int(np.argmax(self.sums / self.counts))

    def add(self, message: Any) -> None:
        if message not in self.known:
            self.known.add(message)
            self.sums[message.arm] += message.reward
            self.counts[message.arm] += 1

    def observe(self, t: Any, arm: Any, reward: Any) -> None:
        self.message = rm.Message(self.seat.agent, t, arm, reward)  # type: ignore[assignment]
        self.add(self.message)

    def outgoing(self, t: Any) -> Any:
        return [self.message]

    def receive(self, messages: Any) -> None:
        for message in sorted(messages, key=lambda m: (m.round, m.origin)):
            self.add(message)


def test_a_sound_own_policy_passes() -> None:
    rm.checks.check_policy(Greedy)


class Repeats(Greedy):
    """Sends its last message once more, honestly; those who heard it know it."""

    def outgoing(self, t: Any) -> Any:
        last, self.last = getattr(self, "last", self.message), self.message
        return [self.message, last]


def test_sending_the_own_past_again_is_no_forgery() -> None:
    rm.checks.check_policy(Repeats)


class OutOfRange(Greedy):
    def choose(self, t: Any) -> Any:
        return self.seat.n_arms if t == 7 else super().choose(t)


class Negative(Greedy):
    def choose(self, t: Any) -> Any:
        return -1 if t == 7 else super().choose(t)


class NotANumber(Greedy):
    def choose(self, t: Any) -> Any:
        return 0.5


class GlobalRandomness(Greedy):
    def choose(self, t: Any) -> Any:
        # What a careless author writes: a generator that the seed of the game does not govern.
        return int(np.random.default_rng().integers(self.seat.n_arms))


class SharedBetweenAgents(Greedy):
    """All agents of all games look at one table."""

    table: ClassVar = {}  # type: ignore[var-annotated]

    def observe(self, t: Any, arm: Any, reward: Any) -> None:
        super().observe(t, arm, reward)
        self.table.setdefault(arm, []).append(reward)

    def choose(self, t: Any) -> Any:
        if t <= self.seat.n_arms:
            return t - 1
        return max(self.table, key=lambda arm: np.mean(self.table[arm]))


class SharedBetweenGames(Greedy):
    """A counter that only two games at once can disturb: every game starts it anew."""

    turn: ClassVar = [0]

    def __init__(self, seat: Any) -> None:
        super().__init__(seat)
        self.turn[0] = 0

    def choose(self, t: Any) -> Any:
        self.turn[0] += 1
        return self.turn[0] // self.seat.n_agents % self.seat.n_arms


class OrderDependent(Greedy):
    """Follows whoever comes first."""

    def receive(self, messages: Any) -> None:
        self.first = messages[0].arm if messages else 0

    def choose(self, t: Any) -> Any:
        return t - 1 if t <= self.seat.n_arms else (self.first + self.seat.agent) % self.seat.n_arms


class CountsCopies(Greedy):
    """Adds every copy of a message."""

    def add(self, message: Any) -> None:
        self.sums[message.arm] += message.reward
        self.counts[message.arm] += 1


class ForgedReward(Greedy):
    def outgoing(self, t: Any) -> Any:
        return [rm.Message(self.seat.agent, t, self.message.arm, self.message.reward + 1.0)]  # type: ignore[attr-defined]


class ForgedArm(Greedy):
    def outgoing(self, t: Any) -> Any:
        return [rm.Message(self.seat.agent, t, 1 - min(self.message.arm, 1), self.message.reward)]  # type: ignore[attr-defined]


class Impersonator(Greedy):
    def outgoing(self, t: Any) -> Any:
        return [rm.Message((self.seat.agent + 1) % self.seat.n_agents, t, 0, 9.0)]


class FromTheFuture(Greedy):
    def outgoing(self, t: Any) -> Any:
        return [rm.Message(self.seat.agent, t + 1, 0, 9.0)]


class NoMessage(Greedy):
    def outgoing(self, t: Any) -> Any:
        return [(self.seat.agent, t)]


class NoList(Greedy):
    def outgoing(self, t: Any) -> Any:
        return None


class Incomplete:
    def __init__(self, seat: Any) -> None:
        pass

    def choose(self, t: Any) -> Any:
        return 0


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        (OutOfRange, r"agent 0 chose 3 in round 7: an arm is a whole number 0\.\.2"),
        (Negative, r"agent 0 chose -1 in round 7"),
        (NotANumber, r"agent 0 chose 0\.5 in round 1"),
        (GlobalRandomness, r"GlobalRandomness did not repeat itself with the same seed: agent \d, round \d+"),
        (SharedBetweenAgents, r"SharedBetweenAgents did not repeat itself with the same seed"),
        (SharedBetweenGames, r"SharedBetweenGames shares state between two games"),
        (OrderDependent, r"OrderDependent minded the order of messages within a round"),
        (CountsCopies, r"CountsCopies acted differently when messages came twice"),
        (ForgedReward, r"agent 0 sent Message\(.*\) in round 1 but saw"),
        (ForgedArm, r"agent 0 sent Message\(.*\) in round 1 but saw"),
        (Impersonator, r"agent 0 sent Message\(origin=1, .*\) in round 1, which it never heard"),
        (FromTheFuture, r"agent 0 sent Message\(origin=0, round=2, .*\) in round 1"),
        (NoMessage, r"agent 0 sent .*: outgoing\(\) returns a list of Message"),
        (NoList, r"outgoing\(\) returns a list of Message"),
        (Incomplete, r"Incomplete is not an agent: it has no observe, outgoing, receive"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_broken_policies_are_caught(policy: Any, fault: Any) -> None:
    with pytest.raises(rm.ContractError, match=fault):
        rm.checks.check_policy(policy)


class Lonely(Greedy):
    """Divides by the number of neighbours."""

    def choose(self, t: Any) -> Any:
        return t * self.seat.n_agents // len(self.seat.neighbours) % self.seat.n_arms


def test_a_policy_that_cannot_be_alone_is_caught() -> None:
    with pytest.raises(ZeroDivisionError):
        rm.checks.check_policy(Lonely)


# ---- estimators ------------------------------------------------------------------------------------------


class Stream(rm.OnlineMean):
    """A sound running mean."""

    def __init__(self, total: Any = 0.0, n: Any = 0) -> None:
        self.total, self.n = total, n

    @property
    def count(self) -> Any:
        return self.n

    def update(self, x: Any) -> None:
        self.total += x
        self.n += 1

    def mean(self, L: Any) -> Any:
        return self.total / self.n

    def merge(self, other: Any) -> None:
        self.total += other.total
        self.n += other.n

    def state(self) -> Any:
        return {"total": self.total, "n": self.n}

    @classmethod
    def from_state(cls, state: Any) -> Any:
        return cls(**state)


@dataclass(frozen=True)
class Own(rm.Estimator):
    """The running mean as an estimator of one's own, with any stream behind it."""

    stream: type = Stream
    name = "own"

    def moment(self, moments: Any) -> Any:
        return moments.rho

    def theory(self, moments: Any) -> None:  # type: ignore[override]
        raise rm.InputError("no theory")

    def valid(self, n: Any, L: Any, moments: Any) -> Any:
        return True

    def of(self, samples: Any, L: Any, moments: Any) -> Any:
        return math.fsum(samples) / len(samples)

    def online(self, moments: Any, *, last_L: Any = math.inf) -> Any:
        return self.stream()


def test_a_sound_own_estimator_passes_and_plays() -> None:
    rm.checks.check_estimator(Own())
    rm.checks.check_policy(rm.RobustUCB(estimator=Own()))


class WrongMean(Stream):
    def mean(self, L: Any) -> Any:
        return self.total / (self.n + 1)


class WrongLate(Stream):
    def mean(self, L: Any) -> Any:
        return super().mean(L) + (1e-6 if self.n > 350 else 0.0)


class Behind(Stream):
    """Late in the stream, the mean of one sample ago: wrong without slack."""

    last = 0.0

    def update(self, x: Any) -> None:
        super().update(x)
        self.last = x

    def mean(self, L: Any) -> Any:
        return (self.total - self.last) / (self.n - 1) if self.n > 100 else super().mean(L)


class Forgetful(Stream):
    def update(self, x: Any) -> None:
        self.total += x
        self.n = min(self.n + 1, 300)


class OpaqueState(Stream):
    def state(self) -> Any:
        return {"total": self, "n": self.n}


class LossyState(Stream):
    def state(self) -> Any:
        return {"total": round(self.total, 1), "n": self.n}


class ShortMerge(Stream):
    def merge(self, other: Any) -> None:
        self.total += other.total


class WrongMerge(Stream):
    def merge(self, other: Any) -> None:
        self.total -= other.total
        self.n += other.n


class Unmergeable(Stream):
    def merge(self, other: Any) -> None:
        raise TypeError("no")


class OneSided(Own):
    def of(self, samples: Any, L: Any, moments: Any) -> Any:
        return math.fsum(max(x, -1.0) for x in samples) / len(samples)

    def online(self, moments: Any, *, last_L: Any = math.inf) -> Any:
        class Clipped(Stream):
            def update(self, x: Any) -> None:
                super().update(max(x, -1.0))

        return Clipped()


class NoMoment(Own):
    def moment(self, moments: Any) -> Any:
        return 0.0


class NegativeConstant(Own):
    def theory(self, moments: Any) -> Any:
        return Theory(c=-1.0)


class BoldClaim(Own):
    def defined(self, n: Any, L: Any, moments: Any) -> Any:
        return n > 5


@pytest.mark.parametrize(
    ("estimator", "fault"),
    [
        (Own(WrongMean), r"Own online differs from its definition at sample 1: "),
        (Own(WrongLate), r"Own online differs from its definition at sample 351: "),
        (Own(Behind), r"Own online differs from its definition at sample 101: "),
        (Own(Forgetful), r"Own counts 300 samples after 301"),
        (Own(OpaqueState), r"Own\.state\(\) is not plain data"),
        (Own(LossyState), r"Own does not go on identically from its state"),
        (Own(ShortMerge), r"Own merged counts 133 samples, not 400"),
        (Own(WrongMerge), r"Own merged differs from the stream that saw both"),
        (OneSided(), r"OneSided changes with the sign of the samples"),
        (NoMoment(), r"NoMoment\.moment\(\) is not positive"),
        (NegativeConstant(), r"NegativeConstant\.theory\(\)"),
        (BoldClaim(), r"BoldClaim claims validity for n = 1, L = 0\.5, where it is not defined"),
    ],
    ids=lambda value: f"{type(value).__name__}-{value.stream.__name__}" if isinstance(value, Own) else "",
)
def test_broken_estimators_are_caught(estimator: Any, fault: Any) -> None:
    with pytest.raises(rm.ContractError, match=fault):
        rm.checks.check_estimator(estimator)


def test_merging_may_be_refused() -> None:
    rm.checks.check_estimator(Own(Unmergeable))
