"""The rules written down a second time, as plainly as possible, from the definitions alone.

Nothing here is taken from the package: no online estimator, no relay. Messages are carried from agent to
agent, one at a time, every fault of the channel is a keyed uniform, and estimates are recomputed from stored
lists.
`Rules` is a policy with its parameters, `World` a fault model (by default none).
`play` returns the actions these rules lead to (-1: absent, or an adversary). `follow` walks along given
actions instead, and says of each by how much it missed the best index: a difference that is only a
floating-point tie shows as a tiny gap, every other one as a large gap.

Where the rules leave a choice, this is the one taken:
- an agent that was absent relays, when it is back, what it accepted before, if it is young enough by then;
- held samples whose time came during an absence are added at the end of its next round, oldest first;
- lost copies with `symmetric` share the key of both directions, as bundles do;
- an adversary's action is -1 in every round; it lies from round 1 on, rows included, and only while present;
- corruption happens to messages of adversaries as to all others; of rows only the means change;
- where a row claims more samples than its maker can have, no row of the message is used; its sample is;
- an isolated agent makes the least neighbourhood 0: with RCL-LF no agent then uses what it receives.
"""

from collections.abc import Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from helpers.oracle.averaging import average, consensus_parts
from helpers.oracle.estimators import (
    LAZY,
    MEANS,
    OWN_INDEX,
    catoni_bound,
    estimate,
    lazily,
    mr_bonus,
    mr_mean,
    radius,
)
from helpers.oracle.families import CHOICES, WITH_ROWS
from helpers.oracle.messages import Talk, arrivals
from helpers.oracle.rules import (
    AVERAGING,
    Actions,
    Choices,
    Floats,
    Late,
    Rules,
    World,
    channel_seed,
    mix,
    uniform,
)

__all__ = [
    "AVERAGING",
    "CHOICES",
    "LAZY",
    "MEANS",
    "OWN_INDEX",
    "WITH_ROWS",
    "Actions",
    "Floats",
    "Late",
    "Rules",
    "World",
    "arrivals",
    "catoni_bound",
    "channel_seed",
    "consensus_parts",
    "estimate",
    "follow",
    "lazily",
    "mix",
    "mr_bonus",
    "mr_mean",
    "play",
    "radius",
    "talk",
    "uniform",
]

PERFECT = World()


class Walk(NamedTuple):
    """Wished actions, gaps of the given ones, and messages over links."""

    wished: Actions
    gaps: Floats
    messages: int | None


def play(
    table: ArrayLike, graph: nx.Graph, r: Rules, world: World = PERFECT, means: Sequence[float] = ()
) -> Actions:
    """The actions (T, M) of agents 0..M-1 under rewards table[round, agent, arm]."""
    return _run(table, graph, r, world, means, None).wished


def talk(table: ArrayLike, graph: nx.Graph, r: Rules, world: World = PERFECT) -> Talk:
    """A game of agents that send messages, played; `tried` has the arms of every round and agent."""
    rewards: Floats = np.asarray(table, float)
    game = Talk(rewards, graph, r, world, (), Choices(len(rewards), len(graph), None))
    game.play()
    return game


def follow(
    table: ArrayLike,
    graph: nx.Graph,
    r: Rules,
    actions: ArrayLike,
    world: World = PERFECT,
    means: Sequence[float] = (),
) -> Walk:
    """What the rules want when history is as in `actions`: the gap of a choice is how far its index
    lies below the best one, relative to the larger of the two; infinite where there was no choice."""
    return _run(table, graph, r, world, means, np.asarray(actions))


def _run(
    table: ArrayLike, graph: nx.Graph, r: Rules, world: World, means: Sequence[float], forced: Actions | None
) -> Walk:
    rewards: Floats = np.asarray(table, float)
    choices = Choices(len(rewards), len(graph), forced)
    if r.policy in AVERAGING:
        average(rewards, graph, r, world, choices)
    else:
        Talk(rewards, graph, r, world, means, choices).play()
    return Walk(choices.wished, choices.gaps, choices.messages)
