"""Every command once, as a user calls it; errors are one line that names the fix."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rumormill
from rumormill import catalogue
from rumormill.cli.app import COMMANDS
from rumormill.experiments.run.store import open_run
from rumormill.experiments.spec.reading import named_spec, spec_names


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_version(cli: Any, word: str) -> None:
    answer = cli(word)
    assert (answer.code, answer.out) == (0, f"rumormill {rumormill.__version__}\n")


def test_help_is_a_command_too(cli: Any) -> None:
    assert cli("help").out == cli("--help").out
    assert cli("help", "run").out == cli("run", "--help").out
    assert "--seed" in cli("help", "run").out


def test_tables_of_eighty_columns_do_not_break_words(
    cli: Any, spec_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"[a-zA-Z]{5,}", text))

    wide = cli("run", str(spec_file), "--no-report").out
    for columns in (80, 40):
        monkeypatch.setenv("COLUMNS", str(columns))
        narrow = cli("show", "runs/mine-5x30").out
        assert words(narrow) <= words(wide), words(narrow) - words(wide)
        assert max(map(len, narrow.splitlines())) <= columns


def test_help_names_every_command(cli: Any) -> None:
    answer = cli("--help")
    assert answer.code == 0
    for shown in (answer, cli("mesh", "--help")):
        assert "..." not in shown.out.partition("Commands:")[2]  # every line is whole
    for command in COMMANDS:
        assert f"\n  {command} " in answer.out
        assert cli(command, "--help").code == 0


def test_without_a_command_the_help_is_printed(cli: Any) -> None:
    assert cli() == cli("--help")
    assert cli("--debug") == cli("--help")
    assert cli("mesh") == cli("mesh", "--help")


def test_a_command_is_a_function_of_its_name_in_a_file_that_names_it() -> None:
    for name, place in COMMANDS.items():
        file, _, function = place.partition(":")
        assert function == ("list_names" if name == "list" else name)
        assert f"`rumormill {name}`:" in (import_module(f"rumormill.cli.commands.{file}").__doc__ or "")


HEAVY = {"numba", "scipy", "networkx", "rustworkx", "matplotlib", "polars", "dimod"}
LATER = {"numpy.random", "urllib.request", "rumormill.engine", "rumormill.experiments.spec.reading"}
ROOMS = {f"rumormill.{room}" for room in ["arms", "estimators", "graphs", "policies", "protocol"]}


NEEDED = {
    "--help": set(),
    "list specs": set(),
    "list laws": {"numpy", "rumormill.arms"},
    "list networks": {"numpy", "rumormill.graphs"},
    "list estimators": {"numpy", "rumormill.estimators", "rumormill.arms"},
    "list channels": {"numpy", *ROOMS} - {"rumormill.policies", "rumormill.estimators"},
    "list policies": {"numpy", *ROOMS},
}


@pytest.mark.parametrize("words", NEEDED)
def test_what_is_asked_for_first_imports_only_what_it_needs(words: str) -> None:
    watched = {"numpy", *ROOMS, *HEAVY, *LATER}
    code = f"""
import sys
from rumormill.cli import main
try:
    main({words.split()!r})
