"""A user's own policy, estimator, law, network and channel, named in a spec and played like ours."""

import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import rumormill as rm
from helpers.small_experiments import TINY
from rumormill.cli import main
from rumormill.errors import ContractError, InputError, SlowEngineNotice
from rumormill.experiments.plan import Cell, plan_of
from rumormill.experiments.run.runner import RunInterrupted, run
from rumormill.experiments.run.store import open_run
from rumormill.experiments.spec.building import (
    build_bandit,
    build_network,
    build_policy,
    build_world,
    is_fresh,
)
from rumormill.experiments.spec.reading import decode, encode, own_sources, read_spec, restore

EXAMPLE = Path(__file__).parent / "data" / "own_example.py"

OWN = """
name = "own"
seed = 5
horizon = 40
trials = 3
checkpoints = 2

[network]
kind = "own_example:Wheel"
spokes = 5
extra = 1

[arms]
law = "own_example:Uniform"
width = 0.5
K = 3

[channel]
type = "own_example:Lossy"
loss = 0.25

[[policies]]
type = "own_example:Greedy"
rate = 0.2

[[policies]]
type = "own_example:GreedyPolicy"
label = "Careful"
rate = 0

[[policies]]
type = "kmp"
gamma = 1
estimator = {type = "own_example:Clipped", limit = 2}

[[claims]]
kind = "beats"
policy = "Greedy"
than = "Careful"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the own classes and a spec that names them."""
    shutil.copy(EXAMPLE, tmp_path / "own_example.py")
    (tmp_path / "own.toml").write_text(OWN)
    return tmp_path


def with_policy(folder: Path, table: str) -> Path:
    """The tiny experiment with an own policy beside its others."""
    path = folder / "mine.toml"
    path.write_text(f"{TINY}\n[[policies]]\n{table}\n")
    return path


def test_everything_may_be_ones_own(folder: Path) -> None:
    spec = read_spec(folder / "own.toml")
    assert spec.labels == ["Greedy", "Careful", "KMP"]
    assert spec.policies[0].settings == {"rate": 0.2, "share": True}
    assert spec.policies[1].settings == {"rate": 0.0}
    assert build_network(spec, 0).n_agents == 6
    assert is_fresh(spec)
    assert build_bandit(spec, 0).moments().u > 0
    assert type(build_world(spec).channel).__name__ == "Lossy"
    made = build_policy(spec, spec.policies[2])
    assert isinstance(made, rm.KMPUCB)
    assert repr(made.estimator) == "Clipped(limit=2.0)"
    assert decode(encode(spec), folder=spec.folder) == spec == restore(encode(spec), folder=spec.folder)


def test_it_is_run_gone_on_with_and_read_like_any_other(folder: Path) -> None:
    spec = read_spec(folder / "own.toml")
    display = Display(stop_after=1)
    with pytest.raises(RunInterrupted):
        run(spec, folder / "run", jobs=1, progress=display)
    done = run(spec, folder / "run", jobs=1, progress=display)
    assert display.notices == 2 * [
        "Greedy, Careful, KMP run on the reference engine: "
        "the compiled engine does not support the channel Lossy"
    ]
    assert done.frame.group_by("policy").len()["len"].to_list() == [6, 6, 6]
    assert list(done.manifest.own) == ["own_example"]
    again = open_run(folder / "run")
    assert again.spec == spec
    assert again.spec.claims == spec.claims
    alone = run(spec, folder / "alone", jobs=2, progress=Display())
    assert (alone.path / "results.parquet").read_bytes() == (done.path / "results.parquet").read_bytes()


