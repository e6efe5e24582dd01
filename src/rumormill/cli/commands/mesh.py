"""`rumormill mesh`: make, edit and show a mesh, watch its nodes, export their observations.

`rumormill node`: one node of a mesh; `rumormill node check`: its folder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.arguments import Json
from rumormill.cli.printing import note, print_json, print_table, say
from rumormill.errors import InputError
from rumormill.text import plural

if TYPE_CHECKING:
    from rumormill.mesh.file import Mesh

mesh = typer.Typer(name="mesh", help="Make a mesh of live nodes, change it, export its log.")

File = Annotated[Path, typer.Option("--mesh", help="The mesh file.")]
FILE = Path("mesh.toml")


@mesh.command()
def init(
    name: Annotated[str, typer.Argument(help="The name of the mesh.", show_default=False)],
    arm: Annotated[list[str], typer.Option(help="An arm; repeat.", show_default=False)],
    game: Annotated[str, typer.Option(help="The name of the game.")] = "game",
    objective: Annotated[str, typer.Option(help="minimise (rewards are costs) or maximise.")] = "maximise",
    unit: Annotated[str, typer.Option(help="The unit of the rewards, for display.")] = "",
    policy: Annotated[str, typer.Option(help="decentralized, centralized or kmp.")] = "decentralized",
    gamma: Annotated[int, typer.Option(min=0, help="Hops that observations travel.")] = 2,
    eps: Annotated[float, typer.Option(help="Moments of order 1 + eps are finite.")] = 0.5,
    moment: Annotated[float, typer.Option(help="A bound on E|reward|^(1 + eps).")] = 1.0,
    zeta: Annotated[float, typer.Option(help="The factor of the confidence radius.")] = 1.0,
    discount: Annotated[
        float | None, typer.Option(help="Forget: the factor of earlier samples per new one, such as 0.99.")
    ] = None,
    signed: Annotated[
        bool, typer.Option("--signed", help="Nodes sign their observations: no other node can forge them.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path(),
) -> None:
    """Make a mesh: mesh.toml and the keys of its certificate authority."""
    from rumormill.mesh.edit import init as make
    from rumormill.mesh.file import GamePart

    if objective not in ("minimise", "maximise"):
        raise InputError(f"--objective {objective} is not allowed: minimise or maximise")
    settings: dict[str, Any] = {"type": policy, "gamma": gamma, "zeta": zeta}
    if policy == "decentralized":
        settings["clique_filter"] = False
    if discount is not None:
        settings["forget"] = {"discount": discount}
    made = GamePart(
        name=game,
        arms=arm,
        objective=objective,  # type: ignore[arg-type]
        unit=unit,
        policy=settings,
        moments={"eps": eps, "u": moment, "rho": moment},
    )
    path = make(folder, name, made, signed=signed)
    say(f"{path} and {path.parent / 'keys'} are made; keep keys/ca.key to yourself")
    say(f"go on with: rumormill mesh add NAME HOST:PORT --mesh {path}")


@mesh.command()
def add(
    name: Annotated[str, typer.Argument(help="The name of the node.", show_default=False)],
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where its neighbours reach it.")],
    link: Annotated[list[str] | None, typer.Option(help="A neighbour; repeat.")] = None,
    mesh: File = FILE,
) -> None:
    """Add a node and make its keys."""
    from rumormill.mesh.edit import add as add_node

    made = add_node(mesh, name, address, link or [])
    say(f"node {name} is in {mesh} (revision {made.file.revision}); its keys are {name}.crt and {name}.key")


@mesh.command()
def remove(
    name: Annotated[str, typer.Argument(help="The name of the node.", show_default=False)], mesh: File = FILE
) -> None:
    """Remove a node; its certificate is revoked."""
    from rumormill.mesh.edit import remove as remove_node

    made = remove_node(mesh, name)
    say(f"node {name} is out of {mesh} (revision {made.file.revision})")


@mesh.command()
def rotate(
    name: Annotated[str, typer.Argument(help="The name of the node.", show_default=False)], mesh: File = FILE
) -> None:
    """Give a node a new key and certificate; the old ones are revoked.

    Copy the mesh file to all nodes and the new keys to this node, then send SIGHUP to all, to this node last.
    """
    from rumormill.mesh.edit import rotate as rotate_node

    made = rotate_node(mesh, name)
    say(f"node {name} has new keys {name}.crt and {name}.key, see {mesh} (revision {made.file.revision})")
    note(f"copy {mesh} to all nodes and the keys to {name}; send SIGHUP to all nodes, to {name} last")


@mesh.command()
def move(
    name: Annotated[str, typer.Argument(help="The name of the node.", show_default=False)],
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where its neighbours reach it now.")],
    mesh: File = FILE,
) -> None:
    """Change the address of a node."""
    from rumormill.mesh.edit import move as move_node

    made = move_node(mesh, name, address)
    say(f"node {name} is at {address} in {mesh} (revision {made.file.revision})")


@mesh.command()
def adopt(
    address: Annotated[
        str | None,
        typer.Option(help="Where neighbours reach each node: {name} is its name, {port} counts from 7400."),
    ] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="DATA...", help="Folders of nodes: what they learned is the prior."),
    ] = None,
    more: Annotated[list[Path] | None, typer.Argument(hidden=True, metavar="[DATA]...")] = None,
    game: Annotated[str | None, typer.Option(help="With --from: which game, if not all.")] = None,
    mesh: File = FILE,
) -> None:
    """Complete a file of `advise --write`: ids, addresses, keys, plan.

    With --from the new revision begins with what the nodes of this mesh have observed: n1.data n2.data.
    """
    from rumormill.mesh.edit import adopt as complete
    from rumormill.mesh.edit import plan as work_out

    if not source and (more or game is not None):
        raise InputError("folders and --game go with --from: rumormill mesh adopt --from n1.data n2.data")
    lines: list[str] = []

    def learn(planned: Mesh) -> None:
        from rumormill.live.io.carry_over import carry_over

        lines.extend(carry_over(planned, [*(source or ()), *(more or ())], game))

    made = complete(mesh, address, learn if source else None)
    work_out(mesh)
    for line in lines:
        say(line)
    say(f"{mesh} has {len(made.ids)} nodes with keys, and a plan; keep keys/ca.key to yourself")
    say(f"start each: rumormill node --name {next(iter(made.ids), 'NAME')} --mesh {mesh}")


@mesh.command()
def plan(
    mesh: File = FILE, seed: Annotated[int, typer.Option(min=0, help="For a random network.")] = 0
) -> None:
    """Compute links, hop budgets, cliques and leaders into the file."""
    from rumormill.mesh.edit import plan as work_out

    made = work_out(mesh, seed)
    for name, part in made.file.plans.items():
        if part.gamma == 0 and not any(made.links.values()):
            say(f"game {name}: every node plays alone; there is nothing to plan")
            continue
        leaders, cliques = len(set((part.leader or {}).values())), len(part.cliques or [])
        words = [f"γ = {part.gamma}", *([f"{leaders} leaders"] * (leaders > 0))]
        say(f"game {name}: {', '.join([*words, *([f'{cliques} cliques'] * (cliques > 0))])}")
    note(f"revision {made.file.revision}: send SIGHUP to nodes that run")


@mesh.command()
def show(mesh: File = FILE, json: Json = False) -> None:
    """Show the nodes of a mesh and their neighbours."""
    from rumormill.mesh.edit import show as rows_of
    from rumormill.mesh.file import read_mesh

    read = read_mesh(mesh)
    rows = rows_of(read)
    if json:
        print_json({"name": read.file.name, "revision": read.file.revision, "nodes": rows})
        return
    say(f"mesh {read.file.name}, revision {read.file.revision}")
    for game in read.file.games:
        say(f"game {game.name}: {game.objective} over {', '.join(game.arms)}")
    print_table(rows)


@mesh.command()
def watch(
    url: Annotated[
        list[str] | None, typer.Argument(help="Addresses of nodes: http://HOST:PORT or unix:PATH; several.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two updates.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show the status once.")] = False,
    http: Annotated[
        str | None, typer.Option(help="Serve a page of all of them here: HOST:PORT, or unix:PATH.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the status of running nodes until Ctrl-C.

    Of a single node also its streams. Every node has a page at its address; --http serves one for several.
    A token is taken from RUMORMILL_TOKEN.
    """
    from rumormill.live.io import client as live

    urls, token = url or ["http://127.0.0.1:7480"], os.environ.get("RUMORMILL_TOKEN") or None
    for each in urls:
        if not each.startswith(("http://", "unix:")):
            raise InputError(f"{each} is not where a node answers: http://HOST:PORT or unix:PATH")
    if http is not None and (once or json):
        raise InputError("--http serves a page until Ctrl-C: leave out --once and --json")
    with contextlib.suppress(KeyboardInterrupt):
        if http is not None:
            from rumormill.live.io.nodes_page import serve_page

            serve_page(
                urls, http, token, lambda where: say(f"the page of {plural(len(urls), 'node')}: {where}")
            )
        while True:
            _show_nodes(urls, live.statuses(urls, token), json)
            if once:
                break
            time.sleep(every)


