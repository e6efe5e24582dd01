"""Experiment files: strict reading, scales, and the points of a sweep.

Checks of what types cannot say: values that do not go together, and sizes that no machine has.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from rumormill import catalogue
from rumormill import plugins as own_modules
from rumormill.arms import VaryingSource
from rumormill.errors import InputError
from rumormill.experiments.plan import ObjectCache, SweepPoint, plan_of
from rumormill.experiments.spec import spec_names as spec_names
from rumormill.experiments.spec import spec_text
from rumormill.experiments.spec.building import check_tune, constants
from rumormill.experiments.spec.errors import SINGLE, convert, own_errors, own_names
from rumormill.experiments.spec.nesting import (
    NETWORKS,
    SCENARIOS,
    complete,
    default_of,
    flat,
    is_random,
    nested,
    place,
    size_key,
)
from rumormill.experiments.spec.schema import Claim, NetworkPart, Spec
from rumormill.system_memory import MOST_BYTES, refuse_impossible
from rumormill.text import memory, nearest, shown
from rumormill.validate import reward, whole

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
    check_labels(spec)
    for axis in spec.sweep:
        part, key = place(spec, axis)
        if part == "arms" and any(key in settings for settings in spec.arms.each or ()):
            raise InputError(f"sweep.{axis}: arms.each sets {key} itself: leave one of the two out")
        if part == "policies":
            check_overridden(spec, axis, key, [table["settings"] for table in tables["policies"]])
    if spec.arms.scenarios is not None and SCENARIOS not in spec.sweep:
        raise InputError(f"sweep.{SCENARIOS}: missing; some of {', '.join(spec.arms.scenarios)}")
    check_claims(spec)
    check_verdicts(spec)
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
    check_number(ready, ready.size.trials)
    checks = Checks()
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
            near = get_close_matches(key, {*raw} - {*Spec.__struct_fields__}, n=1)
            typo = f"{near[0]}: unknown key: did you mean {key!r}?" if near else f"{key}: missing;"
            raise InputError(f"{typo} a run needs horizon and trials")
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


# Every cell is a file, and every point is checked before anything runs.
MOST_CELLS, MOST_POINTS = 10_000_000, 10_000
BYTES_PER_VALUE = 8


class Checks:
    """Checks the points of a sweep; what several points share is looked at once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def point(self, point: SweepPoint) -> None:
        """Refuse a point that no run can play."""
        spec = point.spec
        if self._is_new(spec.network):
            check_network(point)
        if self._is_new(spec.network, spec.surroundings):
            check_world(point)
        if self._is_new(spec.arms, spec.size):
            check_arms(point)
        if self._is_new(spec.network, spec.size, len(spec.policies)):
            check_size(point)
        if self._is_new(spec.arms, spec.policies, spec.surroundings):
            check_policies(point)

    def _is_new(self, *what: Any) -> bool:
        key = repr(what)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def check_network(point: SweepPoint) -> None:
    """Refuse a network that cannot be drawn, without drawing it."""
    spec, family = point.spec, point.topology
    own = catalogue.is_own(spec.network.kind)
    if spec.network.fresh and not own and not is_random(type(family)):
        raise InputError(
            f"network.fresh = True is not allowed: a {spec.network.kind} is the same in every trial"
        )
    if hasattr(family, "require_possible"):
        try:
            family.require_possible()
        except InputError as error:
            raise InputError(f"network: {error}") from None


def check_world(point: SweepPoint) -> None:
    """Refuse agents that the network does not have."""
    world, agents = point.world, point.n_agents
    named = {
        "absences": [v for v, _, _ in world.absences],
        "outages": [v for a, b, _, _ in world.outages for v in (a, b)],
        "byzantine.agents": world.liars,
    }
    for key, ids in named.items():
        if agents and ids and max(ids) >= agents:
            raise InputError(f"{key}: there is no agent {max(ids)}, the network has 0..{agents - 1}")


def check_arms(point: SweepPoint) -> None:
    """Refuse arms that leave nothing to learn, or moments that are not finite."""
    spec, arms, agents = point.spec, point.spec.arms, point.n_agents
    if arms.means != "uniform":
        if arms.gap is not None:
            raise InputError(f"arms.gap = {arms.gap:g} is not allowed beside arms.means: leave one out")
        for number, mean in enumerate(arms.means):
            reward(f"arms.means[{number}]", mean)
        if arms.K is not None and len(arms.means) != arms.K:
            raise InputError(f"arms.K = {arms.K} is not allowed: arms.means has {len(arms.means)} values")
    if arms.each is not None and len(arms.each) != spec.n_arms:
        raise InputError(f"arms.each has {len(arms.each)} tables for {spec.n_arms} arms: give one for each")
    try:
        bandit = point.bandit(0)
        bandit.moments()
        if agents and isinstance(bandit, VaryingSource):
            bandit.expected(0, 1, agents)  # refuses clusters that the network has no agents for
    except InputError as error:
        raise InputError(str(error) if str(error).startswith("arms") else f"arms: {error}") from None


