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
from rumormill.advice.replay import OFFSET_SURELY, Knowledge, Offsets, offsets_of
from rumormill.advice.report_text import LogAdvice, findings
from rumormill.engine import play_trial, prepare
from rumormill.live.core.node_config import node_config
from rumormill.mesh.file import read_mesh, write_mesh

FAR = np.array([0.0, 25.0, -8.0, 3.0, 40.0, 0.0, -15.0, 9.0])


def table(rounds: int = 150) -> Any:
    """Eight clients, four arms: each client is slower or faster to all of them."""
    noise = np.random.default_rng(4).normal(size=(rounds, len(FAR), 4))
    return 50.0 + np.array([0.0, 0.4, 0.7, 1.0]) + FAR[:, None] + noise


@pytest.fixture(scope="module")
def advice() -> LogAdvice:
    return advise(log_of(table(), objective="minimise", unit="ms"), estimators=["clipped"], jobs=1)


def test_offsets_by_hand() -> None:
    """Medians of medians; what was not recorded does not count, and an agent without values has none."""
    values = np.array([[[1.0, 10.0], [4.0, 13.0], [0.0, 0.0]]] * 3)
    values[2, 0, 0] = 1e9  # an outlier moves no median
    recorded = np.ones(values.shape, dtype=bool)
    recorded[:, 2] = False
    recorded[:, 1, 1] = False
    found = offsets_of(values, recorded)
    # Over both agents: arm 0 has 1, 1, 1e9, 4, 4, 4, arm 1 has 10, 10, 10.
    np.testing.assert_allclose(found.values, [(1.0 - 4.0 + 0.0) / 2, 0.0, 0.0])
    shifted = offsets_of(values + np.array([5.0, 0.0, 0.0])[:, None], recorded)
    assert shifted.values[0] > found.values[0]


def test_standard_errors_of_offsets() -> None:
    """Near the spread over 300 logs of 200 rounds; a share above 4 errors below 1 % of 1,200 agents."""
    rng = np.random.default_rng(2)
    draws = rng.standard_t(5.0, size=(300, 200, 4, 3))
    found = [offsets_of(each, np.ones(each.shape, dtype=bool)) for each in draws]
    values, errors = (np.array([getattr(each, name) for each in found]) for name in ("values", "errors"))
    # The baseline is that of all four, an agent's own among them, so the spread is smaller by sqrt(3/4).
    assert 0.7 < values.std() / errors.mean() < 1.1
    assert (np.abs(values) > OFFSET_SURELY * errors).mean() < 0.01


@pytest.mark.parametrize(
    ("values", "differ"),
    [
        ([0.0, 0.0], False),
        ([0.0, 4.0], False),
        ([0.0, 4.001], True),
        ([-4.001, 0.0], True),
        ([3.9, 3.9], False),
    ],
)
def test_when_agents_differ(values: list[float], differ: bool) -> None:
    assert Offsets(np.array(values), np.ones(2)).differ is differ


def test_values_of_two_kinds_have_no_offsets() -> None:
    """Clicks: every median is 0."""
    clicks = (np.random.default_rng(1).random((300, 3, 2)) < 0.05).astype(float)
    assert not offsets_of(clicks, np.ones(clicks.shape, dtype=bool)).differ


def test_what_is_recommended(advice: LogAdvice) -> None:
    """Alone agents have an eighth of the samples; raw samples of others mix clients."""
    assert advice.setting.cooperates
    assert advice.setting.offsets
    assert advice.offsets is not None
    found = np.array(list(advice.offsets.values()))
    np.testing.assert_allclose(found - found.mean(), FAR - FAR.mean(), atol=0.5)
    (said,) = [each for each in findings(advice) if each.check == "same level for all agents?"]
    assert "takes its own offset off before it learns and sends" in said.sentence
    assert "agent4" in said.sentence
    assert "agent6" in said.sentence
    plain = advice.as_dict()
    assert plain["recommendation"]["offsets"] == advice.offsets
    assert any(each["offsets"] for each in plain["settings"])


def test_the_sentence_follows_the_finding_and_the_setting(advice: LogAdvice) -> None:
    def told(setting: Candidate, known: Knowledge = advice.known) -> list[str]:
        start = replace(advice.start, learner=replace(advice.start.learner, candidate=setting))
        given = replace(advice, known=known, choice=replace(advice.choice, start=start))
        return [each.sentence for each in findings(given) if each.check == "same level for all agents?"]

    shared = replace(advice.setting, offsets=False)
    assert "to remove that before sharing did not prove itself" in told(shared)[0]
    assert "agents alone need not remove that" in told(replace(shared, policy="robust", gamma=0))[0]
    same = replace(advice.known, values=advice.known.values - FAR[:, None])
    assert told(shared, same) == []


def test_replays_are_games_with_offsets(advice: LogAdvice) -> None:
    """What was played on the log is what `rm.simulate(..., offsets=)` plays, both engines."""
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
            offsets=known.offsets.values.tolist(),
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
    assert game.offsets == advice.offsets
    assert node_config(mesh, "agent4", 1).games[0].offset == -game.offsets["agent4"]
    assert read_setting(path).setting.offsets
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
