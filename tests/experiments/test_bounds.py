"""Bounds of a run: the numbers are those of the theory, and what is empty or unproven is said."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rumormill.arms import Bandit, Replay, TwoPoint
from rumormill.cli import main
from rumormill.errors import InputError, SlowEngineNotice
from rumormill.experiments.analyse import bounds as bounds_module
from rumormill.experiments.analyse.bounds import RunBounds, bound_rows, lower_rows
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures import draw_all
from rumormill.experiments.figures.theory import bounds_figure
from rumormill.experiments.plan import plan_of
from rumormill.experiments.report.html_page import bounds_section, caption, remarks, report_html
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.building import build_bandit, build_network, build_policy
from rumormill.experiments.spec.reading import decode
from rumormill.plotting.rendering import save
from rumormill.theory import Bound, lower_bound, regret_bound

# Gaussian arms far apart, on a ring: two bounds say something soon, the one at theory's c not yet.
ONE_GAME = {
    "name": "one-game",
    "seed": 3,
    "horizon": 300,
    "trials": 3,
    "network": {"kind": "ring", "n": 6},
    "arms": {"law": "gaussian", "scale": 0.1, "means": [0.0, 1.0]},
    "policies": [
        {"type": "decentralized", "gamma": 1, "c": "theory"},
        {"type": "centralized", "gamma": 2, "zeta": 1.0},
        {"type": "consensus"},
    ],
}
# Fresh networks and bandits, and tails so heavy that no bound says anything in 40 rounds.
FRESH = {
    "name": "fresh",
    "seed": 7,
    "horizon": 40,
    "trials": 3,
    "network": {"kind": "erdos_renyi", "n": 8, "p": 0.6},
    "arms": {"law": "student-t", "df": 1.8, "K": 3},
    "policies": [
        {"type": "kmp", "zeta": 1.0},
        {"type": "centralized", "zeta": 1.0},
        {"type": "robust", "zeta": 1.0, "label": "Alone, <zeta = 1>"},
    ],
    "sweep": {"gamma": [0, 2]},
}


@pytest.fixture(scope="module")
def one_game(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(decode(ONE_GAME), tmp_path_factory.mktemp("bounds") / "one", 1)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(decode(FRESH), tmp_path_factory.mktemp("bounds") / "fresh", 1)


@pytest.fixture(scope="module")
def summary(one_game: RunFolder) -> Summary:
    return summarise(one_game, bounds=True)


def bounds_of(run: RunFolder) -> RunBounds:
    found = summarise(run, bounds=True).bounds
    assert found is not None
    return found


@pytest.fixture(scope="module")
def of_one_game(summary: Summary) -> RunBounds:
    assert summary.bounds is not None
    return summary.bounds


@pytest.fixture(scope="module")
def of_fresh(fresh: RunFolder) -> RunBounds:
    return bounds_of(fresh)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


class Words(HTMLParser):
    """The text of every cell, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[str] = []

    def handle_data(self, data: str) -> None:
        self.all.append(data)


def words(page: str) -> list[str]:
    parser = Words()
    parser.feed(page)
    return parser.all


# --- numbers --------------------------------------------------------------------------------------------


def test_bounds_are_those_of_the_first_trial(fresh: RunFolder, of_fresh: RunBounds) -> None:
    assert not of_fresh.one_game
    assert [game.values for game in of_fresh.games] == [{"gamma": 0}, {"gamma": 2}]
    for at, game in zip(plan_of(fresh.spec).points, of_fresh.games, strict=True):
        bandit, network = build_bandit(at.spec, 0), build_network(at.spec, 0)
        assert game.worst_per_round == 8 * bandit.gaps.max()
        assert game.lower is not None
        assert game.lower.coefficient == lower_bound(bandit).coefficient
        for part, found in zip(at.spec.policies, game.policies, strict=True):
            policy = build_policy(at.spec, part)
            for bound in found.corrected:
                assert bound == regret_bound(bandit, network, policy, bound.horizon)
            assert found.at_end.horizon == 40
            assert found.printed == regret_bound(bandit, network, policy, 40, "printed")
            rows = fresh.frame.filter(
                pl.col("policy") == part.label,
                pl.col("gamma") == at.values["gamma"],
                pl.col("trial") == 0,
            )
            np.testing.assert_array_equal(found.regret, rows.sort("t")["regret"].to_numpy())


