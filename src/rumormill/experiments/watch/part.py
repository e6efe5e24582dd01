"""A part of a network that is small enough to be looked at, and the spec that goes with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network


def nearest_agents(network: Network, most: int) -> list[int]:
    """The agent with the most links and those nearest to it, the lower numbers first where they tie.

    Where its part of the network is smaller, the next part follows.
    """
    order = np.argsort(-network.degrees, kind="stable").tolist()
    found: dict[int, None] = {}
    for start in order:
        queue = deque([start])
        while queue:
            v = queue.popleft()
            if v in found:
                continue
            if len(found) == most:
                return sorted(found)
            found[v] = None
            queue.extend(network.neighbours(v).tolist())
    return sorted(found)


def part_of_network(network: Network, agents: Sequence[int]) -> Network:
    """These agents and the links between them."""
    place = {v: i for i, v in enumerate(agents)}
    links = [(place[a], place[b]) for a, b in network.edges().tolist() if a in place and b in place]
    labels = [network.labels[v] for v in agents]
    return Network.labelled(labels, np.array(links, np.int64).reshape(-1, 2))


def part_of_spec(spec: Spec, agents: Sequence[int]) -> Spec:
    """What the spec says of single agents, for these alone and by their new numbers."""
    place = {v: i for i, v in enumerate(agents)}
    byzantine, clusters = spec.byzantine, spec.arms.clusters
    if byzantine is not None:
        given = byzantine.agents
        liars = [place[v] for v in (range(given) if isinstance(given, int) else given) if v in place]
        byzantine = replace(byzantine, agents=liars) if liars else None
    if clusters is not None:
        kept = [(each, [place[v] for v in each.members if v in place]) for each in clusters]
        clusters = [replace(each, members=members) for each, members in kept if members] or None
    return replace(
        spec,
        absences=[(place[v], first, last) for v, first, last in spec.absences if v in place],
        outages=[(place[a], place[b], *when) for a, b, *when in spec.outages if a in place and b in place],
        byzantine=byzantine,
        arms=replace(spec.arms, clusters=clusters),
    )
