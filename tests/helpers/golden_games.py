"""Games whose actions were worked out from the rules, not by the code under test; decisive rounds told."""

from typing import Any, NamedTuple

import networkx as nx

import rumormill as rm
from helpers.oracle import Rules

PATH = nx.path_graph(3)
STAR = nx.star_graph(3)  # agent 0 in the middle
LINE = nx.path_graph(5)
MOMENTS: dict[str, Any] = {"eps": 0.8, "u": 3.0, "rho": 3.0}
RM_MOMENTS = rm.Moments(eps=0.8, u=3.0, rho=3.0)

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

# Ties and tails for a longer path, where samples of up to four rounds arrive together.
LINE_TABLE = [
    [[1.5, 0.5, -1.25], [1.25, 0.75, 2.5], [0.25, 0.0, 1.0], [-1.5, -0.75, 1.0], [0.0, 0.5, 1.25]],
    [[0.25, 0.75, 0.0], [0.0, 1.25, 1.0], [0.25, 0.0, 1.25], [0.75, 1.25, 0.25], [1.25, 0.75, 0.75]],
    [[0.25, 1.25, 3.25], [2.75, 0.75, 1.0], [3.0, -7.0, 1.75], [-3.5, -0.5, 1.0], [0.25, 1.25, 0.5]],
    [[-1.25, 1.0, 0.75], [-4.0, 0.0, 1.5], [1.75, -4.5, 1.25], [-0.25, -0.75, 1.0], [0.25, 0.0, 0.25]],
    [[0.25, 1.0, -3.75], [5.0, 0.75, 0.75], [-0.75, -1.0, 0.75], [0.0, 2.75, 1.0], [0.0, 1.0, 0.25]],
    [[-2.75, 1.0, -1.25], [0.0, 0.5, 0.5], [2.5, 0.25, 3.75], [-0.5, 1.0, 0.75], [0.0, -7.0, 2.25]],
    [[0.5, 1.0, 2.0], [0.25, 3.25, 0.75], [-0.5, 1.0, 1.75], [0.25, -3.25, 0.25], [-1.25, 0.25, 2.25]],
    [[0.75, 0.75, 3.75], [0.25, 1.0, 1.75], [-1.0, 0.25, 0.75], [0.5, -1.0, -7.0], [0.25, 1.25, 0.25]],
    [[0.25, 1.5, 1.75], [-0.75, 0.25, 0.25], [0.0, 1.0, 1.25], [2.0, 1.5, 0.75], [-7.0, -1.5, 0.75]],
    [[-7.0, 0.25, 2.25], [0.75, 0.5, 1.0], [-1.0, 0.25, 0.75], [3.0, 1.0, 2.5], [0.5, 1.0, 1.25]],
    [[0.5, 1.75, 0.75], [-0.5, 1.5, 1.5], [-0.75, -0.25, 0.25], [-0.25, -4.5, -0.5], [0.0, -0.5, 1.25]],
    [[-0.5, 0.25, 1.5], [-0.5, 1.5, 0.75], [0.0, -4.25, 0.75], [0.0, 0.0, 0.75], [0.25, 0.25, 0.75]],
    [[-0.25, 0.5, 1.25], [-0.5, 1.25, 0.0], [1.25, 1.5, 0.5], [-1.25, 0.0, 0.25], [-0.25, 1.0, 1.5]],
    [[0.5, 1.5, 2.75], [0.25, 1.25, 1.25], [0.5, 0.25, 1.5], [-0.25, 0.75, 1.5], [-0.25, 1.5, 1.0]],
]

# Four rounds in which the order of arrival decides: see "path, cause before effect".
CAUSE_TABLE = [
    [[0.5, 9.0], [0.5, 9.0], [0.5, 9.0]],
    [[9.0, 2.5], [9.0, 1.0], [9.0, 1.0]],
    [[9.0, 0.5], [9.0, 0.0], [9.0, 0.5]],
    [[9.0, 9.0], [9.0, 9.0], [9.0, 9.0]],
]


