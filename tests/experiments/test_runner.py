"""Runs: the same table whatever the workers, kills and pauses."""

import contextlib
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import polars as pl
import pytest

from helpers.small_experiments import SWEPT, TINY, finished_cells
from rumormill.engine import play_trial
from rumormill.engine.workers import Done, Executor, Processes, Task, Threads, Tick, Work, no_tick
from rumormill.errors import InputError
from rumormill.experiments import spec as specs
from rumormill.experiments.plan import Cell, plan_of
from rumormill.experiments.run import cache
from rumormill.experiments.run import cell as cells
from rumormill.experiments.run.cell import play_cell
from rumormill.experiments.run.executors import executor_of
from rumormill.experiments.run.runner import RunInterrupted, run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec import building
from rumormill.experiments.spec.building import build_network
from rumormill.experiments.spec.reading import parse_spec
from rumormill.graphs import Network

LONG = SWEPT.replace("horizon = 400", "horizon = 600")

CHILD = """
import os, signal, sys
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import parse_spec
spec = parse_spec(sys.stdin.read())
moment = sys.argv[2]
if moment != "any":
    name, count = moment.split(":")
    real, left = getattr(os, name), [int(count)]
    def deadly(*args):
        left[0] -= 1
        if left[0] == 0:
            if name == "write": real(args[0], args[1][: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)
    setattr(os, name, deadly)
print("go", flush=True)
try:
    run(spec, sys.argv[1], jobs=2)
except BaseException as error:
    print(type(error).__name__, error, flush=True)
    sys.exit(3)
"""


def start(folder: Path, moment: str, text: str = LONG) -> "subprocess.Popen[str]":
    """A process that runs the experiment; it says when it begins."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, folder, moment],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    child.stdin.write(text)
    child.stdin.close()
    assert output(child).readline() == "go\n"
    return child


def output(child: "subprocess.Popen[str]") -> IO[str]:
    assert child.stdout is not None
    return child.stdout


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(parse_spec(LONG), tmp_path_factory.mktemp("runs") / "undisturbed", jobs=2)


def same_table(folder: Path, undisturbed: RunFolder) -> bool:
    return (folder / "results.parquet").read_bytes() == (undisturbed.path / "results.parquet").read_bytes()


@pytest.mark.parametrize("kills", [5, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_of_writing_it_ends_with_the_same_table(
    kills: int, undisturbed: RunFolder, tmp_path: Path
) -> None:
    """Kills around the calls that make the manifest durable, and in the middle of writing a cell."""
    chance, folder = random.Random(20), tmp_path / "run"
    done = [0]
    for _ in range(kills):
        moment = chance.choice(["fsync:1", "replace:1", "write:1", "write:3", "write:5"])
        child = start(folder, moment)
        output(child).close()
        assert child.wait() == -signal.SIGKILL
        done.append(len(finished_cells(folder)))
    assert done == sorted(done)  # what is done stays done
    assert 0 < done[-1] < 36
    run(parse_spec(LONG), folder, jobs=1)
    assert same_table(folder, undisturbed)
    assert not list((folder / "parts").glob(".*"))


def test_killed_at_any_moment_it_ends_with_the_same_table(undisturbed: RunFolder, tmp_path: Path) -> None:
    chance, folder = random.Random(21), tmp_path / "run"
    for wait in (0.0, 1.0, 2.0):
        child = start(folder, "any")
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=wait + chance.random())
        child.kill()
        child.wait()
        output(child).close()
    run(parse_spec(LONG), folder)
    assert same_table(folder, undisturbed)


@pytest.mark.parametrize("moment", ["fsync:3", "replace:2", "fsync:4", "fsync:5", "replace:3", "fsync:6"])
def test_killed_while_the_table_is_written_it_ends_with_the_same_table(
    undisturbed: RunFolder, tmp_path: Path, moment: str
) -> None:
    """All parts are there: the second file written is the table, the third the final manifest."""
    folder = tmp_path / "run"
    shutil.copytree(undisturbed.path, folder)
    (folder / "results.parquet").unlink()
    child = start(folder, moment)
    output(child).close()
    assert child.wait() == -signal.SIGKILL
    assert run(parse_spec(LONG), folder).done
    assert same_table(folder, undisturbed)


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(undisturbed: RunFolder, tmp_path: Path) -> None:
    child = start(tmp_path / "run", "any")
    parts = tmp_path / "run" / "parts"
    while child.poll() is None and not list(parts.glob("*.cells")):
        threading.Event().wait(0.01)
    child.send_signal(signal.SIGINT)
    words = output(child).read()
    output(child).close()
    assert child.wait() == 3
    kept = len(finished_cells(tmp_path / "run"))
    assert words == (
        f"RunInterrupted stopped after {kept} of 36 cells, all kept in {tmp_path / 'run'}; "
        "run it again to go on\n"
    )
    assert kept >= 1
    run(parse_spec(LONG), tmp_path / "run")
    assert same_table(tmp_path / "run", undisturbed)


class Heard:
    """A display that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.deliveries = 0

    def notice(self, text: str) -> None:
        self.calls.append(("notice", text))

    def start(self, total_cells: int, done_cells: int) -> None:
        self.calls.append(("start", total_cells, done_cells))

    def cell_done(self, cell: Cell, summary: Mapping[str, float]) -> None:
        self.calls.append(("cell", cell, tuple(summary)))

    def rounds(self, deliveries: int) -> None:
        self.deliveries += deliveries

    def finish(self) -> None:
        self.calls.append(("finish",))


