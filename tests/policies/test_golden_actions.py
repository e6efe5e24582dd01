"""Action tables worked out from the rules, not by the code under test. Decisive rounds are explained."""

import networkx as nx
import numpy as np
import pytest

import oracle
import rumormill as rm
from oracle import Rules

PATH = nx.path_graph(3)
STAR = nx.star_graph(3)  # agent 0 in the middle
MOMENTS = {"eps": 0.8, "u": 3.0, "rho": 3.0}
RM_MOMENTS = rm.Moments(**MOMENTS)

# Per round and agent: the reward of arm 0, of arm 1.
PATH_TABLE = [
    [[1.0, 0.5], [0.0, 2.0], [0.5, 0.5]],
    [[1.0, 1.0], [1.0, 1.5], [0.5, 1.0]],
    [[0.5, 2.0], [1.0, 0.5], [4.0, 1.0]],
    [[0.0, 1.5], [2.0, 1.0], [0.5, 0.5]],
    [[1.0, 0.5], [1.0, 3.0], [1.0, -1.0]],
    [[2.0, 1.0], [0.5, 1.0], [0.5, 1.5]],
    [[1.0, -3.0], [1.0, 1.0], [2.0, 0.5]],
    [[0.5, 1.0], [1.5, 1.0], [1.0, 2.0]],
    [[1.0, 1.0], [0.0, 1.5], [0.5, 0.5]],
    [[1.5, 0.5], [1.0, 0.5], [1.0, 1.0]],
]

STAR_TABLE = [
    [[-0.25, 0.0, 1.0], [0.0, 0.25, 0.0], [0.5, 0.25, 0.5], [0.0, 0.25, 0.5]],
    [[-0.25, -0.25, 1.25], [-0.5, 2.0, 0.0], [-0.75, 5.75, 1.0], [0.0, -0.25, 2.5]],
    [[-0.25, 0.25, 0.75], [0.5, 0.75, -1.75], [0.25, 0.25, 1.0], [0.25, 0.5, 0.0]],
    [[-1.5, -2.5, 0.25], [-1.0, 0.75, 0.0], [1.0, 1.0, -1.75], [0.0, 0.5, -1.5]],
    [[0.0, 0.5, -1.0], [0.25, 0.0, -5.25], [0.0, 0.25, 1.0], [0.5, 0.75, 0.5]],
    [[-0.75, 2.0, 0.5], [-0.25, -1.75, 3.25], [0.75, 0.0, 1.0], [0.75, -5.75, -1.75]],
    [[-1.75, -4.25, 0.5], [-0.75, 0.25, 0.25], [-0.5, -0.5, 1.25], [-0.25, 0.75, 1.5]],
    [[-0.75, -0.75, 1.25], [-0.25, 2.5, 0.25], [0.25, -0.25, 0.5], [-7.0, 0.75, 0.25]],
    [[0.0, 0.0, 1.0], [0.0, -1.0, 0.25], [-0.25, -1.75, 0.25], [-1.25, 0.25, 5.0]],
    [[-1.25, 0.25, 0.75], [0.0, -0.25, -1.5], [-0.25, 0.0, 0.5], [0.5, -0.25, 1.0]],
    [[-0.5, -2.25, 0.75], [0.5, 0.5, 5.5], [-0.75, 6.0, 1.5], [0.0, 1.0, 1.0]],
    [[-1.25, 0.75, 0.25], [1.0, 1.25, 0.5], [1.5, -2.5, 4.0], [0.25, 0.5, 0.25]],
    [[1.5, 0.0, 1.0], [-1.25, 0.75, 3.25], [-0.75, 0.5, 4.5], [0.5, 0.25, -0.25]],
    [[0.0, 4.5, 1.5], [0.25, -0.5, -0.25], [-1.0, 3.0, 3.25], [0.75, 0.5, 3.0]],
]

