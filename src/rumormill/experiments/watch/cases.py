"""What `watch` shows: one trial of a sweep point, the part of the network drawn, one trace per policy."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rumormill.engine import prepare
from rumormill.engine.trace import Trace, record
from rumormill.errors import InputError
from rumormill.experiments.analyse.labels import fault_sentences, in_words
from rumormill.experiments.plan import SweepPoint, plan_of
from rumormill.experiments.run.cache import one_blas_thread
from rumormill.experiments.spec.errors import own_errors
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.experiments.spec.tuned_constants import CONSTANT, PRINTED
from rumormill.graphs import Network
from rumormill.plotting.networks import layout
from rumormill.text import nearest, plural, rounded, setting


def nearest_agents(network: Network, most: int) -> list[int]:
    """The agent with the most links and those nearest to it, the lower numbers first where they tie.

    Where its part of the network is smaller, the next part follows.
    """
    order = np.argsort(-network.degrees, kind="stable").tolist()
    found: dict[int, None] = {}
    for start in order:
        queue = deque([start])
        while queue:
            v = queue.popleft()
            if v in found:
                continue
            if len(found) == most:
                return sorted(found)
            found[v] = None
            queue.extend(network.neighbours(v).tolist())
    return sorted(found)


def part_of_network(network: Network, agents: Sequence[int]) -> Network:
    """These agents and the links between them."""
    place = {v: i for i, v in enumerate(agents)}
    links = [(place[a], place[b]) for a, b in network.edges().tolist() if a in place and b in place]
    labels = [network.labels[v] for v in agents]
    return Network.labelled(labels, np.array(links, np.int64).reshape(-1, 2))


def part_of_spec(spec: Spec, agents: Sequence[int]) -> Spec:
    """What the spec says of single agents, for these alone and by their new numbers."""
    place = {v: i for i, v in enumerate(agents)}
    byzantine, clusters = spec.byzantine, spec.arms.clusters
    if byzantine is not None:
        given = byzantine.agents
        liars = [place[v] for v in (range(given) if isinstance(given, int) else given) if v in place]
        byzantine = replace(byzantine, agents=liars) if liars else None
    if clusters is not None:
        kept = [(each, [place[v] for v in each.members if v in place]) for each in clusters]
        clusters = [replace(each, members=members) for each, members in kept if members] or None
    return replace(
        spec,
        absences=[(place[v], first, last) for v, first, last in spec.absences if v in place],
        outages=[(place[a], place[b], *when) for a, b, *when in spec.outages if a in place and b in place],
        byzantine=byzantine,
        arms=replace(spec.arms, clusters=clusters),
    )


@dataclass(frozen=True)
class Play:
    """One policy's game."""

    label: str
    gamma: int | None
    """How far its messages travel; None where it does not flood."""
    record: Trace


@dataclass(frozen=True)
class Watched:
    """The first rounds of one trial, played by several policies."""

    name: str
    title: str
    where: str
    """The sweep point in words; empty without a sweep."""
    remarks: list[str]
    """What is shown of how much, and what can go wrong."""
    network: Network
    places: NDArray[np.float64]
    """Where agents go in a picture, each coordinate in [0, 1]."""
    agents: list[int]
    """The number of every agent in the whole network."""
    means: list[float]
    gaps: list[float]
    """By arm, on the average where they differ between agents or rounds."""
    costs: bool
    """Whether low values are the good ones."""
    plays: list[Play]
    labels: list[str]
    """Of all policies of the spec, also of those that are not played here."""

    @property
    def rounds(self) -> int:
        return self.plays[0].record.rounds


