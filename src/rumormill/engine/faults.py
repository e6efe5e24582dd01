"""The reference game under the fault model: absences, link outages, corrupted messages, adversaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.reference import BLOCK, Game, PlayedRound, checked_batch, checked_delivery
from rumormill.policies import Agent
from rumormill.protocol import Carrier, Conditions, FalseReport, Message, Relay

ABSENT = -1
"""The action of an agent that does not pull: it is absent or Byzantine."""


class Liar:
    """An adversary: relays messages of others unchanged and sends the same false sample in every round."""

    def __init__(self, agent: int, gamma: int, lie: FalseReport, with_rows: bool, tries: int) -> None:
        self._agent, self._lie, self._with_rows = agent, lie, with_rows
        self._relay = Relay(agent, gamma, several=tries > 1)

    def choose(self, t: int) -> int:
        return ABSENT

    def observe(self, t: int, arm: int, reward: float) -> None:
        """Adversaries do not learn."""

    def outgoing(self, t: int) -> list[Message]:
        self._relay.post(self._lie.message(self._agent, t, self._with_rows))
        return self._relay.outgoing(t)

    def receive(self, messages: Sequence[Message]) -> None:
        self._relay.accept(messages)


class ImperfectGame(Game):
    """Absent agents are skipped; messages addressed to them are dropped."""

    def __init__(
        self,
        agents: Sequence[Agent],
        conditions: Conditions,
        rewards: RewardStream,
        carrier: Carrier,
        *,
        gamma: int | None,
        shares_rows: bool,
        tries: int = 1,
    ) -> None:
        self._conditions = conditions
        self._corruption = conditions.world.corruption
        self._gamma = gamma
        lie = conditions.lie
        if lie is not None:
            assert gamma is not None
            agents = [
                Liar(v, gamma, lie, shares_rows, tries) if conditions.lies[v] else agent
                for v, agent in enumerate(agents)
            ]
        self._true: dict[int, dict[int, Message]] = {}  # by round and origin, the uncorrupted message
        super().__init__(agents, conditions.network, rewards, carrier, conditions.horizon)

    def play_round(self, t: int) -> PlayedRound:
        draws, up, lies = self._draws(t), self._up[(t - 1) % BLOCK], self._conditions.lies
        k = self.constraint.k
        nothing: Any = ABSENT if k == 1 else [ABSENT] * k
        arms = [
            self._pull(t, v, agent, draws[v]) if up[v] and not lies[v] else nothing
            for v, agent in enumerate(self._agents)
        ]
        batches: list[Sequence[Message]] = [
            [self._as_sent(v, t, m) for m in checked_batch(agent.outgoing(t), v, t)] if up[v] else ()
            for v, agent in enumerate(self._agents)
        ]
        down = self._conditions.links_down(t)
        for v, batch in enumerate(batches):
            for w in self._neighbours[v] if up[v] else ():
                if (v, w) not in down:
                    self._carrier.send(t, v, w, batch)
        for v, agent in enumerate(self._agents):
            arrived = checked_delivery(self._carrier.deliver(t, v), v, t)
            if up[v]:
                agent.receive([self._as_received(v, m) for m in arrived])
        return PlayedRound(arms, *self._sent(batches))

    def _draws(self, t: int) -> list[list[float]]:
        if (t - 1) % BLOCK == 0:
            stop = min(t + BLOCK, self._horizon + 1)
            self._up: NDArray[np.bool_] = self._conditions.up(t, stop)
            self._false: NDArray[np.bool_] = self._conditions.corrupt(t, stop)
        return super()._draws(t)

    def _as_sent(self, v: int, t: int, message: Message) -> Message:
        """The message on the wire: an own one may be corrupted, others are relayed as they were sent."""
        corruption = self._corruption
        if corruption is None:
            return message
        if message.origin != v:
            return self._true.get(message.round, {}).get(message.origin, message)
        if corruption.at == "receiver":
            self._true.setdefault(t, {})[v] = message
            if self._gamma is not None:
                self._true.pop(t - self._gamma, None)
        elif self._false[(t - 1) % BLOCK, v]:
            return corruption.corrupted(message, self._conditions.drawn_for(v, t))
        return message

    def _as_received(self, v: int, message: Message) -> Message:
        """The message that the receiver reads: corrupted at the receiver, if the model says so."""
        if self._corruption is None or not self._conditions.corrupt_for(v, message.origin, message.round):
            return message
        return self._corruption.corrupted(message, self._conditions.drawn_for(message.origin, message.round))
