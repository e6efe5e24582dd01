"""Options that several commands share, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ExecutorName(StrEnum):
    """Who plays the cells of a run."""

    threads = "threads"
    processes = "processes"
    ray = "ray"


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials, instead of those of the scale.")]
Horizon = Annotated[int | None, typer.Option(min=1, help="Rounds, instead of those of the scale.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Workers; all cores by default.")]
Executor = Annotated[
    ExecutorName,
    typer.Option(
        help="threads (the compiled engine runs in parallel), processes (own policies too), ray (a cluster)."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="host:port of the Ray cluster; else RAY_ADDRESS, the one on this machine, or one for this run.",
        show_default=False,
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME-SCALE by default.")]
Report = Annotated[bool, typer.Option(help="Write report.html and figures/ into the folder.")]
Bounds = Annotated[bool, typer.Option("--bounds", help="Also the theory's bounds, drawn and as a table.")]
Baseline = Annotated[
    str | None,
    typer.Option(help="Compare with this policy (its label) instead of every pair.", show_default=False),
]
Margin = Annotated[
    float | None,
    typer.Option(
        min=0, max=0.99, help="Share of regret not worth speaking of; 0.1 by default.", show_default=False
    ),
]
Folder = Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, help="The seed of all randomness.")]
