"""In lock step over a perfect network live nodes take the simulator's actions, round for round."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.lockstep import Lockstep, RoundNode
from helpers.oracle import channel_seed
from live.making import GAME, node_config
from rumormill.counter_rng import THOMPSON, key_of, key_with
from rumormill.engine.reference import BLOCK
from rumormill.live.core import records
from rumormill.live.core.game import Refused
from rumormill.live.core.node import Node
from rumormill.live.core.records import Drawn, DrawnOwn, ScaledOwn, ShiftedOwn
from rumormill.live.core.signatures import BEGIN
from rumormill.seeds import Role, root_seed, stream_seed

HORIZON = 130
POLICIES: dict[str, Any] = {
    "clique filter": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma),
    "everybody": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False),
    "anytime": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False, confidence="anytime"),
    "independent leaders": lambda gamma: rm.CentralizedMPUCB(gamma=gamma),
    "dominating leaders": lambda gamma: rm.CentralizedMPUCB(gamma=gamma, leaders="dominating"),
    "kmp": lambda gamma: rm.KMPUCB(gamma=gamma),
    "median of means": lambda gamma: rm.KMPUCB(gamma=gamma, estimator=rm.MedianOfMeans()),
    "alone": lambda gamma: rm.RobustUCB(),
}
# What is quiet, needs no moments, or begins otherwise; on one budget, for the rest is the same.
SPECIAL: dict[str, Any] = {
    "quiet": rm.DecentralizedMPUCB(gamma=2, clique_filter=False, quiet=0.25),
    "quiet followers": rm.CentralizedMPUCB(gamma=2, quiet=0.25),
    "quiet rows": rm.KMPUCB(gamma=2, quiet=0.0),
    "self-tuned": rm.DecentralizedMPUCB(gamma=2, clique_filter=False, estimator=rm.SelfTuned()),
    "clipped": rm.KMPUCB(gamma=2, estimator=rm.ClippedMean()),
    "origin median": rm.OriginMedianUCB(gamma=2),
    "bucket median": rm.KMPUCB(gamma=2, estimator=rm.BucketMedian()),
    "window": rm.KMPUCB(gamma=2, forget={"window": 120}),  # type: ignore[arg-type]
    "discount": rm.KMPUCB(gamma=2, estimator=rm.ClippedMean(), forget={"discount": 0.99}),  # type: ignore[arg-type]
    "restart": rm.DecentralizedMPUCB(gamma=2, clique_filter=False, forget="restart"),
    "shared start": rm.DecentralizedMPUCB(gamma=2, start="shared"),
    "all of it": rm.KMPUCB(gamma=2, estimator=rm.SelfTuned(), start="shared", quiet=0.25),
}
NETWORKS = {
    "random": lambda: rm.Network.erdos_renyi(9, 0.35, rng=4),
    "ring": lambda: rm.Network.ring(7),
    "tree": lambda: rm.Network.barabasi_albert(8, 1, rng=2),
}


def bandit() -> rm.Bandit:
    return rm.Bandit([rm.AlphaStable(alpha=1.8, loc=loc) for loc in (0.2, 0.9, 0.5, 0.7)])


def by_the_simulator(policy: Any, network: rm.Network, seed: int, **given: Any) -> Any:
    result = rm.simulate(
        bandit(), network, policy, horizon=HORIZON, rng=seed, engine="reference", actions=True, **given
    )
    assert result.actions is not None
    return result.actions[0]


def by_nodes(
    policy: Any,
    network: rm.Network,
    seed: int,
    *,
    prior: rm.Prior | None = None,
    allowed: Any = None,
    k: int = 1,
) -> Any:
    return in_lock_step(policy, network, seed, prior=prior, allowed=allowed, k=k)[0]


def in_lock_step(
    policy: Any, network: rm.Network, seed: int, *, allowed: Any = None, k: int = 1, **more: Any
) -> tuple[Any, list[RoundNode], Lockstep]:
    """The actions of nodes, the nodes, and the game with their journals."""
    source = bandit()
    stream_of = stream_seed(stream_seed(root_seed(seed), 0), Role.REWARDS)
    rewards = source.stream(stream_of, network.n_agents, HORIZON)
    draws = np.concatenate(
        [rewards.block(start, min(start + BLOCK, HORIZON)) for start in range(0, HORIZON, BLOCK)]
    )

    def pay(v: int, t: int, arm: int) -> float:
        draw = draws[t - 1, v, 0 if rewards.shared else arm]
        return float(rewards.loc[arm] + rewards.scale[arm] * draw)

    neighbours = {v: network.neighbours(v).tolist() for v in range(network.n_agents)}
    given: Any = {"n_arms": source.n_arms, "moments": source.moments(), **more}
    nodes = [RoundNode(node_config(policy, network, v, **given)) for v in range(network.n_agents)]
    game = Lockstep(nodes, neighbours, GAME)

    def limits(v: int, t: int) -> tuple[list[int] | None, int]:
        return None if allowed is None else np.flatnonzero(allowed[t - 1, v]).tolist(), k

    played = np.full((HORIZON, network.n_agents, k), -1)
    for t in range(1, HORIZON + 1):
        for v, arms in enumerate(game.play_round(t, pay, limits)):
            played[t - 1, v, : len(arms)] = arms
    return (played[:, :, 0] if k == 1 else played), nodes, game


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_simulators_actions(policy: str, network: str, gamma: int) -> None:
    made, on = POLICIES[policy](gamma), NETWORKS[network]()
    seed = 10 * gamma + len(network)
    assert np.array_equal(by_the_simulator(made, on, seed), by_nodes(made, on, seed))


@pytest.mark.parametrize("network", ["random", "tree"])
@pytest.mark.parametrize("policy", SPECIAL)
def test_the_simulators_actions_of_special_policies(policy: str, network: str) -> None:
    made, on = SPECIAL[policy], NETWORKS[network]()
    assert np.array_equal(by_the_simulator(made, on, 7), by_nodes(made, on, 7))


@pytest.mark.parametrize("policy", ["quiet", "self-tuned", "clipped", "all of it"])
def test_the_simulators_actions_with_a_prior(policy: str) -> None:
    made, on = SPECIAL[policy], NETWORKS["random"]()
    rng = np.random.default_rng(3)
    mean = rng.normal(0.5, 1.0, size=(on.n_agents, 4))
    prior = rm.Prior(mean=mean, n=np.full(mean.shape, 20), spread=np.ones(mean.shape), probe=40)
    wanted = by_the_simulator(made, on, 7, prior=prior)
    assert np.array_equal(wanted, by_nodes(made, on, 7, prior=prior))
    assert not np.array_equal(wanted, by_the_simulator(made, on, 7))


@pytest.mark.parametrize("propensities", [False, True])
@pytest.mark.parametrize("levels", ["offsets", "scales", "both"])
@pytest.mark.parametrize("policy", ["clipped", "self-tuned", "quiet followers"])
def test_the_simulators_actions_with_offsets_and_scales(policy: str, levels: str, propensities: bool) -> None:
    """Records have rewards as they came; a replay has the same state, whatever the levels are by then."""
    made, on = SPECIAL[policy], NETWORKS["random"]()
    far = np.random.default_rng(8).normal(0.0, 2.0, on.n_agents).tolist()
    given: Any = {"offsets": far, "scales": [0.3 + abs(each) for each in far]}
    given = {name: values for name, values in given.items() if levels in (name, "both")}
    wanted = by_the_simulator(made, on, 7, **given)
    found, nodes, game = in_lock_step(made, on, 7, propensities=propensities, **given)
    assert np.array_equal(wanted, found)
    assert not np.array_equal(wanted, by_the_simulator(made, on, 7))
    paid = rm.simulate(bandit(), on, made, horizon=HORIZON, rng=7, rewards=True, **given).rewards
    assert paid is not None
    kind = ShiftedOwn if levels == "offsets" else ScaledOwn
    for v, (node, journal) in enumerate(zip(nodes, game.journals, strict=True)):
        own = [each for each in journal if type(each) is kind]
        assert [each.reward for each in own] == paid[0, :, v].tolist()
        assert [records.propensity_of(each) for each in own] == [1.0 if propensities else None] * HORIZON
        (config,) = node.config.games
        later = dataclasses.replace(node.config, games=(dataclasses.replace(config, offset=99.0, scale=7.0),))
        again = Node(later)
        again.restart(None, [records.decode(records.encode(each)) for each in journal])
        before, now = node.games[GAME], again.games[GAME]
        assert now.differing == 0
        items = [each.own.retained.between(1, HORIZON) for each in (before, now)]
        assert items[0] == items[1]
        assert len(items[0]) == HORIZON or "quiet" in policy
        assert now.adapter.state() == before.adapter.state()


@pytest.mark.parametrize("levels", [{"offsets": [-1e100, 0.0, 0.0]}, {"scales": [1e-9, 1.0, 1.0]}])
def test_a_reward_beyond_all_measure_as_taken_in_is_refused(levels: Any) -> None:
    node = Node(node_config(SPECIAL["clipped"], rm.Network.ring(3), 0, **levels))
    node.start()
    node.committed(node.records)
    token = node.choose(GAME, 0.0, 60.0)
    with pytest.raises(Refused, match="not a finite number of at most"):
        node.observe(GAME, token.t, token.arm, 1e100)
    node.observe(GAME, token.t, token.arm, -1.0)


def test_signatures_are_over_what_was_published() -> None:
    """A game that was removed, or began anew, goes on behind the same digest."""
    node = Node(node_config(SPECIAL["clipped"], rm.Network.ring(3), 0, offsets=[0.1, 0.0, 0.0], signed=True))
    node.start()
    journal = node.take_journal()
    node.committed(node.records)
    for t in range(1, 4):
        node.observe(GAME, t, node.choose(GAME, float(t), 60.0).arm, 1.0 / t)
    journal += node.take_journal()
    (config,) = node.config.games
    removed = records.RemovedGame(digest=BEGIN)
    for each in journal:
        removed.replay(each)
    renamed = dataclasses.replace(config, fingerprint="another")
    games = [Node(dataclasses.replace(node.config, games=(each,))) for each in (config, renamed)]
    for game in games:
        game.restart(None, journal)
    chain = node.games[GAME].own.chain
    assert chain is not None
    assert [removed.digest, *(game.games[GAME].numbers[2] for game in games)] == [chain.digest] * 3


class InTrial:
    """A policy whose agents draw as in the first trial of a seed: a node by itself draws with seed 0."""

    def __init__(self, policy: Any, seed: int) -> None:
        self.policy, self.agent, self.seed = policy, policy.agent, seed

    def plan(self, network: rm.Network) -> InTrial:
        self.made = self.policy.plan(network)
        return self

    def part(self, v: int) -> Any:
        draws = key_with(key_of(channel_seed(self.seed), THOMPSON), v)
        return dataclasses.replace(self.made.part(v), draws=draws)

    def __repr__(self) -> str:
        return repr(self.policy)


FAMILIES = pytest.mark.parametrize(
    "policy",
    [
        rm.EpsilonGreedy(gamma=2, rate=0.3),
        rm.Default(gamma=2),
        rm.ThompsonKMP(gamma=2),
        rm.CoopSE(gamma=2, zeta=0.1),
        rm.AdaRUCB(gamma=2, zeta=0.02),
        rm.RMMUCB(gamma=2, resamples=9),
        rm.DPE2(gamma=2, zeta=0.3),
        rm.AlphaStableTS(gamma=2),
        rm.KLInfUCB(gamma=2),
    ],
    ids=lambda policy: policy.label,
)


@FAMILIES
def test_the_simulators_actions_of_other_families(policy: Any) -> None:
    on = NETWORKS["random"]()
    assert np.array_equal(by_the_simulator(policy, on, 7), by_nodes(InTrial(policy, 7), on, 7))


@pytest.mark.parametrize("constrained", [False, True])
@FAMILIES
def test_the_simulators_propensities(policy: Any, constrained: bool) -> None:
    """To the bit, in the records of decisions and of rewards; a replay has the same state."""
    on = NETWORKS["random"]()
    given: Any = {"allowed": allowed_arms(on.n_agents), "k": 1} if constrained else {}
    if constrained and policy.label == "Thompson KMP":
        given["k"] = 2
    wanted = rm.simulate(
        *(bandit(), on, policy), horizon=HORIZON, rng=7, engine="reference", propensities=True, **given
    ).propensities
    assert wanted is not None
    _, nodes, game = in_lock_step(InTrial(policy, 7), on, 7, propensities=True, **given)
    for v, (node, journal) in enumerate(zip(nodes, game.journals, strict=True)):
        drawn = [each.propensity for each in journal if isinstance(each, Drawn)]
        assert drawn == wanted[0, :, v].tolist()
        assert [each.propensity for each in journal if isinstance(each, DrawnOwn)] == drawn
        again = Node(node.config)
        again.restart(None, [records.decode(records.encode(each)) for each in journal])
        assert again.games[GAME].differing == 0
    if policy.label in ("Thompson KMP", "ε-greedy", "Default"):
        assert len(np.unique(wanted)) > 2


def allowed_arms(n_agents: int) -> Any:
    rng = np.random.default_rng(6)
    mask = rng.random((HORIZON, n_agents, 4)) < 0.5
    np.put_along_axis(mask, rng.integers(0, 4, (HORIZON, n_agents, 1)), True, axis=2)
    return mask


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("policy", ["quiet", "quiet followers", "clipped", "origin median", "all of it"])
def test_the_simulators_actions_under_constraints(policy: str, k: int) -> None:
    made, on = SPECIAL[policy], NETWORKS["random"]()
    given: Any = {"allowed": allowed_arms(on.n_agents), "k": k}
    assert np.array_equal(by_the_simulator(made, on, 7, **given), by_nodes(made, on, 7, **given))


@FAMILIES
def test_the_simulators_actions_of_other_families_under_constraints(policy: Any) -> None:
    on = NETWORKS["random"]()
    given: Any = {"allowed": allowed_arms(on.n_agents), "k": 1}
    assert np.array_equal(
        by_the_simulator(policy, on, 7, **given), by_nodes(InTrial(policy, 7), on, 7, **given)
    )