def check_policies(point: SweepPoint) -> None:
    """Refuse parameters that a policy does not take together, or not with these arms."""
    bandit, world = point.bandit(0), point.world
    moments = bandit.moments()
    for number, part in enumerate(point.spec.policies):
        policy = point.policy(part)
        try:
            policy.require_moments_below(bandit.tail_index)
            policy.require_usable(moments)
            policy.require_supported(world)
        except InputError as error:
            raise InputError(f"policies[{number}] ({part.label}): {error}") from None


def check_size(point: SweepPoint) -> None:
    """Refuse a run whose tables would not fit into memory, or that has no end."""
    size, agents = point.spec.size, point.n_agents
    refuse_impossible(agents, size.horizon)
    marks = min(size.checkpoints, size.horizon)
    needed = float(BYTES_PER_VALUE) * marks * max(agents, 1) * len(point.spec.policies)
    if needed > MOST_BYTES:
        raise InputError(
            f"checkpoints = {size.checkpoints:,} is not possible: the regret of every agent at each of them "
            f"takes {memory(needed)}, at most {memory(MOST_BYTES)} are allowed; take fewer"
        )


def check_number(spec: Spec, trials: int) -> None:
    """Refuse more points or cells than anybody waits for."""
    points = 1
    for values in spec.sweep.values():
        points *= len(values)
    if spec.tune is not None:
        points *= len(constants(spec.tune))
    if points > MOST_POINTS:
        raise InputError(f"sweep: {points:,} points are not possible: at most {MOST_POINTS:,} are allowed")
    if points * trials > MOST_CELLS:
        what = f"trials = {trials:,}" + (f" at {points:,} points" if points > 1 else "")
        raise InputError(f"{what} is not possible: at most {MOST_CELLS:,} trials are allowed in all")


def check_labels(spec: Spec) -> None:
    """Every policy has a name of its own."""
    for label, count in Counter(spec.labels).items():
        if count > 1:
            raise InputError(f"policies: {count} of them are called {label!r}; give each a label of its own")


def check_overridden(spec: Spec, axis: str, key: str, given: list[dict[str, Any]]) -> None:
    """Refuse an axis that would replace what a policy sets itself; `given` is what the file says."""
    for number, (part, table) in enumerate(zip(spec.policies, given, strict=True)):
        if key in table and table[key] != default_of("policies", part, key, spec.folder):
            raise InputError(
                f"sweep.{axis}: policies[{number}] ({part.label}) sets {key} = {shown(table[key])} itself, "
                "which the sweep would replace: leave one of the two out"
            )


def check_claims(spec: Spec) -> None:
    """Every claim is about policies and parameters that are there."""
    for number, claim in enumerate(spec.claims):
        wrong = _wrong(spec, claim)
        if wrong:
            raise InputError(f"claims[{number}].{wrong}")


def check_verdicts(spec: Spec) -> None:
    """The baseline is one of the policies."""
    baseline = spec.verdicts.baseline
    if baseline is not None and baseline not in spec.labels:
        raise InputError(f"verdicts.baseline = {baseline!r} is not allowed{nearest(baseline, spec.labels)}")


def known_claims(spec: Spec, claims: list[Claim]) -> list[Claim]:
    """Those of the claims that a spec can be asked about."""
    return [claim for claim in claims if not _wrong(spec, claim)]


def _wrong(spec: Spec, claim: Claim) -> str:
    """What a claim names that is not there; nothing if all is well."""
    named = {field: getattr(claim, field) for field in claim.__struct_fields__}
    for field in ("policy", "than", "over"):
        if field in named and named[field] not in spec.labels:
            return f"{field} = {named[field]!r} is not allowed{nearest(named[field], spec.labels)}"
    axis = named.get("parameter")
    if axis is None:
        return ""
    if axis not in spec.sweep:
        hint = nearest(axis, spec.sweep) if spec.sweep else ": the file has no sweep"
        return f"parameter = {axis!r} is not allowed{hint}"
    return "" if len(spec.sweep[axis]) > 1 else f"parameter = {axis!r} is not allowed: it has one value only"
