"""`rumormill show`: what a run came to."""

from __future__ import annotations

from rumormill.cli.options import Folder, Json
from rumormill.cli.results import present


def show(folder: Folder, json: Json = False) -> None:
    """Print what a run came to."""
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run import store

    present([summarise(store.open_run(folder))], json)
