"""Tables as files have them, settings flat beside the name, and the parts of a spec; both ways.

A part is complete when every setting that can be written down is: two specs that mean the same are then
equal, whatever was left to its default.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rumormill import catalogue
from rumormill.errors import InputError
from rumormill.experiments.spec.schema import ArmsPart, ChannelPart, NetworkPart, PolicyPart, Settings, Spec
from rumormill.text import nearest, shown

Part = NetworkPart | ArmsPart | PolicyPart | ChannelPart


@dataclass(frozen=True)
class PartOf:
    """How one part of the file is written."""

    kind: str
    """Its kind in the catalogue."""
    tag: str
    beside: tuple[str, ...]
    """Keys that are not settings of the class."""
    leave_out: tuple[str, ...] = ()
    """Settings that the spec itself gives to the class."""


PARTS = {
    "network": PartOf("network", "kind", ("fresh",)),
    # Where a law lies is said by the means.
    "arms": PartOf(
        "law",
        "law",
        (
            *("K", "means", "gap", "each", "eps", "objective"),
            *("clusters", "changes", "season", "trend", "scenarios"),
        ),
        ("loc", "shift"),
    ),
    "channel": PartOf("channel", "type", ()),
    "policies": PartOf("policy", "type", ("label",)),
}


# --- flat and nested ------------------------------------------------------------------------------------


def nested(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a file with the settings of every class in a table of their own."""
    plain = dict(raw)
    if isinstance(plain.get("networks"), Mapping):
        plain["networks"] = {
            name: _split("network", table, f"networks.{name}") for name, table in plain["networks"].items()
        }
    for name in PARTS:
        if isinstance(plain.get(name), list):
            plain[name] = [_split(name, table, f"{name}[{i}]") for i, table in enumerate(plain[name])]
        elif name in plain:
            plain[name] = _split(name, plain[name], name)
    return plain


def _split(name: str, table: Any, where: str) -> Any:
    form = PARTS[name]
    if isinstance(table, str) and name == "channel":
        table = {form.tag: table}
    if not isinstance(table, Mapping):
        return table  # refused with all other values of a wrong type
    tag = form.tag if form.tag in table or "type" not in table else "type"
    if tag not in table:
        known = ", ".join(catalogue.KINDS[form.kind].classes)
        raise InputError(f"{where}.{form.tag}: missing; one of {known}, module:Class")
    settings = {key: value for key, value in table.items() if key not in (tag, *form.beside)}
    beside = {key: table[key] for key in form.beside if key in table}
    if name == "network":  # what is not said depends on the class: see `complete`
        beside.setdefault("fresh", True)
    return {form.tag: table[tag], **beside, "settings": settings}


def flat(spec: Spec) -> dict[str, Any]:
    """The spec as the tables of a file; nothing is left out but what is not set."""
    plain: dict[str, Any] = _without_none(msgspec.to_builtins(spec))
    plain.pop("folder", None)
    if not plain["networks"]:  # as in versions that knew one network only: their runs stay the same runs
        del plain["networks"]
    for name in plain.get("networks", ()):
        plain["networks"][name] = _joined(plain["networks"][name])
    for name in PARTS:
        if isinstance(plain[name], list):
            plain[name] = [_joined(table) for table in plain[name]]
        else:
            plain[name] = _joined(plain[name])
    return plain


def _joined(table: dict[str, Any]) -> dict[str, Any]:
    settings = table.pop("settings")
    return {**table, **settings}


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


# --- complete parts -------------------------------------------------------------------------------------


def table_of(name: str, part: Part) -> dict[str, Any]:
    """The part as the catalogue takes it: the name of the class and its settings."""
    tag = PARTS[name].tag
    return {tag: getattr(part, tag), **part.settings}


def keys_of(name: str, part: Part, folder: str | None) -> list[str]:
    """The keys that a part takes beside its tag."""
    form = PARTS[name]
    cls = catalogue.find(form.kind, getattr(part, form.tag), folder=folder)
    settings = [one.name for one in catalogue.settings_of(form.kind, cls)]
    return [*form.beside, *(key for key in settings if key not in form.leave_out)]