def test_one_game_in_all_trials_is_measured_in_all(one_game: RunFolder, of_one_game: RunBounds) -> None:
    assert of_one_game.one_game
    (game,) = of_one_game.games
    for found in game.policies:
        rows = one_game.frame.filter(pl.col("policy") == found.policy, pl.col("t") == 300)
        assert len(rows) == 3
        assert found.measured == pytest.approx(rows["regret"].mean(), rel=1e-12)


def test_rows_say_it_all(of_one_game: RunBounds) -> None:
    rows = bound_rows(of_one_game)
    assert [row["policy"] for row in rows] == ["Decentralized", "Centralized", "Consensus"]
    for row, found in zip(rows, of_one_game.games[0].policies, strict=True):
        bound = found.at_end
        assert row["corrected"] == bound.value
        assert row["ratio"] == bound.value / found.measured
        assert bound.terms[row["dominant"]] == max(bound.terms.values())
        assert row["vacuous"] == (bound.value > 300 * 6 * 1.0)
        assert row["covered"] == all(assumption.holds for assumption in bound.assumptions)
        assert row["covered"] == ("NOT COVERED" not in row["assumptions"])
    assert [row["vacuous"] for row in rows] == [True, False, False]
    assert [row["covered"] for row in rows] == [True, False, True]
    (lower,) = lower_rows(of_one_game)
    # One arm, gap 1, scale 0.1: gap / (gap^2 / (2 scale^2)).
    assert lower["coefficient"] == pytest.approx(0.02, rel=1e-12)
    assert lower["at_end"] == pytest.approx(0.02 * math.log(300), rel=1e-12)
    assert lower["most_possible"] == 1_800


def test_bounds_are_worked_out_after_the_first_rounds(of_one_game: RunBounds) -> None:
    for found in of_one_game.games[0].policies:
        at = [bound.horizon for bound in found.corrected]
        assert at == sorted(set(at))
        assert at[0] > 2
        assert at[-1] == 300
        assert 10 <= len(at) <= bounds_module.ROUNDS_DRAWN + 1


def test_a_horizon_within_the_first_rounds(tmp_path: Path) -> None:
    spec = {**ONE_GAME, "horizon": 2}
    (game,) = bounds_of(run(decode(spec), tmp_path / "short", 1)).games
    for found in game.policies:
        (bound,) = found.corrected
        # Everyone pulls arm 0, then arm 1: the gap of 1 is paid once by each of 6.
        assert bound.value == found.measured == 6


def test_without_a_first_trial_there_is_no_game(fresh: RunFolder) -> None:
    later = dataclasses.replace(fresh)
    object.__setattr__(later, "frame", fresh.frame.filter(pl.col("trial") > 0))  # the property's cache
    with pytest.raises(InputError, match="no first trial finished"):
        summarise(later, bounds=True)


def test_laws_without_a_lower_bound_say_why() -> None:
    # Nothing above 1 can be the mean of a law on {0, 1}: KL-inf is infinite and the coefficient zero.
    sure = Bandit(
        [TwoPoint(low=0.0, high=1.0, probability=0.5), TwoPoint(low=1.0, high=3.0, probability=0.5)]
    )
    found, reason = bounds_module._lower(sure)
    assert found is None
    assert "no arm's law" in reason
    found, reason = bounds_module._lower(Replay(np.arange(24.0).reshape(4, 3, 2)))
    assert found is None
    assert "a lower bound needs the laws of the arms" in reason


