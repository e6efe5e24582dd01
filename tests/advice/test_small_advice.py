"""Whole advice on small logs with few resamples: what is said, drawn and written is what was found."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from helpers.synthetic_logs import log_of
from rumormill.advice import replay
from rumormill.advice.advise import advise
from rumormill.advice.mesh_output import mesh_of
from rumormill.advice.page import model_figure, page_html, price_figure, summary_html
from rumormill.advice.problem import FIXED, IN_GROUPS, OWN, Candidate
from rumormill.advice.report_text import (
    LogAdvice,
    _limits,
    compared,
    everything,
    findings,
    gain_sentence,
    group_lines,
    headline,
    in_short,
    recommendation,
    reported_on,
    what_could_be_wrong,
)
from rumormill.advice.search import LADDER, Start
from rumormill.stats import Interval
from rumormill.text import plural

ROUNDS = 60


def values(kind: str) -> Any:
    noise = np.random.default_rng(2).normal(0, 0.3, (ROUNDS, 4, 3))
    means = np.array([1.0, 2.0, 3.0])
    if kind == "groups":
        means = np.where(np.arange(4)[:, None] < 2, [1.0, 3.0, 5.0], [3.0, 1.0, 5.0])
    if kind == "drift":
        return noise + np.where(np.arange(ROUNDS)[:, None, None] < 30, [1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    return noise[:, :1] + means if kind == "one agent" else noise + means


@pytest.fixture(scope="module", params=["same", "groups", "drift", "one agent"])
def advice(request: pytest.FixtureRequest) -> LogAdvice:
    with pytest.MonkeyPatch.context() as patch:
        for name, number in (("LOOK", 2), ("LOGS", 3), ("TIMES", 2)):
            patch.setattr(replay, name, number)
        log = log_of(values(request.param), objective="minimise", unit="ms")
        return advise(replace(log, name=request.param), seed=1, jobs=1, estimators=["clipped"])


def test_what_is_found(advice: LogAdvice) -> None:
    model, kind = advice.model, advice.log.name
    assert model.homogeneity.best_differs == (kind == "groups")
    assert model.drift.drifts == (kind == "drift")
    assert advice.rounds == (36, 24)
    # Of clear arms the first part knows enough: messages gain in cold starts only.
    liked = advice.choice.chosen.candidate
    assert liked.cooperates == (kind in ("same", "groups"))
    assert (liked.network == IN_GROUPS) == (kind == "groups")
    assert not advice.chosen.cooperates
    assert advice.chosen.warm == (kind != "drift")
    verdicts = [finding.verdict for finding in findings(advice)][:2]
    assert verdicts == {
        "same": ["yes", "no"], "groups": ["no", "no"], "drift": ["yes", "yes"],
        "one agent": ["not tested", "no"],
    }[kind]  # fmt: skip
    assert [finding.alarm for finding in findings(advice)][:2] == [kind == "groups", kind == "drift"]


def test_the_headline(advice: LogAdvice) -> None:
    said, known = headline(advice), advice.model.enough
    assert said.startswith("Less is better (minimise). ")
    assert f"{advice.log.arms[known.best]} is the best arm" in said
    gap = advice.model.means[known.second] - advice.model.means[known.best]
    assert f"{advice.log.arms[known.second]} {advice.log.amount(gap)}" in said
    own = "The best arm depends on the agent: arm0 for 2, arm1 for 2." in said
    assert own == (advice.log.name == "groups")


def test_what_is_recommended(advice: LogAdvice) -> None:
    kind, said = advice.log.name, recommendation(advice)
    start = ", and start from what the log knows" if advice.chosen.warm else ""
    short = f"Agents on their own, without messages{start}"
    assert in_short(advice) == short
    assert any("gained in cold starts" in text for text in said) == (kind in ("same", "groups"))
    assert f"Recommended: {short[0].lower()}{short[1:]} ({advice.chosen})." in said
    if kind in ("groups", "drift"):
        assert said[0] == next(f.sentence for f in findings(advice) if f.alarm)
    assert any("come back with newer logs" in text for text in said) == (kind == "drift")
    assert any("cooperate within the groups" in text for text in said) == (kind == "groups")
    messages = f"It takes {advice.start.learner.messages:,.0f} messages a round."
    assert any(messages in text for text in said) == advice.chosen.cooperates
    assert gain_sentence(advice) in said
    assert reported_on(advice) == "games of 60 rounds resampled from the last 24 of the log"
    lines = group_lines(advice)
    assert lines == (
        ["group 1: best arm0, 2 agents: agent0, agent1", "group 2: best arm1, 2 agents: agent2, agent3"]
        if kind == "groups"
        else []
    )


def test_more_and_less_with_their_ends(advice: LogAdvice) -> None:
    assert compared(advice, Interval(2.0, 1.0, 3.0)) == "2 ms more (1 ms to 3 ms, 95 %)"
    assert compared(advice, Interval(-2.0, -3.0, -1.0)) == "2 ms less (1 ms to 3 ms, 95 %)"


def test_the_lines_for_comparison(advice: LogAdvice) -> None:
    lines = {line.name: line for line in advice.baselines}
    own, common = (
        lines["always the own best arm"],
        next(line for name, line in lines.items() if name.endswith("the best common arm")),
    )
    table, kind = advice.table.values[36:], advice.log.name
    if kind in ("same", "one agent"):
        assert common.mean == pytest.approx(table[:, :, 0].mean(), abs=0.05)
        assert common.median == pytest.approx(float(np.median(table[:, :, 0])))
        assert common.p90 == pytest.approx(float(np.quantile(table[:, :, 0], 0.9)))
        assert own.mean == common.mean
    for line in advice.baselines:
        assert line.low <= line.mean <= line.high
    if kind == "groups":
        assert own.mean < common.mean - 0.5


def test_the_page_holds_what_is_said(advice: LogAdvice) -> None:
    page = page_html(advice)
    assert page.count('<p class="notice">') == sum(finding.alarm for finding in findings(advice))
    for text in everything(advice):
        assert html.escape(text) in page
    for row in advice.rows():
        assert html.escape(row["setting"]) in page
    assert page.count(">recommended<") == 1 + sum(row["recommended"] for row in advice.rows())
    assert "ms per request" in page
    assert html.escape(advice.code) in page


def test_the_figures_draw_what_was_found(advice: LogAdvice) -> None:
    every: Any = model_figure(advice).axes
    same, drift, tails, near, enough, lines = every[:6]
    (image,) = same.get_images()
    shown = np.asarray(image.get_array())
    assert shown.min() == 0.0
    means = advice.model.homogeneity.means
    assert shown.max() == pytest.approx(float((means - means.min(axis=1, keepdims=True)).max()))
    assert [text.get_text() for text in same.get_xticklabels()] == list(advice.log.arms)
    for k, line in enumerate(drift.get_lines()):
        np.testing.assert_allclose(line.get_xdata(), (np.arange(6) + 0.5) / 6)
        np.testing.assert_array_equal(line.get_ydata(), advice.model.drift.segment_means[:, k])
    assert drift.get_ylabel() == "mean (ms)"
    assert any(np.all(np.asarray(line.get_xdata()) == 2) for line in tails.get_lines())
    bands = [line for line in tails.get_lines() if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"]
    assert [line.get_xdata()[0] for line in bands] == [min(tail.low, 8.0) for tail in advice.model.tails]
    heights = [bar.get_height() for bar in near.patches]
    assert heights == [advice.model.dependence.lag_one, advice.model.dependence.common]
    assert near.get_ylim()[0] <= -0.1
    assert near.get_ylim()[1] >= 0.1
    np.testing.assert_allclose(np.asarray(enough.get_lines()[0].get_xdata(), float), advice.model.means)
    np.testing.assert_allclose(
        np.asarray(lines.get_lines()[0].get_xdata(), float), [line.mean for line in advice.baselines[::-1]]
    )
    assert lines.get_xlabel() == "per request, less is better (ms)"
    assert lines.get_title(loc="left") == "after the first 36 rounds"
    (price,) = price_figure(advice).axes
    assert price.get_xlabel() == "messages per round, all links together"
    sends = any(each.messages for each in advice.losses.values())
    assert price.get_xscale() == ("symlog" if sends else "linear")  # nothing sent has a place, too
    assert price.get_ylabel() == "loss per request when it went badly (ms)"
    for figure in (model_figure(advice), price_figure(advice)):
        width, height = figure.get_size_inches()
        assert 1 < width / height < 2, "neither a tower nor a strip"


def test_the_mesh_is_the_recommended_one(advice: LogAdvice) -> None:
    file = mesh_of(advice)
    links = {node.name: node.neighbours for node in file.nodes}
    kind = advice.log.name
    assert not any(links.values())
    shared = {
        node.name: node.neighbours for node in mesh_of(told(advice, advice.choice.chosen.candidate)).nodes
    }
    if kind == "groups":
        assert shared == {
            "agent0": ["agent1"],
            "agent1": ["agent0"],
            "agent2": ["agent3"],
            "agent3": ["agent2"],
        }
    elif kind == "same":
        assert all(len(near) == 3 for near in shared.values())
    (game,) = file.games
    if game.prior is None:
        assert not advice.setting.warm
    else:
        each = [game.prior.nodes[node.name].mean for node in file.nodes]
        np.testing.assert_allclose(each, advice.table.values.mean(axis=0), atol=0.4)  # in ms, not negated
    assert (game.objective, game.unit, game.arms) == ("minimise", "ms", list(advice.log.arms))
    assert game.policy["type"] == advice.setting.policy
    assert game.policy["zeta"] == advice.setting.zeta
    assert "moments" not in game.policy
    assert game.moments == {
        "eps": advice.model.moments.eps, "u": advice.model.moments.u, "rho": advice.model.moments.rho,
    }  # fmt: skip
    assert [node.id for node in file.nodes] == list(range(len(file.nodes)))


def told(advice: LogAdvice, candidate: Candidate) -> LogAdvice:
    """The same advice with another candidate."""
    ways = {each.candidate: each for each in advice.start.ways}
    one = ways.get(candidate, replace(advice.start.learner, candidate=candidate))
    learner = advice.start.learner if candidate.fixed else one
    start = replace(advice.start, chosen=one, learner=learner)
    return replace(advice, choice=replace(advice.choice, start=start))


def test_what_is_said_in_short(advice: LogAdvice) -> None:
    setting = advice.setting
    known = ", and start from what the log knows"
    for candidate, text in (
        (
            replace(setting, policy="kmp", gamma=1, warm=False),
            f"Cooperate among all {advice.network.n_agents} agents",
        ),
        (
            replace(setting, policy="kmp", gamma=1, warm=True),
            f"Cooperate among all {advice.network.n_agents} agents{known}",
        ),
        (
            replace(setting, policy="kmp", network=IN_GROUPS, warm=False),
            f"Cooperate within {plural(len(advice.groups), 'group')}",
        ),
        (replace(setting, warm=False), "Agents on their own, without messages"),
    ):
        assert in_short(told(advice, candidate)) == text
    kept = told(advice, Candidate(FIXED, 0, network=OWN))
    same = len(set((kept.kept_arms or {}).values())) == 1
    assert in_short(kept).startswith("Keep arm" if same else "Keep the own best arm")
    assert kept.as_dict()["recommendation"]["kind"] == "fixed"
    assert kept.as_dict()["recommendation"]["arms"] == kept.kept_arms
    assert any("A kept arm follows no change" in text for text in recommendation(kept))


@pytest.mark.parametrize(("zeta", "edge"), [(LADDER[0], True), (LADDER[1], False), (LADDER[-1], True)])
def test_the_first_and_the_last_constant_are_said_to_be_so(
    advice: LogAdvice, zeta: float, edge: bool
) -> None:
    said = _limits(told(advice, replace(advice.setting, zeta=zeta)))
    assert any("is the last constant that was tried" in text for text in said) == edge


def test_one_gain_everywhere(advice: LogAdvice) -> None:
    """The gain is the difference of two lines of the table, in text, page and JSON."""
    gain, lines = advice.gain, {line.name: line for line in advice.baselines}
    assert gain.value == pytest.approx(lines["agents alone"].mean - lines["recommended"].mean)
    assert gain.low <= gain.value <= gain.high
    assert gain.unit == "ms"
    assert "not a forecast" in gain.means
    assert advice.as_dict()["gain"] == vars(gain)
    if advice.chosen != advice.start.cold.candidate:
        assert advice.log.amount(gain.value) in gain_sentence(advice)
    page = summary_html(advice, "rumormill mesh adopt")
    for text in (
        f"{in_short(advice)}.",
        gain_sentence(advice),
        *what_could_be_wrong(advice),
        "rumormill mesh adopt",
    ):
        assert html.escape(text) in page
    assert page.count("<figure>") == 1


def test_fixed_arms_are_candidates(advice: LogAdvice) -> None:
    rows = advice.as_dict()["candidates"]
    fixed = [row for row in rows if row["kind"] == "fixed"]
    assert len(fixed) >= 2
    assert all(row["messages_per_round"] == 0 for row in fixed)
    assert sum(row["recommended"] for row in rows) == 1
    assert [row["score"] for row in rows] == sorted(row["score"] for row in rows)


def test_the_json_has_it_all(advice: LogAdvice) -> None:
    found = advice.as_dict()
    assert found["log"]["first_part"] + found["log"]["rest"] == found["log"]["rounds"] == ROUNDS
    assert found["log"]["agents"] == advice.network.n_agents
    assert found["recommendation"]["cooperate"] == advice.chosen.cooperates
    assert sum(row["recommended"] for row in found["settings"]) <= 1  # a warm start may take another constant
    scores = [row["score"] for row in found["settings"]]
    assert scores == sorted(scores)
    model = found["model"]
    assert model["drift"]["drifts"] == (advice.log.name == "drift")
    assert (model["drift"]["at"] is None) == (advice.log.name != "drift")
    assert model["enough"]["best_arm"] == advice.log.arms[advice.model.enough.best]
    assert min(row["gap"] for row in model["arms"]) == 0.0
    assert all(math.isfinite(row["mean"]) for row in model["arms"])
    assert found["tried"] == len(advice.losses) > 5


def begun(advice: LogAdvice, start: Start) -> LogAdvice:
    """The same advice with another start."""
    return replace(advice, choice=replace(advice.choice, start=start))


def test_where_an_arm_is_kept_sentences_name_the_setting_that_learns(advice: LogAdvice) -> None:
    """No "It takes 14 messages a round" must not stand behind "without messages"."""
    start = replace(advice.start, chosen=advice.start.best_fixed)
    said = recommendation(begun(advice, start))
    recommended = next(i for i, text in enumerate(said) if text.startswith("Recommended: keep "))
    why = said[recommended + 2 :]
    assert why[0].startswith(f"The best setting that learns, {advice.setting}, would have been ")
    assert not [text for text in why if text.startswith(("It ", "Of all settings tried the recommended"))]
    sharing = replace(start.learner, candidate=advice.choice.chosen.candidate, messages=14.0)
    shared = recommendation(begun(advice, replace(start, learner=sharing)))
    told = "The setting that learns takes 14 messages a round."
    assert (told in shared) == sharing.candidate.cooperates


def test_a_warm_start_that_was_left_out_says_what_it_lost(advice: LogAdvice) -> None:
    lost = replace(advice.start, dropped=Interval(5.0, -1.0, 9.0))
    said = recommendation(begun(advice, lost))
    more = compared(advice, Interval(5.0, -1.0, 9.0))
    assert f"To start from what the first part knows loses {more}: agents start from nothing." in said
    assert (advice.start.dropped is None) == advice.chosen.warm
