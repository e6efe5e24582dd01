"""The compiled engine against the readable one: every action of every agent in every round."""

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers.oracle_adapters import (
    COMPILED_ESTIMATORS,
    COMPILED_POLICIES,
    CONNECTED_ONLY,
    EngineName,
    actions_in,
    actions_of,
    ties_between_engines,
)
from helpers.strategies import LAWS, SLOW_TO_DRAW, bandit_of, networks, policies, sources
from rumormill import catalogue
from rumormill.arms import RewardSource
from rumormill.engine import prepare
from rumormill.errors import InputError

ESTIMATORS: dict[str, rm.Estimator] = {
    name: catalogue.make("estimator", name) for name in COMPILED_ESTIMATORS
}
ENGINES: tuple[EngineName, ...] = ("reference", "fast")
Played = tuple[RewardSource, rm.Network, rm.Policy, int]


@st.composite
def games(draw: st.DrawFn, name: str, largest: int = 30, longest: int = 90) -> Played:
    network = draw(networks(largest))
    if name in CONNECTED_ONLY and not network.connected:
        network = rm.Network.path(network.n_agents)
    source, horizon = draw(sources(network.n_agents, longest))
    return source, network, draw(policies(name, source)), horizon


def check_games(name: str, max_examples: int, **sizes: int) -> None:
    @settings(max_examples=max_examples, deadline=None, derandomize=True, suppress_health_check=SLOW_TO_DRAW)
    @given(games(name, **sizes), st.integers(0, 1000))
    def check(game: Played, seed: int) -> None:
        assert ties_between_engines(*game, seed=seed) <= 3

    check()


@pytest.mark.parametrize("name", COMPILED_POLICIES)
def test_same_actions(name: str) -> None:
    check_games(name, 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED_POLICIES)
def test_same_actions_in_thousands(name: str) -> None:
    check_games(name, 1000, largest=40, longest=150)


def medium_policies() -> Iterator[Any]:
    for name, estimator in ESTIMATORS.items():
        common: dict[str, Any] = {"estimator": estimator, "zeta": None if estimator.brings_index else 0.3}
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
def test_same_actions_on_a_dense_network(policy: rm.Policy) -> None:
    """40 agents at density 0.6: the layout that loops over origins with all hearers at once."""
    network = rm.Network.erdos_renyi(40, 0.6, rng=3)
    horizon = 25 if isinstance(getattr(policy, "estimator", None), rm.Catoni) else 50
    assert ties_between_engines(bandit_of("stable", 5, 1), network, policy, horizon, seed=2) == 0


@pytest.mark.parametrize("kind", LAWS)
def test_same_actions_on_a_dense_network_for_every_law(kind: str) -> None:
    network = rm.Network.erdos_renyi(30, 0.5, rng=4)
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False, zeta=0.2)
    assert ties_between_engines(bandit_of(kind, 4, 7), network, policy, horizon=100, seed=5) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", MEDIUM)
@pytest.mark.parametrize("seed", range(3))
def test_same_actions_on_a_dense_network_for_long(policy: rm.Policy, seed: int) -> None:
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
def test_same_actions_while_trimmed_samples_leave(policy: rm.Policy, network: rm.Network) -> None:
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.2, loc=loc) for loc in (0.0, 0.4, 0.9)])
    assert ties_between_engines(bandit, network, policy, horizon=2000, seed=9) <= 1


def test_samples_do_leave_in_the_test_above() -> None:
    """Otherwise it would not exercise what it is for: samples that are in at first and out later."""
    t = np.arange(1, 2001)
    x = rm.AlphaStable(alpha=1.2, loc=0.4).sample(np.random.default_rng(0), len(t))
    life = LEAVING.u * t / np.abs(x) ** LEAVING.p  # sample of rank t stays while 2 ln(round) <= life
    assert np.sum((2 * np.log(t) <= life) & (life < 2 * np.log(2000))) > 50


