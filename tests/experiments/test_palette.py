"""Looks belong to names: the same in every figure and on the page, whatever the order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.fake_runs import Key, made_up
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures.regret import (
    agent_distribution,
    regret_by_parameter,
    regret_over_time,
    regret_per_message,
)
from rumormill.experiments.figures.theory import bounds_figure
from rumormill.experiments.report.html_page import chart_data
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import decode, named_spec, spec_names
from rumormill.plotting.style import LOOKS, OWN_LOOKS, looks

LABELS = ["KMP", "Robust", "Mine", "Yours, with a long name", "γ = 3"]


def summary(labels: list[str]) -> Summary:
    spec = {
        "name": "coloured",
        "seed": 1,
        "horizon": 20,
        "trials": 5,
        "network": {"kind": "ring", "n": 4},
        "arms": {"law": "gaussian", "K": 2},
        "policies": [{"type": "kmp", "label": label} for label in labels],
        "sweep": {"gamma": [1, 2]},
    }
    regret: dict[Key, float] = {(label, g): 10 + len(label) for label in labels for g in (1, 2)}
    return made_up(spec, regret)


def test_every_look_differs_in_each_respect() -> None:
    for respect in ("colour", "marker", "symbol", "line"):
        assert len({getattr(look, respect) for look in LOOKS}) == len(LOOKS)


def test_the_shipped_experiments_use_looks_of_their_own() -> None:
    assert len(set(OWN_LOOKS.values())) == len(OWN_LOOKS)
    for name in spec_names():
        labels = named_spec(name).labels
        chosen = looks(labels)
        assert list(chosen) == labels
        assert len(set(chosen.values())) == len(labels)
        own = {OWN_LOOKS[label].colour for label in labels if label in OWN_LOOKS}
        others = [label for label in labels if label not in OWN_LOOKS]
        wanted = min(len(own) + len(others), len(LOOKS))
        assert len({look.colour for look in chosen.values()}) == wanted
        assert {label: chosen[label] for label in labels if label in OWN_LOOKS} == {
            label: OWN_LOOKS[label] for label in labels if label in OWN_LOOKS
        }


names = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=12, unique=True)


@settings(deadline=None)
@given(names, st.randoms())
def test_the_order_does_not_matter(labels: list[str], chance: Any) -> None:
    shuffled = list(labels)
    chance.shuffle(shuffled)
    assert looks(labels) == looks(shuffled)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=49, unique=True))
def test_no_two_names_of_a_run_look_alike(labels: list[str]) -> None:
    chosen = looks([*labels])
    assert len(set(chosen.values())) == len(labels)
    if len(labels) <= len(LOOKS):
        assert len(set(chosen.values())) == len(labels)
        own = {OWN_LOOKS[label].colour for label in labels if label in OWN_LOOKS}
        others = [label for label in labels if label not in OWN_LOOKS]
        wanted = min(len(own) + len(others), len(LOOKS))
        assert len({look.colour for look in chosen.values()}) == wanted


def test_more_names_than_looks_still_get_one() -> None:
    assert len(looks([f"policy {number}" for number in range(200)])) == 200


def test_a_name_of_ones_own_keeps_its_look_from_run_to_run() -> None:
    alone = looks(["Mine"])["Mine"]
    taken = next(label for label, look in OWN_LOOKS.items() if look != alone)
    assert looks(["Mine", taken])["Mine"] == looks([taken, "Mine"])["Mine"] == alone
    # The look that a name asks for is a plain checksum of its letters, the same in every process.
    assert alone == LOOKS[3382344877 % len(LOOKS)]


@pytest.mark.parametrize("labels", [LABELS, LABELS[::-1]])
def test_all_figures_and_the_page_agree(labels: list[str]) -> None:
    found = summary(labels)
    expected = {label: look.colour for label, look in looks(sorted(labels)).items()}

    (curves, _) = regret_over_time(found).axes
    assert {line.get_label(): line.get_color() for line in curves.lines} == expected
    assert {line.get_label(): line.get_marker() for line in curves.lines} == {
        label: look.marker for label, look in looks(labels).items()
    }
    for axes in regret_by_parameter(found, "gamma").axes:
        lines = {line.get_label(): line.get_color() for line in axes.lines}
        assert {name: colour for name, colour in lines.items() if not str(name).startswith("_")} == expected
    for axes in regret_per_message(found).axes:
        drawn: list[Any] = list(axes.containers)
        bars = {bar.get_label(): bar.lines[0].get_color() for bar in drawn}
        assert bars == expected
    (agents,) = agent_distribution(found).axes
    rows = [line.get_color() for line in agents.lines[::4]]
    assert dict(zip([text.get_text() for text in agents.get_yticklabels()], rows, strict=True)) == expected
    assert {each["name"]: each["colour"] for each in chart_data(found)["policies"]} == expected


def test_bounds_have_the_same_colours(tmp_path: Path) -> None:
    spec = {
        "name": "bounded",
        "seed": 1,
        "horizon": 30,
        "trials": 1,
        "network": {"kind": "ring", "n": 4},
        "arms": {"law": "gaussian", "means": [0.0, 1.0]},
        "policies": [{"type": "robust", "label": "Mine"}, {"type": "kmp"}],
    }
    found = summarise(run(decode(spec), tmp_path / "run", 1), bounds=True)
    assert found.bounds is not None
    (axes,) = bounds_figure(found.bounds).axes
    drawn = {
        line.get_label(): line.get_color() for line in axes.lines if not str(line.get_label()).startswith("_")
    }
    assert drawn == {label: look.colour for label, look in looks(["KMP", "Mine"]).items()}
