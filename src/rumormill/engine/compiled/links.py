"""The links of a network, and what happens on them in one trial, laid out for the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs import Network
from rumormill.kernels.keyed import Keys, limit_of, link_keys
from rumormill.kernels.world import AT_ONCE, EVEN, GEOMETRIC, Links
from rumormill.keyed import DELAY, LOSS, key_of
from rumormill.protocol import Conditions, Imperfect


def links_of(network: Network, gamma: int, conditions: Conditions) -> Links:
    """The links of a network and what happens on them in one trial."""
    channel = conditions.world.channel
    given = channel if isinstance(channel, Imperfect) else Imperfect()
    longest, q = given.longest_delay, given.going_on
    loses = given.p < 1.0
    return Links(
        gamma=gamma,
        indptr=network.indptr,
        indices=network.indices,
        loses=loses,
        per_copy=given.per == "copy",
        limit=limit_of(given.p),
        loss=_keys(network, conditions, LOSS, given.symmetric, loses),
        delay=AT_ONCE if longest == 0 else EVEN if q is None else GEOMETRIC,
        longest=longest,
        going_on=0.0 if q is None else q,
        lateness=_keys(network, conditions, DELAY, False, longest > 0),
        outages=_outages(network, conditions),
    )


def _keys(network: Network, conditions: Conditions, purpose: int, symmetric: bool, wanted: bool) -> Keys:
    keys = np.zeros(len(network.indices) if wanted else 0, dtype=np.uint64)
    if wanted:
        begin = np.uint64(key_of(conditions.seed, purpose))
        link_keys(begin, network.indptr, network.indices, symmetric, keys)
    return keys


def _outages(network: Network, conditions: Conditions) -> NDArray[np.int64]:
    """(link, the agent it leads to, first round, last round) of both directions."""
    found = []
    for a, b, first, last in conditions.outages.tolist():
        for v, w in ((a, b), (b, a)):
            link = network.indptr[v] + np.searchsorted(network.neighbours(v), w)
            found.append((link, v, first, last))
    return np.array(found, dtype=np.int64).reshape(-1, 4)
