"""`rumormill simulate`: a few policies on one network, without writing a spec."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from rumormill.cli.arguments import (
    Executor,
    ExecutorName,
    Jobs,
    Json,
    Seed,
    network_part,
    part_of_spec,
    split,
)
from rumormill.cli.printing import note
from rumormill.cli.results import conclude, play, present

POLICIES = ("kmp zeta=1", "decentralized zeta=1", "robust zeta=1")


def simulate(
    network: Annotated[
        str, typer.Option(help='A generator or file with settings: "erdos_renyi n=50 p=0.7".')
    ] = "erdos_renyi n=50 p=0.7",
    arms: Annotated[
        str, typer.Option(help='The law of the rewards: "alpha-stable alpha=1.9 K=5".')
    ] = "alpha-stable alpha=1.9 K=5",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help='A policy with settings: "kmp gamma=1 zeta=1", "my_module:Greedy rate=0.1"; repeatable.'
        ),
    ] = None,
    channel: Annotated[
        str, typer.Option(help="How messages get from one agent to the next; see `rumormill list channels`.")
    ] = "perfect",
    mesh: Annotated[
        Path | None,
        typer.Option(
            help="A mesh file, as `advise --write` makes it: its network, number of arms and policy; "
            "moments are those of the law."
        ),
    ] = None,
    horizon: Annotated[int, typer.Option(min=1, help="Rounds.")] = 1000,
    trials: Annotated[int, typer.Option(min=1, help="Trials.")] = 5,
    seed: Seed = 0,
    jobs: Jobs = None,
    executor: Executor = ExecutorName.threads,
    out: Annotated[Path | None, typer.Option(help="Keep the run in this folder, with a report.")] = None,
    json: Json = False,
) -> None:
    """Play a few policies without writing a spec."""
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.spec.reading import at_scale, decode

    table: dict[str, Any] = {
        "name": "simulate",
        "seed": seed,
        "horizon": horizon,
        "trials": trials,
        "network": network_part(split(network)),
        "arms": part_of_spec(split(arms), "law"),
        "channel": part_of_spec(split(channel), "type"),
        "policies": [part_of_spec(split(each), "type") for each in policy or POLICIES],
    }
    if mesh is not None:
        table |= _of_mesh(mesh, table["arms"], policy)
    ready = at_scale(decode(table, folder=str(Path.cwd())))
    if out is not None:
        conclude([play(ready, out, jobs, executor)], json, report=True)
        return
    with tempfile.TemporaryDirectory(prefix="rumormill-") as folder:
        present([summarise(play(ready, Path(folder), jobs, executor))], json, claims=False)


def _of_mesh(mesh: Path, arms: dict[str, Any], policies: list[str] | None) -> dict[str, Any]:
    """The parts of a spec that a mesh file has: its setting first, beside agents that never talk."""
    from rumormill.mesh.file import read_mesh

    game = read_mesh(mesh).file.games[0]
    # Without the moments, which are those of the recorded rewards: here the law says what they are.
    played = {**game.policy, "label": "the mesh"}
    if game.prior is not None:
        note("the prior of the mesh file is left out: it is about its own arms, not about this law")
    if game.offsets or game.scales:
        note("offsets and scales of the mesh file are left out: the agents of this law do not differ")
    others = [part_of_spec(split(each), "type") for each in policies or ("robust zeta=1",)]
    return {
        "network": {"kind": "mesh", "file": str(mesh)},
        "arms": {**arms, "K": len(game.arms)} if "means" not in arms else arms,
        "policies": [played, *others],
    }
