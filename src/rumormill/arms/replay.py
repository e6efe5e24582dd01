"""Recorded rewards in place of laws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rumormill.arms.bandit import RewardStream, check_rounds
from rumormill.arms.base import Moments
from rumormill.arms.objective import Objective, best_of, checked_objective, gaps_of, sign_of
from rumormill.errors import InputError
from rumormill.validate import NamedArguments, rewards_in_range
from rumormill.validate import eps as check_eps


class Replay(metaclass=NamedArguments):
    """Rewards from a table [round, agent, arm]: every engine and policy gets the same ones.

    All moments of a table are finite: `tail_index` is infinite and the default eps is 1. Equal means are
    allowed; regret is then zero.

    Parameters
    ----------
    table : array of shape (rounds, agents, arms)
        The recorded rewards; costs with objective="minimise".
    means : array of shape (arms,), (agents, arms) or (rounds, agents, arms), optional
        True means, from which regret is computed; by default the average of each arm over the table.
    objective : "maximise" | "minimise", default "maximise"
        Which values are better.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Replay([[[1.0, 2.0]], [[3.0, 6.0]]]).means.tolist()
    [2.0, 4.0]
    >>> rm.Replay([[[1.0, 2.0]], [[3.0, 6.0]]], objective="minimise").gaps.tolist()
    [0.0, 2.0]

    References
    ----------
    docs/advice.md: replays of a log.
    """

    tail_index = math.inf

    def __init__(
        self, table: ArrayLike, means: ArrayLike | None = None, objective: Objective = "maximise"
    ) -> None:
        self.objective: Objective = checked_objective(objective)
        self._table = _checked(table, "table")
        if self._table.ndim != 3 or 0 in self._table.shape:
            raise InputError(
                f"a table of shape {self._table.shape} is not allowed: give [round, agent, arm], none empty"
            )
        if self.n_arms < 2:
            raise InputError(f"a table of {self.n_arms} arm leaves nothing to choose: give at least two")
        given = self._table.mean(axis=(0, 1)) if means is None else _checked(means, "means")
        if given.shape not in [self._table.shape[axis:] for axis in range(3)]:
            raise InputError(
                f"means of shape {given.shape} do not fit a table of {self.n_arms} arms: "
                f"give {self.n_arms} numbers, or so many per agent, or as many as the table has"
            )
        self._given = given
        self.means = given if given.ndim == 1 else given.mean(axis=tuple(range(given.ndim - 1)))
        self.best_mean = float(best_of(self.means, self.objective))
        self.gaps = gaps_of(self.means, self.objective)
        self.means.flags.writeable = False
        self.gaps.flags.writeable = False

    def __repr__(self) -> str:
        way = "" if self.objective == "maximise" else ", minimise"
        return f"Replay({self.rounds} rounds, {self.agents} agents, {self.n_arms} arms{way})"

    @property
    def rounds(self) -> int:
        """How many rounds were recorded."""
        return int(self._table.shape[0])

    @property
    def agents(self) -> int:
        """How many agents were recorded."""
        return int(self._table.shape[1])

    @property
    def n_arms(self) -> int:
        """The number K of arms."""
        return int(self._table.shape[2])

    @property
    def varies(self) -> bool:
        """Whether the means were given by agent, or by round and agent."""
        return self._given.ndim > 1

    def expected(self, start: int, stop: int, agents: int) -> NDArray[np.float64]:
        """The means in rounds start..stop-1, counted from 0: (rounds, agents, arms)."""
        check_rounds(start, stop, self.rounds)
        given = self._given[start:stop] if self._given.ndim == 3 else self._given
        return np.broadcast_to(given, (stop - start, agents, self.n_arms))

    def default_eps(self) -> float:
        """1: a table has a finite variance."""
        return 1.0

    def moments(self, eps: float | None = None) -> Moments:
        """The largest raw and central (about `means`) moment of order 1 + eps over the arms of the table."""
        eps = self.default_eps() if eps is None else eps
        eps = check_eps("eps", eps)
        raw = (np.abs(self._table) ** (1 + eps)).mean(axis=(0, 1))
        central = (np.abs(self._table - self._given) ** (1 + eps)).mean(axis=(0, 1))
        if not central.max() > 0:
            raise InputError("every arm of the table pays a constant: its moments say nothing, give moments=")
        return Moments(eps=float(eps), u=float(raw.max()), rho=float(central.max()))

    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
        """The recorded rewards, whatever the seed."""
        if agents != self.agents:
            raise InputError(
                f"the network has {agents} agents, the table {self.agents}: use a network of {self.agents}"
            )
        if not 1 <= horizon <= self.rounds:
            raise InputError(
                f"horizon = {horizon} is not allowed: give 1 to {self.rounds}, the table's rounds"
            )
        return _TableStream(self._table[:horizon], sign_of(self.objective))


class _TableStream(RewardStream):
    """Slices of a table."""

    shared = False

    def __init__(self, table: NDArray[np.float64], sign: float) -> None:
        self._table = table
        self.loc, self.scale = np.zeros(table.shape[2]), np.full(table.shape[2], sign)

    def block(self, start: int, stop: int) -> NDArray[np.float64]:
        check_rounds(start, stop, len(self._table))
        return self._table[start:stop]


def _checked(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """A copy as floats, all finite."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"the {name} cannot be read as an array of numbers: {error}") from None
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InputError(f"{name}{list(first)} = {array[first]} is not finite: drop or repair it")
    rewards_in_range(float(np.abs(array).max(initial=0.0)), f"{name}: a value")
    return array
