"""Laws that the policies must obey whatever the rewards."""

from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rumormill as rm
from helpers.oracle import Floats
from helpers.oracle_adapters import EngineName
from helpers.oracle_adapters import actions_of as play
from helpers.strategies import graphs
from rumormill import catalogue
from rumormill.engine.compiled import unsupported_reason
from rumormill.engine.reference import Game, seats

MOMENTS = rm.Moments(eps=1.0, u=4.0, rho=2.0)
ESTIMATORS: list[rm.Estimator] = [catalogue.make("estimator", name) for name in catalogue.ESTIMATORS]
engines = pytest.mark.parametrize("engine", ["reference", "fast"])
quick = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
seeds = st.integers(0, 10**6)


def quarters(seed: int, T: int, M: int, K: int) -> Floats:
    """Rewards in multiples of 1/4: sums of them are exact in any order."""
    drawn = np.random.default_rng(seed).standard_cauchy((T, M, K))
    rewards: Floats = np.clip(np.round(4 * drawn), -99, 99) / 4
    return rewards


def played_by(engine: EngineName, estimator: rm.Estimator) -> bool:
    """Whether the engine has this mean."""
    return engine == "reference" or unsupported_reason(rm.RobustUCB(estimator=estimator), rm.World()) is None


def constant(estimator: rm.Estimator) -> dict[str, float]:
    """c, where the estimator leaves the radius to the policy."""
    return {} if estimator.brings_index else {"c": 0.5}


@pytest.mark.parametrize(
    ("engine", "estimator"),
    [(engine, one) for one in ESTIMATORS for engine in ("reference", "fast") if played_by(engine, one)],
    ids=repr,
)
def test_gamma_zero_is_isolation(engine: EngineName, estimator: rm.Estimator) -> None:
    @quick
    @given(graphs(), seeds)
    def check(graph: nx.Graph, seed: int) -> None:
        table = quarters(seed, 25, len(graph), 3)
        common: dict[str, Any] = {"estimator": estimator, "moments": MOMENTS, **constant(estimator)}
        alone = play(table, graph, rm.RobustUCB(**common), engine)
        for cls in (rm.DecentralizedMPUCB, rm.CentralizedMPUCB, rm.KMPUCB):
            np.testing.assert_array_equal(play(table, graph, cls(gamma=0, **common), engine), alone)
        # Each agent is as if it were the only one.
        last = play(table[:, -1:], nx.empty_graph(1), rm.RobustUCB(**common), engine)
        np.testing.assert_array_equal(last[:, 0], alone[:, -1])

    check()


@engines
def test_one_agent_hears_nobody(engine: EngineName) -> None:
    table = quarters(3, 50, 1, 4)
    network = rm.Network.complete(1)
    alone = play(table, network, rm.RobustUCB(c=0.5, moments=MOMENTS), engine)
    for name in ("decentralized", "centralized", "kmp"):
        for gamma in (0, 1, "half-diameter"):
            table_of = {"type": name, "gamma": gamma, "c": 0.5}
            policy = catalogue.make("policy", {**table_of, "moments": {"eps": 1.0, "u": 4.0, "rho": 2.0}})
            np.testing.assert_array_equal(play(table, network, policy, engine), alone)
    assert play(table, network, rm.ConsensusUCB(moments=MOMENTS), engine).shape == (50, 1)


@pytest.mark.parametrize("name", catalogue.POLICIES)
def test_fewer_rounds_than_arms(name: str) -> None:
    table = quarters(1, 3, 4, 6)
    takes = {one.name for one in catalogue.settings(catalogue.POLICIES[name])}
    policy = catalogue.make("policy", {"type": name} | ({"moments": MOMENTS} if "moments" in takes else {}))
    engines: list[EngineName] = (
        ["reference"] if unsupported_reason(policy, rm.World()) else ["reference", "fast"]
    )
    for engine in engines:
        actions = play(table, rm.Network.star(4), policy, engine)
        if name == "default":  # its pilot shares the arms out
            assert len(np.unique(actions)) == 6
            continue
        np.testing.assert_array_equal(actions, np.repeat([[0], [1], [2]], 4, axis=1))


