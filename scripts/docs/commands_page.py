"""The reference of the command line, from the functions behind the commands."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from scripts.docs.settings import table
from typer.models import ArgumentInfo, OptionInfo

from rumormill.cli.app import COMMANDS

HEAD = """# Commands

What `rumormill COMMAND --help` says. Exit codes: 0 well, 1 failed, 2 wrong input, 130 stopped by
Ctrl-C, 143 stopped by SIGTERM. `--debug`, anywhere, shows a traceback when something fails. This page is made
from the code.
"""
WORDS = {int: "whole number", float: "number", str: "text", Path: "path"}


def page() -> str:
    """Every command with its arguments and options."""
    parts = [HEAD]
    for name, place in COMMANDS.items():
        file, _, function = place.partition(":")
        command = getattr(import_module(f"rumormill.cli.commands.{file}"), function)
        if isinstance(command, typer.Typer):
            parts += [f"## rumormill {name}", inspect.cleandoc(str(command.info.help or ""))]
            for inner in command.registered_commands:
                assert inner.callback is not None
                word = inner.name or inner.callback.__name__.replace("_", "-")
                parts += _command(f"rumormill {name} {word}", inner.callback, 3)
        else:
            parts += _command(f"rumormill {name}", command, 2)
    return "\n\n".join(part for part in parts if part) + "\n"


def _command(name: str, function: Callable[..., Any], level: int) -> list[str]:
    hints = typing.get_type_hints(function, include_extras=True)
    usage, rows = [name], []
    for parameter in inspect.signature(function).parameters.values():
        hint, info = _split(hints[parameter.name])
        if info is None or info.hidden:
            continue
        required = parameter.default is parameter.empty
        if isinstance(info, ArgumentInfo):
            word = str(info.metavar or parameter.name).upper() + ("…" if _is_list(hint) else "")
            usage.append(word if required else f"[{word}]")
            shown = f"`{word}`"
        else:
            shown = ", ".join(f"`{each}`" for each in _option_names(info, parameter.name, hint))
        default = "required" if required else _default(parameter.default)
        rows.append([shown, _takes(hint, info), default, info.help or ""])
    if any(row[0].startswith("`-") for row in rows):
        usage.insert(1, "[OPTIONS]")
    about = inspect.cleandoc(function.__doc__ or "")
    heading = "#" * level + f" {name}"
    code = f"```text\n{' '.join(usage)}\n```"
    return [heading, about, code, table(["", "takes", "default", "what it does"], rows) if rows else ""]


def _split(hint: Any) -> tuple[Any, ArgumentInfo | OptionInfo | None]:
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, None
    inside, *notes = typing.get_args(hint)
    return inside, next((note for note in notes if isinstance(note, ArgumentInfo | OptionInfo)), None)


def _option_names(info: OptionInfo, name: str, hint: Any) -> list[str]:
    first = [info.default] if isinstance(info.default, str) and info.default.startswith("-") else []
    if first or info.param_decls:
        return [*first, *(info.param_decls or ())]
    word = name.replace("_", "-")
    return [f"--{word}", f"--no-{word}"] if hint is bool else [f"--{word}"]


def _bare(hint: Any) -> Any:
    inside = [each for each in typing.get_args(hint) if each is not type(None)]
    return _bare(inside[0]) if inside else hint


def _is_list(hint: Any) -> bool:
    return any(typing.get_origin(each) is list for each in (hint, *typing.get_args(hint)))


def _takes(hint: Any, info: Any) -> str:
    bare = _bare(hint)
    if bare is bool:
        return ""
    if isinstance(bare, type) and issubclass(bare, Enum):
        text = ", ".join(f"`{each.value}`" for each in bare)
    else:
        text = WORDS.get(bare, getattr(bare, "__name__", str(bare)))
    text += f" ≥ {info.min}" if info.min is not None else ""
    return text + (", repeatable" if _is_list(hint) and isinstance(info, OptionInfo) else "")


def _default(value: Any) -> str:
    if value is None or value is False or value in ((), [], ""):
        return ""
    return "yes" if value is True else f"`{value.value if isinstance(value, Enum) else value}`"
