"""A dead leader, a liar, late joiners: games on a path of 3 and a star of 4, worked out by hand.

Means are plain averages and the radius is next to nothing: an agent pulls the arm of the best average.
"""

from typing import Any

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from sides_channels import played

engines = pytest.mark.parametrize("engine", ["reference", "auto"])
# What the compiled engine cannot play goes to the reference engine, with a notice.
pytestmark = pytest.mark.filterwarnings("ignore::rumormill.errors.SlowEngineNotice")
PATH, STAR = nx.path_graph(3), nx.star_graph(3)
ALIKE = rm.Moments(eps=1.0, u=100.0, rho=1.0)
PLAIN: dict[str, Any] = {"gamma": 1, "estimator": rm.EmpiricalMean(), "zeta": 1e-6, "moments": ALIKE}


def by_agent(
    table: Any, graph: nx.Graph, policy: rm.Policy, engine: str, means: Any = (0.0, 0.5), **told: Any
) -> list[list[int]]:
    """The arms of each agent in turn."""
    result = played(np.asarray(table, float), graph, policy, list(means), engine, **told)
    assert result.actions is not None
    arms: list[list[int]] = result.actions[0].T.tolist()
    return arms


def steady(T: int, M: int, *pay: float) -> Any:
    """Every arm pays the same to everybody in every round."""
    return np.broadcast_to(pay, (T, M, len(pay))).copy()


@engines
@pytest.mark.parametrize(("patience", "until"), [(None, 10), (2, 7), (0, 5), (5, 10)])
@pytest.mark.parametrize("graph", [PATH, STAR], ids=["path", "star"])
def test_followers_of_a_dead_leader(graph: nx.Graph, patience: int | None, until: int, engine: str) -> None:
    """Arm 0 pays 1 while the leader lives, and -9 once it is gone, after round 4; arm 1 pays 0.

    Round 3: followers copy what the leader did in round 2. Rounds 4 and 5: arm 0, as the leader did in rounds
    3 and 4. Then nothing newer comes: arm 0 while t - 4 <= 1 + patience, and after that, as arm 0 has
    become the worse one on average from the first -9 in round 5 on, arm 1. (At least 5 samples of 1 are known
    of arm 0 by then, so a single -9 gives an average below 0.)
    """
    M, hub = len(graph), max(graph, key=graph.degree)
    table = steady(10, M, 1.0, 0.0)
    table[4:, :, 0] = -9.0
    policy = rm.CentralizedMPUCB(leaders=[hub], patience=patience, **PLAIN)
    arms = by_agent(table, graph, policy, engine, absences=[(hub, 5, 10)])
    assert arms[hub] == [0, 1, 0, 0, *[-1] * 6]
    for v in set(graph) - {hub}:
        assert arms[v] == [0, 1, 1, *[0] * (until - 3), *[1] * (10 - until)]


@engines
def test_one_liar_among_the_leaves_of_a_star(engine: str) -> None:
    """Arm 0 pays nothing, arm 1 pays 1/2; leaf 3 says in every round that arm 0 paid 3/2.

    The centre has three true samples of arm 0 and one lie after round 1, and of each further round one lie
    and at most one of its own: 3/2 t / (2t + 1) >= 3/5 after the second round. The other leaves hear
    the centre only.
    """
    liar = rm.Byzantine(agents=[3], attack="promote")
    policy = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN)
    arms = by_agent(steady(9, 4, 0.0, 0.5), STAR, policy, engine, byzantine=liar)
    assert arms == [[0, 1, *[0] * 7], [0, *[1] * 8], [0, *[1] * 8], [-1] * 9]


@engines
def test_one_liar_is_outvoted_by_origins(engine: str) -> None:
    """The same with medians over origins: what the centre got itself bounds what others make it believe."""
    liar = rm.Byzantine(agents=[3], attack="promote")
    policy = rm.OriginMedianUCB(f=1, spare=1, gamma=1, zeta=1e-6, moments=ALIKE)
    arms = by_agent(steady(9, 4, 0.0, 0.5), STAR, policy, engine, byzantine=liar)
    assert arms == [[0, *[1] * 8]] * 3 + [[-1] * 9]


@engines
@pytest.mark.parametrize("attack", ["promote", "slander", "flood"])
def test_a_liar_cannot_lead_kmp_astray_for_good(attack: Any, engine: str) -> None:
    """The centre hears the liar, the other leaves hear the centre; arms pay always the same.

    Half a unit apart, with a radius of 0.1 √(2 ln 60 / n) < 0.3 / √n: a few pulls of arm 0 are enough.
    """
    liar = rm.Byzantine(agents=[3], attack=attack)
    policy = rm.KMPUCB(gamma=1, zeta=0.1, moments=rm.Moments(eps=1.0, u=1.0, rho=1.0))
    arms = by_agent(steady(60, 4, 0.0, 0.5), STAR, policy, engine, byzantine=liar)
    for v in range(3):
        assert arms[v][-20:] == [1] * 20


@engines
@pytest.mark.parametrize(("graph", "late"), [(PATH, [2]), (STAR, [2, 3])], ids=["path", "star"])
def test_late_joiners_start_with_what_they_do_not_know(graph: nx.Graph, late: list[int], engine: str) -> None:
    """Arm 0 pays nothing, arm 1 pays 1/2, arm 2 pays 1/4; the late ones come in round 5.

    They know nothing: arm 0. At the end of the round a neighbour told them of arm 1. Round 6: arm 2 is the
    only one they know nothing of. From round 7 on they know all. The others have long found arm 1.
    """
    policy = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN)
    table = steady(9, len(graph), 0.0, 0.5, 0.25)
    absences = [(v, 1, 4) for v in late]
    arms = by_agent(table, graph, policy, engine, means=(0.0, 0.5, 0.25), absences=absences)
    for v in graph:
        expected = [-1, -1, -1, -1, 0, 2, 1, 1, 1] if v in late else [0, 1, 2, *[1] * 6]
        assert arms[v] == expected


@engines
def test_late_joiners_that_hear_nothing_try_every_arm(engine: str) -> None:
    policy = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN)
    told: dict[str, Any] = {"absences": [(2, 1, 4)], "channel": rm.Imperfect(p=0.0)}
    arms = by_agent(steady(9, 3, 0.0, 0.5, 0.25), PATH, policy, engine, means=(0.0, 0.5, 0.25), **told)
    assert arms[2] == [-1, -1, -1, -1, 0, 1, 2, 1, 1]


@engines
def test_a_late_joiner_takes_over_what_kmp_neighbours_know(engine: str) -> None:
    """It pulls nothing blindly but in its first round: then it has a row for every arm."""
    policy = rm.KMPUCB(**PLAIN)
    arms = by_agent(steady(9, 3, 0.0, 0.5), PATH, policy, engine, absences=[(2, 1, 4)])
    assert arms[2] == [-1, -1, -1, -1, 0, 1, 1, 1, 1]
