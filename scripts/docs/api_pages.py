"""The reference of the Python interface, from signatures and docstrings (which are Markdown)."""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from functools import cached_property
from types import ModuleType
from typing import Any

from scripts.docs.settings import described, parameters, sections, table

import rumormill
from rumormill import catalogue

GROUPS = {
    "simulate": ("Simulations", "engine"),
    "runs": ("Experiments and advice", "api experiments.run.store"),
    "live": ("Live nodes", "live.io.client"),
    "policies": ("Policies and agents", "policies"),
    "estimators": ("Robust means", "estimators"),
    "arms": ("Rewards", "arms"),
    "networks": ("Networks", "graphs"),
    "protocol": ("Messages and channels", "protocol"),
    "errors": ("Errors", "errors"),
}
MODULES = ("catalogue", "checks", "recipes", "theory")
OUTSIDE = {
    "experiments": (
        "Parts of experiments",
        "experiments.spec.reading:parse_spec experiments.spec.reading:at_scale "
        "experiments.run.store:RunFolder experiments.run.executors:Ray engine.workers:Executor",
    ),
}
ABOUT_THE_FIRST = ("rumormill.policies", "rumormill.estimators")
INDEX = """# The Python interface

Everything that `import rumormill as rm` offers, and the functions behind the command line.

```{toctree}
:maxdepth: 1

%s
```
"""


def pages() -> dict[str, str]:
    """File name → page."""
    found: dict[str, str] = {}
    rooms = rumormill._ROOM_OF
    for file, (title, room) in GROUPS.items():
        names = [name for name, at in rooms.items() if at in room.split()]
        found[file] = _page(title, [(f"rm.{name}", getattr(rumormill, name)) for name in names])
    for name in MODULES:
        module: ModuleType = getattr(rumormill, name)
        inside = [
            (f"rm.{name}.{each}", value)
            for each, value in _public(module)
            if getattr(value, "__module__", "").startswith(f"rumormill.{name}")
        ]
        found[name] = _page(f"rm.{name}", inside, inspect.getdoc(module) or "")
    for file, (title, places) in OUTSIDE.items():
        things = []
        for place in places.split():
            path, _, name = place.partition(":")
            module = __import__(f"rumormill.{path}", fromlist=[name])
            things.append((f"rumormill.{path}.{name}", getattr(module, name)))
        found[file] = _page(title, things)
    found["index"] = INDEX % "\n".join(found)
    return found


def _public(module: ModuleType) -> list[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    things = [(name, getattr(module, name)) for name in names]
    return [(name, thing) for name, thing in things if inspect.isclass(thing) or inspect.isfunction(thing)]


def _page(title: str, things: list[tuple[str, Any]], about: str = "") -> str:
    parts = [f"# {title}", markdown(about)]
    for name, thing in things:
        parts += _thing(name, thing)
    return "\n\n".join(part for part in parts if part) + "\n"


def _thing(name: str, thing: Any) -> list[str]:
    parts = [f"## {name}"]
    if not inspect.isclass(thing):
        return [*parts, _signature(name, thing), markdown(inspect.getdoc(thing) or "")]
    if issubclass(thing, BaseException) or inspect.isabstract(thing) or getattr(thing, "_is_protocol", False):
        pass
    else:
        parts.append(_signature(name, thing))
    parts.append(markdown(_own_doc(thing)))
    parts.append(markdown(_about(thing)))
    said = described(thing)
    rows = [
        [
            f"`{one.name}`",
            _type(one.type),
            "required" if one.required else f"`{one.default!r}`",
            said[one.name],
        ]
        for one in (catalogue.settings(thing) if hasattr(thing, "__dataclass_fields__") else [])
        if one.name in said
    ]
    if rows and not parameters(_own_doc(thing)):
        parts.append(table(["parameter", "type", "default", "meaning"], rows))
    for member, value in _members(thing):
        doc = inspect.getdoc(value)
        if not doc:
            continue
        parts.append(f"### {name.rpartition('.')[2]}.{member}")
        if not isinstance(value, property) and callable(getattr(thing, member)):
            parts.append(_signature(member, getattr(thing, member)))
        parts.append(markdown(doc))
    return parts


def _members(cls: type) -> list[tuple[str, Any]]:
    """What the class itself offers in public; what it only fills in is described with the class above it."""
    bases = [each for each in cls.__mro__[1:] if each.__name__ in rumormill.__all__]
    above = {name for each in bases for name in dir(each)}
    return [
        (name, value) for name, value in vars(cls).items() if _is_member(name, value) and name not in above
    ]


def _is_member(name: str, value: Any) -> bool:
    kinds = (property, classmethod, staticmethod, cached_property)
    return not name.startswith("_") and (isinstance(value, kinds) or inspect.isfunction(value))


def _own_doc(cls: type) -> str:
    doc = inspect.cleandoc(cls.__doc__ or "")
    return "" if doc.startswith(f"{cls.__name__}(") else doc


def _about(cls: type) -> str:
    """What the file says of its (first) policy or mean: the formula, the theorem, what differs."""
    if not cls.__module__.startswith(ABOUT_THE_FIRST) or cls.__module__.endswith(("base", "seat")):
        return ""
    module = sys.modules[cls.__module__]
    public = [each for name, each in vars(module).items() if name in rumormill.__all__]
    first = next(each for each in public if each.__module__ == cls.__module__)
    return inspect.cleandoc(module.__doc__ or "") if cls is first else ""


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing.__init__ if inspect.isclass(thing) else thing)
    except (TypeError, ValueError):
        return ""
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    answer = signature.empty if inspect.isclass(thing) else signature.return_annotation
    short = signature.replace(parameters=parameters, return_annotation=answer)
    text = f"{name}{short}".replace("'", "")
    if len(text) > 90:
        inside = ",\n".join(f"    {each}" for each in _with_star(parameters))
        arrow = "" if answer in (signature.empty, None) else f" -> {answer}"
        text = f"{name}(\n{inside},\n){arrow}".replace("'", "")
    return f"```python\n{text}\n```"


def _with_star(parameters: list[inspect.Parameter]) -> list[str]:
    words: list[str] = []
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(str(each))
    return words


def _type(kind: Any) -> str:
    return f"`{_written(kind)}`"


def _written(kind: Any) -> str:
    """A type as it would be written today."""
    inside = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " | ".join(_written(each) for each in inside)
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(repr(value) for value in inside)
    if kind is type(None):
        return "None"
    return (
        kind.__name__ if inspect.isclass(kind) and not inside else re.sub(r"(?:[a-z_]+[.])+", "", str(kind))
    )


def markdown(doc: str) -> str:
    """A docstring as Markdown: parameters become a list, other headings bold, examples blocks of code."""
    parts = sections(doc)
    text = parts.pop("")
    if "Parameters" in parts:
        said = parameters(doc)
        parts["Parameters"] = "\n".join(f"- `{name}`: {said[name]}" for name in said)
    return "\n\n".join([_with_code(text), *(f"**{head}**\n\n{_with_code(parts[head])}" for head in parts)])


def _with_code(text: str) -> str:
    lines, inside = [], False
    for line in text.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines)
