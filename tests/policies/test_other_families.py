"""The other families: golden games, the oracle on imperfect channels, and better than chance on an easy game.

Golden actions were written down from the oracle, which follows docs/semantics.md and shares no code with the
package.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import rumormill as rm
from helpers import oracle
from helpers.golden_games import PATH, PATH_TABLE
from helpers.oracle import World
from helpers.oracle_adapters import actions_in, graph_of, keywords_of, played, rules_of
from rumormill import catalogue
from rumormill.policies.baselines.dducb import stage_steps
from rumormill.policies.baselines.klinf_ucb import OnlineKLInf
from rumormill.policies.baselines.rmm_ucb import OnlineRMM

MOMENTS = {"eps": 0.8, "u": 3.0, "rho": 3.0}
# Settings, and the actions of the three agents of the golden path, a digit per round.
GOLDEN: dict[str, tuple[dict[str, Any], str]] = {
    "epsilon-greedy": ({"rate": 0.4, "gamma": 2}, "0111111110 0111111001 0111110101"),
    "coop-se": ({"zeta": 0.08, "gamma": 2}, "0110110101 0101101010 0111010101"),
    "ht-hmucb": ({"zeta": 0.5, "gamma": 1}, "0111111111 0111111111 0111011111"),
    "adar-ucb": ({"zeta": 0.01, "gamma": 2}, "0100000011 0100001111 0100000011"),
    "decentralized-ts": ({"zeta": 0.5}, "0110011111 0101101100 0111111010"),
    "rmm-ucb": ({"resamples": 3, "gamma": 2}, "0100111111 0100111111 0100111111"),
    "dpe2": ({"zeta": 0.3, "gamma": 2, "leaders": [0]}, "0111110000 0111111111 0111111111"),
    "alpha-ts": ({"zeta": 0.5, "gamma": 2}, "0111011110 0101100000 0111111000"),
    "robust-dirichlet": ({"gamma": 2}, "0110110001 0111111011 0111110110"),
    "klinf-ucb": ({"gamma": 2}, "0111100010 0111010011 0111011001"),
}
each_family = pytest.mark.parametrize("name", GOLDEN)


def made(name: str, **settings: Any) -> Any:
    takes = {one.name for one in catalogue.settings(catalogue.POLICIES[name])}
    moments = {"moments": MOMENTS} if "moments" in takes else {}
    return catalogue.make("policy", {"type": name, **moments, **settings})


def digits(actions: Any) -> str:
    return " ".join("".join(map(str, row)) for row in np.asarray(actions).T.tolist())


@each_family
def test_golden_actions(name: str) -> None:
    settings, expected = GOLDEN[name]
    policy, network = made(name, **settings), rm.Network(PATH)
    rules = rules_of(policy, network, rm.Replay(np.array(PATH_TABLE), means=[0.0, 0.1]))
    world = World(seed=oracle.channel_seed(0))
    assert digits(oracle.play(PATH_TABLE, PATH, rules, world)) == expected
    assert digits(actions_in(played(PATH_TABLE, network, policy))) == expected


WORLDS = {
    "loss and delay": {"p": 0.6, "delay": 2},
    "absences": {"absences": ((1, 5, 20), (0, 1, 4)), "p": 0.8},
    "a liar": {"liars": (4,), "attack": "promote"},
}
# Fewer signs, since the oracle takes its time; a radius small enough that arms leave.
SMALL: dict[str, dict[str, Any]] = {"rmm-ucb": {"resamples": 9}, "coop-se": {"zeta": 0.15}}
TWO_WAY = {"loss": {"p": 0.6, "symmetric": True}, "absences": {"absences": ((1, 5, 20),)}}


@each_family
def test_imperfect_channels_against_the_oracle(name: str) -> None:
    network, rng = rm.Network.path(5), np.random.default_rng(7)
    averages = name in oracle.AVERAGING
    for number, fault in enumerate((TWO_WAY if averages else WORLDS).values()):
        policy = made(name, **({} if averages else {"gamma": 2}), **SMALL.get(name, {}))
        world = World(seed=oracle.channel_seed(0), **fault)  # type: ignore[arg-type]
        table = rng.standard_t(2.5, (60, 5, 3)) + np.array([0.0, 0.5, 1.0])
        means = [0.0, 0.5, 1.0]
        rules = rules_of(policy, network, rm.Replay(table, means=means))
        result = played(table, network, policy, means=means, **keywords_of(world))
        expected = oracle.play(table, graph_of(network), rules, world, means)
        np.testing.assert_array_equal(actions_in(result), expected, err_msg=f"{name}, fault {number}")


@each_family
def test_better_than_chance(name: str) -> None:
    """Uniform choice has regret 1 a pull on average, 0 to 2: over 1,200 pulls of 6 agents the chance that it
    stays below 0.8 is at most e^-24 (Hoeffding), whatever the seed."""
    bandit = rm.Bandit([rm.Gaussian(loc=loc, scale=0.5) for loc in (0.0, 1.0, 2.0)])
    policy = catalogue.make("policy", {"type": name, **SCALED.get(name, {})})
    result = rm.simulate(bandit, rm.Network.ring(6), policy, horizon=200, rng=1, engine="reference")
    assert result.regret[0, -1] < 0.8 * 1200


# Where the default constant explores too long for a game of 200 rounds.
SCALED: dict[str, dict[str, Any]] = {"adar-ucb": {"zeta": 0.1}}


@each_family
def test_costs_are_negated_rewards(name: str) -> None:
    laws = [rm.TwoPoint(probability=q, low=0.0, high=1.0) for q in (0.2, 0.5, 0.8)]
    costs = rm.Bandit(laws, objective="minimise")
    result = rm.simulate(
        costs, rm.Network.ring(4), catalogue.make("policy", name), horizon=40, rng=3, engine="reference"
    )
    assert result.regret.min() >= 0.0


def test_the_bound_by_random_signs_fails_as_often_as_it_says() -> None:
    """At most once in 20 under Cauchy's law; a correct bound exceeds this limit with probability 1e-6."""
    rng, failures = np.random.default_rng(3), 0
    for _ in range(300):
        stream = OnlineRMM(19)
        for x in rng.standard_cauchy(60):
            stream.update(float(x))
        failures += stream.index(1.0) < 0.0
    assert failures <= binom.ppf(1 - 1e-6, 300, 1 / 20)


