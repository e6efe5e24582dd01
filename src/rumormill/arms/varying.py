"""Bandits whose means differ between agents or rounds: clusters, pieces, seasons, trends.

Each is a source of rewards like `Bandit`, and they nest: a season on top of clusters, pieces of seasons.
Regret is then computed twice: against every agent's own best arm of the round, and against the one arm
that is best for all agents over the whole horizon.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rumormill.arms.bandit import Bandit, RewardStream, check_rounds
from rumormill.arms.base import Arm, Moments, Objective, best_of, gaps_of, levelled, sign_of
from rumormill.errors import InputError
from rumormill.text import plural, shown
from rumormill.validate import NamedArguments, number, positive, rewards_in_range, whole

Array = NDArray[np.float64]


class Varying(metaclass=NamedArguments):
    """Abstract class of bandits whose means vary. `means` and `gaps` are averages; `expected` is exact."""

    varies = True
    objective: Objective
    means: Array

    @abstractmethod
    def expected(self, start: int, stop: int, agents: int) -> Array:
        """The means in rounds start..stop-1, counted from 0: (rounds, agents, arms), in the given unit."""

    @abstractmethod
    def laws(self) -> list[Arm]:
        """Laws whose moments bound those of every arm in every round."""

    @abstractmethod
    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
        """Fresh rewards for all agents; the same seed and number of agents give the same rewards."""

    @property
    def n_arms(self) -> int:
        """The number K of arms."""
        return len(self.means)

    @property
    def best_mean(self) -> float:
        return float(best_of(self.means, self.objective))

    @property
    def gaps(self) -> Array:
        return gaps_of(self.means, self.objective)

    @property
    def tail_index(self) -> float:
        """The smallest tail index of all laws."""
        return min(law.tail_index for law in self.laws())

    @abstractmethod
    def parts(self) -> Sequence[Source]:
        """The bandits it is made of."""

    def default_eps(self) -> float:
        """The order of `moments()` minus one: the smallest of those of its parts."""
        return min(part.default_eps() for part in self.parts())

    def moments(self, eps: float | None = None) -> Moments:
        """The largest raw and central moment of order 1 + eps over all laws."""
        return Bandit(_distinct(self.laws()), objective=self.objective).moments(
            self.default_eps() if eps is None else eps
        )


Source = Bandit | Varying


class Clusters(Varying):
    """Every agent plays the bandit of its cluster.

    Parameters
    ----------
    bandits : sequence of Bandit
        One bandit per cluster, all with the same number of arms.
    members : sequence of sequences of int, optional
        The agents of every cluster; by default agent v plays bandit v.
    others : Bandit, optional
        The bandit of agents in no cluster; without it every agent must be in one.

    Examples
    --------
    >>> import rumormill as rm
    >>> north = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> south = rm.Bandit([rm.Gaussian(loc=1.0), rm.Gaussian(loc=0.0)])
    >>> rm.Clusters([north, south], members=[[0, 1], [2]]).expected(0, 1, 3)[0].tolist()
    [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]

    References
    ----------
    docs/advice.md: arms that differ between agents or change.
    """

    def __init__(
        self,
        bandits: Sequence[Source],
        members: Sequence[Sequence[int]] | None = None,
        *,
        others: Source | None = None,
    ) -> None:
        self.bandits = _sources("bandits", bandits)
        self.others = others
        if others is not None:
            _sources("others", [*self.bandits, others])
        groups = [[v] for v in range(len(self.bandits))] if members is None else _groups(members)
        if len(groups) != len(self.bandits):
            raise InputError(
                f"{plural(len(groups), 'list')} of members do not fit {plural(len(self.bandits), 'bandit')}: "
                "give one list per bandit"
            )
        self.members = tuple(np.array(group, dtype=np.int64) for group in groups)
        named = sorted(v for group in groups for v in group)
        self.n_agents = len(named) if others is None else (named[-1] + 1 if named else 0)
        if len(set(named)) < len(named) or (others is None and named != list(range(len(named)))):
            raise InputError(f"members = {shown(groups)} is not allowed: every agent 0, 1, ... exactly once")
        self.objective = self.bandits[0].objective
        sizes = [len(group) if others is None else 1 for group in groups]
        weights = [*sizes, *([] if others is None else [1])]
        self.means = np.average([part.means for part in self.parts()], axis=0, weights=weights)

    def __repr__(self) -> str:
        return f"Clusters({plural(len(self.bandits), 'bandit')}, {plural(self.n_agents, 'agent')})"

    def parts(self) -> list[Source]:
        return [*self.bandits, *([] if self.others is None else [self.others])]

    def _who_plays_what(self, agents: int) -> list[tuple[NDArray[np.int64], Source]]:
        """The agents of every part, those in no cluster last."""
        self._check(agents)
        found = list(zip(self.members, self.bandits, strict=True))
        if self.others is not None:
            rest = np.setdiff1d(np.arange(agents), np.concatenate(self.members))
            found += [(rest, self.others)] if len(rest) else []
        return found

    def laws(self) -> list[Arm]:
        return [law for bandit in self.parts() for law in _laws(bandit)]

    def expected(self, start: int, stop: int, agents: int) -> Array:
        means = np.empty((stop - start, agents, self.n_arms))
        for group, bandit in self._who_plays_what(agents):
            means[:, group] = expected(bandit, start, stop, len(group))
        return means

    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
        parts = [
            (group, bandit.stream(_child(seed, number), len(group), horizon))
            for number, (group, bandit) in enumerate(self._who_plays_what(agents))
        ]

        def rewards(start: int, stop: int) -> Array:
            block = np.empty((stop - start, agents, self.n_arms))
            for group, part in parts:
                block[:, group] = paid(part, start, stop)
            return block

        return _MadeStream(rewards, self.n_arms, horizon)

    def _check(self, agents: int) -> None:
        if agents < self.n_agents or (self.others is None and agents > self.n_agents):
            raise InputError(
                f"the network has {agents} agents, the clusters {self.n_agents}: use a network of "
                f"{self.n_agents}"
            )


class Piecewise(Varying):
    """A bandit that changes at given rounds.

    Parameters
    ----------
    pieces : sequence of (int, Bandit)
        Pairs (first round, bandit), rounds counted from 1, increasing; the first pair starts in round 1.

    Examples
    --------
    >>> import rumormill as rm
    >>> before = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> after = rm.Bandit([rm.Gaussian(loc=2.0), rm.Gaussian(loc=1.0)])
    >>> rm.Piecewise([(1, before), (3, after)]).expected(1, 3, 1)[:, 0].tolist()
    [[0.0, 1.0], [2.0, 1.0]]

    References
    ----------
    docs/advice.md: arms that differ between agents or change.
    """

    def __init__(self, pieces: Sequence[tuple[int, Source]]) -> None:
        try:
            pairs = [(whole("first round", first), bandit) for first, bandit in pieces]
        except (TypeError, ValueError):
            raise InputError(
                f"pieces = {shown(pieces)} is not allowed: a list of (first round, bandit)"
            ) from None
        self.sources = _sources("pieces", [bandit for _, bandit in pairs])
        self.starts = [first - 1 for first, _ in pairs]
        if self.starts[0] != 0 or any(a >= b for a, b in pairwise(self.starts)):
            rounds = [first for first, _ in pairs]
            raise InputError(f"first rounds {rounds} are not allowed: increasing, the first of them 1")
        self.objective = self.sources[0].objective
        self.means = self.sources[0].means

    def __repr__(self) -> str:
        return f"Piecewise({plural(len(self.sources), 'piece')})"

    def parts(self) -> Sequence[Source]:
        return self.sources

    def laws(self) -> list[Arm]:
        return [law for source in self.sources for law in _laws(source)]

    def expected(self, start: int, stop: int, agents: int) -> Array:
        return self._joined(start, stop, lambda i, a, b: expected(self.sources[i], a, b, agents))

    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
        parts = [source.stream(_child(seed, i), agents, horizon) for i, source in enumerate(self.sources)]
        return _MadeStream(
            lambda start, stop: self._joined(start, stop, lambda i, a, b: paid(parts[i], a, b)),
            self.n_arms,
            horizon,
        )

    def _joined(self, start: int, stop: int, part: Callable[[int, int, int], Array]) -> Array:
        ends = [*self.starts[1:], max(stop, self.starts[-1] + 1)]
        found = [
            part(i, max(start, first), min(stop, end))
            for i, (first, end) in enumerate(zip(self.starts, ends, strict=True))
            if max(start, first) < min(stop, end)
        ]
        return found[0] if len(found) == 1 else np.concatenate(found)


class Moving(Varying):
    """A bandit whose means are shifted by an offset that depends on the round, the same for all agents."""

    source: Source

    @abstractmethod
    def offsets(self, start: int, stop: int) -> Array:
        """Shift of the means in rounds start..stop-1: (rounds, arms)."""

    @abstractmethod
    def extremes(self) -> list[Array]:
        """Offsets between which all others lie."""

    def parts(self) -> list[Source]:
        return [self.source]

    def laws(self) -> list[Arm]:
        # E|X + m|^p is convex in m: between two offsets it is largest at one of them.
        each = _laws(self.source)
        ways = [np.resize(extreme, len(each)) for extreme in self.extremes()]
        return [law.at_mean(law.mean + float(way[k])) for way in ways for k, law in enumerate(each)]

    def expected(self, start: int, stop: int, agents: int) -> Array:
        return expected(self.source, start, stop, agents) + self.offsets(start, stop)[:, None, :]

    def stream(self, seed: np.random.SeedSequence, agents: int, horizon: int) -> RewardStream:
        inner, sign = self.source.stream(seed, agents, horizon), sign_of(self.objective)
        return _MadeStream(
            lambda a, b: paid(inner, a, b) + sign * self.offsets(a, b)[:, None, :], self.n_arms, horizon
        )

    def _take(self, source: Source) -> None:
        (self.source,) = _sources("bandit", [source])
        self.objective, self.means = source.objective, source.means


class Seasonal(Moving):
    """A bandit with periodic means: mean + amplitude sin(2π (t / period + phase)).

    Parameters
    ----------
    bandit : Bandit
        The bandit whose means are shifted.
    amplitude : float or one per arm
        Largest shift, in the unit of rewards.
    period : float
        Length of a season, in rounds.
    phase : float or one per arm, default 0.0
        Phase, as a fraction of the period.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> rm.Seasonal(bandit, amplitude=[2.0, 0.0], period=4).expected(0, 1, 1)[0, 0].tolist()
    [2.0, 1.0]

    References
    ----------
    docs/advice.md: arms that differ between agents or change.
    """

    def __init__(
        self, bandit: Source, *, amplitude: ArrayLike, period: float, phase: ArrayLike = 0.0
    ) -> None:
        self._take(bandit)
        self.period = positive("period", period)
        self.amplitude = _per_arm("amplitude", amplitude, self.n_arms)
        self.phase = _per_arm("phase", phase, self.n_arms)

    def __repr__(self) -> str:
        return f"Seasonal({self.source!r}, period={self.period:g})"

    def offsets(self, start: int, stop: int) -> Array:
        turns = np.arange(start + 1, stop + 1)[:, None] / self.period + self.phase
        return np.asarray(self.amplitude * np.sin(2 * math.pi * turns))

    def extremes(self) -> list[Array]:
        return [self.amplitude, -self.amplitude]


class Trend(Moving):
    """A bandit whose means change linearly to `to` within the first rounds, and are constant afterwards.

    Parameters
    ----------
    bandit : Bandit
        The bandit whose means are shifted.
    to : float or one per arm
        Final means, in the unit of rewards.
    rounds : int
        Number of rounds until the final means are reached.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> rm.Trend(bandit, to=[2.0, 1.0], rounds=3).expected(0, 3, 1)[:, 0, 0].tolist()
    [0.0, 1.0, 2.0]

    References
    ----------
    docs/advice.md: arms that differ between agents or change.
    """

    def __init__(self, bandit: Source, *, to: ArrayLike, rounds: int) -> None:
        self._take(bandit)
        self.rounds = whole("rounds", rounds, 2)
        self.by = _per_arm("to", to, self.n_arms) - self.means

    def __repr__(self) -> str:
        return f"Trend({self.source!r}, rounds={self.rounds})"

    def offsets(self, start: int, stop: int) -> Array:
        way = np.minimum(np.arange(start, stop) / (self.rounds - 1), 1.0)
        return np.asarray(way[:, None] * self.by)

    def extremes(self) -> list[Array]:
        return [np.zeros(self.n_arms), self.by]


# --- helpers --------------------------------------------------------------------------------------------


class _MadeStream(RewardStream):
    """Rewards made by a function of the rounds, agents' signs and all."""

    shared = False

    def __init__(self, rewards: Callable[[int, int], Array], n_arms: int, horizon: int) -> None:
        self._rewards, self._horizon = rewards, whole("horizon", horizon)
        self.loc, self.scale = np.zeros(n_arms), np.ones(n_arms)

    def block(self, start: int, stop: int) -> Array:
        check_rounds(start, stop, self._horizon)
        made = np.ascontiguousarray(self._rewards(start, stop))
        rewards_in_range(float(np.abs(made).max()), "a drawn reward")
        return made


