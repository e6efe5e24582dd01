"""Priors: both engines, the oracle, and what a prior may do to an index, right or stale."""

from __future__ import annotations

import json
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers.oracle import OWN_INDEX, Floats, Rules, World
from helpers.oracle_adapters import actions_in, keywords_of, played, policy_of, ties_against_oracle
from rumormill.policies.prior import PriorState

MEANS = (0.0, 0.3, 0.5, 0.2, 1.0)
ESTIMATORS = ("trimmed", "median-of-means", "catoni", "clipped", "self-tuned", "median-bound", "huber-sgd")
POLICIES = ("kmp", "decentralized", "robust", "centralized")
LOSSY = World(seed=Rules("kmp").probe, p=0.6, delay=2, absences=((0, 3, 9),))


def a_game(seed: int, policy: str, estimator: str, **given: Any) -> tuple[Floats, nx.Graph, Rules, rm.Prior]:
    """Random rewards, network, rules and priors, some of them far off."""
    rng = np.random.default_rng(seed)
    M, K, T = int(rng.integers(3, 8)), int(rng.integers(2, 5)), int(rng.integers(40, 120))
    means = rng.normal(size=K)
    table = means + rng.standard_t(3, size=(T, M, K))
    known = means + rng.choice([0.1, 3.0], size=(M, K)) * rng.normal(size=(M, K))
    n0, spread = rng.uniform(1.0, 60.0, size=(M, K)), rng.uniform(0.5, 2.0, size=(M, K))
    each = [
        list(zip(*rows, strict=True))
        for rows in zip(known.tolist(), n0.tolist(), spread.tolist(), strict=True)
    ]
    probe = int(rng.choice([5, 40]))
    graph = nx.gnp_random_graph(M, 0.5, seed=seed)
    gamma = 0 if policy == "robust" else int(rng.integers(1, 3))
    leaders = tuple(range(M)) if policy == "centralized" else ()
    rules = Rules(
        policy,
        rho=3.0,
        u=4.0,
        gamma=gamma,
        estimator=estimator,
        leaders=leaders,
        prior=each,
        probe=probe,
        **given,
    )
    return table, graph, rules, rm.Prior(mean=known, n=n0, spread=spread, probe=probe)


@pytest.mark.parametrize("number", range(14))
def test_oracle_and_both_engines(number: int) -> None:
    estimator, policy = ESTIMATORS[number % 7], POLICIES[number % 4]
    zeta = {} if estimator in OWN_INDEX else {"zeta": 0.4}
    quiet = 0.25 if number % 5 == 0 and policy == "decentralized" else None
    table, graph, rules, prior = a_game(number, policy, estimator, quiet=quiet, **zeta)
    slow, fast = (played(table, graph, rules, engine, prior=prior) for engine in ("reference", "fast"))
    np.testing.assert_array_equal(actions_in(slow), actions_in(fast))
    np.testing.assert_array_equal(slow.messages, fast.messages)
    ties_against_oracle(table, graph, rules, slow)
    assert not np.array_equal(actions_in(slow), actions_in(played(table, graph, rules, "fast")))


@pytest.mark.parametrize("number", range(6))
def test_lossy_channels(number: int) -> None:
    policy = ("kmp", "decentralized")[number % 2]
    table, graph, rules, prior = a_game(50 + number, policy, ("trimmed", "huber-sgd", "clipped")[number % 3])
    faults = {**keywords_of(LOSSY), "prior": prior}
    slow, fast = (played(table, graph, rules, engine, **faults) for engine in ("reference", "fast"))
    np.testing.assert_array_equal(actions_in(slow), actions_in(fast))
    np.testing.assert_array_equal(slow.messages, fast.messages)


@pytest.mark.parametrize("policy", ["kmp", "decentralized", "robust"])
@pytest.mark.parametrize("forget", [("window", 30), ("discount", 0.95), ("restart", 0)])
def test_with_forgetting(policy: str, forget: tuple[str, float]) -> None:
    """N of the rule counts all samples; short memories drop below the weight of the prior."""
    for number, estimator in enumerate(["trimmed", "clipped" if forget[0] == "discount" else "huber-sgd"]):
        zeta = {} if estimator in OWN_INDEX else {"zeta": 0.4}
        table, graph, rules, prior = a_game(80 + number, policy, estimator, forget=forget, **zeta)
        slow, fast = (played(table, graph, rules, engine, prior=prior) for engine in ("reference", "fast"))
        np.testing.assert_array_equal(actions_in(slow), actions_in(fast))
        ties_against_oracle(table, graph, rules, slow)