def test_progress_hears_of_every_cell_and_of_all_deliveries(tmp_path: Path) -> None:
    heard = Heard()
    spec = parse_spec(TINY.replace('kind = "erdos_renyi"\nn = 6\np = 0.7', 'kind = "complete"\nn = 6'))
    run(spec, tmp_path / "run", progress=heard)
    assert heard.calls[0] == ("start", 2, 0)
    assert heard.calls[-1] == ("finish",)
    assert sorted(heard.calls[1:-1]) == [("cell", Cell(0, t), ("Decentralized", "Robust")) for t in (0, 1)]
    # Every round: 36 samples reach agents that all hear each other, 6 reach lone agents.
    assert heard.deliveries == 2 * 50 * (36 + 6)


def test_a_finished_run_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(parse_spec(TINY), tmp_path / "run")
    monkeypatch.setattr(cells, "play_trial", None)
    assert run(parse_spec(TINY), tmp_path / "run").done


def test_an_interrupted_run_plays_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(Heard):
        def cell_done(self, cell: Cell, summary: Mapping[str, float]) -> None:
            super().cell_done(cell, summary)
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted, match="stopped after 1 of 36 cells") as stopped:
        run(parse_spec(SWEPT), tmp_path / "run", jobs=1, progress=Impatient())
    assert (stopped.value.done, stopped.value.total) == (1, 36)
    heard = Heard()
    run(parse_spec(SWEPT), tmp_path / "run", progress=heard)
    assert heard.calls[0] == ("start", 36, 1)
    assert Counter(call[0] for call in heard.calls) == {"start": 1, "cell": 35, "finish": 1}


