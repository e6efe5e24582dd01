"""The fault model around the agents (adversary, churn, loss), and what of it happens in one trial.

A `World` is a description, the same for all trials. `World.of_trial` gives the `Conditions` of one: numbers
and arrays, which the reference engine reads round by round and the compiled engine takes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream, stream_of
from rumormill.counter_rng import CORRUPT, key_of, key_with, uniform_at
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.protocol.adversary import Byzantine, Corruption, FalseReport
from rumormill.protocol.channel import Carrier, Channel, Imperfect, PerfectChannel
from rumormill.protocol.churn import (
    Absence,
    Churn,
    Outage,
    Presence,
    checked_absences,
    checked_outages,
    known_outages,
)
from rumormill.seeds import Role, seed_word, stream_seed
from rumormill.text import shown
from rumormill.validate import refused


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
