"""The fault model around the agents (adversary, churn, loss), and what of it happens in one trial.

Churn: which agents are present in which round, and which links are down. A `World` is a description, the same
for all trials. `World.of_trial` gives the `Conditions` of one: numbers and arrays, which the reference engine
reads round by round and the compiled engine takes as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream, stream_of
from rumormill.counter_rng import CHURN, CORRUPT, key_of, key_with, spell_length, uniform_at
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.protocol.adversary import Byzantine, Corruption, FalseReport
from rumormill.protocol.channel import Carrier, Channel, Imperfect, PerfectChannel
from rumormill.seeds import Role, seed_word, stream_seed
from rumormill.text import shown
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


@dataclass(frozen=True, kw_only=True)
class World:
    """Fault model: channel, absences, outages, churn, corruption and adversaries.

    Parameters
    ----------
    channel : Channel, default PerfectChannel()
        What happens to messages.
    absences : Sequence[Absence], default ()
        Triples (agent, first round, last round): the agent neither pulls, sends nor receives.
    outages : Sequence[Outage], default ()
        Quadruples (agent, agent, first round, last round): the link carries nothing.
    churn : Churn | None, default None
        Random absences.
    corruption : Corruption | None, default None
        Random falsification of rewards.
    byzantine : Byzantine | None, default None
        Adversaries.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.World().plain, rm.World(churn=rm.Churn(up=50, down=5)).all_present
    (True, False)

    References
    ----------
    docs/imperfect.md: the fault model and what it costs.
    """

    channel: Channel = field(default_factory=PerfectChannel)
    absences: Sequence[Absence] = ()
    outages: Sequence[Outage] = ()
    churn: Churn | None = None
    corruption: Corruption | None = None
    byzantine: Byzantine | None = None

    def __post_init__(self) -> None:
        channel: Any = self.channel
        if isinstance(channel, type) or not callable(getattr(channel, "open", None)):
            raise InputError(
                f"channel = {shown(channel)} cannot be opened: give an instance with open(network, seed), "
                "for example rm.PerfectChannel()"
            )
        object.__setattr__(self, "absences", checked_absences(self.absences))
        object.__setattr__(self, "outages", checked_outages(self.outages))
        for name, kind in (("churn", Churn), ("corruption", Corruption), ("byzantine", Byzantine)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise refused(name, value, f"an rm.{kind.__name__}(...), or None")

    @property
    def messages_arrive(self) -> bool:
        """Whether the channel is known to carry everything without loss or delay."""
        channel = self.channel
        if type(channel) is Imperfect:
            return channel.perfect
        return type(channel) is PerfectChannel

    @property
    def all_present(self) -> bool:
        """Whether all agents and links are present in every round."""
        return not (self.absences or self.outages or self.churn)

    @property
    def truthful(self) -> bool:
        """Whether nothing is falsified."""
        corrupt = self.corruption is not None and self.corruption.rate > 0
        return not (corrupt or self.liars)

    @property
    def plain(self) -> bool:
        """Whether the world is fault-free."""
        return self.messages_arrive and self.all_present and self.truthful

    @property
    def liars(self) -> tuple[int, ...]:
        """The adversaries."""
        return () if self.byzantine is None else self.byzantine.ids

    @property
    def longest_delay(self) -> int | None:
        """Largest delay of a batch, in rounds; None: not known."""
        if self.messages_arrive:
            return 0
        return getattr(self.channel, "longest_delay", None)

    def of_trial(
        self, network: Network, source: RewardSource, horizon: int, seed: np.random.SeedSequence
    ) -> Conditions:
        """What happens in the trial of this seed."""
        for v in self.liars:
            if v >= network.n_agents:
                raise InputError(
                    f"byzantine: there is no agent {v}, the network has 0..{network.n_agents - 1}"
                )
        return Conditions(self, network, source, horizon, seed)


class Conditions:
    """Realisation of the fault model in one trial. Rounds are counted from 1, a block is first..stop-1."""

    def __init__(
        self, world: World, network: Network, source: RewardSource, horizon: int, seed: np.random.SeedSequence
    ) -> None:
        self.world, self.network, self.horizon = world, network, horizon
        self._trial = seed
        self.channel_seed = stream_seed(seed, Role.CHANNEL)
        self.seed = seed_word(self.channel_seed)
        """The seed of all keyed uniforms of the trial."""
        n_agents = network.n_agents
        generated = [] if world.churn is None else world.churn.absences(self.seed, n_agents, horizon)
        self.presence = Presence([*world.absences, *generated], n_agents)
        self.outages = known_outages(world.outages, network)
        """(agent, agent, first round, last round), for both directions."""
        self.lies: NDArray[np.bool_] = np.zeros(n_agents, dtype=np.bool_)
        """Which agents are adversaries."""
        self.lies[list(world.liars)] = True
        self.lie: FalseReport | None = (
            world.byzantine.lie(source) if world.byzantine and world.liars else None
        )

    @property
    def even(self) -> bool:
        """Whether all agents are present and honest in every round."""
        return self.world.all_present and self.world.truthful

    def carrier(self) -> Carrier:
        """A carrier for this trial."""
        return self.world.channel.open(self.network, self.channel_seed)

    def up(self, first: int, stop: int) -> NDArray[np.bool_]:
        """(rounds, agents): which agents are present. Adversaries are, though they never pull."""
        return self.presence.up(first, stop)

    def links_down(self, t: int) -> set[tuple[int, int]]:
        """Links that are down in round t, in both directions."""
        first, last = self.outages[:, 2], self.outages[:, 3]
        here = self.outages[(first <= t) & (t <= last)]
        return {pair for a, b in here[:, :2].tolist() for pair in ((a, b), (b, a))}

    # --- corruption ---------------------------------------------------------------------------------

    def corrupt(self, first: int, stop: int) -> NDArray[np.bool_]:
        """(rounds, origins): whose message of the round is falsified for all receivers (at="origin")."""
        corruption, n_agents = self.world.corruption, self.network.n_agents
        if corruption is None or corruption.at != "origin":
            return np.zeros((stop - first, n_agents), dtype=np.bool_)
        begin = np.full(n_agents, key_of(self.seed, CORRUPT), dtype=np.uint64)
        keys = key_with(begin, np.arange(n_agents, dtype=np.uint64))
        rounds = np.arange(first, stop, dtype=np.uint64)
        false: NDArray[np.bool_] = uniform_at(key_with(keys[None, :], rounds[:, None])) < corruption.rate
        return false

    def corrupt_for(self, receiver: int, origin: int, t: int) -> bool:
        """Whether this receiver gets a false value of that message (at="receiver")."""
        corruption = self.world.corruption
        if corruption is None or corruption.at != "receiver":
            return False
        key = key_with(key_with(key_with(key_of(self.seed, CORRUPT), receiver), origin), t)
        return bool(uniform_at(key) < corruption.rate)

    @cached_property
    def _drawn(self) -> RewardStream | None:
        corruption = self.world.corruption
        if corruption is None or corruption.law is None:
            return None
        seed = stream_seed(self._trial, Role.ADVERSARY)
        return stream_of([corruption.law], seed, self.network.n_agents, self.horizon)

    def drawn(self, first: int, stop: int) -> NDArray[np.float64]:
        """(rounds, origins): the false rewards; zeros where there is no law."""
        stream = self._drawn
        if stream is None:
            return np.zeros((stop - first, self.network.n_agents))
        values: NDArray[np.float64]
        values = stream.loc[0] + stream.scale[0] * stream.block(first - 1, stop - 1)[:, :, 0]
        return values

    def drawn_for(self, origin: int, t: int) -> float:
        """The same for one message."""
        return float(self.drawn(t, t + 1)[0, origin])
