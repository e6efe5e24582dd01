"""`rumormill report`: the page and the figures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rumormill.cli.arguments import Bounds, Folder
from rumormill.cli.printing import say
from rumormill.cli.results import write_report


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
