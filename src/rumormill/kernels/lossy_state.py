"""What an imperfect world adds to the arrays of a trial: links, falsehoods, and messages on their way.

Here every agent is a learner of the same number. The ring (kernels/state.py) holds what was *said* in each
round; what an agent got itself in the present round stands apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill.kernels.counter_rng import Keys
from rumormill.kernels.origins import Origins
from rumormill.kernels.state import Flags, Floats, Ids, Ints, Words

Late = NDArray[np.int16]

# What stands in place of a falsified reward.
TRUE, SHIFTED, SCALED, DRAWN = 0, 1, 2, 3
# How long bundles take.
AT_ONCE, EVEN, GEOMETRIC = 0, 1, 2
LOST = -1


class Links(NamedTuple):
    """The links into every agent, neighbours ascending, and what happens on them."""

    gamma: int
    indptr: Ints
    indices: Ids
    loses: bool
    per_copy: bool
    limit: np.uint64
    """What is not lost (kernels/counter_rng.py)."""
    loss: Keys
    """Per link, the key of its losses."""
    delay: int
    longest: int
    """D."""
    going_on: float
    """q of the geometric delay."""
    lateness: Keys
    """Per link, the key of its delays."""
    outages: Ints
    """[., (link, the agent it leads to, first round, last round)]."""


class Ears(NamedTuple):
    """What an agent does with what arrives."""

    group: Ids
    """Only members of the own group are listened to; empty: everybody is."""
    hold: int
    """A sample is used at the end of the round in which it is so many rounds old, or later."""
    discards: bool
    discard: Keys
    """Per agent, the key of its discards, and below which limit a sample is used."""
    kept: Keys
    patience: float
    """A follower waits so much longer than it should for news of its leader."""
    reach: Ints
    """How many an agent hears, itself included: rows of round t with more than t times that are lies."""


class Falsehood(NamedTuple):
    """What is said that is not true."""

    way: int
    amount: float
    at_receiver: bool
    rows: bool
    limit: np.uint64
    key: np.uint64
    lies: Flags
    """Who never pulls and always says the same."""
    lie_arm: int
    lie_x: float
    lie_means: Floats
    lie_count: float


class Weather(NamedTuple):
    """What happens in the rounds of a block, [round, agent]."""

    up: Flags
    false: Flags
    """Whose message is falsified for everybody."""
    drawn: Floats
    """What is said then, if it is drawn; else empty."""


class Traffic(NamedTuple):
    """Messages on their way. A word has 64 origins; rounds of origin are counted modulo the slots."""

    late: Late
    """[round of sending mod D + 1, link]: how many rounds a bundle takes, or LOST."""
    out: Keys
    """[round of sending mod D + 2, agent, age - 1, word]: what is passed on."""
    seen: Keys
    """[agent, slot, word]: what has come, and the own; with lists one agent at a time."""
    got: Keys
    """[slot, word]: what comes to one agent in this round, and which words of it are not zero."""
    filled: Keys
    begin: Ints
    """Instead of `out` and a row of `seen` for every agent, lists in a pool that is written round and round:
    [round mod slots, agent], where what came in that round begins and ends (large, sparse networks)."""
    end: Ints
    pool: Ids
    """[origin or round of origin, place mod a power of two]."""
    written: Ints
    """[places ever written]."""
    passes: Ints
    """Per agent, how many messages it passes on in the next round."""
    origin: Ids
    """What came to one agent, in order: who said it, and when."""
    when: Ids
    arm: Ids
    """The samples among it that are used."""
    who: Ids
    x: Floats
    need: Floats
    power: Floats


class Present(NamedTuple):
    """The present round, per agent."""

    arm: Ids
    """-1: does not pull."""
    x: Floats
    need: Floats
    power: Floats
    copies: Flags
    """Does what its leader did."""
    heard_round: Ids
    """The newest word of the leader: when (0: none), and what it played."""
    heard_arm: Ids
    pulled: Ints
    """[rounds in which somebody pulled, so far, over all agents]."""
    drawn: Floats
    """[slot, agent]: what is said in place of a falsified reward."""


class Hearsay(NamedTuple):
    """KMP-UCB: the best informed row heard of an arm, [arm, agent]."""

    n: Floats
    mean: Floats
    origin: Ids
    when: Ids


class Nearby(NamedTuple):
    """Who hears whom, a bit per hearer, where one hop at once on a dense network is all; else empty."""

    keys: Keys
    """Of the losses, [origin, word, bit]."""
    base: Words
    """[word, origin], where nothing fails."""
    words: Words
    """In the present round, of those who tell."""
    top: Ids
    """The best informed agents of an arm."""


class World(NamedTuple):
    """All of it."""

    links: Links
    ears: Ears
    falsehood: Falsehood
    traffic: Traffic
    present: Present
    hearsay: Hearsay
    nearby: Nearby
    origins: Origins
