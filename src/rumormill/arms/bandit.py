"""Bandits: K arms played together, or recorded rewards; and the stream of rewards an engine reads."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rumormill.arms.base import Arm, Moments, Objective, best_of, checked_objective, gaps_of, sign_of
from rumormill.errors import InputError
from rumormill.formulas import default_eps
from rumormill.text import shown
from rumormill.validate import NamedArguments, reward, rewards_in_range, whole
from rumormill.validate import eps as check_eps

# Rewards are drawn in chunks of this many rounds, each from a generator of its own: what comes out
# depends neither on the blocks requested nor on the horizon.
DRAW_ROUNDS = 64


class RewardStream(ABC):
    """The rewards of one trial: arm k pays loc[k] + scale[k] * block[round, agent, column].

    The column is 0 for every arm if `shared` (one draw serves all arms), else k. Agents maximise: of costs
    the stream has the negative.
    """

    loc: NDArray[np.float64]
    scale: NDArray[np.float64]
    shared: bool

    @abstractmethod
    def block(self, start: int, stop: int) -> NDArray[np.float64]:
        """Rounds start..stop-1, counted from 0: a C-contiguous array (stop - start, agents, columns).

        It may be a view of the source: read it, do not write to it.
        """


@runtime_checkable
class RewardSource(Protocol):
    """What `Bandit` and `Replay` share: the interface that engines use.

    A source whose means differ between agents or rounds says so by `varies = True` and has
    `expected(start, stop, agents)`: see `VaryingSource`.
    """

    @property
    def n_arms(self) -> int: ...
    @property
    def means(self) -> NDArray[np.float64]: ...
    @property
    def best_mean(self) -> float: ...
    @property
    def gaps(self) -> NDArray[np.float64]: ...
    @property
    def tail_index(self) -> float: ...
    def default_eps(self) -> float: ...
    def moments(self, eps: float | None = None) -> Moments: ...
    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream: ...


@runtime_checkable
class VaryingSource(RewardSource, Protocol):
    """A source whose means may differ between agents and rounds."""

    @property
    def objective(self) -> Objective: ...
    @property
    def varies(self) -> bool: ...
    def expected(self, start: int, stop: int, agents: int) -> NDArray[np.float64]:
        """The means in rounds start..stop-1, counted from 0: (rounds, agents, arms), in the given unit."""


class Bandit(metaclass=NamedArguments):
    """At least two arms with known laws. Arms of one location-scale family share their draws.

    A bandit whose means are all equal is refused: regret would be zero for every policy.

    Parameters
    ----------
    arms : sequence of Arm
        The law of every arm.
    eps : float, optional
        Order of the moment bounds minus one; by default it follows from the tail index.
    objective : "maximise" | "minimise", default "maximise"
        With "minimise" the laws are those of costs, and the lowest mean is the best.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Bandit([rm.Gaussian(loc=0.25), rm.Gaussian(loc=1.0)]).gaps.tolist()
    [0.75, 0.0]
    >>> rm.Bandit([rm.Gaussian(loc=0.25), rm.Gaussian(loc=1.0)], objective="minimise").gaps.tolist()
    [0.0, 0.75]

    References
    ----------
    Dubey and Pentland (2020): one bandit, played by all agents.
    """

    def __init__(
        self, arms: Sequence[Arm], *, eps: float | None = None, objective: Objective = "maximise"
    ) -> None:
        self.objective: Objective = checked_objective(objective)
        if not isinstance(arms, Iterable):
            raise InputError(f"arms = {shown(arms)} is not allowed: a list of reward laws")
        self.arms: tuple[Arm, ...] = tuple(arms)
        for k, arm in enumerate(self.arms):
            if not isinstance(arm, Arm):
                raise InputError(
                    f"arm {k} is {arm!r}: every arm must be a reward law, for example Gaussian()"
                )
        if len(self.arms) < 2:
            raise InputError(
                f"a bandit of {len(self.arms)} arm(s) leaves nothing to choose: give at least two"
            )
        self.means = np.array([_mean_of(k, arm) for k, arm in enumerate(self.arms)])
        self.best_mean = float(best_of(self.means, self.objective))
        self.gaps = gaps_of(self.means, self.objective)
        if not self.gaps.any():
            raise InputError(
                f"all {self.n_arms} arms have the same mean {self.best_mean!r}: change one, "
                "since regret is zero whatever is pulled"
            )
        self.means.flags.writeable = False
        self.gaps.flags.writeable = False
        self._eps = eps
        self._moments: dict[float, Moments] = {}
        if eps is not None:
            self.moments()  # refuses an order that is not finite

    def __repr__(self) -> str:
        order = "" if self._eps is None else f", eps={self._eps}"
        way = "" if self.objective == "maximise" else f", objective={self.objective!r}"
        return f"Bandit([{', '.join(map(repr, self.arms))}]{order}{way})"

    def _repr_html_(self) -> str:
        from rumormill.plotting.rendering import html_table

        rows = [
            {"arm": k, "law": repr(arm), "mean": float(mean), "gap": float(gap), "tail index": arm.tail_index}
            for k, (arm, mean, gap) in enumerate(zip(self.arms, self.means, self.gaps, strict=True))
        ]
        return html_table(rows, f"{len(rows)} arms, {self.objective}")

    @property
    def n_arms(self) -> int:
        """The number K of arms."""
        return len(self.arms)

    @property
    def tail_index(self) -> float:
        """The smallest tail index of the arms: moments of all arms are finite exactly below it."""
        return min(arm.tail_index for arm in self.arms)

    def default_eps(self) -> float:
        """The order of `moments()` minus one: as given, or near the best trade-off for the tails."""
        return default_eps(self.tail_index) if self._eps is None else self._eps

    def moments(self, eps: float | None = None) -> Moments:
        """The largest raw and central moment of order 1 + eps over the arms."""
        eps = self.default_eps() if eps is None else eps
        eps = check_eps("eps", eps)
        if 1 + eps >= self.tail_index:
            raise InputError(
                f"eps = {eps!r} is too large: moments are finite only below order {self.tail_index!r}, "
                f"so give eps below {self.tail_index - 1:.12g}"
            )
        if eps not in self._moments:  # integrals, needed by every policy of a trial
            self._moments[eps] = Moments(
                eps=eps,
                u=max(arm.moment(1 + eps) for arm in self.arms),
                rho=max(arm.moment(1 + eps, central=True) for arm in self.arms),
            )
        return self._moments[eps]

    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
        """Fresh rewards for all agents; the same seed and number of agents give the same rewards."""
        return _DrawnStream(self.arms, seed, agents, horizon, sign_of(self.objective))


def stream_of(arms: Sequence[Arm], seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
    """Draws from laws that need not make up a bandit; the same seed gives the same draws."""
    return _DrawnStream(arms, seed, agents, horizon)


def _mean_of(k: int, arm: Arm) -> float:
    try:
        mean = arm.mean
    except InputError as error:
        raise InputError(f"arm {k} cannot be part of a bandit: {error}") from None
    return reward(f"the mean of arm {k}, {arm!r},", mean)


class _DrawnStream(RewardStream):
    """Rewards drawn from laws, chunk by chunk."""

    def __init__(
        self, arms: Sequence[Arm], seed: np.random.SeedSequence, agents: int, horizon: int, sign: float = 1.0
    ) -> None:
        whole("agents", agents)
        whole("horizon", horizon)
        forms = [arm.standard() for arm in arms]
        self._laws = list(arms)
        self.shared = False
        self.loc, self.scale = np.zeros(len(arms)), np.ones(len(arms))
        known = [form for form in forms if form is not None]
        if len(known) == len(arms) and all(form[0] == known[0][0] for form in known):
            self.shared = True
            self._laws = [known[0][0]]
            self.loc = np.array([form[1] for form in known])
            self.scale = np.array([form[2] for form in known])
        if sign < 0:  # the draws stay the same, whichever way is better
            self.loc, self.scale = 0.0 - self.loc, -self.scale
        self._largest_loc, self._largest_scale = float(abs(self.loc).max()), float(abs(self.scale).max())
        self._seed, self._agents, self._horizon = seed, agents, horizon
        self._chunk_index = -1
        self._chunk = np.empty((0, agents, len(self._laws)))

    def block(self, start: int, stop: int) -> NDArray[np.float64]:
        check_rounds(start, stop, self._horizon)
        first, last = start // DRAW_ROUNDS, (stop - 1) // DRAW_ROUNDS
        if first == last:
            return self._draw(first)[start - first * DRAW_ROUNDS : stop - first * DRAW_ROUNDS]
        block = np.empty((stop - start, self._agents, len(self._laws)))
        for index in range(first, last + 1):
            low = max(start, index * DRAW_ROUNDS)
            high = min(stop, (index + 1) * DRAW_ROUNDS)
            offset = index * DRAW_ROUNDS
            block[low - start : high - start] = self._draw(index)[low - offset : high - offset]
        return block

    def _draw(self, index: int) -> NDArray[np.float64]:
        """The whole chunk, from a generator that depends on the seed and the chunk's number alone."""
        if index != self._chunk_index:
            child = np.random.SeedSequence(
                entropy=self._seed.entropy, spawn_key=(*self._seed.spawn_key, index)
            )
            rng = np.random.Generator(np.random.PCG64(child))
            shape = (DRAW_ROUNDS, self._agents)
            columns = [law.sample(rng, shape) for law in self._laws]
            self._chunk = columns[0][:, :, None] if len(columns) == 1 else np.stack(columns, axis=2)
            self._check_sizes(self._chunk)
            self._chunk_index = index
        return self._chunk

    def _check_sizes(self, chunk: NDArray[np.float64]) -> None:
        """Both engines read rewards from here: this is where those beyond all measure are refused."""
        largest = max(-float(chunk.min()), float(chunk.max()))
        rewards_in_range(self._largest_loc + self._largest_scale * largest, "a drawn reward")


def check_rounds(start: int, stop: int, horizon: int) -> None:
    """Refuse a block that is empty or leaves the rounds 0..horizon-1."""
    if not 0 <= start < stop <= horizon:
        raise InputError(f"block({start}, {stop}) is not allowed: give 0 <= start < stop <= {horizon}")


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
