"""What was played, beside what came of it: the arms of every trial, and the constants as resolved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rumormill.experiments.run.sites import Site
from rumormill.experiments.spec.building import build_bandit
from rumormill.experiments.spec.reading import SweepPoint
from rumormill.experiments.spec.schema import Spec

if TYPE_CHECKING:
    import polars as pl

    from rumormill.arms import RewardSource

GAMES = "games.parquet"
"""One row per sweep point, trial and arm: its mean and gap, the moment bounds of all arms, agents and γ."""

Constants = dict[str, str | int | float]


def game_note(source: RewardSource, site: Site, gamma: int | None) -> str:
    """The game of a trial, as a note beside the rows of its cell."""
    moments = source.moments()
    return json.dumps(
        {
            "mean": [float(mean) for mean in source.means],
            "gap": [float(gap) for gap in source.gaps],
            "eps": moments.eps,
            "u": moments.u,
            "rho": moments.rho,
            "agents": site.network.n_agents,
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


def resolved_constants(spec: Spec, point: SweepPoint, site: Site) -> dict[str, Constants]:
    """By policy, the constants of its index in the first trial of a sweep point."""
    moments = build_bandit(point.spec, 0).moments()
    found: dict[str, Constants] = {}
    for part in point.spec.policies:
        ready = site.contender(point.spec, part)
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
