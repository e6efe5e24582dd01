"""A settled spec as an object: points, cells, checkpoints, and the objects that play, made once.

Runner, workers, analysis, figures, report and watch all use the plan of a spec. `plan_of` keeps the last few
plans of the process; a worker process receives the spec and makes its own plan, once.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Bandit
from rumormill.arms.varying import Varying
from rumormill.engine.result import resolve_checkpoints
from rumormill.errors import InputError
from rumormill.experiments.spec import building
from rumormill.experiments.spec.building import CONSTANT, at_constant, constants, knob_of
from rumormill.experiments.spec.errors import convert
from rumormill.experiments.spec.nesting import (
    AROUND,
    NETWORKS,
    PARTS,
    SCENARIOS,
    complete,
    keys_beside,
    place,
)
from rumormill.experiments.spec.schema import PolicyPart, Spec, VerdictPart
from rumormill.graphs import Network, Topology
from rumormill.policies import Policy
from rumormill.protocol import World

Made = TypeVar("Made")

PLANS_KEPT = 8


class Cell(NamedTuple):
    """One trial of one sweep point."""

    point: int
    trial: int


class ObjectCache:
    """Objects made from parts of a spec. Equal parts share one object: it holds no state of a trial."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._lock = threading.RLock()

    def get(self, part: Any, make: Callable[[], Made]) -> Made:
        """The object of this part, made on first use."""
        key = repr(part)
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            made: Made = self._made[key]
            return made


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One combination of sweep values: the spec with these values in place, and the objects made from it."""

    index: int
    values: dict[str, Any]
    spec: Spec
    objects: ObjectCache = field(default_factory=ObjectCache, repr=False)

    @property
    def topology(self) -> Topology:
        """The family that the networks are drawn from."""
        return self.objects.get(self.spec.network, lambda: building.build_topology(self.spec))

    @property
    def world(self) -> World:
        """Channel and fault models."""
        return self.objects.get(self.spec.surroundings, lambda: building.build_world(self.spec))

    @cached_property
    def is_fresh(self) -> bool:
        """Whether every trial has a network of its own."""
        return building.is_fresh(self.spec, self.topology)

    @property
    def n_agents(self) -> int:
        """The number of agents, where the family states it; else 0."""
        return int(getattr(self.topology, "size", lambda: (0, 0))()[0])

    def policy(self, part: PolicyPart) -> Policy:
        """The policy that a part of the spec describes."""
        return self.objects.get(part, lambda: building.build_policy(self.spec, part))

    def bandit(self, trial: int) -> Bandit | Varying:
        """The arms of a trial."""
        arms = self.spec.arms
        laws = self.objects.get(
            ("law", arms.law, arms.settings, arms.each), lambda: building.build_laws(self.spec)
        )
        return building.build_bandit(self.spec, trial, laws)

    def network_trial(self, trial: int) -> int:
        """The trial whose network this trial uses: itself if networks are fresh, else 0."""
        return trial if self.is_fresh else 0

    def network(self, trial: int) -> Network:
        """The network of a trial, drawn anew at each call: `run.cache` keeps them."""
        return building.build_network(self.spec, self.network_trial(trial), self.topology)

    def seed(self, trial: int) -> np.random.SeedSequence:
        """The seed of a trial."""
        return building.trial_seed(self.spec, trial)

    def game(self, part: PolicyPart) -> str:
        """Everything that determines a policy's outcome in a trial, as a key."""
        spec = self.spec
        return repr((spec.network, spec.arms, spec.surroundings, spec.size, part.type, part.settings))


@dataclass(frozen=True, eq=False)
class ExperimentPlan:
    """A spec taken apart once. Pickled as its spec: another process plans it again, once."""

    spec: Spec
    points: list[SweepPoint]
    """Every combination of sweep values, the last axis running fastest; one empty point without a sweep."""

    def __reduce__(self) -> tuple[Any, ...]:
        return plan_of, (self.spec,)

    @cached_property
    def axes(self) -> dict[str, list[Any]]:
        """Everything that varies between the points, with its values: the slowest first."""
        return axes_of(self.spec)

    @cached_property
    def checkpoints(self) -> NDArray[np.int64]:
        """The rounds that are recorded."""
        return resolve_checkpoints(self.spec.size.checkpoints, self.spec.size.horizon)

    @cached_property
    def repeated_games(self) -> frozenset[str]:
        """Games that several points play."""
        games = Counter(point.game(part) for point in self.points for part in point.spec.policies)
        return frozenset(game for game, count in games.items() if count > 1)

    @cached_property
    def axis_types(self) -> dict[str, type]:
        """The type of every sweep column: int, float, bool, or str for a mixture."""
        types: dict[str, type] = {}
        for axis, values in self.axes.items():
            kinds = {type(value) for value in values}
            if len(kinds) == 1:
                types[axis] = kinds.pop()
            else:
                types[axis] = float if kinds == {int, float} else str
        return types

    def cells(self, jobs: int) -> list[Cell]:
        """All cells. Points of a trial stand near each other, so that they find its network ready.

        Workers get different trials at a time: what one point leaves for the next is then there.
        """
        trials = self.spec.size.trials
        order = list(range(len(self.points)))
        if self.spec.networks:  # one network after the other: only a few are kept
            order.sort(key=lambda i: repr(self.points[i].spec.network))
        return [
            Cell(point, trial)
            for first in range(0, trials, jobs)
            for point in order
            for trial in range(first, min(first + jobs, trials))
        ]


