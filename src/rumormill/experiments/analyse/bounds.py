"""The theory's bounds for a run: one game of every sweep point, held against what was measured in it.

Bounds are about one bandit on one network, and most runs draw both anew in every trial. So the game is that
of trial 0, and what is measured is its regret in that trial; where all trials play the same game, it is the
mean over all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.experiments.analyse import views
from rumormill.experiments.run.cell import CellPlayer, axis_types
from rumormill.experiments.spec.building import build_bandit, build_policy, is_fresh
from rumormill.theory import Bound, LowerBound, lower_bound, regret_bound

if TYPE_CHECKING:
    from rumormill.arms import RewardSource
    from rumormill.experiments.run.store import RunFolder
    from rumormill.experiments.spec.reading import Point as SpecPoint

# A bound is smooth: so many rounds draw it as well as all.
ROUNDS_DRAWN = 32
UNCOVERED = "NOT COVERED"


@dataclass(frozen=True)
class PolicyBounds:
    """What theory says about one policy in one game, and its regret there."""

    policy: str
    rounds: NDArray[np.int64]
    regret: NDArray[np.float64]
    """Measured, at `rounds`."""
    corrected: tuple[Bound, ...]
    """At some of the rounds, the last of all among them."""
    printed: Bound
    """At the last round."""

    @property
    def measured(self) -> float:
        return float(self.regret[-1])

    @property
    def at_end(self) -> Bound:
        """The corrected bound at the last round."""
        return self.corrected[-1]

    @property
    def covered(self) -> bool:
        """Whether the bound's assumptions hold; else it is a formula, not a promise."""
        return UNCOVERED not in self.at_end.assumptions

    def drawn(self) -> tuple[list[int], list[float]]:
        """Rounds and values to draw: nothing where the bound exceeds what regret can be."""
        if self.at_end.vacuous:
            return [], []
        kept = [bound for bound in self.corrected if not bound.vacuous]
        return [bound.horizon for bound in kept], [bound.value for bound in kept]


@dataclass(frozen=True)
class GameBounds:
    """One sweep point: its game, the lower bound, and the bounds of all policies."""

    point: views.Point
    worst_per_round: float
    """The regret of a round in which everyone pulls the worst arm: M times the largest gap."""
    lower: LowerBound | None
    reason: str
    """Why there is no lower bound."""
    policies: tuple[PolicyBounds, ...]


@dataclass(frozen=True)
class RunBounds:
    """The bounds of a run. `one_game`: all trials of a sweep point share bandit and network."""

    games: tuple[GameBounds, ...]
    horizon: int
    one_game: bool


def run_bounds(run: RunFolder) -> RunBounds:
    """Work out the bounds of every sweep point that has its first trial done."""
    spec = run.spec
    player = CellPlayer(spec, jobs=1)
    one_game = spec.arms.means != "uniform" and not is_fresh(spec.network)
    types = axis_types(spec)
    games = []
    for at in player.points:
        point = {axis: types[axis](value) for axis, value in at.values.items()}
        if one_game or 0 in views.part(run, run.policies[0], point)["trial"]:
            games.append(_game(run, player, at, point, one_game))
    if not games:
        raise InputError(
            f"{run.path} has no first trial finished, and bounds are about its game: run it again to go on"
        )
    return RunBounds(tuple(games), views.horizon(run), one_game)


def _game(
    run: RunFolder, player: CellPlayer, at: SpecPoint, point: views.Point, one_game: bool
) -> GameBounds:
    bandit = build_bandit(at.spec, 0)
    site, contenders = player.prepare(at, 0)
    lower, reason = _lower(bandit)
    policies = []
    for form, contender in zip(at.spec.policies, contenders, strict=True):
        frame = views.part(run, form.label, point)
        rounds, regret = views.curves(frame if one_game else frame.filter(frame["trial"] == 0))
        # The contender's own policy may carry its plan as a setting; the bound should name what was asked.
        game = (bandit, site.network, build_policy(form))
        corrected = [regret_bound(*game, int(t), plan=contender.plan) for t in _some(rounds, bandit.n_arms)]
        printed = regret_bound(*game, int(rounds[-1]), "printed", plan=contender.plan)
        policies.append(PolicyBounds(form.label, rounds, regret.mean(axis=0), tuple(corrected), printed))
    worst = site.network.n_agents * float(bandit.gaps.max())
    return GameBounds(point, worst, lower, reason, tuple(policies))


def _some(rounds: NDArray[np.int64], n_arms: int) -> NDArray[np.int64]:
    """A few of the rounds, even on a logarithmic axis, without the first K: there the arms are fixed."""
    later = rounds[rounds > n_arms]
    if not len(later):
        return rounds[-1:]
    wanted = np.geomspace(later[0], later[-1], ROUNDS_DRAWN)
    return np.unique(np.append(later[np.searchsorted(later, wanted).clip(max=len(later) - 1)], later[-1]))


def _lower(bandit: RewardSource) -> tuple[LowerBound | None, str]:
    try:
        found = lower_bound(bandit)
    except InputError as error:
        return None, str(error)
    if found.coefficient == 0:
        return None, "no arm's law can have so large a mean as the best one's, within its family"
    return found, ""


# --- rows -----------------------------------------------------------------------------------------------


def bound_rows(found: RunBounds) -> list[dict[str, Any]]:
    """One row per sweep point and policy: the bounds at the last round beside the measurement."""
    return [
        {
            **game.point,
            "policy": each.policy,
            "measured": each.measured,
            "corrected": each.at_end.value,
            "ratio": each.at_end.value / each.measured if each.measured > 0 else math.inf,
            "printed": each.printed.value,
            "dominant": each.at_end.dominant,
            "vacuous": each.at_end.vacuous,
            "covered": each.covered,
            "assumptions": each.at_end.assumptions,
        }
        for game in found.games
        for each in game.policies
    ]


def lower_rows(found: RunBounds) -> list[dict[str, Any]]:
    """One row per sweep point: the coefficient of ln t, its value at the last round, the most possible."""
    rows = []
    for game in found.games:
        row: dict[str, Any] = {**game.point, "coefficient": None, "at_end": None}
        row |= {"most_possible": game.worst_per_round * found.horizon, "family": game.reason}
        if game.lower is not None:
            families = dict.fromkeys(term.family for term in game.lower.arms)
            row |= {
                "coefficient": game.lower.coefficient,
                "at_end": game.lower.at(found.horizon),
                "family": ", ".join(families),
            }
        rows.append(row)
    return rows
