"""Playing a run from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rumormill.cli.options import ExecutorName

if TYPE_CHECKING:
    from rumormill.experiments.run.store import RunFolder
    from rumormill.experiments.spec.schema import Spec


def play(
    spec: Spec, folder: Path, jobs: int | None, executor: ExecutorName, address: str | None = None
) -> RunFolder:
    """Run the spec into the folder, with a display of how far it is."""
    from rumormill.experiments.run import runner
    from rumormill.experiments.run.executors import executor_of
    from rumormill.experiments.run.progress import progress_for
    from rumormill.graphs.datasets import find

    for part in spec.networks.values() or [spec.network]:
        if part.kind == "file":
            find(part.settings["file"])  # before a folder is made for a run that cannot begin
    workers = executor_of(executor.value, jobs, address)
    return runner.run(spec, folder, jobs, progress_for(spec.name), workers)


def with_data_at_hand(spec: Spec) -> tuple[Spec, list[str]]:
    """The spec without those of its networks whose data are not there, and a line about each of them."""
    from rumormill.experiments.spec.reading import without_networks
    from rumormill.graphs.datasets import MissingDataError, find

    missing = {}
    for name, part in spec.networks.items():
        try:
            if part.kind == "file":
                find(part.settings["file"])
        except MissingDataError as error:
            missing[name] = f"{spec.name} goes without the network {name}: {error}"
    return (without_networks(spec, missing) if missing else spec), list(missing.values())


def default_folder(spec: Spec, base: Path = Path("runs")) -> Path:
    """Where a run goes when nobody says: other sizes go elsewhere."""
    ((scale, size),) = spec.scale.items()
    tail = f"{size.trials}x{size.horizon}" if scale == "custom" else scale
    return base / f"{spec.name}-{tail}"
