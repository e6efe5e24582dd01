"""What is said about the fields of a class: its section "Parameters", or the text under each field."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from typing import Any, Literal

import msgspec

WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): "nothing"}


def described(cls: type) -> dict[str, str]:
    """The description of every field, of the class itself before those of its bases."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if not each.__module__.startswith("rumormill"):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = " ".join(str(text.value.value).split())
        found |= parameters(ast.get_docstring(tree) or "")
    return found


def parameters(doc: str) -> dict[str, str]:
    """The section "Parameters" of a docstring: the text under each name."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in sections(doc).get("Parameters", "").splitlines():
        if line and not line.startswith(" "):
            name = line.partition(" : ")[0]
        elif name and line.strip():
            found.setdefault(name, []).append(line.strip())
    return {name: " ".join(lines) for name, lines in found.items()}


def sections(doc: str) -> dict[str, str]:
    """The sections of a docstring by heading, underlined by hyphens; "" is the part before the first."""
    found: dict[str, list[str]] = {"": []}
    heading, lines = "", doc.splitlines()
    for line, after in zip(lines, [*lines, ""][1:], strict=True):
        if line and after == "-" * len(line):
            heading = line
            found[heading] = []
        elif not (line and line == "-" * len(heading)):
            found[heading].append(line)
    return {heading: "\n".join(lines).strip() for heading, lines in found.items()}


def in_words(kind: Any) -> str:
    """A type as a user of a spec would say it."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        limits = [limit for limit in inside[1:] if isinstance(limit, msgspec.Meta)]
        return in_words(inside[0]) + "".join(_limits(limit) for limit in limits)
    if origin is Literal:
        return " or ".join(f'`"{value}"`' for value in inside)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(in_words(each) for each in inside if each is not type(None))
    if origin is dict:
        return "table"
    if origin is not None and inside:
        return f"list of {in_words(inside[0])}s"
    if kind in WORDS:
        return WORDS[kind]
    name = getattr(kind, "__name__", str(kind))
    return {"Estimator": "name of an estimator, or table", "Moments": "table of eps, u, rho"}.get(name, name)


def _limits(limit: msgspec.Meta) -> str:
    parts = [
        ("≥ {}", limit.ge),
        ("> {}", limit.gt),
        ("≤ {}", limit.le),
    ]
    return "".join(f" {text.format(value)}" for text, value in parts if value is not None)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; what is no word is kept from being one."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
