"""Which agents receive which samples, as arrays (CSR, bitmasks); the links; the messages sent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rumormill.counter_rng import DELAY, LOSS, key_of
from rumormill.graphs import Network
from rumormill.kernels.counter_rng import Keys, limit_of, link_keys
from rumormill.kernels.lossy_state import AT_ONCE, EVEN, GEOMETRIC, Links
from rumormill.kernels.simd.masked_add import LANES
from rumormill.kernels.state import Reach, Sources
from rumormill.protocol import Conditions, Imperfect

# A hop is stored as bitmasks, a bit per learner, when so many bits of a word are set on average.
# Measured: below, CSR lists of receivers are faster.
DENSE_FROM = 2.5
DENSE_BYTES = 1 << 28


def build_reach(
    network: Network, gamma: int, learners: NDArray[np.int32], group_of: NDArray[np.int64] | None
) -> tuple[Reach, Sources]:
    """Learners receive from every agent within gamma hops; with groups, only from their own group."""
    n_agents, n_learners = network.n_agents, len(learners)
    learner_of = np.full(n_agents, -1, dtype=np.int32)
    learner_of[learners] = np.arange(n_learners, dtype=np.int32)

    near = network.neighbourhoods(gamma)
    receiver = np.repeat(learner_of.astype(np.int64), np.diff(near.indptr))  # neighbourhoods are symmetric
    origin = near.indices.astype(np.int64)
    hop = near.distances.astype(np.int64)
    keep = receiver >= 0
    if group_of is not None:
        keep &= np.repeat(group_of, np.diff(near.indptr)) == group_of[origin]
    receiver, origin, hop = receiver[keep], origin[keep], hop[keep]

    # Rows are sorted by agent, then (distance, id); learners are sorted by agent.
    per_hop = np.bincount(receiver * (gamma + 1) + hop, minlength=n_learners * (gamma + 1))
    source_ptr = np.cumsum(per_hop).reshape(n_learners, gamma + 1)

    dense = np.full(max(gamma, 1), -1, dtype=np.int32)
    words: list[NDArray[np.uint64]] = []
    ptr = np.zeros((max(gamma, 1), n_agents + 1), dtype=np.int64)
    receivers: list[NDArray[np.int32]] = []
    offset = 0
    for h in range(1, gamma + 1):
        here = hop == h
        count = int(here.sum())
        if uses_bitmasks(count, n_agents, n_learners):
            dense[h - 1] = len(words)
            words.append(as_bitmasks(origin[here], receiver[here], n_agents, n_learners))
            ptr[h - 1] = offset
            continue
        order = np.lexsort((receiver[here], origin[here]))
        receivers.append(receiver[here][order].astype(np.int32))
        ptr[h - 1, 0] = offset
        ptr[h - 1, 1:] = offset + np.cumsum(np.bincount(origin[here], minlength=n_agents))
        offset += count
    reach = Reach(
        gamma=gamma,
        learners=learners.astype(np.int32),
        learner_of=learner_of,
        dense=dense,
        words=np.stack(words) if words else np.zeros((0, 1, 1), dtype=np.uint64),
        by_origin=np.zeros((0, 1, 1), dtype=np.uint64),
        ptr=ptr,
        receivers=np.concatenate(receivers) if receivers else np.zeros(0, dtype=np.int32),
    )
    return reach, Sources(source_ptr, origin.astype(np.int32))


def several_sources(reach: Reach, sources: Sources, k: int) -> tuple[Reach, Sources]:
    """Every agent has k sources, agent * k + rank, which reach the same learners."""
    counts, begins = (np.repeat(each, k, axis=1) for each in (np.diff(reach.ptr), reach.ptr[:, :-1]))
    ends = np.cumsum(counts).reshape(counts.shape)
    places = np.arange(counts.sum()) + np.repeat(begins - (ends - counts), counts.ravel())
    ids = (sources.ids[:, None] * k + np.arange(k)).ravel().astype(np.int32)
    words = np.repeat(reach.words, k, axis=2)
    ptr = np.concatenate([(ends - counts)[:, :1], ends], axis=1)
    expanded = reach._replace(words=words, ptr=ptr, receivers=reach.receivers[places])
    return expanded, Sources(sources.ptr * k, ids)


def uses_bitmasks(pairs: int, n_agents: int, n_learners: int) -> bool:
    """Whether so many pairs (origin, receiver) are faster as bitmasks than as CSR lists."""
    words = n_agents * n_words(n_learners)
    return pairs >= DENSE_FROM * words and 8 * words <= DENSE_BYTES


def n_words(n_learners: int) -> int:
    """Words of a bitmask of so many learners."""
    return -(-n_learners // LANES)


def as_bitmasks(
    origin: NDArray[np.int64], receiver: NDArray[np.int64], n_agents: int, n_learners: int
) -> NDArray[np.uint64]:
    """[word, origin]: bit j mod 64 of word j // 64 is set if learner j receives the origin."""
    words = np.zeros(n_words(n_learners) * n_agents, dtype=np.uint64)
    bits = np.uint64(1) << (receiver % LANES).astype(np.uint64)
    np.bitwise_or.at(words, receiver // LANES * n_agents + origin, bits)
    return words.reshape(-1, n_agents)


def messages_sent(network: Network, gamma: int, horizon: int) -> NDArray[np.int64]:
    """Messages over edges in rounds 1..horizon of a perfect flooding.

    In round t an agent sends its own message and those that arrived from distance d < gamma in round t - 1,
    of round t - d: one each, to every neighbour.
    """
    if gamma == 0:
        return np.zeros(horizon, dtype=np.int64)
    near = network.neighbourhoods(gamma - 1)
    weight = np.repeat(network.degrees, np.diff(near.indptr))
    per_distance = np.bincount(near.distances, weights=weight, minlength=gamma).astype(np.int64)
    per_distance[0] = network.degrees.sum()
    reached = np.minimum(np.arange(horizon), gamma - 1)
    sent: NDArray[np.int64] = np.cumsum(per_distance)[reached]
    return sent


def copies_sent(network: Network, gamma: int) -> NDArray[np.int64]:
    """[hop, agent]: how many messages the agents so many hops away from it send of one of its messages."""
    copies = np.zeros((gamma, network.n_agents), dtype=np.int64)
    if gamma > 0:
        copies[0] = network.degrees
        near = network.neighbourhoods(gamma - 1)
        origin = np.repeat(np.arange(network.n_agents), np.diff(near.indptr))
        np.add.at(copies, (near.distances, origin), network.degrees[near.indices])
    return copies


def links_of(network: Network, gamma: int, conditions: Conditions) -> Links:
    """The links of a network and their loss and delay in one trial."""
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
        geometric_q=0.0 if q is None else q,
        delay_keys=_keys(network, conditions, DELAY, False, longest > 0),
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
