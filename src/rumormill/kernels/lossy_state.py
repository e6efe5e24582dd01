"""Arrays of a trial with lossy channels and faults: links, corruption, messages in flight.

Every agent is a learner of the same number here. The ring (kernels/state.py) holds the samples as *sent* in
each round; RoundState holds the true ones of the current round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill.kernels.counter_rng import Keys
from rumormill.kernels.origins import Origins
from rumormill.kernels.state import Flags, Floats, Ids, Ints, Words

Delays = NDArray[np.int16]

# What replaces a corrupted reward.
TRUE, SHIFTED, SCALED, DRAWN = 0, 1, 2, 3
# The law of the delay of bundles.
AT_ONCE, EVEN, GEOMETRIC = 0, 1, 2
LOST = -1


class Links(NamedTuple):
    """The links into every agent (CSR), neighbours ascending, and their loss and delay."""

    gamma: int
    indptr: Ints
    indices: Ids
    loses: bool
    per_copy: bool
    limit: np.uint64
    """A bundle is delivered if its uniform is below this (kernels/counter_rng.py)."""
    loss: Keys
    """Per link, the key of its losses."""
    delay: int
    longest: int
    """D."""
    geometric_q: float
    """q of the geometric delay."""
    delay_keys: Keys
    """Per link, the key of its delays."""
    outages: Ints
    """[., (link, the agent it leads to, first round, last round)]."""


class ReceiveRules(NamedTuple):
    """Which arrivals an agent uses, and when."""

    group: Ids
    """Only samples of the own group are used; empty: all are."""
    hold: int
    """A sample is used at the end of the round in which it is so many rounds old, or later."""
    discards: bool
    discard: Keys
    """Per agent, the key of its discards, and below which limit a sample is used."""
    kept: Keys
    patience: float
    """A follower copies its leader until messages are so many rounds overdue."""
    audience: Ints
    """How many agents reach an agent, itself included: a true row of round t counts at most t times that."""


class CorruptionRules(NamedTuple):
    """Corruption of messages, and agents that always send the same lie."""

    way: int
    amount: float
    at_receiver: bool
    rows: bool
    limit: np.uint64
    key: np.uint64
    liars: Flags
    """Agents that never pull and always send the same."""
    lie_arm: int
    lie_x: float
    lie_means: Floats
    lie_count: float


class BlockFaults(NamedTuple):
    """Faults of agents in the rounds of a block, [round, agent]."""

    up: Flags
    corrupted: Flags
    """Whose message is corrupted at the origin, the same for all receivers."""
    drawn: Floats
    """The reward that is sent instead, if it is drawn; else empty."""


class InFlight(NamedTuple):
    """Messages in flight, as bitmasks of 64 origins in a word; rounds of origin modulo the slots."""

    late: Delays
    """[round of sending mod D + 1, link]: how many rounds a bundle takes, or LOST."""
    out: Keys
    """[round of sending mod D + 2, agent, age - 1, word]: bitmasks of what is forwarded."""
    seen: Keys
    """[agent, slot, word]: bitmasks of what has arrived, and the own; with lists one agent at a time."""
    arrived: Keys
    """[slot, word]: bitmasks of what arrives at one agent in this round; `filled`: words that are not 0."""
    filled: Keys
    begin: Ints
    """Instead of `out` and a row of `seen` for every agent, lists in a ring buffer: [round mod slots, agent],
    where the arrivals of that round begin and end (large, sparse networks)."""
    end: Ints
    pool: Ids
    """[origin or round of origin, entry mod a power of two]."""
    written: Ints
    """[entries ever written]."""
    forwards: Ints
    """Per agent, how many messages it forwards in the next round."""
    origin: Ids
    """What arrived at one agent, in arrival order: origin and round of origin."""
    when: Ids
    arm: Ids
    """The samples among it that are used: arm, origin, reward, required rank, |x|^p."""
    source: Ids
    x: Floats
    need: Floats
    power: Floats


class RoundState(NamedTuple):
    """The current round, per agent."""

    arm: Ids
    """-1: does not pull."""
    x: Floats
    need: Floats
    power: Floats
    copies: Flags
    """Whether it copies its leader."""
    leader_round: Ids
    """The newest message of the leader: its round (0: none) and arm."""
    leader_arm: Ids
    pulled: Ints
    """[pulls so far, over all agents]."""
    drawn: Floats
    """[slot, agent]: what replaces a corrupted reward."""


class BestRows(NamedTuple):
    """KMP-UCB: the row with most samples received of an arm, [arm, agent]."""

    n: Floats
    mean: Floats
    origin: Ids
    when: Ids


class OneHop(NamedTuple):
    """Bitmasks of receivers for a hop budget of 1 without delays on a dense network; else empty."""

    keys: Keys
    """Keys of the losses, [origin, word, bit]."""
    base: Words
    """[word, origin], without faults."""
    words: Words
    """In the current round, of the agents that send."""
    top: Ids
    """The agents with most samples of an arm."""


class LossyState(NamedTuple):
    """All arrays of a trial with lossy channels and faults beyond those of kernels/state.py."""

    links: Links
    receive: ReceiveRules
    corruption: CorruptionRules
    in_flight: InFlight
    now: RoundState
    best_rows: BestRows
    one_hop: OneHop
    origins: Origins
