"""A trace of the first rounds of a game: every pull, reward and message, and what happened to each message.

The reference engine plays; wrappers around agents and carrier record what passes through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, VaryingSource
from rumormill.arms.base import sign_of
from rumormill.engine import reference
from rumormill.engine.reference import checked_batch
from rumormill.engine.result import needs_actions, with_regret
from rumormill.engine.trial import Contender, reference_game
from rumormill.graphs import Network
from rumormill.policies import Agent
from rumormill.protocol import Carrier, Conditions, Message
from rumormill.validate import whole

# A bundle on a channel of unbounded delay that arrives within so many rounds after the last one is late, else
# lost.
LOOK_AHEAD = 20

Fate = Literal["arrived", "lost", "down", "away"]
Named = tuple[int, int]


@dataclass
class Bundle:
    """The messages that one agent sent over one link in one round, and their fate."""

    sender: int
    receiver: int
    sent: int
    """The round."""
    messages: tuple[Named, ...]
    """(origin, round of origin) of each."""
    fate: Fate = "lost"
    """"arrived"; "lost" by the channel; "down": link outage; "away": the receiver was absent."""
    arrived: int | None = None
    """The round at whose end it arrived, also at an absent receiver; None if it did not."""
    missing: int = 0
    """How many of its messages were lost."""


@dataclass(frozen=True)
class Trace:
    """Rounds 1..R of one trial. Arrays are (rounds, agents) unless stated otherwise."""

    network: Network
    actions: NDArray[np.int64]
    """The arm pulled; -1 where the agent did not pull."""
    rewards: NDArray[np.float64]
    """Rewards in the unit of the source; nan where nothing was pulled."""
    best: NDArray[np.int64]
    """The arm with the best mean."""
    up: NDArray[np.bool_]
    """Which agents were present."""
    lies: NDArray[np.bool_]
    """Which agents are adversaries, (agents)."""
    regret: NDArray[np.float64]
    """Group regret up to and including each round, (rounds)."""
    outgoing: list[list[tuple[Named, ...]]]
    """By round and agent, the messages sent to every neighbour."""
    bundles: list[Bundle]
    """In the order of sending; empty ones are left out."""

    @property
    def rounds(self) -> int:
        return len(self.actions)


def record(
    contender: Contender,
    source: RewardSource,
    horizon: int,
    seed: np.random.SeedSequence,
    rounds: int,
    on_round: Callable[[], None] = lambda: None,
) -> Trace:
    """Trace the first rounds of the trial of this seed and horizon; `on_round` is called after each."""
    rounds = min(whole("rounds", rounds), horizon)
    n_agents = contender.network.n_agents
    notes = _Notes(np.full((rounds, n_agents), np.nan), [[()] * n_agents for _ in range(rounds)])
    opened: list[_TracedCarrier] = []

    def carry(conditions: Conditions) -> Carrier:
        opened.append(_TracedCarrier(conditions, rounds, on_round))
        return opened[0]

    game = reference_game(contender, source, horizon, seed, carry)
    game.replace_agents([_TracedAgent(agent, v, notes) for v, agent in enumerate(game.agents)])
    marks = np.arange(1, rounds + 1)
    played = reference.play(game, n_agents, source.gaps, rounds, marks, keep_actions=True)
    (carrier,) = opened
    carrier.drain()
    assert played.actions is not None
    return Trace(
        network=contender.network,
        actions=played.actions,
        rewards=sign_of(getattr(source, "objective", "maximise")) * notes.rewards,
        best=_best_arms(source, rounds, n_agents),
        up=carrier.up[:rounds],
        lies=carrier.conditions.lies,
        regret=with_regret(played, source, marks, True).agent_regret.sum(axis=1),
        outgoing=notes.outgoing,
        bundles=sorted([*carrier.bundles, *_stopped(carrier.conditions, notes.outgoing)], key=_place),
    )


def _place(bundle: Bundle) -> tuple[int, int, int]:
    return bundle.sent, bundle.sender, bundle.receiver


def _best_arms(source: RewardSource, rounds: int, n_agents: int) -> NDArray[np.int64]:
    if isinstance(source, VaryingSource) and needs_actions(source):
        means = sign_of(source.objective) * source.expected(0, rounds, n_agents)
        return np.asarray(means.argmax(axis=2), np.int64)
    return np.full((rounds, n_agents), int(np.argmin(source.gaps)))


def _stopped(conditions: Conditions, outgoing: list[list[tuple[Named, ...]]]) -> list[Bundle]:
    """Bundles for links that were down: they never reach the carrier."""
    return [
        Bundle(a, b, t, sent[a], "down", missing=len(sent[a]))
        for t, sent in enumerate(outgoing, start=1)
        for a, b in sorted(conditions.links_down(t))
        if sent[a]
    ]


# --- wrappers that record -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Notes:
    rewards: NDArray[np.float64]
    outgoing: list[list[tuple[Named, ...]]]


class _TracedAgent:
    """Agent wrapper that records rewards and outgoing messages."""

    def __init__(self, agent: Agent, v: int, notes: _Notes) -> None:
        self._agent, self._v, self._notes = agent, v, notes
        self.choose, self.receive = agent.choose, agent.receive

    def observe(self, t: int, arm: int, reward: float) -> None:
        self._notes.rewards[t - 1, self._v] = reward
        self._agent.observe(t, arm, reward)

    def outgoing(self, t: int) -> Sequence[Message]:
        batch = checked_batch(self._agent.outgoing(t), self._v, t)
        self._notes.outgoing[t - 1][self._v] = tuple((m.origin, m.round) for m in batch)
        return batch


class _TracedCarrier:
    """Carrier wrapper that records every bundle and its arrival.

    Delivered messages carry no sender: each link is given copies of its own, which identify it on arrival.
    """

    def __init__(self, conditions: Conditions, rounds: int, on_round: Callable[[], None]) -> None:
        self.conditions, self._inner = conditions, conditions.carrier()
        self._rounds, self._on_round = rounds, on_round
        # On a channel without loss and delay every bundle arrives in its round.
        self._sure = conditions.world.messages_arrive
        delay = conditions.world.longest_delay
        self._last = rounds + (LOOK_AHEAD if delay is None else delay)
        self.up = conditions.up(1, self._last + 1)
        self.bundles: list[Bundle] = []
        self._in_transit: dict[int, tuple[Message, Bundle]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        if messages:
            bundle = Bundle(sender, receiver, t, tuple((m.origin, m.round) for m in messages))
            self.bundles.append(bundle)
            if self._sure:
                self._arrived(bundle, t)
            else:
                bundle.missing = len(messages)
                messages = [Message(m.origin, m.round, m.arm, m.reward, m.rows) for m in messages]
                self._in_transit.update({id(m): (m, bundle) for m in messages})
        self._inner.send(t, sender, receiver, messages)

    def deliver(self, t: int, receiver: int) -> list[Message]:
        arrived = self._inner.deliver(t, receiver)
        if not self._sure:
            for message in arrived:
                self._record_arrival(t, receiver, message)
        if receiver == len(self.conditions.lies) - 1 and t <= self._rounds:
            self._on_round()
        return arrived

    def drain(self) -> None:
        """Find out which bundles still in transit are late and which are lost; nothing is delivered."""
        for t in range(self._rounds + 1, self._last + 1):
            for v in range(self.up.shape[1]):
                self.deliver(t, v)

    def _record_arrival(self, t: int, receiver: int, message: Message) -> None:
        _, bundle = self._in_transit.pop(id(message), (None, None))
        if bundle is None:  # a carrier that delivers other objects than were sent
            name = message.origin, message.round
            for key, (copy, each) in self._in_transit.items():
                if each.receiver == receiver and (copy.origin, copy.round) == name:
                    bundle = each
                    del self._in_transit[key]
                    break
            else:
                return  # duplicated or made up by the carrier
        bundle.missing -= 1
        self._arrived(bundle, t)

    def _arrived(self, bundle: Bundle, t: int) -> None:
        bundle.arrived = t
        bundle.fate = "arrived" if self.up[t - 1, bundle.receiver] else "away"
