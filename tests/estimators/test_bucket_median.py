"""The bucket median: its definition, and its place in a game against the oracle."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from helpers.oracle import Rules
from helpers.oracle_adapters import played, ties_against_oracle
from rumormill.estimators.median_of_means import BUCKETS, MOST_GROUPS
from rumormill.formulas import group_count

MOMENTS = rm.Moments(eps=1.0, u=4.0, rho=3.0)


@pytest.mark.parametrize("policy", ["kmp", "robust"])
def test_oracle(policy: str) -> None:
    table = np.array([0.0, 0.5, 1.0]) + np.random.default_rng(1).standard_t(3, size=(150, 4, 3))
    rules = Rules(
        policy, u=4.0, rho=3.0, gamma=2 if policy == "kmp" else 0, estimator="bucket-median", zeta=0.3
    )
    graph = nx.cycle_graph(4)
    ties_against_oracle(table, graph, rules, played(table, graph, rules, "reference"))


@pytest.mark.parametrize("n", [1, 5, 1023, 1024, 1500, 2047, 2048, 20_000])
@pytest.mark.parametrize("L", [0.5, 5.0, 30.0, 63.0])
def test_the_smallest_group_is_what_the_lemma_needs(n: int, L: float) -> None:
    """At least a third of n/k, the group size of the lemma; so c is three times as large."""
    k = min(group_count(n, L), MOST_GROUPS)
    sizes = np.bincount(np.arange(n) % BUCKETS % k, minlength=k)
    assert sizes.sum() == n
    assert 3 * k * sizes.min() >= n


def test_one_huge_sample_and_a_mean_far_from_zero_do_not_matter() -> None:
    x = 1e6 + np.random.default_rng(2).standard_t(3, size=3000)
    x[7] = 1e15
    found = rm.BucketMedian().of(x.tolist(), 2.0, MOMENTS)
    assert found == pytest.approx(1e6, abs=1.0)  # radius at most 17 groups of 176 samples: 0.5 with 1e-6
