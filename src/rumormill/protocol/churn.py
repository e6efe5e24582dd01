"""Churn: which agents are present in which round, and which links are down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.counter_rng import CHURN, key_of, key_with, spell_length, uniform_at
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.validate import NamedArguments, between, refused, whole

LONGEST_SPELL = 2.0**52  # beyond it 1 - 1/mean is 1

Absence = tuple[int, int, int]
Outage = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class Churn(metaclass=NamedArguments):
    """Agents that leave and return: up and down times of geometric length.

    All agents are up in round 1. Spell i of agent v has 1 + ⌊ln(1-U)/ln(1-1/mean)⌋ rounds, U = U(CHURN; v,
    i).

    Parameters
    ----------
    up : float
        Mean length of an up time, in rounds.
    down : float
        Mean length of a down time, in rounds.

    Examples
    --------
    >>> import rumormill as rm
    >>> churn = rm.Churn(up=50, down=5)
    >>> all(first <= last for _, first, last in churn.absences(seed=1, n_agents=3, horizon=500))
    True

    References
    ----------
    docs/imperfect.md: the fault model and what it costs.
    """

    up: float
    down: float

    def __post_init__(self) -> None:
        for name in ("up", "down"):
            object.__setattr__(self, name, between(name, getattr(self, name), 1, LONGEST_SPELL))

    def absences(self, seed: int, n_agents: int, horizon: int) -> list[Absence]:
        """All down times up to the horizon, as (agent, first round, last round)."""
        found = []
        begin = key_of(seed, CHURN)
        for v in range(n_agents):
            key, last, spell = key_with(begin, v), 0, 0
            while last < horizon:
                mean = self.down if spell % 2 else self.up
                first, last = last + 1, last + spell_length(uniform_at(key_with(key, spell)), mean)
                if spell % 2:
                    found.append((v, first, min(last, horizon)))
                spell += 1
        return found


def checked_absences(given: Any) -> tuple[Absence, ...]:
    """Triples (agent, first round, last round)."""
    found = []
    for each in _each("absences", given, "(agent, first round, last round)", 3):
        v = whole("the agent of an absence", each[0], 0)
        found.append((v, *_rounds("absences", each)))
    return tuple(found)


def checked_outages(given: Any) -> tuple[Outage, ...]:
    """Quadruples (agent, agent, first round, last round)."""
    found = []
    for each in _each("outages", given, "(agent, agent, first round, last round)", 4):
        a, b = (whole("an agent of an outage", v, 0) for v in each[:2])
        found.append((a, b, *_rounds("outages", each)))
    return tuple(found)


def _each(name: str, given: Any, form: str, size: int) -> list[Sequence[Any]]:
    wanted = f"a list of {form}"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise refused(name, given, wanted)
    found = list(given)
    for each in found:
        if isinstance(each, str) or not isinstance(each, Sequence) or len(each) != size:
            raise refused(name, each, wanted)
    return found


def _rounds(name: str, each: Sequence[Any]) -> tuple[int, int]:
    first, last = (whole(f"a round of {name}", t) for t in each[-2:])
    if last < first:
        raise refused(name, each, "the last round is not before the first")
    return first, last


class Presence:
    """Which agents are present in which round of one trial."""

    def __init__(self, absences: Iterable[Absence], n_agents: int) -> None:
        table = np.array([*absences], dtype=np.int64).reshape(-1, 3)
        if len(table) and table[:, 0].max() >= n_agents:
            raise InputError(
                f"absences: there is no agent {table[:, 0].max()}, the network has 0..{n_agents - 1}"
            )
        self.n_agents = n_agents
        self.spells: NDArray[np.int64] = table
        """(agent, first round, last round) of every absence; they may overlap."""

    def __bool__(self) -> bool:
        """Whether any agent is ever absent."""
        return len(self.spells) > 0

    def up(self, first: int, stop: int) -> NDArray[np.bool_]:
        """Rounds first..stop-1: (rounds, agents), True where an agent is present."""
        agent, begin, end = self.spells.T
        here = (begin < stop) & (end >= first)
        steps = np.zeros((stop - first + 1, self.n_agents), dtype=np.int64)
        np.add.at(steps, (np.maximum(begin[here], first) - first, agent[here]), 1)
        np.add.at(steps, (np.minimum(end[here] + 1, stop) - first, agent[here]), -1)
        there: NDArray[np.bool_] = steps.cumsum(axis=0)[:-1] == 0
        return there


def known_outages(outages: Iterable[Outage], network: Network) -> NDArray[np.int64]:
    """(agent, agent, first round, last round) of every outage, refused where there is no such link."""
    for a, b, _, _ in outages:
        inside = a < network.n_agents and b < network.n_agents
        if not inside or b not in network.neighbours(a):
            raise InputError(f"outages: there is no link between the agents {a} and {b}")
    return np.array([*outages], dtype=np.int64).reshape(-1, 4)
