"""The reference engine against the oracle: same rewards, same action in the same round."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import oracle
from oracle import Rules
from sides import actions_of, clique_cover, leaders, policy_of, ties_against_oracle
from strategies import POLICIES, games

slow_to_draw = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.parametrize("policy", POLICIES)
def test_reference_equals_oracle(policy):
    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=slow_to_draw)
    @given(games(policies=(policy,)))
    def check(game):
        table, graph, rules = game
        actions = actions_of(table, graph, policy_of(rules))
        assert ties_against_oracle(table, graph, rules, actions) <= 3

    check()


def random_game(seed):
    """A game from a seed, without hypothesis: for counting ties over very many."""
    rng = np.random.default_rng(seed)
    T, M, K = int(rng.integers(1, 60)), int(rng.integers(1, 9)), int(rng.integers(2, 7))
    policy = POLICIES[seed % len(POLICIES)]
    graph = nx.gnp_random_graph(M, rng.uniform(0.1, 0.8), seed=int(rng.integers(1 << 30)))
    if policy == "consensus":
        graph.add_edges_from(nx.utils.pairwise(range(M)))
    table = (
        rng.standard_cauchy((T, M, K)) * 0.5 if rng.random() < 0.5 else rng.choice([0, 1, 0.25, 8], (T, M, K))
    )
    estimator = str(rng.choice(["trimmed", "empirical", "median", "catoni"]))
    constant = [{"c": float(rng.uniform(0.05, 3))}, {"zeta": float(rng.uniform(0.1, 2))}, {"c": "theory"}]
    gamma = int(rng.integers(0, 6))
    return (
        table,
        graph,
        Rules(
            policy,
            eps=float(rng.choice([1, 0.8, 0.3])),
            u=float(rng.uniform(0.5, 5)),
            rho=float(rng.uniform(0.5, 5)),
            gamma=gamma,
            estimator=estimator,
            schedule=str(rng.choice(["paper", "anytime"])),
            cover=clique_cover(graph, gamma) if policy == "decentralized" and rng.random() < 0.5 else None,
            leaders=leaders(graph, gamma, rng.permutation(M).tolist()) if policy == "centralized" else (),
            eps_v=float(rng.uniform(0, 3)),
            **constant[rng.integers(2 if estimator == "empirical" else 3)],
        ),
    )


def count_ties(seeds):
    total = 0
    for seed in seeds:
        table, graph, rules = random_game(seed)
        total += ties_against_oracle(table, graph, rules, actions_of(table, graph, policy_of(rules)))
    return total


def test_ties_are_rare():
    assert count_ties(range(100)) <= 5


@pytest.mark.slow
def test_ties_are_rare_in_thousands():
    assert count_ties(range(5_000)) <= 20


def test_oracle_tells_a_wrong_action_from_a_tie():
    """The comparison itself can fail: a changed action has a gap, and so does an undeserved copy."""
    table, graph, rules = random_game(1)  # centralized
    actions = oracle.play(table, graph, rules)
    wished, gaps = oracle.follow(table, graph, rules, actions)
    assert (wished == actions).all()
    assert not gaps.any()
    late = len(table) - 1
    actions[late] = (actions[late] + 1) % table.shape[2]
    with pytest.raises(AssertionError, match=f"round {late + 1}"):
        ties_against_oracle(table, graph, rules, actions)