# --- the picture ----------------------------------------------------------------------------------------


def dotted(axes: Any) -> dict[str, Any]:
    """Bounds by colour: thin lines with more than one point, not grey."""
    lines = [line for line in axes.lines if line.get_linewidth() == 0.9 and len(line.get_xdata()) > 1]
    return {line.get_color(): line for line in lines}


def test_the_figure_draws_what_is_not_vacuous(of_one_game: RunBounds) -> None:
    (axes,) = bounds_figure(of_one_game).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    measured: dict[Any, Any] = {line.get_label(): line for line in axes.lines}
    drawn = dotted(axes)
    for found in of_one_game.games[0].policies:
        curve = measured[found.policy]
        assert curve.get_ydata()[-1] == found.measured
        assert (curve.get_color() in drawn) == (not found.at_end.vacuous)
        if not found.at_end.vacuous:
            line = drawn[curve.get_color()]
            expected = [bound for bound in found.corrected if bound.value <= bound.ceiling]
            assert list(line.get_xdata()) == [bound.horizon for bound in expected]
            assert list(line.get_ydata()) == [bound.value for bound in expected]
            assert len(expected) < len(found.corrected)  # at first it is above what is possible
    assert axes.get_ylim()[1] < 10 * 1_800
    (note,) = [text.get_text() for text in axes.texts]
    assert note == "vacuous, not drawn: Decentralized"


def test_a_figure_without_bounds_to_draw_says_so(of_fresh: RunBounds) -> None:
    figure = bounds_figure(of_fresh)
    assert [axes.get_title() for axes in figure.axes] == ["γ = 0", "γ = 2"]
    for axes in figure.axes:
        assert dotted(axes) == {}
        assert [text.get_text() for text in axes.texts] == ["all bounds vacuous: none drawn"]
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert "lower bound's slope" in shown
    assert "upper bound, by colour" not in shown


def test_a_bound_is_drawn_only_where_it_says_something(of_one_game: RunBounds) -> None:
    found = of_one_game.games[0].policies[0]

    def bound(value: float, horizon: int) -> Bound:
        return dataclasses.replace(found.at_end, value=value, horizon=horizon, ceiling=10.0 * horizon)

    useful = dataclasses.replace(found, corrected=(bound(99, 5), bound(99, 10)))
    assert useful.drawn() == ([10], [99])
    empty = dataclasses.replace(found, corrected=(bound(9, 5), bound(101, 10)))
    assert empty.drawn() == ([], [])


def test_the_figure_is_written_beside_the_others(
    summary: Summary, of_one_game: RunBounds, tmp_path: Path
) -> None:
    names = {path.name for path in draw_all(summary, tmp_path / "with")}
    assert {"regret-bounds.png", "regret-bounds.svg"} <= names
    for path in save(bounds_figure(of_one_game), tmp_path / "again" / "regret-bounds"):
        assert path.read_bytes() == (tmp_path / "with" / path.name).read_bytes()


# --- words ----------------------------------------------------------------------------------------------


def test_remarks_are_honest(of_one_game: RunBounds, of_fresh: RunBounds) -> None:
    told = " ".join(remarks(of_one_game))
    assert "1 of 3 upper bounds is vacuous at round 300" in told
    assert "For Centralized no lemma covers" in told
    assert "mean over trials" in told
    told = " ".join(remarks(of_fresh))
    assert "6 of 6 upper bounds are vacuous at round 40" in told
    assert "first trial's game" in told
    assert "first trial's game" in caption(of_fresh)


