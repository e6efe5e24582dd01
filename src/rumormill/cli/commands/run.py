"""Experiments, and what a run found.

`rumormill run`: an experiment of one's own.
`rumormill reproduce`: the experiments of the paper.
`rumormill report`: the page and the figures of a run.
`rumormill figure`: pictures and tables to publish.
`rumormill show`: the results of a run.
`rumormill compare`: two runs side by side.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.arguments import (
    Address,
    Baseline,
    Bounds,
    Executor,
    ExecutorName,
    Folder,
    Horizon,
    Jobs,
    Json,
    Margin,
    OtherSeed,
    Out,
    Report,
    Trials,
)
from rumormill.cli.printing import note, print_json, print_table, say
from rumormill.cli.results import Against, conclude, play, present, with_available_data, write_report
from rumormill.errors import InputError
from rumormill.text import nearest, share

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Summary


def run(
    spec: Annotated[Path, typer.Argument(help="An experiment as a TOML file.", show_default=False)],
    scale: Annotated[str | None, typer.Option(help="quick, full, or another scale of the file.")] = None,
    trials: Trials = None,
    horizon: Horizon = None,
    seed: OtherSeed = None,
    jobs: Jobs = None,
    executor: Executor = ExecutorName.threads,
    address: Address = None,
    out: Out = None,
    report: Report = True,
    bounds: Bounds = False,
    baseline: Baseline = None,
    margin: Margin = None,
    json: Json = False,
) -> None:
    """Run an experiment of your own.

    Run it again to go on after a stop: what is done is kept.
    """
    from rumormill.api import default_folder
    from rumormill.experiments.spec.reading import at_scale, read_spec

    ready = at_scale(read_spec(spec), scale, trials=trials, horizon=horizon, seed=seed)
    played = play(ready, out or default_folder(ready, seed), jobs, executor, address)
    conclude([played], json, report=report, bounds=bounds, against=Against(baseline, margin))


def report(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(help="The file; report.html in the folder by default.")] = None,
    figures: Annotated[bool, typer.Option(help="Also draw the figures, as PNG.")] = True,
    bounds: Bounds = False,
) -> None:
    """Write the report of a run as one HTML file, and its figures."""
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run.store import open_run

    for path in write_report(summarise(open_run(folder), bounds=bounds), out, figures):
        say(path)


INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}


class StyleName(StrEnum):
    """What the figures are for."""

    screen = "screen"
    paper = "paper"


def figure(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", show_default=False)],
    panel: Annotated[bool, typer.Option("--panel", help="All runs in one figure, with one key.")] = False,
    only: Annotated[str | None, typer.Option(help="One kind of figure: regret, agents, messages, …")] = None,
    style: Annotated[
        StyleName, typer.Option(help="paper: width of a column or page, fonts of a journal.")
    ] = StyleName.screen,
    width: Annotated[str | None, typer.Option(help="Another width: 3.3in, 84mm, 8.4cm, 240pt.")] = None,
    linear: Annotated[bool, typer.Option("--linear", help="With --panel: plain axes.")] = False,
    bounds: Annotated[bool, typer.Option("--bounds", help="Also the theory's bounds.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder; with --panel the name without ending. figures/ of the run, or panel."),
    ] = None,
) -> None:
    """Draw runs to publish, with captions and tables.

    PNG, SVG and PDF; tables as LaTeX, Markdown and CSV.
    """
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run.store import open_run
    from rumormill.plotting.style import drawn_for

    inches = None if width is None else in_inches(width)
    if linear and not panel:
        raise InputError("--linear is for --panel: single runs have regret-linear beside regret")
    summaries = [summarise(open_run(run), bounds=bounds) for run in runs]
    with drawn_for(style.value, inches):
        written = _one_figure(summaries, out, linear) if panel else _of_each(summaries, out, only)
    for path in written:
        say(path)


def _one_figure(summaries: list[Summary], out: Path | None, linear: bool) -> list[Path]:
    from rumormill.experiments.figures.registry import panel_caption, panel_figure
    from rumormill.plotting.rendering import save, write_caption

    stem, caption = out or Path("panel"), panel_caption(summaries)
    note(caption)
    return [*save(panel_figure(summaries, linear=linear), stem), write_caption(caption, stem)]


def _of_each(summaries: list[Summary], out: Path | None, only: str | None) -> list[Path]:
    from rumormill.experiments.figures import FIGURES, draw_all
    from rumormill.experiments.report.markup import write_tables

    if only is not None and only not in FIGURES:
        raise InputError(f"--only {only!r} is not allowed{nearest(only, FIGURES)}")
    written = []
    for each in summaries:
        folder = each.path / "figures" if out is None else out / each.name if len(summaries) > 1 else out
        written += draw_all(each, folder, list(FIGURES) if only is None else [only])
        written += write_tables(each, folder) if only is None else []
    return written


def in_inches(text: str) -> float:
    """A width with its unit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)?", text.strip())
    wide = float(found[1]) * INCHES[found[2] or "in"] if found else 0.0
    if not 1 <= wide <= 40:
        raise InputError(f"--width {text!r} is not allowed: from 1in to 40in, as 3.3in, 84mm, 8.4cm or 240pt")
    return wide