def default_of(name: str, part: Part, key: str, folder: str | None) -> Any:
    """The default of a setting as a file would have it; None if it cannot be written."""
    form = PARTS[name]
    cls = catalogue.find(form.kind, getattr(part, form.tag), folder=folder)
    return next((_written(s.default) for s in catalogue.settings_of(form.kind, cls) if s.name == key), None)


def completed(name: str, part: Part, where: str, folder: str | None) -> Settings:
    """All settings of a part, checked by type, with the defaults written out."""
    form = PARTS[name]
    cls, values = catalogue.check(
        form.kind,
        table_of(name, part),
        where=where,
        folder=folder,
        leave_out=form.leave_out,
        beside=form.beside,
    )
    found = {}
    for one in catalogue.settings_of(form.kind, cls):
        if one.name in values:
            # Numbers as the class takes them (1 is 1.0); names and tables as they were given.
            value = values[one.name]
            found[one.name] = value if _is_plain(value) else part.settings[one.name]
        elif one.name not in form.leave_out and (default := _written(one.default)) is not None:
            found[one.name] = default
    return found


def complete(spec: Spec, said: Mapping[str, bool] | None = None, only: Container[str] = PARTS) -> Spec:
    """The spec with every setting and label written out, each of the type that its class wants.

    `said`: of which networks the file says whether every trial has its own. `only`: the parts to complete.
    """
    replace, folder = msgspec.structs.replace, spec.folder

    def network(name: str, part: NetworkPart) -> NetworkPart:
        where = f"networks.{name}" if name else "network"
        part = replace(part, settings=completed("network", part, where, folder))
        if said is None or said[name]:
            return part
        return replace(part, fresh=is_random(catalogue.find("network", part.kind, folder=folder)))

    done: dict[str, Any] = {}
    if "policies" in only:
        done["policies"] = [_complete_policy(spec, number) for number in range(len(spec.policies))]
    if "network" in only:
        done["network"] = network("", spec.network)
        done["networks"] = {name: network(name, part) for name, part in spec.networks.items()}
    if "arms" in only:
        done["arms"] = _complete_arms(spec)
    if "channel" in only:
        done["channel"] = replace(
            spec.channel, settings=completed("channel", spec.channel, "channel", folder)
        )
    return replace(spec, **done)


def _complete_arms(spec: Spec) -> ArmsPart:
    """The settings of the law; what only single arms have is taken from the first of them."""
    arms, each = spec.arms, spec.arms.each
    for number, settings in enumerate(each or ()):
        single = msgspec.structs.replace(arms, settings={**arms.settings, **settings})
        completed("arms", single, f"arms.each[{number}]", spec.folder)
    known = {**each[0], **arms.settings} if each else arms.settings
    arms = msgspec.structs.replace(arms, settings=known)
    return msgspec.structs.replace(arms, settings=completed("arms", arms, "arms", spec.folder))


def _complete_policy(spec: Spec, number: int) -> PolicyPart:
    part = spec.policies[number]
    settings = completed("policies", part, f"policies[{number}]", spec.folder)
    label = part.label or catalogue.label_of(catalogue.find("policy", part.type, folder=spec.folder))
    return msgspec.structs.replace(part, settings=settings, label=label)


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _written(default: Any) -> Any:
    """A default as a file would have it; None for what no file can say."""
    if _is_plain(default):
        return default
    if isinstance(default, list | tuple) and all(_is_plain(item) for item in default):
        return list(default)
    for kind, known in catalogue.KINDS.items():
        if type(default) in known.classes.values():
            return catalogue.name_of(kind, type(default))
    return None


def is_random(cls: Any) -> bool:
    """Whether a class of networks draws them; an own class that does not say is taken to."""
    return bool(getattr(cls, "random", True))