# Each case: graph, rewards, the oracle's rules, the package's policy, the actions agent by agent.
CASES = {
    # Round 3, L = 2 ln 3 = 2.197, p = 1.8. A sample x of rank i stays iff |x|^1.8 * 2.197 <= 3 i.
    #   Agent 0 has arm 0: [1, 0], arm 1: [1, 1.5]. 1.5^1.8 * 2.197 = 4.56 <= 6 (rank 2): all stay.
    #     Means 0.5 and 1.25 at equal counts: arm 1.
    #   Agent 1 has the same samples in another order, its own first. Arm 1: [1.5, 1], and 4.56 > 3 (rank 1):
    #     1.5 is out but still counts. Means 0.5 and (0 + 1)/2 = 0.5: a tie, so the lower arm 0.
    #   Agent 2 is alone in its clique, hence sees only 0.5 and 1: arm 1.
    "path, decentralized with the clique filter": (
        PATH,
        PATH_TABLE,
        Rules("decentralized", gamma=2, cover=[[0, 1], [2]], **MOMENTS),
        rm.DecentralizedMPUCB(
            gamma=2,
            clique_filter=True,
            cover=[[0, 1], [2]],
            estimator=rm.TrimmedMean(),
            c=1.0,
            moments=RM_MOMENTS,
        ),
        [[0, 1, 1, 1, 0, 1, 1, 0, 0, 1], [0, 1, 0, 0, 0, 1, 1, 0, 0, 1], [0, 1, 1, 0, 0, 1, 1, 0, 0, 0]],
    ),
    # Round 3: agent 1 now also heard agent 2: arm 0 [0, 1, 0.5], arm 1 [1.5 (out), 1, 1]; 0.5 < 2/3: arm 1.
    #   Agent 2 heard of agent 0 (two hops) only round 1: arm 0 [0.5, 0, 1] with 3 samples,
    #   arm 1 [1, 1.5] with 2: mean 1.25 against 0.5 and the larger radius: arm 1.
    "path, decentralized": (
        PATH,
        PATH_TABLE,
        Rules("decentralized", gamma=2, **MOMENTS),
        rm.DecentralizedMPUCB(
            gamma=2, clique_filter=False, estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS
        ),
        [[0, 1, 1, 0, 0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 0, 1, 1, 1, 0, 1], [0, 1, 1, 1, 0, 1, 1, 0, 1, 1]],
    ),
    # From round K + 1 = 3 on, agent 1 repeats agent 0 one round later, agent 2 two rounds later
    # (t > d holds for both): shifted copies of the leader's row.
    "path, centralized": (
        PATH,
        PATH_TABLE,
        Rules("centralized", gamma=2, leaders=(0,), **MOMENTS),
        rm.CentralizedMPUCB(gamma=2, leaders=[0], estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS),
        [[0, 1, 1, 0, 1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 1, 1, 0, 0, 0], [0, 1, 0, 1, 1, 0, 1, 1, 0, 0]],
    ),
    "path, KMP": (
        PATH,
        PATH_TABLE,
        Rules("kmp", gamma=2, **MOMENTS),
        rm.KMPUCB(gamma=2, estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS),
        [[0, 1, 1, 0, 0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 0, 1, 1, 1, 0, 1], [0, 1, 1, 1, 0, 1, 1, 0, 1, 1]],
    ),
    # d_max = 2, kappa = 2/3: P = [[2, 1, 0], [1, 1, 1], [0, 1, 2]] / 3 with eigenvalues 1, 2/3, 0.
    #   Round 3, all n = 1: arm 0 was mixed twice, P P (1, 0, 1/2) = (0.611, 0.5, 0.389);
    #   arm 1 once, P (1, 1.5, 1) = (7/6, 7/6, 7/6): arm 1 for everyone.
    "path, consensus": (
        PATH,
        PATH_TABLE,
        Rules("consensus", **MOMENTS),
        rm.ConsensusUCB(moments=RM_MOMENTS),
        [[0, 1, 1, 0, 1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0, 1, 0, 0, 1]],
    ),
    # Round 3: agent 0 has 1 and 1, a tie: arm 0. Agent 1 has 0 and 1.5, which is trimmed (4.56 > 3) to 0:
    #   a tie, arm 0. Agent 2 has 0.5 and 1: arm 1.
    "path, robust": (
        PATH,
        PATH_TABLE,
        Rules("robust", **MOMENTS),
        rm.RobustUCB(estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS),
        [[0, 1, 0, 1, 0, 0, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 1, 0, 0, 0]],
    ),
    "star, decentralized with the clique filter": (
        STAR,
        STAR_TABLE,
        Rules("decentralized", gamma=1, cover=[[0, 2], [1], [3]], c=0.5, **MOMENTS),
        rm.DecentralizedMPUCB(gamma=1, cover=[[0, 2], [1], [3]], c=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 0, 1, 0, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 0, 1, 2, 1, 2, 1, 2, 0, 0, 0, 1],
            [0, 1, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 1, 2],
            [0, 1, 2, 0, 2, 1, 2, 2, 0, 1, 2, 2, 2, 1],
        ],
    ),
    # Round 5, agent 1, L = 3.219. Arm 0: [0, -0.25], mean -0.125. Arm 1: [2 (out: 11.2 > 3), -0.25], -0.125.
    #   Arm 2: [-1.75 (out), 0.75, 0, 0.25], mean 0.25. Radius 3^(1/1.8) (0.5 L/n)^(0.8/1.8): 1.671 at n = 2,
    #   1.228 at n = 4. Indices 1.546, 1.546, 1.478: arm 0.
    "star, decentralized": (
        STAR,
        STAR_TABLE,
        Rules("decentralized", gamma=1, c=0.5, **MOMENTS),
        rm.DecentralizedMPUCB(gamma=1, clique_filter=False, c=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 0, 1, 0, 1, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 0, 1, 2, 2, 2, 2, 2, 1, 1, 1],
            [0, 1, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 0, 1, 0, 1, 2, 2, 2, 2, 2, 2],
        ],
    ),
    # The leader is a leaf: agent 0 repeats it after one round, the other leaves after two.
    "star, centralized": (
        STAR,
        STAR_TABLE,
        Rules("centralized", gamma=2, leaders=(1,), c=0.5, **MOMENTS),
        rm.CentralizedMPUCB(gamma=2, leaders=[1], c=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 2, 0, 1, 1, 1, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 0, 1, 1, 1, 2, 2, 2, 2, 2],
            [0, 1, 2, 1, 2, 2, 2, 0, 1, 1, 1, 2, 2, 2],
            [0, 1, 2, 1, 2, 2, 2, 0, 1, 1, 1, 2, 2, 2],
        ],
    ),
    # Round 5, agent 1: same samples as without rows (above), but the message that agent 0 made in round 4
    #   brings its rows of that decision: four samples an arm, means 0.0625 (arm 0), -0.125 (arm 1: 2 and 5.75
    #   are out), and these replace its own two samples. For arm 2 its own four samples tie with the row's
    #   four: its own 0.25 stays. All counts are 4, so the means decide: arm 2 ("decentralized" took arm 0).
    "star, KMP": (
        STAR,
        STAR_TABLE,
        Rules("kmp", gamma=1, c=0.5, **MOMENTS),
        rm.KMPUCB(gamma=1, c=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 0, 1, 1, 1, 0, 0, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 0, 1, 1, 1, 0, 0, 2, 2, 2],
            [0, 1, 2, 2, 0, 0, 1, 0, 1, 0, 0, 2, 2, 2],
            [0, 1, 2, 2, 0, 0, 1, 1, 1, 0, 0, 2, 2, 2],
        ],
    ),
    # The star has a repeated eigenvalue, so the per-agent constant is given, not computed.
    "star, consensus": (
        STAR,
        STAR_TABLE,
        Rules("consensus", eps_v=1.0, **MOMENTS),
        rm.ConsensusUCB(epsilon=1.0, moments=RM_MOMENTS),
        [
            [0, 1, 2, 1, 0, 2, 1, 2, 0, 2, 1, 1, 0, 2],
            [0, 1, 2, 1, 0, 2, 2, 0, 1, 2, 0, 2, 0, 1],
            [0, 1, 2, 1, 2, 0, 1, 2, 0, 2, 1, 1, 0, 2],
            [0, 1, 2, 1, 2, 0, 1, 2, 0, 2, 1, 2, 0, 1],
        ],
    ),
    "star, robust": (
        STAR,
        STAR_TABLE,
        Rules("robust", c=0.5, **MOMENTS),
        rm.RobustUCB(estimator=rm.TrimmedMean(), c=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 0, 1, 1, 2, 2, 2, 2, 0, 2],
            [0, 1, 2, 0, 1, 2, 1, 2, 1, 2, 0, 0, 0, 1],
            [0, 1, 2, 2, 0, 1, 0, 1, 2, 2, 0, 2, 1, 1],
            [0, 1, 2, 0, 2, 1, 2, 2, 0, 1, 2, 2, 2, 1],
        ],
    ),
    # Round 4, agent 1 has 0, 2, -1.75, one sample each: equal radii, nothing is trimmed: arm 1.
    "star, robust by median of means": (
        STAR,
        STAR_TABLE,
        Rules("robust", estimator="median", zeta=0.5, **MOMENTS),
        rm.RobustUCB(estimator=rm.MedianOfMeans(), zeta=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1],
            [0, 1, 2, 1, 1, 1, 2, 1, 1, 2, 0, 2, 2, 2],
            [0, 1, 2, 0, 2, 2, 1, 1, 1, 1, 0, 1, 0, 0],
        ],
    ),
    "star, robust by the plain mean": (
        STAR,
        STAR_TABLE,
        Rules("robust", estimator="empirical", **MOMENTS),
        rm.RobustUCB(estimator=rm.EmpiricalMean(), c=1.0, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 0, 1, 1, 2, 2, 2, 2, 0, 2, 2],
            [0, 1, 2, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0],
            [0, 1, 2, 1, 1, 1, 2, 0, 2, 1, 1, 1, 0, 2],
            [0, 1, 2, 0, 2, 1, 2, 2, 0, 2, 2, 2, 2, 2],
        ],
    ),
    "star, robust by Catoni": (
        STAR,
        STAR_TABLE,
        Rules("robust", estimator="catoni", c=0.25, **MOMENTS),
        rm.RobustUCB(estimator=rm.Catoni(), c=0.25, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1],
            [0, 1, 2, 1, 1, 1, 2, 2, 1, 0, 2, 2, 2, 2],
            [0, 1, 2, 0, 2, 2, 1, 1, 1, 0, 1, 1, 1, 0],
        ],
    ),
    # theory: a radius of four times m^(1/p) (L/n)^(eps/p), with L = ln 4 + 3 ln t.
    "star, theory constants at the anytime level": (
        STAR,
        STAR_TABLE,
        Rules("decentralized", gamma=2, c="theory", schedule="anytime", **MOMENTS),
        rm.DecentralizedMPUCB(
            gamma=2, clique_filter=False, c="theory", confidence="anytime", moments=RM_MOMENTS
        ),
        [
            [0, 1, 2, 2, 0, 1, 0, 2, 0, 1, 2, 1, 0, 0],
            [0, 1, 2, 2, 0, 1, 1, 2, 0, 1, 2, 1, 1, 2],
            [0, 1, 2, 2, 0, 1, 1, 2, 0, 0, 2, 1, 1, 0],
            [0, 1, 2, 2, 0, 1, 1, 2, 0, 2, 2, 2, 1, 2],
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reference_engine_reproduces_the_table(name):
    G, table, _, policy, expected = CASES[name]
    table = np.array(table)
    T, M, K = table.shape
    mu = np.linspace(0, 1, K)
    actions = rm.simulate(
        rm.Replay(table, means=mu),
        rm.Network(G),
        policy,
        horizon=T,
        trials=1,
        rng=0,
        engine="reference",
        actions=True,
    ).actions[0]
    assert actions.shape == (T, M)
    assert np.issubdtype(actions.dtype, np.integer)
    assert actions.T.tolist() == expected


@pytest.mark.parametrize("name", CASES)
def test_fast_engine_reproduces_the_table(name):
    G, table, _, policy, expected = CASES[name]
    result = rm.simulate(
        rm.Replay(table),
        rm.Network(G),
        policy,
        horizon=len(table),
        trials=1,
        rng=0,
        engine="fast",
        actions=True,
    )
    assert result.actions[0].T.tolist() == expected


@pytest.mark.parametrize("name", CASES)
def test_oracle_reproduces_the_table(name):
    G, table, rules, _, expected = CASES[name]
    assert oracle.play(table, G, rules).T.tolist() == expected


def test_the_constant_of_consensus_on_the_path():
    # u_1 = (1,1,1)/sqrt 3, u_2 = (1,0,-1)/sqrt 2 with eigenvalues 1, 2/3; the third is 0 and adds nothing.
    # (p, j) = (1, 2): 3 * 2 * (1/sqrt 6)^2 = 1 at both ends; (2, 2): 3 * (4/9)/(5/9) * 1 * 1/2 = 1.2.
    _, eps_v = oracle.consensus_parts(PATH, Rules("consensus"))
    np.testing.assert_allclose(eps_v, [2.2, 0, 2.2], atol=1e-12)
    given = rm.ConsensusUCB(moments=RM_MOMENTS, epsilon=[2.2, 0.0, 2.2])
    computed = rm.ConsensusUCB(moments=RM_MOMENTS)
    a, b = (
        rm.simulate(
            rm.Replay(PATH_TABLE), rm.Network(PATH), p, horizon=10, trials=1, rng=0, actions=True
        ).actions
        for p in (given, computed)
    )
    np.testing.assert_array_equal(a, b)


def test_regret_is_counted_from_the_means():
    G, table, _, policy, expected = CASES["path, robust"]
    result = rm.simulate(
        rm.Replay(table, means=[0.25, 1.0]),
        rm.Network(G),
        policy,
        horizon=10,
        trials=1,
        rng=0,
        engine="reference",
        checkpoints=range(1, 11),
    )
    # Arm 0 costs 0.75, arm 1 nothing, whatever was paid out.
    lost = 0.75 * (1 - np.array(expected).T)
    np.testing.assert_allclose(result.regret[0], lost.sum(1).cumsum(), rtol=1e-14)