def show(folder: Folder, baseline: Baseline = None, margin: Margin = None, json: Json = False) -> None:
    """Print the results of a run.

    Regret, the constants as resolved, the claims, and every policy against every other.
    """
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run import store

    present([summarise(store.open_run(folder))], json, against=Against(baseline, margin))


def compare(
    first: Folder,
    second: Annotated[Path, typer.Argument(help="The folder of another run.", show_default=False)],
    json: Json = False,
) -> None:
    """Print two runs side by side.

    Regret, the change from one to the other, and how their settings differ.
    """
    from rumormill.experiments.analyse import summary
    from rumormill.experiments.run.store import open_run

    one, other = summary.summarise(open_run(first)), summary.summarise(open_run(second))
    rows, settings = summary.compare(one, other), summary.differences(one, other)
    if json:
        print_json({"first": str(first), "second": str(second), "settings": settings, "rows": rows})
        return
    if settings:
        print_table(settings, title="Settings that differ")
        say()
    paired = "trial by trial" if rows[0]["paired"] else "trials independent"
    print_table(
        [_with_shares(row) for row in rows],
        title=f"Group regret at the horizon: {first} and {second} ({paired}, 95 % interval)",
    )


def _with_shares(row: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in row.items() if key not in ("change", "low", "high", "paired")}
    return {**kept, "change": share(row["change"]), "from": share(row["low"]), "to": share(row["high"])}


def names_starting_with(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from rumormill.experiments.spec import spec_names

    return [name for name in ["all", *spec_names()] if name.startswith(incomplete)]


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="fig1a … fig1f, theory, arms, gaps, gamma-sparse, estimators, tuned, "
            "loss, delay, churn, liars, change, or all.",
            autocompletion=names_starting_with,
            show_default=False,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="About a minute on two cores (default).")] = False,
    full: Annotated[bool, typer.Option("--full", help="The size of the paper.")] = False,
    trials: Trials = None,
    horizon: Horizon = None,
    seed: OtherSeed = None,
    jobs: Jobs = None,
    executor: Executor = ExecutorName.threads,
    address: Address = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder; with `all`, the folder of all runs. runs/ by default.")
    ] = None,
    report: Report = True,
    bounds: Bounds = False,
    baseline: Baseline = None,
    margin: Margin = None,
    json: Json = False,
) -> None:
    """Run an experiment of the paper and test its claims on it.

    The figures and a report are written beside the results.
    """
    from rumormill.api import default_folder
    from rumormill.experiments.spec.reading import at_scale, named_spec, spec_names
    from rumormill.graphs.datasets import MissingDataError

    if quick and full:
        raise InputError("--quick and --full were both given: choose one")
    everything = name == "all"
    runs, missing = [], []
    for each in spec_names() if everything else [name]:
        scale = "full" if full else "quick"
        ready = at_scale(named_spec(each), scale, trials=trials, horizon=horizon, seed=seed)
        usual = default_folder(ready, seed, out if everything and out else Path("runs"))
        folder = usual if everything else out or usual
        ready, without = with_available_data(ready)
        missing += without
        try:
            runs.append(play(ready, folder, jobs, executor, address))
        except MissingDataError as error:
            if not everything:
                raise
            missing.append(f"{each} is left out: {error}")
    conclude(runs, json, report=report, bounds=bounds, against=Against(baseline, margin))
    for line in missing:
        note(line)
