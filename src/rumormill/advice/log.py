"""What was recorded: who tried which arm when, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.objective import Objective, sign_of

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Log:
    """One line per value, oldest first: agent[i] tried arm[i] at time[i] and got value[i]."""

    name: str
    arms: tuple[str, ...]
    agents: tuple[str, ...] | None
    """The names of the agents; None where the file does not say who measured what."""
    objective: Objective
    unit: str
    time: Floats
    agent: Ints
    arm: Ints
    value: Floats
    timed: bool
    """Whether the file had a time; else the order of its rows stands in."""
    notes: tuple[str, ...] = ()
    """What a reader of the advice has to know about how the file was read."""

    @property
    def n_agents(self) -> int:
        return 1 if self.agents is None else len(self.agents)

    @property
    def n_arms(self) -> int:
        return len(self.arms)

    @property
    def sign(self) -> float:
        """What a value is multiplied by so that more is better."""
        return sign_of(self.objective)

    @property
    def better(self) -> str:
        """Which way is better, in a word."""
        return "more" if self.objective == "maximise" else "less"

    def amount(self, value: float, digits: int = 3) -> str:
        """A value in the user's unit."""
        number = f"{value:,.{digits}g}" if abs(value) < 1e6 else f"{value:.{digits}e}"
        if 1e3 <= abs(value) < 1e6:
            number = f"{value:,.0f}"
        return f"{number} {self.unit}".rstrip()

    def counts(self) -> NDArray[np.int64]:
        """How many values there are of every (agent, arm)."""
        cells = self.agent.astype(np.int64) * self.n_arms + self.arm
        return np.bincount(cells, minlength=self.n_agents * self.n_arms).reshape(self.n_agents, self.n_arms)

    def taken(self, rows: NDArray[Any]) -> Log:
        """The log with these lines only, in this order."""
        return replace(
            self, time=self.time[rows], agent=self.agent[rows], arm=self.arm[rows], value=self.value[rows]
        )

    def without_agents(self, out: NDArray[np.bool_]) -> Log:
        """The log without some agents; the others are numbered anew."""
        assert self.agents is not None
        found, number = self.taken(~out[self.agent]), np.cumsum(~out) - 1
        names = tuple(name for name, left_out in zip(self.agents, out, strict=True) if not left_out)
        return replace(found, agents=names, agent=number[found.agent].astype(np.int32))
