"""`rumormill show`: what a run came to."""

from __future__ import annotations

from rumormill.cli.arguments import Baseline, Folder, Json, Margin
from rumormill.cli.results import Against, present


def show(folder: Folder, baseline: Baseline = None, margin: Margin = None, json: Json = False) -> None:
    """Print what a run came to.

    Regret, the constants as resolved, the claims, and every policy against every other.
    """
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run import store

    present([summarise(store.open_run(folder))], json, against=Against(baseline, margin))
