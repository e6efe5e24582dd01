"""The `rumormill` command: its global options, and how errors become one line and an exit code."""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rumormill import __version__
from rumormill.cli.advising import add_advising
from rumormill.cli.covering import add_covering
from rumormill.cli.looking import add_looking
from rumormill.cli.running import add_running
from rumormill.errors import DataError, InputError, RumormillError

OK, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
# Newer versions of typer carry their own click: what they raise is found from what they export.
UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="rumormill",
    help="Cooperative bandits with heavy tails: agents on a network that pass rumours a few hops.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_running(app)
add_looking(app)
add_advising(app)
add_covering(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rumormill {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    """Options of every command; `--debug` is here for the help text and read in `main`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code: 0 well, 1 failed, 2 wrong input, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # Wherever it stands: one looks back at a command that failed and adds it at the end.
    plain = [word for word in arguments if word != "--debug"]
    try:
        code = app(args=plain, prog_name="rumormill", standalone_mode=False)
        if code == INTERRUPTED:  # typer's answer to Ctrl-C; older versions raise Abort
            raise typer.Abort
    except Exception as error:
        if plain != arguments:
            traceback.print_exc()
        code = _explained(error, arguments)
    sys.exit(code or OK)


def _explained(error: Exception, arguments: Sequence[str]) -> int:
    """One line on standard error, and the exit code that fits."""
    from rumormill.experiments.run.runner import RunInterrupted

    again = shlex.join(["rumormill", *arguments])
    if isinstance(error, typer.Abort):
        return _say(f"stopped: what is done is kept; go on with: {again}", INTERRUPTED)
    if isinstance(error, UsageError):
        command = error.ctx.command_path if error.ctx else "rumormill"
        return _say(f"error: {_one_line(error.format_message())} (see `{command} --help`)", WRONG_INPUT)
    if isinstance(error, RunInterrupted):
        return _say(
            f"stopped: {error.done:,} of {error.total:,} cells are done and kept in {error.path}; "
            f"go on with: {again}",
            INTERRUPTED,
        )
    if isinstance(error, RumormillError):
        return _say(f"error: {_one_line(str(error))}", _code(error))
    if isinstance(error, OSError):
        return _say(f"error: {_one_line(str(error))}", FAILED)
    kind = type(error).__name__
    return _say(f"error: {kind}: {_one_line(str(error))} (a defect; --debug shows where)", FAILED)


def _code(error: RumormillError) -> int:
    return WRONG_INPUT if isinstance(error, InputError | DataError) else FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code
