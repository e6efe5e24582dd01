"""`rumormill list`: what a spec or `simulate` may name, read from the catalogue."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Annotated, Any

import typer

from rumormill.cli.arguments import Json
from rumormill.cli.printing import print_json, print_table


class Listed(StrEnum):
    """What `list` lists."""

    policies = "policies"
    laws = "laws"
    arms = "arms"
    networks = "networks"
    estimators = "estimators"
    channels = "channels"
    specs = "specs"


KINDS = {
    Listed.policies: "policy",
    Listed.laws: "law",
    Listed.arms: "law",
    Listed.networks: "network",
    Listed.estimators: "estimator",
    Listed.channels: "channel",
}


def list_names(
    kind: Annotated[Listed, typer.Argument(help="What to list.", show_default=False)], json: Json = False
) -> None:
    """List what a spec may name, with its settings.

    The words of `simulate`, `network`, `advise` and `coverage` are the same; own classes are named as
    module:Class.
    """
    rows = _specs() if kind is Listed.specs else _classes(KINDS[kind])
    if json:
        print_json(rows)
    else:
        print_table(rows)


def _specs() -> list[dict[str, Any]]:
    """From the files as they are: they are ours, and reading them strictly takes a second."""
    import tomllib

    from rumormill.experiments.spec import spec_names, spec_text

    return [
        {
            "name": name,
            "title": file.get("title", ""),
            "question": file.get("question", ""),
            "scales": ", ".join(file["scale"]),
        }
        for name, file in ((name, tomllib.loads(spec_text(name))) for name in spec_names())
    ]


def _classes(kind: str) -> list[dict[str, Any]]:
    from rumormill import catalogue

    return [
        {"name": name, "settings": _settings(kind, cls), "about": _first_sentence(cls)}
        for name, cls in catalogue.KINDS[kind].classes.items()
    ]


def _settings(kind: str, cls: type) -> str:
    """The settings of a class; those that must be given stand first and bare, those of a spec last."""
    from rumormill import catalogue

    known = [one for one in catalogue.settings_of(kind, cls) if one.name not in _left_out(kind)]
    needed = [one.name for one in known if one.required]
    free = [f"{one.name}={_written(one.default)}" for one in known if not one.required]
    return " ".join([*needed, *free, *_beside(kind, cls)])


def _left_out(kind: str) -> tuple[str, ...]:
    """What a spec itself gives to the class."""
    from rumormill.experiments.spec.nesting import PARTS

    return next((form.leave_out for form in PARTS.values() if form.kind == kind), ())


def _beside(kind: str, cls: type) -> list[str]:
    """What a spec puts beside the settings of the class."""
    if kind == "law":
        return ["K=5", "means=uniform", "eps=…"]
    return ["fresh=true"] if getattr(cls, "random", False) else []


def _written(default: Any) -> str:
    """A default as one would write it on the command line."""
    from rumormill import catalogue

    if default is None:
        return "…"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str | int | float):
        return str(default)
    for kind, known in catalogue.KINDS.items():
        if isinstance(default, known.base):
            return catalogue.name_of(kind, type(default))
    return str(default)


def _first_sentence(cls: type) -> str:
    return (inspect.getdoc(cls) or "").splitlines()[0]
