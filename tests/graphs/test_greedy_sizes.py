"""How good the greedy answers are on fixed graphs: a worse heuristic is still valid, but it shows here.

The graphs are drawn by Python's own generator, whose numbers never change. The sizes are those of the first
version; fewer groups or leaders are welcome, more are not.
"""

import random

import networkx as nx
import pytest

from rumormill.graphs import Network, clique_cover, dominating_set, independent_set


def scattered(n: int, p: float, seed: int) -> Network:
    """Any two agents are linked with probability p."""
    draw = random.Random(seed)
    graph = nx.empty_graph(n)
    graph.add_edges_from((v, w) for v in range(n) for w in range(v) if draw.random() < p)
    return Network(graph)


# (agents, density, seed, gamma): groups of the cover, leaders that dominate, weight of the greedy independent
# set.
SIZES = {
    (40, 0.3, 1, 1): (13, 5, 106),
    (60, 0.5, 2, 1): (13, 4, 195),
    (60, 0.1, 3, 2): (10, 3, 184),
    (80, 0.2, 4, 1): (25, 8, 235),
    (120, 0.05, 5, 2): (21, 5, 426),
    (100, 0.7, 6, 1): (12, 3, 340),
    (150, 0.04, 7, 3): (11, 2, 670),
    (90, 0.12, 8, 1): (36, 11, 238),
    (200, 0.02, 9, 2): (49, 24, 565),
}


@pytest.mark.parametrize("case", SIZES, ids=str)
def test_no_worse_than_at_first(case: tuple[int, float, int, int]) -> None:
    n, p, seed, gamma = case
    network = scattered(n, p, seed)
    groups, leaders, weight = SIZES[case]
    assert len(clique_cover(network, gamma).groups) <= groups
    assert len(dominating_set(network, gamma).leaders) <= leaders
    assert independent_set(network, gamma, method="greedy").weight >= weight
    assert independent_set(network, gamma).weight >= weight  # annealing starts no lower


@pytest.mark.parametrize(
    ("network", "gamma", "groups"),
    [
        (Network.path(20), 1, 10),
        (Network.path(20), 3, 5),
        (Network.ring(21), 2, 7),
        (Network.grid(6, 6), 1, 18),
        (Network.balanced_tree(2, 4), 1, 21),  # 8 links to leaves, 2 above, the other 11 alone
        (Network.star(12), 1, 11),
        (Network.complete(12), 1, 1),
    ],
    ids=lambda value: repr(value),
)
def test_fewest_groups_by_hand(network: Network, gamma: int, groups: int) -> None:
    """In a row a group holds gamma + 1 agents; in trees and grids a link: n - (largest matching) groups."""
    assert len(clique_cover(network, gamma).groups) == groups