_plans: OrderedDict[bytes, ExperimentPlan] = OrderedDict()
_lock = threading.RLock()


def plan_of(spec: Spec, objects: ObjectCache | None = None) -> ExperimentPlan:
    """The plan of a spec, made once per process; `objects` may be shared with another plan.

    Parameters:
        spec: an experiment; its one scale is needed for cells and checkpoints only.
        objects: objects made before from parts of the same file.
    """
    key = msgspec.json.encode(spec)  # every task may bring a copy of the spec
    with _lock:
        if key not in _plans:
            _plans[key] = ExperimentPlan(spec, _points(spec, objects or ObjectCache()))
            while len(_plans) > PLANS_KEPT:
                _plans.popitem(last=False)
        _plans.move_to_end(key)
        return _plans[key]


def axes_of(spec: Spec) -> dict[str, list[Any]]:
    """Everything that varies between the points of a run, with its values: the slowest first."""
    tuned = {} if spec.tune is None else {CONSTANT: [str(value) for value in constants(spec.tune)]}
    return {**tuned, **spec.sweep}


# --- points ---------------------------------------------------------------------------------------------


def _points(spec: Spec, objects: ObjectCache) -> list[SweepPoint]:
    """All points. A tuned constant runs slowest of all: values added to its grid make points at the end."""
    swept, tune = _swept_points(spec, objects), spec.tune
    if tune is None:
        return swept
    knobs = {part.label: knob_of(spec, part, tune) for part in spec.policies}
    turned = ((value, point) for value in constants(tune) for point in swept)
    return [
        SweepPoint(
            index,
            {CONSTANT: str(value), **point.values},
            at_constant(point.spec, value, knobs, tune.added),
            objects,
        )
        for index, (value, point) in enumerate(turned)
    ]


def _swept_points(spec: Spec, objects: ObjectCache) -> list[SweepPoint]:
    places = {axis: place(spec, axis) for axis in spec.sweep}
    base = msgspec.structs.replace(spec, sweep={}, claims=[], tune=None, verdicts=VerdictPart())
    if not spec.sweep:
        return [SweepPoint(0, {}, base, objects)]
    done = []
    for index, choice in enumerate(itertools.product(*(range(len(v)) for v in spec.sweep.values()))):
        values = {axis: spec.sweep[axis][i] for axis, i in zip(spec.sweep, choice, strict=True)}
        try:
            done.append(SweepPoint(index, values, _changed(base, places, values), objects))
        except InputError as error:
            where = ", ".join(f"{axis}[{i}]" for axis, i in zip(spec.sweep, choice, strict=True))
            raise InputError(f"sweep.{where}: {error}") from None
    return done


def _changed(spec: Spec, places: Mapping[str, tuple[str, str]], values: Mapping[str, Any]) -> Spec:
    """The spec with other values in some places."""
    tables: dict[str, Any] = msgspec.to_builtins(spec)
    for axis, value in values.items():
        part, key = places[axis]
        if part in AROUND:
            tables[part][key] = value
            continue
        if part == NETWORKS and not key:
            tables[part], tables["networks"] = tables["networks"][value], {}
            continue
        if part == "arms" and key == SCENARIOS:
            scenario = tables[part].pop("scenarios")[value]
            tables[part] |= {name: given for name, given in scenario.items() if given is not None}
            continue
        if part != "policies":
            inside = tables[part] if key in PARTS[part].beside else tables[part]["settings"]
            inside[key] = value
            continue
        for number, table in enumerate(tables[part]):
            if key in keys_beside(spec, "policies", spec.policies[number]):
                table["settings"][key] = value
    return complete(convert(tables), only={part for part, _ in places.values()})
