"""What a run says about its networks, and about the engine that plays on them."""

from __future__ import annotations

import hashlib

from rumormill.engine import compiled
from rumormill.experiments.run.cell import one_blas_thread
from rumormill.experiments.run.games import Constants, resolved_constants
from rumormill.experiments.run.manifest import NetworkFacts
from rumormill.experiments.run.sites import AT_HAND, contenders
from rumormill.experiments.spec.building import build_policy, build_world
from rumormill.experiments.spec.own import own_errors
from rumormill.experiments.spec.reading import points
from rumormill.experiments.spec.schema import Spec
from rumormill.experiments.spec.tuning import CONSTANT, PRINTED
from rumormill.graphs import Network

# A picture of more shows nothing, and springs take minutes to lay it out.
DRAWN_AGENTS, DRAWN_LINKS = 2_000, 100_000


def describe_networks(spec: Spec) -> dict[str, NetworkFacts]:
    """The network of trial 0 at every point: enough to draw it with its cliques and leaders."""
    seen: dict[str, str] = {}
    described: dict[str, NetworkFacts] = {}
    for point in points(spec):
        if point.values.get(CONSTANT, PRINTED) != PRINTED:  # the same networks again
            continue
        with one_blas_thread(), own_errors(spec):
            ready = contenders(point.spec, 0)
        network = ready[0].network
        low, high = network.diameter_between
        facts = NetworkFacts(n_agents=network.n_agents, n_edges=network.n_edges, diameter=low)
        facts.diameter_at_most = None if low == high else high
        for contender in ready:
            plan = contender.plan
            if facts.gamma is None and hasattr(contender.policy, "gamma"):
                facts.gamma = getattr(plan, "gamma", None)
            if facts.cliques is None and getattr(plan, "groups", None) is not None:
                facts.cliques = [[int(v) for v in group] for group in plan.groups]  # type: ignore[attr-defined]
            if facts.leaders is None and getattr(plan, "leaders", None) is not None:
                facts.leaders = [int(v) for v in plan.leaders]  # type: ignore[attr-defined]
        key = repr(point.spec.network)
        if network.n_agents > DRAWN_AGENTS or network.n_edges > DRAWN_LINKS:
            _count_only(facts, network)
        elif key in seen:
            facts.edges_of = seen[key]
        else:
            seen[key] = str(point.index)
            facts.edges = [(int(u), int(v)) for u, v in network.edges()]
        described[str(point.index)] = facts
    return described


def _count_only(facts: NetworkFacts, network: Network) -> None:
    """What is worth keeping of a network that nobody can draw."""
    facts.edges_sha256 = hashlib.sha256(network.edges().astype("<i8").tobytes()).hexdigest()
    facts.n_cliques = None if facts.cliques is None else len(facts.cliques)
    facts.n_leaders = None if facts.leaders is None else len(facts.leaders)
    facts.cliques = facts.leaders = None


def describe_constants(spec: Spec, known: dict[str, dict[str, Constants]]) -> dict[str, dict[str, Constants]]:
    """The constants of every policy at every point, tuned ones as printed; nothing is worked out twice."""
    found = dict(known)
    for point in points(spec):
        if str(point.index) not in found and point.values.get(CONSTANT, PRINTED) == PRINTED:
            with one_blas_thread(), own_errors(spec):
                found[str(point.index)] = resolved_constants(spec, point, AT_HAND.at(point.spec, 0))
    return found


def slow_notices(spec: Spec) -> list[str]:
    """One line for every reason why policies run on the reference engine."""
    reasons: dict[str, dict[str, None]] = {}
    for point in points(spec):
        world = build_world(point.spec)
        for part in point.spec.policies:
            reason = compiled.why_not(build_policy(point.spec, part), world)
            if reason is not None:
                reasons.setdefault(reason, {})[part.label] = None
    return [
        f"{', '.join(labels)} {'runs' if len(labels) == 1 else 'run'} on the reference engine: {reason}"
        for reason, labels in reasons.items()
    ]
