"""Allowed arms and rankings of k arms: both engines and an independent script take the same actions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import rumormill as rm
from helpers import oracle
from helpers.oracle import World
from helpers.oracle_adapters import Game, actions_in, graph_of, played, rules_of, ties_against_oracle
from rumormill.engine.compiled.reach import build_reach
from rumormill.engine.reference import constraint_of
from rumormill.errors import ContractError, InputError
from rumormill.policies.forgetting import Forget

WORLD = World(seed=oracle.channel_seed(0))
MOMENTS: Any = rm.Moments(eps=0.8, u=3.0, rho=3.0)
MEANS = [0.0, 0.8, 0.4, 0.6]
LIKE: dict[str, Any] = {"gamma": 2, "moments": MOMENTS}
COMPILED: dict[str, Any] = {
    "decentralized": rm.DecentralizedMPUCB(**LIKE),
    "quiet": rm.DecentralizedMPUCB(**LIKE, clique_filter=False, quiet=0.25, zeta=0.3),
    "medians": rm.DecentralizedMPUCB(**LIKE, estimator=rm.MedianOfMeans(), start="shared", zeta=0.3),
    "leaders": rm.CentralizedMPUCB(**LIKE, zeta=0.3),
    "leaders, shared start": rm.CentralizedMPUCB(**LIKE, start="shared", quiet=0.25, zeta=0.3),
    "kmp": rm.KMPUCB(**LIKE, zeta=0.3),
    "kmp, shared start": rm.KMPUCB(**LIKE, start="shared", zeta=0.3),
    "self-tuned": rm.KMPUCB(gamma=2, estimator=rm.SelfTuned(pilot=3, guard=1.0), start="shared"),
    "clipped": rm.KMPUCB(**LIKE, estimator=rm.ClippedMean(), quiet=0.25),
    "alone": rm.RobustUCB(moments=MOMENTS, zeta=0.3),
}
REFERENCE: dict[str, Any] = {
    "default": rm.Default(gamma=2),
    "thompson": rm.ThompsonKMP(gamma=2),
    "epsilon-greedy": rm.EpsilonGreedy(gamma=2, rate=0.3),
    "coop-se": rm.CoopSE(**LIKE, zeta=0.1),
    "dpe2": rm.DPE2(**LIKE, zeta=0.3),
    "alpha-ts": rm.AlphaStableTS(**LIKE, zeta=0.5),
    "dirichlet": rm.RobustDirichlet(gamma=2),
    "adar": rm.AdaRUCB(gamma=2, zeta=0.02),
    "origin median": rm.OriginMedianUCB(**LIKE, zeta=0.3),
    "hub": rm.HTHMUCB(gamma=1, zeta=0.3, moments=MOMENTS),
    "consensus": rm.ConsensusUCB(moments=MOMENTS, zeta=0.3),
    "decentralized ts": rm.DecentralizedTS(moments=MOMENTS, zeta=0.3),
    "forgets": rm.KMPUCB(**LIKE, forget=Forget(window=60), zeta=0.3),
}


def mask_of(rng: np.random.Generator, *shape: int) -> NDArray[np.bool_]:
    """Arms that are allowed, at random; at least one."""
    mask = rng.random(shape) < 0.5
    np.put_along_axis(mask, rng.integers(0, shape[-1], (*shape[:-1], 1)), True, axis=-1)
    return mask


@pytest.mark.parametrize("shape", [(2,), (3, 2), (4, 3, 2)])
def test_masks_of_all_shapes_have_one_kernel(shape: tuple[int, ...]) -> None:
    """Arrays of another order in memory would be another type to the compiler."""
    mask = constraint_of(np.ones(shape, dtype=np.bool_), 1, False, 2, 3, 4).allowed
    assert mask is not None
    assert mask.flags.c_contiguous
    assert mask.flags.writeable


def table_of(rng: np.random.Generator, T: int, M: int) -> NDArray[np.float64]:
    table: NDArray[np.float64] = rng.standard_t(2.5, (T, M, 4)) + np.array(MEANS)
    return table


@pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")
@pytest.mark.parametrize("name", [*COMPILED, *REFERENCE])
def test_allowed_arms_against_the_oracle(name: str) -> None:
    policy, rng = (COMPILED | REFERENCE)[name], np.random.default_rng(5)
    network = rm.Network.path(5)
    for mask in (mask_of(rng, 70, 5, 4), mask_of(rng, 5, 4), np.array([True, False, True, True])):
        table = table_of(rng, 70, 5)
        result = played(table, network, policy, "auto", MEANS, allowed=mask)
        assert result.engine == ("fast" if name in COMPILED else "reference")
        spread = np.broadcast_to(mask, (70, 5, 4))
        assert np.take_along_axis(spread, actions_in(result)[..., None], axis=2).all()
        rules = rules_of(policy, network, rm.Replay(table, means=MEANS))
        if getattr(policy, "forget", None) is not None:
            rules = replace(rules, forget=("window", 60))
        game = Game(table, graph_of(network), replace(rules, allowed=spread), WORLD, MEANS)
        ties_against_oracle(*game[:3], result if name in COMPILED else actions_in(result))


def both_engines(bandit: Any, network: rm.Network, policy: Any, **options: Any) -> rm.Result:
    """The result of the compiled engine, equal to the bit to that of the other one."""
    slow, fast = (
        rm.simulate(bandit, network, policy, engine=engine, actions=True, rewards=True, **options)
        for engine in ("reference", "fast")
    )
    assert (slow.engine, fast.engine) == ("reference", "fast")
    for name in (
        "checkpoints",
        "actions",
        "rewards",
        "agent_regret",
        "messages",
        "wire_bytes",
        "agent_rounds",
    ):
        np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name), name)
    return fast


@pytest.mark.parametrize("name", COMPILED)
@settings(max_examples=8, deadline=None)
@given(st.integers(1, 90), st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32))
def test_both_engines_take_the_same_arms(name: str, T: int, M: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = rm.Network.erdos_renyi(M, 0.5, rng=seed)
    shape = [(T, M, 4), (M, 4), (4,)][seed % 3]
    bandit = rm.Replay(table_of(rng, T, M), means=MEANS)
    mask = mask_of(rng, *shape) if seed % 4 else None
    both_engines(bandit, network, COMPILED[name], horizon=T, rng=seed, allowed=mask, k=k)


@pytest.mark.parametrize(
    "policy", [rm.KMPUCB(), rm.DecentralizedMPUCB(), rm.CentralizedMPUCB(), rm.RobustUCB()]
)
@settings(max_examples=5, deadline=None)
@given(st.integers(2, 6), st.integers(1, 12), st.integers(1, 60), st.data())
def test_plain_defaults_of_ordinary_sizes(policy: Any, K: int, M: int, T: int, data: st.DataObject) -> None:
    k, seed = data.draw(st.integers(1, K)), data.draw(st.integers(0, 2**32))
    bandit = rm.Bandit([rm.StudentT(df=1.8, loc=0.1 * i) for i in range(K)])
    mask = mask_of(np.random.default_rng(seed), T, M, K) if seed % 2 else None
    network = rm.Network.erdos_renyi(M, 0.3, rng=seed)
    both_engines(bandit, network, policy, horizon=T, rng=seed, k=k, allowed=mask, trials=2, checkpoints=3)


@pytest.mark.parametrize(
    ("M", "T", "names"),
    [(14, 40, ("kmp", "quiet", "medians", "leaders", "clipped", "huber")), (66, 8, ("kmp", "quiet"))],
)
def test_several_arms_by_bitmasks_and_by_lists(M: int, T: int, names: tuple[str, ...]) -> None:
    """The first hop has many receivers (bitmasks, of 66 agents two words), the second few (lists)."""
    edges = [(v, w) for v in range(M - 2) for w in range(v) if v < 12 or v - w < 5]
    network = rm.Network([*edges, (M - 3, M - 2), (M - 2, M - 1)])
    reach = build_reach(network, 2, np.arange(M, dtype=np.int32), None)[0]
    assert [hop >= 0 for hop in reach.dense] == [True, M > 64]
    bandit, mask = (
        rm.Bandit([rm.StudentT(df=2.1, loc=mean) for mean in MEANS]),
        mask_of(np.random.default_rng(M), T, M, 4),
    )
    policies = {**COMPILED, "huber": rm.KMPUCB(gamma=2, estimator=rm.HuberSGD())}
    for name in names:
        for k, allowed in ((2, None), (3, mask)):
            both_engines(bandit, network, policies[name], horizon=T, rng=1, k=k, allowed=allowed, block=7)


def test_where_fewer_arms_are_allowed_than_are_tried() -> None:
    """By hand: rounds 2 and 4 allow one arm to agent 0, so it tries one, and sends one message."""
    mask = np.ones((4, 2, 3), dtype=np.bool_)
    mask[[1, 3], 0, 1:] = False
    result = both_engines(
        rm.Bandit([rm.Gaussian(loc=loc) for loc in (0.0, 1.0, 2.0)]),
        rm.Network.path(2),
        rm.KMPUCB(gamma=1),
        horizon=4,
        rng=0,
        k=3,
        allowed=mask,
    )
    assert result.actions is not None
    assert (result.actions[0] >= 0).sum(axis=2).tolist() == [[3, 3], [1, 3], [3, 3], [1, 3]]
    assert result.agent_rounds[0].tolist() == [6, 10, 16, 20] == result.messages[0].tolist()


def test_both_engines_with_a_prior() -> None:
    rng = np.random.default_rng(2)
    table, mask = table_of(rng, 80, 5), mask_of(rng, 80, 5, 4)
    prior: Any = rm.Prior(
        mean=rng.normal(size=(5, 4)), n=np.full((5, 4), 9), spread=np.ones((5, 4)), probe=30
    )
    bandit: Any = rm.Replay(table, means=MEANS)
    for name in ("kmp", "self-tuned", "leaders", "quiet"):
        for k in (1, 2, 4):
            options = {"allowed": mask, "prior": prior, "k": k}
            both_engines(bandit, rm.Network.path(5), COMPILED[name], horizon=80, rng=0, **options)


@pytest.mark.parametrize("seed", range(8))
def test_followers_check_their_prior_when_they_use_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior: Any = rm.Prior(mean=2 * rng.normal(size=(5, 4)), n=np.full((5, 4), 5), probe=30)
    bandit, mask = rm.Bandit([rm.StudentT(df=2.1, loc=mean) for mean in MEANS]), mask_of(rng, 80, 5, 4)
    for quiet in (None, 0.25):
        policy = rm.CentralizedMPUCB(**LIKE, zeta=0.3, quiet=quiet)
        both_engines(bandit, rm.Network.path(5), policy, horizon=80, rng=seed, allowed=mask, prior=prior)


@pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")
@pytest.mark.parametrize("name", ["quiet", "leaders", "kmp", "kmp, shared start", "self-tuned", "thompson"])
@pytest.mark.parametrize("k", [2, 4])
def test_several_arms_against_the_oracle(name: str, k: int) -> None:
    policy, rng, network = (COMPILED | REFERENCE)[name], np.random.default_rng(11), rm.Network.ring(5)
    table, mask = table_of(rng, 60, 5), mask_of(rng, 60, 5, 4)
    rules = rules_of(policy, network, rm.Replay(table, means=MEANS))
    talk = oracle.talk(table, graph_of(network), replace(rules, allowed=mask, k=k), WORLD)
    result = played(table, network, policy, "auto", MEANS, allowed=mask, k=k)
    assert result.engine == ("fast" if name in COMPILED else "reference")
    wanted = np.full((60, 5, k), -1)
    for (t, v), arms in talk.tried.items():
        wanted[t - 1, v, : len(arms)] = arms
    assert result.actions is not None
    np.testing.assert_array_equal(result.actions[0], wanted)
    gaps = np.append(max(MEANS) - np.array(MEANS), 0.0)
    np.testing.assert_allclose(result.agent_regret[0, -1], gaps[wanted].sum(axis=(0, 2)))
    assert result.agent_rounds[0, -1] == (wanted >= 0).sum()
    assert result.messages[0, -1] == talk.post.sent


@pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")
def test_samples_of_the_second_arm_count() -> None:
    """By hand: one agent, two arms; with k = 2 both are known after a round, and each once."""
    table = [[[1.0, 5.0]], [[1.0, 5.0]], [[1.0, 5.0]]]
    policy = rm.DecentralizedMPUCB(gamma=1, estimator=rm.EmpiricalMean(), moments=MOMENTS, zeta=1e-6)
    result = played(np.array(table), rm.Network.path(1), policy, k=2, rewards=True)
    assert result.actions is not None
    assert result.rewards is not None
    assert result.actions[0, :, 0].tolist() == [[0, 1], [1, 0], [1, 0]]
    assert result.rewards[0, :, 0].tolist() == [[1.0, 5.0], [5.0, 1.0], [5.0, 1.0]]


def test_what_is_refused() -> None:
    bandit, ring = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)]), rm.Network.ring(3)
    given: dict[str, Any] = {"horizon": 10, "rng": 1}
    for wrong in ({"k": 3}, {"k": 0}, {"allowed": [True]}, {"allowed": [1, 0]}, {"allowed": [False, False]}):
        with pytest.raises(InputError):
            rm.simulate(bandit, ring, "kmp", **given, **wrong)
    for other, options, reason in (
        ("consensus", {"k": 2}, "supports allowed and k only for message passing by index without faults"),
        ("kmp", {"k": 2, "channel": rm.Imperfect(p=0.5)}, "by index without faults"),
        (rm.KMPUCB(guard=1), {"allowed": [True, False]}, "a guard with allowed or k"),
        (rm.DecentralizedMPUCB(hold=2), {"k": 2}, "hold, discard or forget with allowed or k"),
        ("kmp", {"propensities": True}, "records no propensities"),
    ):
        with pytest.raises(InputError, match=reason):
            rm.simulate(bandit, ring, other, **given, **options, engine="fast")
    with pytest.raises(ContractError, match="no rank"), pytest.warns(rm.SlowEngineNotice):
        rm.simulate(bandit, ring, "dducb", **given, allowed=[True, False])


@pytest.mark.filterwarnings("ignore:.*reference engine")
def test_a_liar_passes_on_all_that_one_agent_tried() -> None:
    """A path with a liar in the middle: the ends send 2 each and the liar 1 to both, and from round 2 on the
    liar passes on 4 to both, the ends the liar's."""
    bandit = rm.Bandit([rm.Gaussian(loc=mean) for mean in MEANS])
    liar = rm.Byzantine(agents=(1,))
    size: dict[str, Any] = {"horizon": 10, "rng": 1, "k": 2, "byzantine": liar}
    result = rm.simulate(bandit, rm.Network.path(3), rm.DecentralizedMPUCB(**LIKE), **size)
    assert result.messages[0, -1] == 10 * 6 + 9 * (2 * 4 + 2)
