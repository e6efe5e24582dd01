"""Experiment files: strict reading, scales, and the points of a sweep."""

from __future__ import annotations

import itertools
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from rumormill.errors import InputError
from rumormill.experiments.spec import schema
from rumormill.experiments.spec.messages import explain, keys_of, nearest
from rumormill.experiments.spec.schema import Spec

# Parameters that an axis may name without saying where they stand.
SHORT_AXES = {
    **dict.fromkeys(("gamma", "c", "zeta", "estimator", "confidence", "clique_filter"), "policies"),
    **dict.fromkeys(("leaders", "kappa"), "policies"),
    **dict.fromkeys(("alpha", "beta", "K", "eps", "df", "tail", "sigma"), "arms"),
    "M": "network",
}
LABELS = {
    "decentralized": "Decentralized",
    "centralized": "Centralized",
    "kmp": "KMP",
    "consensus": "Consensus",
    "robust": "Robust",
}


@dataclass(frozen=True)
class Point:
    """One combination of sweep values, and the spec with these values in place."""

    index: int
    values: dict[str, Any]
    spec: Spec


def spec_names() -> list[str]:
    """The experiments that come with the package."""
    folder = resources.files("rumormill.experiments.spec") / "shipped"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def named_spec(name: str) -> Spec:
    """An experiment that comes with the package."""
    if name not in spec_names():
        raise InputError(f"there is no experiment {name!r}{nearest(name, spec_names())}")
    text = (resources.files("rumormill.experiments.spec") / "shipped" / f"{name}.toml").read_text("utf-8")
    return parse_spec(text, f"{name}.toml")


def read_spec(path: str | PathLike[str]) -> Spec:
    """An experiment from a TOML file."""
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; see `rumormill list specs`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return parse_spec(text, path.name)


