"""The nodes of a mesh file in lock step; what each observed is in a folder, as a running node leaves it."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

from helpers.lockstep import Lockstep, Pay, RoundNode
from rumormill.live.core.node_config import node_config
from rumormill.live.core.records import Own
from rumormill.live.io.journal import Journal
from rumormill.mesh.file import Mesh


def _next(clock: Iterator[int]) -> float:
    return float(next(clock))


def play_rounds(mesh: Mesh, game: str, pay: Pay, rounds: int) -> list[list[int]]:
    """The arm of every node in every round, the first decisions of nodes with empty disks."""
    names = list(mesh.ids)
    number = {name: v for v, name in enumerate(names)}
    nodes = [RoundNode(node_config(mesh, name, epoch=1)) for name in names]
    linked = {number[name]: [number[other] for other in mesh.links[name]] for name in names}
    assert [mesh.ids[name] for name in names] == list(range(len(names)))
    step = Lockstep(nodes, linked, game)
    return [[arm for (arm,) in step.play_round(t, pay)] for t in range(1, rounds + 1)]


def play_mesh(mesh: Mesh, game: str, pay: Pay, rounds: int, folder: Path) -> list[Path]:
    """Play; the folders of the nodes."""
    played = play_rounds(mesh, game, pay, rounds)
    return [
        write_folder(
            mesh, game, name, [(arms[v], pay(v, t, arms[v])) for t, arms in enumerate(played, 1)], folder
        )
        for v, name in enumerate(mesh.ids)
    ]


def write_folder(mesh: Mesh, game: str, name: str, rows: list[tuple[int, float]], folder: Path) -> Path:
    """The folder of a node that observed these (arm, reward), one a second."""
    part = mesh.part(game)
    assert part is not None
    clock, written = itertools.count(), threading.Semaphore(0)
    owner = f"mesh {mesh.file.name}, node {name}"
    journal = Journal(folder / name, owner, fresh_epoch=lambda: 1, clock=functools.partial(_next, clock))
    journal.start(lambda n: written.release())
    for t, (arm, reward) in enumerate(rows, 1):
        journal.write([Own(game, t, arm, reward, t, part.arms[arm])])
        assert written.acquire(timeout=60)
    assert journal.close()
    return folder / name
