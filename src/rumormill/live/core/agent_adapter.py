"""The simulator's agent as a node plays it: samples come one by one, without rounds.

Agents offer `state()` and `restore(state)`. Those that also offer `take` (a sample of another agent that is
known to be news), `hear` (another agent's newest word) and `awaiting` (pulls whose rewards are still out) are
asked through these; others get everything through the four methods of every agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rumormill.errors import ContractError
from rumormill.live.core.frames import Head
from rumormill.live.core.node_config import GameSetup
from rumormill.live.core.streams import Key
from rumormill.policies import Agent
from rumormill.protocol import Message


class Player:
    """One agent, and what of it has to be kept beside it."""

    def __init__(self, setup: GameSetup, node: int) -> None:
        self._node = node
        self.n_arms = setup.n_arms
        self.agent: Any = setup.make_agent()
        for name in ("state", "restore"):
            if not callable(getattr(self.agent, name, None)):
                raise ContractError(
                    f"{type(self.agent).__name__} has no {name}(): agents of a live node can stop and go on"
                )
        self._takes, self._hears, self._awaits = (
            callable(getattr(self.agent, name, None)) for name in ("take", "hear", "awaiting")
        )
        self.samples = [0] * setup.n_arms
        """Samples of every arm that the agent was given."""
        self._given: dict[int, int] = {}  # per origin, for agents that know samples by their round
        self._heard: dict[int, tuple[int, int, int]] = {}  # per origin (epoch, t, round) of its newest word

    def choose(self, t: int, pending: Sequence[int], alone: bool) -> int:
        """The arm of decision t."""
        if self._awaits:
            self.agent.awaiting(pending)
        if hasattr(self.agent, "deaf"):
            self.agent.deaf = alone
        return int(self.agent.choose(t))

    def own(self, t: int, arm: int, reward: float) -> Message | None:
        """The own reward of decision t; what the agent would tell of it, None if it keeps it to itself."""
        agent: Agent = self.agent
        self.samples[arm] += 1
        agent.observe(t, arm, reward)
        told = [m for m in agent.outgoing(t) if m.origin == self._node and m.round == t]
        return told[0] if told else None

    def others(self, origin: int, arm: int, reward: float) -> None:
        """A sample of somebody else."""
        self.samples[arm] += 1
        if self._takes:
            self.agent.take(origin, arm, reward)
            return
        # Numbered without holes, so that what an agent remembers of them does not grow.
        self._given[origin] = number = self._given.get(origin, 0) + 1
        self.agent.receive([Message(origin, number, arm, reward)])
        self.agent.outgoing(number)

    def hear(self, key: Key, head: Head) -> None:
        """The newest word of an origin; the largest (epoch, t) wins."""
        origin, epoch = key
        last_epoch, last_t, last_round = self._heard.get(origin, (0, 0, 0))
        if not self._hears or (epoch, head.t) <= (last_epoch, last_t):
            return
        # An origin that lost its disk counts from 1 again: to the agent its rounds go on.
        number = max(head.t, last_round + 1)
        self._heard[origin] = (epoch, head.t, number)
        self.agent.hear(Message(origin, number, head.arm, 0.0, head.rows))

    def state(self) -> dict[str, Any]:
        return {
            "agent": self.agent.state(),
            "samples": self.samples,
            "given": [list(each) for each in self._given.items()],
            "heard": [[origin, *each] for origin, each in self._heard.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.agent.restore(state["agent"])
        self.samples = [int(n) for n in state["samples"]]
        self._given = {int(origin): int(n) for origin, n in state["given"]}
        self._heard = {int(v): (int(epoch), int(t), int(n)) for v, epoch, t, n in state["heard"]}
