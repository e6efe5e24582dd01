"""What a run records beside its results: networks, games, resolved and tuned constants, engine notices."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from rumormill.engine import Contender, compiled
from rumormill.experiments.plan import ExperimentPlan, SweepPoint
from rumormill.experiments.run.cache import NETWORK_CACHE, PreparedNetwork, contenders, one_blas_thread
from rumormill.experiments.run.manifest import NetworkFacts
from rumormill.experiments.spec.building import CONSTANT, PRINTED, THEORY, n_choosing
from rumormill.experiments.spec.errors import own_errors
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network

if TYPE_CHECKING:
    import polars as pl

    from rumormill.arms import RewardSource

# A picture of more shows nothing, and springs take minutes to lay it out.
DRAWN_AGENTS, DRAWN_LINKS = 2_000, 100_000


def describe_networks(plan: ExperimentPlan) -> dict[str, NetworkFacts]:
    """The network of trial 0 at every point: enough to draw it with its cliques and leaders."""
    seen: dict[str, str] = {}
    described: dict[str, NetworkFacts] = {}
    for point in plan.points:
        if point.values.get(CONSTANT, PRINTED) != PRINTED:  # the same networks again
            continue
        with one_blas_thread(), own_errors(plan.spec):
            ready = contenders(point, 0)
        network = ready[0].network
        facts = _facts(network, ready)
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


def _facts(network: Network, ready: list[Contender]) -> NetworkFacts:
    """Size and diameter; reach, cliques and leaders of the first policy that has them."""
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
    return facts


def _count_only(facts: NetworkFacts, network: Network) -> None:
    """Keep checksum and counts of a network that is too large to draw."""
    facts.edges_sha256 = hashlib.sha256(network.edges().astype("<i8").tobytes()).hexdigest()
    facts.n_cliques = None if facts.cliques is None else len(facts.cliques)
    facts.n_leaders = None if facts.leaders is None else len(facts.leaders)
    facts.cliques = facts.leaders = None


def describe_constants(
    plan: ExperimentPlan, known: dict[str, dict[str, Constants]]
) -> dict[str, dict[str, Constants]]:
    """The constants of every policy at every point, tuned ones as printed; those known are kept."""
    found = dict(known)
    for point in plan.points:
        if str(point.index) not in found and point.values.get(CONSTANT, PRINTED) == PRINTED:
            with one_blas_thread(), own_errors(plan.spec):
                found[str(point.index)] = resolved_constants(point, NETWORK_CACHE.at(point, 0))
    return found


def slow_notices(plan: ExperimentPlan) -> list[str]:
    """One line for every reason why policies run on the reference engine."""
    reasons: dict[str, dict[str, None]] = {}
    for point in plan.points:
        for part in point.spec.policies:
            reason = compiled.unsupported_reason(point.policy(part), point.world)
            if reason is not None:
                reasons.setdefault(reason, {})[part.label] = None
    return [
        f"{', '.join(labels)} {'runs' if len(labels) == 1 else 'run'} on the reference engine: {reason}"
        for reason, labels in reasons.items()
    ]


GAMES = "games.parquet"
"""One row per sweep point, trial and arm: its mean and gap, the moment bounds of all arms, agents and γ."""

Constants = dict[str, str | int | float]


def game_note(source: RewardSource, n_agents: int, gamma: int | None) -> str:
    """The game of a trial, as a note beside the rows of its cell."""
    moments = source.moments()
    return json.dumps(
        {
            "mean": [float(mean) for mean in source.means],
            "gap": [float(gap) for gap in source.gaps],
            "eps": moments.eps,
            "u": moments.u,
            "rho": moments.rho,
            "agents": n_agents,
            "gamma": gamma,
        }
    )


def gamma_of(plans: list[Any]) -> int | None:
    """The reach of messages in a trial: the farthest of all policies."""
    found = [gamma for plan in plans if (gamma := getattr(plan, "gamma", None)) is not None]
    return max(found) if found else None


def game_rows(values: dict[str, Any], trial: int, note: str) -> list[dict[str, Any]]:
    """The rows of one cell."""
    game = json.loads(note)
    arms = zip(game.pop("mean"), game.pop("gap"), strict=True)
    return [
        {**values, "trial": trial, "arm": arm, "mean": mean, "gap": gap, **game}
        for arm, (mean, gap) in enumerate(arms)
    ]


def resolved_constants(point: SweepPoint, prepared: PreparedNetwork) -> dict[str, Constants]:
    """By policy, the constants of its index in the first trial of a sweep point."""
    moments = point.bandit(0).moments()
    found: dict[str, Constants] = {}
    for part in point.spec.policies:
        ready = prepared.contender(point, part)
        gamma = getattr(ready.plan, "gamma", None)
        found[part.label] = {
            **ready.policy.constants(moments),
            **({} if gamma is None else {"gamma": int(gamma)}),
            **getattr(ready.plan, "ways", {}),  # how what it needs was found: exactly, by search, ...
        }
    return found


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """The table of all games."""
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)


SLACK = 1.25


def best_constants(spec: Spec, frame: pl.DataFrame) -> dict[tuple[Any, ...], float]:
    """By policy and sweep point the best value; policies without a knob have none.

    The mean decides, not the median: a value that loses one trial in ten is a bad one. Too small a constant
    loses a trial now and then, which a few trials that choose may not see, and too large a one costs a little
    in all of them: so the largest value counts whose mean is within SLACK of the least.
    """
    import polars as pl

    assert spec.tune is not None
    choosing, place = n_choosing(spec.tune, spec.size.trials), ["policy", *spec.sweep]
    best = (
        frame.filter(
            (pl.col("trial") < choosing)
            & (pl.col("t") == pl.col("t").max())
            & ~pl.col(CONSTANT).is_in([PRINTED, THEORY])
        )
        .with_columns(pl.col(CONSTANT).cast(pl.Float64))
        .group_by(*place, CONSTANT)
        .agg(pl.col("regret").mean())
        .filter(pl.col("regret") <= SLACK * pl.col("regret").min().over(place))
        .group_by(*place)
        .agg(pl.col(CONSTANT).max())
    )
    return {tuple(where): value for *where, value in best.select(*place, CONSTANT).iter_rows()}
