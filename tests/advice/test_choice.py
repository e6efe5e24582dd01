"""What stops bad cooperation, check by check: each test fails if its check alone is taken out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rumormill as rm
from helpers.given_outcomes import AGENTS_ALONE, FULL, Given, chosen_of, outcome
from rumormill.advice import search
from rumormill.advice.problem import ALONE, TOGETHER, ZETAS, Candidate, Outcome
from rumormill.advice.search import LADDER, choose, explore
from rumormill.stats import Interval

ODD = np.where(np.arange(20) % 2, 1.0, -1.0)  # as often up as down


def test_cooperation_much_better_on_average_but_not_surely_is_not_chosen() -> None:
    """Far beyond the margin, so agents alone do not come back as the cheapest of the near ones."""
    unsure = outcome("kmp", 1, 150.0 + 200.0 * ODD, 10)
    found = chosen_of(unsure)
    assert found.best is found.chosen is AGENTS_ALONE
    assert found.sharing is not None
    assert found.sharing[1].estimate == -50 < 0 < found.sharing[1].high


def test_an_interval_that_ends_at_zero_is_enough() -> None:
    assert Given([]).excess(outcome("kmp", 1, FULL, 1), outcome("robust", 0, FULL, 0)).high == 0.0
    same = outcome("kmp", 1, np.full(20, 200.0), 10)
    found = chosen_of(same, alone=[replace(AGENTS_ALONE, messages=20.0)])
    assert found.chosen is same


@pytest.mark.parametrize(("recorded", "cooperates"), [(210.0, True), (210.1, False)])
def test_cooperation_that_lost_more_in_the_recorded_order_is_not_chosen(
    recorded: float, cooperates: bool
) -> None:
    """Better in every resample; in the recorded order it may lose the margin more: 5 % of 200."""
    stuck = replace(outcome("kmp", 1, FULL, 10), recorded=recorded)
    assert chosen_of(stuck).chosen.candidate.cooperates == cooperates


def test_the_order_of_the_whole_log_may_reject_cooperation() -> None:
    good = outcome("kmp", 1, FULL, 10)
    assert chosen_of(good).rejected is None
    found = chosen_of(good, against=True)
    assert (found.chosen, found.rejected) == (AGENTS_ALONE, good.candidate)
    assert found.against_alone == Interval(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("loss", "paid", "rejected"),
    [
        (200.0 + 5 * ODD + 4, 190.0 + 5 * ODD, True),  # loses surely more
        (190.0 + 5 * ODD, 200.0 + 5 * ODD + 4, True),  # pays surely more
        (200.0 + 50 * ODD + 1, 200.0 + 50 * ODD + 1, True),  # both more, neither surely
        (200.0 + 50 * ODD + 1, 200.0 + 50 * ODD - 1, False),
        (200.0 + 50 * ODD - 1, 200.0 + 50 * ODD + 1, False),
        (190.0 + 5 * ODD, 190.0 + 5 * ODD, False),
    ],
)
def test_when_fresh_data_reject_cooperation(loss: np.ndarray, paid: np.ndarray, rejected: bool) -> None:
    good = outcome("kmp", 1, FULL, 10)
    found = chosen_of(good, fresh=[AGENTS_ALONE, replace(good, loss=loss, paid=paid)])
    assert (found.rejected is not None) == rejected
    assert found.chosen is (AGENTS_ALONE if rejected else good)


def test_agents_alone_are_never_rejected() -> None:
    worse = outcome("kmp", 1, 3 * FULL, 10)
    found = chosen_of(worse, against=True)
    assert (found.chosen, found.rejected) == (AGENTS_ALONE, None)


def with_zeta(one: Outcome, zeta: float) -> Outcome:
    return replace(one, candidate=replace(one.candidate, zeta=zeta))


def test_of_equally_cheap_ones_the_largest_constant() -> None:
    bold, careful = (with_zeta(outcome("robust", 0, 2 * FULL, 0), zeta) for zeta in (0.1, 0.3))
    assert chosen_of(alone=[bold, replace(careful, loss=2 * FULL + 9)]).chosen.candidate.zeta == 0.3
    assert chosen_of(alone=[bold, replace(careful, loss=2 * FULL + 11)]).chosen.candidate.zeta == 0.1


def test_agents_alone_of_another_constant_must_not_be_much_worse_in_the_recorded_order() -> None:
    bold, careful = (with_zeta(outcome("robust", 0, 2 * FULL, 0), zeta) for zeta in (0.1, 0.3))
    assert chosen_of(alone=[bold, replace(careful, recorded=210.0)]).chosen.candidate.zeta == 0.3
    assert chosen_of(alone=[bold, replace(careful, recorded=211.0)]).chosen.candidate.zeta == 0.1


# --- restarts -------------------------------------------------------------------------------------------


def drifting(losses: dict[int, float], rounds: int) -> Given:
    """Agents alone that lose so much with a restart of each length, 200 without."""
    others = [
        replace(
            AGENTS_ALONE, candidate=replace(AGENTS_ALONE.candidate, restart=length), loss=np.full(20, loss)
        )
        for length, loss in losses.items()
    ]
    problem = Given([AGENTS_ALONE, *others])
    problem.drifts, problem.rounds = True, rounds
    return problem


def test_the_best_restart_is_found_and_short_ones_are_not_tried() -> None:
    finals = {ALONE: [AGENTS_ALONE]}
    restart = choose(drifting({80: 180.0, 40: 150.0, 20: 190.0}, 160), finals).restart
    assert restart == (40, Interval(-50.0, -50.0, -50.0))
    assert choose(drifting({79: 201.0, 39: 200.0}, 159), finals).restart is None  # 159 // 8 is too short
    calm = drifting({80: 180.0, 40: 150.0, 20: 190.0}, 160)
    calm.drifts = False
    assert choose(calm, finals).restart is None


# --- the search -----------------------------------------------------------------------------------------


class Formula(Given):
    """A loss for every candidate, by formula."""

    def __init__(self, best_zeta: float) -> None:
        super().__init__([], light=False)
        self.networks, self.best = {TOGETHER: rm.Network.path(6)}, best_zeta

    def play(self, candidates: list[Candidate], *, look: bool = False) -> list[Outcome]:  # type: ignore[override]
        for each in candidates:
            away = 90 if each.zeta is None else abs(LADDER.index(each.zeta) - LADDER.index(self.best))
            away += 5 * each.cooperates * (each.levels != self.tried_levels)
            loss = np.full(4, 100.0 + away + (20 if each.policy == "robust" else each.gamma))
            sent = 0.0 if each.policy == "robust" else 10.0 * each.gamma
            self._played[each] = Outcome(each, loss, loss, sent, sent, float(loss.mean()))
        return [self._played[each] for each in candidates]


@pytest.mark.parametrize("best", [LADDER[0], ZETAS[0], LADDER[-1]])
def test_the_constant_is_sought_beyond_the_grid(best: float) -> None:
    found = explore(Formula(best), ["clipped"])
    for outcomes in found.values():
        assert min(outcomes, key=lambda each: each.score).candidate.zeta == best


def test_finalists_by_hand() -> None:
    """The two best ways, then only those that send less; each with the next two larger constants."""
    found = explore(Formula(0.1), ["clipped", "median-of-means"])
    assert set(found) == {ALONE, TOGETHER}
    assert [each.candidate.zeta for each in found[ALONE][:3]] == [0.1, 0.3, 1.0]
    assert len(found[ALONE]) == search.WAYS * (1 + search.CAREFUL)
    assert {each.candidate.gamma for each in found[TOGETHER]} == {1, 3}  # equal losses at γ = 1 are one way
    problem = Formula(0.1)
    explore(problem, ["clipped"])
    tried = {each.gamma for each in problem.played if each.cooperates}
    assert tried == {1, 3, 5}  # one hop, half the diameter, all of it
    assert {each.policy for each in problem.played} == {
        "robust",
        "decentralized",
        "centralized",
        "kmp",
        "default",
    }
    assert [each.gamma for each in problem.played if each.policy == "default"] == [5]
    assert not any(each.levels for each in problem.played)


@pytest.mark.parametrize("level", ["offsets", "scales"])
def test_levels_are_tried_where_agents_differ_and_chosen_where_they_gain(level: str) -> None:
    """Those that share, with every mean; then policies and hop budgets with the two best, and the default."""
    problem = Formula(0.1)
    problem.tried_levels = (level,)
    found = explore(problem, ["clipped", "median-of-means"])
    tried = [each for each in problem.played if each.levels]
    assert {each.levels for each in tried} == {(level,)}
    assert {each.estimator for each in tried} == {"clipped", "median-of-means", None}
    assert {each.policy for each in tried} == {"decentralized", "centralized", "kmp", "default"}
    assert all(each.candidate.levels for each in found[TOGETHER][:3])
    assert not any(each.candidate.levels for each in found[ALONE])


@pytest.mark.parametrize("level", ["offsets", "scales"])
def test_of_equally_good_ones_that_without_levels(level: str) -> None:
    plain = outcome("kmp", 1, FULL, 10)
    less = replace(plain, candidate=replace(plain.candidate, levels=(level,), zeta=3.0), loss=0.99 * FULL)
    alone = outcome("robust", 0, 2 * FULL, 0)
    assert search._simplest(Given([plain, less]), [plain, less], less, 0.05 * alone.mean) is plain
    assert search._simplest(Given([plain, less]), [plain, less], less, 0.001 * alone.mean) is less


def test_ways_that_send_less_reach_the_final_unless_they_lose_twice_as_much() -> None:
    dear = [outcome("kmp", gamma, FULL + gamma, 100.0 * gamma) for gamma in (1, 2)]
    cheap, poor = outcome("centralized", 1, 2 * FULL, 10), outcome("decentralized", 1, 2.1 * FULL, 5)
    dear_too = outcome("centralized", 2, 1.5 * FULL, 100)
    ranked = sorted([*dear, cheap, poor, dear_too], key=lambda each: each.score)
    finalists = {(each.policy, each.gamma) for each in search._finalists(ranked)}
    assert finalists == {("kmp", 1), ("kmp", 2), ("centralized", 1)}


def test_equal_actions_are_one_way_the_cheapest() -> None:
    """On a complete network policies play alike: no second place in the final for the same losses."""
    first, same = outcome("kmp", 1, FULL, 10), outcome("centralized", 1, FULL, 10)
    cheaper = outcome("decentralized", 1, FULL, 5)
    assert {each.policy for each in search._finalists([first, same])} == {"kmp"}
    assert {each.policy for each in search._finalists([first, cheaper])} == {"kmp", "decentralized"}
