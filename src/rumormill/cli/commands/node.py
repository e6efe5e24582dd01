"""`rumormill node`: one node of a mesh; `rumormill node check`: its folder."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

node = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@node.callback()
def run(
    ctx: typer.Context,
    name: Annotated[str, typer.Option(help="The node's name in the mesh file.", show_default=False)] = "",
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
    rejoin: Annotated[
        bool, typer.Option("--rejoin", help="Set a damaged folder aside and join with a new epoch.")
    ] = False,
) -> None:
    """Run a node until SIGTERM; SIGHUP reads the mesh file again.

    A token that every request must carry is taken from RUMORMILL_TOKEN.
    Exit code 0 after SIGTERM or Ctrl-C, 70 after a defect: the last lines of the log say which.
    """
    if ctx.invoked_subcommand is not None:
        return
    if not name:
        raise typer.BadParameter("which node: --name NAME, as in the mesh file")
    # From here on SIGTERM asks to stop, which ends with 0: while the rest is imported, and to the end.
    stopping = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
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
            rejoin=rejoin,
        ),
        stopping,
    )
    if code:
        raise typer.Exit(code)


@node.command()
def check(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The node's own folder.")]) -> None:
    """Verify the folder of a node, running or not, and change nothing.

    Exit code 0 if it is sound, 1 if it is damaged, 2 if there is no node or it cannot be read.
    """
    from rumormill.errors import DataError
    from rumormill.live.io.folder import check_folder

    try:
        typer.echo(check_folder(folder))
    except DataError as error:
        typer.echo(error)
        raise typer.Exit(1) from None
