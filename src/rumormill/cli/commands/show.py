"""`rumormill show`: the results of a run."""

from __future__ import annotations

from rumormill.cli.arguments import Baseline, Folder, Json, Margin
from rumormill.cli.results import Against, present


def show(folder: Folder, baseline: Baseline = None, margin: Margin = None, json: Json = False) -> None:
    """Print the results of a run.

    Regret, the constants as resolved, the claims, and every policy against every other.
    """
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run import store

    present([summarise(store.open_run(folder))], json, against=Against(baseline, margin))
