"""Rivals, unknown tails, quiet talk, the shared start: golden games, and random ones against the oracle."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from helpers.oracle import AVERAGING, LAZY, OWN_INDEX, Rules
from helpers.oracle_adapters import (
    MESSAGE_PASSING,
    EngineName,
    played,
    ties_against_oracle,
    ties_between_engines,
)
from helpers.random_games import game_beyond_the_paper
from helpers.strategies import bandit_of

engines = pytest.mark.parametrize("engine", ["reference", "fast"])
MEANS = ("clipped", "trimmed", "empirical")
GAMES = [(policy, estimator) for policy in MESSAGE_PASSING for estimator in (*MEANS, *OWN_INDEX)]
# Decentralized TS is compared in test_other_families.py.
GAMES += [(policy, "trimmed") for policy in AVERAGING if policy != "decentralized-ts"]
each_game = pytest.mark.parametrize(("policy", "estimator"), GAMES)


def count_ties(policy: str, estimator: str, seeds: range) -> int:
    """Both engines against the oracle, and against each other; some means have one engine only."""
    ties = 0
    for seed in seeds:
        table, graph, rules, *_ = game_beyond_the_paper(seed, policy, estimator)
        slow = played(table, graph, rules, "reference")
        fast = slow if estimator in LAZY else played(table, graph, rules, "fast")
        for name in ("actions", "agent_regret", "messages", "wire_bytes"):
            np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name), err_msg=str(rules))
        ties += ties_against_oracle(table, graph, rules, slow)
    return ties


@each_game
def test_both_engines_equal_the_oracle(policy: str, estimator: str) -> None:
    assert count_ties(policy, estimator, range(6 if estimator in LAZY else 16)) <= 8


@pytest.mark.slow
@each_game
def test_both_engines_equal_the_oracle_in_thousands(policy: str, estimator: str) -> None:
    # Clipped at one level, different samples become equal: many true ties on tables of few values.
    seeds = range(100, 130 if estimator in LAZY else 500)
    assert count_ties(policy, estimator, seeds) <= (150 if estimator == "clipped" else 20)


@pytest.mark.parametrize(
    ("estimator", "values", "chances"),
    [
        ("huber-sgd", [-1.0, 1.0], [0.5, 0.5]),  # eight of fifteen are always the same
        ("huber-sgd", [0.0, 0.5, 9.0], [0.9, 0.05, 0.05]),  # and often all of them
        ("median-bound", [1e7, 2.0, 1e6], [0.6, 0.3, 0.1]),  # larger than the grid
        ("clipped", [8.0, 0.0, -1.0], [0.4, 0.3, 0.3]),  # more than 128 exceed the level
    ],
)
@pytest.mark.parametrize("policy", ["kmp", "decentralized"])
def test_rules_for_samples_that_are_alike_too_large_or_too_many(
    policy: str, estimator: str, values: list[float], chances: list[float]
) -> None:
    rng, graph = np.random.default_rng(len(estimator)), nx.complete_graph(7)
    table = rng.choice(values, (70, 7, 2), p=chances)
    for schedule, quiet in (("paper", None), ("anytime", 0.25)):
        rules = Rules(
            policy, eps=0.1, u=0.2, estimator=estimator, gamma=1, schedule=schedule, quiet=quiet, zeta=0.01
        )
        slow, fast = (played(table, graph, rules, engine) for engine in ("reference", "fast"))
        np.testing.assert_array_equal(slow.actions, fast.actions)
        ties_against_oracle(table, graph, rules, slow)


def constant(estimator: rm.Estimator) -> dict[str, float]:
    return {} if estimator.brings_index else {"zeta": 0.3}


EVERY_MEAN = [
    rm.TrimmedMean(),
    rm.MedianOfMeans(),
    rm.Catoni(),
    rm.EmpiricalMean(),
    rm.ClippedMean(),
    rm.SelfTuned(),
    rm.SelfTuned.symmetric(),
    rm.MedianBound(),
    rm.RobustMOSS(zeta=1.0),
    rm.HuberSGD(),
    rm.HuberSGD(scale=1.0),
]


@pytest.mark.parametrize("estimator", EVERY_MEAN, ids=repr)
@pytest.mark.parametrize("network", [rm.Network.erdos_renyi(30, 0.5, rng=3), rm.Network.ring(26)], ids=repr)
def test_larger_networks(estimator: rm.Estimator, network: rm.Network) -> None:
    """Dense enough for whole rows of hearers at a time, and sparse; every option at once."""
    horizon = 40 if isinstance(estimator, rm.Catoni) else 60
    common: dict[str, Any] = {"estimator": estimator, "gamma": 2, **constant(estimator)}
    for policy in (
        rm.DecentralizedMPUCB(clique_filter=False, quiet=0.25, start="shared", **common),
        rm.KMPUCB(quiet=0.25, start="shared", **common),
        rm.KMPUCB(start="shared", **common),
        rm.CentralizedMPUCB(quiet=0.5, start="shared", **common),
        rm.CentralizedMPUCB(quiet=0.0, **common),
    ):
        assert ties_between_engines(bandit_of("stable", 5, 1), network, policy, horizon, seed=2) == 0


@pytest.mark.parametrize(
    "policy",
    [rm.CoopUCB2(), rm.RobustGossip(), rm.DDUCB(), rm.DDUCB(own=False, accelerated=False), rm.ConsensusUCB()],
    ids=repr,
)
def test_averages_on_larger_networks(policy: rm.Policy) -> None:
    for network in (rm.Network.erdos_renyi(30, 0.5, rng=3), rm.Network.ring(26), rm.Network.complete(25)):
        assert ties_between_engines(bandit_of("stable", 5, 1), network, policy, 200, seed=2) == 0


# --- the shared start, by hand ----------------------------------------------------------------------------


def play(table: Any, graph: nx.Graph, policy: rm.Policy, engine: EngineName) -> Any:
    return played(np.asarray(table, float), graph, policy, engine)


@engines
def test_a_shared_start_by_hand(engine: EngineName) -> None:
    """On a path 0 - 1 - 2 with three arms, of which the last is best.

    Round 1: agent v pulls arm v. Then 0 knows the arms 0 and 1, 1 knows all, 2 knows 1 and 2.
    Round 2: 0 looks from arm 1 on, knows it, and takes 2; 1 decides; 2 looks from arm 0 on, and takes it.
    Round 3: all know all, and decide.
    """
    table = np.zeros((4, 3, 3))
    table[:, :, 2] = 10.0
    policy = rm.DecentralizedMPUCB(
        gamma=1,
        clique_filter=False,
        estimator=rm.EmpiricalMean(),
        zeta=1e-6,
        start="shared",
        moments=rm.Moments(eps=1.0, u=1.0, rho=1.0),
    )
    found = play(table, nx.path_graph(3), policy, engine)
    assert found.actions[0].tolist() == [[0, 1, 2], [2, 2, 0], [2, 2, 2], [2, 2, 2]]
    assert found.messages[0, -1] == 4 * 4


@engines
def test_alone_a_shared_start_takes_k_rounds_from_the_own_arm_on(engine: EngineName) -> None:
    policy = rm.KMPUCB(gamma=1, start="shared", moments=rm.Moments(eps=1.0, u=1.0, rho=1.0))
    found = play(np.zeros((3, 5, 3)), nx.empty_graph(5), policy, engine)
    assert found.actions[0].T.tolist() == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0]]


@engines
def test_a_shared_start_is_over_after_one_round_where_all_hear_all(engine: EngineName) -> None:
    table = np.zeros((3, 4, 4))
    table[:, :, 1] = 5.0
    moments = rm.Moments(eps=1.0, u=1.0, rho=1.0)
    for cls in (rm.KMPUCB, rm.CentralizedMPUCB):
        policy = cls(gamma=1, estimator=rm.EmpiricalMean(), zeta=1e-6, start="shared", moments=moments)
        found = play(table, nx.complete_graph(4), policy, engine)
        assert found.actions[0, 0].tolist() == [0, 1, 2, 3]
        if cls is rm.KMPUCB:
            assert (found.actions[0, 1:] == 1).all()
        else:  # the leader decides, its followers copy what it played a round ago
            plan: Any = policy.plan(rm.Network.complete(4))
            leader = int(plan.leaders[0])
            assert found.actions[0, 1, leader] == 1
            assert (np.delete(found.actions[0, 1], leader) == found.actions[0, 0, leader]).all()


# --- quiet talk, by hand ----------------------------------------------------------------------------------


@engines
@pytest.mark.parametrize(("theta", "messages"), [(None, 20), (0.0, 4), (0.25, 4), (1.0, 6)])
def test_quiet_talk_by_hand(engine: EngineName, theta: float | None, messages: int) -> None:
    """Two agents, two arms that pay 0 and 1, ten rounds.

    The first two rounds are told: two messages each. In round 3 both pull arm 1, their favourite, and have
    two samples of either arm: told only if 2 <= theta 2. After that arm 1 is ahead, and nothing is told.
    """
    table = np.zeros((10, 2, 2))
    table[:, :, 1] = 1.0
    policy = rm.DecentralizedMPUCB(
        gamma=1,
        clique_filter=False,
        estimator=rm.EmpiricalMean(),
        zeta=1e-6,
        quiet=theta,
        moments=rm.Moments(eps=1.0, u=1.0, rho=1.0),
    )
    found = play(table, nx.path_graph(2), policy, engine)
    assert found.actions[0, 2:].all()
    assert found.messages[0, -1] == messages
    assert found.wire_bytes[0, -1] == 20 * messages


def test_leaders_are_never_quiet() -> None:
    """Followers live on what the leader tells: they copy it as without quiet talk."""
    bandit, network = bandit_of("gaussian", 3, 1), rm.Network.star(8)
    loud, quiet = (
        rm.simulate(
            bandit,
            network,
            rm.CentralizedMPUCB(gamma=1, zeta=0.3, leaders=[0], quiet=theta),
            horizon=200,
            rng=3,
            actions=True,
        )
        for theta in (None, 0.25)
    )
    assert quiet.actions is not None
    assert (quiet.actions[0, 4:, 1:] == quiet.actions[0, 3:-1, :1]).all()
    assert quiet.messages[0, -1] < 0.7 * loud.messages[0, -1]
    assert quiet.messages[0, -1] >= 200 * 7  # the leader's own


def test_quiet_talk_saves_nearly_all_messages() -> None:
    bandit, network = bandit_of("stable", 5, 4), rm.Network.erdos_renyi(40, 0.2, rng=1)
    loud, quiet = (
        rm.simulate(
            bandit,
            network,
            rm.DecentralizedMPUCB(gamma=2, clique_filter=False, quiet=theta),
            horizon=2000,
            rng=1,
        )
        for theta in (None, 0.25)
    )
    assert quiet.messages[0, -1] < 0.2 * loud.messages[0, -1]
    assert quiet.regret[0, -1] < 1.5 * loud.regret[0, -1]


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rm.KMPUCB(estimator=rm.SelfTuned(), zeta=1.0), "SelfTuned brings its own index"),
        (lambda: rm.KMPUCB(estimator=rm.MedianBound(), c=1.0), "MedianBound brings its own index"),
        (lambda: rm.KMPUCB(quiet=-1.0), "quiet = -1.0 is not allowed"),
        (lambda: rm.KMPUCB(start="slow"), "start = 'slow' is not allowed"),  # type: ignore[arg-type]
        (lambda: rm.SelfTuned(guard=0.5), "guard = 0.5 is not allowed"),
        (lambda: rm.SelfTuned(pilot=4), "pilot = 4 is not allowed"),
        (lambda: rm.MedianBound(scale=0.0), "scale = 0.0 is not allowed"),
        (lambda: rm.RobustMOSS(a=1.0), "a = 1.0 is not allowed"),
        (lambda: rm.MRUCB(c=0.0), "c = 0.0 is not allowed"),
        (lambda: rm.MRUCB(p=1.0), "p = 1.0 is not allowed"),
        (lambda: rm.KMPUCB(estimator=rm.CatoniBound(), c="theory"), "CatoniBound brings its own index"),
        (lambda: rm.HuberSGD(lam=0.0), "lam = 0.0 is not allowed"),
        (lambda: rm.ConsensusUCB(radius="none"), "radius = 'none' is not allowed"),  # type: ignore[arg-type]
        (lambda: rm.ConsensusUCB(radius="variance"), "'variance' is called 'printed' now"),  # type: ignore[arg-type]
        (lambda: rm.CoopUCB2(sigma=-1.0), "sigma = -1.0 is not allowed"),
        (lambda: rm.DDUCB(eta=1.0), "eta = 1.0 is not allowed"),
        (lambda: rm.CoopUCB2(gamma_c=1.0), "gamma_c = 1.0 is not allowed"),
        (lambda: rm.RobustGossip(zeta=0.0), "zeta = 0.0 is not allowed"),
    ],
)
def test_refusals(make: Any, words: str) -> None:
    with pytest.raises(rm.InputError, match=words):
        make()


def test_policies_that_need_no_moments_play_without() -> None:
    """A table of constants has no moments to give."""
    table = np.ones((40, 3, 2))
    for policy in (
        rm.KMPUCB(gamma=1, estimator=rm.SelfTuned()),
        rm.DecentralizedMPUCB(gamma=1, estimator=rm.MedianBound()),
        rm.RobustUCB(estimator=rm.HuberSGD()),
        rm.CoopUCB2(sigma=1.0),
        rm.DDUCB(sigma=1.0),
    ):
        for engine in ("reference", "fast"):
            rm.simulate(rm.Replay(table), rm.Network.path(3), policy, horizon=40, rng=0, engine=engine)
    with pytest.raises(rm.InputError, match="moments"):
        rm.simulate(rm.Replay(table), rm.Network.path(3), rm.CoopUCB2(), horizon=40, rng=0)


@pytest.mark.parametrize("estimator", [rm.RobustMOSS(), rm.MRUCB()], ids=repr)
def test_some_need_the_number_of_rounds(estimator: rm.Estimator) -> None:
    seat = rm.Seat(agent=0, n_arms=2, moments=rm.Moments(eps=1.0, u=1.0, rho=1.0))
    with pytest.raises(rm.InputError, match=f"{type(estimator).__name__} needs to know the number of rounds"):
        rm.RobustUCB(estimator=estimator).agent(seat)


@pytest.mark.parametrize("estimator", [rm.CatoniBound(), rm.MRUCB()], ids=repr)
def test_means_over_all_samples_say_which_engine_plays_them(estimator: rm.Estimator) -> None:
    bandit, network = bandit_of("stable", 3, 1), rm.Network.path(3)
    policy = rm.KMPUCB(estimator=estimator)
    words = f"does not support the estimator {type(estimator).__name__}"
    with pytest.raises(rm.InputError, match=f'engine="fast" cannot run this: .*{words}; take engine="auto"'):
        rm.simulate(bandit, network, policy, horizon=9, rng=0, engine="fast")
    with pytest.warns(rm.SlowEngineNotice, match=f"KMPUCB runs on the reference engine: .*{words}"):
        assert rm.simulate(bandit, network, policy, horizon=9, rng=0).engine == "reference"
