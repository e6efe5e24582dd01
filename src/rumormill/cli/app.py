"""The `rumormill` command: its table of commands, its global options, and how it ends."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from rumormill.cli.exit import INTERRUPTED, OK, explained, stoppable
from rumormill.text import VERSION

# The file of a command in `commands/`, and the function in it.
COMMANDS: dict[str, str] = {
    "run": "run:run",
    "reproduce": "run:reproduce",
    "report": "run:report",
    "figure": "run:figure",
    "show": "run:show",
    "compare": "run:compare",
    "arena": "arena:arena",
    "simulate": "simulate:simulate",
    "watch": "watch:watch",
    "network": "network:network",
    "list": "list_names:list_names",
    "data": "network:data",
    "advise": "advise:advise",
    "evaluate": "advise:evaluate",
    "coverage": "coverage:coverage",
    "mesh": "mesh:mesh",
    "node": "mesh:node",
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rumormill {VERSION}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    """Options of every command; `--debug` is here for the help text and read in `main`."""


def app_for(words: Sequence[str]) -> typer.Typer:
    """The command line with the one command that is asked for; with all of them to tell what there is."""
    app = typer.Typer(
        name="rumormill",
        help="Cooperative bandits with heavy tails: agents on a network that pass rumours a few hops.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        file, _, function = COMMANDS[name].partition(":")
        command = getattr(import_module(f"rumormill.cli.commands.{file}"), function)
        if isinstance(command, typer.Typer):  # a command with commands of its own
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    0 well, 1 failed, 2 wrong input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM;
    `rumormill node` also 70: one of its tasks failed.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # Anywhere on the line: users add it at the end of a command that failed.
    plain = [word for word in arguments if word != "--debug"]
    if plain[:1] == ["help"]:  # as of git and others: `help run` is `run --help`
        plain = [*plain[1:], "--help"]
    _replace_unencodable()
    with stoppable() as stop:
        try:
            app = app_for(plain)
            words = [*plain, "--help"] if plain in ([], ["mesh"]) else plain  # alone: what there is
            code = app(args=words, prog_name="rumormill", standalone_mode=False)
            if code == INTERRUPTED:  # typer's answer to Ctrl-C; older versions raise Abort
                raise typer.Abort
        except (Exception, KeyboardInterrupt) as error:
            if plain != arguments:
                traceback.print_exc()
            code = explained(error, arguments, stop)
    sys.exit(code or OK)


def _replace_unencodable() -> None:
    """Characters that the terminal cannot encode become question marks instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
