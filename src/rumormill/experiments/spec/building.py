"""From a spec without a sweep to network, bandit, fault models and policies; `plan` makes each once.

Constants that a spec tunes: the values they take, what setting that is for each policy, wider grids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from rumormill import catalogue
from rumormill.arms import Arm, Bandit, Clusters, Piecewise, Seasonal, Trend
from rumormill.arms.varying import Varying
from rumormill.errors import ContractError, InputError
from rumormill.experiments.spec.nesting import PARTS, Part, default_of, table_of
from rumormill.experiments.spec.schema import Added, PolicyPart, Spec, TunePart
from rumormill.graphs import Network, Topology
from rumormill.policies import Policy
from rumormill.protocol import Byzantine, Churn, Corruption, World
from rumormill.seeds import Role, root_seed, stream_seed
from rumormill.text import shown


def trial_seed(spec: Spec, trial: int) -> np.random.SeedSequence:
    """The seed of a trial. No sweep value enters: all points of a sweep see the same chance."""
    return stream_seed(root_seed(spec.seed), trial)


def _made(spec: Spec, name: str, part: Part, where: str) -> Any:
    form = PARTS[name]
    return catalogue.make(
        form.kind,
        table_of(name, part),
        where=where,
        folder=spec.folder,
        leave_out=form.leave_out,
        beside=form.beside,
    )


# --- networks -------------------------------------------------------------------------------------------


def build_topology(spec: Spec) -> Topology:
    """The family that the network is drawn from."""
    made: Topology = _made(spec, "network", spec.network, "network")
    return made


def is_fresh(spec: Spec, topology: Topology | None = None) -> bool:
    """Whether every trial has a network of its own; a user's own class may state it without `varies`."""
    if not spec.network.fresh:
        return False
    family = build_topology(spec) if topology is None else topology
    return catalogue.is_own(spec.network.kind) or family.varies()


def build_network(spec: Spec, trial: int, topology: Topology | None = None) -> Network:
    """The network of a trial; `topology` is its family, if it is made already."""
    family = build_topology(spec) if topology is None else topology
    seed = stream_seed(trial_seed(spec, trial if is_fresh(spec, family) else 0), Role.NETWORK)
    network = family.build(np.random.default_rng(seed))
    if not isinstance(network, Network):
        raise ContractError(
            f"network.kind = {spec.network.kind!r}: build(rng) returned a {type(network).__name__}, "
            "not an rm.Network"
        )
    return network


# --- arms -----------------------------------------------------------------------------------------------


def build_bandit(spec: Spec, trial: int, laws: Sequence[Arm] = ()) -> Bandit | Varying:
    """The arms of a trial: uniform means are fresh in every trial. `laws`: if made already."""
    arms, laws = spec.arms, laws or build_laws(spec)
    source: Bandit | Varying = build_common_bandit(spec, trial, laws)
    if arms.clusters is not None:
        each = [_bandit(spec, cluster.means, laws) for cluster in arms.clusters]
        source = Clusters(each, [cluster.members for cluster in arms.clusters], others=source)
    if arms.changes is not None:
        later = [
            (change.at, _bandit(spec, _new_means(spec, trial, number), laws))
            for number, change in enumerate(arms.changes)
        ]
        source = Piecewise([(1, source), *later])
    if arms.trend is not None:
        source = Trend(source, to=arms.trend.to, rounds=arms.trend.rounds)
    if arms.season is not None:
        season = arms.season
        phase = [0.0] * spec.n_arms if season.phase is None else season.phase
        source = Seasonal(source, amplitude=season.amplitude, period=season.period, phase=phase)
    return source


def _new_means(spec: Spec, trial: int, number: int) -> list[float]:
    """The means after a change, the first of which has number 0; uniform ones have a stream of their own."""
    assert spec.arms.changes is not None
    means = spec.arms.changes[number].means
    if means != "uniform":
        return list(means)
    seed = stream_seed(trial_seed(spec, trial), Role.BANDIT, number + 1)
    drawn: list[float] = np.random.default_rng(seed).random(spec.n_arms).tolist()
    return drawn


def build_common_bandit(spec: Spec, trial: int, laws: Sequence[Arm] = ()) -> Bandit:
    """The bandit that all agents face in round 1, without clusters."""
    rng = np.random.default_rng(stream_seed(trial_seed(spec, trial), Role.BANDIT))
    gap = spec.arms.gap
    if gap is not None:
        better = -gap if spec.arms.objective == "minimise" else gap
        means = [(1 - better) / 2] * spec.n_arms
        means[rng.integers(spec.n_arms)] = (1 + better) / 2
    elif spec.arms.means == "uniform":
        means = rng.random(spec.n_arms).tolist()
    else:
        means = list(spec.arms.means)
    return _bandit(spec, means, laws or build_laws(spec))


def _bandit(spec: Spec, means: list[float], laws: Sequence[Arm]) -> Bandit:
    objective = spec.arms.objective or "maximise"
    shapes = laws if len(laws) > 1 else [*laws] * len(means)
    if len(shapes) != len(means):
        raise InputError(f"arms.each has {len(shapes)} tables for {len(means)} means: give one for each")
    arms = [law.at_mean(mean) for law, mean in zip(shapes, means, strict=True)]
    return Bandit(arms, eps=spec.arms.eps, objective=objective)


def build_laws(spec: Spec) -> list[Arm]:
    """The law of every arm, or the one law that all have; `at_mean` moves it."""
    arms, replace = spec.arms, msgspec.structs.replace
    parts = (
        [arms]
        if arms.each is None
        else [replace(arms, settings={**arms.settings, **settings}) for settings in arms.each]
    )
    return [_made(spec, "arms", part, "arms") for part in parts]


# --- policies and channel -------------------------------------------------------------------------------


def build_policy(spec: Spec, part: PolicyPart) -> Policy:
    """The policy that a part of the spec describes."""
    number = spec.policies.index(part) if part in spec.policies else 0
    made: Policy = _made(spec, "policies", part, f"policies[{number}]")
    return made


def build_world(spec: Spec) -> World:
    """What carries the messages, and what can go wrong."""
    churn, corruption, byzantine = (
        None if part is None else msgspec.to_builtins(part)
        for part in (spec.churn, spec.corruption, spec.byzantine)
    )
    if corruption is not None and corruption["law"] is not None:
        law = corruption["law"]
        corruption["law"] = catalogue.make("law", law, where="corruption.law", folder=spec.folder)
    return World(
        channel=_made(spec, "channel", spec.channel, "channel"),
        absences=tuple(spec.absences),
        outages=tuple(spec.outages),
        churn=None if churn is None else _named("churn", Churn, churn),
        corruption=None if corruption is None else _named("corruption", Corruption, corruption),
        byzantine=None if byzantine is None else _named("byzantine", Byzantine, byzantine),
    )


def _named(name: str, cls: Any, settings: dict[str, Any]) -> Any:
    try:
        return cls(**settings)
    except InputError as error:
        text = str(error).removeprefix(f"{cls.__name__}: ")
        known = text.split(" ", 1)[0] in settings
        raise InputError(f"{name}.{text}" if known else f"{name}: {text}") from None


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
            build_policy(spec, _turned(part, knob, tune.grid[0]))
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
        build_policy(spec, proven)
    except InputError:
        return published
    return proven
