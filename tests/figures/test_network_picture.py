"""The network is drawn as it is."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from figures.conftest import small_run
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures import network as netpicture
from rumormill.plotting.style import LOOKS


def test_the_network_is_drawn_with_its_leaders() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]])
    figure = netpicture.network_figure(5, edges, [[0, 1], [2, 3], [4]], [1, 4], "a title")
    width, height = figure.get_size_inches()
    assert 0.8 < width / height < 1.25, "about square, as the network is"
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


def test_what_happens_to_messages_is_said(tmp_path: Path, plain: Summary) -> None:
    def titles(summary: Summary) -> list[str]:
        return [figure.axes[0].get_title() for figure in netpicture.network_figures(summary).values()]

    lossy = small_run(tmp_path / "lossy", channel={"type": "imperfect", "p": 0.75}, horizon=3, trials=1)
    (title,) = titles(summarise(lossy))
    assert title.splitlines()[1:] == ["Every bundle is lost with probability 0.25."]
    swept = replace(lossy.spec, sweep={"channel.p": [0.5, 1.0]})
    (title,) = titles(dataclasses.replace(summarise(lossy), spec=swept))
    assert title.endswith("differs between the points of the sweep.")
    assert all("\n" not in title for title in titles(plain))
