"""One game round by round: who pulls what, what every agent knows, which messages are under way.

The reference engine plays it. An episode with seed s is trial 0 of `simulate(..., rng=s)`, to the bit.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.arms import RewardSource
from rumormill.arms.base import sign_of
from rumormill.engine.result import regrets_of_round
from rumormill.engine.simulate import Table, policy_of, world_of
from rumormill.engine.trace import LOOK_AHEAD
from rumormill.engine.trial import prepare, reference_game
from rumormill.errors import InputError
from rumormill.graphs import Network, Topology
from rumormill.policies import Agent
from rumormill.protocol import Byzantine, Carrier, Channel, Churn, Conditions, Corruption, Message
from rumormill.seeds import RandomSource, Role, root_seed, stream_seed
from rumormill.text import plural
from rumormill.validate import NamedArguments, whole


@dataclass(frozen=True)
class Step:
    """One round: arrays have one entry per agent.

    Parameters
    ----------
    t : int
        The round, from 1.
    arms : int array
        The arm pulled; -1 where the agent did not pull.
    rewards : float array
        The reward, in the unit of the bandit; nan where the agent did not pull.
    regret : float
        What the group lost in this round against the best arms, from the known means.
    messages : int
        Messages sent over edges.
    done : bool
        Whether this was the last round.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> step = rm.Episode(bandit, rm.Network.ring(4), "kmp", horizon=10).reset(1).step()
    >>> step.t, step.arms.tolist(), step.done
    (1, [0, 0, 0, 0], False)

    References
    ----------
    docs/semantics.md: one round.
    """

    t: int
    arms: NDArray[np.int64]
    rewards: NDArray[np.float64]
    regret: float
    messages: int
    done: bool


@dataclass(frozen=True)
class MessageInFlight:
    """A message on its way: who will receive it, and at the end of which round."""

    message: Message
    receiver: int
    arrives: int


class Episode(metaclass=NamedArguments):
    """A game that is played step by step, with a view of every agent; `reset(seed)` begins it.

    Parameters
    ----------
    bandit : Bandit, Replay, or arms that differ between agents or change
        The reward source.
    network : Network, Topology, str or mapping
        The communication graph; a random one is drawn from the seed.
    policy : Policy, class of agents, str or mapping
        The policy of every agent, or {agents: policy}; see `simulate`.
    horizon : int, default 1000
        Rounds of the episode.
    channel, absences, outages, churn, corruption, byzantine : optional
        The fault model; see `simulate`.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> episode = rm.Episode(bandit, rm.Network.path(3), rm.DecentralizedMPUCB(gamma=1), horizon=50)
    >>> _ = episode.reset(seed=7)
    >>> step = episode.step()
    >>> [(message.origin, message.round) for message in episode.known(0)]
    [(0, 1), (1, 1)]
    >>> sum(step.regret for step in episode) >= 0 and episode.done
    True

    References
    ----------
    docs/semantics.md: one round. The form is that of Gymnasium environments (Towers et al. 2024).
    """

    def __init__(
        self,
        bandit: RewardSource,
        network: Network | Topology | str | Table,
        policy: Any,
        *,
        horizon: int = 1000,
        channel: Channel | str | Table | None = None,
        absences: Sequence[tuple[int, int, int]] = (),
        outages: Sequence[tuple[int, int, int, int]] = (),
        churn: Churn | None = None,
        corruption: Corruption | None = None,
        byzantine: Byzantine | None = None,
    ) -> None:
        if isinstance(bandit, type) or not isinstance(bandit, RewardSource):
            raise InputError(
                f"bandit is a {type(bandit).__name__}: give rm.Bandit([...]) or rm.Replay(table)"
            )
        self.bandit, self.horizon = bandit, whole("horizon", horizon)
        self._policy, self._given = policy, catalogue.given("network", network)
        self._world = world_of(channel, absences, outages, churn, corruption, byzantine)
        self.t = 0
        """Rounds played since the last reset."""
        self._begun = False

    def reset(self, seed: RandomSource) -> Episode:
        """Begin anew: the same seed gives the same rewards, faults and random network."""
        root = root_seed(seed)
        made = self._given
        if callable(getattr(made, "build", None)):
            made = made.build(np.random.default_rng(stream_seed(root, Role.NETWORK)))
        contender = prepare(
            policy_of(self._policy, made), made, self.bandit.n_arms, engine="reference", world=self._world
        )
        self.network = contender.network
        opened: list[Carrier] = []

        def carry(conditions: Conditions) -> Carrier:
            opened.append(conditions.carrier())
            return opened[0]

        self._game = reference_game(contender, self.bandit, self.horizon, stream_seed(root, 0), carry)
        (self._carrier,) = opened
        self._watched = [_Watched(agent, v) for v, agent in enumerate(self._game.agents)]
        self._game.replace_agents(self._watched)
        self.t, self._begun = 0, True
        return self

    @property
    def done(self) -> bool:
        """Whether all rounds are played."""
        return self.t >= self.horizon

    def step(self, arms: Mapping[int, int] | None = None) -> Step:
        """Play one round; `arms` overrides the choice of some agents in this round."""
        self._require_begun()
        if self.done:
            raise InputError(f"the episode of {plural(self.horizon, 'round')} is over: call reset(seed)")
        for agent, arm in (arms or {}).items():
            self._watched[self.network.check_agent(agent)].forced = arm
        self.t += 1
        played = self._game.play_round(self.t)
        pulled = np.array(played.arms, np.int64)
        sign = sign_of(getattr(self.bandit, "objective", "maximise"))
        rewards = sign * np.array([each.taken_reward() for each in self._watched])
        regret = regrets_of_round(self.bandit, self.t, pulled)
        return Step(self.t, pulled, rewards, regret, played.messages, self.done)

    def __iter__(self) -> Iterator[Step]:
        """All rounds that are left."""
        while not self.done:
            yield self.step()

    @property
    def agents(self) -> list[Agent]:
        """The agents themselves: state machines of the policy."""
        self._require_begun()
        return [each.agent for each in self._watched]

    def known(self, agent: int) -> list[Message]:
        """What an agent knows: its own pulls and all that reached it, each once, in the order of arrival."""
        self._require_begun()
        return list(self._watched[self.network.check_agent(agent)].known.values())

    def in_flight(self) -> list[MessageInFlight]:
        """Messages that were sent and have not arrived; lost ones are not under way."""
        self._require_begun()
        longest = self._world.longest_delay
        carrier = copy.deepcopy(self._carrier)
        return [
            MessageInFlight(message, v, t)
            for t in range(self.t + 1, self.t + 1 + (LOOK_AHEAD if longest is None else longest))
            for v in range(self.network.n_agents)
            for message in carrier.deliver(t, v)
        ]

    def __repr__(self) -> str:
        if not self._begun:
            return f"Episode({plural(self.horizon, 'round')}; not begun: call reset(seed))"
        return f"Episode(round {self.t:,} of {self.horizon:,}, {plural(self.network.n_agents, 'agent')})"

    def _require_begun(self) -> None:
        if not self._begun:
            raise InputError("the episode has not begun: call reset(seed) first")


class _Watched:
    """Agent wrapper that records what the agent sees."""

    def __init__(self, agent: Agent, v: int) -> None:
        self.agent, self._v = agent, v
        self.known: dict[tuple[int, int], Message] = {}
        self.forced: int | None = None
        self._reward = float("nan")

    def choose(self, t: int) -> int:
        chosen, self.forced = self.forced, None
        own = self.agent.choose(t)
        return own if chosen is None else chosen

    def observe(self, t: int, arm: int, reward: float) -> None:
        self._reward = reward
        self.known[self._v, t] = Message(self._v, t, arm, reward)
        self.agent.observe(t, arm, reward)

    def outgoing(self, t: int) -> Sequence[Message]:
        return self.agent.outgoing(t)

    def receive(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.known.setdefault((message.origin, message.round), message)
        self.agent.receive(messages)

    def taken_reward(self) -> float:
        """The reward of this round; nan if nothing was pulled."""
        reward, self._reward = self._reward, float("nan")
        return reward