GOLDEN = """
Decentralized,1.5,0,25,500,10000,16.858953513306655,2.1850013721217607,2.527743677955732,3.6631446695364387
Decentralized,1.5,0,50,1000,20000,38.098903261259494,3.7703187436152312,6.389053018928855,8.932980173605488
Decentralized,1.5,1,25,600,12000,16.883139082932434,2.55974812490473,2.7018435256537328,3.594845916305405
Decentralized,1.5,1,50,1200,24000,32.63780404824665,4.46399649754702,5.261591650558463,7.28509907025104
Robust,1.5,0,25,0,0,20.093708645411017,2.709878252113061,3.464979998099755,4.070160743929376
Robust,1.5,0,50,0,0,36.342291426569815,4.070160743929376,5.842802675898414,7.99040048770168
Robust,1.5,1,25,0,0,16.835435464112322,2.06190649442755,2.7848171307332628,3.5865568279316054
Robust,1.5,1,50,0,0,32.888838496249456,3.9578657786960405,5.9015286817846455,6.596442964493401
Decentralized,1.9,0,25,500,10000,25.20293641780342,3.3846761322614336,4.086190841208731,4.969993503754904
Decentralized,1.9,0,50,1000,20000,46.699674481109035,6.36233619012993,7.6101012421076675,9.093587905282131
Decentralized,1.9,1,25,600,12000,13.257167724554517,1.24045953200605,1.9592256241248627,3.7130895076443506
Decentralized,1.9,1,50,1200,24000,23.060569477841288,1.6511830132168002,3.6456786236010776,6.225134013728965
Robust,1.9,0,25,0,0,18.572818421918058,2.442096446357626,3.0472771921872472,4.059474012409806
Robust,1.9,0,50,0,0,30.858107774343175,2.720564983632631,4.809232392636716,7.326289339072877
Robust,1.9,1,25,0,0,18.675402041186896,2.599162655351045,3.2152478771671706,3.6653858888242357
Robust,1.9,1,50,0,0,35.83444283724354,4.416292878726905,5.652607866546056,7.473882634108816
"""


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_a_tiny_run_gives_these_very_numbers(tmp_path: Path, jobs: int) -> None:
    spec = parse_spec(
        TINY.replace("trials = 2", "trials = 2\ncheckpoints = 2") + "[sweep]\nalpha = [1.5, 1.9]\n"
    )
    frame = run(spec, tmp_path / "run", jobs=jobs).frame
    rows = [line.split(",") for line in GOLDEN.split()]
    assert frame["experiment"].unique().to_list() == ["tiny"]
    columns = ["policy", "alpha", "trial", "t", "messages", "wire_bytes"]
    found = [tuple(map(str, row)) for row in frame.select(columns).iter_rows()]
    assert found == [tuple(row[:6]) for row in rows]
    for place, column in enumerate(["regret", "agent_min", "agent_q50", "agent_max"], 6):
        # The last digits depend on the mathematical library of the system.
        assert frame[column].to_list() == pytest.approx(
            [float(row[place]) for row in rows], rel=1e-9, abs=1e-9
        )


def test_the_table_does_not_depend_on_the_workers(undisturbed: RunFolder, tmp_path: Path) -> None:
    for jobs in (1, 3):
        run(parse_spec(LONG), tmp_path / str(jobs), jobs=jobs)
        assert same_table(tmp_path / str(jobs), undisturbed)


def test_policies_do_not_see_who_plays_beside_them(tmp_path: Path) -> None:
    both = run(parse_spec(TINY), tmp_path / "both").frame
    alone = TINY.replace('[[policies]]\ntype = "decentralized"\ngamma = 1\n', "")
    robust = run(parse_spec(alone), tmp_path / "alone").frame
    assert both.filter(pl.col("policy") == "Robust").equals(robust)


def test_a_plan_that_is_used_again_changes_nothing(tmp_path: Path) -> None:
    """Sweep points and policies that share cliques, leaders or weights get them from one computation."""
    text = SWEPT.replace("gamma = [0, 1, 3]", "zeta = [0.5, 1.0]")
    text = text.replace(
        'type = "consensus"', 'type = "consensus"\n[[policies]]\ntype = "decentralized"\ngamma = 2'
    )
    shared = run(parse_spec(text), tmp_path / "shared").frame
    for zeta in (0.5, 1.0):
        own = run(parse_spec(text.replace("[0.5, 1.0]", f"[{zeta}]")), tmp_path / str(zeta)).frame
        assert shared.filter(pl.col("zeta") == zeta).equals(own)


