"""How agents start: warm, cold, or with an arm that they keep; each rule fails alone if it is taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.given_outcomes import AGENTS_ALONE, FULL, Given, outcome
from rumormill.advice.problem import ALONE, FIXED, IN_GROUPS, OWN, TOGETHER, Candidate, Outcome
from rumormill.advice.replay import Knowledge
from rumormill.advice.search import Start, choose

ODD = np.where(np.arange(20) % 2, 1.0, -1.0)
MOMENTS = rm.Moments(eps=1.0, u=1.0, rho=1.0)
SHARING = outcome("kmp", 1, FULL, 10)


def as_started(
    one: Outcome, *, zeta: float = 1.0, warm: bool = True, loss: Any = None, paid: Any = None
) -> Outcome:
    """The outcome of the same setting after the first part."""
    loss = one.loss if loss is None else np.broadcast_to(loss, 20).astype(float)
    paid = loss if paid is None else np.broadcast_to(paid, 20).astype(float)
    return replace(
        one,
        candidate=replace(one.candidate, zeta=zeta, warm=warm),
        loss=loss,
        paid=paid,
        recorded=float(loss.mean()),
    )


def kept(name: str, loss: Any, paid: Any = None) -> Outcome:
    one = as_started(outcome("robust", 0, FULL, 0), loss=loss, paid=paid)
    return replace(one, candidate=Candidate(FIXED, 0, network=name))


def started(*after: Outcome, sharing: bool = False, drifts: bool = False) -> Start:
    """The start, where all warm constants lose 100 and fixed arms 300 unless `after` says otherwise."""
    usual = [
        as_started(one, zeta=zeta, loss=100.0)
        for one in ([AGENTS_ALONE, SHARING] if sharing else [AGENTS_ALONE])
        for zeta in (1.0, 3.0, 10.0)
    ]
    usual += [as_started(AGENTS_ALONE, warm=False), kept(OWN, 300.0), kept(TOGETHER, 300.0)]
    usual += [as_started(SHARING, warm=False, loss=300.0)] if sharing else []
    found = {each.candidate: each for each in (*usual, *after)}
    finals = {ALONE: [AGENTS_ALONE], TOGETHER: [SHARING] if sharing else []}
    problem = Given([AGENTS_ALONE, SHARING], after=list(found.values()))
    problem.drifts, problem.rounds = drifts, 10
    start = choose(problem, finals).start
    assert start is not None
    return start


def test_a_warm_start_is_the_rule_with_the_largest_constant_that_does_as_well() -> None:
    start = started()
    assert start.chosen is start.learner
    assert (start.chosen.candidate.warm, start.chosen.candidate.zeta) == (True, 10.0)
    worse = as_started(AGENTS_ALONE, zeta=10.0, loss=106.0)
    assert started(worse).chosen.candidate.zeta == 3.0


@pytest.mark.parametrize(
    ("loss", "warm"), [(209.0 + 50 * ODD, True), (211.0 + 50 * ODD, False), (201.0, False)]
)
def test_a_warm_start_that_is_worse_by_the_margin_or_surely_is_cold(loss: Any, warm: bool) -> None:
    ones = [as_started(AGENTS_ALONE, zeta=zeta, loss=loss) for zeta in (1.0, 3.0, 10.0)]
    assert started(*ones).chosen.candidate.warm == warm


@pytest.mark.parametrize(
    ("loss", "paid", "cooperates"),
    [(99.0, 99.0, True), (100.0, 100.0, True), (101.0, 101.0, False), (101 + 50 * ODD, 99 + 50 * ODD, True)],
)
def test_messages_stay_unless_the_later_games_contradict_them(loss: Any, paid: Any, cooperates: bool) -> None:
    ones = [as_started(SHARING, zeta=zeta, loss=loss, paid=paid) for zeta in (1.0, 3.0, 10.0)]
    assert started(*ones, sharing=True).chosen.candidate.cooperates == cooperates


@pytest.mark.parametrize(
    ("paid", "drifts", "fixed"),
    [(95.0, False, True), (95.5, False, False), (95.0, True, True), (80.0 + 50 * ODD, True, False)],
)
def test_arms_are_kept_only_where_that_surely_pays_five_per_cent(
    paid: Any, drifts: bool, fixed: bool
) -> None:
    """Less is better: what learns pays 100."""
    found = started(kept(OWN, 50.0, paid), drifts=drifts)
    assert found.chosen.candidate.fixed == fixed
    assert not found.learner.candidate.fixed
    assert found.best_fixed.candidate.network == OWN


def test_a_spec_has_no_past() -> None:
    assert choose(Given([AGENTS_ALONE]), {ALONE: [AGENTS_ALONE]}).start is None


# --- knowledge ------------------------------------------------------------------------------------------


def knowledge(sign: float = 1.0) -> Knowledge:
    """Three agents, the last two in a group; agent 2 never tried arm 1."""
    values = np.zeros((40, 3, 2))
    values[:, 0] = [1.0, 2.0]
    values[:, 1] = [5.0, 4.0]
    values[:, 2] = [6.0, 99.0]
    recorded = np.ones(values.shape, dtype=np.bool_)
    recorded[:, 2, 1] = False
    recorded[5:, 0, 0] = False
    values[5:, 0, 0] = 77.0  # imputed: does not count
    return Knowledge(values, recorded, np.array([0, 1, 1]), sign, MOMENTS)


def test_a_prior_counts_what_was_recorded_and_borrows_an_untried_arm_from_the_group() -> None:
    prior = knowledge().prior("empirical")
    np.testing.assert_allclose(np.array(prior.mean, float), [[1.0, 2.0], [5.0, 4.0], [6.0, 4.0]])
    np.testing.assert_array_equal(prior.n, [[5, 40], [40, 40], [40, 1]])


@pytest.mark.parametrize("name", ["clipped", "median-of-means", "empirical"])
def test_a_prior_is_made_by_the_estimator_itself(name: str) -> None:
    values = np.random.default_rng(1).pareto(1.5, (200, 1, 2))
    known = Knowledge(values, np.ones(values.shape, dtype=np.bool_), np.zeros(1, int), 1.0, MOMENTS)
    estimator = rm.catalogue.make("estimator", name)
    wanted = [estimator.of(values[:, 0, k].tolist(), 2 * np.log(200), MOMENTS) for k in range(2)]
    np.testing.assert_allclose(np.array(known.prior(name).mean, float), [wanted])


@pytest.mark.parametrize(
    ("network", "sign", "arms"),
    [
        (OWN, 1.0, [1, 0, 0]),
        (IN_GROUPS, 1.0, [1, 0, 0]),
        (TOGETHER, 1.0, [0, 0, 0]),
        (OWN, -1.0, [0, 1, 0]),
        (IN_GROUPS, -1.0, [0, 1, 1]),
    ],
)
def test_the_arms_to_keep(network: str, sign: float, arms: list[int]) -> None:
    assert knowledge(sign).best_arms(Candidate(FIXED, 0, network=network)).tolist() == arms


def test_the_names_of_candidates() -> None:
    assert str(Candidate(FIXED, 0, network=OWN)) == "Always the own best arm"
    assert Candidate(FIXED, 0, network=OWN).kind == FIXED
    assert str(Candidate("robust", 0, "clipped", 0.1, warm=True)) == "Alone, clipped, ζ=0.1, warm start"


def test_a_warm_start_that_is_left_out_is_remembered_with_its_loss() -> None:
    ones = [as_started(AGENTS_ALONE, zeta=zeta, loss=211.0 + 50 * ODD) for zeta in (1.0, 3.0, 10.0)]
    dropped = started(*ones).dropped
    assert dropped is not None
    assert dropped.estimate == pytest.approx(11.0)
    assert started().dropped is None
