"""Rumours as a page and as a film: what is shown is what was recorded."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from PIL import Image

import rumormill as rm
from report.conftest import small_spec
from rumormill.engine.trace import Bundle
from rumormill.errors import InputError
from rumormill.experiments.spec.reading import at_scale, decode
from rumormill.experiments.spec.schema import ByzantinePart, ClusterArms, Spec
from rumormill.experiments.watch.cases import (
    Watched,
    chosen_point,
    nearest_agents,
    part_of_network,
    part_of_spec,
    report_section,
    watch_data,
    watch_html,
    watched,
)
from rumormill.experiments.watch.film import LOST, STEPS, _Film, n_frames, seen_at, spots, write_film
from rumormill.plotting.style import ON_BLACK, ON_WHITE, arm_colours, ink_on

KMP = [{"type": "kmp", "zeta": 1.0, "gamma": 2}]
LOSSY = {"channel": {"type": "imperfect", "p": 0.5, "delay": 2}, "policies": KMP}


def ready(**more: Any) -> Spec:
    return at_scale(decode(small_spec("watched", **more)))


@pytest.fixture(scope="module")
def lossy() -> Watched:
    return watched(ready(**LOSSY, absences=[(3, 2, 4)]), rounds=6, agents=30)


@pytest.fixture(scope="module")
def perfect() -> Watched:
    return watched(ready(policies=KMP), rounds=6, agents=30)


# --- which game ------------------------------------------------------------------------------------------


def test_a_small_network_is_played_whole(perfect: Watched) -> None:
    assert perfect.agents == list(range(12))
    assert perfect.remarks == ["The first 6 of 60 rounds of the first trial, with all 12 agents."]
    assert perfect.rounds == 6
    assert perfect.places.min() >= 0
    assert perfect.places.max() <= 1


def test_of_a_large_one_a_part_is_played_and_that_is_said() -> None:
    spec = ready(network={"kind": "ring", "n": 50}, policies=KMP, outages=[(0, 1, 1, 3), (30, 31, 1, 3)])
    seen = watched(spec, rounds=99, agents=5)
    # All have two links: agent 0 is the first of them, its neighbours and theirs follow.
    assert seen.agents == [0, 1, 2, 48, 49]
    assert seen.network.edges().tolist() == [[0, 1], [0, 4], [1, 2], [3, 4]]
    assert seen.rounds == 60
    assert seen.remarks == [
        "A smaller game than that of the run: the 5 agents around the one with the most links play alone, "
        "without the other 45; all rounds.",
        "Some links are down for a while.",
    ]
    down = [bundle for bundle in seen.plays[0].record.bundles if bundle.fate == "down"]
    assert {(bundle.sender, bundle.receiver) for bundle in down} == {(0, 1), (1, 0)}


def test_parts_of_a_network_in_pieces() -> None:
    pieces = rm.Network.from_edges([(0, 1), (2, 3), (3, 4)])
    assert nearest_agents(pieces, 4) == [0, 2, 3, 4]
    part = part_of_network(pieces, [0, 2, 3, 4])
    assert part.labels == (0, 2, 3, 4)
    assert part.edges().tolist() == [[1, 2], [2, 3]]


def test_what_is_said_of_single_agents_goes_with_them() -> None:
    spec = ready(policies=KMP, absences=[(2, 1, 4), (5, 1, 1)], outages=[(2, 3, 1, 2), (5, 6, 1, 2)])
    clusters = [ClusterArms(members=[2, 5], means=[0, 1, 0]), ClusterArms(members=[6], means=[1, 0, 0])]
    spec = replace(spec, byzantine=ByzantinePart(agents=4), arms=replace(spec.arms, clusters=clusters))
    part = part_of_spec(spec, [2, 3, 9])
    assert part.absences == [(0, 1, 4)]
    assert part.outages == [(0, 1, 1, 2)]
    assert part.byzantine == ByzantinePart(agents=[0, 1])
    assert part.arms.clusters == [ClusterArms(members=[0], means=[0, 1, 0])]
    alone = part_of_spec(spec, [9])
    assert alone.byzantine is None
    assert alone.arms.clusters is None


def test_the_sweep_point_is_the_middle_one_or_the_one_asked_for() -> None:
    spec = ready(policies=[{"type": "kmp"}], sweep={"gamma": [0, 1, 2], "zeta": [0.5, 1.0]})
    assert chosen_point(spec, {}).values == {"gamma": 1, "zeta": 1.0}
    assert chosen_point(spec, {"gamma": "2"}).values == {"gamma": 2, "zeta": 1.0}
    assert chosen_point(spec, {"zeta": "1"}).values == {"gamma": 1, "zeta": 1.0}
    with pytest.raises(InputError, match="--at gamma=3 is not allowed: allowed are 0, 1, 2"):
        chosen_point(spec, {"gamma": "3"})
    with pytest.raises(InputError, match="did you mean 'gamma'"):
        chosen_point(spec, {"gama": "1"})
    with pytest.raises(InputError, match="sweeps nothing"):
        chosen_point(ready(), {"gamma": "1"})


def test_policies_are_chosen_by_label() -> None:
    seen = watched(ready(), rounds=2, agents=30, policies=["robust", "KMP"])
    assert [play.label for play in seen.plays] == ["Robust", "KMP"]
    with pytest.raises(InputError, match="did you mean 'Robust'"):
        watched(ready(), rounds=2, agents=30, policies=["Robst"])


# --- the page --------------------------------------------------------------------------------------------


def test_the_page_has_all_that_did_not_simply_arrive(lossy: Watched, perfect: Watched) -> None:
    (play,) = watch_data(lossy)["plays"]
    bundles = lossy.plays[0].record.bundles
    odd = {tuple(each[:3]) for each in play["odd"]}
    plain = [each for each in bundles if (each.sender, each.receiver, each.sent) not in odd]
    assert all(each.fate == "arrived" and each.arrived == each.sent and not each.missing for each in plain)
    assert {each[3] for each in play["odd"]} == {"lost", "away", "arrived"}
    assert watch_data(lossy)["away"] == [[], [3], [3], [3], [], []]
    # Whoever is there and not odd has sent to all neighbours: so the page needs no list of the others.
    said = sum(
        len(lossy.network.neighbours(v)) for row in play["said"] for v, batch in enumerate(row) if batch
    )
    assert said == len(bundles)
    (play,) = watch_data(perfect)["plays"]
    assert play["odd"] == []
    assert play["said"][0] == [[v] for v in range(12)]
    assert play["actions"] == perfect.plays[0].record.actions.tolist()


def test_the_page_is_the_same_every_time_and_says_what_it_shows(lossy: Watched) -> None:
    again = watched(ready(**LOSSY, absences=[(3, 2, 4)]), rounds=6, agents=30)
    page = watch_html(lossy)
    assert page == watch_html(again)
    assert "A small run &lt;watched&gt;" in page
    assert "Every bundle is lost with probability 0.5." in page
    assert "Bundles come up to 2 rounds late, 1 in the mean." in page
    assert "Some agents are away for a while." in page


def test_own_classes_are_shown_in_a_report_if_they_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_watched.py").write_text(
        "from rumormill import RobustUCB\nclass Mine(RobustUCB):\n    pass\n"
    )
    spec = small_spec("own", policies=[{"type": "mine_watched:Mine"}, *KMP])
    ready = at_scale(decode(spec, folder=str(tmp_path)))
    assert [play.label for play in watched(ready, rounds=2, agents=9).plays] == ["Mine", "KMP"]
    assert '"name":"Mine"' in report_section(ready)
    monkeypatch.delitem(sys.modules, "mine_watched")
    assert '"name":"KMP"' in report_section(ready)
    assert "Mine" not in report_section(ready)
    only = replace(ready, policies=ready.policies[:1])
    assert "rumormill watch SPEC" in report_section(only)


def test_a_network_that_is_gone_leaves_a_sentence() -> None:
    spec = ready(policies=KMP)
    gone = replace(spec, network=replace(spec.network, kind="file", settings={"file": "gone.txt"}))
    assert report_section(gone) == "<p>This game cannot be played again here.</p>"


@pytest.mark.parametrize("ramp", [ON_WHITE, ON_BLACK])
def test_the_best_arm_is_blue_and_the_worst_red(ramp: Any) -> None:
    best, worst, middle = arm_colours([0.0, 0.9, 0.3], ramp)
    assert best == "#{:02x}{:02x}{:02x}".format(*ramp[0])
    assert worst == "#{:02x}{:02x}{:02x}".format(*ramp[-1])
    assert middle == "#{:02x}{:02x}{:02x}".format(*ramp[2])
    assert len(set(arm_colours(list(np.linspace(0, 1, 20)), ramp))) == 20
    assert (ink_on("#08519c"), ink_on("#e8d8a0")) == ("#ffffff", "#000000")
    assert (ink_on("#808000"), ink_on("#8080ff")) == ("#ffffff", "#000000")  # blue is light too, a little


# --- the film --------------------------------------------------------------------------------------------


def test_where_a_bundle_is() -> None:
    on_time, late = Bundle(0, 1, 3, ((0, 3),), "arrived", 3), Bundle(0, 1, 3, ((0, 3),), "arrived", 4)
    lost, away = Bundle(0, 1, 3, ((0, 3),), "lost", None, 1), Bundle(0, 1, 3, ((0, 3),), "away", 3)
    down = Bundle(0, 1, 3, ((0, 3),), "down", None, 1)
    table = [
        (on_time, 3, 0.25, 0.25, "on time"),
        (late, 3, 0.5, 0.25, "late"),
        (late, 4, 0.5, 0.75, "late"),
        (lost, 3, 0.25, 0.25, "on time"),
        (lost, 3, 0.75, 0.5, "lost"),
        (away, 3, 0.25, 0.25, "on time"),
        (away, 3, 0.75, 0.75, "lost"),
        (down, 3, 0.5, 0.15, "lost"),
    ]
    for bundle, t, part, along, state in table:
        seen = seen_at(bundle, t, part)
        assert (seen.along, seen.state) == (along, state)
    places = np.array([[0.0, 0.0], [10.0, 0.0]])
    there, back = (seen_at(Bundle(a, 1 - a, 1, ((a, 1),), "arrived", 1), 1, 0.5) for a in (0, 1))
    assert spots([there, back], places, 1.0, 0.5).tolist() == [[5.0, -0.5], [5.0, 0.5]]
    assert spots([], places, 1.0, 0.5).shape == (0, 2)


def frames(path: Path) -> list[NDArray[np.uint8]]:
    with Image.open(path) as film:
        found = []
        for number in range(getattr(film, "n_frames", 1)):
            film.seek(number)
            found.append(np.asarray(film.convert("RGB")))
    return found


def has_colour(frame: NDArray[np.uint8], colour: str) -> bool:
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return bool((np.abs(frame.astype(int) - wanted).max(axis=2) <= 8).any())


def test_a_film_moves_and_shows_what_is_lost(lossy: Watched, perfect: Watched, tmp_path: Path) -> None:
    heard: list[int] = []
    shown = frames(write_film(lossy, tmp_path / "new" / "lossy.gif", lambda: heard.append(1)))
    assert len(shown) == len(heard) == n_frames(lossy) == 6 * STEPS
    assert all((one != two).any() for one, two in itertools.pairwise(shown))
    assert (shown[0][0, 0] == 255).all()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lossy.gif"]
    top = [frame[: frame.shape[0] // 2] for frame in shown]
    assert sum(has_colour(frame, LOST) for frame in top) > 6
    plain = [frame[: frame.shape[0] // 2] for frame in frames(write_film(perfect, tmp_path / "a.gif"))]
    assert not any(has_colour(frame, LOST) for frame in plain)


def test_the_agents_of_a_film_show_the_arms_they_chose(lossy: Watched) -> None:
    gaps = [0.5, 1.0, 0.0]  # arm 0 in the light middle of the colours: its number is black
    film, seen, colours = (
        _Film(dataclasses.replace(lossy, gaps=gaps)),
        lossy.plays[0].record,
        arm_colours(gaps),
    )
    for t in (1, 3, 6):
        film.draw(t, 0.5)
        shown = [(text.get_text(), text.get_color()) for text in film._numbers]
        for (text, ink), arm, here in zip(shown, seen.actions[t - 1], seen.up[t - 1], strict=True):
            assert (text, ink) == ((str(arm), ink_on(colours[arm])) if here else ("", "#ffffff"))
    assert {0, 1} <= set(seen.actions[[0, 2, 5]].ravel())
    assert not seen.up[2].all()


def test_a_film_without_ffmpeg_is_refused_in_a_line(
    perfect: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"needs ffmpeg, which is not installed: .* \.gif"):
        write_film(perfect, tmp_path / "film.mp4")
