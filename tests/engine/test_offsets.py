"""Offsets and scales: what agents take off their outcomes, and divide them by, before they learn and send."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from helpers.oracle import Rules, World
from helpers.oracle_adapters import actions_in, keywords_of, policy_of, ties_against_oracle
from rumormill.engine import play_trial, prepare
from rumormill.errors import InputError

POLICIES = ("kmp", "decentralized", "centralized", "consensus", "robust")
LOSSY = World(seed=0, p=0.7, delay=1)


def scales_of(far: list[float]) -> list[float]:
    """Factors of as many agents, some of them 1."""
    return [1.0 if v % 3 == 1 else 0.3 + abs(each) for v, each in enumerate(far)]


def a_game(number: int, policy: str) -> tuple[Any, nx.Graph, Rules, list[float]]:
    """Random rewards of agents that differ by a constant, a connected graph, rules, and the constants."""
    rng = np.random.default_rng(number)
    agents, arms, rounds = int(rng.integers(3, 8)), int(rng.integers(2, 5)), int(rng.integers(40, 100))
    far = rng.normal(0.0, 3.0, agents)
    table = rng.normal(size=arms) + far[:, None] + rng.standard_t(3, size=(rounds, agents, arms))
    leaders = tuple(range(agents)) if policy == "centralized" else ()
    gamma = 0 if policy == "robust" else 1
    rules = Rules(policy, rho=3.0, u=30.0, gamma=gamma, estimator="clipped", zeta=0.3, leaders=leaders)
    return table, nx.cycle_graph(agents), rules, far.tolist()


def played(table: Any, graph: nx.Graph, policy: Any, engine: Any = "reference", **given: Any) -> rm.Result:
    source = rm.Replay(table, objective=given.pop("objective", "maximise"))
    options: Any = {"horizon": len(table), "rng": 0, "engine": engine, "actions": True, **given}
    return rm.simulate(source, rm.Network(graph), policy, **options)


@pytest.mark.parametrize("number", range(5))
def test_oracle_and_both_engines(number: int) -> None:
    """The oracle is given the rewards less the offsets; as costs the same table has the same actions."""
    table, graph, rules, far = a_game(number, POLICIES[number])
    policy = policy_of(rules)
    slow, fast = (played(table, graph, policy, engine, offsets=far) for engine in ("reference", "fast"))
    np.testing.assert_array_equal(actions_in(slow), actions_in(fast))
    less = np.array([[[x - far[v] for x in arms] for v, arms in enumerate(row)] for row in table.tolist()])
    ties_against_oracle(less, graph, rules, slow)
    costs = played(-table, graph, policy, "fast", offsets=[-each for each in far], objective="minimise")
    np.testing.assert_array_equal(actions_in(slow), actions_in(costs))
    assert not np.array_equal(actions_in(slow), actions_in(played(table, graph, policy, "fast")))


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_oracle_and_both_engines_with_scales(number: int, with_offsets: bool) -> None:
    """The oracle is given (r − o) / c, in this order; as costs the same table has the same actions."""
    table, graph, rules, far = a_game(number, POLICIES[number])
    policy, c = policy_of(rules), scales_of(far)
    o = far if with_offsets else [0.0] * len(far)
    levels: dict[str, Any] = {"scales": c, **({"offsets": far} if with_offsets else {})}
    slow, fast = (played(table, graph, policy, engine, **levels) for engine in ("reference", "fast"))
    np.testing.assert_array_equal(actions_in(slow), actions_in(fast))
    less = [[[(x - o[v]) / c[v] for x in arms] for v, arms in enumerate(row)] for row in table.tolist()]
    ties_against_oracle(np.array(less), graph, rules, slow)
    levels["offsets"] = [-each for each in o]
    costs = played(-table, graph, policy, "fast", objective="minimise", **levels)
    np.testing.assert_array_equal(actions_in(slow), actions_in(costs))
    plain = played(table, graph, policy, "fast", offsets=o)
    assert not np.array_equal(actions_in(slow), actions_in(plain))


@pytest.mark.parametrize("policy", ["kmp", "decentralized"])
def test_lossy_channels_and_the_default(policy: str) -> None:
    table, graph, rules, far = a_game(9, policy)
    for made, faults in ((policy_of(rules), keywords_of(LOSSY)), (rm.Default(gamma=1), {})):
        for scales in (None, scales_of(far)):
            slow, fast = (
                played(table, graph, made, engine, offsets=far, scales=scales, **faults)
                for engine in ("reference", "fast")
            )
            np.testing.assert_array_equal(actions_in(slow), actions_in(fast))


def test_arms_that_share_draws_and_several_policies_at_once() -> None:
    bandit = rm.Bandit([rm.StudentT(df=3.0, loc=loc) for loc in (0.0, 0.5, 1.0)])
    given: Any = {
        "horizon": 90,
        "trials": 2,
        "rng": 3,
        "offsets": [5.0, 0.0, -5.0, 0.0, 1.0],
        "scales": [2.0, 1.0, 0.5, 3.0, 1.0],
        "actions": True,
    }
    ring = rm.Network.ring(5)
    both = rm.compare(bandit, ring, {"kmp": "kmp", "robust": "robust"}, **given)
    for name, found in both.results.items():
        slow = rm.simulate(bandit, ring, name, engine="reference", **given)
        np.testing.assert_array_equal(found.actions, slow.actions)


def test_regret_and_recorded_rewards_stay_as_they_are() -> None:
    table, graph, rules, far = a_game(0, "kmp")
    for engine in ("reference", "fast"):
        levels: Any = {"offsets": far, "scales": scales_of(far)}
        found = played(table, graph, policy_of(rules), engine, rewards=True, **levels)
        arms = actions_in(found)
        assert found.rewards is not None
        np.testing.assert_array_equal(
            found.rewards[0], np.take_along_axis(table, arms[:, :, None], axis=2)[:, :, 0]
        )
        means = table.mean(axis=(0, 1))
        wanted = (means.max() - means)[arms].sum()
        np.testing.assert_allclose(found.regret[0, -1], wanted, rtol=1e-12)


def test_no_offsets_are_zeros_and_no_scales_ones() -> None:
    table, graph, rules, far = a_game(1, "kmp")
    plain = played(table, graph, policy_of(rules), "fast")
    zeros = played(table, graph, policy_of(rules), "fast", offsets=np.zeros(len(far)))
    np.testing.assert_array_equal(actions_in(plain), actions_in(zeros))
    ones = played(table, graph, policy_of(rules), "fast", scales=np.ones(len(far)))
    np.testing.assert_array_equal(actions_in(plain), actions_in(ones))


def test_games_with_other_scales_do_not_share_their_rewards() -> None:
    """One trial of several contenders: each has the actions that it has alone."""
    table, graph, rules, far = a_game(2, "kmp")
    source, seed, marks = rm.Replay(table), np.random.SeedSequence(0), np.array([len(table)])
    made = [
        prepare(policy_of(rules), rm.Network(graph), table.shape[2], scales=scales)
        for scales in (None, scales_of(far), [2.0] * len(far))
    ]
    both = play_trial(made, source, len(table), seed, marks, keep_actions=True)
    for one, trial in zip(made, both, strict=True):
        (alone,) = play_trial([one], source, len(table), seed, marks, keep_actions=True)
        np.testing.assert_array_equal(trial.actions, alone.actions)
    first, second = (trial.actions for trial in both[:2])
    assert first is not None
    assert second is not None
    assert not np.array_equal(first, second)


def test_agents_compare_what_they_hear_once_offsets_are_removed() -> None:
    """Agent v tries arms in its own order while all share: far agents make arms look bad that are not."""
    arms, agents, rounds = 4, 12, 300
    rng = np.random.default_rng(5)
    far = 5.0 * rng.standard_normal(agents)
    table = np.linspace(0.0, 1.0, arms) + far[:, None] + 0.5 * rng.standard_normal((rounds, agents, arms))
    policy = rm.DecentralizedMPUCB(gamma=1, zeta=0.3, clique_filter=False, start="shared")
    graph = nx.complete_graph(agents)
    raw = played(table, graph, policy).regret[0, -1]
    less = played(table, graph, policy, offsets=far).regret[0, -1]
    assert less < 0.5 * raw


def test_agents_compare_what_they_hear_once_scales_are_removed() -> None:
    """The same of agents that are slower by a factor; regret is counted in the unit of the table."""
    arms, agents, rounds = 4, 12, 300
    rng = np.random.default_rng(5)
    slow = np.exp(rng.standard_normal(agents))
    noise = 0.5 * rng.standard_normal((rounds, agents, arms))
    table = slow[:, None] * (np.linspace(5.0, 4.0, arms) + noise)
    moments = rm.Moments(eps=1.0, u=30.0, rho=0.25)  # of what is taken in
    policy = rm.DecentralizedMPUCB(gamma=1, zeta=0.3, clique_filter=False, start="shared", moments=moments)
    given: Any = {"objective": "minimise"}
    graph = nx.complete_graph(agents)
    raw = played(table, graph, policy, **given).regret[0, -1]
    scaled = played(table, graph, policy, scales=slow, **given)
    assert scaled.regret[0, -1] < 0.5 * raw
    means = table.mean(axis=(0, 1))
    wanted = (means - means.min())[actions_in(scaled)].sum()
    np.testing.assert_allclose(scaled.regret[0, -1], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "given", [[1.0], 3.0, "abcd", [0.0, 1.0, 2.0, float("nan")], [0.0, 1.0, 2.0, "x"], [1e101, 0, 0, 0]]
)
def test_offsets_that_do_not_fit(given: Any) -> None:
    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    with pytest.raises(InputError, match="offsets"):
        rm.simulate(bandit, rm.Network.ring(4), "kmp", horizon=5, rng=0, offsets=given)


@pytest.mark.parametrize(
    "given",
    [[1.0], 3.0, "abcd", *([1.0, 1.0, 2.0, x] for x in (float("nan"), "x", 0.0, -1.0, 1e10, 1e-10, True))],
)
def test_scales_that_do_not_fit(given: Any) -> None:
    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    with pytest.raises(InputError, match="scales"):
        rm.simulate(bandit, rm.Network.ring(4), "kmp", horizon=5, rng=0, scales=given)
