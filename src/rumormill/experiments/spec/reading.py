"""Experiment files: strict reading, scales, and the points of a sweep."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from rumormill import plugins as own_modules
from rumormill.errors import InputError
from rumormill.experiments.plan import ObjectCache, plan_of
from rumormill.experiments.spec import checking, spec_text
from rumormill.experiments.spec import spec_names as spec_names
from rumormill.experiments.spec.errors import SINGLE, convert, own_errors, own_names
from rumormill.experiments.spec.nesting import NETWORKS, SCENARIOS, complete, flat, nested, place, size_key
from rumormill.experiments.spec.schema import NetworkPart, Spec
from rumormill.experiments.spec.tuned_constants import check_tune
from rumormill.text import nearest, shown
from rumormill.validate import whole

LARGEST_WHOLE = 2**63


# --- where specs come from ------------------------------------------------------------------------------


@cache
def named_spec(name: str) -> Spec:
    """An experiment that comes with the package."""
    if name not in spec_names():
        raise InputError(f"there is no experiment {name!r}{nearest(name, spec_names())}")
    return parse_spec(spec_text(name), f"{name}.toml")


def read_spec(path: str | PathLike[str]) -> Spec:
    """An experiment from a TOML file; own classes are looked for beside it."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"path = {shown(path)} is not allowed: the path of a TOML file")
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")  # some editors begin a file with a byte-order mark
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; see `rumormill list specs`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return parse_spec(text, path.name, folder=str(path.resolve().parent))


def parse_spec(text: str, origin: str = "spec", *, folder: str | None = None) -> Spec:
    """An experiment from TOML text; `origin` begins every message, own classes may lie in `folder`."""
    try:
        raw = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{origin}: not valid TOML: {error}") from None
    try:
        return decode(raw, folder=folder)
    except InputError as error:
        raise InputError(f"{origin}: {error}") from None


def decode(raw: Mapping[str, Any], *, folder: str | None = None) -> Spec:
    """An experiment from a table of plain values; every mistake is found before anything runs."""
    _refuse_unwritable(raw)
    if "folder" in raw:
        raise InputError("folder: unknown key; own classes are looked for beside the file")
    tables = nested(_with_networks(_with_scale(raw)))
    spec = msgspec.structs.replace(convert(tables), folder=folder)
    spec = complete(spec, said=_said_fresh(raw))
    checking.check_labels(spec)
    for axis in spec.sweep:
        part, key = place(spec, axis)
        if part == "arms" and any(key in settings for settings in spec.arms.each or ()):
            raise InputError(f"sweep.{axis}: arms.each sets {key} itself: leave one of the two out")
        if part == "policies":
            checking.check_overridden(spec, axis, key, [table["settings"] for table in tables["policies"]])
    if spec.arms.scenarios is not None and SCENARIOS not in spec.sweep:
        raise InputError(f"sweep.{SCENARIOS}: missing; some of {', '.join(spec.arms.scenarios)}")
    checking.check_claims(spec)
    checking.check_verdicts(spec)
    if spec.tune is not None:
        check_tune(spec, spec.tune)
    if not own_names(spec):  # equal to what `restore` gives
        spec = msgspec.structs.replace(spec, folder=None)
    objects = ObjectCache()
    for scale in spec.scale:
        _check(at_scale(spec, scale), objects)
    return spec


def encode(spec: Spec) -> dict[str, Any]:
    """The spec as plain values, with every default written out; `decode` takes it back."""
    return flat(spec)


def restore(plain: Mapping[str, Any], *, folder: str | None = None) -> Spec:
    """A spec that was encoded before: nothing is checked again, and no own class is imported."""
    return msgspec.structs.replace(convert(nested(plain)), folder=folder)


def own_sources(spec: Spec) -> dict[str, str]:
    """The user's own modules that a spec needs, with the checksums of their files."""
    names = own_names(spec)
    if names:
        for point in plan_of(spec).points:
            complete(point.spec)  # imports them
    return own_modules.sources(names, spec.folder)


# --- scales and points ----------------------------------------------------------------------------------


def at_scale(
    spec: Spec,
    scale: str | None = None,
    *,
    trials: int | None = None,
    horizon: int | None = None,
    seed: int | None = None,
) -> Spec:
    """The spec at one of its scales, ready to run; `trials`, `horizon` and `seed` replace those it has."""
    if scale is None:
        if len(spec.scale) > 1:
            raise InputError(f"{spec.name} has the scales {', '.join(spec.scale)}: choose one")
        (scale,) = spec.scale
    if scale not in spec.scale:
        raise InputError(f"{spec.name} has no scale {scale!r}{nearest(str(scale), list(spec.scale))}")
    size = spec.scale[scale]
    asked = {"trials": trials, "horizon": horizon}
    changed = {key: whole(key, value) for key, value in asked.items() if value is not None}
    sized = spec if size.n is None else _with_agents(spec, size.n, f"scale.{scale}.n")
    size = msgspec.structs.replace(size, n=None, **changed)
    number = spec.seed if seed is None else whole("seed", seed, 0)
    ready = msgspec.structs.replace(sized, scale={"custom" if changed else scale: size}, seed=number)
    if changed:  # these values were not there when the file was checked
        _check(ready)
    return ready