def _show_nodes(urls: list[str], found: list[Any], json: bool) -> None:
    from rumormill.live.io import client as live

    rows = [live.status_row(*each) for each in zip(urls, found, strict=True)]
    known = live.stream_rows(found[0]) if len(found) == 1 and isinstance(found[0], dict) else []
    if json:
        print_json({"nodes": rows, "known": known})
        return
    if sys.stdout.isatty():
        say("\x1b[H\x1b[2J" + time.strftime("%H:%M:%S"))
    print_table(rows, styles={"ready": "green", "does not answer": "red"})
    if known:
        say()
        print_table(known)


@mesh.command()
def verdict(
    url: Annotated[str, typer.Argument(help="Address of a node: http://HOST:PORT or unix:PATH.")] = (
        "http://127.0.0.1:7480"
    ),
    game: Annotated[str | None, typer.Option(help="Which game, if there are several.")] = None,
    stop_when: Annotated[
        str | None, typer.Option(help="proven: wait until an arm is proven best.", show_default=False)
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    json: Json = False,
) -> None:
    """Say which arm is proven best; exit code 3 if none is yet.

    At 95 % whenever it is asked: confidence sequences under the moments of the mesh file.
    """
    from rumormill.live.io import client as live

    if stop_when not in (None, "proven"):
        raise InputError(f"--stop-when {stop_when} is not allowed: proven")
    while True:
        found = live.verdict(url, game, os.environ.get("RUMORMILL_TOKEN") or None)
        if found["best"] is not None or stop_when is None:
            break
        time.sleep(every)
    if json:
        print_json(found)
    else:
        say(live.verdict_text(found))
        print_table(found["arms"])
    if found["best"] is None:
        raise typer.Exit(3)


@mesh.command()
def export(
    data: Annotated[list[Path], typer.Argument(help="The folders of nodes.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The table to write: .csv, .tsv or .parquet.")] = Path("log.csv"),
    game: Annotated[str | None, typer.Option(help="Which game, if there are several.")] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="A column per arm, as `rumormill advise` reads it.")
    ] = False,
    mesh: File = FILE,
) -> None:
    """Write the observations of nodes as a log.

    Time, agent, arm, reward (or cost, if it is minimised), and the propensity where nodes recorded it, which
    `rumormill evaluate` reads.
    """
    from rumormill.live.io.folder import export as write

    count = write(mesh, data, out, game=game, wide=wide)
    say(f"{count:,} observations in {out}")


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