def test_the_largest_possible_mean_by_direct_search() -> None:
    """Over laws on the samples and one more point: the dual is above, by what 24 values of β leave."""
    x, p, u, log_t = np.array([0.3, -1.2, 2.0]), 1.8, 3.0, math.log(50)
    allowed = (log_t + 2 * math.log(1 + log_t)) / 3

    def mean(q: Any) -> float:
        return float(q[:3] @ x + (1 - q[:3].sum()) * q[3])

    constraints: list[dict[str, Any]] = [
        {"type": "ineq", "fun": lambda q: allowed + np.log(3 * q[:3]).mean()},
        {"type": "ineq", "fun": lambda q: u - q[:3] @ np.abs(x) ** p - (1 - q[:3].sum()) * abs(q[3]) ** p},
        {"type": "ineq", "fun": lambda q: 1 - q[:3].sum()},
    ]
    best = minimize(
        lambda q: -mean(q),
        [0.2, 0.2, 0.2, 2.0],
        constraints=constraints,
        bounds=[(1e-9, 1)] * 3 + [(-50, 50)],
        method="SLSQP",
    )
    stream = OnlineKLInf(p, u)
    for value in x.tolist():
        stream.update(value)
    assert -best.fun <= stream.index(2 * log_t) <= -best.fun + 0.02


@pytest.mark.parametrize("accelerated", [True, False])
def test_every_step_of_delayed_gossip_keeps_the_average(accelerated: bool) -> None:
    """P keeps it, so forward - back has to be 1; and acceleration takes fewer steps."""
    forward, back = stage_steps(0.9, 20, accelerated)
    assert len(forward) == len(back) > 5
    assert np.subtract(forward, back) == pytest.approx(1.0)
    assert len(stage_steps(0.9, 20, True)[0]) < len(stage_steps(0.9, 20, False)[0])
