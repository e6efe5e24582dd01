"""`rumormill run`: an experiment of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rumormill.cli.arguments import (
    Address,
    Baseline,
    Bounds,
    Executor,
    ExecutorName,
    Horizon,
    Jobs,
    Json,
    Margin,
    OtherSeed,
    Out,
    Report,
    Trials,
)
from rumormill.cli.results import Against, conclude, play


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
