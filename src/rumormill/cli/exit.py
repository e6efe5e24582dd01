"""How a command ends: errors and signals become one line and an exit code.

typer is imported when it is needed: where it is not installed, `missing_library` says so.
"""

from __future__ import annotations

import errno
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from rumormill.errors import DataError, InputError, RumormillError
from rumormill.text import one_line

EXTRAS = {"cryptography": "node", "httptools": "node", "ray": "cluster"}


# Parts of Python itself on Linux and macOS.
POSIX = ("fcntl", "grp", "pwd", "resource", "termios")


def missing_library(error: ModuleNotFoundError) -> str:
    """Which extra brings the library that is not there; no extra brings a module of POSIX."""
    if error.name in POSIX:
        return f"this needs Linux or macOS: Python has no {error.name} here; everything but live nodes works"
    extra = EXTRAS.get((error.name or "").partition(".")[0], "lab")
    return f"{error.name} is not installed, and this needs it: pip install 'rumormill[{extra}]'"


OK, FAILED, WRONG_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class Stop:
    """The exit code of a command that is stopped: by Ctrl-C, unless SIGTERM came."""

    code: int = INTERRUPTED


@contextmanager
def stoppable() -> Iterator[Stop]:
    """SIGTERM, which `kill` and batch systems send, stops a command as Ctrl-C does."""
    stop = Stop()

    def terminate(number: int, frame: FrameType | None) -> None:
        stop.code = TERMINATED
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread receives signals
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield stop
    finally:
        if signal.getsignal(signal.SIGTERM) is terminate:  # a node handles it to the end
            signal.signal(signal.SIGTERM, before)


def explained(error: BaseException, arguments: Sequence[str], stop: Stop) -> int:
    """Print one line on standard error; return the exit code."""
    import typer

    # Newer versions of typer carry their own click: what they raise is found from what they export.
    usage_error: Any = typer.BadParameter.__bases__[0]
    again = shlex.join(["rumormill", *arguments])
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        return _say(f"stopped: no file is half written; begin again with: {again}", stop.code)
    if isinstance(error, usage_error):
        command = error.ctx.command_path if error.ctx else "rumormill"
        return _say(f"error: {error.format_message()} (see `{command} --help`)", WRONG_INPUT)
    if isinstance(error, RumormillError):
        return _rumormill_error(error, again, stop)
    if isinstance(error, OSError):
        return _say(f"error: {_os_error(error, again)}", FAILED)
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("rumormill"):
        return _say(f"error: {missing_library(error)}", FAILED)
    return _say(f"error: {type(error).__name__}: {error} (a defect; --debug shows where)", FAILED)


def _rumormill_error(error: RumormillError, again: str, stop: Stop) -> int:
    # Only a process that has imported the runner can raise it; a node without the lab has not.
    runner: Any = sys.modules.get("rumormill.experiments.run.runner")
    if runner is not None and isinstance(error, runner.RunInterrupted):
        kept = f"{error.done:,} of {error.total:,} {error.unit} are done and kept in {error.path}"
        return _say(f"stopped: {kept}; go on with: {again}", stop.code)
    return _say(f"error: {error}", WRONG_INPUT if isinstance(error, InputError | DataError) else FAILED)


def _os_error(error: OSError, again: str) -> str:
    """What the system said, about which file, and what to do if there is no room."""
    said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if error.errno not in NO_ROOM:
        return said
    return f"{said}; make room, then go on with: {again} (what is done is kept)"


def _say(text: str, code: int) -> int:
    print(one_line(text), file=sys.stderr)
    return code
