"""Figures as files: the same every time, whatever the user has set, and only what changed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures import FIGURES, draw_all
from rumormill.experiments.figures.registry import RECORD
from rumormill.experiments.report.html_page import report_html
from rumormill.experiments.run.store import RunFolder
from rumormill.files import StoreError
from rumormill.plotting import style


@pytest.fixture(scope="module")
def drawn(plain: Summary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All figures of a run, to compare others with."""
    return draw_all(plain, tmp_path_factory.mktemp("drawn"))


def test_plt_show_knows_what_was_plotted_and_nothing_else(plain_run: RunFolder, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    draw_all(summarise(plain_run), tmp_path)
    assert plt.get_fignums() == []
    figure = plain_run.plot()
    assert [plt.figure(number) for number in plt.get_fignums()] == [figure]


def test_all_figures_as_files_and_the_same_every_time(
    plain: Summary, drawn: list[Path], tmp_path: Path
) -> None:
    one, two = drawn, draw_all(plain, tmp_path)
    stems = ["regret", "regret-linear", "agents", "messages", "network"]
    kinds = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF", "txt": b"small. "}
    assert [path.name for path in one] == [f"{stem}.{kind}" for stem in stems for kind in kinds]
    for left, right in zip(one, two, strict=True):
        assert left.read_bytes() == right.read_bytes()
        assert left.read_bytes().startswith(kinds[left.suffix[1:]])


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


LOUD = {"text.usetex": True, "font.size": 30.0, "lines.linewidth": 9.0, "axes.facecolor": "red"}


def test_settings_of_the_user_change_nothing(plain: Summary, drawn: list[Path], tmp_path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context(LOUD):
        loud = draw_all(plain, tmp_path)
        assert mpl.rcParams["font.size"] == 30.0  # and they are left as they were
    for one, other in zip(drawn, loud, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_matplotlibrc_changes_nothing(plain: Summary, drawn: list[Path], tmp_path: Path) -> None:
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
    for path in drawn:
        assert path.read_bytes() == (tmp_path / "loud" / path.name).read_bytes()


def test_a_plotted_figure_is_whole_before_the_user_saves_it(plain_run: RunFolder, tmp_path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.text import Text

    with mpl.rc_context({"text.usetex": True}):
        figure = plain_run.plot()
        figure.savefig(tmp_path / "mine.png")
        assert not any(text.get_usetex() for text in figure.findobj(Text))


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


def test_kinds_that_are_asked_for_later_are_drawn_then(plain_run: RunFolder, tmp_path: Path) -> None:
    summary = summarise(plain_run)

    def names(*kinds: str) -> list[str]:
        return [path.name for path in draw_all(summary, tmp_path, ["agents"], kinds)]

    assert names("png") == ["agents.png", "agents.txt"]
    assert names("png", "svg") == ["agents.png", "agents.svg", "agents.txt"]
    before = (tmp_path / "agents.png").stat().st_mtime_ns
    assert names("png") == ["agents.png", "agents.svg", "agents.txt"]
    assert (tmp_path / "agents.png").stat().st_mtime_ns == before


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
