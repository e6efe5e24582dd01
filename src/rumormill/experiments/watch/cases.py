"""What `watch` shows: one trial of a sweep point, the part of the network drawn, one trace per policy.

The page with a slider: by itself, or as a section of a report.
"""

from __future__ import annotations

import dataclasses
import html
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rumormill.engine import prepare
from rumormill.engine.trace import Bundle, Trace, record
from rumormill.errors import InputError, RumormillError
from rumormill.experiments.analyse.measured import fault_sentences, in_words
from rumormill.experiments.plan import SweepPoint, plan_of
from rumormill.experiments.report.markup import safe_json, template
from rumormill.experiments.run.cache import one_blas_thread
from rumormill.experiments.spec.building import CONSTANT, PRINTED
from rumormill.experiments.spec.errors import own_errors, own_names
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.files import write_atomically
from rumormill.graphs import Network
from rumormill.plotting.drawing import layout
from rumormill.plotting.rendering import made_folder
from rumormill.plotting.style import ON_BLACK, ON_WHITE, arm_colours, ink_on, looks
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


REPORT_ROUNDS, REPORT_AGENTS = 40, 20
_COMMAND = "<code>rumormill watch SPEC</code> shows them."


def write_watch_page(watched: Watched, path: Path) -> Path:
    """Write the page; it gets its name only when it is whole."""
    made_folder(path.parent)
    write_atomically(path, watch_html(watched).encode())
    return path


def watch_html(watched: Watched) -> str:
    """The page by itself."""
    return Template(template("watch-page.html")).substitute(
        title=html.escape(watched.title),
        name=html.escape(watched.name),
        where=html.escape(watched.where),
        section=watch_section(watched),
        css=template("report.css") + template("watch.css"),
        chart=template("chart.js"),
        js=template("watch.js"),
    )


def watch_section(watched: Watched) -> str:
    """The picture, its slider and its key, with what they show; needs watch.css, chart.js and watch.js."""
    return Template(template("watch.html")).substitute(
        remarks=" ".join(html.escape(remark) for remark in watched.remarks),
        data=safe_json(watch_data(watched)),
    )


def report_section(spec: Spec) -> str:
    """The same for a report: fewer agents and rounds; own classes only if this process has played them."""

    def is_loaded(part: PolicyPart) -> bool:
        own = own_names(replace(spec, policies=[part]))
        return all(name.partition(":")[0] in sys.modules for name in own)

    shown = [part.label for part in spec.policies if is_loaded(part)]
    if not shown:
        return f"<p>Own classes are not imported for a report. {_COMMAND}</p>"
    try:
        seen = watched(spec, rounds=REPORT_ROUNDS, agents=REPORT_AGENTS, policies=shown)
    except RumormillError:  # the data of its network are somewhere else
        return "<p>This game cannot be played again here.</p>"
    return watch_section(seen)


def watch_data(watched: Watched) -> dict[str, Any]:
    """All that the page draws."""
    seen = watched.plays[0].record
    colours = [arm_colours(watched.gaps, ramp) for ramp in (ON_WHITE, ON_BLACK)]
    look = looks(watched.labels)
    return {
        "agents": watched.agents,
        "places": np.round(watched.places, 4).tolist(),
        "links": watched.network.edges().tolist(),
        "arms": [
            {"mean": float(f"{mean:.3g}"), "light": [light, ink_on(light)], "dark": [dark, ink_on(dark)]}
            for mean, light, dark in zip(watched.means, *colours, strict=True)
        ],
        "costs": watched.costs,
        # One number where the best arm is the same for all agents and rounds.
        "best": int(seen.best[0, 0]) if (seen.best == seen.best[0, 0]).all() else seen.best.tolist(),
        "away": [np.flatnonzero(~row).tolist() for row in seen.up],
        "liars": np.flatnonzero(seen.lies).tolist(),
        "plays": [
            {
                "name": play.label,
                "colour": look[play.label].colour,
                "dash": look[play.label].dash,
                "symbol": look[play.label].symbol,
                **_play(play),
            }
            for play in watched.plays
        ],
    }


def _play(play: Play) -> dict[str, Any]:
    seen = play.record
    return {
        "gamma": play.gamma,
        "regret": [float(f"{value:.5g}") for value in seen.regret],
        "actions": seen.actions.tolist(),
        "rewards": [[None if np.isnan(x) else float(f"{x:.3g}") for x in row] for row in seen.rewards],
        "said": _said(seen),
        "odd": [_odd(bundle) for bundle in seen.bundles if _is_odd(bundle)],
    }


def _said(seen: Trace) -> list[list[list[int]]]:
    """By round and agent, its messages: the origin plus the number of agents times the age."""
    n_agents = seen.network.n_agents
    return [
        [[origin + n_agents * (t - born) for origin, born in batch] for batch in sent]
        for t, sent in enumerate(seen.outgoing, start=1)
    ]


def _is_odd(bundle: Bundle) -> bool:
    return bundle.fate != "arrived" or bundle.arrived != bundle.sent or bundle.missing > 0


def _odd(bundle: Bundle) -> list[Any]:
    """A bundle that did not simply arrive in its round."""
    return [bundle.sender, bundle.receiver, bundle.sent, bundle.fate, bundle.arrived, bundle.missing]