def test_a_prior_of_no_samples_changes_nothing() -> None:
    table, graph, rules, prior = a_game(1, "kmp", "trimmed")
    nothing = rm.Prior(mean=prior.mean, n=0.9 * (np.asarray(prior.n) > 0))
    plain, born = (played(table, graph, rules, "reference", prior=one) for one in (None, nothing))
    np.testing.assert_array_equal(actions_in(plain), actions_in(born))


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("horizon", [3, 20])
def test_a_lemma_counts_the_samples_of_a_prior(horizon: int, engine: Any) -> None:
    """16 L + 2 samples are more than the game has, but in round 2 not more than with those of the prior."""
    policy = rm.RobustUCB(
        estimator=rm.MedianOfMeans(), c="theory", moments=rm.Moments(eps=1.0, u=2.0, rho=1.0)
    )
    rewards = rm.Replay(np.tile([0.0, 1.0], (horizon, 1, 1)))
    prior = rm.Prior(mean=[0.0, 1.0], n=[30, 30])
    size: dict[str, Any] = {"horizon": horizon, "rng": 1, "actions": True, "engine": engine}
    actions = actions_in(rm.simulate(rewards, rm.Network.complete(1), policy, prior=prior, **size))
    assert actions.ravel().tolist() == [1, 1] + [0] * (horizon - 2)


@pytest.mark.filterwarnings("ignore:.*reference engine")
def test_a_prior_on_some_arms_plays_the_first_rounds() -> None:
    table, graph, rules, prior = a_game(2, "kmp", "trimmed")
    n = np.asarray(prior.n).copy()
    n[:, 0] = 0.0
    found = actions_in(played(table, graph, rules, "auto", prior=rm.Prior(mean=prior.mean, n=n)))
    K = table.shape[2]
    assert (found[:K] == np.arange(K)[:, None]).all()
    best = actions_in(played(table, graph, rules, "reference", prior=prior))[0]
    np.testing.assert_array_equal(best, np.argmax(prior.mean, axis=1))  # L_1 = 0: the largest mean


@settings(max_examples=200, deadline=None)
@given(
    samples=st.lists(st.floats(-50, 50), min_size=1, max_size=80),
    m0=st.floats(-1e3, 1e3),
    n0=st.floats(1, 1e4),
    t=st.integers(2, 10**6),
    eps=st.sampled_from([0.3, 0.8, 1.0]),
)
def test_any_prior_keeps_an_index_within_limits(
    samples: list[float], m0: float, n0: float, t: int, eps: float
) -> None:
    """mean + r/2 <= index <= mean + 3 r, however wrong the prior is."""
    moments = rm.Moments(eps=eps, u=2.0, rho=2.0)
    policy = rm.RobustUCB(moments=moments, estimator=rm.EmpiricalMean())
    agent = policy.agent(rm.Seat(agent=0, n_arms=1, prior=rm.Prior(mean=[m0], n=[n0])))
    for s, x in enumerate(samples, 1):
        agent.observe(s, 0, x)
    t = max(t, len(samples) + 1)
    (index,) = agent.samples.indices(t, agent.samples.rows(t))
    (mean, n), r = agent.samples.latest[0], policy.radius(moments).at(len(samples), 2 * math.log(t))
    assert n == len(samples)
    assert mean + 0.4999999 * r <= index <= mean + 3.0000001 * r


def test_an_arm_without_samples_is_probed() -> None:
    """A prior that calls an arm hopeless starves it for at most `probe` samples."""
    moments = rm.Moments(eps=1.0, u=1.0, rho=1.0)
    prior = rm.Prior(mean=[0.0, -1e6], n=[30, 30], probe=25)
    agent = rm.RobustUCB(moments=moments).agent(rm.Seat(agent=0, n_arms=2, prior=prior))
    pulled = []
    for t in range(1, 40):
        pulled.append(agent.choose(t))
        agent.observe(t, pulled[-1], 0.0 if pulled[-1] == 0 else 1.0)
    assert pulled[:25] == [0] * 25
    assert pulled[25] == 1


def regret(prior: rm.Prior | None) -> float:
    bandit = rm.Bandit([rm.StudentT(df=3.0, loc=loc) for loc in MEANS])
    network, policy = rm.Network.complete(10), rm.KMPUCB(gamma=1)
    result = rm.simulate(bandit, network, policy, horizon=1000, trials=40, rng=3, prior=prior, engine="fast")
    return float(result.regret[:, -1].mean())


