"""`rumormill show`: what a run came to."""

from __future__ import annotations

from rumormill.cli.options import Folder, Json
from rumormill.cli.results import present


def show(folder: Folder, json: Json = False) -> None:
    """Print what a run came to."""
    from rumormill.experiments.run.store import open_run

    present([open_run(folder)], json, report=False)
