"""The seat, the agent, the plan and the policy: abstract classes and the conversions to them.

Propensities: the probability with which an agent's own draws of a round lead to an arm.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.errors import ContractError, InputError
from rumormill.graphs import Network
from rumormill.policies.prior import Prior
from rumormill.protocol import Message, World
from rumormill.text import shown
from rumormill.validate import NamedArguments, refused, whole

AGENT_METHODS = ("choose", "observe", "outgoing", "receive")


@dataclass(frozen=True, kw_only=True)
class Seat(metaclass=NamedArguments):
    """What an agent knows before its first decision: the argument of `Policy.agent`.

    Nothing in it leads to the bandit, the other agents or the network.

    Parameters
    ----------
    agent : int
        Own id.
    n_arms : int
        Number K of arms.
    neighbours : tuple[int, ...], default ()
        Ids of the agents one hop away.
    rng : np.random.Generator, default lambda()
        The only source of randomness the agent may use.
    moments : Moments | None, default None
        Bounds on the arms' moments; None: not known.
    horizon : int | None, default None
        Number of rounds; None: not known, or no end.
    n_agents : int | None, default None
        Number of agents; None: not known.
    prior : Prior | None, default None
        What the agent knows of the arms already.
    tries : int, default 1
        Arms that agents try in a round, each observed and sent.
    part : Any, default None
        The agent's part of the policy's plan, `plan.part(agent)`; None without a plan.

    Examples
    --------
    >>> import numpy as np
    >>> import rumormill as rm
    >>> seat = rm.Seat(agent=0, n_arms=3, neighbours=(1, 4), rng=np.random.default_rng(7))
    >>> seat.horizon is None and seat.moments is None
    True

    References
    ----------
    docs/tutorials/own-policy.md: a policy step by step.
    """

    agent: int
    n_arms: int
    neighbours: tuple[int, ...] = ()
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)
    moments: Moments | None = None
    horizon: int | None = None
    n_agents: int | None = None
    prior: Prior | None = None
    tries: int = 1
    part: Any = None

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
        if self.prior is not None:
            if not isinstance(self.prior, Prior):
                raise refused("prior", self.prior, "rm.Prior(mean=, n=), or None")
            self.prior.require_fits(self.n_arms, None)
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
        """The part of the plan; refused if it is not of this type."""
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

    Examples
    --------
    >>> import rumormill as rm
    >>> policy = rm.RobustUCB(moments=rm.Moments(eps=0.5, u=2.0, rho=1.5))
    >>> agent = policy.agent(rm.Seat(agent=0, n_arms=2))
    >>> isinstance(agent, rm.Agent), agent.choose(1)
    (True, 0)

    References
    ----------
    docs/tutorials/own-policy.md: a policy step by step.
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
    """What a policy computes once for a network: cliques, leaders, weights.

    Examples
    --------
    >>> import rumormill as rm
    >>> plan = rm.KMPUCB(gamma=1).plan(rm.Network.ring(5))
    >>> plan.part(0).gamma, plan.part(0).group
    (1, 3)

    References
    ----------
    docs/tutorials/own-policy.md: a policy step by step.
    """

    def part(self, agent: int) -> Any:
        """What one agent has to know of it."""


@dataclass(frozen=True)
class NoPlan:
    """The plan of policies that need none."""

    def part(self, agent: int) -> None:
        return None


class Policy(metaclass=NamedArguments):
    """Frozen parameters from which agents are made; the abstract class of all policies.

    A user-defined policy is a frozen dataclass with `agent(seat)`; a class of agents alone, whose constructor
    takes a `Seat`, can stand for one. A spec names it as "module:Class".

    Examples
    --------
    >>> import rumormill as rm
    >>> isinstance(rm.KMPUCB(), rm.Policy)
    True

    References
    ----------
    docs/tutorials/own-policy.md: a policy step by step.
    """

    label: ClassVar[str] = ""
    """The name in tables and figures; left out, that of the class."""
    shares_rows: ClassVar[bool] = False
    """Whether messages carry a row (estimate, count) for every arm."""
    live_refusal: ClassVar[str] = ""
    """Why a live node cannot run it, as the rest of a sentence; empty: it can."""
    takes_prior: ClassVar[bool] = False
    """Whether agents use the prior of their seat."""

    @abstractmethod
    def agent(self, seat: Seat) -> Agent:
        """The agent that takes this seat."""

    def plan(self, network: Network) -> Plan:
        """What has to be computed once for a network."""
        return NoPlan()

    def plan_key(self) -> Hashable:
        """Policies with equal keys have the same plan on the same network, which is computed once."""
        return (type(self), self)

    def require_moments_below(self, tail_index: float) -> None:
        """Raise InputError if moments given to the policy are infinite for arms with this tail."""
        given = getattr(self, "moments", None)
        if isinstance(given, Moments) and given.p >= tail_index:
            raise InputError(
                f"moments with eps = {given.eps} cannot hold: the arms have moments only below order "
                f"{tail_index:.6g}; give eps below {tail_index - 1:.6g}"
            )

    @property
    def needs_moments(self) -> bool:
        """Whether agents need bounds on the moments of the rewards."""
        return False

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        """The constants of the index for arms with these moments, by name; empty where there are none."""
        del moments
        return {}

    def require_prior(self, prior: Prior, n_arms: int, n_agents: int | None = None) -> None:
        """Raise InputError if agents of this policy cannot be born with this prior."""
        if not self.takes_prior:
            name = policy_name(self)
            raise InputError(f"{name} takes no prior: leave prior out, or take a message-passing policy")
        prior.require_fits(n_arms, n_agents)

    def require_supported(self, world: World) -> None:
        """Raise InputError if the policy does not support the fault model of this world."""
        del world  # flooding supports every fault model

    def require_usable(self, moments: Moments) -> None:
        """Raise InputError if the policy cannot play arms with these moments."""
        del moments  # a policy without a robust mean supports any


@dataclass(frozen=True)
class OwnPolicy(Policy):
    """A callable that takes a Seat and returns an agent, with its parameters."""

    takes_prior: ClassVar[bool] = True
    make: Callable[..., Agent]
    parameters: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def name(self) -> str:
        made = getattr(self.make, "func", self.make)  # of a functools.partial, which holds settings
        return str(getattr(made, "__name__", type(made).__name__))

    def agent(self, seat: Seat) -> Agent:
        return self.make(seat, **dict(self.parameters))

    def plan_key(self) -> Hashable:
        return OwnPolicy


class DuckPolicy(Policy):
    """Any object with `agent(seat)`; `plan` and `plan_key` are used where it has them."""

    takes_prior: ClassVar[bool] = True

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
    """A policy from a policy, a class of agents, or an object with `agent`."""
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
    """The name of a policy in messages: the class that the user gave."""
    return str(getattr(policy, "name", type(policy).__name__))


def seated(policy: Policy, seat: Seat) -> Agent:
    """The agent of a seat, refused if it is none."""
    agent = policy.agent(seat)
    missing = [name for name in AGENT_METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise ContractError(f"{type(agent).__name__} is not an agent: it has no {', '.join(missing)}")
    return agent


def ranked_arms(agent: Agent, t: int, allowed: Sequence[int] | None, k: int) -> list[int]:
    """The first k arms of an agent's ranking; ContractError if it has none."""
    if allowed is None and k == 1:
        return [agent.choose(t)]
    rank = getattr(agent, "rank", None)
    if not callable(rank):
        raise ContractError(f"{type(agent).__name__} has no rank(): it takes neither allowed nor k")
    found: list[int] = rank(t, allowed, k)[:k]
    return found


