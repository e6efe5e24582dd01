"""`rumormill advise`: which policy, γ, estimator and constants to take, and whether to cooperate at all.

`rumormill evaluate`: what another policy would have paid, from a log with propensities.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.arguments import Jobs, Json, Seed, made_network, split
from rumormill.cli.printing import (
    note,
    paragraph,
    print_advice,
    print_advice_on_spec,
    print_json,
    print_table,
    say,
)
from rumormill.errors import DataError, InputError
from rumormill.experiments.run.progress import CountDisplay

if TYPE_CHECKING:
    from rumormill.advice.reading.log import Log
    from rumormill.advice.report_text import LogAdvice
    from rumormill.arms.base import Objective
    from rumormill.graphs import Network

Source = Annotated[
    str,
    typer.Argument(
        metavar="LOG|SPEC",
        help="A log (CSV, TSV, Parquet, Arrow; .gz too) or an experiment (name or TOML file).",
        show_default=False,
    ),
]
Minimise = Annotated[
    bool | None,
    typer.Option(
        "--minimise/--maximise", help="Is less better, or more? Needed for logs.", show_default=False
    ),
]
Unit = Annotated[str, typer.Option(help="The unit of the values, for example ms.")]
Links = Annotated[
    str | None,
    typer.Option(
        help='Who is linked to whom: "erdos_renyi n=50 p=0.1", or a file. Logs: all; specs: their own.'
    ),
]
TimeColumn = Annotated[str | None, typer.Option(help="The column with the time of the decision.")]
AgentColumn = Annotated[str | None, typer.Option(help="The column that says who measured.")]
ArmColumn = Annotated[str | None, typer.Option(help="Long form: the column with the arm.")]
RewardColumn = Annotated[str | None, typer.Option(help="Long form: the column with the outcome.")]
Arms = Annotated[
    list[str] | None, typer.Option(help="An arm to take (a column of the wide form); repeatable. All.")
]
Status = Annotated[
    str | None, typer.Option(help="Long form: the column that says whether a try succeeded (ok, 200, ...).")
]
Ok = Annotated[list[str] | None, typer.Option(help="A status of success; repeatable. The usual words.")]
FailureCost = Annotated[
    str | None,
    typer.Option(
        help="What a missing or failed outcome counts as: a value, or timeout for the worst of the log."
    ),
]
Ignore = Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")]
Estimators = Annotated[
    list[str] | None, typer.Option(help="A mean to try; repeatable. All but catoni, which is very slow.")
]
Scale = Annotated[str | None, typer.Option(help="The scale of a spec whose network is meant.")]
Horizon = Annotated[int | None, typer.Option(min=2, help="Specs: rounds of the simulations (1000).")]
Trials = Annotated[
    int | None, typer.Option(min=5, help="Specs: trials per setting (16); three times that in the final.")
]
Out = Annotated[Path | None, typer.Option(help="Folder of page and figures; runs/advice-NAME by default.")]
Page = Annotated[
    Path | None, typer.Option(help="Write one page to forward, for example advice.html: the advice in short.")
]
Write = Annotated[
    Path | None,
    typer.Option(
        help="Write the advice as a mesh file, for example mesh.toml; only what live nodes accept is tried."
    ),
]
Like = Annotated[Path | None, typer.Option(help="A mesh file: is its setting still right for this log?")]


def advise(
    source: Source,
    minimise: Minimise = None,
    unit: Unit = "",
    network: Links = None,
    time_column: TimeColumn = None,
    agent_column: AgentColumn = None,
    arm_column: ArmColumn = None,
    reward_column: RewardColumn = None,
    column: Arms = None,
    ignore: Ignore = None,
    status_column: Status = None,
    ok: Ok = None,
    failure_cost: FailureCost = None,
    estimator: Estimators = None,
    scale: Scale = None,
    horizon: Horizon = None,
    trials: Trials = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Out = None,
    page: Page = None,
    write: Write = None,
    like: Like = None,
    json: Json = False,
) -> None:
    """Recommend policy, γ, estimator and constants, or to stay alone.

    Logs are replayed in their own order, after the model was tested on them; specs are simulated.
    """
    from rumormill.advice.reading.columns import Columns
    from rumormill.advice.reading.formats import is_log

    logged = Path(source).is_dir() or is_log(source) or Path(source).suffix not in ("", ".toml")
    columns = Columns(
        time_column,
        agent_column,
        arm_column,
        reward_column,
        tuple(column or ()),
        tuple(ignore or ()),
        status_column,
        tuple(ok or ()),
    )
    if ok and status_column is None:
        raise InputError("--ok names statuses of success: say which column has them with --status-column")
    if not logged:
        if columns != Columns() or minimise is not None or unit or write or like or failure_cost or page:
            raise InputError(
                "columns, objective, unit, --failure-cost, --page, --write and --like are for logs: a spec "
                "says all itself"
            )
        _advise_spec(source, network, estimator, scale, horizon or 1000, trials or 16, seed, jobs, out, json)
        return
    if horizon is not None or trials is not None or scale is not None:
        raise InputError("--horizon, --trials and --scale are for specs: a log is replayed as it is")
    way: Objective | None = None if minimise is None else "minimise" if minimise else "maximise"
    if like is not None:
        if network or estimator or out or page or write or unit:
            raise InputError("--network, --estimator, --out, --page, --write and --unit are not for --like")
        _recheck(source, columns, like, way, _cost(failure_cost), seed, jobs, json)
        return
    log = _read(source, columns, way, unit, _cost(failure_cost))
    made = None if network is None else made_network(split(network), seed)
    _advise_log(log, made, estimator, seed, jobs, out, page, write, json)


# --- logs -----------------------------------------------------------------------------------------------


def _cost(given: str | None) -> Any:
    """--failure-cost as a number, or the word timeout."""
    if given is None or given == "timeout":
        return given
    try:
        return float(given)
    except ValueError:
        raise InputError(
            f"--failure-cost {given!r} is not allowed: a number, or timeout for the worst value of the log"
        ) from None


def _read(source: str, columns: Any, way: Objective | None, unit: str, cost: Any) -> Log:
    """The log; where a name suggests the objective, an interactive user is asked to confirm it."""
    from rumormill.advice.reading.columns import ObjectiveNeededError
    from rumormill.advice.reading.log import read_log

    try:
        return read_log(source, columns, objective=way, unit=unit, failure_cost=cost)
    except ObjectiveNeededError as error:
        if error.suggestion is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        less = "less" if error.suggestion == "minimise" else "more"
        yes = typer.confirm(f"{str(error).split(':')[0]}. Is {less} better?", default=True, err=True)
        other: Objective = "maximise" if error.suggestion == "minimise" else "minimise"
        way = error.suggestion if yes else other
        return read_log(source, columns, objective=way, unit=unit, failure_cost=cost)


def _advise_log(
    log: Log,
    network: Network | None,
    estimators: list[str] | None,
    seed: int,
    jobs: int | None,
    out: Path | None,
    page: Path | None,
    write: Path | None,
    json: bool,
) -> None:
    from rumormill.advice import advise as advising
    from rumormill.advice.mesh_output import mesh_of
    from rumormill.advice.problem import QUICK_ESTIMATORS, for_nodes
    from rumormill.mesh.file import write_mesh

    with CountDisplay("setting", verb="replayed") as counting:
        advice = advising.advise(
            log,
            network,
            seed=seed,
            estimators=estimators or (QUICK_ESTIMATORS if write is None else for_nodes()),
            jobs=jobs,
            on_play=counting.add,
        )
    if not json:
        print_advice(advice)
    written, problems = _pictures(advice, out or Path("runs") / f"advice-{log.name}", page, write)
    if write is not None:
        write_mesh(write, mesh_of(advice))
        written.append(write)
    if json:
        print_json({**advice.as_dict(), "files": [str(path) for path in written], "problems": problems})
    for path in [] if json else written:
        note(f"written: {path}")
    for problem in problems:
        note(f"not written: {problem}")
    if write is not None:
        note(_for_live(write))


def _for_live(path: Path) -> str:
    """Whether live nodes accept the file, and the next command."""
    from rumormill.mesh.file import read_mesh

    try:
        mesh = read_mesh(path)
        mesh.live_policy(mesh.file.games[0])
    except (InputError, DataError) as error:
        why = str(error).split("; take ")[0]
        return f"live nodes refuse it ({why}); for those, ask again with --estimator clipped"
    return (
        f"for live nodes: `rumormill mesh adopt --mesh {path}` gives them ids, addresses, keys and a plan "
        "(--address says where they are)"
    )


def _next_command(advice: LogAdvice, write: Path | None) -> str:
    """What to type next."""
    if write is not None:
        return f"rumormill mesh adopt --mesh {write}"
    words = sys.argv[1:] if "advise" in sys.argv[1:] else ["advise", f"{advice.log.name}.csv"]
    return shlex.join(["rumormill", *(word for word in words if word != "--json"), "--write", "mesh.toml"])


def _pictures(
    advice: LogAdvice, folder: Path, page: Path | None, write: Path | None
) -> tuple[list[Path], list[str]]:
    """Pages and figures; what cannot be written is said and spoils nothing else."""
    from rumormill.advice.page import model_figure, page_html, price_figure, summary_html, write_page
    from rumormill.plotting.rendering import save

    steps: list[Callable[[], list[Path]]] = [
        lambda: save(model_figure(advice), folder / "model"),
        lambda: save(price_figure(advice), folder / "price"),
        lambda: [write_page(page_html(advice), folder / "advice.html")],
    ]
    if page is not None:
        steps.append(lambda: [write_page(summary_html(advice, _next_command(advice, write)), page)])
    written: list[Path] = []
    problems: list[str] = []
    for step in steps:
        try:
            written += step()
        except Exception as error:  # the advice stands without its pictures
            problems.append(f"{folder}: {error}")
    return written, problems


def _recheck(
    source: str,
    columns: Any,
    like: Path,
    way: Objective | None,
    cost: Any,
    seed: int,
    jobs: int | None,
    json: bool,
) -> None:
    from rumormill.advice.mesh_output import read_setting, recheck
    from rumormill.advice.reading.log import read_log
    from rumormill.advice.report_text import recommendation

    given = read_setting(like)
    if way not in (None, given.game.objective):
        raise InputError(f"{like} says {given.game.objective}: leave --{way} out")
    objective, unit = given.game.objective, given.game.unit
    log = read_log(source, columns, objective=objective, unit=unit, failure_cost=cost)
    with CountDisplay("setting", verb="replayed") as counting:
        found = recheck(given, log, seed=seed, jobs=jobs, on_play=counting.add)
    if json:
        print_json({**found.as_dict(), "advice": found.advice.as_dict()})
        return
    paragraph(found.sentence)
    say()
    for text in recommendation(found.advice):
        paragraph(text, "- ")


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
    from rumormill.advice.page import pareto_figure
    from rumormill.advice.problem import QUICK_ESTIMATORS
    from rumormill.experiments.spec.reading import at_scale, named_spec, read_spec
    from rumormill.plotting.rendering import save

    spec = read_spec(source) if source.endswith(".toml") or "/" in source else named_spec(source)
    # Any scale will do for the arms; the network may be larger at another.
    ready = at_scale(spec, scale or next(iter(spec.scale)))
    given = None if network is None else made_network(split(network), seed)
    advice = advising.advise(
        ready,
        given,
        horizon=horizon,
        trials=trials,
        seed=seed,
        estimators=estimators or QUICK_ESTIMATORS,
        jobs=jobs,
    )
    if not json:
        print_advice_on_spec(advice)
    figures, problems = [], []
    try:
        figures = save(pareto_figure(advice), (out or Path("runs") / f"advice-{advice.case.name}") / "pareto")
    except Exception as error:  # the advice stands without its picture
        problems.append(str(error))
    if json:
        print_json({**advice.as_dict(), "figures": [str(path) for path in figures], "problems": problems})
        return
    for path in figures:
        note(f"figure: {path}")
    for problem in problems:
        note(f"not written: {problem}")


def evaluate(
    log: Annotated[Path, typer.Argument(help="A log with the columns arm, reward (or cost) and propensity.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(help='"always=ARM", "uniform" (the default), "A=0.7,B=0.3"; repeatable.'),
    ] = None,
    arm: Annotated[str, typer.Option(help="The column of the arm.")] = "arm",
    reward: Annotated[str | None, typer.Option(help="The column of the value; reward or cost.")] = None,
    propensity: Annotated[str, typer.Option(help="The column of the propensity.")] = "propensity",
    json: Json = False,
) -> None:
    """Say what another policy would have paid.

    Clipped IPS and doubly robust estimates per decision, with 95 % intervals that hold for heavy tails.
    """
    from rumormill.advice.off_policy import evaluate_file

    found = [
        evaluate_file(log, each, arm=arm, reward=reward, propensity=propensity)
        for each in policy or ["uniform"]
    ]
    if json:
        print_json([each.as_dict() for each in found])
        return
    logged = found[0].logged
    rows = [
        {
            "policy": "as logged",
            "estimate": logged.estimate,
            "low": logged.low,
            "high": logged.high,
            "by": "mean",
        }
    ]
    for each in found:
        for by, interval in (("doubly robust", each.doubly_robust), ("clipped IPS", each.ips)):
            ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
            rows.append({"policy": each.policy, **ends, "by": by})
    print_table(rows, title=f"{log}: value of a decision")
    for count, what in ((found[0].without, "without a propensity"), (found[0].fixed, "with propensity 1")):
        if count:
            note(f"{count:,} rows {what} are left out of the estimates")
    note("95 % intervals for tails of index 1.5 or more; they assume arms that do not change")