@engines
def test_parts_of_a_network_do_not_disturb_each_other(engine: EngineName) -> None:
    @quick
    @given(graphs(largest=5), graphs(largest=5), st.integers(0, 4), seeds)
    def check(one: nx.Graph, two: nx.Graph, gamma: int, seed: int) -> None:
        both = nx.disjoint_union(one, two)
        table = quarters(seed, 25, len(both), 3)
        for policy in (
            rm.KMPUCB(gamma=gamma, c=0.5, moments=MOMENTS),
            rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False, c=0.5, moments=MOMENTS),
        ):
            together = play(table, both, policy, engine)
            left = play(table[:, : len(one)], one, policy, engine)
            right = play(table[:, len(one) :], two, policy, engine)
            np.testing.assert_array_equal(together, np.hstack([left, right]))

    check()


@engines
def test_complete_information_on_a_complete_network(engine: EngineName) -> None:
    """All hear all at once, so all act alike: as one who draws M samples a round."""

    @quick
    @given(st.integers(2, 6), seeds)
    def check(M: int, seed: int) -> None:
        T, K = 30, 3
        table = quarters(seed, T, M, K)
        policy = rm.DecentralizedMPUCB(
            gamma=1, clique_filter=False, estimator=rm.EmpiricalMean(), c=0.5, moments=MOMENTS
        )
        actions = play(table, nx.complete_graph(M), policy, engine)
        sums, n = np.zeros(K), np.zeros(K)
        for t in range(1, T + 1):
            if t <= K:
                arm = t - 1
            else:  # p = 2: the radius is sqrt(rho c L / n)
                index = sums / n + np.sqrt(MOMENTS.rho * 0.5 * 2 * np.log(t) / n)
                arm = int(actions[t - 1, 0])
                assert index[arm] >= index.max() - 1e-12
            assert (actions[t - 1] == arm).all()
            sums[arm] += table[t - 1, :, arm].sum()
            n[arm] += M

    check()


@quick
@given(graphs(largest=7, connected=True), seeds)
def test_complete_information_up_to_delay(graph: nx.Graph, seed: int) -> None:
    """With gamma at least the diameter an agent lacks, of one d hops away, only the last d - 1 samples."""
    M, K, T = len(graph), 3, 12
    network, source, start = rm.Network(graph), rm.Replay(quarters(seed, T, M, K)), np.random.SeedSequence(0)
    dist = dict(nx.all_pairs_shortest_path_length(graph))
    for policy in (
        rm.DecentralizedMPUCB(gamma=M, clique_filter=False, moments=MOMENTS),
        rm.KMPUCB(gamma=M, moments=MOMENTS),
    ):
        places = seats(policy, policy.plan(network), source, network, T, start)
        agents = [policy.agent(seat) for seat in places]
        carrier = rm.PerfectChannel().open(network, start)
        game = Game(agents, network, source.stream(start, M, T), carrier, T)
        pulled = np.zeros((T + 1, M), dtype=int)
        for t in range(1, T + 1):
            for v, agent in enumerate(agents):
                counts = [n for _, n in agent.samples.estimates(t)]
                known = [pulled[s, w] for w, d in dist[v].items() for s in range(1, t - max(d, 1) + 1)]
                assert counts == np.bincount(known, minlength=K).tolist()
            pulled[t] = game.play_round(t).arms


@engines
def test_renumbering_agents_renumbers_actions(engine: EngineName) -> None:
    """The plain mean does not mind the order of samples, so numbers of agents do not matter."""

    @quick
    @given(graphs(), st.integers(0, 4), seeds)
    def check(graph: nx.Graph, gamma: int, seed: int) -> None:
        M = len(graph)
        new = np.random.default_rng(seed).permutation(M)
        table = quarters(seed, 25, M, 3)
        renumbered = nx.empty_graph(M)
        renumbered.add_edges_from((new[v], new[w]) for v, w in graph.edges)
        moved = np.empty_like(table)
        moved[:, new] = table
        policy = rm.DecentralizedMPUCB(
            gamma=gamma, clique_filter=False, estimator=rm.EmpiricalMean(), c=0.5, moments=MOMENTS
        )
        np.testing.assert_array_equal(
            play(moved, renumbered, policy, engine)[:, new], play(table, graph, policy, engine)
        )

    check()


