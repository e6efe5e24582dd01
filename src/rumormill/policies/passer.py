"""What all agents that pass messages do alike: how they begin, and what they tell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from rumormill.formulas import shared_arm, worth_telling
from rumormill.policies.message_passing import HopPart, RobustPolicy
from rumormill.policies.samples import Samples
from rumormill.policies.seat import Seat
from rumormill.protocol import Gate, Message, Relay
from rumormill.protocol.message import plain_rows, rows_from_plain

Rows = tuple[tuple[float, float], ...]


class Passer(ABC):
    """An agent with samples of its own and of others, that floods messages."""

    def __init__(self, policy: RobustPolicy, seat: Seat, gamma: int, samples: Any = None) -> None:
        self.agent = seat.agent
        self.n_arms = seat.n_arms
        self.manners = policy.manners
        self.samples: Samples = Samples(policy, seat) if samples is None else samples
        self.relay = Relay(seat.agent, gamma)
        self.gate = gate_of(policy, seat, gamma)
        self.now = 0

    def choose(self, t: int) -> int:
        self.now = t
        first = self._first(t) if t <= self.n_arms else -1
        return self.decide(t) if first < 0 else first

    def _first(self, t: int) -> int:
        """The arm of one of the first K rounds; -1 if the agent may decide already."""
        if self.manners.start == "round-robin":
            return t - 1
        return shared_arm(t, self.agent, [n for _, n in self.samples.estimates(t)])

    @abstractmethod
    def decide(self, t: int) -> int:
        """The arm to pull once every arm is known."""

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.now = max(self.now, t)
        if self.tells(t, arm):  # judged by what was known before the pull
            self.relay.post(self.message(t, arm, reward))
        self.take_own(arm, reward)

    def take_own(self, arm: int, reward: float) -> None:
        """One more sample of one's own."""
        self.samples.add(arm, reward)

    def tells(self, t: int, arm: int) -> bool:
        """Whether the pull of this round is told."""
        quiet = self.manners.quiet
        if quiet is None or t <= self.n_arms or not self.samples.latest:
            return True
        means, counts = zip(*self.samples.latest, strict=True)
        return worth_telling(arm, means, counts, quiet)

    def message(self, t: int, arm: int, reward: float) -> Message:
        """What is told of a pull."""
        return Message(self.agent, t, arm, reward)

    def outgoing(self, t: int) -> list[Message]:
        return self.relay.outgoing(t)

    def receive(self, messages: Sequence[Message]) -> None:
        for message in self.relay.accept(messages, self.gate, self.now):
            self.use(message)

    @property
    def refused(self) -> int:
        """How many messages were turned away: no honest agent could have sent them."""
        return self.relay.refused

    def use(self, message: Message) -> None:
        """Take in what is news."""
        self.take(message.origin, message.arm, message.reward)

    def take(self, origin: int, arm: int, reward: float) -> None:
        """One more sample of another agent, known to be news."""
        self.samples.add(arm, reward)

    def awaiting(self, pending: Sequence[int]) -> None:
        """How many pulls of every arm are still without a reward."""
        self.samples.pending = pending

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as plain data."""
        return {
            "samples": self.samples.state(),
            "relay": self.relay.state(),
            "now": self.now,
            "latest": plain_rows(self.samples.latest),  # judges what is told, where the reward is still out
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` described."""
        self.samples.restore(state["samples"])
        self.relay.restore(state["relay"])
        self.now = int(state.get("now", 0))
        self.samples.latest = rows_from_plain(state.get("latest", ()))


def gate_of(policy: RobustPolicy, seat: Seat, gamma: int) -> Gate:
    """What an agent knows of the messages that can reach it, from its seat and its part of the plan."""
    part = seat.part if isinstance(seat.part, HopPart) else HopPart(gamma)
    origins: dict[int, int] | Collection[int] | None = part.origins
    if origins is None and gamma == 1 and seat.neighbours:
        origins = frozenset(seat.neighbours)
    return Gate(
        n_arms=seat.n_arms,
        origins=origins,
        n_agents=seat.n_agents,
        oldest=None if part.delay is None else gamma + part.delay,
        rows=bool(getattr(policy, "shares_rows", False)),
    )