def test_leaders_given_and_followers_far_away() -> None:
    """Followers farther than K rounds decide for themselves at first."""
    bandit = bandit_of("stable", 2, 3)
    for leaders in ([0], [5], [0, 11], [0, 1, 2, 3]):
        policy = rm.CentralizedMPUCB(gamma=11, leaders=leaders, zeta=0.4)
        assert ties_between_engines(bandit, rm.Network.path(12), policy, horizon=60) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_gamma_beyond_the_diameter_is_the_diameter(engine: EngineName) -> None:
    bandit, network = bandit_of("gaussian", 3, 0), rm.Network.path(5)
    first, *others = (
        rm.simulate(bandit, network, rm.KMPUCB(gamma=g), horizon=50, rng=1, engine=engine, actions=True)
        for g in (4, 5, 100)
    )
    for other in others:
        for field in ("actions", "messages"):
            np.testing.assert_array_equal(getattr(first, field), getattr(other, field), err_msg=field)


@pytest.mark.parametrize("tabulated", [64, 1 << 18])
@pytest.mark.parametrize(
    "policy", [rm.DecentralizedMPUCB(gamma=2), rm.CentralizedMPUCB(gamma=1), rm.RobustUCB()]
)
def test_many_counts_change_nothing(policy: Any, tabulated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums and counts exceed the cache, indices come from a table, if it has all counts."""
    monkeypatch.setattr("rumormill.engine.compiled.layout_messages.MANY_COUNTS", 1)
    monkeypatch.setattr("rumormill.engine.compiled.layout_messages.POWERS_TABULATED", tabulated)
    bandit, network = bandit_of("stables", 4, 1), rm.Network.barabasi_albert(26, 2, rng=1)
    assert ties_between_engines(bandit, network, policy, horizon=150) == 0


@pytest.mark.parametrize("checkpoints", [None, [1], [7, 40], 5])
def test_checkpoints_agree(checkpoints: int | list[int] | None) -> None:
    bandit, network = bandit_of("stables", 4, 1), rm.Network.grid(3, 3)
    policy = rm.DecentralizedMPUCB(gamma=2)
    assert ties_between_engines(bandit, network, policy, horizon=40, checkpoints=checkpoints) == 0


@pytest.mark.parametrize("name", COMPILED_POLICIES)
def test_workers_and_blocks_change_nothing(name: str) -> None:
    bandit, network = bandit_of("stables", 4, 1), rm.Network.barabasi_albert(26, 2, rng=1)
    results = [
        rm.simulate(
            bandit, network, name, horizon=150, trials=5, rng=7, actions=True, workers=workers, block=block
        )
        for workers, block in ((1, None), (2, None), (1, 1), (2, 7), (1, 64), (2, 1000))
    ]
    assert results[0].engine == "fast"
    # Trials are not copies of each other.
    assert len({actions_in(results[0], trial).tobytes() for trial in range(5)}) == 5
    for other in results[1:]:
        for field in ("actions", "agent_regret", "messages", "wire_bytes", "regret"):
            np.testing.assert_array_equal(getattr(results[0], field), getattr(other, field), err_msg=field)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_blocks_change_nothing_for_any_estimator(estimator: str) -> None:
    bandit, network = bandit_of("stable", 3, 1), rm.Network.complete(25)
    zeta = None if ESTIMATORS[estimator].brings_index else 0.3
    policy = rm.KMPUCB(gamma=1, estimator=ESTIMATORS[estimator], zeta=zeta)
    runs = [
        rm.simulate(bandit, network, policy, horizon=140, trials=1, rng=3, actions=True, block=block)
        for block in (None, 1, 7, 64)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(actions_in(run), actions_in(runs[0]))


def test_a_trial_does_not_depend_on_how_many_there_are() -> None:
    bandit, network = bandit_of("gaussian", 3, 1), rm.Network.ring(6)
    few, many = (
        rm.simulate(bandit, network, rm.KMPUCB(gamma=1), horizon=80, trials=n, rng=5, actions=True)
        for n in (2, 4)
    )
    for trial in range(2):
        np.testing.assert_array_equal(actions_in(few, trial), actions_in(many, trial))


@pytest.mark.parametrize("engine", ENGINES)
def test_horizon_does_not_change_the_past(engine: EngineName) -> None:
    bandit, network = bandit_of("gaussian", 3, 1), rm.Network.ring(6)
    policy = rm.DecentralizedMPUCB(gamma=2, clique_filter=False)
    short, long = (
        rm.simulate(bandit, network, policy, horizon=T, trials=1, rng=5, engine=engine, actions=True)
        for T in (50, 130)
    )
    np.testing.assert_array_equal(actions_in(short), actions_in(long)[:50])


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_of_a_graph_do_not_matter(engine: EngineName) -> None:
    """Agents are numbered as the nodes come, whatever they are called."""
    table = np.random.default_rng(0).standard_normal((40, 4, 3))
    named = nx.Graph()
    named.add_nodes_from("dbac")
    named.add_edges_from([("d", "b"), ("b", "a"), ("a", "c")])
    one, two = (
        actions_of(table, network, rm.KMPUCB(gamma=1), engine)
        for network in (rm.Network(named), rm.Network.path(4))
    )
    np.testing.assert_array_equal(one, two)


def test_exact_ties_of_clipped_means_are_ties_in_both_engines() -> None:
    """Every reward is clipped: only the counts above and below decide; equal counts go to the first arm."""
    rng = np.random.default_rng(8)
    signs = np.where(rng.random((400, 6, 1)) < 0.8, 1.0, -1.0)
    table = np.broadcast_to(signs, (400, 6, 9)) * rng.uniform(1e6, 1e9, (400, 6, 9))
    moments = rm.Moments(eps=0.7, u=1e-3, rho=1e-3)
    for policy in (
        rm.KMPUCB(gamma=1, estimator=rm.ClippedMean(), moments=moments),
        rm.RobustUCB(estimator=rm.ClippedMean(), moments=moments),
    ):
        slow, fast = (actions_of(table, rm.Network.ring(6), policy, engine) for engine in ENGINES)
        np.testing.assert_array_equal(slow, fast)


@pytest.mark.parametrize("policy", [rm.KMPUCB(gamma=1), rm.RobustUCB(), rm.ConsensusUCB()])
def test_both_engines_refuse_a_constant_table_in_the_same_words(policy: rm.Policy) -> None:
    for engine in ENGINES:
        with pytest.raises(InputError, match="every arm of the table pays a constant"):
            rm.simulate(
                rm.Replay(np.full((20, 5, 3), 2.0)),
                rm.Network.ring(5),
                policy,
                horizon=10,
                rng=1,
                engine=engine,
            )


def test_the_largest_samples_are_kept_for_the_level_of_the_last_round() -> None:
    """Half of arm 0's 40 samples are large: fewer than kappa L_3 = 22, more than there is room for at L_2.

    As outliers they are clipped down to the others. Were some not kept, they would pass for ordinary ones.
    """
    table = np.full((3, 40, 2), 1e-3)
    table[0, :20, 0] = 1.0
    table[1, :, 1] = 0.3
    mean = rm.SelfTuned(kappa=10.0, guard=10.0, pilot=0)
    policy = rm.DecentralizedMPUCB(gamma=1, clique_filter=False, estimator=mean)
    for engine in ENGINES:
        assert actions_of(table, nx.complete_graph(40), policy, engine)[2].tolist() == [1] * 40


def test_followers_that_never_decide_take_no_room() -> None:
    policy = rm.CentralizedMPUCB(gamma=2, leaders=[0])
    layout: Any = prepare(policy, rm.Network.star(6), 3, engine="fast").layout
    assert layout.reach.learners.tolist() == [0]
