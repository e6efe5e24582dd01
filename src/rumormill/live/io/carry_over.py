"""What the nodes of a mesh have observed, as priors of its next revision: `rumormill mesh adopt --from`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rumormill.arms.objective import sign_of
from rumormill.errors import InputError
from rumormill.live.core.classes import WEIGHT
from rumormill.live.core.node_config import hop_budget, plan_part, seat_of, within
from rumormill.live.io.folder import LogRow, read_log_of
from rumormill.mesh.file import GamePart, Mesh, PriorPart, in_order_of
from rumormill.policies.learned_prior import learned_prior
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
        samples = {mesh.ids[node]: _samples(game, log) for node, log in logs.items() if node in mesh.ids}
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


def _samples(game: GamePart, log: Sequence[LogRow]) -> list[Sample]:
    """The observations of arms that are in the file."""
    place: dict[int | str, int] = {name: arm for arm, name in enumerate(game.arms)}
    place |= {arm: arm for arm in range(len(game.arms))}  # logged by number before arms could change
    return [
        (row.time, place[row.arm], row.reward) for row in log if _is_of(game, row.game) and row.arm in place
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
    return PriorPart(
        arms=game.arms,
        mean=made.mean,
        n=made.n,
        spread=made.spread,
        cap=earlier.cap,
        probe=earlier.probe,
        nodes=nodes,
    )
