"""Agents whose outcomes differ with every arm alike: how offsets are estimated, used, written and told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import log_of
from rumormill.advice import mesh_output
from rumormill.advice.advise import advise
from rumormill.advice.mesh_output import mesh_of, read_setting, recheck
from rumormill.advice.problem import Candidate
from rumormill.advice.replay import OFFSET_SURELY, Knowledge, Levels, differ, levels_of, offsets_of
from rumormill.advice.report_text import LogAdvice, findings
from rumormill.engine import play_trial, prepare
from rumormill.live.core.node_config import node_config
from rumormill.mesh.file import mesh_text, read_mesh, write_mesh

FAR = np.array([0.0, 25.0, -8.0, 3.0, 40.0, 0.0, -15.0, 9.0])


def table(rounds: int = 150) -> Any:
    """Eight clients, four arms: each client is slower or faster to all of them."""
    noise = np.random.default_rng(4).normal(size=(rounds, len(FAR), 4))
    return 50.0 + np.array([0.0, 0.4, 0.7, 1.0]) + FAR[:, None] + noise


@pytest.fixture(scope="module")
def advice() -> LogAdvice:
    return advise(log_of(table(), objective="minimise", unit="ms"), estimators=["clipped"], jobs=1)


SLOW = np.array([1.0, 3.0, 0.8, 1.2, 5.0, 1.0, 0.5, 1.5])


def slow_table(rounds: int = 150) -> Any:
    """The same clients and arms; here each is slower or faster by a factor."""
    noise = np.random.default_rng(4).normal(size=(rounds, len(SLOW), 4))
    return SLOW[:, None] * (50.0 + np.array([0.0, 0.4, 0.7, 1.0]) + noise)


@pytest.fixture(scope="module")
def scaled() -> LogAdvice:
    return advise(log_of(slow_table(), objective="minimise", unit="ms"), estimators=["clipped"], jobs=1)


def everywhere(values: Any) -> Any:
    return np.ones(values.shape, dtype=bool)


def test_offsets_by_hand() -> None:
    """Medians of medians; what was not recorded does not count, and an agent without values has none."""
    values = np.array([[[1.0, 10.0], [4.0, 13.0], [0.0, 0.0]]] * 3)
    values[2, 0, 0] = 1e9  # an outlier moves no median
    recorded = np.ones(values.shape, dtype=bool)
    recorded[:, 2] = False
    recorded[:, 1, 1] = False
    found, _ = offsets_of(values, recorded)
    # Over both agents: arm 0 has 1, 1, 1e9, 4, 4, 4, arm 1 has 10, 10, 10.
    np.testing.assert_allclose(found, [(1.0 - 4.0 + 0.0) / 2, 0.0, 0.0])
    shifted, _ = offsets_of(values + np.array([5.0, 0.0, 0.0])[:, None], recorded)
    assert shifted[0] > found[0]


def test_standard_errors_of_offsets() -> None:
    """Near the spread over 300 logs of 200 rounds; a share above 4 errors below 1 % of 1,200 agents."""
    rng = np.random.default_rng(2)
    draws = rng.standard_t(5.0, size=(300, 200, 4, 3))
    values, errors = np.array([offsets_of(each, everywhere(each)) for each in draws]).swapaxes(0, 1)
    # The baseline is that of all four, an agent's own among them, so the spread is smaller by sqrt(3/4).
    assert 0.7 < values.std() / errors.mean() < 1.1
    assert (np.abs(values) > OFFSET_SURELY * errors).mean() < 0.01


@pytest.mark.parametrize(
    ("values", "sure"),
    [
        ([0.0, 0.0], False),
        ([0.0, 4.0], False),
        ([0.0, 4.001], True),
        ([-4.001, 0.0], True),
        ([3.9, 3.9], False),
    ],
)
def test_when_agents_differ(values: list[float], sure: bool) -> None:
    assert differ(np.array(values), np.ones(2)) is sure


def test_values_of_two_kinds_have_no_offsets() -> None:
    """Clicks: every median is 0."""
    clicks = (np.random.default_rng(1).random((300, 3, 2)) < 0.05).astype(float)
    assert levels_of(clicks, everywhere(clicks)).tried == ()


def test_scales_by_hand() -> None:
    """Medians of the factors; what was not recorded does not count, and costs may be negative rewards."""
    values = np.array([[[2.0, 20.0, 9.0], [4.0, 40.0, 18.0], [0.0, -1.0, 0.0]]] * 9)
    recorded = everywhere(values)
    recorded[:, 2] = False
    found = levels_of(values, recorded)
    np.testing.assert_allclose(found.scales, [1 / np.sqrt(2), np.sqrt(2), 1.0])
    assert found.tried == ("scales",)
    np.testing.assert_array_equal(levels_of(-values, recorded).scales, found.scales)


@pytest.mark.parametrize("other", [0.0, -1.0])
def test_outcomes_of_both_signs_have_no_scales(other: float) -> None:
    values = slow_table()
    values[0, 0, 0] = other
    found = levels_of(values, everywhere(values))
    assert found.tried == ("offsets",)
    np.testing.assert_array_equal(found.scales, 1.0)


def test_a_part_of_a_log_of_both_signs_has_no_scales() -> None:
    """Else a setting that proved itself on the first part could not be written for the whole log."""
    values = slow_table()
    for last, tried in ((1.0, ("scales",)), (-1.0, ("offsets",))):
        values[-1, 0, 0] = last
        known = Knowledge(
            values, everywhere(values), np.zeros(8, int), -1.0, rm.Moments(eps=1.0, u=9.0, rho=9.0)
        )
        assert known.part(slice(None, 90)).levels.tried == tried


@pytest.mark.parametrize("arms", [0.0, 20.0])
@pytest.mark.parametrize("seed", range(5))
def test_what_explains_the_difference(seed: int, arms: float) -> None:
    """By the quartiles, so also where arms are alike: a factor widens them, a constant does not."""
    rng = np.random.default_rng(seed)
    usual = 80.0 + arms * np.arange(4) + 8.0 * rng.standard_normal((150, 6, 4))
    slow = np.exp(0.4 * rng.standard_normal(6))[:, None]
    whole = everywhere(usual)
    assert levels_of(slow * usual, whole).tried == ("scales",)
    assert levels_of(60.0 * slow + usual, whole).tried == ("offsets",)
    assert levels_of(usual, whole).tried == ()


@pytest.mark.parametrize(
    ("removed", "wanted"),
    [(["offsets"], [8.0, 7.0]), (["scales"], [2.25, 18.0]), (["offsets", "scales"], [2.0, 14.0])],
)
def test_what_agents_take_in(removed: list[str], wanted: list[float]) -> None:
    """First the offset is taken off, then comes the scale; without either it is the same array."""
    levels, values = Levels(np.array([1.0, 2.0]), np.array([4.0, 0.5])), np.full((3, 2, 1), 9.0)
    assert levels.without(values, []) is values
    np.testing.assert_array_equal(levels.without(values, removed)[:, :, 0], [wanted] * 3)


def test_clients_that_do_not_differ() -> None:
    """Neither is tried, told or written."""
    values = 50.0 + np.array([0.0, 3.0]) + np.random.default_rng(0).normal(size=(80, 4, 2))
    found = advise(log_of(values, objective="minimise"), estimators=["clipped"], jobs=1)
    assert not any(each.levels for each in found.losses)
    assert found.levels == {}
    assert not any(each.check == "same level for all agents?" for each in findings(found))
    assert "scales" not in mesh_text(mesh_of(found))


def test_scales_that_are_recommended(scaled: LogAdvice, tmp_path: Path) -> None:
    """Found, told, written, and read back; the prior is about what is taken in."""
    assert scaled.setting.cooperates
    assert {each.levels for each in scaled.losses} == {(), ("scales",)}
    found = np.array(list(scaled.levels["scales"].values()))
    np.testing.assert_allclose(found / found[0], SLOW / SLOW[0], rtol=0.02)
    (said,) = [each for each in findings(scaled) if each.check == "same level for all agents?"]
    assert "divides by its own scale before it learns and sends, which proved itself here" in said.sentence
    low, high = found[6], found[4]
    assert f"{low:.3g} times (agent6) to {high:.3g} times (agent4) those of all agents" in said.sentence
    plain = scaled.as_dict()
    assert plain["recommendation"]["scales"] == scaled.levels["scales"]
    assert plain["recommendation"]["offsets"] is None
    assert any(each["scales"] for each in plain["settings"])
    assert ", scaled" in plain["recommendation"]["setting"]
    path = tmp_path / "mesh.toml"
    write_mesh(path, mesh_of(scaled))
    mesh = read_mesh(path)
    game = mesh.file.games[0]
    assert (game.offsets, game.scales) == ({}, scaled.levels["scales"])
    assert node_config(mesh, "agent4", 1).games[0].scale == game.scales["agent4"]
    assert read_setting(path).setting.levels == ("scales",)
    if scaled.setting.warm:
        assert game.prior is not None
        means = np.array([part.mean for part in game.prior.nodes.values()])
        assert np.ptp(means, axis=0).max() < 4.0  # raw means are 225 apart


def test_what_is_said_where_scales_did_not_prove_themselves(scaled: LogAdvice) -> None:
    start = replace(
        scaled.start, learner=replace(scaled.start.learner, candidate=replace(scaled.setting, levels=()))
    )
    given = replace(scaled, choice=replace(scaled.choice, start=start))
    (said,) = [each for each in findings(given) if each.check == "same level for all agents?"]
    assert "times (agent4) those of all agents; to remove that before sharing did not prove" in said.sentence


def test_what_is_recommended(advice: LogAdvice) -> None:
    """Alone agents have an eighth of the samples; raw samples of others mix clients."""
    assert advice.setting.cooperates
    assert advice.setting.levels == ("offsets",)
    found = np.array(list(advice.levels["offsets"].values()))
    np.testing.assert_allclose(found - found.mean(), FAR - FAR.mean(), atol=0.5)
    (said,) = [each for each in findings(advice) if each.check == "same level for all agents?"]
    assert "takes its own offset off before it learns and sends" in said.sentence
    assert "agent4" in said.sentence
    assert "agent6" in said.sentence
    plain = advice.as_dict()
    assert plain["recommendation"]["offsets"] == advice.levels["offsets"]
    assert plain["recommendation"]["scales"] is None
    assert {each.levels for each in advice.losses} == {(), ("offsets",)}
    assert any(each["offsets"] for each in plain["settings"])


def test_the_sentence_follows_the_finding_and_the_setting(advice: LogAdvice) -> None:
    def told(setting: Candidate, known: Knowledge = advice.known) -> list[str]:
        start = replace(advice.start, learner=replace(advice.start.learner, candidate=setting))
        given = replace(advice, known=known, choice=replace(advice.choice, start=start))
        return [each.sentence for each in findings(given) if each.check == "same level for all agents?"]

    shared = replace(advice.setting, levels=())
    assert "to remove that before sharing did not prove itself" in told(shared)[0]
    assert "agents alone need not remove that" in told(replace(shared, policy="robust", gamma=0))[0]
    same = replace(advice.known, values=advice.known.values - FAR[:, None])
    assert told(shared, same) == []


@pytest.mark.parametrize("level", ["offsets", "scales"])
def test_replays_are_games_with_levels(advice: LogAdvice, scaled: LogAdvice, level: str) -> None:
    """What was played on the log is what `rm.simulate(..., offsets=, scales=)` plays, both engines."""
    advice = scaled if level == "scales" else advice
    setting = replace(advice.setting, warm=False)
    values, known = advice.table.values[: advice.rounds[0]], advice.known.part(slice(None, advice.rounds[0]))
    policy, bandit = setting.build(advice.model.moments), rm.Replay(values, objective="minimise")
    marks = np.array([len(values)])
    for engine in ("reference", "fast"):
        made = prepare(
            policy,
            advice.network,
            4,
            engine=engine,
            **{level: getattr(known.levels, level)},
        )
        trial = play_trial([made], bandit, len(values), np.random.SeedSequence(0), marks, keep_actions=True)[
            0
        ]
        np.testing.assert_array_equal(trial.actions, advice.losses[setting].actions)


def test_the_mesh_file_has_them(advice: LogAdvice, tmp_path: Path) -> None:
    """Nodes take off what the file says; the prior is about outcomes less that."""
    path = tmp_path / "mesh.toml"
    write_mesh(path, mesh_of(advice))
    mesh = read_mesh(path)
    game = mesh.file.games[0]
    assert game.offsets == advice.levels["offsets"]
    assert node_config(mesh, "agent4", 1).games[0].offset == -game.offsets["agent4"]
    assert read_setting(path).setting.levels == ("offsets",)
    if advice.setting.warm:
        assert game.prior is not None
        means = np.array([part.mean for part in game.prior.nodes.values()])
        assert np.ptp(means, axis=0).max() < 2.0  # raw means are 55 apart


def test_a_mesh_is_asked_about_with_its_own_offsets(
    advice: LogAdvice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the file, not what the new log shows: here doubled, of another sign, or one left out."""
    monkeypatch.setattr(mesh_output, "advise", lambda *args, **kwargs: advice)
    asked, path = mesh_of(advice), tmp_path / "mesh.toml"
    given = asked.games[0].offsets

    def above(**offsets: float) -> float:
        asked.games[0].offsets = offsets
        write_mesh(path, asked)
        return recheck(read_setting(path), advice.log, jobs=1).excess.estimate

    right = above(**given)
    assert right == pytest.approx(0.0, abs=0.02)
    assert above(**{name: 2 * value for name, value in given.items()}) > right + 0.02
    assert above(**{name: -value for name, value in given.items()}) > right + 0.02
    assert above(**{**given, "agent4": 0.0}) > right


def test_a_mesh_is_asked_about_with_its_own_scales(
    scaled: LogAdvice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here also inverted, or one left out."""
    monkeypatch.setattr(mesh_output, "advise", lambda *args, **kwargs: scaled)
    asked, path = mesh_of(scaled), tmp_path / "mesh.toml"
    given = asked.games[0].scales

    def above(scales: dict[str, float]) -> float:
        asked.games[0].scales = scales
        write_mesh(path, asked)
        return recheck(read_setting(path), scaled.log, jobs=1).excess.estimate

    right = above(given)
    assert right == pytest.approx(0.0, abs=0.02)
    assert above({name: 1 / value for name, value in given.items()}) > right + 0.02
    assert above({**given, "agent4": 1.0}) > right