def paid(stream: RewardStream, start: int, stop: int) -> Array:
    """What every agent would be paid by every arm: (rounds, agents, arms)."""
    return np.asarray(stream.loc + stream.scale * stream.block(start, stop))


def levelled_stream(stream: RewardStream, levels: ArrayLike, horizon: int) -> RewardStream:
    """The rewards of a stream as agents take them in, each with its (offset, scale)."""
    each, n_arms = np.array(levels).T[:, :, None], len(stream.loc)
    return _MadeStream(lambda start, stop: levelled(paid(stream, start, stop), *each), n_arms, horizon)


def expected(source: Source, start: int, stop: int, agents: int) -> Array:
    """The means of any bandit: (rounds, agents, arms)."""
    if isinstance(source, Varying):
        return source.expected(start, stop, agents)
    return np.broadcast_to(source.means, (stop - start, agents, source.n_arms))


def _laws(source: Source) -> list[Arm]:
    return source.laws() if isinstance(source, Varying) else list(source.arms)


def _distinct(laws: Iterable[Arm]) -> list[Arm]:
    """Each law once; a bandit of at least two arms with different means is what `Bandit` wants."""
    return list(dict.fromkeys(laws))


def _child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy=seed.entropy, spawn_key=(*seed.spawn_key, number))


