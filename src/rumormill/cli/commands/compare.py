"""`rumormill compare`: two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rumormill.cli.arguments import Folder, Json
from rumormill.cli.printing import print_json, print_table, say
from rumormill.text import share


def compare(
    first: Folder,
    second: Annotated[Path, typer.Argument(help="The folder of another run.", show_default=False)],
    json: Json = False,
) -> None:
    """Print two runs side by side.

    Regret, the change from one to the other, and how their settings differ.
    """
    from rumormill.experiments.analyse import comparisons
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run.store import open_run

    one, other = summarise(open_run(first)), summarise(open_run(second))
    rows, settings = comparisons.compare(one, other), comparisons.differences(one, other)
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
