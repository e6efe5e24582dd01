"""From a spec without a sweep to network, bandit, fault models and policies; `plan` makes each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rumormill import catalogue
from rumormill.arms import Arm, Bandit, Clusters, Piecewise, Seasonal, Trend
from rumormill.arms.varying import Varying
from rumormill.errors import ContractError, InputError
from rumormill.experiments.spec.nesting import PARTS, Part, table_of
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.graphs import Network, Topology
from rumormill.policies import Policy
from rumormill.protocol import Byzantine, Churn, Corruption, World
from rumormill.seeds import Role, root_seed, stream_seed


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
