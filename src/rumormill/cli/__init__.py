"""The command line: parse, call, print. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; where only the core is installed, say what to install."""
    try:
        from rumormill.cli.app import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rumormill"):
            raise
        from rumormill.cli.exit import missing_library

        print(f"error: {missing_library(error)}", file=sys.stderr)
        sys.exit(1)
    run(arguments)


__all__ = ["main"]