# What the table of a run has columns for already.
COLUMNS = ("experiment", "policy", "trial", "t", "regret", "messages", "wire_bytes", "constant")
# Parts that are no classes of the catalogue, and the keys that an axis may change there.
AROUND = {
    "churn": ("up", "down"),
    "corruption": ("rate", "shift", "scale", "at", "rows"),
    "byzantine": ("agents", "attack", "size"),
}
# Parts whose parameters an axis may name without saying where they stand.
SHORT = ("policies", "arms")
SIZES = ("n", "subgraph")
# The axis of a spec with several networks: their names.
NETWORKS = "network"
# The axis of a spec with several scenarios: their names.
SCENARIOS = "scenario"


def place(spec: Spec, axis: str) -> tuple[str, str]:
    """The part of the spec that an axis changes, and the key there."""
    values = spec.sweep[axis]
    if len(set(map(repr, values))) < len(values):
        raise InputError(f"sweep.{axis} = {shown(values)} is not allowed: a value stands there twice")
    for value in values:
        if not isinstance(value, bool | int | float | str):
            raise InputError(f"sweep.{axis} = {shown(values)} is not allowed: numbers, words or true/false")
    if axis in COLUMNS or axis.startswith("agent_"):
        raise InputError(
            f"sweep.{axis} is not allowed: the table has a column of that name; say policies.{axis}"
        )
    if axis == NETWORKS:
        return NETWORKS, ""
    if axis == SCENARIOS:
        known = spec.arms.scenarios or {}
        for value in values:
            if value not in known:
                hint = (
                    nearest(str(value), known) if known else ": give them by name, as [arms.scenarios.NAME]"
                )
                raise InputError(f"sweep.{axis}: there is no scenario {value!r}{hint}")
        return "arms", SCENARIOS
    if axis == "M":
        return "network", size_key(spec, "sweep.M")
    part, _, key = axis.rpartition(".")
    if part in AROUND and getattr(spec, part) is not None and key in AROUND[part]:
        return part, key
    if part in PARTS and key in _keys(spec, part):
        return part, key
    found = [] if part else [name for name in SHORT if key in _keys(spec, name)]
    if len(found) == 1:
        return found[0], key
    if found:
        raise InputError(f"sweep.{axis}: say which one: {' or '.join(f'{name}.{key}' for name in found)}")
    raise InputError(f"sweep.{axis}: unknown parameter{nearest(axis, axes(spec, dotted='.' in axis))}")


def axes(spec: Spec, *, dotted: bool = False) -> list[str]:
    """The names that an axis may have, short or with the part they stand in."""
    if dotted:
        around = [f"{part}.{key}" for part in AROUND if getattr(spec, part) for key in AROUND[part]]
        return [f"{part}.{key}" for part in PARTS for key in _keys(spec, part)] + around
    short = [key for part in SHORT for key in _keys(spec, part)]
    return list(dict.fromkeys([*short, *(["M"] if _size_keys(spec) else [])]))


def size_key(spec: Spec, asked: str, network: NetworkPart | None = None) -> str:
    """The setting of the network that is its number of agents."""
    found = keys_of("network", network or spec.network, spec.folder)
    keys = [key for key in SIZES if key in found]
    if not keys:
        raise InputError(f"{asked}: a network of this kind has no number of agents to set")
    return keys[0]


def _size_keys(spec: Spec) -> list[str]:
    return [key for key in SIZES if key in keys_of("network", spec.network, spec.folder)]


def keys_beside(spec: Spec, name: str, part: Part) -> list[str]:
    """The keys of one part that an axis may change: a label is a name, not a parameter."""
    return [key for key in keys_of(name, part, spec.folder) if key != "label"]


def _keys(spec: Spec, name: str) -> list[str]:
    parts: Sequence[Part] = spec.policies if name == "policies" else [getattr(spec, name)]
    return list(dict.fromkeys(key for part in parts for key in keys_beside(spec, name, part)))
