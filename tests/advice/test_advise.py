"""Advice on specs: the choice by hand, moments of laws, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import rumormill as rm
from helpers.given_outcomes import AGENTS_ALONE, FULL, NOISE, Given, chosen_of, outcome
from rumormill.advice.advise import Advice, advise, pareto_front, scale
from rumormill.advice.page import pareto_figure
from rumormill.advice.problem import Candidate, Case, case_of_spec, relative_excess
from rumormill.advice.search import MARGIN
from rumormill.experiments.spec.reading import at_scale, decode, named_spec


@pytest.fixture(scope="module")
def network() -> rm.Network:
    return rm.Network.erdos_renyi(20, 0.15, rng=1)


def heavy_case() -> Case:
    return spec_case(arms={"law": "alpha-stable", "alpha": 1.5, "means": [0.0, 0.3, 0.6, 0.9]})


def test_advice_depends_on_the_seed_alone(network: rm.Network) -> None:
    def once(jobs: int, seed: int) -> Advice:
        return advise(heavy_case(), network, horizon=40, trials=5, seed=seed, jobs=jobs)

    assert once(1, 3).as_dict() == once(2, 3).as_dict()
    assert once(2, 3).as_dict() != once(2, 4).as_dict()


def test_a_lone_agent_and_a_network_in_parts_get_advice_too() -> None:
    case = spec_case()
    alone = advise(case, rm.Network.complete(1), horizon=30, trials=5)
    assert {outcome.candidate.policy for outcome in alone.outcomes} == {"robust"}
    assert alone.choice.chosen.messages == 0
    parts = rm.Network.erdos_renyi(10, 0.05, rng=1, connected=False)
    assert len(parts.components) > 1
    apart = advise(case, parts, horizon=30, trials=5)
    assert "consensus" not in {outcome.candidate.policy for outcome in apart.outcomes}


# --- the choice, by hand --------------------------------------------------------------------------------


def test_fewer_messages_win_where_the_interval_ends_within_the_margin() -> None:
    far, near = outcome("kmp", 3, FULL, 50), outcome("kmp", 1, FULL + NOISE - NOISE.mean() + 0.1, 10)
    found = chosen_of(far, near)
    assert (found.best, found.chosen) == (far, near)
    assert found.excess[near.candidate].low < 0 < found.excess[near.candidate].high


def test_the_end_of_the_interval_decides_not_its_middle() -> None:
    """A regret of 9.5 more is within the margin (5 % of the 200 of agents alone), but it may be more."""
    far, near = outcome("kmp", 3, FULL, 50), outcome("kmp", 1, FULL + NOISE - NOISE.mean() + 9.5, 10)
    found = chosen_of(far, near)
    assert found.chosen is far
    assert found.excess[near.candidate].estimate < MARGIN * 200 < found.excess[near.candidate].high
    worse = {each.candidate: relative_excess(each, far) for each in (far, near)}
    assert pareto_front([far, near], worse) == (near.candidate, far.candidate)


def test_much_worse_settings_lose_even_if_it_may_be_chance() -> None:
    wild = np.where(np.arange(20) == 0, 2_000.0, 0.0) + 20  # 20 % worse, by one bad trial
    far, near = outcome("kmp", 3, FULL, 50), outcome("kmp", 1, wild, 10)
    found = chosen_of(far, near)
    assert found.excess[near.candidate].low < 0
    assert found.chosen is far


def test_cooperation_that_may_be_worse_than_agents_alone_is_not_recommended() -> None:
    unsure = outcome("kmp", 1, np.full(20, 199.0) + 5 * (NOISE - NOISE.mean()), 10)
    found = chosen_of(unsure)
    assert found.chosen is AGENTS_ALONE
    assert found.sharing is not None
    assert found.sharing[1].estimate < 0 < found.sharing[1].high


def test_fresh_trials_may_reject_cooperation() -> None:
    lucky = outcome("kmp", 1, FULL, 10)
    found = chosen_of(lucky, fresh=[AGENTS_ALONE, outcome("kmp", 1, 3 * FULL, 10)])
    assert (found.chosen, found.rejected) == (AGENTS_ALONE, lucky.candidate)


def test_the_empirical_mean_is_for_light_tails() -> None:
    robust, plain = outcome("kmp", 1, FULL, 10), outcome("kmp", 1, FULL / 2, 10, "empirical")
    assert not Given([robust, plain], light=False).allows(plain.candidate)
    assert Given([robust, plain], light=True).allows(plain.candidate)
    assert chosen_of(robust, plain, light=True).chosen is plain
    heavy = advise(heavy_case(), rm.Network.ring(4), horizon=30, trials=5)
    assert "empirical" not in {each.candidate.estimator for each in heavy.choice.finals}
    assert "empirical" in {each.candidate.estimator for each in heavy.outcomes}


def test_outcomes_over_fewer_trials_are_made_comparable() -> None:
    final = outcome("kmp", 3, np.concatenate([np.full(10, 50.0), np.full(10, 150.0)]), 50)
    lucky = outcome("kmp", 2, np.full(10, 60.0), 30)  # its trials were easy for the other too
    worse = {each.candidate: relative_excess(each, final) for each in (final, lucky)}
    assert worse[lucky.candidate].estimate == pytest.approx(0.2)
    assert scale(lucky, final) == pytest.approx(2.0)
    assert pareto_front([final, lucky], worse) == (lucky.candidate, final.candidate)


def test_only_finalists_are_chosen(network: rm.Network) -> None:
    advice = advise(heavy_case(), network, horizon=30, trials=5)
    assert len(advice.choice.chosen.loss) == max(len(each.loss) for each in advice.outcomes) == 15
    assert {len(each.loss) for each in advice.outcomes} == {5, 15}


def test_a_best_that_never_errs() -> None:
    none, some = outcome("kmp", 3, np.zeros(10), 50), outcome("kmp", 1, np.full(10, 11.0), 10)
    found = chosen_of(none, some)
    assert found.chosen is none
    assert scale(some, none) == 1.0
    assert relative_excess(some, none).estimate == np.inf


# --- laws -----------------------------------------------------------------------------------------------

RAW = {
    "name": "mine",
    "seed": 1,
    "horizon": 50,
    "trials": 2,
    "network": {"kind": "ring", "n": 6},
    "arms": {"law": "gaussian", "means": [0.0, 2.0]},
    "policies": [{"type": "kmp", "zeta": 1.0}],
}


def spec_case(**changes: object) -> Case:
    return case_of_spec(at_scale(decode({**RAW, **changes})))


def test_moments_of_laws_are_exact() -> None:
    gaussian = spec_case()
    assert gaussian.light
    assert (gaussian.moments.eps, gaussian.moments.u, gaussian.moments.rho) == pytest.approx((1.0, 5.0, 1.0))
    stable = spec_case(arms={"law": "alpha-stable", "alpha": 1.9, "eps": 0.8, "K": 3})
    assert not stable.light
    # Uniform means: the worst is a mean of 1.
    law = rm.AlphaStable(alpha=1.9, loc=1.0)
    assert (stable.moments.u, stable.moments.rho) == (law.moment(1.8), law.moment(1.8, central=True))
    assert stable.reasons[0] == "ε = 0.8: given by the spec."


def test_a_spec_must_be_one_problem() -> None:
    sweeping = {"law": "alpha-stable", "alpha": 1.9, "K": 3}
    with pytest.raises(rm.InputError, match="mine sweeps alpha: advice is for one network and one law"):
        spec_case(arms=sweeping, sweep={"alpha": [1.5, 1.9]})
    assert spec_case(sweep={"gamma": [1, 2]}).moments == spec_case().moments
    assert case_of_spec(at_scale(named_spec("fig1a"), "quick")).moments.eps == pytest.approx(0.765)


@pytest.mark.parametrize(
    "candidate",
    [
        Candidate("decentralized", 2, "trimmed", 0.3),
        Candidate("kmp", 1, "median-of-means", 0.03),
        Candidate("robust", 0, "catoni", 1.0),
        Candidate("consensus", 1),
    ],
)
def test_the_code_shown_makes_the_policy_played(candidate: Candidate) -> None:
    moments = rm.Moments(eps=0.25, u=3.5, rho=2.5)
    assert eval(candidate.code(moments), {"rm": rm}) == candidate.build(moments)


def test_the_code_of_the_centralized_policy() -> None:
    made = eval(Candidate("centralized", 2, "trimmed", 0.3).code(rm.Moments(eps=1, u=1, rho=1)), {"rm": rm})
    assert (made.gamma, made.leaders, made.zeta) == (2, "dominating", 0.3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 4}, "trials = 4 is not allowed: comparisons need at least 5"),
        ({"horizon": 4}, "horizon = 4 is not allowed: the first 4 rounds"),
        ({"estimators": ["trimed"]}, "estimator 'trimed' is unknown: did you mean 'trimmed'"),
        (
            {"estimators": ["clipped", "catoni-bound"]},
            "'catoni-bound' brings its own index, so there is no ζ",
        ),
        ({"estimators": ["empirical"]}, "the empirical mean alone cannot be recommended"),
    ],
)
def test_wrong_questions(wrong: dict[str, object], message: str, network: rm.Network) -> None:
    with pytest.raises(rm.InputError, match=message):
        advise(heavy_case(), network, **wrong)  # type: ignore[call-overload]


def test_the_figure_shows_every_setting(network: rm.Network) -> None:
    advice = advise(heavy_case(), network, horizon=30, trials=5)
    figure = pareto_figure(advice)
    (axes,) = figure.axes
    shown = [line for line in axes.get_lines() if line.get_linestyle() == "None" and line.get_marker() != "*"]
    assert sum(np.size(line.get_xdata()) for line in shown) >= len(advice.outcomes)
    assert "hollow: for comparison" in axes.get_legend_handles_labels()[1]
    assert str(advice.chosen) in axes.get_title()
