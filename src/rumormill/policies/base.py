"""What an agent is, what it is told before round 1, and what a policy must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments, RewardSource
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.protocol import Message


@runtime_checkable
class Agent(Protocol):
    """A sans-I/O state machine: no socket, no clock, no global randomness.

    Every round t = 1, 2, ... the driver calls, in this order and once each: `choose`, `observe`,
    `outgoing`; when all agents have done so, `receive` with everything that arrived.
    """

    def choose(self, t: int) -> int:
        """The arm (0..K-1) to pull in round t, from what was known at the end of round t - 1."""

    def observe(self, t: int, arm: int, reward: float) -> None:
        """The reward of the own pull."""

    def outgoing(self, t: int) -> Sequence[Message]:
        """What to send to every neighbour in round t."""

    def receive(self, messages: Sequence[Message]) -> None:
        """All that arrived at the end of the round, in any order, repeats included."""


@dataclass(frozen=True)
class Problem:
    """The game all agents play."""

    source: RewardSource
    network: Network
    horizon: int

    @property
    def n_arms(self) -> int:
        return self.source.n_arms

    @property
    def n_agents(self) -> int:
        return self.network.n_agents


@dataclass(frozen=True)
class Seat:
    """One agent's place in the game: what a user's own policy gets in its constructor."""

    agent: int
    problem: Problem
    rng: np.random.Generator

    @property
    def n_arms(self) -> int:
        return self.problem.n_arms

    @property
    def n_agents(self) -> int:
        return self.problem.n_agents

    @property
    def horizon(self) -> int:
        return self.problem.horizon

    @property
    def neighbours(self) -> NDArray[np.int32]:
        """Whom the agent is linked to."""
        return self.problem.network.neighbours(self.agent)

    @property
    def moments(self) -> Moments:
        """Moment bounds of the arms, at the default eps of the bandit."""
        return self.problem.source.moments()


def usable_moments(given: Moments | None, source: RewardSource) -> Moments:
    """The moments given to a policy, if the arms have moments of that order; else those of the arms."""
    if given is None:
        return source.moments()
    if given.p >= source.tail_index:
        raise InputError(
            f"moments with eps = {given.eps} cannot hold: the arms have moments only below order "
            f"{source.tail_index:.6g}; give eps below {source.tail_index - 1:.6g}"
        )
    return given


OwnPolicy = Callable[[Seat], Agent]
"""A user's own policy: a class whose constructor takes a Seat (or anything that makes agents so)."""


class Policy(ABC):
    """A built-in policy: frozen parameters that turn a problem into agents."""

    @abstractmethod
    def reach(self, network: Network) -> int:
        """How many hops a message travels on this network."""

    def plan(self, network: Network) -> Any:
        """What has to be worked out once for a network: cliques, leaders, weights. None if nothing."""
        return None

    @abstractmethod
    def agents(self, problem: Problem, plan: Any) -> list[Agent]:
        """One agent per vertex of the network."""