finally:
    print(*sorted({watched!r} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()[-1].split()) == NEEDED[words]


# --- running --------------------------------------------------------------------------------------------


def test_run_show_report(cli: Any, spec_file: Path) -> None:
    ran = cli("run", "mine.toml")
    assert ran.code == 0
    folder = Path("runs/mine-5x30")
    assert "mine: 5 cells" in ran.err
    assert f"report: {folder / 'report.html'}" in ran.err
    frame = open_run(folder).frame
    shown = cli("show", str(folder))
    assert shown.code == 0
    mean = frame.filter(pl.col("policy") == "KMP", pl.col("t") == 30)["regret"].mean()
    line = next(line for line in shown.out.splitlines() if line.startswith("KMP"))
    assert float(line.split()[1]) == pytest.approx(mean, abs=0.01)
    written = cli("report", str(folder), "--out", "page.html", "--no-figures")
    assert written.out == "page.html\n"
    assert Path("page.html").read_text().startswith("<!doctype html>")
    assert (folder / "figures" / "regret.png").is_file()


def test_json_is_json_and_nothing_else(cli: Any, spec_file: Path) -> None:
    answer = cli("run", "mine.toml", "--out", "here", "--json")
    told = json.loads(answer.out)
    assert told["reports"] == ["here/report.html"]
    rows = told["runs"][0]["rows"]
    assert [row["policy"] for row in rows] == ["KMP", "Robust"]
    assert all(row["low"] <= row["regret"] <= row["high"] for row in rows)
    assert [verdict["claim"] for verdict in told["verdicts"]] == ["KMP beats Robust"]
    assert json.loads(cli("show", "here", "--json").out)["runs"] == told["runs"]


def test_numbers_that_are_not_known_are_null(cli: Any, spec_file: Path) -> None:
    told = json.loads(cli("run", "mine.toml", "--trials", "2", "--out", "few", "--no-report", "--json").out)
    assert told["verdicts"][0]["low"] is None
    assert told["verdicts"][0]["word"] == "not decided at this size"


def test_other_sizes_go_to_other_folders(cli: Any, spec_file: Path) -> None:
    assert cli("run", "mine.toml", "--trials", "1", "--horizon", "10", "--no-report").code == 0
    assert cli("run", "mine.toml", "--trials", "2", "--horizon", "10", "--no-report").code == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == ["mine-1x10", "mine-2x10"]


def test_another_seed_has_a_folder_of_its_own(cli: Any, spec_file: Path) -> None:
    cli("run", str(spec_file), "--no-report")
    answer = cli("run", str(spec_file), "--no-report", "--seed", "6")
    assert "seed 6" in answer.out
    folders = sorted(path.name for path in Path("runs").iterdir())
    assert folders == ["mine-5x30", "mine-5x30-seed6"]
    tables = [rumormill.load(f"runs/{name}") for name in folders]
    assert tables[0]["regret"].to_list() != tables[1]["regret"].to_list()
    same = cli("run", str(spec_file), "--no-report", "--seed", "5", "--out", "same")
    assert same.code == 0
    assert Path("same/results.parquet").read_bytes() == Path("runs/mine-5x30/results.parquet").read_bytes()


def test_a_run_without_a_report_names_its_folder(cli: Any, spec_file: Path) -> None:
    words = ("run", "mine.toml", "--trials", "1", "--no-report")
    answer = cli(*words)
    last = answer.err.splitlines()[-1]
    assert last == "folder: runs/mine-1x30 (for a report: rumormill report runs/mine-1x30)"
    assert json.loads(cli(*words, "--json").out)["folders"] == ["runs/mine-1x30"]
    assert cli("report", "runs/mine-1x30").code == 0


def test_running_again_goes_on(cli: Any, spec_file: Path) -> None:
    cli("run", "mine.toml", "--out", "here", "--no-report")
    before = Path("here/results.parquet").read_bytes()
    (part,) = Path("here/parts").iterdir()
    part.write_bytes(part.read_bytes()[:-10])  # its last cell is incomplete
    again = cli("run", "mine.toml", "--out", "here", "--no-report")
    assert again.code == 0
    assert "5 cells, 4 done before" in again.err
    assert Path("here/results.parquet").read_bytes() == before


def test_compare(cli: Any, spec_file: Path) -> None:
    cli("run", "mine.toml", "--out", "one", "--no-report", "--trials", "8")
    spec_file.write_text(spec_file.read_text().replace("n = 6", "n = 12"))
    cli("run", "mine.toml", "--out", "two", "--no-report", "--trials", "8")
    answer = cli("compare", "one", "two")
    assert answer.code == 0
    assert "network.n" in answer.out
    assert "KMP" in answer.out
    told = json.loads(cli("compare", "one", "two", "--json").out)
    assert told["settings"] == [{"key": "network.n", "first": 6, "second": 12}]
    for row in told["rows"]:
        assert row["change_of_means"] == pytest.approx(row["second"] / row["first"] - 1)
        assert row["low"] <= row["change"] <= row["high"]
        assert row["paired"]
    same = json.loads(cli("compare", "one", "one", "--json").out)
    assert same["settings"] == []
    assert [row["change"] for row in same["rows"]] == [0.0, 0.0]


def test_runs_without_a_policy_in_common_are_not_compared(cli: Any, spec_file: Path) -> None:
    cli("run", "mine.toml", "--out", "one", "--no-report")
    text = spec_file.read_text().partition("[[claims]]")[0]
    text = text.replace('type = "kmp"', 'type = "kmp"\nlabel = "a"')
    spec_file.write_text(text.replace('type = "robust"', 'type = "robust"\nlabel = "b"'))
    cli("run", "mine.toml", "--out", "two", "--no-report")
    answer = cli("compare", "one", "two")
    assert answer.code == 2
    assert "compare runs of the same experiment" in answer.err


def test_simulate(cli: Any) -> None:
    words = ("--network", "ring n=5", "--arms", "gaussian K=2", "--horizon", "20", "--trials", "2")
    policies = ("--policy", "kmp gamma=1 zeta=1", "--policy", "robust zeta=0.5")
    told = json.loads(cli("simulate", *words, *policies, "--json").out)
    assert [row["policy"] for row in told["runs"][0]["rows"]] == ["KMP", "Robust"]
    assert told["runs"][0]["rows"][0]["messages_per_round"] == 10
    assert list(Path().iterdir()) == []
    again = json.loads(cli("simulate", *words, *policies, "--json", "--jobs", "1").out)
    assert again == told
    other = json.loads(cli("simulate", *words, *policies, "--json", "--seed", "1").out)
    assert other != told
    assert cli("simulate", *words, "--out", "kept").code == 0
    assert Path("kept/report.html").is_file()


def test_reproduce_ends_in_verdicts(cli: Any) -> None:
    answer = cli("reproduce", "fig1a", "--trials", "1", "--horizon", "20", "--out", "a", "--no-report")
    assert answer.code == 0
    assert "The claims" in answer.out
    assert "none of 8 claims can be decided: 1 trial played, 9 would be needed" in answer.out


def test_reproduce_all_leaves_out_what_has_no_data(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rumormill.experiments.spec import reading as spec

    monkeypatch.setattr(spec, "spec_names", lambda: ["fig1a", "fig1c"])
    answer = cli("reproduce", "all", "--trials", "1", "--horizon", "10", "--out", "all", "--no-report")
    assert answer.code == 0
    assert "fig1a (custom)" in answer.out
    assert "fig1c is left out: p2p-Gnutella04 is not in" in answer.err
    assert "rumormill data --download p2p-Gnutella04" in answer.err
    assert [path.name for path in Path("all").iterdir()] == ["fig1a-1x10"]
    assert not Path("all/fig1a-1x10/report.html").exists()


# --- looking --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("policies", {"kmp", "centralized", "decentralized", "consensus", "robust"}),
        ("arms", {"alpha-stable", "gaussian", "pareto"}),
        ("laws", {"alpha-stable", "two-point", "empirical"}),
        ("channels", {"perfect"}),
        ("networks", {"erdos_renyi", "ring", "file"}),
        ("estimators", {"trimmed", "median-of-means", "catoni", "empirical"}),
        ("specs", {"fig1a", "fig1f", "theory", "gamma-sparse", "estimators"}),
    ],
)
def test_list(cli: Any, kind: str, some: set[str]) -> None:
    told = json.loads(cli("list", kind, "--json").out)
    assert some <= {row["name"] for row in told}
    shown = cli("list", kind)
    assert shown.code == 0
    assert all(name in shown.out for name in some)


