"""Figures: what they draw is in the table, files are the same every time, the network is drawn as it is."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from made_up import Key, made_up
from rumormill.errors import InputError
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures import FIGURES, draw_all, main_figure, style
from rumormill.experiments.figures import network as netpicture
from rumormill.experiments.figures.agents import agent_distribution
from rumormill.experiments.figures.coverage import coverage_figure
from rumormill.experiments.figures.files import rendered
from rumormill.experiments.figures.messages import regret_per_message
from rumormill.experiments.figures.palette import LOOKS, OWN_LOOKS
from rumormill.experiments.figures.panel import panel_caption, panel_figure
from rumormill.experiments.figures.redraw import RECORD
from rumormill.experiments.figures.regret_by_parameter import regret_by_parameter
from rumormill.experiments.figures.regret_over_time import regret_over_time, regret_over_time_linear
from rumormill.experiments.report.page import report_html
from rumormill.experiments.report.tables import escaped, write_tables
from rumormill.experiments.run.files import StoreError
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import decode
from rumormill.text import short, tick
from rumormill.theory import CoverageRow

START = "the paper's start"  # a line of its own beside the policies
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
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(tmp_path_factory.mktemp("figures") / "plain")


@pytest.fixture(scope="module")
def swept_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small_run(
        tmp_path_factory.mktemp("figures") / "swept",
        sweep={"gamma": [0, 1, 3], "confidence": ["paper", "anytime"]},
    )


@pytest.fixture(scope="module")
def plain(plain_run: RunFolder) -> Summary:
    return summarise(plain_run)


@pytest.fixture(scope="module")
def swept(swept_run: RunFolder) -> Summary:
    return summarise(swept_run)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def ends(run: RunFolder, policy: str, **point: Any) -> NDArray[np.float64]:
    keep = [pl.col(axis) == value for axis, value in point.items()]
    return run.frame.filter(pl.col("policy") == policy, pl.col("t") == 40, *keep)["regret"].to_numpy()


@pytest.mark.parametrize("log", [False, True])
def test_curves_are_means_over_trials(plain_run: RunFolder, plain: Summary, log: bool) -> None:
    axes = regret_over_time(plain).axes[log]  # both side by side
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
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 3])  # only error bars step aside
    expected = [ends(swept_run, "KMP", gamma=g, confidence="anytime").mean() for g in (0, 1, 3)]
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    by_word = regret_by_parameter(swept, "confidence")
    assert [text.get_text() for text in by_word.axes[0].get_xticklabels()] == ["paper", "anytime"]


def test_a_parameter_that_is_not_swept_is_refused(plain: Summary, swept: Summary) -> None:
    with pytest.raises(InputError, match=r"'alpha' is not swept in this run: gamma, confidence"):
        regret_by_parameter(swept, "alpha")
    with pytest.raises(InputError, match="nothing is"):
        regret_by_parameter(plain, "gamma")


def test_agents_are_drawn_from_their_quantiles(plain_run: RunFolder, plain: Summary) -> None:
    (axes,) = agent_distribution(plain).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == plain.policies
    last = plain_run.frame.filter(pl.col("policy") == "KMP", pl.col("t") == 40)
    whole, middle = axes.lines[0].get_xdata(), axes.lines[3].get_xdata()
    assert whole == pytest.approx([last["agent_min"].mean(), last["agent_max"].mean()])
    assert middle == pytest.approx([last["agent_q50"].mean()])


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
    one = summarise(small_run(tmp_path / "one", trials=1))
    assert key(regret_over_time(one))[-1] == "one trial: no band"
    assert key(regret_per_message(one))[-1] == "one trial: no interval"


def test_lines_of_messages_go_along_the_reach_only(swept: Summary) -> None:
    left, _ = regret_per_message(swept).axes
    bars: list[Any] = list(left.containers)
    for policy, drawn in zip(swept.policies, bars, strict=True):
        assert len(drawn.lines[0].get_xdata()) == 3  # γ = 0, 1, 3, at the last confidence
        assert (drawn.lines[0].get_linestyle() != "None") == (policy != "Robust")


def test_messages_against_regret(plain_run: RunFolder, plain: Summary) -> None:
    left, right = regret_per_message(plain).axes
    for axes, column in ((left, "messages"), (right, "wire_bytes")):
        bars: list[Any] = list(axes.containers)
        for policy, drawn in zip(plain.policies, bars, strict=True):
            last = plain_run.frame.filter(pl.col("policy") == policy, pl.col("t") == 40)
            assert drawn.lines[0].get_xdata() == pytest.approx([last[column].to_numpy().mean() / 40])
    low, high = left.get_xlim()
    assert low < 0 < high  # those who send nothing have a place


def test_nobody_sends_anything(tmp_path: Path) -> None:
    alone = small_run(tmp_path / "alone", policies=[{"type": "robust", "zeta": 1.0}])
    for axes in regret_per_message(summarise(alone)).axes:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0"]


def test_the_main_figure_answers_the_question(
    plain_run: RunFolder, swept_run: RunFolder, swept: Summary
) -> None:
    assert plain_run.plot().axes[0].get_xlabel() == "round"
    assert swept_run.plot().axes[0].get_xlabel() == "γ (hops)"
    assert main_figure(swept).axes[0].get_xlabel() == "γ (hops)"


def test_plt_show_knows_what_was_plotted_and_nothing_else(plain_run: RunFolder, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    draw_all(summarise(plain_run), tmp_path)
    assert plt.get_fignums() == []
    figure = plain_run.plot()
    assert [plt.figure(number) for number in plt.get_fignums()] == [figure]


def test_all_figures_as_files_and_the_same_every_time(plain: Summary, tmp_path: Path) -> None:
    one, two = (draw_all(plain, tmp_path / name) for name in ("one", "two"))
    stems = ["regret", "regret-linear", "agents", "messages", "network"]
    kinds = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF", "txt": b"small. "}
    assert [path.name for path in one] == [f"{stem}.{kind}" for stem in stems for kind in kinds]
    for left, right in zip(one, two, strict=True):
        assert left.read_bytes() == right.read_bytes()
        assert left.read_bytes().startswith(kinds[left.suffix[1:]])


def test_the_network_is_drawn_with_its_leaders() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]])
    figure = netpicture.network_figure(5, edges, [[0, 1], [2, 3], [4]], [1, 4], "a title")
    (axes,) = figure.axes
    collections: list[Any] = list(axes.collections)
    links, followers, leaders = collections
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


def test_a_dense_network_is_no_ball_of_wool() -> None:
    """Between two cliques one line stands for all their links."""
    agents = 60
    edges = np.array(list(itertools.combinations(range(agents), 2)))
    cliques = [list(range(low, low + 20)) for low in (0, 20, 40)]
    figure = netpicture.network_figure(agents, edges, cliques, [0])
    collections: list[Any] = list(figure.axes[0].collections)
    assert len(collections[0].get_segments()) == 3
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    assert key[-1] == "all links between two cliques (100 % of pairs linked)"
    alone = netpicture.network_figure(agents, edges, [list(range(agents))], [0])
    assert [text.get_text() for text in alone.legends[0].get_texts()][-1].startswith("links not drawn")


def test_a_sweep_shows_its_nearest_and_farthest_reach(swept: Summary) -> None:
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


# --- the table of figures -------------------------------------------------------------------------------


def test_a_figure_more_is_one_line(swept: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trials(summary: Summary) -> Any:
        """How many trials there are."""
        with style.style():
            figure = style.new_figure(2, 2)
            figure.subplots().bar(summary.policies, [len(s.trials) for s in summary.at(summary.points[0])])
        return figure

    module = ModuleType("rumormill.experiments.figures.trials")
    module.trials = trials  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(FIGURES, "trials", "trials:trials")
    drawn = [path.name for path in draw_all(swept, tmp_path)]
    assert drawn[-4:] == ["trials.png", "trials.svg", "trials.pdf", "trials.txt"]
    assert {"regret-by-gamma.png", "regret-by-confidence.png", "network-1.svg", "network-2.svg"} <= {*drawn}
    assert "<figcaption>How many trials there are.</figcaption>" in report_html(swept)


# --- the user's own settings stay outside ---------------------------------------------------------------

LOUD = {"text.usetex": True, "font.size": 30.0, "lines.linewidth": 9.0, "axes.facecolor": "red"}


def test_settings_of_the_user_change_nothing(plain: Summary, tmp_path: Path) -> None:
    import matplotlib as mpl

    quiet = draw_all(plain, tmp_path / "quiet")
    with mpl.rc_context(LOUD):
        loud = draw_all(plain, tmp_path / "loud")
        assert mpl.rcParams["font.size"] == 30.0  # and they are left as they were
    for one, other in zip(quiet, loud, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_matplotlibrc_changes_nothing(plain: Summary, tmp_path: Path) -> None:
    """A real file, with a window that cannot open here and TeX that may not be installed."""
    (tmp_path / "matplotlibrc").write_text(
        "backend: tkagg\ntext.usetex: True\nfont.size: 30\naxes.facecolor: red\nsavefig.dpi: 7\n"
    )
    code = (
        "import sys; from pathlib import Path\n"
        "from rumormill.experiments.analyse.summary import summarise\n"
        "from rumormill.experiments.figures import draw_all\n"
        "from rumormill.experiments.run.store import open_run\n"
        "draw_all(summarise(open_run(sys.argv[1])), Path(sys.argv[2]))\n"
    )
    apart = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "MPLBACKEND")}
    environment = {**apart, "MATPLOTLIBRC": str(tmp_path)}
    asked = [sys.executable, "-c", code, str(plain.path), str(tmp_path / "loud")]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for path in draw_all(plain, tmp_path / "quiet"):
        assert path.read_bytes() == (tmp_path / "loud" / path.name).read_bytes()


def test_a_plotted_figure_is_whole_before_the_user_saves_it(plain_run: RunFolder, tmp_path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.text import Text

    with mpl.rc_context({"text.usetex": True}):
        figure = plain_run.plot()
        figure.savefig(tmp_path / "mine.png")
        assert not any(text.get_usetex() for text in figure.findobj(Text))


def test_a_result_is_drawn_in_the_same_looks() -> None:
    import matplotlib as mpl
    from matplotlib.text import Text

    import rumormill as rm

    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    game: dict[str, Any] = {"horizon": 30, "trials": 3, "rng": 1}
    kmp = rm.simulate(bandit, rm.Network.ring(5), rm.KMPUCB(gamma=1), **game)
    with mpl.rc_context({"text.usetex": True, "axes.facecolor": "red"}):
        figure = kmp.plot()
        assert not any(text.get_usetex() for text in figure.findobj(Text))
    (axes,) = figure.axes
    alone = rm.simulate(bandit, rm.Network.ring(5), "robust", **game)
    assert alone.plot(axes, label="Robust") is figure
    drawn = {line.get_label(): (line.get_color(), line.get_marker()) for line in axes.lines}
    assert drawn == {name: (OWN_LOOKS[name].colour, OWN_LOOKS[name].marker) for name in ("KMP", "Robust")}
    legend: Any = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "KMP",
        "Robust",
        "mean, 95 % band (3 trials)",
    ]


@pytest.mark.parametrize("sheet", ["screen", "paper"])
def test_text_stays_text(plain: Summary, sheet: str) -> None:
    with style.drawn_for(sheet):
        svg = rendered(agent_distribution(plain), "svg").decode()
    assert "Decentralized</text>" in svg
    assert ("STIXGeneral" in svg) == (sheet == "paper")


def test_a_figure_for_paper_has_the_width_of_a_column_or_a_page(plain: Summary) -> None:
    def width(figure: Any) -> float:
        return float(figure.get_size_inches()[0])

    with style.drawn_for("paper"):
        assert width(agent_distribution(plain)) == 3.3
        assert width(regret_over_time(plain)) == 6.75
    with style.drawn_for(width=5.0):
        assert width(agent_distribution(plain)) == width(regret_over_time(plain)) == 5.0
    refused = pytest.raises(InputError, match=r"style = 'papier' is not allowed: did you mean 'paper'")
    with refused, style.drawn_for("papier"):
        pass


def test_only_what_changed_is_drawn_again(plain_run: RunFolder, tmp_path: Path) -> None:
    def ages() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (tmp_path / "once").iterdir()}

    first = draw_all(summarise(plain_run), tmp_path / "once")
    before = ages()
    assert draw_all(summarise(plain_run), tmp_path / "once") == first
    assert ages() == before
    (tmp_path / "once" / "agents.svg").unlink()
    assert draw_all(summarise(plain_run), tmp_path / "once") == first
    changed = {name for name, age in ages().items() if before[name] != age}
    assert changed == {"agents.png", "agents.svg", "agents.pdf", "agents.txt", RECORD}
    (tmp_path / "once" / RECORD).write_text("[1")
    agents = draw_all(summarise(plain_run), tmp_path / "once", ["agents"])
    assert agents == [path for path in first if path.stem == "agents"]


# --- several runs in one figure, and tables -------------------------------------------------------------


def test_runs_side_by_side_share_a_key(plain: Summary, swept: Summary) -> None:
    figure = panel_figure([plain, swept, plain, plain])
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == [f"({letter}) small" for letter in "abcd"]
    assert [axes.get_xlabel() for axes in shown[:2]] == ["round", "γ (hops) (confidence = anytime)"]
    assert [axes.get_yscale() for axes in panel_figure([plain], linear=True).axes] == ["linear"]
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    others = ["mean, 95 % band (5 trials)", "95 % interval (5 trials)"]
    assert [name for name in key if name != START] == [*plain.policies, *others]
    assert "(b) small (small): at round 40 against γ (hops)" in panel_caption([plain, swept])


def test_the_table_to_publish(swept: Summary, tmp_path: Path) -> None:
    latex, marked, plain_text = (path.read_text() for path in write_tables(swept, tmp_path))
    assert latex.count(r" \\") == 1 + len(swept.rows)
    assert r"\begin{tabular}{lllrrrrr}" in latex
    assert r"$\gamma$ (hops) & confidence & policy & group regret & 95 \% band" in latex
    assert marked.splitlines()[1] == "|---|---|---|---:|---:|---:|---:|---:|"
    assert "5 trials, seed 3 (rumormill, small)." in marked
    read = pl.read_csv(plain_text.encode())
    assert read["regret"].to_list() == [row["regret"] for row in swept.rows]  # all digits


def test_latex_takes_any_label() -> None:
    assert escaped("a_b & 5 % {γ}") == r"a\_b \& 5 \% \{$\gamma$\}"


# --- coverage -------------------------------------------------------------------------------------------


def test_no_failure_is_an_upper_limit() -> None:
    row = CoverageRow(
        estimator="trimmed",
        law="any",
        eps=1.0,
        n=50,
        L=2.3,
        delta=0.1,
        radius=1.0,
        valid=True,
        repeats=100,
        above=0,
        below=0,
        confidence=0.999,
        low=0.0,
        high=0.05,
    )
    found = {"trimmed": [row]}
    figure = coverage_figure(found)
    limits: Any = figure.axes[0].containers[-1]
    assert limits.lines[0].get_ydata() == pytest.approx([0.05])
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "none failed: upper limit"


# --- a full disk ----------------------------------------------------------------------------------------


def test_no_space_left_names_the_file_and_the_way_on(
    plain: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def full(handle: int) -> None:
        written.append(handle)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"no room left to write .*/regret\.svg: .*free some space"):
        draw_all(plain, tmp_path / "figures")
    # The first figure is whole, of the second there is no trace.
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["regret.png"]


def test_a_folder_that_cannot_be_made_is_named(plain: Summary, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/figures cannot be made for figures: Not a directory"):
        draw_all(plain, tmp_path / "file" / "figures")