def _sources(name: str, given: Sequence[Source]) -> tuple[Source, ...]:
    """At least one bandit, all with as many arms and the same way of being better."""
    try:
        sources = tuple(given)
    except TypeError:
        raise InputError(f"{name} = {shown(given)} is not allowed: a list of bandits") from None
    for source in sources:
        if not isinstance(source, Bandit | Varying):
            raise InputError(f"{name}: {shown(source)} is no bandit: give rm.Bandit([...]) and the like")
    if not sources:
        raise InputError(f"{name} is empty: give at least one bandit")
    if len({source.n_arms for source in sources}) > 1:
        raise InputError(f"{name} have {[source.n_arms for source in sources]} arms: give all equally many")
    if len({source.objective for source in sources}) > 1:
        raise InputError(f"{name} have different objectives: give all the same")
    return sources


def _groups(members: Sequence[Sequence[int]]) -> list[list[int]]:
    try:
        return [[whole("an agent", v, 0) for v in group] for group in members]
    except TypeError:
        raise InputError(f"members = {shown(members)} is not allowed: a list of lists of agents") from None


def _per_arm(name: str, given: ArrayLike, n_arms: int) -> Array:
    """One number for all arms, or one for each."""
    values = given if isinstance(given, Sequence | np.ndarray) else [given] * n_arms
    if len(values) != n_arms:
        raise InputError(f"{name} has {len(values)} values for {n_arms} arms: give one for each")
    return np.array([number(name, value) for value in values])
