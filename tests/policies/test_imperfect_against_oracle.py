"""An imperfect world: an independent script and both engines take the same actions."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings

from helpers import oracle_adapters_reality as sides_reality
from helpers import oracle_channels as oracle
from helpers import oracle_reality
from helpers.oracle_adapters import actions_in
from helpers.oracle_adapters_channels import (
    Game,
    assert_regret_of_those_present,
    games,
    is_compiled,
    random_game,
    result_of,
    ties_against_oracle,
    told,
)
from helpers.oracle_channels import Rules, World, channel_seed, mix, uniform
from helpers.strategies import SLOW_TO_DRAW


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
        ("decentralized", "selftuned"),
        ("centralized", "trimmed"),
        ("kmp", "clipped"),
        ("consensus", ""),
        ("coop2", ""),
        ("gossip", ""),
    ],
)
def test_where_nothing_goes_wrong_the_scripts_agree(policy: str, estimator: str) -> None:
    for seed in range(8):
        table, graph, rules = sides_reality.random_game(seed, policy, estimator)
        rules = replace(rules, start="round-robin")
        expected, _ = oracle_reality.play(table, graph, rules)
        np.testing.assert_array_equal(oracle.play(table, graph, Rules(**asdict(rules)), World()), expected)


CASES = [
    *(("decentralized", estimator) for estimator in ("trimmed", "clipped", "groups", "selftuned")),
    *(("centralized", estimator) for estimator in ("trimmed", "empirical", "median")),
    *(("kmp", estimator) for estimator in ("trimmed", "clipped", "empirical")),
    ("robust", "huber"),
    *((policy, "") for policy in ("origins", "consensus", "coop2", "gossip")),
]
COMPILED = [
    ("decentralized", "trimmed"),
    ("centralized", "trimmed"),
    ("kmp", "trimmed"),
    *((policy, "") for policy in ("origins", "consensus")),
]
each_case = pytest.mark.parametrize(("policy", "estimator"), CASES)
# What the compiled engine cannot play goes to the reference engine, with a notice.
pytestmark = pytest.mark.filterwarnings("ignore::rumormill.errors.SlowEngineNotice")


def check(game: Game, compiled: bool = True) -> int:
    """The reference engine, the compiled one and the script, event by event. Returns the number of ties."""
    slow = result_of(game, "reference")
    if compiled:
        fast = result_of(game, "auto")
        assert fast.engine == ("fast" if is_compiled(game) else "reference"), told(game)
        for name in ("actions", "agent_regret", "agent_rounds", "messages", "wire_bytes"):
            np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name), err_msg=told(game))
    assert_regret_of_those_present(game, slow)
    return ties_against_oracle(game, actions_in(slow))


@each_case
def test_the_engines_equal_the_script(policy: str, estimator: str) -> None:
    """Of the compiled engine one mean here: each takes long to compile. The slow test has them all."""
    compiled = (policy, estimator) in COMPILED
    ties = [check(random_game(seed, policy, estimator), compiled) for seed in range(8)]
    assert sum(ties) <= 4


@pytest.mark.slow
@each_case
def test_the_engines_equal_the_script_in_thousands(policy: str, estimator: str) -> None:
    assert sum(check(random_game(seed, policy, estimator)) for seed in range(100, 400)) <= 60


@pytest.mark.parametrize("policy", ["decentralized", "centralized", "kmp", "origins", "consensus"])
def test_games_of_any_shape(policy: str) -> None:
    """One agent, one round, nobody there, no links: what hypothesis likes to draw."""

    @settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=SLOW_TO_DRAW)
    @given(games(policy, "trimmed"))
    def each(game: Game) -> None:
        check(game)

    each()
