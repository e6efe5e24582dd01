"""The simulator's agent in a live node: samples arrive one by one, without rounds.

Agents must offer `state()` and `restore(state)`. If they also offer `take` (a new sample of another agent),
`hear` (another agent's newest message) and `awaiting` (pulls without a reward yet), these are called; other
agents get everything through the four methods of every agent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rumormill.errors import ContractError
from rumormill.live.core.frames import Head, Key
from rumormill.live.core.node_config import GameConfig
from rumormill.policies import Agent
from rumormill.policies.base import ranked_arms
from rumormill.protocol import Message


class AgentAdapter:
    """One agent, and the counters that drive it without rounds."""

    def __init__(self, config: GameConfig, node: int) -> None:
        self._node = node
        self.n_arms = config.n_arms
        self.agent: Any = config.make_agent()
        for name in ("state", "restore"):
            if not callable(getattr(self.agent, name, None)):
                raise ContractError(
                    f"{type(self.agent).__name__} has no {name}(): agents of a live node can stop and go on"
                )
        self._has_take, self._has_hear, self._has_awaiting = (
            callable(getattr(self.agent, name, None)) for name in ("take", "hear", "awaiting")
        )
        self.samples = [0] * config.n_arms
        """Samples of every arm that the agent has received."""
        self._given: dict[int, int] = {}  # per origin, for agents that number samples by round
        self._heads: dict[int, tuple[int, int, int]] = {}  # per origin (epoch, t, round) of its newest head

    def choose(
        self, t: int, pending: Sequence[int], alone: bool, allowed: Sequence[int] | None = None, k: int = 1
    ) -> list[int]:
        """The arm of decision t; with k the first k arms of the agent's ranking."""
        if self._has_awaiting:
            self.agent.awaiting(pending)
        if hasattr(self.agent, "deaf"):
            self.agent.deaf = alone
        return [int(arm) for arm in ranked_arms(self.agent, t, allowed, k)]

    def propensity(self, arm: int) -> float | None:
        """The probability of the last choice over the agent's own draws; None if the agent does not say."""
        chance = getattr(self.agent, "propensity", None)
        found = float(chance(arm)) if callable(chance) else math.nan
        return None if math.isnan(found) else found

    def own(self, t: int, arm: int, reward: float) -> Message | None:
        """Pass the own reward of decision t; the message to publish, None if the agent does not send it."""
        agent: Agent = self.agent
        self.samples[arm] += 1
        agent.observe(t, arm, reward)
        sent = [m for m in agent.outgoing(t) if m.origin == self._node and m.round == t]
        return sent[0] if sent else None

    def others(self, origin: int, arm: int, reward: float) -> None:
        """Pass a sample of another node."""
        self.samples[arm] += 1
        if self._has_take:
            self.agent.take(origin, arm, reward)
            return
        # Numbered without holes, so that the agent's memory of them does not grow.
        self._given[origin] = number = self._given.get(origin, 0) + 1
        self.agent.receive([Message(origin, number, arm, reward)])
        self.agent.outgoing(number)

    def update_head(self, key: Key, head: Head) -> None:
        """Pass the newest head of an origin; the largest (epoch, t) wins."""
        origin, epoch = key
        last_epoch, last_t, last_round = self._heads.get(origin, (0, 0, 0))
        if not self._has_hear or (epoch, head.t) <= (last_epoch, last_t):
            return
        # An origin that lost its disk counts from 1 again: for the agent its rounds continue.
        number = max(head.t, last_round + 1)
        self._heads[origin] = (epoch, head.t, number)
        self.agent.hear(Message(origin, number, head.arm, 0.0, head.rows))

    def state(self) -> dict[str, Any]:
        """As plain data, for snapshots."""
        return {
            "agent": self.agent.state(),
            "samples": self.samples,
            "given": [list(each) for each in self._given.items()],
            "heard": [[origin, *each] for origin, each in self._heads.items()],
        }

    def carry(self, state: dict[str, Any], places: Sequence[int | None]) -> bool:
        """Take over what another revision of the game has learned; False if its agent does not allow it.

        `places` has for every arm its number in that revision, None for a new arm.
        """
        fresh, earlier = self.agent.state(), state["agent"]
        if not all(
            isinstance(each, dict) and isinstance(each.get("samples"), list) for each in (fresh, earlier)
        ):
            return False
        fresh.pop("prior", None)  # it is new beside the samples that are taken over
        for arm, place in enumerate(places):
            if place is not None:
                fresh["samples"][arm] = earlier["samples"][place]
                self.samples[arm] = int(state["samples"][place])
        self.restore({**state, "agent": fresh | {"now": earlier.get("now", 0)}, "samples": self.samples})
        return True

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` described."""
        self.agent.restore(state["agent"])
        self.samples = [int(n) for n in state["samples"]]
        self._given = {int(origin): int(n) for origin, n in state["given"]}
        self._heads = {int(v): (int(epoch), int(t), int(n)) for v, epoch, t, n in state["heard"]}
