"""Bounds where messages are lost or late: by hand on a complete graph, which one clique covers."""

import math

import pytest

import rumormill as rm
from rumormill.theory import regret_bound

BANDIT = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
COMPLETE, STAR = rm.Network.complete(6), rm.Network.star(5)
POLICY = rm.DecentralizedMPUCB(gamma=1, clique_filter=False, c="theory", confidence="anytime")
T = 1000


def bound(policy: rm.Policy, network: rm.Network = COMPLETE, **world: object) -> rm.theory.Bound:
    return regret_bound(BANDIT, network, policy, T, world=rm.World(**world))  # type: ignore[arg-type]


def test_a_perfect_world_changes_nothing() -> None:
    assert (
        bound(POLICY)
        == bound(POLICY, channel=rm.Imperfect(p=1.0))
        == regret_bound(BANDIT, COMPLETE, POLICY, T)
    )


def test_loss_puts_everybody_half_apart() -> None:
    """p = 1/2, one clique of six: as if 6 * 1/2 + 1 * 1/2 = 3.5 groups learnt apart."""
    perfect, lossy = bound(POLICY), bound(POLICY, channel=rm.Imperfect(p=0.5))
    assert lossy.terms["learning"] == pytest.approx(3.5 * perfect.terms["learning"])
    assert lossy.covered == perfect.covered
    alone = regret_bound(BANDIT, COMPLETE, rm.RobustUCB(c="theory", confidence="anytime"), T)
    nothing = bound(POLICY, channel=rm.Imperfect(p=0.0))
    assert nothing.terms["learning"] == pytest.approx(alone.terms["learning"])


def test_discarding_on_a_star() -> None:
    """The centre uses a quarter, leaves everything; the cover has four cliques: 3/4 + 4 groups."""
    unfiltered, less = (
        bound(POLICY, STAR),
        bound(rm.DecentralizedMPUCB(gamma=1, discard="RCL-LF", c="theory", confidence="anytime"), STAR),
    )
    assert less.terms["learning"] == pytest.approx(unfiltered.terms["learning"] * 4.75 / 4)


def test_delay_adds_what_is_under_way() -> None:
    """delay=4: two rounds in the mean, of six agents; the gaps sum to 1."""
    late = bound(POLICY, channel=rm.Imperfect(delay=4))
    assert late.terms["late"] == pytest.approx(12 + 2 * math.log(T) + 2 * math.sqrt(12 * math.log(T)))
    assert late.covered == bound(POLICY).covered
    assert rm.Imperfect(delay=("geometric", 0.5, 3)).mean_delay == pytest.approx(1 / 2 + 1 / 4 + 1 / 8)


def test_what_no_argument_covers_says_so() -> None:
    liar = rm.Byzantine(agents=[0])
    uncovered = [
        bound(rm.KMPUCB(gamma=1, c="theory", confidence="anytime"), channel=rm.Imperfect(p=0.9)),
        bound(POLICY, byzantine=liar),
        bound(POLICY, absences=((0, 1, 5),)),
    ]
    for each in uncovered:
        assert not each.covered
        assert each.assumptions[0].text.startswith("The argument assumes that all messages arrive")
    alone = bound(rm.RobustUCB(c="theory", confidence="anytime"), byzantine=liar)
    assert "every message" not in alone.assumptions[0].text
