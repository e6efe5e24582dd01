"""Advice on logs whose truth is known: the right sentence, and a setting that is good on fresh data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import (
    LAWS,
    Truth,
    chosen_only,
    common_shocks,
    evaluate,
    homogeneous,
    log_of,
    missing,
    one_change,
    own_arms,
    slow_drift,
    two_clusters,
)
from rumormill.advice.advise import advise
from rumormill.advice.model_checks import check_model
from rumormill.advice.page import model_figure, page_html, price_figure
from rumormill.advice.problem import IN_GROUPS, TOGETHER, Candidate, restricted
from rumormill.advice.reading.log import Log
from rumormill.advice.replay import (
    ReplayOutcome,
    block_length,
    interval_of_differences,
    resampled,
    shrunk_means,
)
from rumormill.advice.report_text import LogAdvice, everything, findings, recommendation
from rumormill.advice.reward_table import build_reward_table
from rumormill.advice.search import MARGIN

SAME, APART = "face the same arms", "The arms are not the same for all agents"
STILL, MOVES = "Nothing changes over time", "The arms change over time"


@dataclass(frozen=True)
class Known:
    """A truth, what is done to its log, and what must be said."""

    make: Callable[[], Truth]
    sentences: tuple[str, ...]
    dress: Callable[[Log, int], Log] = lambda log, seed: log
    homogeneous: bool = False

    def advice(self, seed: int) -> tuple[Truth, LogAdvice]:
        truth = self.make()
        return truth, advise(self.dress(log_of(truth.table(seed)), seed), seed=seed, jobs=1)


KNOWN: dict[str, Known] = {
    **{law: Known(lambda law=law: homogeneous(law), (SAME, STILL), homogeneous=True) for law in LAWS},  # type: ignore[misc]
    "two clusters": Known(two_clusters, (APART, "2 groups", STILL)),
    "every agent its own": Known(own_arms, (APART, "8 groups", STILL)),
    "one change": Known(one_change, (SAME, MOVES, "the best arm changes")),
    "slow drift": Known(slow_drift, (SAME, MOVES, "the best arm changes")),
    "common shocks": Known(common_shocks, (SAME, STILL, "a shock that hits all agents"), homogeneous=True),
    "30 % missing": Known(
        lambda: homogeneous("alpha 1.5"), (SAME, STILL), lambda log, seed: missing(log, 0.3, seed), True
    ),
    "chosen arm only": Known(lambda: homogeneous("gaussian"), (SAME, STILL), chosen_only, True),
    "clusters, chosen arm only": Known(two_clusters, (APART, "2 groups"), chosen_only),
}
WORSE_ALLOWED = 0.05


@pytest.mark.parametrize("name", KNOWN)
def test_the_right_sentence_and_a_good_setting(name: str) -> None:
    truth, advice = KNOWN[name].advice(50)
    said = " ".join(everything(advice))
    for sentence in KNOWN[name].sentences:
        assert sentence in said, said
    fresh = evaluate(truth, advice)
    assert (fresh.recommended - fresh.alone).mean() <= WORSE_ALLOWED * fresh.scale
    liked = (
        advice.choice.chosen.candidate
    )  # in cold starts; with what the log knows messages may gain nothing
    if KNOWN[name].homogeneous:
        assert liked.cooperates
        assert fresh.recommended.mean() < fresh.alone.mean()
    if name == "two clusters":
        assert liked.network == IN_GROUPS
    if name == "every agent its own":
        assert not liked.cooperates


@pytest.mark.slow
def test_two_hundred_logs() -> None:
    """Never worse than agents alone by more than 5 %; near the best candidate where all agents are alike.

    Both by the one-sided 95 % interval over eight fresh games of each of 208 logs, so a log on the very
    border fails in one of twenty. The settings of a final differ by rare games only (a group gets stuck), so
    which is the best is known up to chance: over all logs the mean loss must be within 1.5 times that of the
    best, and nine logs in ten by themselves. The sentences rest on tests with a false alarm rate of 1/200.
    """
    sure, worse, wrong = [], [], 0
    alike: list[tuple[float, float, float]] = []
    for number, name in zip(range(208), itertools.cycle(KNOWN), strict=False):
        truth, advice = KNOWN[name].advice(1_000 + number)
        said = " ".join(everything(advice))
        wrong += not all(sentence in said for sentence in KNOWN[name].sentences)
        fresh = evaluate(truth, advice, 8, 10_000 + 8 * number)
        excess = (fresh.recommended - fresh.alone) / fresh.scale
        reach = 1.895 * excess.std(ddof=1) / np.sqrt(8)  # t of 7 degrees of freedom
        worse.append(float(excess.mean()))
        sure.append(float(excess.mean() - reach))
        if KNOWN[name].homogeneous:
            error = fresh.recommended.std(ddof=1) / np.sqrt(8)
            alike.append((float(fresh.recommended.mean()), fresh.best, float(1.895 * error)))
    assert max(sure) <= WORSE_ALLOWED, sorted(sure)[-5:]
    assert np.quantile(worse, 0.99) <= WORSE_ALLOWED, sorted(worse)[-10:]
    losses, best, reach = np.array(alike).T
    assert losses.mean() <= 1.5 * best.mean(), (losses.mean(), best.mean())
    assert (losses - reach <= 1.5 * best).mean() >= 0.9, sorted((losses / best).tolist())[-20:]
    assert wrong <= 0.05 * 208


# --- round trips that once went wrong -------------------------------------------------------------------


def round_trips(clients: int = 24, mirrors: int = 4, slices: int = 300, seed: int = 5) -> Log:
    """Clients near some mirrors and far from others, jitter, now and then a very long wait; in seconds."""
    rng = np.random.default_rng(seed)
    away = rng.random((clients, 1, 2)) - rng.random((1, mirrors, 2))
    base = 0.03 + 0.4 * np.linalg.norm(away, axis=2)
    values = base * np.exp(0.12 * rng.standard_normal((slices, clients, mirrors)))
    values += 0.008 * rng.pareto(1.6, values.shape)
    return log_of(values, objective="minimise", unit="s")


@pytest.fixture(scope="module")
def far_clients() -> LogAdvice:
    return advise(round_trips(), seed=1)


def test_clients_of_far_mirrors_are_not_told_to_share_everything(far_clients: LogAdvice) -> None:
    """Once: "Centralized γ = 5", which replayed worse than agents alone and than the best mirror each."""
    assert far_clients.model.homogeneity.best_differs
    assert not (far_clients.chosen.cooperates and far_clients.chosen.network == TOGETHER)
    lines = {line.name.split(",")[0]: line for line in far_clients.baselines}
    recommended, alone = lines["recommended"], lines["agents alone"]
    common = next(line for name, line in lines.items() if name.startswith("always arm"))
    own = lines["always the own best arm"]
    assert recommended.mean < 1.25 * own.mean
    assert recommended.mean <= 1.05 * alone.mean
    assert recommended.mean < common.mean
    assert far_clients.choice.against_alone.low <= 0


def test_less_is_better_and_said_so_with_the_unit(far_clients: LogAdvice) -> None:
    """Once positive latencies were maximised."""
    log = far_clients.log
    best = int(far_clients.model.means.argmin())
    assert far_clients.model.enough.best == best
    said = everything(far_clients)
    assert said[0].startswith("Less is better (minimise). The best arm depends on the agent: ")
    assert f"Over all agents {log.arms[best]} is the best arm" in said[0]
    assert any(" s per request" in sentence for sentence in said)


def test_what_fails_is_said_first(far_clients: LogAdvice) -> None:
    assert recommendation(far_clients)[0].startswith(APART)
    assert findings(far_clients)[0].alarm


def test_nothing_is_guaranteed_without_a_lemma(far_clients: LogAdvice) -> None:
    text = " ".join(everything(far_clients)).lower()
    assert "guarantee" not in text
    assert "no lemma covers" in text
    assert not Candidate("kmp", 1, "trimmed", 0.1).covered(far_clients.model.moments)
    assert Candidate("kmp", 1, "trimmed", 4.0).covered(rm.Moments(eps=1.0, u=1.0, rho=1.0))


def test_what_did_worse_in_the_recorded_order_is_not_recommended() -> None:
    """Once: groups that an early shock had stuck for good, since hardly any log drawn anew began so."""
    rng = np.random.default_rng(3)
    base = np.where(np.arange(12)[:, None] < 6, [0.10, 0.16, 0.18], [0.16, 0.10, 0.18])
    values = base * np.exp(0.1 * rng.standard_normal((150, 12, 3)))
    values[:6, :, 0] += 20 * rng.random((6, 1))
    advice = advise(log_of(values, objective="minimise", unit="s"), seed=1)
    chosen, alone = advice.choice.chosen, advice.choice.alone
    assert chosen.recorded <= alone.recorded + MARGIN * alone.mean
    assert alone.score >= alone.recorded


def test_a_setting_is_scored_by_its_worse_half_or_by_the_recorded_order() -> None:
    """One game of a group is luck; that of agents alone is many games."""
    loss = np.array([[1.0, 2.0], [3.0, 5.0]])
    alone = Candidate("robust", 0, "clipped", 0.1)
    calm = ReplayOutcome(alone, loss, loss, 0.0, 0.0, 3.5, np.zeros((1, 1), int))
    assert calm.score == 4.0
    assert replace(calm, recorded=9.0).score == 9.0
    assert replace(calm, recorded=9.0, candidate=Candidate("kmp", 1, "clipped", 0.1)).score == 4.0


def test_one_shock_that_many_saw_is_no_light_tail() -> None:
    """Fifty agents write down a shock of every hundredth round: the outermost values are few events."""
    rng = np.random.default_rng(4)
    values = rng.standard_normal((400, 50, 2)) + np.arange(2)
    values += np.where(rng.random((400, 1, 1)) < 0.5, 3.0 * rng.standard_normal((400, 1, 1)), 0.0)
    values[::100] += 50.0 + np.arange(4.0)[:, None, None]
    evidence = check_model(build_reward_table(log_of(values), rng), rng)
    assert evidence.dependence.shocks
    assert not evidence.light
    assert all("a few events" in tail.words for tail in evidence.tails)


def test_means_with_an_index_of_their_own_are_refused() -> None:
    with pytest.raises(rm.InputError, match="'self-tuned' brings its own index"):
        advise(log_of(homogeneous("gaussian", agents=2, rounds=50).table(1)), estimators=["self-tuned"])


def test_page_and_figures(far_clients: LogAdvice) -> None:
    page = page_html(far_clients)
    assert "s per request" in page
    assert page.count("<figure") == 2
    assert all(finding.check in page for finding in findings(far_clients))
    assert len(model_figure(far_clients).axes) >= 6
    assert len(price_figure(far_clients).axes[0].get_lines()) >= 3


def test_the_same_seed_gives_the_same_advice() -> None:
    log = log_of(homogeneous("gaussian", agents=6, rounds=100).table(1))
    first, again = (advise(log, seed=2, jobs=jobs).as_dict() for jobs in (1, 2))
    assert first == again


def test_the_code_shown_makes_the_policy_played(far_clients: LogAdvice) -> None:
    made = eval(far_clients.code, {"rm": rm})
    built = far_clients.setting.build(far_clients.model.moments)
    assert type(made) is type(built)
    assert made.zeta == built.zeta  # type: ignore[attr-defined]


def test_logs_that_cannot_be_replayed_are_refused() -> None:
    """Half of the agents never tried the arm that may suit them best."""
    log = chosen_only(log_of(two_clusters().table(1)), 1)
    keep = ~((log.agent >= 5) & (log.arm == 3))
    with pytest.raises(rm.DataError, match=r"7 agents of 12 .* hardly tried some arms"):
        advise(log.taken(keep), seed=1)
    few = ~((log.agent == 5) & (log.arm == 3))
    advice = advise(log.taken(few), seed=1)
    assert advice.network.n_agents == 11
    assert any("1 agent (agent5) left out" in note for note in advice.notes)


def test_where_all_are_alike_others_stand_in() -> None:
    log = chosen_only(log_of(homogeneous("gaussian").table(1)), 1)
    advice = advise(log.taken(~((log.agent < 7) & (log.arm == 0))), seed=1)
    assert advice.network.n_agents == 12
    assert any("what others got from them stands in" in note for note in advice.notes)


def test_a_log_without_agents_needs_a_network() -> None:
    log = replace(log_of(homogeneous("gaussian", agents=1, rounds=400).table(1)), agents=None)
    with pytest.raises(rm.InputError, match="does not say who measured what"):
        advise(log)
    advice = advise(log, rm.Network.ring(5), seed=1)
    assert advice.network.n_agents == 5
    assert "assumed, not tested" in " ".join(everything(advice))
    with pytest.raises(rm.InputError, match="the network has 5 agents, the log 6"):
        advise(log_of(homogeneous("gaussian", agents=6, rounds=100).table(1)), rm.Network.ring(5))


def test_one_agent_is_told_so() -> None:
    log = log_of(homogeneous("gaussian", agents=1, rounds=120).table(1))
    advice = advise(log, seed=1)
    assert not advice.chosen.cooperates
    assert "there is no other agent to compare with" in " ".join(everything(advice))


def test_links_between_groups_are_cut() -> None:
    inside = restricted(rm.Network.complete(4), np.array([0, 0, 1, 1]))
    assert [inside.neighbours(v).tolist() for v in range(4)] == [[1], [0], [3], [2]]


# --- pieces by hand -------------------------------------------------------------------------------------


def test_blocks_stay_in_order_and_near() -> None:
    rng = np.random.default_rng(0)
    length = block_length(1_000)
    rows = resampled(1_000, length, 0.1, rng)
    assert len(rows) == 1_000
    assert np.abs(rows - np.arange(1_000)).max() <= 120
    assert length == 20
    assert (np.diff(rows).reshape(-1)[: length - 1] == 1).all()
    far = resampled(1_000, 1, 1.0, rng)
    assert (np.diff(far) == 1).mean() < 0.02  # one by one where nothing resembles what was before
    assert np.abs(far - np.arange(1_000)).max() > 500
    assert (far.min() >= 0) & (far.max() < 1_000)


def test_intervals_hold_what_differs_between_logs() -> None:
    """Logs that agree with themselves but not with each other: only the number of logs helps."""
    between = np.repeat(np.arange(8.0)[:, None], 2, axis=1)
    found = interval_of_differences(between)
    reach = 2.3646 * np.std(np.arange(8.0), ddof=1)
    assert found.estimate == 3.5
    assert found.high - found.estimate == pytest.approx(reach, rel=1e-3)
    within = interval_of_differences(np.tile([-1.0, 1.0], (8, 1)))
    assert within.high == pytest.approx(2.3646 * np.sqrt(2 / 16), rel=1e-3)


def test_means_are_drawn_together_as_far_as_chance_explains() -> None:
    rng = np.random.default_rng(1)
    errors = np.full((1, 50, 1), 0.1)
    alike = shrunk_means(rng.normal(0, 0.1, (1, 50, 1)), errors)
    assert np.ptp(alike) == 0
    apart = rng.normal(0, 2.0, (1, 50, 1))
    np.testing.assert_allclose(shrunk_means(apart, errors), apart, atol=0.05)
