"""The compiled engine against the readable one: every action of every agent in every round."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rumormill as rm
from sides import ties_between_engines
from strategies import LAWS, bandit_of, constants, networks, sources

ESTIMATORS = {
    "trimmed": rm.TrimmedMean(),
    "empirical": rm.EmpiricalMean(),
    "median": rm.MedianOfMeans(),
    "catoni": rm.Catoni(),
}
POLICIES = (rm.DecentralizedMPUCB, rm.CentralizedMPUCB, rm.KMPUCB, rm.RobustUCB, rm.ConsensusUCB)
slow_to_draw = [HealthCheck.too_slow, HealthCheck.data_too_large]


@st.composite
def policies(draw, cls, source):
    """A policy with parameters of every kind; moments given, or those of the rewards."""
    eps = draw(st.sampled_from([eps for eps in (1.0, 0.8, 0.25) if 1 + eps < source.tail_index]))
    own = rm.Moments(eps=eps, u=draw(st.floats(0.1, 10)), rho=draw(st.floats(0.1, 10)))
    # A constant table has no central moment, so only bandits are asked for theirs.
    moments = None if isinstance(source, rm.Bandit) and draw(st.booleans()) else own
    if cls is rm.ConsensusUCB:
        return cls(moments=moments, epsilon=draw(st.none() | st.floats(0, 5)))
    estimator = draw(st.sampled_from(sorted(ESTIMATORS)))
    common = {
        "estimator": ESTIMATORS[estimator],
        "confidence": draw(st.sampled_from(("paper", "anytime"))),
        "moments": moments,
        **draw(constants(estimator)),
    }
    if cls is rm.RobustUCB:
        return cls(**common)
    common["gamma"] = draw(st.integers(0, 5))
    if cls is rm.DecentralizedMPUCB:
        common["clique_filter"] = draw(st.booleans())
    if cls is rm.CentralizedMPUCB:
        common["leaders"] = draw(st.sampled_from(("independent", "dominating")))
    return cls(**common)


@st.composite
def games(draw, cls, largest=30, longest=90):
    network = draw(networks(largest))
    if cls is rm.ConsensusUCB and not network.connected:
        network = rm.Network.path(network.n_agents)
    source, horizon = draw(sources(network.n_agents, longest))
    return source, network, draw(policies(cls, source)), horizon


def check_games(cls, max_examples, **sizes):
    @settings(max_examples=max_examples, deadline=None, derandomize=True, suppress_health_check=slow_to_draw)
    @given(games(cls, **sizes), st.integers(0, 1000))
    def check(game, seed):
        assert ties_between_engines(*game, seed=seed) <= 3

    check()


@pytest.mark.parametrize("cls", POLICIES)
def test_same_actions(cls):
    check_games(cls, 60)


@pytest.mark.slow
@pytest.mark.parametrize("cls", POLICIES)
def test_same_actions_in_thousands(cls):
    check_games(cls, 1000, largest=40, longest=150)


def medium_policies():
    for name, estimator in ESTIMATORS.items():
        common = {"estimator": estimator, "zeta": 0.3}
        for gamma in (1, 2):
            yield pytest.param(rm.KMPUCB(gamma=gamma, **common), id=f"kmp-{name}-{gamma}")
            yield pytest.param(
                rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False, **common), id=f"free-{name}-{gamma}"
            )
        yield pytest.param(rm.DecentralizedMPUCB(gamma=1, **common), id=f"filtered-{name}")
    yield pytest.param(rm.CentralizedMPUCB(gamma=1, zeta=0.3), id="centralized")
    yield pytest.param(rm.ConsensusUCB(), id="consensus")


MEDIUM = list(medium_policies())


@pytest.mark.parametrize("policy", MEDIUM)
def test_same_actions_on_a_dense_network(policy):
    """40 agents at density 0.6: the layout that loops over origins with all hearers at once."""
    network = rm.Network.erdos_renyi(40, 0.6, rng=3)
    horizon = 40 if isinstance(getattr(policy, "estimator", None), rm.Catoni) else 90
    assert ties_between_engines(bandit_of("stable", 5, 1), network, policy, horizon, seed=2) == 0


@pytest.mark.parametrize("kind", LAWS)
def test_same_actions_on_a_dense_network_for_every_law(kind):
    network = rm.Network.erdos_renyi(30, 0.5, rng=4)
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False, zeta=0.2)
    assert ties_between_engines(bandit_of(kind, 4, 7), network, policy, horizon=100, seed=5) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", MEDIUM)
@pytest.mark.parametrize("seed", range(3))
def test_same_actions_on_a_dense_network_for_long(policy, seed):
    network = rm.Network.erdos_renyi(40, 0.6, rng=seed)
    assert ties_between_engines(bandit_of("stable", 5, seed), network, policy, horizon=400, seed=seed) <= 2


LEAVING = rm.Moments(eps=0.15, u=0.05, rho=0.3)  # so small a bound that samples keep leaving


@pytest.mark.parametrize(
    "policy",
    [
        rm.DecentralizedMPUCB(gamma=2, clique_filter=False, zeta=0.3, moments=LEAVING),
        rm.DecentralizedMPUCB(gamma=2, zeta=0.3, moments=LEAVING, confidence="anytime"),
        rm.CentralizedMPUCB(gamma=2, zeta=0.3, moments=LEAVING),
        rm.KMPUCB(gamma=1, zeta=0.3, moments=LEAVING),
        rm.RobustUCB(zeta=0.3, moments=LEAVING),
    ],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize("network", [rm.Network.path(4), rm.Network.star(6)], ids=["path", "star"])
def test_same_actions_while_trimmed_samples_leave(policy, network):
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.2, loc=loc) for loc in (0.0, 0.4, 0.9)])
    assert ties_between_engines(bandit, network, policy, horizon=2000, seed=9) <= 1


def test_samples_do_leave_in_the_test_above():
    """Otherwise it would not exercise what it is for: samples that are in at first and out later."""
    t = np.arange(1, 2001)
    x = rm.AlphaStable(alpha=1.2, loc=0.4).sample(np.random.default_rng(0), len(t))
    life = LEAVING.u * t / np.abs(x) ** LEAVING.p  # sample of rank t stays while 2 ln(round) <= life
    assert np.sum((2 * np.log(t) <= life) & (life < 2 * np.log(2000))) > 50


def test_leaders_given_and_followers_far_away():
    """Followers farther than K rounds decide for themselves at first."""
    bandit = bandit_of("stable", 2, 3)
    for leaders in ([0], [5], [0, 11], [0, 1, 2, 3]):
        policy = rm.CentralizedMPUCB(gamma=11, leaders=leaders, zeta=0.4)
        assert ties_between_engines(bandit, rm.Network.path(12), policy, horizon=60) == 0


def test_gamma_beyond_the_diameter_is_the_diameter():
    bandit = bandit_of("gaussian", 3, 0)
    network = rm.Network.path(5)
    for engine in ("reference", "fast"):
        runs = [
            rm.simulate(
                bandit, network, rm.KMPUCB(gamma=g), horizon=50, trials=1, rng=1, engine=engine, actions=True
            )
            for g in (4, 5, 100)
        ]
        for run in runs[1:]:
            for field in ("actions", "messages"):
                np.testing.assert_array_equal(getattr(runs[0], field), getattr(run, field), err_msg=field)


@pytest.mark.parametrize("checkpoints", [None, [1], [7, 40], 5])
def test_checkpoints_agree(checkpoints):
    bandit, network = bandit_of("stables", 4, 1), rm.Network.grid(3, 3)
    policy = rm.DecentralizedMPUCB(gamma=2)
    assert ties_between_engines(bandit, network, policy, horizon=40, checkpoints=checkpoints) == 0


@pytest.mark.parametrize("cls", POLICIES)
def test_workers_and_blocks_change_nothing(cls):
    bandit, network = bandit_of("stables", 4, 1), rm.Network.barabasi_albert(26, 2, rng=1)
    results = [
        rm.simulate(
            bandit, network, cls(), horizon=150, trials=5, rng=7, actions=True, workers=workers, block=block
        )
        for workers, block in ((1, None), (2, None), (1, 1), (2, 7), (1, 64), (2, 1000))
    ]
    assert results[0].engine == "fast"
    assert len(np.unique(results[0].actions, axis=0)) == 5  # trials are not copies of each other
    for other in results[1:]:
        for field in ("actions", "agent_regret", "messages", "wire_bytes", "regret"):
            np.testing.assert_array_equal(getattr(results[0], field), getattr(other, field), err_msg=field)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_blocks_change_nothing_for_any_estimator(estimator):
    bandit, network = bandit_of("stable", 3, 1), rm.Network.complete(25)
    policy = rm.KMPUCB(gamma=1, estimator=ESTIMATORS[estimator], zeta=0.3)
    runs = [
        rm.simulate(bandit, network, policy, horizon=140, trials=1, rng=3, actions=True, block=block)
        for block in (None, 1, 7, 64)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.actions, runs[0].actions)


def test_a_trial_does_not_depend_on_how_many_there_are():
    bandit, network = bandit_of("gaussian", 3, 1), rm.Network.ring(6)
    few, many = (
        rm.simulate(bandit, network, rm.KMPUCB(gamma=1), horizon=80, trials=n, rng=5, actions=True)
        for n in (2, 4)
    )
    np.testing.assert_array_equal(few.actions, many.actions[:2])


def test_horizon_does_not_change_the_past():
    bandit, network = bandit_of("gaussian", 3, 1), rm.Network.ring(6)
    policy = rm.DecentralizedMPUCB(gamma=2, clique_filter=False)
    for engine in ("reference", "fast"):
        short, long = (
            rm.simulate(bandit, network, policy, horizon=T, trials=1, rng=5, engine=engine, actions=True)
            for T in (50, 130)
        )
        np.testing.assert_array_equal(short.actions[0], long.actions[0][:50])


def test_labels_of_a_graph_do_not_matter():
    """Agents are numbered as the nodes come, whatever they are called."""
    table = np.random.default_rng(0).standard_normal((40, 4, 3))
    named = nx.Graph()
    named.add_nodes_from("dbac")
    named.add_edges_from([("d", "b"), ("b", "a"), ("a", "c")])
    for engine in ("reference", "fast"):
        one, two = (
            rm.simulate(
                rm.Replay(table),
                net,
                rm.KMPUCB(gamma=1),
                horizon=40,
                trials=1,
                rng=0,
                engine=engine,
                actions=True,
            ).actions
            for net in (rm.Network(named), rm.Network.path(4))
        )
        np.testing.assert_array_equal(one, two)
