"""The command line: parse, call, print. Everything heavy is imported by the command that needs it."""

from rumormill.cli.app import main

__all__ = ["main"]
