"""What an agent is, and what a policy must offer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from rumormill.arms import Moments
from rumormill.errors import ContractError, InputError
from rumormill.graphs import Network
from rumormill.protocol import Message, World
from rumormill.text import shown
from rumormill.validate import NamedArguments, refused, whole

AGENT_METHODS = ("choose", "observe", "outgoing", "receive")


@dataclass(frozen=True, kw_only=True)
class Seat(metaclass=NamedArguments):
    """What an agent is born from. Nothing here leads to the bandit, the other agents or the network.

    >>> seat = Seat(agent=0, n_arms=3, neighbours=(1, 4), rng=np.random.default_rng(7))
    >>> seat.horizon is None and seat.moments is None
    True
    """

    agent: int
    """The own id."""
    n_arms: int
    neighbours: tuple[int, ...] = ()
    """Whom the agent is linked to."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)
    """The agent's own stream: the only randomness it may use."""
    moments: Moments | None = None
    """Bounds on the arms' moments; None where nobody knows them."""
    horizon: int | None = None
    """The number of rounds; None where there is no end."""
    n_agents: int | None = None
    """How many agents there are; None where nobody counts them."""
    part: Any = None
    """The agent's own part of the policy's plan: `plan.part(agent)`; None without a plan."""

    def __post_init__(self) -> None:
        whole("agent", self.agent, 0)
        whole("n_arms", self.n_arms)
        if not isinstance(self.rng, np.random.Generator):
            raise refused("rng", self.rng, "a numpy Generator")
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=), or None")
        for name in ("horizon", "n_agents"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))
        try:
            linked = tuple(whole("neighbour", v, 0) for v in self.neighbours)
        except TypeError:
            raise refused("neighbours", self.neighbours, "the ids of other agents") from None
        object.__setattr__(self, "neighbours", linked)

    def require_moments(self, given: Moments | None) -> Moments:
        """The moments given to the policy, else those of the seat; refused if there are none."""
        found = given if given is not None else self.moments
        if found is None:
            raise InputError(
                f"agent {self.agent} has no moment bounds: give moments= to the policy or to the seat"
            )
        return found

    def require_agents(self) -> int:
        """The number of agents; refused if it is not known."""
        if self.n_agents is None:
            raise InputError(f"agent {self.agent} must know how many agents there are: give n_agents")
        return self.n_agents

    def require_part(self, kind: type) -> Any:
        """The own part of the plan; refused if it is none of that kind."""
        if not isinstance(self.part, kind):
            raise InputError(
                f"agent {self.agent} has the part {shown(self.part)}, which is no {kind.__name__}: give "
                "policy.plan(network).part(agent)"
            )
        return self.part


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


class Plan(Protocol):
    """What a policy works out once for a network: cliques, leaders, weights."""

    def part(self, agent: int) -> Any:
        """What one agent has to know of it."""


@dataclass(frozen=True)
class NoPlan:
    """For policies that need to work out nothing."""

    def part(self, agent: int) -> None:
        return None


class Policy(metaclass=NamedArguments):
    """Frozen parameters that turn a seat into an agent. Own policies are frozen dataclasses too."""

    label: ClassVar[str] = ""
    """The name in tables and figures; left out, that of the class."""
    shares_rows: ClassVar[bool] = False
    """Whether messages carry a row (estimate, count) for every arm."""

    @abstractmethod
    def agent(self, seat: Seat) -> Agent:
        """The agent that takes this seat."""

    def plan(self, network: Network) -> Plan:
        """What has to be worked out once for a network."""
        return NoPlan()

    def plan_key(self) -> Hashable:
        """Policies with equal keys have the same plan on the same network: it is worked out once."""
        return (type(self), self)

    def require_moments_below(self, tail_index: float) -> None:
        """Raise InputError if moments given to the policy are infinite for arms with this tail."""
        given = getattr(self, "moments", None)
        if isinstance(given, Moments) and given.p >= tail_index:
            raise InputError(
                f"moments with eps = {given.eps} cannot hold: the arms have moments only below order "
                f"{tail_index:.6g}; give eps below {tail_index - 1:.6g}"
            )

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        """What its index is made of for arms with these moments, by name; nothing where it cannot say."""
        del moments
        return {}

    def require_supported(self, world: World) -> None:
        """Raise InputError if the policy breaks where the world is not perfect in this way."""
        del world  # flooding bears everything

    def require_usable(self, moments: Moments) -> None:
        """Raise InputError if the policy cannot play arms with these moments."""
        del moments  # a policy without a robust mean bears any


@dataclass(frozen=True)
class OwnPolicy(Policy):
    """A class whose constructor takes a Seat (or anything that makes agents so), and its parameters."""

    make: Callable[..., Agent]
    parameters: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def name(self) -> str:
        return str(getattr(self.make, "__name__", type(self.make).__name__))

    def agent(self, seat: Seat) -> Agent:
        return self.make(seat, **dict(self.parameters))

    def plan_key(self) -> Hashable:
        return OwnPolicy


class DuckPolicy(Policy):
    """Any object with `agent(seat)`; `plan` and `plan_key` are used where it has them."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return type(self.inner).__name__

    def agent(self, seat: Seat) -> Agent:
        made: Agent = self.inner.agent(seat)
        return made

    def plan(self, network: Network) -> Plan:
        plan: Plan | None = self.inner.plan(network) if hasattr(self.inner, "plan") else None
        return NoPlan() if plan is None else plan

    def plan_key(self) -> Hashable:
        return self.inner.plan_key() if hasattr(self.inner, "plan_key") else (DuckPolicy, self.inner)


def as_policy(given: Any) -> Policy:
    """A policy from whatever can stand for one: a policy, a class of agents, an object with `agent`."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, type) and (issubclass(given, Policy) or _has_agent(given)):
        raise InputError(f"policy = {given.__name__} is a class: give {given.__name__}(...)")
    if not isinstance(given, type) and _has_agent(given):
        return DuckPolicy(given)
    if callable(given):
        return OwnPolicy(given)
    raise InputError(f"policy = {shown(given)} is neither a policy nor a class that makes agents")


def _has_agent(given: Any) -> bool:
    """Whether it makes agents; an agent's own attribute of that name (its id) is no method."""
    return callable(getattr(given, "agent", None)) and not _is_agent_class(given)


def _is_agent_class(given: Any) -> bool:
    return all(callable(getattr(given, name, None)) for name in AGENT_METHODS)


def policy_name(policy: Policy) -> str:
    """What to call a policy in a message: the class the user knows."""
    return str(getattr(policy, "name", type(policy).__name__))


def seated(policy: Policy, seat: Seat) -> Agent:
    """The agent of a seat, refused if it is none."""
    agent = policy.agent(seat)
    missing = [name for name in AGENT_METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise ContractError(f"{type(agent).__name__} is not an agent: it has no {', '.join(missing)}")
    return agent