class Display:
    """Keeps notices, and may lose patience."""

    def __init__(self, stop_after: int = 1_000_000) -> None:
        self.notices: list[str] = []
        self.left = stop_after

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def start(self, total_cells: int, done_cells: int) -> None: ...

    def cell_done(self, cell: Cell, summary: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def rounds(self, deliveries: int) -> None: ...
    def finish(self) -> None: ...


def test_another_process_finds_the_folder_too(folder: Path) -> None:
    """Workers are new interpreters: they import the own classes themselves."""
    spec = read_spec(folder / "own.toml")
    here = run(spec, folder / "threads", progress=Display())
    there = run(spec, folder / "processes", jobs=2, executor="processes", progress=Display())
    assert (here.path / "results.parquet").read_bytes() == (there.path / "results.parquet").read_bytes()


def test_without_a_display_the_slow_engine_is_one_warning(folder: Path) -> None:
    spec = read_spec(with_policy(folder, 'type = "own_example:Greedy"'))
    expected = "^Greedy runs on the reference engine: the compiled engine runs the built-in policies only$"
    with pytest.warns(SlowEngineNotice, match=expected) as caught:
        mixed = run(spec, folder / "run")
    assert len(caught) == 1
    # Those beside it are played as if they were alone, on the compiled engine.
    plain = run(read_spec(_write(folder / "plain.toml", TINY)), folder / "plain")
    assert mixed.frame.filter(pl.col("policy") != "Greedy").equals(plain.frame)


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_own_parameters_may_be_swept(folder: Path) -> None:
    path = with_policy(folder, 'type = "own_example:GreedyPolicy"\n[sweep]\nrate = [0.0, 0.5]')
    spec = read_spec(path)
    assert [point.spec.policies[2].settings["rate"] for point in plan_of(spec).points] == [0.0, 0.5]
    done = run(spec, folder / "run", progress=Display())
    last = done.frame.filter(pl.col("policy") == "GreedyPolicy", pl.col("t") == 50)
    assert last["rate"].to_list() == [0.0, 0.0, 0.5, 0.5]
    names = with_policy(folder, '[sweep]\nestimator = ["trimmed", "own_example:Clipped"]')
    names.write_text(names.read_text().replace("[[policies]]\n[sweep]", "[sweep]"))
    assert list(own_sources(read_spec(names))) == ["own_example"]


BAD = [
    (
        'type = "own_example:Gredy"',
        "policies[2].type = 'own_example:Gredy': own_example has no 'Gredy': did you",
    ),
    (
        'type = "own_exmple:Greedy"',
        "policies[2].type = 'own_exmple:Greedy' cannot be imported: ModuleNotFound",
    ),
    (
        'type = "own_example:Lossy"',
        "policies[2].type = 'own_example:Lossy' is not a policy: give it agent(seat)",
    ),
    (
        'type = "own_example:Greedy"\nrat = 1',
        "policies[2].rat: unknown key: did you mean 'rate'? Allowed are lab",
    ),
    (
        'type = "own_example:Greedy"\nrate = "x"',
        "policies[2].rate = 'x' is not allowed: expected float, got str",
    ),
    ('type = "own_example:Greedy"\nseat = 1', "policies[2].seat: unknown key"),
    ('type = "kmp"\nestimator = "own_example:Wheel"', "policies[2].estimator = 'own_example:Wheel' is not a"),
    ('type = "own_example:Greedy"\n[channel]\ntype = "own_example:Lossy"', "channel.loss: missing"),
    ('type = "broken:Greedy"', "policies[2].type = 'broken:Greedy' cannot be imported: SyntaxError"),
]


@pytest.mark.parametrize(("table", "message"), BAD)
def test_a_mistake_is_found_before_anything_runs(folder: Path, table: str, message: str) -> None:
    (folder / "broken.py").write_text("def (:")
    with pytest.raises(InputError) as error:
        read_spec(with_policy(folder, table))
    assert str(error.value).startswith(f"mine.toml: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("if t <= self.seat.n_arms:", "if t == 7: 1 / 0\n        if t <= self.seat.n_arms:", "run"),
        ("ring = [", "1 / 0\n        ring = [", "run"),
        ("grid = (", "1 / 0\n        grid = (", "read"),
    ],
)
def test_what_an_own_class_raises_is_its_own(folder: Path, old: str, new: str, where: str) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    (folder / "own_example.py").write_text(text.replace(old, new))
    said = r"own_example.py, line \d+: ZeroDivisionError: .* \(raised by a class of your own\)$"
    if where == "read":
        with pytest.raises(ContractError, match=said):
            read_spec(folder / "own.toml")
        return
    spec = read_spec(folder / "own.toml")
    with pytest.raises(ContractError, match=said):
        run(spec, folder / "run", progress=Display())