def test_a_right_prior_gains_and_a_stale_one_costs_a_constant() -> None:
    """Regret (not rewards) over 40 fixed trials; before the floor a prior low by 3 cost 5,300 against 228."""
    cold, n = regret(None), [30] * 5
    assert regret(rm.Prior(mean=MEANS, n=n)) < 0.8 * cold
    largest, stated = 1.0, 100 * 2  # Δ_max · probe · (n_min + 1)
    for stale in (
        [0.0, 0.3, 0.5, 0.2, -2.0],
        [0.0, 0.3, 0.5, 0.2, -9.0],
        [1.0, 0.5, 0.3, 0.8, 0.0],
        [9.0] * 5,
    ):
        assert regret(rm.Prior(mean=stale, n=n)) < cold + largest * stated


def test_state_and_restore() -> None:
    table, graph, rules, prior = a_game(3, "kmp", "self-tuned")
    policy, network = policy_of(rules), rm.Network(graph)
    plan = policy.plan(network)
    agents = [
        policy.agent(
            rm.Seat(agent=v, n_arms=table.shape[2], n_agents=len(graph), part=plan.part(v), prior=prior.of(v))
        )
        for v in graph
    ]
    for t in range(1, len(table) + 1):
        if t == len(table) // 2:
            for v, agent in enumerate(agents):
                kept = json.loads(json.dumps(agent.state()))
                seat = rm.Seat(
                    agent=v, n_arms=table.shape[2], n_agents=len(graph), part=plan.part(v), prior=prior.of(v)
                )
                agents[v] = policy.agent(seat)
                agents[v].restore(kept)
                assert agents[v].state() == kept
        for v, agent in enumerate(agents):
            arm = agent.choose(t)
            agent.observe(t, arm, float(table[t - 1, v, arm]))
    assert any(
        agent.samples.prior.state()["weights"] != list(prior.of(v).weights) for v, agent in enumerate(agents)
    )


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"mean": [0.0, 1.0], "n": [1.0]}, "prior: n has shape"),
        ({"mean": [0.0, math.nan], "n": [1.0, 1.0]}, "mean = "),
        ({"mean": [0.0, 1.0], "n": [1.0, -1.0]}, "n = "),
        ({"mean": "ab", "n": [1.0]}, "mean = "),
        ({"mean": [1.0], "n": [1.0], "cap": 0}, "cap = 0"),
        ({"mean": [1.0], "n": [1.0], "probe": 0}, "probe = 0"),
    ],
)
def test_refused(given: dict[str, Any], word: str) -> None:
    with pytest.raises(rm.InputError, match=word):
        rm.Prior(**given)


@pytest.mark.parametrize(
    ("policy", "prior", "word"),
    [
        (rm.KMPUCB(), rm.Prior(mean=[0.0] * 3, n=[1] * 3), "about 3 arms, there are 2"),
        (rm.KMPUCB(), rm.Prior(mean=[[0.0] * 2] * 3, n=[[1] * 2] * 3), "about 3 agents, here: 4 agents"),
        (rm.KMPUCB(estimator=rm.SelfTuned()), rm.Prior(mean=[0.0] * 2, n=[1] * 2), "no spread"),
        (rm.ConsensusUCB(), rm.Prior(mean=[0.0] * 2, n=[1] * 2), "ConsensusUCB takes no prior"),
        (rm.OriginMedianUCB(), rm.Prior(mean=[0.0] * 2, n=[1] * 2), "takes no prior"),
        (rm.KMPUCB(guard=1), rm.Prior(mean=[0.0] * 2, n=[1] * 2), "takes no prior"),
        (rm.KMPUCB(), [1.0, 2.0], "prior = "),
    ],
)
def test_a_prior_that_does_not_fit(policy: Any, prior: Any, word: str) -> None:
    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    with pytest.raises(rm.InputError, match=word):
        rm.simulate(bandit, rm.Network.ring(4), policy, horizon=5, rng=0, prior=prior)


def test_the_state_of_a_prior_counts_what_was_taken() -> None:
    state = PriorState(rm.Prior(mean=[0.0], n=[5]))
    state.restore({"weights": [0.0], "taken": 7}, [7.0])
    assert state.state() == {"weights": [0.0], "taken": 7, "mean": [0.0]}
