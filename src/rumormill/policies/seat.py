"""One agent's place in a game: all that a real node would know before its first decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.text import shown
from rumormill.validate import NamedArguments, refused, whole


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