def test_a_network_that_is_none_is_refused(folder: Path) -> None:
    text = EXAMPLE.read_text().replace("return rm.Network.from_edges([*ring, *hub, *more])", "return ring")
    (folder / "own_example.py").write_text(text)
    with pytest.raises(ContractError, match=r"build\(rng\) returned a list, not an rm.Network"):
        run(read_spec(folder / "own.toml"), folder / "run", progress=Display())


def test_a_class_of_the_same_name_in_another_folder_does_not_stand_in(folder: Path, tmp_path: Path) -> None:
    first = read_spec(folder / "own.toml")
    other = tmp_path / "other"
    other.mkdir()
    (other / "own_example.py").write_text(
        EXAMPLE.read_text().replace("rate: float = 0.1", "rate: float = 0.7")
    )
    (other / "own.toml").write_text(OWN.replace("rate = 0.2\n", ""))
    assert read_spec(other / "own.toml").policies[0].settings["rate"] == 0.7
    assert own_sources(read_spec(other / "own.toml")) != own_sources(read_spec(folder / "own.toml"))
    assert first == read_spec(folder / "own.toml")


GO_ON = """
import sys, warnings
warnings.simplefilter("ignore")
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import read_spec
try:
    print(run(read_spec(sys.argv[1] + "/own.toml"), sys.argv[1] + "/run").manifest.status)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_changed_file_is_refused(folder: Path) -> None:
    """Seen by a new process, for this one has the old code; what a file uses beside it counts too."""
    (folder / "own_example.py").write_text(
        "from helper import HELP\n" + EXAMPLE.read_text().partition("\n\n")[2]
    )
    text = (folder / "own_example.py").read_text().replace("from __future__ import annotations\n", "", 1)
    (folder / "own_example.py").write_text("from __future__ import annotations\n" + text)
    (folder / "helper.py").write_text("def HELP() -> None: ...\n")
    spec = read_spec(folder / "own.toml")
    assert sorted(run(spec, folder / "run", progress=Display()).manifest.own) == ["helper", "own_example"]
    assert run(spec, folder / "run").done
    (folder / "helper.py").write_text("def HELP() -> None: pass\n")
    said = go_on(folder)
    assert said.startswith("InputError ")
    assert (
        "was begun with another helper.py (its checksum has changed): choose another folder, or bring" in said
    )


def go_on(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", GO_ON, folder], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.strip()


def test_a_file_that_was_changed_after_it_was_loaded_is_refused(folder: Path) -> None:
    spec = read_spec(folder / "own.toml")
    with (folder / "own_example.py").open("a") as file:
        file.write("\n# A thought.\n")
    with pytest.raises(
        InputError, match=r"own_example.py was changed after it was loaded: start Python again"
    ):
        run(spec, folder / "run")
    assert not list((folder / "run" / "parts").iterdir())


def test_a_run_can_be_shown_where_its_classes_are_not(folder: Path) -> None:
    spec = read_spec(folder / "own.toml")
    run(spec, folder / "run", progress=Display())
    (folder / "own_example.py").unlink()
    code = "import sys, rumormill\nprint(len(rumormill.load(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, folder / "run"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "18\n"


def test_it_gets_bands_verdicts_figures_and_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", str(folder / "own.toml"), "--out", str(folder / "run"), "--jobs", "1"])
    said = capsys.readouterr()
    assert end.value.code == 0, said.err
    assert "Greedy, Careful, KMP run on the reference engine" in said.err
    assert "Careful" in said.out
    assert "Greedy beats Careful" in (folder / "run" / "report.html").read_text()
    assert (folder / "run" / "figures" / "regret.png").exists()
