"""An imperfect world: an independent script and both engines take the same actions."""

import numpy as np
import pytest
from hypothesis import given, settings

from helpers import oracle
from helpers.oracle import World, channel_seed, mix, uniform
from helpers.oracle_adapters import (
    Game,
    assert_regret_of_those_present,
    is_compiled,
    result_of,
    ties_against_oracle,
)
from helpers.random_games import game_beyond_the_paper, lossy_game
from helpers.strategies import SLOW_TO_DRAW, lossy_games


def test_the_keyed_uniforms_of_the_script_by_the_printed_vectors() -> None:
    assert mix(1) == 0x5692161D100B05E5
    assert mix(0x123456789) == 0x5189F682B434CAF2
    assert uniform(7, 1, 0, 1, 5) == 0.5492455631298667
    assert uniform(7, 1, 1, 0, 5) == 0.6993587254026304
    assert uniform(7, 2, 3, 2, 10) == 0.3378898078109739
    assert uniform(123456789, 1, 3, 9, 4, 77) == 0.4476786685647426
    assert channel_seed(7) == 10528855372307397847


@pytest.mark.parametrize(
    ("policy", "estimator"),
    [
        ("decentralized", "self-tuned"),
        ("centralized", "trimmed"),
        ("kmp", "clipped"),
        ("consensus", "trimmed"),
        ("coop-ucb2", "trimmed"),
        ("robust-gossip", "trimmed"),
    ],
)
def test_faults_that_never_happen_change_nothing(policy: str, estimator: str) -> None:
    """The oracle with a fault model and without: outages and absences after the last round."""
    for seed in range(8):
        table, graph, rules, *_ = game_beyond_the_paper(seed, policy, estimator)
        never = World(outages=((0, 1, 1000, 2000),), absences=((0, 1000, 2000),), bundles=lambda *_: 0)
        assert not never.perfect
        expected = oracle.play(table, graph, rules)
        np.testing.assert_array_equal(oracle.play(table, graph, rules, never), expected)


CASES = [
    *(("decentralized", estimator) for estimator in ("trimmed", "clipped", "median-of-means", "self-tuned")),
    *(("centralized", estimator) for estimator in ("trimmed", "empirical", "median-bound")),
    *(("kmp", estimator) for estimator in ("trimmed", "clipped", "empirical")),
    ("robust", "huber-sgd"),
    *((policy, "") for policy in ("origin-median", "consensus", "coop-ucb2", "robust-gossip")),
]
COMPILED = [
    ("decentralized", "trimmed"),
    ("centralized", "trimmed"),
    ("kmp", "trimmed"),
    *((policy, "") for policy in ("origin-median", "consensus")),
]
each_case = pytest.mark.parametrize(("policy", "estimator"), CASES)
# What the compiled engine cannot play goes to the reference engine, with a notice.
pytestmark = pytest.mark.filterwarnings("ignore::rumormill.errors.SlowEngineNotice")


def check(game: Game, compiled: bool = True) -> int:
    """The reference engine, the compiled one and the script, event by event. Returns the number of ties."""
    slow = result_of(game, "reference")
    if compiled:
        fast = result_of(game, "auto")
        assert fast.engine == ("fast" if is_compiled(game) else "reference"), str(game)
        for name in ("actions", "agent_regret", "agent_rounds", "messages", "wire_bytes"):
            np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name), err_msg=str(game))
    assert_regret_of_those_present(game, slow)
    return ties_against_oracle(*game[:3], slow, *game[3:])


@each_case
def test_the_engines_equal_the_script(policy: str, estimator: str) -> None:
    """Of the compiled engine one mean here: each takes long to compile. The slow test has them all."""
    compiled = (policy, estimator) in COMPILED
    ties = [check(lossy_game(seed, policy, estimator), compiled) for seed in range(8)]
    assert sum(ties) <= 4


@pytest.mark.slow
@each_case
def test_the_engines_equal_the_script_in_thousands(policy: str, estimator: str) -> None:
    assert sum(check(lossy_game(seed, policy, estimator)) for seed in range(100, 400)) <= 60


@pytest.mark.parametrize("policy", ["decentralized", "centralized", "kmp", "origin-median", "consensus"])
def test_games_of_any_shape(policy: str) -> None:
    """One agent, one round, nobody there, no links: what hypothesis likes to draw."""

    @settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=SLOW_TO_DRAW)
    @given(lossy_games(policy, "trimmed"))
    def each(game: Game) -> None:
        check(game)

    each()
