"""Samples that leave a trimmed mean in the last round of all, or the one before: no kernel may keep them.

The kernels add and forget a sample that stays to the end, and decide on arrival which ones do. In these games
the one decisive sample leaves exactly in the last round, on each of the ways into a sum.
"""

import math

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from helpers import oracle
from helpers.oracle import Actions, Floats, Rules
from helpers.oracle_adapters import EngineName, actions_of

U = 3.0
MOMENTS = rm.Moments(eps=1.0, u=U, rho=1.0)
engines = pytest.mark.parametrize("engine", ["reference", "fast"])


def level(t: int) -> float:
    return 2 * math.log(t)


def size_leaving_in(t: int, rank: int) -> float:
    """|x| of a sample of that rank whose last round is t - 1: L_(t-1) <= h = u rank / x^2 < L_t."""
    h = (level(t - 1) + level(t)) / 2
    return math.sqrt(U * rank / h)


def play(table: Floats, graph: nx.Graph, engine: EngineName) -> Actions:
    """With a radius too small to matter the larger trimmed mean wins."""
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False, zeta=1e-9, moments=MOMENTS)
    actions = actions_of(table, graph, policy, engine)
    rules = Rules("decentralized", gamma=1, zeta=1e-9, eps=1.0, u=U)
    np.testing.assert_array_equal(actions, oracle.play(table, graph, rules))
    return actions


@engines
@pytest.mark.parametrize("T", [5, 6, 7, 20, 63, 64, 65, 130])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_own_sample_leaves(T: int, after: int, engine: EngineName) -> None:
    """Arm 1 pays x in round 2 and nothing ever after; it is best exactly as long as x is in its mean."""
    x = size_leaving_in(T, rank=1)
    table = np.zeros((T + after, 1, 2))
    table[0, 0, 0] = x / T / 4  # arm 0, less than the mean of arm 1 while x counts
    table[1, 0, 1] = x
    table[2:, 0, 0] = x  # not paid to anybody before round T
    actions = play(table, nx.empty_graph(1), engine)[:, 0].tolist()
    assert actions == [0, *[1] * (T - 2), *[0] * (1 + after)]


@engines
@pytest.mark.parametrize("T", [6, 7, 20, 64, 65])
def test_a_sample_heard_from_a_neighbour_leaves(T: int, engine: EngineName) -> None:
    """Two agents, the layout of lists: the other's x of round 2 has rank 2 and leaves in round T."""
    x = size_leaving_in(T, rank=2)
    table = np.zeros((T, 2, 2))
    table[0, :, 0] = x / T / 8
    table[1, 1, 1] = x  # of agent 1; rank 1 for itself, where it leaves long before
    actions = play(table, nx.path_graph(2), engine)
    assert actions[:, 0].tolist() == [0, *[1] * (T - 2), 0]


@engines
@pytest.mark.parametrize("T", [8, 12, 20])
def test_a_sample_of_a_dense_network_leaves(T: int, engine: EngineName) -> None:
    """26 agents that all hear each other, the layout of whole rows: agent 0 has agent 1's x at rank 2."""
    M = 26
    x = size_leaving_in(T, rank=2)
    table = np.zeros((T, M, 2))
    table[0, :, 0] = x / T / M / 4
    table[1, 1, 1] = x
    actions = play(table, nx.complete_graph(M), engine)
    assert actions[:, 0].tolist() == [0, *[1] * (T - 2), 0]


@engines
@pytest.mark.parametrize("M", [6, 26], ids=["lists", "rows"])
def test_a_sample_that_is_in_at_no_question(M: int, engine: EngineName) -> None:
    """In round T - 1 arm 1 pays one x that would be in at L_(T-1) but is first asked for at L_T.

    Everybody has M samples of the arm by then. x is larger than rank M + 1 allows at L_T, and smaller than
    what M samples allow at L_(T-1).
    """
    T = 4
    graph = nx.complete_graph(M)
    x = math.sqrt(U * M / level(T - 1)) * 0.999
    assert U * (M + 1) / x**2 < level(T)
    table = np.zeros((T, M, 2))
    table[0, :, 0] = 0.01
    table[1, :, 1] = 0.02  # best in round 3
    table[2, :, 1] = -0.02  # and all of it is taken back, but for x
    table[2, 0, 1] = x
    actions = play(table, graph, engine)
    assert actions[:, 0].tolist() == [0, 1, 1, 0]
