"""`rumormill advise`: which policy, γ, estimator and constants to take, and whether to cooperate at all."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.making import made_network
from rumormill.cli.options import Jobs, Json, Seed
from rumormill.cli.printing import note, print_json, print_table, say
from rumormill.cli.words import split
from rumormill.errors import InputError
from rumormill.text import number, plural

if TYPE_CHECKING:
    from rumormill.advice.advise import Advice
    from rumormill.advice.advise_log import LogAdvice
    from rumormill.advice.log import Log
    from rumormill.arms.objective import Objective
    from rumormill.graphs import Network

Column = str | None


def advise(
    source: Annotated[
        str,
        typer.Argument(
            metavar="LOG|SPEC",
            help="A log (CSV, TSV, Parquet, Arrow; .gz too) or an experiment (name or TOML file).",
            show_default=False,
        ),
    ],
    minimise: Annotated[
        bool | None,
        typer.Option(
            "--minimise/--maximise", help="Is less better, or more? Needed for logs.", show_default=False
        ),
    ] = None,
    unit: Annotated[str, typer.Option(help="The unit of the values, for example ms.")] = "",
    network: Annotated[
        str | None,
        typer.Option(
            help='Who is linked to whom: "erdos_renyi n=50 p=0.1", or a file. Logs: all; specs: their own.'
        ),
    ] = None,
    time_column: Annotated[str | None, typer.Option(help="The column with the time of the decision.")] = None,
    agent_column: Annotated[str | None, typer.Option(help="The column that says who measured.")] = None,
    arm_column: Annotated[str | None, typer.Option(help="Long form: the column with the arm.")] = None,
    reward_column: Annotated[str | None, typer.Option(help="Long form: the column with the outcome.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="An arm to take (a column of the wide form); repeatable. All.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(help="A mean to try; repeatable. All but catoni, which is very slow."),
    ] = None,
    scale: Annotated[str | None, typer.Option(help="The scale of a spec whose network is meant.")] = None,
    horizon: Annotated[
        int | None, typer.Option(min=2, help="Specs: rounds of the simulations (1000).")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=5, help="Specs: trials per setting (16); three times that in the final.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of page and figures; runs/advice-NAME by default.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the advice as a mesh file to act on, for example mesh.toml.")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="A mesh file: is its setting still right for this log?")
    ] = None,
    json: Json = False,
) -> None:
    """Recommend policy, γ, estimator and constants, or to stay alone.

    Logs are replayed in their own order, after the model was tested on them; specs are simulated.
    """
    from rumormill.advice.columns import Columns
    from rumormill.advice.files import is_log

    logged = is_log(source) or Path(source).suffix not in ("", ".toml")
    columns = Columns(
        time_column, agent_column, arm_column, reward_column, tuple(column or ()), tuple(ignore or ())
    )
    if not logged:
        if columns != Columns() or minimise is not None or unit or write or like:
            raise InputError(
                "columns, objective, unit, --write and --like are for logs: a spec says all itself"
            )
        _advise_spec(source, network, estimator, scale, horizon or 1000, trials or 16, seed, jobs, out, json)
        return
    if horizon is not None or trials is not None or scale is not None:
        raise InputError("--horizon, --trials and --scale are for specs: a log is replayed as it is")
    way: Objective | None = None if minimise is None else "minimise" if minimise else "maximise"
    if like is not None:
        _second_look(source, columns, like, seed, jobs, json)
        return
    log = _read(source, columns, way, unit)
    made = None if network is None else made_network(split(network), seed)
    _advise_log(log, made, estimator, seed, jobs, out, write, json)


# --- logs -----------------------------------------------------------------------------------------------


def _read(source: str, columns: Any, way: Objective | None, unit: str) -> Log:
    """The log; where a name only hints at the objective and somebody is there, they are asked."""
    from rumormill.advice.columns import ObjectiveNeededError
    from rumormill.advice.logs import read_log

    try:
        return read_log(source, columns, objective=way, unit=unit)
    except ObjectiveNeededError as error:
        if error.suggestion is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        less = "less" if error.suggestion == "minimise" else "more"
        yes = typer.confirm(f"{str(error).split(':')[0]}. Is {less} better?", default=True, err=True)
        other: Objective = "maximise" if error.suggestion == "minimise" else "minimise"
        return read_log(source, columns, objective=error.suggestion if yes else other, unit=unit)


def _advise_log(
    log: Log,
    network: Network | None,
    estimators: list[str] | None,
    seed: int,
    jobs: int | None,
    out: Path | None,
    write: Path | None,
    json: bool,
) -> None:
    from rumormill.advice.advise_log import advise_log
    from rumormill.advice.choice import QUICK_ESTIMATORS
    from rumormill.advice.mesh import mesh_of, mesh_toml
    from rumormill.experiments.run.files import write_atomically

    with _Counting() as counting:
        advice = advise_log(
            log,
            network,
            seed=seed,
            estimators=estimators or QUICK_ESTIMATORS,
            jobs=jobs,
            on_play=counting.add,
        )
    if not json:
        print_advice(advice)
    written, problems = _pictures(advice, out or Path("runs") / f"advice-{log.name}")
    if write is not None:
        write_atomically(write, mesh_toml(mesh_of(advice)).encode())
        written.append(write)
    if json:
        print_json({**advice.as_dict(), "files": [str(path) for path in written], "problems": problems})
    for path in [] if json else written:
        note(f"written: {path}")
    for problem in problems:
        note(f"not written: {problem}")


def _pictures(advice: LogAdvice, folder: Path) -> tuple[list[Path], list[str]]:
    """Page and figures; what cannot be written is said and spoils nothing else."""
    from rumormill.advice.figures import model_figure, price_figure
    from rumormill.advice.page import write_page
    from rumormill.experiments.figures.files import save

    steps: list[Callable[[], list[Path]]] = [
        lambda: save(model_figure(advice), folder / "model"),
        lambda: save(price_figure(advice), folder / "price"),
        lambda: [write_page(advice, folder / "advice.html")],
    ]
    written: list[Path] = []
    problems: list[str] = []
    for step in steps:
        try:
            written += step()
        except Exception as error:  # the advice stands without its pictures
            problems.append(f"{folder}: {error}")
    return written, problems


def _second_look(source: str, columns: Any, like: Path, seed: int, jobs: int | None, json: bool) -> None:
    from rumormill.advice.again import second_look
    from rumormill.advice.logs import read_log
    from rumormill.advice.mesh import read_mesh
    from rumormill.advice.words import recommendation

    given = read_mesh(like)
    log = read_log(source, columns, objective=given.game.objective, unit=given.game.unit)
    with _Counting() as counting:
        found = second_look(given, log, seed=seed, jobs=jobs, on_play=counting.add)
    if json:
        print_json({**found.as_dict(), "advice": found.advice.as_dict()})
        return
    paragraph(found.sentence)
    say()
    for text in recommendation(found.advice):
        paragraph(text, "- ")


def print_advice(advice: LogAdvice) -> None:
    """The advice in as many columns as there are."""
    from rumormill.advice.words import findings, group_lines, headline, recommendation

    log = advice.log
    who = "no agents named" if log.agents is None else plural(log.n_agents, "agent")
    paragraph(f"{log.name}: {len(log.value):,} values, {who}, {plural(log.n_arms, 'arm')}")
    paragraph(headline(advice))
    say()
    paragraph("Is it the model's world?")
    for finding in findings(advice):
        paragraph(f"{finding.check} {finding.verdict}. {finding.sentence}", "! " if finding.alarm else "- ")
    for line in group_lines(advice):
        paragraph(line, "    ")
    for text in (*advice.notes, *advice.evidence.why_moments):
        paragraph(text, "- ")
    say()
    paragraph(f"On the rest of the log ({advice.rounds[1]:,} rounds not used to choose), per request:")
    _print_lines(advice)
    say()
    for text in recommendation(advice):
        paragraph(text)
    paragraph(f"In Python: {advice.code}", hang=4)


def _print_lines(advice: LogAdvice) -> None:
    unit = f" {advice.log.unit}" if advice.log.unit else ""
    for line in advice.lines:
        band = f"{number(line.low)} to {number(line.high)}"
        paragraph(
            f"{line.name}: {number(line.mean)}{unit} ({band}), median {number(line.median)}, "
            f"p90 {number(line.p90)}",
            "- ",
        )


def paragraph(text: str, mark: str = "", hang: int = 0) -> None:
    """A paragraph wrapped to the terminal: 80 columns where nobody says how many there are."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = max(20, shutil.get_terminal_size((80, 24)).columns) if known else 80
    indent = " " * (hang or len(mark))
    say(textwrap.fill(text, width, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False))


