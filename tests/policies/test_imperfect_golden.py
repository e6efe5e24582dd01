"""Golden games in an imperfect world, worked out by hand: a dead leader, one liar, half of the agents late.

Radii are a millionth of what they should be, so that an agent plays the arm of the largest mean, and no
sample is large enough to be trimmed or clipped. K = 2: round 1 is arm 0, round 2 arm 1 for all who are there.
"""

from typing import Any, Literal

import numpy as np
import pytest

import rumormill as rm
from rumormill.policies.base import Seat
from rumormill.policies.origin_median import OriginSamples

ENGINES: tuple[Literal["reference", "auto"], ...] = ("reference", "auto")
# What the compiled engine cannot play goes to the reference engine, with a notice.
pytestmark = pytest.mark.filterwarnings("ignore::rumormill.errors.SlowEngineNotice")
PATH, STAR = rm.Network.path(3), rm.Network.star(4)  # agent 0 in the middle of the star
PLAIN: dict[str, Any] = {"zeta": 1e-6, "moments": rm.Moments(eps=0.8, u=100.0, rho=100.0), "gamma": 1}


def play(network: rm.Network, policy: rm.Policy, pays: list[list[float]], **world: Any) -> rm.Result:
    """Every agent gets pays[t - 1][arm] in round t; arm 0 counts as the better one. Both engines agree."""
    table = np.repeat(np.array(pays)[:, None, :], network.n_agents, axis=1)
    slow, fast = (
        rm.simulate(
            rm.Replay(table, means=[1.0, 0.0, 0.0][: len(pays[0])]),
            network,
            policy,
            horizon=len(pays),
            rng=0,
            engine=engine,
            actions=True,
            checkpoints=range(1, len(pays) + 1),
            **world,
        )
        for engine in ENGINES
    )
    np.testing.assert_array_equal(slow.actions, fast.actions)
    return slow


def rows(result: rm.Result) -> list[list[int]]:
    """What each agent did, round by round."""
    assert result.actions is not None
    found: list[list[int]] = result.actions[0].T.tolist()
    return found


# --- a dead leader --------------------------------------------------------------------------------------

# Arm 1 pays 1 once, then -5: whoever looks at the samples leaves it, whoever copies a dead leader stays.
TURNING = [[0.0, 1.0]] * 2 + [[0.0, -5.0]] * 8