def test_what_a_sweep_leaves_as_it_is_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    played: list[int] = []
    build, play = build_network, play_trial

    def counted_build(spec: Any, trial: int, topology: Any) -> Network:
        built.append(trial)
        return build(spec, trial, topology)

    def counted_play(contenders: Sequence[Any], *rest: Any, **more: Any) -> Any:
        played.append(len(contenders))
        return play(contenders, *rest, **more)

    monkeypatch.setattr(building, "build_network", counted_build)
    monkeypatch.setattr(cells, "play_trial", counted_play)
    spec = parse_spec(SWEPT.replace("trials = 12", "trials = 2"))
    cache.NETWORK_CACHE.clear()
    for cell in plan_of(spec).cells(1):
        play_cell(spec, cell)
    cache.NETWORK_CACHE.clear()
    assert built == [0, 1]
    # Gamma does not reach Consensus: only the first point of each trial plays it.
    assert played == [3, 2, 2, 3, 2, 2]


def test_cached_networks_are_bounded() -> None:
    spec = parse_spec(SWEPT.replace("trials = 12", "trials = 100"))
    networks = cache.NetworkCache()
    for trial in range(100):
        networks.at(plan_of(spec).points[0], trial)
    assert len(networks._networks) <= (os.cpu_count() or 1) + cache.SPARE


# --- executors ------------------------------------------------------------------------------------------


def test_a_cell_depends_on_spec_and_number_alone_and_can_be_sent_anywhere(undisturbed: RunFolder) -> None:
    spec, cell = pickle.loads(pickle.dumps((undisturbed.spec, Cell(1, 5))))
    outcome = pickle.loads(pickle.dumps(play_cell(spec, cell)))
    kept = undisturbed.frame.filter(pl.col("gamma") == 1, pl.col("trial") == 5)
    assert outcome.frame.equals(kept)
    assert outcome.regret == dict(kept.filter(pl.col("t") == 600).select("policy", "regret").iter_rows())


def test_processes_give_the_same_bytes(undisturbed: RunFolder, tmp_path: Path) -> None:
    heard = Heard()
    run(undisturbed.spec, tmp_path / "run", jobs=2, executor="processes", progress=heard)
    assert same_table(tmp_path / "run", undisturbed)
    assert len(heard.calls) == 1 + 36 + 1
    assert heard.deliveries > 0


class OneByOne:
    """The smallest executor: what a cluster's would do, without one."""

    jobs = 1

    def run(
        self,
        tasks: Sequence[Task],
        work: Work[Task, Done],
        on_done: Callable[[Task, Done], None],
        on_tick: Tick = no_tick,
    ) -> None:
        for task in reversed(tasks):
            on_done(task, work(task, on_tick))


def test_another_executor_takes_the_place_of_the_workers(undisturbed: RunFolder, tmp_path: Path) -> None:
    run(parse_spec(LONG), tmp_path / "run", executor=OneByOne())
    assert same_table(tmp_path / "run", undisturbed)


def test_executors_have_names() -> None:
    own: Executor = OneByOne()
    assert isinstance(executor_of(None, 3), Threads)
    assert isinstance(executor_of("processes", 3), Processes)
    assert executor_of("threads", 3).jobs == 3
    assert executor_of(own, None) is own
    assert executor_of("ray", 3, "head:6379").jobs == 3
    with pytest.raises(InputError, match="address = 'head:6379' is not allowed with threads"):
        executor_of("threads", None, "head:6379")
    with pytest.raises(
        InputError, match="executor = 'cluster' is not allowed: 'threads', 'processes' or 'ray'"
    ):
        executor_of("cluster", None)


@pytest.mark.parametrize("jobs", [0, -1, True, 1.5])
def test_a_bad_number_of_jobs(jobs: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"jobs = .* is not allowed: a whole number >= 1"):
        run(parse_spec(TINY), tmp_path / "run", jobs=jobs)


def test_shipped_specs_are_part_of_the_package() -> None:
    folder = Path(str(specs.__file__)).parent / "shipped"
    assert len(list(folder.glob("*.toml"))) == 17