def test_the_report_has_the_section_only_when_asked(
    one_game: RunFolder, summary: Summary, of_one_game: RunBounds
) -> None:
    told = words(report_html(summary))
    assert "What the theory promises" in told
    assert "rumormill run one-game.toml --bounds" in told
    for found in of_one_game.games[0].policies:
        assert f"{found.at_end.value:,.0f}" in told
    assert told.count("vacuous") == 1
    assert told.count("informative") == 2
    assert any(text.startswith("NOT COVERED. No lemma of TrimmedMean") for text in told)
    without = words(report_html(summarise(one_game)))
    assert "What the theory promises" not in without
    assert "rumormill run one-game.toml" in without


def test_labels_cannot_break_out(of_fresh: RunBounds) -> None:
    section = bounds_section(of_fresh)
    assert "<zeta" not in section
    assert "Alone, <zeta = 1>" in words(section)


# --- what theory does not know --------------------------------------------------------------------------


def test_a_policy_of_ones_own_stands_beside_without_a_bound(tmp_path: Path) -> None:
    (tmp_path / "own_of_bounds.py").write_text(
        """
class First:
    def __init__(self, seat):
        pass
    def choose(self, t):
        return 0
    def observe(self, t, arm, reward):
        pass
    def outgoing(self, t):
        return []
    def receive(self, messages):
        pass
"""
    )
    spec = {**ONE_GAME, "policies": [{"type": "own_of_bounds:First", "label": "Mine"}, {"type": "robust"}]}
    with pytest.warns(SlowEngineNotice):
        played = run(decode(spec, folder=str(tmp_path)), tmp_path / "run", 1)
    mixed = bounds_of(played)
    (game,) = mixed.games
    assert [each.policy for each in game.policies] == ["Robust"]
    assert [each.policy for each in game.others] == ["Mine"]
    assert any(remark.startswith("Mine: there is no bound") for remark in remarks(mixed))
    assert [row["policy"] for row in bound_rows(mixed)] == ["Robust"]
    (axes,) = bounds_figure(mixed).axes
    # It always pulls the worse arm: 6 agents lose a gap of 1 per round.
    mine: Any = next(line for line in axes.lines if line.get_label() == "Mine")
    assert mine.get_ydata()[-1] == 1_800
    assert "Mine: there is no bound" in " ".join(words(bounds_section(mixed)))
    alone = dataclasses.replace(mixed, labels=("Mine",), games=(dataclasses.replace(game, policies=()),))
    assert len(bounds_figure(alone).axes) == 1
    assert bounds_section(alone).endswith("</section>")


def test_a_channel_that_is_not_perfect_is_said(of_one_game: RunBounds) -> None:
    assert not any("channel" in remark for remark in remarks(of_one_game))
    lossy = dataclasses.replace(of_one_game, channel="lossy")
    assert any("(lossy) need not do so" in remark for remark in remarks(lossy))


# --- the command ----------------------------------------------------------------------------------------


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    shown = capsys.readouterr()
    assert end.value.code == 0, shown.err
    return shown.out


def test_report_and_reproduce_know_bounds(
    of_one_game: RunBounds, one_game: RunFolder, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    call(capsys, "report", str(one_game.path), "--bounds", "--no-figures", "--out", str(page))
    assert 'id="bounds"' in page.read_text()
    assert "--bounds" in call(capsys, "reproduce", "--help")


def test_run_prints_the_bounds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from rumormill.files import to_toml

    spec = tmp_path / "mine.toml"
    spec.write_text(to_toml({**ONE_GAME, "horizon": 30}))
    arguments = ("run", str(spec), "--out", str(tmp_path / "run"), "--no-report")
    told = call(capsys, *arguments, "--bounds")
    assert "The theory's upper bounds at round 30" in told
    assert "upper bounds are vacuous" in told
    asked = json.loads(call(capsys, *arguments, "--bounds", "--json"))["runs"][0]
    assert [row["policy"] for row in asked["bounds"]] == ["Decentralized", "Centralized", "Consensus"]
    assert asked["lower_bounds"][0]["coefficient"] == pytest.approx(0.02)
    assert "bounds" not in json.loads(call(capsys, *arguments, "--json"))["runs"][0]