def watched(
    spec: Spec,
    *,
    rounds: int,
    agents: int,
    policies: Sequence[str] | None = None,
    at: Mapping[str, str] | None = None,
    on_round: Callable[[], None] = lambda: None,
) -> Watched:
    """The first rounds of trial 0, on at most so many agents.

    `policies`: their labels, all if left out. `at`: values of swept parameters as they are written; those
    that are not named are taken from the middle of the sweep.
    """
    parts = chosen_policies(spec, policies)
    point = chosen_point(spec, at or {})
    with one_blas_thread(), own_errors(spec):
        whole = point.network(0)
        shown = nearest_agents(whole, agents) if whole.n_agents > agents else list(range(whole.n_agents))
        network, here = whole, point
        if len(shown) < whole.n_agents:
            network = part_of_network(whole, shown)
            here = dataclasses.replace(point, spec=part_of_spec(point.spec, shown))
        source, world, horizon = here.bandit(0), here.world, here.spec.size.horizon
        plays = []
        for part in parts:
            policy = here.policy(chosen_policies(here.spec, [part.label])[0])
            ready = prepare(policy, network, here.spec.n_arms, engine="reference", world=world)
            seen = record(ready, source, horizon, here.seed(0), rounds, on_round)
            plays.append(Play(part.label, ready.gamma, seen))
        places = _unit(layout(network.n_agents, network.edges()))
    return Watched(
        name=spec.name,
        title=spec.title or spec.name,
        where=in_words(point.values) if point.values else "",
        remarks=[_size(spec, whole, shown, plays[0].record), *fault_sentences(world)],
        network=network,
        places=places,
        agents=shown,
        means=[float(mean) for mean in source.means],
        gaps=[float(gap) for gap in source.gaps],
        costs=source.objective == "minimise",
        plays=plays,
        labels=list(spec.labels),
    )


def chosen_policies(spec: Spec, labels: Sequence[str] | None) -> list[PolicyPart]:
    """The policies with these labels; a label may be written in small letters."""
    by_label = {part.label.lower(): part for part in spec.policies}
    if labels is None:
        return list(spec.policies)
    for label in labels:
        if label.lower() not in by_label:
            raise InputError(f"--policy {label!r} is not allowed{nearest(label, spec.labels)}")
    return [by_label[label.lower()] for label in dict.fromkeys(labels)]


def chosen_point(spec: Spec, at: Mapping[str, str]) -> SweepPoint:
    """The sweep point with these values; where an axis is not named, the middle of it."""
    plan = plan_of(spec)
    axes = plan.axes
    wanted: dict[str, Any] = {CONSTANT: PRINTED} if CONSTANT in axes else {}
    for axis, text in at.items():
        if axis not in axes:
            allowed = nearest(axis, list(axes)) if axes else ": this experiment sweeps nothing"
            raise InputError(f"--at {axis}={text} is not allowed{allowed}")
        words = {word: value for value in axes[axis] for word in (setting(value), str(value))}
        if text not in words:
            allowed = ", ".join(map(setting, axes[axis]))
            raise InputError(f"--at {axis}={text} is not allowed: allowed are {allowed}")
        wanted[axis] = words[text]
    wanted = {axis: wanted.get(axis, values[len(values) // 2]) for axis, values in axes.items()}
    return next(point for point in plan.points if point.values == wanted)


def _unit(places: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = places.min(axis=0), places.max(axis=0)
    unit: NDArray[np.float64] = (places - low) / np.where(high > low, high - low, 1.0)
    return np.where(high > low, unit, 0.5)


def _size(spec: Spec, whole: Network, shown: Sequence[int], seen: Trace) -> str:
    horizon = spec.size.horizon
    rounds = (
        f"the first {seen.rounds} of {rounded(horizon)} rounds" if seen.rounds < horizon else "all rounds"
    )
    if len(shown) == whole.n_agents:
        return f"{rounds[0].upper()}{rounds[1:]} of the first trial, with all {plural(len(shown), 'agent')}."
    return (
        f"A smaller game than that of the run: the {len(shown)} agents around the one with the most links "
        f"play alone, without the other {rounded(whole.n_agents - len(shown))}; {rounds}."
    )
