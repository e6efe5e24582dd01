"""`rumormill node`: one node of a mesh."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def node(
    name: Annotated[str, typer.Option(help="The node's name in the mesh file.", show_default=False)],
    mesh: Annotated[Path, typer.Option(help="The mesh file.")] = Path("mesh.toml"),
    data: Annotated[Path | None, typer.Option(help="The node's own folder; NAME.data by default.")] = None,
    http: Annotated[
        str, typer.Option(help="Where the sidecar serves the application: HOST:PORT, or unix:PATH.")
    ] = "127.0.0.1:7480",
    listen: Annotated[  # plain-words: allow
        str | None, typer.Option(help="Where neighbours connect, if not the address in the mesh file.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="The folder of ca.crt, NAME.crt, NAME.key; keys/ beside the file.")
    ] = None,
) -> None:
    """Run a node until SIGTERM; SIGHUP reads the mesh file again.

    A token that every request must carry is taken from RUMORMILL_TOKEN.
    Exit code 0 after SIGTERM or Ctrl-C, 70 after a defect: the last lines of the log say which.
    """
    from rumormill.live.io.runtime import Settings, run_node

    code = run_node(
        Settings(
            mesh=mesh,
            name=name,
            data=data or Path(f"{name}.data"),
            http=http,
            listen=listen,  # plain-words: allow
            token=os.environ.get("RUMORMILL_TOKEN") or None,
            keys=keys,
        )
    )
    if code:
        raise typer.Exit(code)