# Normal quantiles are integrated from -8 to 8 in steps of 1/20.
GRID = np.linspace(-8.0, 8.0, 321)


def _normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The normal distribution function."""
    return 0.5 * np.fromiter(map(math.erfc, (-x / math.sqrt(2.0)).tolist()), float, len(x))


def argmax_chances(centre: Sequence[float], spread: Sequence[float], arms: Sequence[int]) -> dict[int, float]:
    """For each arm the probability that its draw centre + spread Z is the largest; Z independent normals.

    >>> chances = argmax_chances([0.0, 0.0], [1.0, 1.0], [0, 1])
    >>> round(chances[0], 6), round(sum(chances.values()), 6)
    (0.5, 1.0)
    """
    density = np.exp(-0.5 * GRID * GRID)
    found = {}
    for k in arms:
        below = density.copy()
        for j in arms:
            if j != k:
                gap = centre[k] + spread[k] * GRID - centre[j]
                # The gap ascends. Beyond 9 spreads the factor is 1 in floats: most arms of a settled game.
                if spread[j] == 0.0:
                    below *= (gap > 0.0) + 0.5 * (gap == 0.0)
                elif gap[0] < 9.0 * spread[j]:
                    below *= _normal(gap / spread[j])
        found[k] = float(below.sum())
    total = sum(found.values())
    return {k: value / total for k, value in found.items()}


def mixed(chances: Mapping[int, float], arm: int, rate: float) -> dict[int, float]:
    """The chances, if with probability `rate` the choice is this arm whatever was drawn."""
    return {k: (1.0 - rate) * chance + rate * (k == arm) for k, chance in chances.items()}
