"""What the nodes of a mesh have observed, as priors of its next revision: `rumormill mesh adopt --from`.

A prior from samples is what an agent of the policy knows that has taken them in (docs/semantics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from rumormill.arms.base import levelled, sign_of
from rumormill.errors import InputError
from rumormill.live.core.classes import WEIGHT
from rumormill.live.core.node_config import hop_budget, plan_part, seat_of, within
from rumormill.live.io.folder import LogRow, read_log_of
from rumormill.mesh.file import GamePart, Mesh, PriorPart, in_order_of
from rumormill.policies.base import Policy, Seat, policy_name
from rumormill.policies.message_passing_agent import Samples
from rumormill.policies.message_passing_policy import RobustPolicy
from rumormill.policies.prior import Prior
from rumormill.stats import winsorised
from rumormill.text import nearest, one_line

Sample = tuple[float, int, float]
"""(time, arm, reward) of an observation."""


def carry_over(mesh: Mesh, folders: Sequence[Path], only: str | None = None) -> list[str]:
    """Set the priors of the games of a mesh from what nodes have observed; a line about each game.

    A node gets what the nodes within γ hops of it, itself included, have observed of the arms of the file.

    - `mesh`: of the new revision, with links and plans.
    - `folders`: of nodes of this mesh, running or not; they are not changed.
    - `only`: the game, if not all.

    Raises InputError or DataError, before anything is set, if a folder or a game does not fit.
    """
    if only is not None and only not in mesh.games:
        raise InputError(f"{mesh.path} has no game {only!r}{nearest(only, mesh.games)}")
    logs: dict[str, list[LogRow]] = {}
    for folder in folders:
        node, log = read_log_of(mesh, folder)
        if node in logs:
            raise InputError(f"{folder} is of node {node!r}, as a folder before it: give one folder per node")
        logs[node] = log
    made, lines = [], []
    for game in mesh.file.games if only is None else [mesh.games[only]]:
        samples = {
            mesh.ids[node]: _samples(game, log, mesh.level(game, node))
            for node, log in logs.items()
            if node in mesh.ids
        }
        n = sum(map(len, samples.values()))
        if not n:
            continue
        made.append((game, _priors(mesh, game, samples)))
        left = sum(_is_of(game, row.game) for log in logs.values() for row in log) - n
        text = f"game {game.name}: a prior for {len(made[-1][1].nodes)} nodes from {n:,} observations"
        lines.append(text + f"; {left:,} of nodes or arms that are not in the file are left out" * (left > 0))
    if not made:
        which = "its games" if only is None else f"game {only!r}"
        raise InputError(f"there are no observations of arms of {which} in {', '.join(map(str, folders))}")
    for game, prior in made:
        game.prior = prior
    return lines


def _is_of(game: GamePart, name: str) -> bool:
    """Whether a name is that of the game, or of a class of it."""
    return name == game.name or (game.classes is not None and name.rpartition("/")[0] == game.name)


def _samples(game: GamePart, log: Sequence[LogRow], level: tuple[float, float]) -> list[Sample]:
    """The observations of arms that are in the file, as a node with this offset and scale takes them in."""
    place: dict[int | str, int] = {name: arm for arm, name in enumerate(game.arms)}
    place |= {arm: arm for arm in range(len(game.arms))}  # logged by number before arms could change
    return [
        (row.time, place[row.arm], levelled(row.reward, *level))
        for row in log
        if _is_of(game, row.game) and row.arm in place
    ]


def _priors(mesh: Mesh, game: GamePart, samples: dict[int, list[Sample]]) -> PriorPart:
    """The earlier prior of a game, with what the nodes have learned since."""
    earlier = game.prior or PriorPart(cap=WEIGHT if game.classes else None)
    sign, gamma, t = sign_of(game.objective), hop_budget(mesh, game), max(2, *map(len, samples.values()))
    nodes = {name: in_order_of(game, part) for name, part in earlier.nodes.items()}
    known = dict[Any, PriorPart]()
    for name in mesh.ids:
        near = within(mesh, name, gamma).intersection(samples)
        seat = seat_of(mesh, game, name, plan_part(mesh, game, name))
        key = near, seat.prior  # nodes with the same neighbourhood know the same
        if key not in known:
            news = [sample for node in sorted(near) for sample in samples[node]]
            news.sort(key=lambda sample: sample[0])
            if not news:
                continue
            try:
                found = learned_prior(mesh.live_policy(game), seat, [each[1:] for each in news], t).plain()
            except InputError as error:
                raise InputError(f"{mesh.path}: game {game.name!r}: {one_line(str(error))}") from None
            mean = [sign * value + 0.0 for value in found["mean"]]  # no -0.0
            known[key] = PriorPart(mean=mean, n=found["n"], spread=found.get("spread", []))
        nodes[name] = known[key]
    made = in_order_of(game, earlier)
    return replace(made, arms=game.arms, cap=earlier.cap, probe=earlier.probe, nodes=nodes)


# The lowest level at which a mean is asked for.
LOWEST = 0.1


def learned_prior(policy: Policy, seat: Seat, news: Sequence[tuple[int, float]], t: int) -> Prior:
    """The prior that an agent can pass on which has taken in these samples, at the level of round t.

    - `seat`: with the prior that the agent was born with, if any: it is kept for arms of which it knows more.
    - `news`: (arm, reward) of every sample, in order of time.

    Raises InputError if the policy takes no prior, or has no estimator to make one.
    """
    nothing = [0.0] * seat.n_arms
    policy.require_prior(Prior(mean=nothing, n=nothing, spread=nothing), seat.n_arms)
    if not isinstance(policy, RobustPolicy):
        raise InputError(f"{policy_name(policy)} has no estimator: write its prior into the file by hand")
    samples = Samples(policy, seat)
    samples.add_all([arm for arm, _ in news], [reward for _, reward in news])
    L = samples.L(t)
    mean = [_mean_at(samples.stream(arm), L) for arm in range(seat.n_arms)]
    n = [count if math.isfinite(each) else 0.0 for each, count in zip(mean, samples.counts, strict=True)]
    mean = [each if math.isfinite(each) else 0.0 for each in mean]
    spread = list(nothing)
    if policy.estimator.brings_index:
        for arm in range(seat.n_arms):
            values = np.array([reward for each, reward in news if each == arm])
            spread[arm] = float(winsorised(values).std(ddof=1)) if len(values) > 1 else 0.0
            n[arm] = n[arm] if len(values) > 1 else 0.0
    if samples.prior is not None and seat.prior is not None:
        samples.rows(t)  # drops what the samples contradict
        earlier: Any = seat.prior
        for arm, w in enumerate(samples.prior.state()["weights"]):
            if w > n[arm]:
                mean[arm], n[arm] = earlier.mean[arm], earlier.n[arm]
                spread[arm] = 0.0 if earlier.spread is None else earlier.spread[arm]
    return Prior(mean=mean, n=n, spread=spread if policy.estimator.brings_index else None)


def _mean_at(stream: Any, L: float) -> float:
    """The mean at the largest of L, L/2, L/4, ... at which it is defined; +inf if at none."""
    levels = [L]
    while levels[-1] / 2 > LOWEST:
        levels.append(levels[-1] / 2)
    found = math.inf
    for level in reversed(levels):  # levels must not decrease
        mean = float(stream.mean(level))
        found = mean if math.isfinite(mean) else found
    return found