def parse_spec(text: str, origin: str = "spec") -> Spec:
    """An experiment from TOML text; `origin` begins every message."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{origin}: not valid TOML: {error}") from None
    try:
        return decode(raw)
    except InputError as error:
        raise InputError(f"{origin}: {error}") from None


def decode(raw: dict[str, Any]) -> Spec:
    """An experiment from a table of plain values; every mistake is found before anything runs."""
    spec = _convert(_with_scale(raw))
    spec = _with_labels(spec)
    for scale in spec.scale:
        for point in points(at_scale(spec, scale)):
            _check(point)
    return spec


def encode(spec: Spec) -> dict[str, Any]:
    """The spec as plain values, with every default written out; `decode` takes it back."""
    plain: dict[str, Any] = _drop_none(msgspec.to_builtins(spec))
    return plain


def at_scale(
    spec: Spec, scale: str | None = None, *, trials: int | None = None, horizon: int | None = None
) -> Spec:
    """The spec at one of its scales, ready to run; `trials` and `horizon` replace those of the scale."""
    if scale is None:
        if len(spec.scale) > 1:
            raise InputError(f"{spec.name} has the scales {', '.join(spec.scale)}: choose one")
        (scale,) = spec.scale
    if scale not in spec.scale:
        raise InputError(f"{spec.name} has no scale {scale!r}{nearest(scale, list(spec.scale))}")
    size = spec.scale[scale]
    changed = {k: v for k, v in (("trials", trials), ("horizon", horizon)) if v is not None}
    network = spec.network
    if size.n is not None:
        network = msgspec.structs.replace(network, **{_size_key(network, f"scale.{scale}.n"): size.n})
    size = msgspec.structs.replace(size, n=None, **changed)
    name: Any = "custom" if changed else scale
    ready = msgspec.structs.replace(spec, network=network, scale={name: size})
    # Replaced values were not checked when the file was read.
    return _convert(encode(ready)) if changed or network is not spec.network else ready


def points(spec: Spec) -> list[Point]:
    """Every combination of sweep values, the last axis running fastest; one empty point without a sweep."""
    plain = encode(spec)
    plain["sweep"] = {}
    done = []
    places = {axis: _place(spec, axis) for axis in spec.sweep}
    for index, choice in enumerate(itertools.product(*(range(len(v)) for v in spec.sweep.values()))):
        values = {axis: spec.sweep[axis][i] for axis, i in zip(spec.sweep, choice, strict=True)}
        changed = msgspec.json.decode(msgspec.json.encode(plain))
        for axis, value in values.items():
            part, key = places[axis]
            for table in changed[part] if part == "policies" else [changed[part]]:
                if key in keys_of(part, table):
                    table[key] = value
        try:
            done.append(Point(index, values, _convert(changed)))
        except InputError as error:
            where = ", ".join(f"{axis}[{i}]" for axis, i in zip(spec.sweep, choice, strict=True))
            raise InputError(f"sweep.{where}: {error}") from None
    return done


# --- strict reading -------------------------------------------------------------------------------------


def _with_scale(raw: dict[str, Any]) -> dict[str, Any]:
    """A file may give horizon and trials at the top instead of scales."""
    single = {key: raw[key] for key in ("horizon", "trials", "checkpoints") if key in raw}
    if not single:
        return raw
    if "scale" in raw:
        raise InputError(
            f"{next(iter(single))}: give it at the top or in [scale.quick] / [scale.full], not both"
        )
    for key in ("horizon", "trials"):
        if key not in single:
            raise InputError(f"{key}: missing; a run needs horizon and trials")
    rest = {key: value for key, value in raw.items() if key not in single}
    # Convert here, so that a mistake is reported under the key that the file has.
    for key, value in single.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{key} = {value!r} is not allowed: a whole number >= 1")
    return {**rest, "scale": {"custom": single}}


def _convert(raw: dict[str, Any]) -> Spec:
    try:
        return msgspec.convert(raw, Spec, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(explain(raw, str(error))) from None


def _drop_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_none(item) for key, item in value.items() if item is not None}
    return [_drop_none(item) for item in value] if isinstance(value, list) else value


# --- what types cannot say ------------------------------------------------------------------------------


def _with_labels(spec: Spec) -> Spec:
    """Every policy gets a name of its own."""
    named = [
        policy
        if policy.label
        else msgspec.structs.replace(policy, label=LABELS[str(policy.__struct_config__.tag)])
        for policy in spec.policies
    ]
    for label, count in Counter(policy.label for policy in named).items():
        if count > 1:
            raise InputError(f"policies: {count} of them are called {label!r}; give each a label of its own")
    return msgspec.structs.replace(spec, policies=named)


def _size_key(network: schema.AnyNetwork, asked: str) -> str:
    for key in ("n", "subgraph"):
        if hasattr(network, key):
            return key
    raise InputError(f"{asked}: a network of this kind has no number of agents to set")


def _place(spec: Spec, axis: str) -> tuple[str, str]:
    """Which part of the spec an axis changes, and which key there."""
    if axis == "M":
        return "network", _size_key(spec.network, "sweep.M")
    part, _, key = axis.rpartition(".")
    part = part or SHORT_AXES.get(key, "")
    parts: dict[str, Sequence[schema.Form]] = {
        "network": [spec.network],
        "arms": [spec.arms],
        "policies": spec.policies,
    }
    keys = {name for form in parts.get(part, []) for name in form.__struct_fields__}
    if key not in keys - {"label"}:
        known = [short for short in SHORT_AXES if _exists(spec, short)]
        every = (f"{p}.{k}" for p in parts for f in parts[p] for k in f.__struct_fields__ if k != "label")
        dotted = list(dict.fromkeys(every))
        hint = nearest(axis, dotted if "." in axis else known)
        raise InputError(f"sweep.{axis}: unknown parameter{hint}")
    values = spec.sweep[axis]
    if len(set(map(repr, values))) < len(values):
        raise InputError(f"sweep.{axis} = {values!r} is not allowed: a value stands there twice")
    for value in values:
        if not isinstance(value, bool | int | float | str):
            raise InputError(f"sweep.{axis} = {values!r} is not allowed: numbers, words or true/false")
    return part, key


def _exists(spec: Spec, short: str) -> bool:
    part = SHORT_AXES[short]
    if short == "M":
        return hasattr(spec.network, "n") or hasattr(spec.network, "subgraph")
    forms = [spec.arms] if part == "arms" else spec.policies
    return any(hasattr(form, short) for form in forms)


def _check(point: Point) -> None:
    """Refuse combinations of values that no run can play."""
    from rumormill.experiments.spec.building import check_arms, check_network, check_policies

    try:
        check_network(point.spec)
        check_arms(point.spec)
        check_policies(point.spec)
    except InputError as error:
        where = ", ".join(f"{axis} = {value!r}" for axis, value in point.values.items())
        raise InputError(f"{error} (at {where})" if where else str(error)) from None
