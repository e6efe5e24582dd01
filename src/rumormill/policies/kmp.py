"""KMP-UCB (appendix): messages of O(K) carry what the sender knows of every arm.

A message carries (mean, N) of all arms as of the decision of its round. For each arm an agent takes,
among its own current (mean, n) and the newest row of every origin in reach, the one with the largest N
(its own on ties, then the smallest origin), and the radius uses that N:

    mean* + m^(1/p) (c L_t / N*)^(eps/p)

Regret O(α(G_γ) K Δ^(-1/eps) ln T) without knowing the graph.

What differs from the printed text:
- δ = t⁻², not 2 ln t; the table of rows starts empty, not with ones; rows carry the round they are from.
- in rounds t <= K nothing is known, so messages carry N = 0, which never wins.

With an estimator that brings its own index a row is (index, N), and the index of the best informed counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rumormill.policies.message_passing import MessagePassingPolicy, RobustPolicy
from rumormill.policies.passer import Passer, Rows
from rumormill.policies.seat import Seat
from rumormill.protocol import Message
from rumormill.protocol.message import plain_rows, rows_from_plain


@dataclass(frozen=True, kw_only=True)
class KMPUCB(MessagePassingPolicy):
    """Every agent uses, arm by arm, the best informed estimate in reach."""

    label: ClassVar[str] = "KMP"
    shares_rows: ClassVar[bool] = True

    def agent(self, seat: Seat) -> KMPAgent:
        return KMPAgent(self, seat, self.hops(seat))


class KMPAgent(Passer):
    """The appendix's algorithm for one agent."""

    def __init__(self, policy: RobustPolicy, seat: Seat, gamma: int) -> None:
        super().__init__(policy, seat, gamma)
        self.heard: dict[int, Message] = {}  # per origin, its newest message
        self.nothing: Rows = ((0.0, 0.0),) * seat.n_arms
        self.rows = self.nothing

    def choose(self, t: int) -> int:
        self.rows = self.nothing
        return super().choose(t)

    def decide(self, t: int) -> int:
        self.rows = self.samples.rows(t)
        best = [self._best_informed(arm) for arm in range(self.n_arms)]
        return self.samples.best(t, best)

    def _best_informed(self, arm: int) -> tuple[float, float]:
        mean, n = self.rows[arm]
        for origin in sorted(self.heard):
            other_mean, other_n = self.heard[origin].rows[arm]
            if other_n > n:
                mean, n = other_mean, other_n
        return mean, n

    def message(self, t: int, arm: int, reward: float) -> Message:
        return Message(self.agent, t, arm, reward, self.rows)

    def receive(self, messages: Sequence[Message]) -> None:
        for message in self.relay.accept(messages):
            self.take(message.origin, message.arm, message.reward)
            self.hear(message)

    def hear(self, message: Message) -> None:
        """Note what another agent knew, if it is its newest word."""
        newest = self.heard.get(message.origin)
        if newest is None or message.round > newest.round:
            self.heard[message.origin] = message

    def state(self) -> dict[str, Any]:
        heard = [message.plain() for message in self.heard.values()]
        return {**super().state(), "heard": heard, "rows": plain_rows(self.rows)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        heard = [Message.from_plain(each) for each in state["heard"]]
        self.heard = {message.origin: message for message in heard}
        self.rows = rows_from_plain(state["rows"])
