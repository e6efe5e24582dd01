"""`rumormill watch`: pages and films from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Cli


def test_a_page_by_default(cli: Cli, spec_file: Path) -> None:
    answer = cli("watch", str(spec_file), "--rounds", "7")
    assert answer.code == 0
    assert answer.out == "mine-watch.html\n"
    assert answer.err == "The first 7 of 30 rounds of the first trial, with all 6 agents.\n"
    page = Path("mine-watch.html").read_text()
    assert '"name":"KMP"' in page
    assert '"name":"Robust"' in page


def test_a_film_of_one_policy(cli: Cli, spec_file: Path) -> None:
    words = ("--policy", "robust", "--rounds", "2", "--agents", "4", "-o", "new/film.gif")
    answer = cli("watch", str(spec_file), *words)
    assert answer.code == 0
    assert "the 4 agents around the one with the most links play alone" in answer.err
    assert Path("new/film.gif").read_bytes()[:6] == b"GIF89a"


def test_thirty_agents_of_a_larger_network_by_default(cli: Cli, spec_file: Path) -> None:
    spec_file.write_text(spec_file.read_text().replace("n = 6", "n = 40"))
    answer = cli("watch", str(spec_file), "--policy", "robust", "--rounds", "2")
    assert answer.code == 0
    assert "the 30 agents around the one with the most links play alone" in answer.err


def test_an_experiment_that_comes_along_at_a_point_of_its_sweep(cli: Cli) -> None:
    answer = cli("watch", "loss", "--at", "channel.p=0.1", "--policy", "KMP", "--rounds", "3")
    assert answer.code == 0
    assert "Every bundle is lost with probability 0.9." in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.toml"], "there is no such file"),
        (["mine.toml", "-o", "film.avi"], "must end in .html, .gif or .mp4"),
        (["mine.toml", "--policy", "KPM"], "did you mean 'KMP'"),
        (["mine.toml", "--at", "gamma"], "write PARAMETER=VALUE"),
        (["mine.toml", "--at", "gamma=1"], "sweeps nothing"),
        (["mine.toml", "--scale", "full"], "no scale 'full'"),
        (["mine.toml", "--rounds", "0"], "--rounds"),
    ],
)
def test_mistakes_get_one_line_and_leave_nothing(
    cli: Cli, spec_file: Path, words: list[str], said: str
) -> None:
    answer = cli("watch", *words)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    assert [path.name for path in Path().iterdir()] == [spec_file.name]


def test_without_ffmpeg_there_is_no_mp4(
    cli: Cli, spec_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = cli("watch", str(spec_file), "-o", "film.mp4")
    assert answer.code == 2
    assert "film.mp4 needs ffmpeg, which is not installed" in answer.err