def test_list_tells_of_specs_what_strict_reading_finds(cli: Any) -> None:
    told = json.loads(cli("list", "specs", "--json").out)
    assert [row["name"] for row in told] == spec_names()
    for row in told:
        spec = named_spec(row["name"])
        assert (row["title"], row["question"]) == (spec.title, spec.question)
        assert row["scales"].split(", ") == list(spec.scale)


def test_list_is_the_catalogue(cli: Any) -> None:
    kinds = {"policies": "policy", "laws": "law", "arms": "law", "networks": "network"}
    for plural, kind in {**kinds, "estimators": "estimator", "channels": "channel"}.items():
        told = json.loads(cli("list", plural, "--json").out)
        assert [row["name"] for row in told] == list(catalogue.KINDS[kind].classes)
        assert all(row["about"] for row in told)


def test_list_tells_needed_settings_from_free_ones(cli: Any) -> None:
    told = {row["name"]: row["settings"] for row in json.loads(cli("list", "networks", "--json").out)}
    assert told["watts_strogatz"] == "n k p connected=true fresh=true"
    assert told["ring"] == "n"  # there is only one: no trial can have another
    policies = {row["name"]: row["settings"] for row in json.loads(cli("list", "policies", "--json").out)}
    assert policies["robust"] == "estimator=trimmed c=… zeta=… confidence=paper moments=… forget=…"