class GoldenGame(NamedTuple):
    """Rewards on a graph, the oracle's rules and the package's policy, the actions agent by agent."""

    graph: nx.Graph
    table: list[list[list[float]]]
    rules: Rules
    policy: rm.Policy
    expected: list[list[int]]


CASES = {
    # Round 3, L = 2 ln 3 = 2.197, p = 1.8. A sample x of rank i stays iff |x|^1.8 * 2.197 <= 3 i.
    #   Agent 0 has arm 0: [1, 0], arm 1: [1, 1.5]. 1.5^1.8 * 2.197 = 4.56 <= 6 (rank 2): all stay.
    #     Means 0.5 and 1.25 at equal counts: arm 1.
    #   Agent 1 has the same samples in another order, its own first. Arm 1: [1.5, 1], and 4.56 > 3 (rank 1):
    #     1.5 is out but still counts. Means 0.5 and (0 + 1)/2 = 0.5: a tie, so the lower arm 0.
    #   Agent 2 is alone in its clique, hence sees only 0.5 and 1: arm 1.
    "path, decentralized with the clique filter": GoldenGame(
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
    "path, decentralized": GoldenGame(
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
    "path, centralized": GoldenGame(
        PATH,
        PATH_TABLE,
        Rules("centralized", gamma=2, leaders=(0,), **MOMENTS),
        rm.CentralizedMPUCB(gamma=2, leaders=[0], estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS),
        [[0, 1, 1, 0, 1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 1, 1, 0, 0, 0], [0, 1, 0, 1, 1, 0, 1, 1, 0, 0]],
    ),
    "path, KMP": GoldenGame(
        PATH,
        PATH_TABLE,
        Rules("kmp", gamma=2, **MOMENTS),
        rm.KMPUCB(gamma=2, estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS),
        [[0, 1, 1, 0, 0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 0, 1, 1, 1, 0, 1], [0, 1, 1, 1, 0, 1, 1, 0, 1, 1]],
    ),
    # d_max = 2, kappa = 2/3: P = [[2, 1, 0], [1, 1, 1], [0, 1, 2]] / 3 with eigenvalues 1, 2/3, 0.
    #   Round 3, all n = 1: arm 0 was mixed twice, P P (1, 0, 1/2) = (0.611, 0.5, 0.389);
    #   arm 1 once, P (1, 1.5, 1) = (7/6, 7/6, 7/6): arm 1 for everyone.
    "path, consensus": GoldenGame(
        PATH,
        PATH_TABLE,
        Rules("consensus", **MOMENTS),
        rm.ConsensusUCB(moments=RM_MOMENTS),
        [[0, 1, 1, 0, 1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0, 1, 0, 0, 1]],
    ),
    # Round 3: agent 0 has 1 and 1, a tie: arm 0. Agent 1 has 0 and 1.5, which is trimmed (4.56 > 3) to 0:
    #   a tie, arm 0. Agent 2 has 0.5 and 1: arm 1.
    "path, robust": GoldenGame(
        PATH,
        PATH_TABLE,
        Rules("robust", **MOMENTS),
        rm.RobustUCB(estimator=rm.TrimmedMean(), c=1.0, moments=RM_MOMENTS),
        [[0, 1, 0, 1, 0, 0, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 1, 0, 0, 0]],
    ),
    "star, decentralized with the clique filter": GoldenGame(
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
    "star, decentralized": GoldenGame(
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
    "star, centralized": GoldenGame(
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
    "star, KMP": GoldenGame(
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
    #   Round 6, agent 2: s = (0.1416, 2.9189, 1.2773), n = (1.25, 2, 1.75): means 0.113, 1.459, 0.730. The
    #   radius is sqrt(18 t^(2/3)/4 (n + 1)/n²) = 4.626, 3.338, 3.653. Indices 4.739, 4.798, 4.383: arm 1.
    "star, consensus": GoldenGame(
        STAR,
        STAR_TABLE,
        Rules("consensus", eps_v=1.0, **MOMENTS),
        rm.ConsensusUCB(epsilon=1.0, moments=RM_MOMENTS),
        [
            [0, 1, 2, 1, 0, 2, 2, 1, 1, 2, 1, 2, 2, 2],
            [0, 1, 2, 1, 0, 2, 2, 1, 0, 2, 1, 0, 2, 2],
            [0, 1, 2, 1, 2, 1, 0, 2, 1, 2, 0, 2, 2, 2],
            [0, 1, 2, 1, 2, 0, 1, 0, 2, 2, 2, 2, 1, 2],
        ],
    ),
    # Round 6, agent 2: n = (1.25, 2, 1.75), n_eff = 4 n²/(n + 1) = (2.778, 5.333, 4.455). The radius is
    #   (18 t^(2/3) / n_eff^0.8)^(1/1.8): indices 6.256, 6.056, 5.710: arm 0 ("star, consensus" took arm 1).
    "star, consensus by the moment": GoldenGame(
        STAR,
        STAR_TABLE,
        Rules("consensus", radius="moment", eps_v=1.0, **MOMENTS),
        rm.ConsensusUCB(radius="moment", epsilon=1.0, moments=RM_MOMENTS),
        [
            [0, 1, 2, 1, 0, 2, 1, 2, 0, 2, 1, 1, 0, 2],
            [0, 1, 2, 1, 0, 2, 2, 0, 1, 2, 0, 2, 0, 1],
            [0, 1, 2, 1, 2, 0, 1, 2, 0, 2, 1, 1, 0, 2],
            [0, 1, 2, 1, 2, 0, 1, 2, 0, 2, 1, 2, 0, 1],
        ],
    ),
    "star, robust": GoldenGame(
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
    "star, robust by median of means": GoldenGame(
        STAR,
        STAR_TABLE,
        Rules("robust", estimator="median-of-means", zeta=0.5, **MOMENTS),
        rm.RobustUCB(estimator=rm.MedianOfMeans(), zeta=0.5, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1],
            [0, 1, 2, 1, 1, 1, 2, 1, 1, 2, 0, 2, 2, 2],
            [0, 1, 2, 0, 2, 2, 1, 1, 1, 1, 0, 1, 0, 0],
        ],
    ),
    "star, robust by the plain mean": GoldenGame(
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
    "star, robust by Catoni": GoldenGame(
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
    "star, theory constants at the anytime level": GoldenGame(
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
    # Path w - u - v = 0 - 1 - 2, gamma 2, p = 2, u = 4: a sample x of rank i stays iff x^2 L <= 4 i.
    #   Round 3, L = 2.197: limits 1.35, 1.91, 2.34 at ranks 1, 2, 3. Agent 1 has arm 0 [0.5, 0.5, 0.5] and
    #   arm 1 [1, 2.5 (out), 1]: 2/3 > 1/2 at equal counts, arm 1. That choice knew w's 2.5 of round 2. Agent
    #   0 has arm 1 [2.5 (out), 1], mean 1/2 as arm 0 but fewer samples: arm 1. Agent 2 has arm 1 [1, 1]: arm
    #   1.
    #   At the end of round 3 agent 2 gets its own 0.5 of arm 1, and together u's 0 of round 3 and w's 2.5 of
    #   round 2.
    #   Round 4, L = 2.773: limits 2.40 at rank 4, 2.69 at rank 5. Oldest first, w's 2.5 has rank 4 and is
    #   out: arm 1 is [1, 1, 0.5, 2.5 (out), 0], mean 0.5 of n = 5, as arm 0 of n = 3: arm 0 by its radius.
    #   The effect before its cause, 2.5 would have rank 5 and stay: mean 1, radii 0.471 and 0.608, arm 1.
    "path, cause before effect": GoldenGame(
        PATH,
        CAUSE_TABLE,
        Rules("decentralized", gamma=2, eps=1.0, u=4.0, c=0.1),
        rm.DecentralizedMPUCB(
            gamma=2, clique_filter=False, c=0.1, moments=rm.Moments(eps=1.0, u=4.0, rho=1.0)
        ),
        [[0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 1, 0]],
    ),
    # Round 6, agent 3, L = 3.584. Arm 0: [-1.5 (out), 0.25, 0, 1.25, 1.5, 0], mean 0.5, n = 6. Arm 2 in order
    #   of arrival, (round: agent of origin): own 3:3, 3:2, 3:4; own 4:3, then 3:1 before 4:2, 4:4; then 3:0
    #   before 4:1 before 5:4, that is [1 (out), 1.75 (out), 0.5, 1, 1, 1.25, 0.25, 3.25, 1.5, 0.25]. 3.25^1.8
    #   * 3.584 = 29.9 > 3 * 8: out at rank 8 (nearest first it would be rank 10 and stay). Mean 0.575, n =
    #   10.
    #   Radius 3^(1/1.8) (0.25 L/n)^(0.8/1.8): 0.791 and 0.630. Indices 1.291 and 1.205: arm 0.
    "line, decentralized": GoldenGame(
        LINE,
        LINE_TABLE,
        Rules("decentralized", gamma=3, c=0.25, **MOMENTS),
        rm.DecentralizedMPUCB(gamma=3, clique_filter=False, c=0.25, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 1, 2, 1, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 0, 0, 2, 0, 0, 0, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2],
        ],
    ),
    "line, decentralized with the clique filter": GoldenGame(
        LINE,
        LINE_TABLE,
        Rules("decentralized", gamma=3, c=0.25, cover=[[0, 1, 2, 3], [4]], **MOMENTS),
        rm.DecentralizedMPUCB(gamma=3, c=0.25, cover=[[0, 1, 2, 3], [4]], moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 2, 1, 2, 1, 1, 1, 1, 1, 2],
            [0, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            [0, 1, 2, 1, 2, 1, 1, 1, 1, 0, 1, 2, 1, 1],
            [0, 1, 2, 2, 0, 0, 2, 0, 0, 0, 1, 0, 1, 1],
            [0, 1, 2, 1, 2, 0, 1, 2, 1, 2, 2, 2, 2, 2],
        ],
    ),
    # Agent 4 is four hops from its leader: in round 4 = d > K it still decides for itself, from round 5 on it
    #   repeats the leader's rounds 1, 2, ...: 0, 1, 2, 2, ...
    "line, centralized": GoldenGame(
        LINE,
        LINE_TABLE,
        Rules("centralized", gamma=4, c=0.25, leaders=(0,), **MOMENTS),
        rm.CentralizedMPUCB(gamma=4, c=0.25, leaders=[0], moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 2],
            [0, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1],
            [0, 1, 2, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1],
            [0, 1, 2, 0, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1],
            [0, 1, 2, 2, 0, 1, 2, 2, 2, 2, 1, 1, 1, 1],
        ],
    ),
    "line, KMP": GoldenGame(
        LINE,
        LINE_TABLE,
        Rules("kmp", gamma=3, c=0.25, **MOMENTS),
        rm.KMPUCB(gamma=3, c=0.25, moments=RM_MOMENTS),
        [
            [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 1, 2, 1, 1, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 0, 0, 2, 0, 0, 0, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 1, 2, 2, 1, 0, 2, 2, 0, 2],
        ],
    ),
    # Round 5, agent 3: n = 5, 5, 7, so 2, 2 and 3 groups of two. Arm 2 is [1, 1.75 | 0.5, 1 | 1, 1.25], 0.25
    #   is left over: means 1.375, 0.75, 1.125, median 1.125 (nearest first, [.. | 1.25, 0.25] would make it
    #   0.75). Arm 1 is [1.25, 0 | 0.75, 1.25], 0.8125. Indices 1.630 and 1.829: arm 2.
    "line, by median of means": GoldenGame(
        LINE,
        LINE_TABLE,
        Rules("decentralized", gamma=4, c=0.25, estimator="median-of-means", **MOMENTS),
        rm.DecentralizedMPUCB(
            gamma=4, clique_filter=False, c=0.25, estimator=rm.MedianOfMeans(), moments=RM_MOMENTS
        ),
        [
            [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 0],
            [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
            [0, 1, 2, 2, 2, 2, 1, 1, 1, 1, 2, 1, 1, 1],
            [0, 1, 2, 2, 1, 2, 1, 2, 2, 2, 2, 2, 2, 2],
        ],
    ),
}
