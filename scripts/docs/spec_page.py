"""The reference of experiment files, from the schema and the catalogue."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import msgspec
from scripts.docs.settings import described, in_words, table

from rumormill import catalogue
from rumormill.experiments.spec import schema
from rumormill.experiments.spec.nesting import PARTS

HEAD = """# Experiment files

An experiment is a TOML file. It is read strictly: an unknown key, a wrong type or a combination that no run
can play is refused in one line that says what is allowed. `rumormill run FILE` plays it; see
[your own policy](../tutorials/own-policy.md) for a first one. This page is made from the code.

```toml
name = "mine"
seed = 1
horizon = 500
trials = 20
network = { kind = "erdos_renyi", n = 50, p = 0.3 }
arms = { law = "pareto", tail = 1.8, K = 5 }

[[policies]]
type = "kmp"
zeta = 1

[[policies]]
type = "robust"

[sweep]
gamma = [0, 1, 2]

[[claims]]
kind = "beats"
policy = "KMP"
than = "Robust"
```

Wherever a name of the catalogue stands, `module:Class` names a class of your own in a file beside the spec.
"""


def page() -> str:
    """All of it."""
    parts = [HEAD, "## At the top", _fields(schema.Spec, leave_out=("folder",))]
    parts += ["### scale", inspect.getdoc(schema.Scale) or "", _fields(schema.Scale)]
    parts += ["### sweep", SWEEP]
    for name in PARTS:
        parts += _part(name)
    for word, form in (("churn", schema.ChurnPart), ("corruption", schema.CorruptionPart)):
        parts += [f"## {word}", inspect.getdoc(form) or "", _fields(form)]
    parts += ["## byzantine", inspect.getdoc(schema.ByzantinePart) or "", _fields(schema.ByzantinePart)]
    for word, cls, hidden in (("verdicts", schema.VerdictPart, ()), ("tune", schema.TunePart, ("added",))):
        parts += [f"## {word}", inspect.getdoc(cls) or "", _fields(cls, leave_out=hidden)]
    parts += ["## claims", CLAIMS]
    for claim in typing.get_args(schema.Claim):
        tag = msgspec.inspect.type_info(claim)
        assert isinstance(tag, msgspec.inspect.StructType)
        parts += [f'### kind = "{tag.tag}"', inspect.getdoc(claim) or "", _fields(claim)]
    return "\n\n".join(parts) + "\n"


# Required of a spec, but filled in where a file says nothing.
GIVEN = ("fresh", "scale")
SWEEP = """A key names a setting of the policies or of the arms (`gamma`, `zeta`, `alpha`), of another part
with its part (`network.p`), or the number of agents (`M`), and takes a list of values. A policy that does not
have the setting is played once and stands at every point. All points of a trial see the same chance."""
CLAIMS = """A claim is a sentence about the outcome. It is tested on the paired trials and comes out as
*holds*, *does not hold* or *not decided at this size*, with an interval."""


def _part(name: str) -> list[str]:
    form = PARTS[name]
    kind = catalogue.KINDS[form.kind]
    cls = {
        "network": schema.NetworkPart,
        "arms": schema.ArmsPart,
        "channel": schema.ChannelPart,
        "policies": schema.PolicyPart,
    }[name]
    parts = [f"## {name}", inspect.getdoc(cls) or "", _fields(cls, leave_out=("settings",))]
    if name == "arms":
        forms = {
            "clusters": schema.ClusterArms,
            "changes": schema.ChangedArms,
            "season": schema.SeasonOfArms,
            "trend": schema.TrendOfArms,
            "scenarios.NAME": schema.ScenarioOfArms,
        }
        for word, each in forms.items():
            parts += [f"### arms.{word}", inspect.getdoc(each) or "", _fields(each)]
    for own, known in kind.classes.items():
        parts += _class(form.kind, f'{kind.tag} = "{own}"', known, form.leave_out)
    if name == "policies":
        parts += [
            "## estimators",
            "What `estimator = ` of a policy takes: a name, or a table with its settings.",
        ]
        for own, known in catalogue.ESTIMATORS.items():
            parts += _class("estimator", f'estimator = "{own}"', known, ())
    return parts


def _class(kind: str, title: str, cls: type, leave_out: typing.Iterable[str]) -> list[str]:
    said, rows = described(cls), []
    for one in catalogue.settings_of(kind, cls):
        if one.name in set(leave_out):
            continue
        default = "required" if one.required else _shown(one.default)
        rows.append([f"`{one.name}`", in_words(one.type), default, said.get(one.name, "")])
    about = (inspect.getdoc(cls) or "").split("\n\n")[0]
    return [f"### {title}", about, table(["setting", "type", "default", "meaning"], rows) if rows else ""]


def _fields(cls: type, leave_out: tuple[str, ...] = ()) -> str:
    said, hints, rows = described(cls), typing.get_type_hints(cls, include_extras=True), []
    for field in msgspec.structs.fields(cls):
        if field.name in leave_out:
            continue
        default = "required" if field.required and field.name not in GIVEN else _shown(field.default)
        rows.append(
            [f"`{field.name}`", _plain(in_words(hints[field.name])), default, said.get(field.name, "")]
        )
    return table(["key", "type", "default", "meaning"], rows)


def _plain(text: str) -> str:
    """Parts of the schema are tables to a user."""
    names = [name for name, value in vars(schema).items() if isinstance(value, type)]
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "table")
    while "table or table" in text:
        text = text.replace("table or table", "table")
    return text


def _shown(value: Any) -> str:
    if value is None or value is msgspec.NODEFAULT or value in ({}, []):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`' if value else ""
    if isinstance(value, int | float):
        return f"`{value}`"
    for kind in ("estimator", "channel"):
        if type(value) in catalogue.KINDS[kind].classes.values():
            return f'`"{catalogue.name_of(kind, type(value))}"`'
    return '`"perfect"`' if isinstance(value, schema.ChannelPart) else ""
