"""A group whose agents follow different policies: each agent has the agent class and plan of its own policy.

There is no theorem for it. Messages that an agent's policy does not read are refused there, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.policies.base import Agent, Plan, Policy, Seat, as_policy, policy_name
from rumormill.protocol import World
from rumormill.text import shown
from rumormill.validate import is_whole


@dataclass(frozen=True)
class GroupPlan:
    """The plan of every policy of the group, and which agent has which."""

    plans: tuple[Plan, ...]
    of_agent: tuple[int, ...]

    def part(self, agent: int) -> Any:
        return self.plans[self.of_agent[agent]].part(agent)


@dataclass(frozen=True)
class MixedGroup(Policy):
    """Several policies, and the place in them of every agent's own."""

    policies: tuple[Policy, ...]
    of_agent: tuple[int, ...]

    @classmethod
    def of(cls, given: Mapping[Any, Any], n_agents: int) -> MixedGroup:
        """From {agents: policy}: agents are a number, several numbers, or `...` for all others."""
        policies = tuple(as_policy(policy) for policy in given.values())
        of_agent: dict[int, int] = {}
        for place, key in enumerate(given):
            for agent in () if key is ... else _numbers(key, n_agents):
                if agent in of_agent:
                    raise InputError(f"agent {agent} is in two groups: give it one policy")
                of_agent[agent] = place
        missing = [agent for agent in range(n_agents) if agent not in of_agent]
        if missing and ... not in given:
            raise InputError(f"agent {missing[0]} has no policy: add {{...: policy}} for all others")
        rest = list(given).index(...) if ... in given else 0
        return cls(policies, tuple(of_agent.get(agent, rest) for agent in range(n_agents)))

    @property
    def name(self) -> str:
        counts = [self.of_agent.count(place) for place in range(len(self.policies))]
        return " + ".join(f"{n} {policy_name(each)}" for n, each in zip(counts, self.policies, strict=True))

    def agent(self, seat: Seat) -> Agent:
        return self.policies[self.of_agent[seat.agent]].agent(seat)

    def plan(self, network: Network) -> GroupPlan:
        return GroupPlan(tuple(policy.plan(network) for policy in self.policies), self.of_agent)

    @property
    def needs_moments(self) -> bool:
        return any(policy.needs_moments for policy in self.policies)

    def require_moments_below(self, tail_index: float) -> None:
        for policy in self.policies:
            policy.require_moments_below(tail_index)

    def require_supported(self, world: World) -> None:
        if not world.plain:
            raise InputError(
                "a group of several policies requires a fault-free channel: leave the faults out"
            )


def _numbers(key: Any, n_agents: int) -> list[int]:
    """The agents that a key of the mapping names."""
    found = (
        [key]
        if is_whole(key)
        else list(key)
        if isinstance(key, Iterable) and not isinstance(key, str)
        else []
    )
    if not found or not all(is_whole(each) and 0 <= each < n_agents for each in found):
        raise InputError(
            f"agents = {shown(key)} is not allowed: numbers from 0 to {n_agents - 1}, or ... for all others"
        )
    return [int(each) for each in found]
