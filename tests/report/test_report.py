"""The page as text: what it says, what it must not do, and the spec it carries."""

from __future__ import annotations

import base64
import copy
import dataclasses
import errno
import os
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.report.html_page import chart_data, command_for, report_html, write_report
from rumormill.experiments.report.markup import picture, table
from rumormill.experiments.run.manifest import Machine, Manifest, fingerprint, of_spec
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec.reading import at_scale, decode, encode, named_spec, spec_names
from rumormill.experiments.spec.schema import Spec
from rumormill.files import StoreError, to_toml

VOID = {"meta", "link", "img", "input", "br"}


class Outline(HTMLParser):
    """Checks that tags close in order, and collects addresses and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


@pytest.fixture(scope="session")
def page(sweep_summary: Summary) -> str:
    return report_html(sweep_summary)


def outline(page: str) -> Outline:
    parsed = Outline()
    parsed.feed(page)
    assert parsed.open == []
    return parsed


def test_the_page_is_whole_and_loads_nothing(page: str) -> None:
    parsed = outline(page)
    assert parsed.addresses
    assert all(address.startswith("data:") for address in parsed.addresses)


def test_the_page_says_what_was_asked_and_how_to_ask_again(page: str) -> None:
    words = " ".join(outline(page).words)
    for expected in (
        "A small run <sweep>",
        "Does it show & tell?",
        "rumormill run sweep.toml",
        "watts_strogatz",
        "γ matters for Decentralized",
        "γ hardly matters for KMP",
        "6 trials",
        "At round 60",
        "Constants as resolved",
        "KMP at γ = 2",
    ):
        assert expected in words
    assert "not finished" not in words
    assert "--bounds" not in words


def test_the_spec_on_the_page_gives_the_same_run(page: str, sweep_run: RunFolder) -> None:
    words = outline(page).words
    (text,) = [word for word in words if word.startswith("name = ")]
    assert encode(decode(tomllib.loads(text))) == sweep_run.manifest.spec


def test_charts_show_the_means_of_the_table(sweep_run: RunFolder, sweep_summary: Summary) -> None:
    data = chart_data(sweep_summary)
    assert data["rounds"] == sorted(sweep_run.frame["t"].unique().to_list())
    assert [point["at"] for point in data["points"]] == [[0], [1], [2]]
    for gamma, point in enumerate(data["points"]):
        for policy, curve in zip(sweep_run.policies, point["curves"], strict=True):
            rows = sweep_run.frame.filter(pl.col("policy") == policy, pl.col("gamma") == gamma)
            mean = rows.group_by("t").agg(pl.col("regret").mean()).sort("t")["regret"].to_numpy()
            assert curve["mean"] == pytest.approx(mean, rel=1e-5)
            assert np.all(np.array(curve["low"]) <= np.array(curve["mean"]) * (1 + 1e-5))
            assert np.all(np.array(curve["high"]) >= np.array(curve["mean"]) * (1 - 1e-5))
    (axis,) = data["axes"]
    assert axis == {
        "name": "γ (hops)",
        "numeric": True,
        "scale": "linear",
        "values": [0, 1, 2],
        "words": ["0", "1", "2"],
    }
    assert data["band"] == "mean, 95 % band (6 trials)"


def test_nothing_is_swept_without_a_sweep(plain_summary: Summary) -> None:
    data = chart_data(plain_summary)
    assert data["axes"] == []
    assert [point["at"] for point in data["points"]] == [[]]


def test_the_page_is_small(page: str) -> None:
    assert len(page.encode()) < 2_000_000


def test_a_wide_table_and_a_picture_carry_nothing_they_do_not_need() -> None:
    """Names of columns are for tables that narrow screens stack; markers of one line have one style."""
    assert "data-name" in table(["a"], [["1"]], [""])
    assert table(["a", "b"], [["1", "2"]], ["", "number"], wide=True).count("<td>1</td>") == 1
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3, 4], [3, 1, 2, 5], marker="o", color="#0072B2")
    packed = re.search('base64,([^"]*)"', picture(figure, "svg", "four points"))
    plt.close(figure)
    assert packed is not None
    root = ElementTree.fromstring(base64.b64decode(packed[1]))
    svg = "{http://www.w3.org/2000/svg}"
    rows = [group for group in root.iter(f"{svg}g") if len(group.findall(f"{svg}use")) == 4]
    assert any("#0072b2" in str(row.get("style")) for row in rows)
    assert not any(use.get("style") for row in rows for use in row)


def test_words_of_a_spec_cannot_break_out(plain_run: RunFolder) -> None:
    bad = "</script><script>alert(1)</script>"
    plain = copy.deepcopy(plain_run.manifest.spec)
    plain["title"] = bad
    plain["policies"][0]["label"] = bad
    labels = [bad, *plain_run.policies[1:]]
    manifest = msgspec.structs.replace(plain_run.manifest, spec=plain, policies=labels)
    renamed = RunFolder(plain_run.path, manifest)
    first = plain_run.policies[0]
    table = plain_run.frame.with_columns(pl.col("policy").replace({first: bad}))
    object.__setattr__(renamed, "frame", table)  # fills the cache of the property
    page = report_html(summarise(renamed))
    assert "alert(1)</script>" not in page
    outline(page)


def test_a_run_under_way_says_so(plain_summary: Summary) -> None:
    manifest = msgspec.structs.replace(plain_summary.manifest, status="running")
    under_way = dataclasses.replace(plain_summary, manifest=manifest)
    assert "This run is not finished" in report_html(under_way)


def test_the_same_run_gives_the_same_file(
    plain_run: RunFolder, plain_summary: Summary, tmp_path: Path
) -> None:
    one = write_report(plain_summary, tmp_path / "a" / "one.html").read_bytes()
    assert one == write_report(summarise(plain_run), tmp_path / "two.html").read_bytes()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["one.html"]


def test_a_page_that_would_be_the_same_is_left_alone(plain_summary: Summary, tmp_path: Path) -> None:
    page = write_report(plain_summary, tmp_path / "page.html")
    age = page.stat().st_mtime_ns
    assert write_report(plain_summary, page).stat().st_mtime_ns == age
    page.write_text("something else")
    assert "drawn-for" in write_report(plain_summary, page).read_text()
    manifest = msgspec.structs.replace(plain_summary.manifest, status="running")
    under_way = dataclasses.replace(plain_summary, manifest=manifest)
    assert "drawn-for" not in write_report(under_way, page).read_text()


def test_no_path_of_the_machine_in_the_page(plain_summary: Summary) -> None:
    assert str(plain_summary.path.parent) not in report_html(plain_summary)


def test_a_folder_that_cannot_be_made_is_named(plain_summary: Summary, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/here cannot be made for a report: Not a directory"):
        write_report(plain_summary, tmp_path / "file" / "here" / "report.html")


def test_no_space_left_for_the_page(
    plain_summary: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"no room left to write .*/report\.html: .*free some space"):
        write_report(plain_summary, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["fig1a", "fig1e"])
def test_the_command_to_run_again(name: str) -> None:
    shipped = named_spec(name)

    def command(spec: Spec) -> str:
        manifest = Manifest(
            **of_spec(spec),
            spec=encode(spec),
            spec_sha256=fingerprint(spec),
            versions={},
            machine=Machine(cores=1, system="any"),
        )
        return command_for(manifest)

    assert command(at_scale(shipped, "quick")) == f"rumormill reproduce {name} --quick"
    assert command(at_scale(shipped, "full")) == f"rumormill reproduce {name} --full"
    smaller = at_scale(shipped, "quick", trials=3, horizon=50)
    assert re.fullmatch(
        rf"rumormill reproduce {name} --(quick|full) --trials 3 --horizon 50", command(smaller)
    )
    other = decode({**encode(smaller), "seed": 99})
    assert command(other) == f"rumormill run {name}.toml"


def test_one_trial_is_enough_for_a_report(tmp_path: Path, plain_run: RunFolder) -> None:
    spec = decode({**plain_run.manifest.spec, "scale": {"custom": {"horizon": 10, "trials": 1}}})
    page = report_html(summarise(run(spec, tmp_path / "one", 1)))
    assert "1 trial;" in " ".join(outline(page).words)


@pytest.mark.parametrize("name", spec_names())
def test_shipped_specs_read_back_from_toml(name: str) -> None:
    plain = encode(named_spec(name))
    assert tomllib.loads(to_toml(plain)) == plain


keys = st.text(min_size=1, max_size=8)
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
tables = st.recursive(
    st.dictionaries(keys, st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=4),
    lambda inner: st.dictionaries(
        keys, st.one_of(scalars, inner, st.lists(inner, min_size=1, max_size=3)), max_size=4
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(tables)
def test_any_table_reads_back_from_toml(table: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(table)) == table