def test_network(cli: Any) -> None:
    told = json.loads(cli("network", "path", "n=4", "--json").out)
    assert (told["agents"], told["links"], told["diameter"], told["parts"]) == (4, 3, 3, 1)
    by_gamma = [
        (
            row["gamma"],
            row["cliques"],
            row["independent_leaders"],
            row["dominating_leaders"],
            row["mean_heard"],
        )
        for row in told["gammas"]
    ]
    assert by_gamma == [(0, 4, 4, 4, 0.0), (1, 2, 2, 2, 1.5), (2, 2, 2, 1, 2.5), (3, 1, 1, 1, 3.0)]
    assert "4 agents, 3 links" in cli("network", "path", "n=4").out


def test_network_of_a_file_with_a_picture(cli: Any, tmp_path: Path) -> None:
    Path("mine.txt").write_text("a b\nb c\nc a\nc d\n")
    answer = cli("network", "mine.txt", "--gamma", "1", "--picture", "drawn/net.svg")
    assert answer.code == 0
    assert "4 agents, 4 links" in answer.out
    assert Path("drawn/net.svg").read_text().startswith("<?xml")


def test_random_networks_follow_the_seed(cli: Any) -> None:
    words = ("network", "erdos_renyi", "n=20", "p=0.3", "--gamma", "1", "--json")
    assert cli(*words).out == cli(*words).out
    assert cli(*words).out != cli(*words, "--seed", "1").out


def test_only_some_hops_of_a_long_path(cli: Any) -> None:
    told = json.loads(cli("network", "path", "n=21", "--json").out)
    gammas = [row["gamma"] for row in told["gammas"]]
    assert len(gammas) == 8
    assert (gammas[0], gammas[-1]) == (0, 20)
    assert "choose with --gamma" in cli("network", "path", "n=21").err


