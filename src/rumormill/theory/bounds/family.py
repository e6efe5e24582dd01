"""What the bounds of every family of policies have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Bandit, Moments, RewardSource
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.protocol import World
from rumormill.theory.bound import Assumption, Form

Parts = tuple[dict[str, float], list[Assumption]]
"""The terms of a bound by name, and what they rest on."""


@dataclass(frozen=True, eq=False)
class Family(ABC):
    """A bandit, a network and a policy of one family played for `horizon` > K rounds."""

    bandit: RewardSource
    network: Network
    policy: Any
    horizon: int
    plan: Any
    world: World = field(default_factory=World)

    plan_type: ClassVar[type]
    """What the policy's plan is."""
    single_agents: ClassVar[bool] = False
    """Whether there is a bound for single agents too."""

    @abstractmethod
    def corrected(self) -> Parts:
        """The group's bound, as the argument gives it."""

    @abstractmethod
    def printed(self) -> Parts:
        """The group's bound, as the paper prints it."""

    def individual(self, agent: int, form: Form) -> Parts:
        """The bound of one agent."""
        raise InputError(f"{type(self.policy).__name__} has no bound for single agents")

    def covers_world(self) -> bool:
        """Whether the argument holds where messages are lost or late, or agents come and go or lie."""
        return self.world.plain

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The gaps of the arms that are not best."""
        return self.bandit.gaps[self.bandit.gaps > 0]

    @property
    def gap_sum(self) -> float:
        return float(self.gaps.sum())

    @property
    def n_agents(self) -> int:
        return self.network.n_agents

    @property
    def ceiling(self) -> float:
        """The regret of the worst arm pulled by everyone in every round."""
        return self.horizon * self.n_agents * float(self.bandit.gaps.max())

    def first_rounds(self, agents: int) -> Parts:
        """In round t <= K everyone pulls arm t - 1: no theory is needed."""
        total = agents * float(self.bandit.gaps[: self.horizon].sum())
        text = "The horizon ends within the first K rounds, in which the arms are fixed: exact."
        return {"start": total}, [Assumption(text)]

    def moments_hold(self, moments: Moments) -> Assumption:
        """Whether the moment bounds in use are those of the arms."""
        if not isinstance(self.bandit, Bandit):
            return Assumption("The rewards are recorded: the moment bounds are those of the record.")
        true = self.bandit.moments(moments.eps) if moments.p < self.bandit.tail_index else None
        if true is None or true.u > moments.u * (1 + 1e-9) or true.rho > moments.rho * (1 + 1e-9):
            text = f"The moment bounds given (eps = {moments.eps:g}) do not hold for these arms."
            return Assumption(text, holds=False)
        return Assumption(
            f"Moments of order {moments.p:g} at most u = {moments.u:.4g}, rho = {moments.rho:.4g}."
        )


def exp_or_inf(x: float) -> float:
    """exp(x), +inf beyond the floats."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
