"""The axes of a sweep: which part of the spec each of them changes, and which key there."""

from __future__ import annotations

from collections.abc import Sequence

from rumormill.errors import InputError
from rumormill.experiments.spec.schema import NetworkPart, Spec
from rumormill.experiments.spec.tables import PARTS, Part, keys_of
from rumormill.text import nearest, shown

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