def _with_agents(spec: Spec, n: int, asked: str) -> Spec:
    """The spec with networks of this size."""
    replace = msgspec.structs.replace

    def sized(part: NetworkPart) -> NetworkPart:
        return replace(part, settings={**part.settings, size_key(spec, asked, part): n})

    networks = {name: sized(part) for name, part in spec.networks.items()}
    return replace(spec, network=sized(spec.network), networks=networks)


def without_networks(spec: Spec, left_out: Collection[str]) -> Spec:
    """The spec without some of its networks."""
    kept = {name: part for name, part in spec.networks.items() if name not in left_out}
    names = [name for name in spec.sweep[NETWORKS] if name in kept]
    if not names:
        raise InputError(f"{spec.name}: none of its networks is there")
    sweep = {**spec.sweep, NETWORKS: names}
    return msgspec.structs.replace(spec, network=kept[names[0]], networks=kept, sweep=sweep)


def _check(ready: Spec, objects: ObjectCache | None = None) -> None:
    """Refuse combinations of values that no run can play."""
    checking.check_number(ready, ready.size.trials)
    checks = checking.Checks()
    for point in plan_of(ready, objects).points:
        try:
            with own_errors(ready):
                checks.point(point)
        except InputError as error:
            where = ", ".join(f"{axis} = {value!r}" for axis, value in point.values.items())
            raise InputError(f"{error} (at {where})" if where else str(error)) from None


# --- strict reading -------------------------------------------------------------------------------------


def _refuse_unwritable(value: Any, path: str = "") -> None:
    """Refuse what could not be written down again: dates, and numbers that are none or beyond 64 bits."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_unwritable(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            _refuse_unwritable(item, f"{path}[{number}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{path} = {value!r} is not allowed: a finite number")
    elif isinstance(value, int):
        if abs(value) >= LARGEST_WHOLE:
            raise InputError(f"{path} = {shown(value)} is not allowed: whole numbers are below 2^63")
    elif not isinstance(value, str):
        raise InputError(f"{path} = {value} is not allowed: numbers, words, true/false, lists or tables")


def _with_scale(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A file may give horizon and trials at the top instead of scales."""
    single = {key: raw[key] for key in SINGLE if key in raw}
    if not single:
        return dict(raw)
    if "scale" in raw:
        raise InputError(
            f"{next(iter(single))}: give it at the top or in [scale.quick] / [scale.full], not both"
        )
    for key in ("horizon", "trials"):
        if key not in single:
            raise InputError(f"{key}: missing; a run needs horizon and trials")
    # Checked here, so that a mistake is reported under the key that the file has.
    sizes = {key: whole(key, value) for key, value in single.items()}
    return {**{key: value for key, value in raw.items() if key not in single}, "scale": {"custom": sizes}}


def _with_networks(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A file may give several networks by name: they are an axis, the first unless it says otherwise."""
    given, sweep = raw.get("networks"), raw.get("sweep", {})
    if given is None:
        if isinstance(sweep, Mapping) and NETWORKS in sweep:
            raise InputError(f"sweep.{NETWORKS}: give the networks by name, as [networks.NAME]")
        return dict(raw)
    tables = isinstance(given, Mapping) and given and all(isinstance(v, Mapping) for v in given.values())
    if not tables or not isinstance(sweep, Mapping):
        raise InputError(
            "networks: give a table for each, as [networks.NAME]; for one network alone, [network]"
        )
    names = sweep.get(NETWORKS, list(given))
    if not isinstance(names, list) or not names:
        raise InputError(f"sweep.{NETWORKS} = {shown(names)} is not allowed: names of the networks")
    for name in names:
        if name not in given:
            raise InputError(f"sweep.{NETWORKS}: there is no network {name!r}{nearest(str(name), given)}")
    if "network" in raw and raw["network"] != given[names[0]]:
        raise InputError("network: give [network] or [networks.NAME], not both")
    swept = dict(sweep) if NETWORKS in sweep else {NETWORKS: names, **sweep}
    return {**raw, "network": given[names[0]], "sweep": swept}


def _said_fresh(raw: Mapping[str, Any]) -> dict[str, bool]:
    """Of which networks the file says whether every trial has its own; "" is the only or first one."""
    named: Mapping[str, Any] = raw.get("networks", {})
    said = {name: "fresh" in table for name, table in named.items()}
    first = raw.get("sweep", {}).get(NETWORKS, list(named))
    return {**said, "": said[first[0]] if named else "fresh" in raw["network"]}
