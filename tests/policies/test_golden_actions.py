"""Both engines and the oracle play the golden games, round by round as written down."""

import math

import numpy as np
import pytest

import rumormill as rm
from helpers import oracle
from helpers.golden_games import CASES, PATH, PATH_TABLE, RM_MOMENTS
from helpers.oracle import Rules
from helpers.oracle_adapters import EngineName, actions_of
from rumormill.formulas import consensus_index
from rumormill.policies.message_passing_policy import HopPart


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("name", CASES)
def test_engines_reproduce_the_table(name: str, engine: EngineName) -> None:
    game = CASES[name]
    actions = actions_of(game.table, game.graph, game.policy, engine)
    assert np.issubdtype(actions.dtype, np.integer)
    assert actions.T.tolist() == game.expected


@pytest.mark.parametrize("name", CASES)
def test_oracle_reproduces_the_table(name: str) -> None:
    game = CASES[name]
    assert oracle.play(game.table, game.graph, game.rules).T.tolist() == game.expected


def test_the_constant_of_consensus_on_the_path() -> None:
    # u_1 = (1,1,1)/sqrt 3, u_2 = (1,0,-1)/sqrt 2 with eigenvalues 1, 2/3; the third is 0 and adds nothing.
    # (p, j) = (1, 2): 3 * 2 * (1/sqrt 6)^2 = 1 at both ends; (2, 2): 3 * (4/9)/(5/9) * 1 * 1/2 = 1.2.
    _, eps_v = oracle.consensus_parts(PATH, Rules("consensus"))
    np.testing.assert_allclose(eps_v, [2.2, 0, 2.2], atol=1e-12)
    given = rm.ConsensusUCB(moments=RM_MOMENTS, epsilon=[2.2, 0.0, 2.2])
    computed = rm.ConsensusUCB(moments=RM_MOMENTS)
    np.testing.assert_allclose(computed.plan(rm.Network(PATH)).epsilon, [2.2, 0, 2.2], atol=1e-12)
    np.testing.assert_array_equal(actions_of(PATH_TABLE, PATH, given), actions_of(PATH_TABLE, PATH, computed))


def test_the_radii_of_consensus_by_hand() -> None:
    """M = 4, n = 2, ε_v = 1, so that n_eff = 16/3; ρ = 3 and t = 8, so that 6 ρ t^(2/3) = 72."""
    radii = {"printed": math.sqrt(72 / 4 * (2 + 1) / 2**2), "moment": (72 / (16 / 3) ** 0.8) ** (1 / 1.8)}
    for radius, by_hand in radii.items():
        rule = rm.ConsensusUCB(radius=radius).rule(RM_MOMENTS)  # type: ignore[arg-type]
        index = consensus_index(1.5, 2.0, 4, 1.0, rule.scale(8), rule.exponent)
        assert index == pytest.approx(0.75 + by_hand, rel=1e-12)


def test_regret_is_counted_from_the_means() -> None:
    game = CASES["path, robust"]
    result = rm.simulate(
        rm.Replay(game.table, means=[0.25, 1.0]),
        rm.Network(game.graph),
        game.policy,
        horizon=10,
        trials=1,
        rng=0,
        engine="reference",
        checkpoints=range(1, 11),
    )
    # Arm 0 costs 0.75, arm 1 nothing, whatever was paid out.
    lost = 0.75 * (1 - np.array(game.expected).T)
    np.testing.assert_allclose(result.regret[0], lost.sum(1).cumsum(), rtol=1e-14)


def test_rows_carry_no_samples_before_the_first_decision() -> None:
    """In the first K rounds nothing is decided: N = 0; then what was known before the pull of the round."""
    part = HopPart(1, group=3, origins={1: 3, 2: 3}, delay=2)
    seat = rm.Seat(agent=0, n_arms=2, neighbours=(1, 2), n_agents=5, part=part)
    agent = rm.KMPUCB(gamma=1, moments=RM_MOMENTS).agent(seat)
    counts = []
    for t in range(1, 5):
        agent.observe(t, agent.choose(t), 0.5)
        (message,) = agent.outgoing(t)
        counts.append(sum(n for _, n in message.rows))
        agent.receive([])
    assert counts == [0, 0, 2, 3]
