"""`rumormill reproduce`: the experiments of the paper."""

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
    Report,
    Trials,
)
from rumormill.cli.printing import note
from rumormill.cli.results import Against, conclude, play, with_available_data
from rumormill.errors import InputError


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
