"""`rumormill data`: where graph files are, and how to get them."""

from __future__ import annotations

from typing import Annotated

import typer

from rumormill.cli.arguments import Json
from rumormill.cli.printing import note, print_json, print_table, say


def data(
    download: Annotated[
        list[str] | None, typer.Option(help="Fetch a graph by name, or all; repeatable.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Where to fetch from, instead of the publisher.", metavar="BASE")
    ] = None,
    json: Json = False,
) -> None:
    """Say which graph files are there, and fetch the others."""
    from rumormill.graphs import datasets as files

    wanted = download or []
    for name in [known.name for known in files.KNOWN] if "all" in wanted else wanted:
        note(f"fetched {files.download(name, base_url=url)}")
    rows = [
        {"graph": known.name, "file": str(files.locate(known.name) or "not there"), "about": known.about}
        for known in files.KNOWN
    ]
    folders = [str(folder) for folder in files.folders()]
    if json:
        print_json({"folders": folders, "graphs": rows})
        return
    say("Looked for in: " + ", then ".join(folders))
    say()
    print_table(rows)
    if any(row["file"] == "not there" for row in rows):
        say()
        say(
            "To get them: rumormill data --download all; or put them into a folder and name it in "
            f"{files.FOLDER_VARIABLE}"
        )