@pytest.mark.parametrize(
    ("patience", "follower"),
    [
        # Round 3: the leader's action of round 2, arm 1. From round 4 on: that of round 3, arm 1 again, since
        # 0 < 1 then. The leader is back in round 9, knows 0 for arm 0 and -5s for arm 1, and plays arm 0;
        # the followers hear of it for round 10.
        (None, [0, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
        # The newest word is of round 3, one hop away: t - 3 > 1 + 2 from round 7 on. Arm 0 has mean 0.
        (2, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]),
        (32, [0, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
    ],
)
def test_a_dead_leader_on_the_path(patience: int | None, follower: list[int]) -> None:
    policy = rm.CentralizedMPUCB(leaders=[1], patience=patience, **PLAIN)
    result = play(PATH, policy, TURNING, absences=[(1, 4, 8)])
    leader = [0, 1, 1, -1, -1, -1, -1, -1, 0, 0]
    assert rows(result) == [follower, leader, follower]
    # Arm 1 costs 1; the leader regrets rounds 2 and 3 only, and five of thirty agent-rounds are missing.
    assert result.agent_regret[0, -1].tolist() == [sum(follower), 2.0, sum(follower)]
    assert result.agent_rounds[0].tolist() == [3, 6, 9, 11, 13, 15, 17, 19, 22, 25]


@pytest.mark.parametrize(
    ("patience", "follower"),
    # The leader's last word is of round 2: copied in round 3, and after it only with patience.
    [(None, [0, 1, 1, 1, 1, 1]), (0, [0, 1, 1, 0, 0, 0]), (1, [0, 1, 1, 1, 0, 0])],
)
def test_a_leader_of_the_star_that_never_comes_back(patience: int | None, follower: list[int]) -> None:
    policy = rm.CentralizedMPUCB(leaders=[0], patience=patience, **PLAIN)
    result = play(STAR, policy, TURNING[:6], absences=[(0, 3, 6)])
    assert rows(result) == [[0, 1, -1, -1, -1, -1], follower, follower, follower]


# --- one liar -------------------------------------------------------------------------------------------

STEADY = [[1.0, 0.0]] * 8


def test_one_liar_on_the_star_fools_whoever_adds_up() -> None:
    """The liar, a leaf, says every round that arm 1 paid 2.

    The centre has of arm 1: in round 3 [2, 0, 0, 0, 2], mean 0.8 < 1; in round 4 one more 2, mean 1: a tie
    at 6 samples each, so arm 0; in round 5 mean 8/7. From then on each round adds its own 0 and a 2:
    (8 + 2j)/(7 + 2j) > 1 for ever. The other leaves hear the centre only, which tells the truth.
    """
    liar = rm.Byzantine(agents=[3], attack="promote")
    policy = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN)
    result = play(STAR, policy, STEADY, byzantine=liar)
    honest = [0, 1, 0, 0, 0, 0, 0, 0]
    assert rows(result) == [[0, 1, 0, 0, 1, 1, 1, 1], honest, honest, [-1] * 8]
    assert result.agent_regret[0, -1].tolist() == [5.0, 1.0, 1.0, 0.0]
    assert result.agent_rounds[0].tolist() == [3 * t for t in range(1, 9)]


@pytest.mark.parametrize("attack", ["promote", "flood", "slander"])
def test_one_liar_on_the_star_does_not_fool_a_median_over_origins(attack: Any) -> None:
    """The centre has four origins of arm 1 in three groups: the liar's 2s, its own 0, the leaves' 0s.

    Their median is 0. A liar that speaks ill of arm 0 is one of four origins of arm 0: its -5s make one
    group, the others say 1.
    """
    liar = rm.Byzantine(agents=[3], attack=attack)
    for policy in (rm.OriginMedianUCB(f=1, spare=1, **PLAIN), rm.KMPUCB(guard=1, **PLAIN)):
        honest = [0, 1, 0, 0, 0, 0, 0, 0]
        assert rows(play(STAR, policy, STEADY, byzantine=liar)) == [honest, honest, honest, [-1] * 8]


def test_one_liar_on_the_path_claims_more_than_anybody_can_know() -> None:
    """Rows of 10^9 samples of arm 1, mean 5: at most r samples of each of two agents are known in round r.

    They are not noted. The samples that the liar tells of, 0.5 each, are: no mean of arm 1 exceeds 0.5.
    """
    liar = rm.Byzantine(agents=[2], attack="promote", size=0.5)
    honest = [0, 1, 0, 0, 0, 0, 0, 0]
    for guard in (0, 1):
        result = play(PATH, rm.KMPUCB(guard=guard, **PLAIN), STEADY, byzantine=liar)
        assert rows(result) == [honest, honest, [-1] * 8]


@pytest.mark.parametrize(("count", "samples"), [("all", 105.0), ("trimmed", 7.5), ("cautious", 3.0)])
def test_how_many_samples_a_median_over_origins_stands_for(count: Any, samples: float) -> None:
    """One, four and a hundred samples of three origins, one of which may lie: three groups.

    All are 105. Without the largest group five are left, of two groups: 3/2 of them. The median is right only
    if the smallest group is, should the largest one lie: three times one.
    """
    seat = Seat(agent=0, n_arms=1, neighbours=(1, 2), horizon=9, n_agents=3, rng=np.random.default_rng(0))
    kept = OriginSamples(rm.OriginMedianUCB(**PLAIN), seat, f=1, spare=1, count=count)
    for origin, times, reward in ((0, 1, 0.5), (1, 4, 0.25), (2, 100, -1.0)):
        for _ in range(times):
            kept.add(origin, 0, reward, 2)
    assert kept.estimates(9) == ((0.25, samples),)


# --- half of the agents late ----------------------------------------------------------------------------


def test_half_of_the_star_joins_late() -> None:
    """Agents 2 and 3 come in round 4 and know nothing: both arms must be pulled, the lower one first.

    Decentralized: by round 5 they have arm 0 of their own and of the centre, of arm 1 nothing: it is pulled.
    """
    late = [-1, -1, -1, 0, 1, 0, 0, 0]
    there = [0, 1, 0, 0, 0, 0, 0, 0]
    result = play(
        STAR,
        rm.DecentralizedMPUCB(clique_filter=False, **PLAIN),
        STEADY,
        absences=[(2, 1, 3), (3, 1, 3)],
    )
    assert rows(result) == [there, there, late, late]
    assert result.agent_rounds[0].tolist() == [2, 4, 6, 10, 14, 18, 22, 26]
    assert result.regret[0].tolist() == [0, 2, 2, 2, 4, 4, 4, 4]


def test_half_of_the_star_joins_late_and_believes_the_rows_it_hears() -> None:
    """KMP: at the end of round 4 the centre's row says what arm 1 pays, so nobody has to try."""
    late = [-1, -1, -1, 0, 0, 0, 0, 0]
    there = [0, 1, 0, 0, 0, 0, 0, 0]
    result = play(STAR, rm.KMPUCB(**PLAIN), STEADY, absences=[(2, 1, 3), (3, 1, 3)])
    assert rows(result) == [there, there, late, late]


THREE = [[0.0, 0.5, 0.25]] * 9


@pytest.mark.parametrize(("network", "late"), [(PATH, [2]), (STAR, [2, 3])], ids=["path", "star"])
def test_late_joiners_start_with_what_they_do_not_know(network: rm.Network, late: list[int]) -> None:
    """They come in round 5 and know nothing: arm 0. At the end of the round a neighbour told them of arm 1.

    Round 6: arm 2 is the only one they know nothing of. From round 7 on they know all. The others have long
    found arm 1.
    """
    policy = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN)
    result = play(network, policy, THREE, absences=[(v, 1, 4) for v in late])
    there, joins = [0, 1, 2, *[1] * 6], [-1, -1, -1, -1, 0, 2, 1, 1, 1]
    assert rows(result) == [joins if v in late else there for v in range(network.n_agents)]


def test_late_joiners_that_hear_nothing_try_every_arm() -> None:
    policy = rm.DecentralizedMPUCB(clique_filter=False, **PLAIN)
    silent = rm.Imperfect(p=0.0)
    assert rows(play(PATH, policy, THREE, absences=[(2, 1, 4)], channel=silent))[2] == [
        *[-1] * 4,
        *[0, 1, 2, 1, 1],
    ]
