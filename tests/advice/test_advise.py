"""Advice on specs: the choice by hand, moments of laws, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import rumormill as rm
from rumormill.advice.advise import Advice, advise, code_of
from rumormill.advice.figures import pareto_figure
from rumormill.advice.problem import Case, case_of_spec
from rumormill.advice.search import Candidate, CandidateOutcome, choose
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


def outcome(
    policy: str, gamma: int, regret: NDArray[np.float64], messages: float, estimator: str = "trimmed"
) -> CandidateOutcome:
    return CandidateOutcome(Candidate(policy, gamma, estimator, 1.0), regret, messages, 20 * messages)


NOISE = np.random.default_rng(4).normal(0, 3, 20)
FULL = np.full(20, 100.0)


def test_fewer_messages_win_where_the_interval_ends_within_the_margin() -> None:
    far, near = outcome("kmp", 3, FULL, 50), outcome("kmp", 1, FULL + NOISE - NOISE.mean() + 0.1, 10)
    found = choose([far, near], light=False)
    assert (found.best, found.chosen) == (far, near)
    assert found.worse[near.candidate].low < 0 < found.worse[near.candidate].high


def test_the_end_of_the_interval_decides_not_its_middle() -> None:
    """9.5 % worse is within the margin of 10 %, but it may be more."""
    far, near = outcome("kmp", 3, FULL, 50), outcome("kmp", 1, FULL + NOISE - NOISE.mean() + 9.5, 10)
    found = choose([far, near], light=False)
    assert found.chosen is far
    assert found.worse[near.candidate].estimate < 0.1 < found.worse[near.candidate].high
    assert found.front == (near.candidate, far.candidate)


def test_much_worse_settings_lose_even_if_it_may_be_chance() -> None:
    wild = np.where(np.arange(20) == 0, 2_000.0, 0.0) + 20  # 20 % worse, by one bad trial
    far, near = outcome("kmp", 3, FULL, 50), outcome("kmp", 1, wild, 10)
    found = choose([far, near], light=False)
    assert found.worse[near.candidate].low < 0
    assert found.chosen is far


def test_the_empirical_mean_is_for_light_tails() -> None:
    robust, plain = outcome("kmp", 1, FULL, 10), outcome("kmp", 1, FULL / 2, 10, "empirical")
    assert choose([robust, plain], light=False).chosen is robust
    assert choose([robust, plain], light=True).chosen is plain


def test_only_finalists_are_chosen_and_others_are_made_comparable() -> None:
    final = outcome("kmp", 3, np.concatenate([np.full(10, 50.0), np.full(10, 150.0)]), 50)
    lucky = outcome("kmp", 2, np.full(10, 60.0), 30)  # its trials were easy for the other too
    found = choose([final, lucky], light=False)
    assert found.chosen is final
    assert found.worse[lucky.candidate].estimate == pytest.approx(0.2)
    assert found.scale(lucky) == pytest.approx(2.0)


def test_a_best_that_never_errs() -> None:
    none, some = outcome("kmp", 3, np.zeros(10), 50), outcome("kmp", 1, np.ones(10), 10)
    found = choose([none, some], light=False)
    assert found.chosen is none
    assert found.scale(some) == 1.0


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
    assert eval(code_of(candidate, moments), {"rm": rm}) == candidate.build(moments)


def test_the_code_of_the_centralized_policy() -> None:
    made = eval(
        code_of(Candidate("centralized", 2, "trimmed", 0.3), rm.Moments(eps=1, u=1, rho=1)), {"rm": rm}
    )
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
        advise(heavy_case(), network, **wrong)  # type: ignore[arg-type]


def test_the_figure_shows_every_setting(network: rm.Network) -> None:
    advice = advise(heavy_case(), network, horizon=30, trials=5)
    figure = pareto_figure(advice)
    (axes,) = figure.axes
    shown = [line for line in axes.get_lines() if line.get_linestyle() == "None" and line.get_marker() != "*"]
    assert sum(np.size(line.get_xdata()) for line in shown) >= len(advice.outcomes)
    assert "hollow: for comparison" in axes.get_legend_handles_labels()[1]
    assert str(advice.chosen) in axes.get_title()
