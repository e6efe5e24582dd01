"""Figures: what they draw is in the table, files are the same every time, the network is drawn as it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.errors import InputError
from rumormill.experiments.analyse.views import points, spread
from rumormill.experiments.figures import network as netpicture
from rumormill.experiments.figures import regret as figures
from rumormill.experiments.figures.palette import LOOKS
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import decode

POLICIES = [{"type": kind, "zeta": 1.0} for kind in ("kmp", "centralized", "decentralized", "robust")]


def small_run(folder: Path, **more: Any) -> RunFolder:
    spec = {
        "name": "small",
        "seed": 3,
        "horizon": 40,
        "trials": 5,
        "network": {"kind": "ring", "n": 9},
        "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 3},
        "policies": POLICIES,
        **more,
    }
    return run(decode(spec), folder, 1)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(tmp_path_factory.mktemp("figures") / "plain")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(
        tmp_path_factory.mktemp("figures") / "swept",
        sweep={"gamma": [0, 1, 3], "confidence": ["paper", "anytime"]},
    )


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def ends(run: RunFolder, policy: str, **point: Any) -> np.ndarray:
    keep = [pl.col(axis) == value for axis, value in point.items()]
    return run.frame.filter(pl.col("policy") == policy, pl.col("t") == 40, *keep)["regret"].to_numpy()


@pytest.mark.parametrize("log", [False, True])
def test_curves_are_means_over_trials(plain: RunFolder, log: bool) -> None:
    (axes,) = figures.regret_over_time(plain, log=log).axes
    drawn = {line.get_label(): line for line in axes.lines}
    assert list(drawn) == plain.policies
    for policy, line in drawn.items():
        table = (
            plain.frame.filter(pl.col("policy") == policy)
            .group_by("t")
            .agg(pl.col("regret").mean())
            .sort("t")
        )
        np.testing.assert_array_equal(line.get_xdata(), table["t"].to_numpy())
        np.testing.assert_allclose(line.get_ydata(), table["regret"].to_numpy(), rtol=1e-12)
    assert axes.get_xscale() == axes.get_yscale() == ("log" if log else "linear")


def test_every_policy_is_told_apart_without_colour(plain: RunFolder) -> None:
    (axes,) = figures.regret_over_time(plain).axes
    assert len({line.get_marker() for line in axes.lines}) == len(plain.policies)
    assert len({mark.marker for mark in LOOKS}) == len({mark.colour for mark in LOOKS}) == len(LOOKS)


def test_a_sweep_has_one_panel_per_point(swept: RunFolder) -> None:
    shown = figures.regret_over_time(swept)
    titles = [axes.get_title() for axes in shown.axes if axes.get_visible()]
    assert titles == [f"γ = {g}, confidence = {word}" for g in (0, 1, 3) for word in ("paper", "anytime")]


def test_regret_by_a_number_and_by_a_word(swept: RunFolder) -> None:
    by_gamma = figures.regret_by_parameter(swept, "gamma")
    assert [axes.get_title() for axes in by_gamma.axes] == ["confidence = paper", "confidence = anytime"]
    means = by_gamma.axes[1].containers[0].lines[0].get_ydata()
    expected = [ends(swept, "KMP", gamma=g, confidence="anytime").mean() for g in (0, 1, 3)]
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    by_word = figures.regret_by_parameter(swept, "confidence")
    assert [text.get_text() for text in by_word.axes[0].get_xticklabels()] == ["paper", "anytime"]


def test_a_parameter_that_is_not_swept_is_refused(plain: RunFolder, swept: RunFolder) -> None:
    with pytest.raises(InputError, match=r"'alpha' is not swept in this run: gamma, confidence"):
        figures.regret_by_parameter(swept, "alpha")
    with pytest.raises(InputError, match="nothing is"):
        figures.regret_by_parameter(plain, "gamma")


def test_agents_are_drawn_from_their_quantiles(plain: RunFolder) -> None:
    (axes,) = figures.agent_distribution(plain).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == plain.policies
    last = plain.frame.filter(pl.col("policy") == "KMP", pl.col("t") == 40)
    whole, middle = axes.lines[0].get_xdata(), axes.lines[3].get_xdata()
    assert whole == pytest.approx([last["agent_min"].mean(), last["agent_max"].mean()])
    assert middle == pytest.approx([last["agent_q50"].mean()])


def test_messages_against_regret(plain: RunFolder) -> None:
    left, right = figures.regret_per_message(plain).axes
    for axes, column in ((left, "messages"), (right, "wire_bytes")):
        for policy, drawn in zip(plain.policies, axes.containers, strict=True):
            last = plain.frame.filter(pl.col("policy") == policy, pl.col("t") == 40)
            assert drawn.lines[0].get_xdata() == pytest.approx([last[column].mean() / 40])
    low, high = left.get_xlim()
    assert low < 0 < high  # those who send nothing have a place


def test_nobody_sends_anything(tmp_path: Path) -> None:
    alone = small_run(tmp_path / "alone", policies=[{"type": "robust", "zeta": 1.0}])
    for axes in figures.regret_per_message(alone).axes:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0"]


def test_the_main_figure_answers_the_question(plain: RunFolder, swept: RunFolder) -> None:
    assert plain.plot().axes[0].get_xlabel() == "round"
    assert swept.plot().axes[0].get_xlabel() == "γ (hops)"


def test_all_figures_as_files_and_the_same_every_time(plain: RunFolder, tmp_path: Path) -> None:
    one, two = (figures.draw_all(plain, tmp_path / name) for name in ("one", "two"))
    stems = ["regret", "regret-log", "agents", "messages", "network"]
    assert [path.name for path in one] == [f"{stem}{suffix}" for stem in stems for suffix in (".png", ".svg")]
    for left, right in zip(one, two, strict=True):
        assert left.read_bytes() == right.read_bytes()
        assert left.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" or left.read_bytes()[:5] == b"<?xml"


def test_the_network_is_drawn_with_its_leaders() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]])
    figure = netpicture.network_figure(5, edges, [[0, 1], [2, 3], [4]], [1, 4], "a title")
    (axes,) = figure.axes
    links, followers, leaders = axes.collections
    assert len(links.get_segments()) == 5
    assert len(followers.get_offsets()) == 3
    assert len(leaders.get_offsets()) == 2
    place = {
        tuple(np.round(at, 9)) for at in np.concatenate([followers.get_offsets(), leaders.get_offsets()])
    }
    assert {tuple(np.round(at, 9)) for segment in links.get_segments() for at in segment} == place
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "leaders (2)",
        "the 2 largest of 3 cliques, a colour each",
        "other cliques",
    ]


def test_the_largest_cliques_get_colours_of_their_own() -> None:
    cliques = [[0], [1, 2], [3, 4, 5]]
    colour, named = netpicture.colours(6, cliques)
    assert named == 2
    assert colour == [netpicture.OTHERS] + [LOOKS[1].colour] * 2 + [LOOKS[0].colour] * 3


def test_a_sweep_shows_its_nearest_and_farthest_reach(swept: RunFolder) -> None:
    titles = [figure.axes[0].get_title() for figure in netpicture.network_figures(swept).values()]
    assert titles == [f"9 agents, 9 links, diameter 4, γ = {gamma}" for gamma in (1, 3)]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_no_two_agents_share_a_place_among_clusters(sizes: list[int]) -> None:
    stops = np.cumsum([0, *sizes])
    cliques = [list(range(low, high)) for low, high in itertools.pairwise(stops)]
    place = netpicture.clustered(int(stops[-1]), cliques)
    apart = np.linalg.norm(place[:, None] - place[None], axis=2) + np.eye(len(place)) * 9
    assert apart.min() > 0.3


def test_few_panels_of_many_points() -> None:
    many = [{"gamma": g} for g in range(20)]
    shown = spread(many, 6)
    assert len(shown) == 6
    assert shown[0] == many[0]
    assert shown[-1] == many[-1]
    assert spread(many[:6], 6) == many[:6]


def test_points_come_in_the_order_of_the_sweep(plain: RunFolder, swept: RunFolder) -> None:
    assert points(plain) == [{}]
    assert points(swept) == swept.manifest["points"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.5, "0.5"), (1, "1"), (12, "12"), (12345.6, "12,346"), (1e6, "1,000,000")]
)
def test_ticks_as_people_write_numbers(value: float, text: str) -> None:
    assert figures.thousands(value) == text


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (10, "10"), (1e3, "1k"), (1e5, "100k"), (1e6, "1M")])
def test_powers_of_ten_in_short(value: float, text: str) -> None:
    assert figures.short(value) == text
