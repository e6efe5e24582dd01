"""`rumormill advise`: which policy, γ, estimator and constants to take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.making import made_estimator, made_network
from rumormill.cli.options import Jobs, Json, Seed
from rumormill.cli.printing import note, print_json, print_table, say, with_band
from rumormill.cli.words import split
from rumormill.errors import InputError
from rumormill.text import band, number

if TYPE_CHECKING:
    from rumormill.advice.advise import Advice
    from rumormill.advice.cases import Case
    from rumormill.graphs import Network


def advise(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|TRACES",
            help="An experiment (name or TOML file), or recorded rewards (CSV or Parquet, a column per arm).",
            show_default=False,
        ),
    ],
    network: Annotated[
        str | None,
        typer.Option(help='A generator or file with settings, "erdos_renyi n=50 p=0.1"; a spec has its own.'),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A column of the traces to take as an arm; repeatable. All.")
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(help="A mean to try; repeatable. All but catoni, which is very slow."),
    ] = None,
    scale: Annotated[str | None, typer.Option(help="The scale of a spec whose network is meant.")] = None,
    horizon: Annotated[int, typer.Option(min=2, help="Rounds of the simulations.")] = 1000,
    trials: Annotated[
        int, typer.Option(min=5, help="Trials per setting; three times that in the final.")
    ] = 16,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the figure; runs/advice-NAME by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Recommend policy, γ, estimator and constants.

    For a network, and rewards as recorded or as a spec describes them, by quick simulations.
    """
    from rumormill.advice import advise as advising
    from rumormill.advice.figure import pareto_figure
    from rumormill.advice.search import QUICK_ESTIMATORS
    from rumormill.catalogue import is_own
    from rumormill.experiments.figures.style import save

    case, played_on = _case(source, network, column, scale, seed)
    for name in estimator or []:
        if is_own(name):
            made_estimator(name)  # found in this folder now, and by its name alone from here on
    advice = advising.advise(
        case,
        played_on,
        horizon=horizon,
        trials=trials,
        seed=seed,
        estimators=estimator or QUICK_ESTIMATORS,
        jobs=jobs,
    )
    figures = save(pareto_figure(advice), (out or Path("runs") / f"advice-{case.name}") / "pareto")
    if json:
        print_json({**advice.as_dict(), "figures": [str(path) for path in figures]})
        return
    _print(advice)
    for path in figures:
        note(f"figure: {path}")


def _case(
    source: str, network: str | None, columns: list[str] | None, scale: str | None, seed: int
) -> tuple[Case, Network]:
    from rumormill.advice.cases import case_of_spec, case_of_traces, one_problem
    from rumormill.advice.traces import is_traces, read_traces
    from rumormill.experiments.spec.building import build_network
    from rumormill.experiments.spec.reading import at_scale, named_spec, read_spec

    if is_traces(source) or Path(source).suffix not in ("", ".toml"):
        traces = read_traces(source, columns)
        if network is None:
            raise InputError(
                'recorded rewards come without a network: add for example --network "erdos_renyi n=50 p=0.1"'
            )
        return case_of_traces(traces, seed, Path(source).stem), made_network(split(network), seed)
    if columns:
        raise InputError("--column is for recorded rewards: a spec says itself what its arms are")
    spec = read_spec(source) if source.endswith(".toml") or "/" in source else named_spec(source)
    # Any scale will do for the arms; the network may be larger at another.
    ready = at_scale(spec, scale or next(iter(spec.scale)))
    case = case_of_spec(ready)
    if network is not None:
        return case, made_network(split(network), seed)
    return case, build_network(one_problem(ready), 0)


def _print(advice: Advice) -> None:
    made = advice.network
    print_table([_tail(tail.row()) for tail in advice.case.tails], title=f"Tails: {advice.case.name}")
    say()
    print_table(
        [_setting(row) for row in advice.short_rows()],
        title=(
            f"Regret and messages: {made.n_agents:,} agents, diameter {made.diameter}, "
            f"{advice.horizon:,} rounds, {len(advice.outcomes)} settings"
        ),
        styles={"recommended": "bold green", "no guarantee": "yellow"},
    )
    say()
    for reason in advice.reasons:
        say(f"- {reason}")
    say()
    say(f"Recommended: {advice.code}")


def _tail(row: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in row.items() if key not in ("low", "high")}
    if "low" not in row:
        return shown
    return with_band(shown, "tail_index", f"{number(row['low'])} – {number(row['high'])}")


def _setting(row: dict[str, Any]) -> dict[str, Any]:
    word = "recommended" if row["recommended"] else "on the front" if row["on_front"] else ""
    return {
        "policy": row["policy"],
        "gamma": row["gamma"],
        "estimator": row["estimator"],
        "zeta": row["zeta"],
        "regret": row["regret"],
        "95 % band": band(row["low"], row["high"]),
        "above the best": f"{row['worse']:+.0%} ({row['worse_low']:+.0%} to {row['worse_high']:+.0%})",
        "messages / round": row["messages_per_round"],
        "bytes / round": row["bytes_per_round"],
        "trials": row["trials"],
        "": word if row["guaranteed"] else "no guarantee",
    }
