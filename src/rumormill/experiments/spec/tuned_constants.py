"""Constants that a spec tunes: the values they take, what setting that is for each policy, wider grids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from rumormill import catalogue
from rumormill.errors import InputError
from rumormill.experiments.spec.nesting import default_of, table_of
from rumormill.experiments.spec.schema import Added, PolicyPart, Spec, TunePart
from rumormill.text import shown

# The column of a run's table that says at which value a policy was played.
CONSTANT = "constant"
PRINTED: Literal["printed"] = "printed"
"""As the file has the policies."""
THEORY: Literal["theory"] = "theory"
"""At the constant of the estimator's lemma; of a policy that has none, the one it was published with."""

Value = float | Literal["printed", "theory"]


def constants(tune: TunePart) -> list[Value]:
    """All values, in the order in which they are played: what was added later comes last."""
    return [PRINTED, THEORY, *tune.grid, *(one.value for one in tune.added)]


def numbers(tune: TunePart) -> list[float]:
    """The values of the grid with what was added to it, ascending."""
    return sorted({*tune.grid, *(one.value for one in tune.added)})


def check_tune(spec: Spec, tune: TunePart) -> None:
    """Refuse a grid that is not ascending, and knobs that no policy has."""
    if sorted(set(tune.grid)) != tune.grid:
        raise InputError(f"tune.grid = {shown(tune.grid)} is not allowed: ascending numbers, each once")
    if tune.over is not None and tune.over not in spec.sweep:
        swept = f"one of {', '.join(spec.sweep)}" if spec.sweep else "nothing is swept"
        raise InputError(f"tune.over = {tune.over!r} is not allowed: {swept}")
    for scale, size in spec.scale.items():
        if not 0 < n_choosing(tune, size.trials) < size.trials:
            raise InputError(
                f"scale.{scale}.trials = {size.trials} is not allowed: some must be left to choose and some "
                "to report; give 2 or more"
            )
    if not any(knob_of(spec, part, tune) for part in spec.policies):
        raise InputError(f"tune.knobs = {shown(tune.knobs)} is not allowed: no policy takes any of them")


def n_choosing(tune: TunePart, trials: int) -> int:
    """How many of the trials, the first ones, choose the best value."""
    return min(math.ceil(tune.choose * trials), trials - 1)


def knob_of(spec: Spec, part: PolicyPart, tune: TunePart) -> str | None:
    """The setting that is tuned for a policy; None if it takes none of them."""
    for knob in tune.knobs:
        try:
            _made(spec, _turned(part, knob, tune.grid[0]))
        except InputError:
            continue
        return knob
    return None


def at_constant(
    spec: Spec, value: Value, knobs: Mapping[str, str | None], added: Sequence[Added] = ()
) -> Spec:
    """The spec with every policy at this value, without the policies that have nothing to play there."""
    only = next((one.policies for one in added if one.value == value), None)
    played = []
    for part in spec.policies:
        knob = knobs[part.label]
        if only is not None and part.label not in only:
            continue
        if value == PRINTED:
            played.append(part)
        elif value == THEORY:
            played.append(_at_theory(spec, part, knob))
        elif knob is not None:
            played.append(_turned(part, knob, float(value)))
    return replace(spec, policies=played)


def wider(spec: Spec, best: Mapping[tuple[Any, ...], float]) -> Spec | None:
    """The spec with a wider grid for policies that are best at its ends; None if all have found theirs.

    `best`: by policy and sweep point.
    """
    tune = spec.tune
    if tune is None or _times_extended(tune) >= tune.extend:
        return None
    step = tune.grid[1] / tune.grid[0], tune.grid[-1] / tune.grid[-2]
    wanted: dict[float, list[str]] = {}
    for policy in spec.labels:
        found = [value for where, value in best.items() if where[0] == policy]
        own = [*tune.grid, *(one.value for one in tune.added if policy in one.policies)]
        if min(own) in found:
            wanted.setdefault(float(f"{min(own) / step[0]:.6g}"), []).append(policy)
        if max(own) in found:
            wanted.setdefault(float(f"{max(own) * step[1]:.6g}"), []).append(policy)
    if not wanted:
        return None
    more = [Added(value=value, policies=sorted(policies)) for value, policies in sorted(wanted.items())]
    return replace(spec, tune=replace(tune, added=[*tune.added, *more]))


def _times_extended(tune: TunePart) -> int:
    """How many steps beyond its ends the grid was taken."""
    beyond = [one.value for one in tune.added]
    below = len({value for value in beyond if value < tune.grid[0]})
    above = len({value for value in beyond if value > tune.grid[-1]})
    return max(below, above)


def _turned(part: PolicyPart, knob: str, value: float) -> PolicyPart:
    settings = dict(part.settings)
    if knob == "zeta":
        settings.pop("c", None)  # the same constant, said in another way
    inside, _, key = knob.rpartition(".")
    if not inside:
        return replace(part, settings={**settings, key: value})
    table = settings.get(inside)
    table = {"type": table} if isinstance(table, str) else dict(table or {})
    return replace(part, settings={**settings, inside: {**table, key: value}})


def _at_theory(spec: Spec, part: PolicyPart, knob: str | None) -> PolicyPart:
    """With c = "theory" where that is allowed, else with the knob at what the class has."""
    settings = dict(part.settings)
    inside, _, key = (knob or "").rpartition(".")
    if inside and isinstance(settings[inside], dict):
        settings[inside] = {name: value for name, value in settings[inside].items() if name != key}
    elif knob is not None and not inside:
        settings[knob] = default_of("policies", part, knob, spec.folder)
        if settings[knob] is None:
            del settings[knob]
    published = replace(part, settings=settings)
    proven = replace(part, settings={**settings, "c": "theory"})
    try:
        _made(spec, proven)
    except InputError:
        return published
    return proven


def _made(spec: Spec, part: PolicyPart) -> Any:
    return catalogue.make("policy", table_of("policies", part), folder=spec.folder, beside=("label",))