class _Counting:
    """Says on standard error how many settings were replayed: a line that stays, or one every few seconds."""

    EVERY_S = 5.0

    def __init__(self) -> None:
        self._done, self._last, self._live = 0, time.monotonic(), sys.stderr.isatty()

    def __enter__(self) -> _Counting:
        return self

    def __exit__(self, *ending: object) -> None:
        if self._live and self._done:
            sys.stderr.write("\r\x1b[K")

    def add(self, plays: int) -> None:
        self._done += plays
        words = f"{plural(self._done, 'setting')} replayed"
        if self._live:
            sys.stderr.write(f"\r\x1b[K{words}")
            sys.stderr.flush()
        elif time.monotonic() - self._last > self.EVERY_S:
            self._last = time.monotonic()
            note(words)


# --- specs ----------------------------------------------------------------------------------------------


def _advise_spec(
    source: str,
    network: str | None,
    estimators: list[str] | None,
    scale: str | None,
    horizon: int,
    trials: int,
    seed: int,
    jobs: int | None,
    out: Path | None,
    json: bool,
) -> None:
    from rumormill.advice import advise as advising
    from rumormill.advice.cases import case_of_spec, one_problem
    from rumormill.advice.figure import pareto_figure
    from rumormill.advice.search import QUICK_ESTIMATORS
    from rumormill.experiments.figures.files import save
    from rumormill.experiments.spec.building import build_network
    from rumormill.experiments.spec.reading import at_scale, named_spec, read_spec

    spec = read_spec(source) if source.endswith(".toml") or "/" in source else named_spec(source)
    # Any scale will do for the arms; the network may be larger at another.
    ready = at_scale(spec, scale or next(iter(spec.scale)))
    case = case_of_spec(ready)
    given = None if network is None else made_network(split(network), seed)
    advice = advising.advise(
        case,
        given if given is not None else build_network(one_problem(ready), 0),
        horizon=horizon,
        trials=trials,
        seed=seed,
        estimators=estimators or QUICK_ESTIMATORS,
        jobs=jobs,
    )
    if not json:
        _print_spec(advice)
    figures, problems = [], []
    try:
        figures = save(pareto_figure(advice), (out or Path("runs") / f"advice-{case.name}") / "pareto")
    except Exception as error:  # the advice stands without its picture
        problems.append(str(error))
    if json:
        print_json({**advice.as_dict(), "figures": [str(path) for path in figures], "problems": problems})
        return
    for path in figures:
        note(f"figure: {path}")
    for problem in problems:
        note(f"not written: {problem}")


def _print_spec(advice: Advice) -> None:
    made = advice.network
    print_table([tail.row() for tail in advice.case.tails], title=f"Tails: {advice.case.name}")
    say()
    print_table(
        [_setting(row) for row in advice.short_rows()],
        title=(
            f"Regret and messages: {made.n_agents:,} agents, diameter {made.diameter}, "
            f"{advice.horizon:,} rounds, {len(advice.outcomes)} settings"
        ),
        styles={"recommended": "bold green", "for comparison": "yellow"},
    )
    say()
    for reason in advice.reasons:
        paragraph(reason, "- ")
    say()
    paragraph(f"Recommended: {advice.code}", hang=4)


def _setting(row: dict[str, Any]) -> dict[str, Any]:
    word = "recommended" if row["recommended"] else "on the front" if row["on_front"] else ""
    return {
        "policy": row["policy"],
        "γ": row["gamma"],
        "mean": row["estimator"],
        "ζ": row["zeta"],
        "regret": row["regret"],
        "above the best": f"{row['worse']:+.0%} (to {row['worse_high']:+.0%})",
        "messages": row["messages_per_round"],
        "": word if row["allowed"] else "for comparison",
    }
