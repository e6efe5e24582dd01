"""Small games on the compiled engine: short enough to run uncompiled too, where coverage sees the kernels."""

import os
from typing import Any

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from helpers.oracle import Floats, Rules
from helpers.oracle_adapters import (
    EngineName,
    actions_of,
    policy_of,
    ties_against_oracle,
    ties_between_engines,
)
from rumormill.engine.compiled import reach

ENGINES: tuple[EngineName, ...] = ("fast", "reference")
PATH, STAR = nx.path_graph(4), nx.star_graph(4)
IN_PARTS = nx.Graph([(0, 1), (1, 2), (3, 4)])
SMALL: dict[str, Any] = {"eps": 0.8, "u": 0.4, "rho": 2.0}

CONSTANTS: list[dict[str, Any]] = [{"zeta": 0.4}, {"c": "theory", "schedule": "anytime"}]
RULES = [
    Rules(policy, gamma=gamma, estimator=estimator, leaders=leaders, eps_v=1.0, **constant, **SMALL)
    for policy, gamma, leaders in (
        ("decentralized", 2, ()),
        ("centralized", 3, (0, 3)),
        ("kmp", 3, ()),
        ("robust", 0, ()),
    )
    for estimator in ("trimmed", "empirical", "median-of-means", "catoni")
    for constant in CONSTANTS
    if (estimator, constant.get("c")) != ("empirical", "theory")
]


def table(graph: nx.Graph, seed: int) -> Floats:
    drawn = np.random.default_rng(seed).standard_cauchy((30, len(graph), 3))
    rewards: Floats = drawn + np.array([0.0, 0.5, 1.0])
    return rewards


@pytest.mark.parametrize("graph", [PATH, STAR, IN_PARTS], ids=["path", "star", "in parts"])
@pytest.mark.parametrize("rules", RULES, ids=lambda r: f"{r.policy}-{r.estimator}-{r.c}")
def test_fast_equals_oracle(graph: nx.Graph, rules: Rules) -> None:
    rewards = table(graph, 1)
    actions = actions_of(rewards, graph, policy_of(rules), engine="fast")
    assert ties_against_oracle(rewards, graph, rules, actions) == 0


@pytest.mark.parametrize("graph", [PATH, STAR], ids=["path", "star"])
@pytest.mark.parametrize("eps", [1.0, 0.5])
def test_consensus_equals_oracle(graph: nx.Graph, eps: float) -> None:
    rules = Rules("consensus", eps=eps, rho=2.0, eps_v=1.0)
    rewards = table(graph, 2)
    actions = actions_of(rewards, graph, policy_of(rules), engine="fast")
    assert ties_against_oracle(rewards, graph, rules, actions) == 0


@pytest.mark.parametrize(
    "policy",
    [
        rm.DecentralizedMPUCB(gamma=2, clique_filter=False, zeta=0.3),
        rm.KMPUCB(gamma=2, zeta=0.3),
        rm.ConsensusUCB(epsilon=1.0),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_dense_network(policy: rm.Policy) -> None:
    """26 agents: enough for the layout with whole rows of hearers."""
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.6, loc=loc) for loc in (0.0, 0.5, 1.0)])
    assert ties_between_engines(bandit, rm.Network.erdos_renyi(26, 0.6, rng=0), policy, horizon=25) == 0


@pytest.mark.parametrize("policy", [rm.KMPUCB(gamma=2, quiet=0.3), rm.CentralizedMPUCB(gamma=2, zeta=0.3)])
def test_several_arms_a_round(policy: rm.Policy) -> None:
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.6, loc=loc) for loc in (0.0, 0.5, 1.0)])
    fast, slow = (
        rm.simulate(bandit, rm.Network.path(5), policy, horizon=30, rng=4, k=2, actions=True, engine=engine)
        for engine in ENGINES
    )
    np.testing.assert_array_equal(fast.actions, slow.actions)
    np.testing.assert_array_equal(fast.messages, slow.messages)


def test_samples_that_leave() -> None:
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.3, loc=loc) for loc in (0.0, 0.5)])
    policy = rm.DecentralizedMPUCB(
        gamma=1, clique_filter=False, zeta=0.3, moments=rm.Moments(eps=0.2, u=0.05, rho=1.0)
    )
    assert ties_between_engines(bandit, rm.Network.complete(3), policy, horizon=200) == 0


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_more_groups_of_the_same_samples(engine: EngineName) -> None:
    """64 samples of arm 0 come at once, 3, 0, 0, 3, 0, 0, ... in agent 0's order, and no more.

    Round 3, L = 2.20: 18 groups of three, every mean 1, and arm 1 pays 1.25. Round 4, L = 2.77: 23 groups of
    two, means 1.5, 1.5, 0, ... and the median is 1.5. Nothing came in between, only L has grown.
    """
    rewards = np.full((4, 64, 2), 1.25)
    rewards[0, :, 0] = np.where(np.arange(64) % 3 == 0, 3.0, 0.0)
    graph, rules = nx.complete_graph(64), Rules("kmp", gamma=1, estimator="median-of-means", zeta=1e-9)
    actions = actions_of(rewards, graph, policy_of(rules), engine)
    assert actions[:, 0].tolist() == [0, 1, 1, 0]
    assert ties_against_oracle(rewards, graph, rules, actions) == 0


@pytest.mark.parametrize("rules", RULES, ids=lambda r: f"{r.policy}-{r.estimator}-{r.c}")
@pytest.mark.parametrize("T", [1, 2, 5, 6])
def test_fewer_rounds_than_arms(T: int, rules: Rules) -> None:
    """No question is ever asked; uncompiled, a look beyond the last round is an error."""
    rewards = 100 * np.random.default_rng(3).standard_cauchy((T, 4, 6))
    actions = actions_of(rewards, PATH, policy_of(rules), engine="fast")
    assert actions.tolist() == [[t] * 4 for t in range(T)]


def test_compilation_is_as_the_environment_says() -> None:
    import numba

    assert bool(numba.config.DISABLE_JIT) == (os.environ.get("NUMBA_DISABLE_JIT", "0") == "1")


@pytest.mark.parametrize("gamma", [1, 2])
def test_rows_over_dense_hops(gamma: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """KMP by bitmasks of receivers on networks that are small enough for many ties of counts."""
    monkeypatch.setattr(reach, "DENSE_FROM", 0.0)
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.8, loc=mean) for mean in (0.1, 0.5, 0.9)])
    for seed in range(4):
        network = rm.Network.erdos_renyi(12, 0.35, rng=seed)
        policy = rm.KMPUCB(gamma=gamma, zeta=0.3)
        fast, slow = (
            rm.simulate(bandit, network, policy, horizon=40, rng=seed, engine=engine, actions=True).actions
            for engine in ENGINES
        )
        np.testing.assert_array_equal(fast, slow)


def test_arms_that_are_nearly_as_good() -> None:
    """Long enough for bounds on old powers, with indices that lie closer than those."""
    bandit = rm.Bandit([rm.Gaussian(loc=0.5), rm.Gaussian(loc=0.51)])
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False)
    for seed in range(2):
        fast, slow = (
            rm.simulate(
                bandit, rm.Network.complete(3), policy, horizon=500, rng=seed, engine=engine, actions=True
            ).actions
            for engine in ENGINES
        )
        np.testing.assert_array_equal(fast, slow)
