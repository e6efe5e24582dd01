"""Curves of regret, over time and along a sweep: what they draw is in the table."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest

from figures.conftest import START, ends, small_run
from helpers.fake_runs import Key, made_up
from rumormill.errors import InputError
from rumormill.experiments.analyse.measured import axis_name, symbol
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures import draw_all, main_figure
from rumormill.experiments.figures.regret import (
    regret_by_parameter,
    regret_over_time,
    regret_over_time_linear,
    regret_per_message,
)
from rumormill.experiments.run.store import RunFolder
from rumormill.plotting import style
from rumormill.plotting.style import LOOKS, OWN_LOOKS
from rumormill.text import short, tick


@pytest.mark.parametrize("log", [False, True])
def test_curves_are_means_over_trials(plain_run: RunFolder, plain: Summary, log: bool) -> None:
    axes = regret_over_time(plain).axes[not log]  # side by side, the logarithmic ones first
    drawn: dict[Any, Any] = {line.get_label(): line for line in axes.lines}
    drawn.pop(START, None)
    assert list(drawn) == plain.policies
    for policy, line in drawn.items():
        table = (
            plain_run.frame.filter(pl.col("policy") == policy)
            .group_by("t")
            .agg(pl.col("regret").mean())
            .sort("t")
        )
        np.testing.assert_array_equal(line.get_xdata(), table["t"].to_numpy())
        np.testing.assert_allclose(line.get_ydata(), table["regret"].to_numpy(), rtol=1e-12)
    assert axes.get_xscale() == axes.get_yscale() == ("log" if log else "linear")


def test_every_policy_is_told_apart_without_colour(plain: Summary) -> None:
    (axes,) = regret_over_time_linear(plain).axes
    markers = [line.get_marker() for line in axes.lines if line.get_label() != START]
    assert len(set(markers)) == len(markers) == len(plain.policies)
    assert len({mark.marker for mark in LOOKS}) == len({mark.colour for mark in LOOKS}) == len(LOOKS)


def test_a_sweep_has_one_panel_per_point(swept: Summary) -> None:
    shown = regret_over_time(swept)
    titles = [axes.get_title() for axes in shown.axes if axes.get_visible()]
    assert titles == [f"γ = {g}, confidence = {word}" for g in (0, 1, 3) for word in ("paper", "anytime")]


def test_regret_by_a_number_and_by_a_word(swept_run: RunFolder, swept: Summary) -> None:
    by_gamma = regret_by_parameter(swept, "gamma")
    assert [axes.get_title() for axes in by_gamma.axes] == ["confidence = paper", "confidence = anytime"]
    line: Any = next(line for line in by_gamma.axes[1].lines if line.get_label() == "KMP")
    means = line.get_ydata()
    np.testing.assert_allclose(line.get_xdata(), [0, 1, 3], atol=0.2)  # a little aside, with its interval
    expected = [ends(swept_run, "KMP", gamma=g, confidence="anytime").mean() for g in (0, 1, 3)]
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    by_word = regret_by_parameter(swept, "confidence")
    assert [text.get_text() for text in by_word.axes[0].get_xticklabels()] == ["paper", "anytime"]


def test_markers_do_not_hide_each_other(swept: Summary) -> None:
    """Also where policies have the same regret: no two markers of a place have the same x."""
    for axis in ("gamma", "confidence"):
        for axes in regret_by_parameter(swept, axis).axes:
            drawn = [
                np.asarray(line.get_xdata()) for line in axes.lines if line.get_label() in swept.policies
            ]
            for first, second in itertools.combinations(drawn, 2):
                assert (abs(first - second) > 1e-6).all()


@pytest.mark.parametrize(
    ("key", "name", "word"),
    [
        ("gamma", "γ (hops)", "γ"),
        ("policies.gamma", "γ (hops)", "γ"),
        ("arms.tail", "tail index", "tail index"),
        ("byzantine.attack", "attack", "attack"),
        ("channel.p", "share of bundles that arrive, p", "p"),
        ("network.k", "k (network)", "k (network)"),
        ("rate", "rate", "rate"),
        ("policies.rate", "rate", "rate"),
    ],
)
def test_raw_keys_are_no_titles(key: str, name: str, word: str) -> None:
    assert (axis_name(key), symbol(key)) == (name, word)


def test_a_parameter_that_is_not_swept_is_refused(plain: Summary, swept: Summary) -> None:
    with pytest.raises(InputError, match=r"'alpha' is not swept in this run: gamma, confidence"):
        regret_by_parameter(swept, "alpha")
    with pytest.raises(InputError, match="nothing is"):
        regret_by_parameter(plain, "gamma")


SPREAD = {
    "name": "spread",
    "seed": 3,
    "horizon": 40,
    "trials": 5,
    "network": {"kind": "ring", "n": 9},
    "arms": {"law": "gaussian", "K": 3},
    "policies": [{"type": "kmp", "label": "KMP"}, {"type": "robust", "label": "Robust"}],
}


def test_no_panel_is_cut_off_by_the_first_one() -> None:
    """Regret ten times as large in later panels: their curves are inside the axes that all panels share."""
    spec = {**SPREAD, "sweep": {"gamma": [0, 1], "zeta": [0.1, 0.2]}}
    regret: dict[Key, float] = {
        (policy, gamma, zeta): (1.0 if zeta == 0.1 else 7.0) * (10 + gamma)
        for policy in ("KMP", "Robust")
        for gamma in (0, 1)
        for zeta in (0.1, 0.2)
    }
    summary = made_up(spec, regret)
    for figure in (regret_by_parameter(summary, "gamma"), regret_over_time_linear(summary)):
        for axes in figure.axes:
            low, high = axes.get_ylim()
            assert low == 0
            drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
            assert drawn.max() <= high


def test_regrets_far_apart_are_drawn_on_a_logarithmic_axis() -> None:
    spec = {**SPREAD, "sweep": {"gamma": [0, 1]}}
    near: dict[Key, float] = {(policy, g): 10.0 + g for policy in ("KMP", "Robust") for g in (0, 1)}
    far: dict[Key, float] = {**near, ("KMP", 1): 0.1}
    scales = [regret_by_parameter(made_up(spec, each), "gamma").axes[0].get_yscale() for each in (near, far)]
    assert scales == ["linear", "log"]


@pytest.mark.parametrize(
    ("axis", "values", "scale"),
    [
        ("zeta", [0.001, 0.002, 0.01, 0.1, 1.0], "log"),
        ("zeta", [0.5, 1.0, 1.5], "linear"),
        ("gamma", [0, 1, 2, 8, 64], "symlog"),
    ],
)
def test_labels_of_a_sweep_do_not_collide(axis: str, values: list[float], scale: str) -> None:
    spec = {**SPREAD, "sweep": {axis: values}}
    regret: dict[Key, float] = {(policy, v): 10.0 for policy in ("KMP", "Robust") for v in values}
    figure = regret_by_parameter(made_up(spec, regret), axis)
    (axes,) = figure.axes
    assert axes.get_xscale() == scale
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_the_band_is_explained_in_the_picture(plain: Summary, tmp_path: Path) -> None:
    def key(figure: Any) -> list[str]:
        return [text.get_text() for text in figure.legends[0].get_texts()]

    assert key(regret_over_time(plain))[-1] == "mean, 95 % band (5 trials)"
    assert key(regret_per_message(plain))[-1] == "95 % interval (5 trials)"
    figure = regret_over_time(plain)
    band: Any = figure.axes[0].collections[0]
    shown: Any = figure.legends[0].legend_handles[-1]
    assert shown.get_linewidth() == band.get_linewidth()[0] == 0  # neither has an edge
    one = summarise(small_run(tmp_path / "one", trials=1))
    assert key(regret_over_time(one))[-1] == "one trial: no band"
    assert key(regret_per_message(one))[-1] == "one trial: no interval"


def test_the_main_figure_answers_the_question(
    plain_run: RunFolder, swept_run: RunFolder, swept: Summary
) -> None:
    assert plain_run.plot().axes[0].get_xlabel() == "round"
    assert swept_run.plot().axes[0].get_xlabel() == "γ (hops)"
    assert main_figure(swept).axes[0].get_xlabel() == "γ (hops)"


def test_panels_stand_in_rows_of_three_or_two_by_two() -> None:
    assert [style.grid(n)[2] for n in (1, 2, 3, 4, 5, 7)] == [1, 2, 3, 2, 3, 3]


def test_few_panels_of_many_points() -> None:
    many = [{"gamma": g} for g in range(20)]
    shown = style.spread(many, 6)
    assert len(shown) == 6
    assert shown[0] == many[0]
    assert shown[-1] == many[-1]
    assert style.spread(many[:6], 6) == many[:6]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.5, "0.5"), (1, "1"), (12, "12"), (12345.6, "12,346"), (1e6, "1,000,000")]
)
def test_ticks_as_people_write_numbers(value: float, text: str) -> None:
    assert tick(value) == text


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (10, "10"), (1e3, "1k"), (1e5, "100k"), (1e6, "1M")])
def test_powers_of_ten_in_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_panel_has_at_most_eight_curves_and_says_so() -> None:
    labels = [f"policy {letter}" for letter in "abcdefghijk"]
    spec = {
        "name": "many",
        "seed": 3,
        "horizon": 40,
        "trials": 5,
        "network": {"kind": "ring", "n": 9},
        "arms": {"law": "pareto", "tail": 1.8, "K": 3},
        "policies": [{"type": "robust", "label": label} for label in labels],
        "sweep": {"arms.tail": [1.5, 1.8]},
    }
    worst = {"policy b", "policy c", "policy k"}
    regret: dict[Key, float] = {
        (label, tail): 1000.0 if label in worst else 10.0 + i
        for i, label in enumerate(labels)
        for tail in (1.5, 1.8)
    }
    summary = made_up(spec, regret, noise=0.0)
    for figure in (regret_over_time(summary), regret_by_parameter(summary, "arms.tail")):
        key = [text.get_text() for text in figure.legends[0].get_texts()]
        assert [name for name in key if name in labels] == [name for name in labels if name not in worst]
        assert "3 with more regret not drawn" in key


def test_a_policy_without_regret_can_be_drawn(tmp_path: Path) -> None:
    """On logarithmic axes nothing has no place; the others are drawn, without a warning."""
    spec = {
        "name": "oracle",
        "seed": 3,
        "horizon": 40,
        "trials": 5,
        "network": {"kind": "ring", "n": 9},
        "arms": {"law": "gaussian", "K": 3},
        "policies": [{"type": "robust", "label": label} for label in ("Oracle", "Robust")],
    }
    regret: dict[Key, float] = {"Oracle": 0.0, "Robust": 100.0}
    assert len(draw_all(made_up(spec, regret), tmp_path / "some")) == 16
    nothing: dict[Key, float] = {"Oracle": 0.0, "Robust": 0.0}
    assert len(draw_all(made_up(spec, nothing), tmp_path / "none")) == 16


def test_a_result_is_drawn_in_the_same_looks() -> None:
    import matplotlib as mpl
    from matplotlib.text import Text

    import rumormill as rm

    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    game: dict[str, Any] = {"horizon": 30, "trials": 3, "rng": 1}
    kmp = rm.simulate(bandit, rm.Network.ring(5), rm.KMPUCB(gamma=1), **game)
    with mpl.rc_context({"text.usetex": True, "axes.facecolor": "red"}):
        axes = kmp.plot()
        assert not any(text.get_usetex() for text in axes.figure.findobj(Text))
    alone = rm.simulate(bandit, rm.Network.ring(5), "robust", **game)
    assert alone.plot(axes) is axes
    drawn = {line.get_label(): (line.get_color(), line.get_marker()) for line in axes.lines}
    assert drawn == {name: (OWN_LOOKS[name].colour, OWN_LOOKS[name].marker) for name in ("KMP", "Robust")}
    legend: Any = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "KMP",
        "Robust",
        "mean, 95 % band (3 trials)",
    ]


@pytest.mark.parametrize("sheet", ["screen", "paper"])
def test_titles_of_panels_do_not_run_into_each_other(tmp_path: Path, sheet: str) -> None:
    folder = small_run(
        tmp_path / "run",
        horizon=10,
        trials=1,
        network={"kind": "erdos_renyi", "n": 9, "p": 0.5},
        sweep={"policies.confidence": ["paper", "anytime"], "network.p": [0.25, 0.5, 0.75]},
    )
    with style.drawn_for(sheet):
        figure = regret_over_time(summarise(folder))
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    assert len(boxes) == 6
    assert not any(one.overlaps(two) for one, two in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("wide", [False, True])
def test_rounds_below_narrow_panels_do_not_touch(wide: bool) -> None:
    """From 200 to 10,000 a wide panel has room for 2 and 5, one of three beside each other has not."""
    figure, panels = plt.subplots(1, 1 if wide else 3, figsize=(10, 4), squeeze=False, layout="constrained")
    for axes in panels.flat:
        axes.set_xscale("log")
        axes.set_xlim(165, 12_000)
        style.plain_ticks(axes)
    figure.draw_without_rendering()
    for axes in panels.flat:
        labels = [label for label in axes.get_xticklabels() if label.get_text()]
        boxes = [box for label in labels if 0 <= (box := label.get_window_extent()).x0 < figure.bbox.x1]
        gap = 0.5 * boxes[0].height
        assert all(left.x1 + gap < right.x0 for left, right in itertools.pairwise(boxes))
        inside = [label.get_text() for label in labels if 165 <= label.get_position()[0] <= 12_000]
        assert inside == (
            ["200", "500", "1,000", "2,000", "5,000", "10,000"] if wide else ["1,000", "10,000"]
        )
    plt.close(figure)