# --- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["runn"], "Did you mean 'run'?"),
        (["run"], "see `rumormill run --help`"),
        (["run", "nope.toml"], "nope.toml: there is no such file"),
        (["run", "mine.toml", "--scale", "quick"], "quick"),
        (["run", "mine.toml", "--jobs", "0"], "--jobs"),
        (["run", "mine.toml", "--trials", "many"], "--trials"),
        (["run", "mine.toml", "--trails", "5"], "No such option: --trails (Possible options: --trials)"),
        (["run", "mine.toml", "--executor", "cluster"], "'threads', 'processes', 'ray'"),
        (["run", "mine.toml", "--address", "head:6379"], "not allowed with threads"),
        (["reproduce", "fig1g"], "did you mean 'fig1"),
        (["reproduce", "Fig1A"], "did you mean 'fig1a'?"),
        (["simulate", "--policy", "KMPUCB"], "did you mean 'kmp'?"),
        (["run", "mine.toml", "--horizn", "5"], "--horizon"),
        (["reproduce", "fig1a", "--quick", "--full"], "choose one"),
        (["reproduce", "fig1c"], "rumormill data --download p2p-Gnutella04"),
        (["show", "."], "is not the folder of a run"),
        (["report", "nowhere"], "there is no folder nowhere: give the folder of a run"),
        (["compare", ".", "."], "is not the folder of a run"),
        (["list", "things"], "things"),
        (["network", "rng", "n=4"], "did you mean 'ring'?"),
        (["network", "ring", "n=2"], "network.n = 2 is not allowed"),
        (["network", "ring", "4"], "write key=value"),
        (["network", "ring", "n=4", "n=5"], "n is given twice"),
        (["network", "./no.txt"], "neither a file nor a known graph"),
        (["network", "ring", "n=4", "--picture", "net.gif"], "must end in .png or .svg"),
        (["simulate", "--policy", ""], "a name is missing"),
        (["simulate", "--policy", 'kmp "'], "cannot be split"),
        (["simulate", "--policy", "kmp gama=1"], "did you mean 'gamma'?"),
        (["simulate", "--arms", "alpha-stable alpha=3"], "arms.alpha = 3"),
        (["simulate", "--channel", "perfekt"], "did you mean 'perfect'?"),
        (["simulate", "--policy", "nowhere:Greedy"], "cannot be imported: ModuleNotFoundError"),
        (["data", "--download", "ego-Twitter"], "p2p-Gnutella04 or ego-Facebook"),
        (["data", "--download", "all", "--url", "ftp://there"], "must begin with https:// or http://"),
    ],
)
def test_wrong_input_gets_one_line_and_code_2(
    cli: Any, spec_file: Path, words: list[str], expected: str
) -> None:
    answer = cli(*words)
    assert answer.code == 2
    assert answer.out == ""
    lines = answer.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert expected in lines[0]
    assert not Path("runs").exists()


def test_a_traceback_only_when_asked_for(cli: Any) -> None:
    assert "Traceback" not in cli("show", "nowhere").err
    for words in (("--debug", "show", "nowhere"), ("show", "nowhere", "--debug")):
        answer = cli(*words)
        assert answer.code == 2
        assert "Traceback" in answer.err
        assert answer.err.strip().splitlines()[-1].startswith("error: there is no folder nowhere")


def test_a_failure_of_the_run_is_code_1(cli: Any, spec_file: Path) -> None:
    Path("here").write_text("a file where a folder should be")
    answer = cli("run", "mine.toml", "--out", "here")
    assert answer.code == 1
    assert answer.err.startswith("error: here cannot be used as the folder of a run")


def test_a_defect_is_named_and_is_code_1(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rumormill.experiments.run import store

    def broken(path: Path) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr(store, "open_run", broken)
    answer = cli("show", "anything")
    assert answer.code == 1
    assert answer.err == "error: ZeroDivisionError: oh no (a defect; --debug shows where)\n"


def test_ctrl_c_outside_of_a_run(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rumormill.experiments.run import store

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "open_run", interrupted)
    answer = cli("show", "a folder")
    assert answer.code == 130
    last = answer.err.strip().splitlines()[-1]
    assert last == "stopped: no file is half written; begin again with: rumormill show 'a folder'"


def test_names_are_completed() -> None:
    from rumormill.cli.commands.run import names_starting_with

    assert names_starting_with("fig1") == [name for name in spec_names() if name.startswith("fig1")]
    assert names_starting_with("al") == ["all"]