def every_policy(moments: rm.Moments, estimators: Sequence[rm.Estimator]) -> Iterator[rm.Policy]:
    yield rm.ConsensusUCB(moments=moments, epsilon=1.0)
    for estimator in estimators:
        common: dict[str, Any] = {"estimator": estimator, "moments": moments, **constant(estimator)}
        yield rm.RobustUCB(**common)
        yield rm.KMPUCB(gamma=2, **common)
        yield rm.DecentralizedMPUCB(gamma=1, cover=[[0, 1], [2, 3]], **common)
        yield rm.CentralizedMPUCB(gamma=2, leaders=[1, 3], **common)


@engines
@pytest.mark.parametrize("seed", range(4))
def test_twice_the_rewards_and_scale_change_nothing(engine: EngineName, seed: int) -> None:
    """A factor of two is exact in floating point; moments of order two grow by four."""
    table, graph = quarters(seed, 40, 4, 3), nx.path_graph(4)
    doubled = rm.Moments(eps=1.0, u=4 * MOMENTS.u, rho=4 * MOMENTS.rho)
    # Bins do not scale, nor does a constant with the unit of a reward.
    scaled = [one for one in ESTIMATORS if not isinstance(one, rm.MedianBound | rm.MRUCB)]
    estimators = [one for one in scaled if played_by(engine, one)]
    for one, two in zip(every_policy(MOMENTS, estimators), every_policy(doubled, estimators), strict=True):
        np.testing.assert_array_equal(
            play(table, graph, one, engine), play(2 * table, graph, two, engine), err_msg=repr(one)
        )


@engines
@pytest.mark.parametrize("seed", range(4))
def test_a_shift_of_all_rewards_changes_nothing(engine: EngineName, seed: int) -> None:
    """For the means that look at differences only; the trimmed mean looks at sizes and does change."""
    table = np.random.default_rng(seed).standard_cauchy((40, 4, 3))
    graph = nx.path_graph(4)
    central: list[rm.Estimator] = [rm.MedianOfMeans(), rm.Catoni(), rm.EmpiricalMean()]
    for policy in every_policy(MOMENTS, central):
        np.testing.assert_array_equal(
            play(table, graph, policy, engine), play(table + 8, graph, policy, engine), err_msg=repr(policy)
        )
    trimmed = rm.RobustUCB(c=0.5, moments=MOMENTS)
    assert (play(table, graph, trimmed, engine) != play(table + 8, graph, trimmed, engine)).any()


@engines
def test_followers_copy_their_leader(engine: EngineName) -> None:
    table = quarters(5, 60, 6, 3)
    policy = rm.CentralizedMPUCB(gamma=5, leaders=[2], c=0.5, moments=MOMENTS)
    actions = play(table, nx.path_graph(6), policy, engine)
    for v in range(6):
        d = abs(v - 2)
        np.testing.assert_array_equal(actions[max(3, d) :, v], actions[max(3, d) - d : 60 - d, 2])


@engines
def test_shared_knowledge_lowers_regret(engine: EngineName) -> None:
    """Not a statistical claim but a sanity check on one fixed game, far from any boundary."""
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.8, loc=loc) for loc in (0.0, 1.0)])
    network = rm.Network.complete(12)
    alone, together = (
        rm.simulate(bandit, network, policy, horizon=300, rng=1, engine=engine).regret[0, -1]
        for policy in (rm.RobustUCB(zeta=0.5), rm.KMPUCB(zeta=0.5))
    )
    assert together < alone / 2


def test_constants_name_the_radius_as_it_was_given() -> None:
    """Either c or zeta, never both: the reports print them."""
    for setting, name, value in (({"c": 0.5}, "c", 0.5), ({"zeta": 0.4}, "zeta", 0.4), ({}, "zeta", 1.0)):
        constants = rm.RobustUCB(**setting).constants(MOMENTS)  # type: ignore[arg-type]
        assert {key: constants[key] for key in ("c", "zeta") if key in constants} == {name: value}
