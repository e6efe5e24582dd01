"""The first rounds of a game with all that was said in them: who pulled what, which bundle went where.

The reference engine plays; agents and carrier only have somebody who takes notes between them and the game.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, VaryingSource
from rumormill.arms.objective import sign_of
from rumormill.engine import reference
from rumormill.engine.reference import checked_batch
from rumormill.engine.result import needs_actions, with_regret
from rumormill.engine.trial import Contender, reference_game
from rumormill.graphs import Network
from rumormill.policies import Agent
from rumormill.protocol import Carrier, Conditions, Message
from rumormill.validate import whole

# For so many rounds after the last one, bundles of a channel of unknown delay may still come: then they were
# late, else lost.
LOOK_AHEAD = 20

Fate = Literal["arrived", "lost", "down", "away"]
Named = tuple[int, int]


@dataclass
class Bundle:
    """What one agent put on one link in one round, and what became of it."""

    sender: int
    receiver: int
    sent: int
    """The round."""
    messages: tuple[Named, ...]
    """(origin, round of origin) of each."""
    fate: Fate = "lost"
    """"arrived"; "lost" on the way; "down": the link was; "away": it came when nobody was there."""
    arrived: int | None = None
    """The round at whose end it came, in vain perhaps; None if it did not."""
    missing: int = 0
    """How many of its messages were lost on the way."""


@dataclass(frozen=True)
class Record:
    """Rounds 1..R of one trial. Arrays are (rounds, agents) unless said otherwise."""

    network: Network
    actions: NDArray[np.int64]
    """The arm pulled, -1 where an agent was away or lied."""
    rewards: NDArray[np.float64]
    """What was paid, in the unit of the source; nan where nothing was pulled."""
    best: NDArray[np.int64]
    """The arm with the best mean."""
    up: NDArray[np.bool_]
    """Who was there."""
    lies: NDArray[np.bool_]
    """Who lies, (agents)."""
    regret: NDArray[np.float64]
    """Group regret up to and including each round, (rounds)."""
    said: list[list[tuple[Named, ...]]]
    """By round and agent, the messages that went to every neighbour."""
    bundles: list[Bundle]
    """In the order of sending; an empty one is none."""

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
) -> Record:
    """The first rounds of the trial of this seed, which has `horizon` rounds; `on_round` hears of each."""
    rounds = min(whole("rounds", rounds), horizon)
    n_agents = contender.network.n_agents
    notes = _Notes(np.full((rounds, n_agents), np.nan), [[()] * n_agents for _ in range(rounds)])
    opened: list[_NotedCarrier] = []

    def carry(conditions: Conditions) -> Carrier:
        opened.append(_NotedCarrier(conditions, rounds, on_round))
        return opened[0]

    game = reference_game(contender, source, horizon, seed, carry)
    game.replace_agents([_NotedAgent(agent, v, notes) for v, agent in enumerate(game.agents)])
    marks = np.arange(1, rounds + 1)
    played = reference.play(game, n_agents, source.gaps, rounds, marks, keep_actions=True)
    (carrier,) = opened
    carrier.wait_for_the_last()
    assert played.actions is not None
    return Record(
        network=contender.network,
        actions=played.actions,
        rewards=sign_of(getattr(source, "objective", "maximise")) * notes.rewards,
        best=_best_arms(source, rounds, n_agents),
        up=carrier.up[:rounds],
        lies=carrier.conditions.lies,
        regret=with_regret(played, source, marks, True).agent_regret.sum(axis=1),
        said=notes.said,
        bundles=sorted([*carrier.bundles, *_stopped(carrier.conditions, notes.said)], key=_place),
    )


def _place(bundle: Bundle) -> tuple[int, int, int]:
    return bundle.sent, bundle.sender, bundle.receiver


def _best_arms(source: RewardSource, rounds: int, n_agents: int) -> NDArray[np.int64]:
    if isinstance(source, VaryingSource) and needs_actions(source):
        means = sign_of(source.objective) * source.expected(0, rounds, n_agents)
        return np.asarray(means.argmax(axis=2), np.int64)
    return np.full((rounds, n_agents), int(np.argmin(source.gaps)))


def _stopped(conditions: Conditions, said: list[list[tuple[Named, ...]]]) -> list[Bundle]:
    """What was meant for links that were down: no carrier ever sees it."""
    return [
        Bundle(a, b, t, spoken[a], "down", missing=len(spoken[a]))
        for t, spoken in enumerate(said, start=1)
        for a, b in sorted(conditions.links_down(t))
        if spoken[a]
    ]


# --- those who take notes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Notes:
    rewards: NDArray[np.float64]
    said: list[list[tuple[Named, ...]]]


class _NotedAgent:
    """An agent, with somebody who looks over its shoulder."""

    def __init__(self, agent: Agent, v: int, notes: _Notes) -> None:
        self._agent, self._v, self._notes = agent, v, notes
        self.choose, self.receive = agent.choose, agent.receive

    def observe(self, t: int, arm: int, reward: float) -> None:
        self._notes.rewards[t - 1, self._v] = reward
        self._agent.observe(t, arm, reward)

    def outgoing(self, t: int) -> Sequence[Message]:
        batch = checked_batch(self._agent.outgoing(t), self._v, t)
        self._notes.said[t - 1][self._v] = tuple((m.origin, m.round) for m in batch)
        return batch


class _NotedCarrier:
    """A carrier, with somebody who sees each bundle go and come.

    What comes has no sender on it: every link gets copies of its own, and is known by them again.
    """

    def __init__(self, conditions: Conditions, rounds: int, on_round: Callable[[], None]) -> None:
        self.conditions, self._inner = conditions, conditions.carrier()
        self._rounds, self._on_round = rounds, on_round
        # Where everything arrives at once there is nothing to find out.
        self._sure = conditions.world.messages_arrive
        delay = conditions.world.longest_delay
        self._last = rounds + (LOOK_AHEAD if delay is None else delay)
        self.up = conditions.up(1, self._last + 1)
        self.bundles: list[Bundle] = []
        self._under_way: dict[int, tuple[Message, Bundle]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        if messages:
            bundle = Bundle(sender, receiver, t, tuple((m.origin, m.round) for m in messages))
            self.bundles.append(bundle)
            if self._sure:
                self._came(bundle, t)
            else:
                bundle.missing = len(messages)
                messages = [Message(m.origin, m.round, m.arm, m.reward, m.rows) for m in messages]
                self._under_way.update({id(m): (m, bundle) for m in messages})
        self._inner.send(t, sender, receiver, messages)

    def deliver(self, t: int, receiver: int) -> list[Message]:
        arrived = self._inner.deliver(t, receiver)
        if not self._sure:
            for message in arrived:
                self._take(t, receiver, message)
        if receiver == len(self.conditions.lies) - 1 and t <= self._rounds:
            self._on_round()
        return arrived

    def wait_for_the_last(self) -> None:
        """Whether what is still under way is late or lost; nobody hears it any more."""
        for t in range(self._rounds + 1, self._last + 1):
            for v in range(self.up.shape[1]):
                self.deliver(t, v)

    def _take(self, t: int, receiver: int, message: Message) -> None:
        _, bundle = self._under_way.pop(id(message), (None, None))
        if bundle is None:  # a carrier that hands out other objects than it was given
            name = message.origin, message.round
            for key, (copy, each) in self._under_way.items():
                if each.receiver == receiver and (copy.origin, copy.round) == name:
                    bundle = each
                    del self._under_way[key]
                    break
            else:
                return  # repeated or invented by the carrier: nobody sent it
        bundle.missing -= 1
        self._came(bundle, t)

    def _came(self, bundle: Bundle, t: int) -> None:
        bundle.arrived = t
        bundle.fate = "arrived" if self.up[t - 1, bundle.receiver] else "away"
