"""What people wait for: first games, own policies on the reference engine, small runs, many cells.

    python scripts/bench_waits.py                        # this tree; about two minutes
    python scripts/bench_waits.py --against COMMIT       # both in turns, with the ratios
    python scripts/bench_waits.py --only "own policies"

CPU seconds of the process and of those it started, the best of several turns. But for first games compiled
code is on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rumormill as rm

HERE = Path(__file__).resolve()
PULLS = 150, 50
"""Rounds and agents."""


def cpu() -> float:
    """CPU seconds so far, those of finished children included."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """The least CPU seconds of several calls."""
    seconds = []
    for _ in range(repeats):
        started = cpu()
        call()
        seconds.append(cpu() - started)
    return min(seconds)


class Stub:
    """An agent that pulls one arm after the other, tells its neighbours and does not listen."""

    def __init__(self, seat: rm.Seat) -> None:
        self.agent, self.n_arms, self.told = seat.agent, seat.n_arms, [rm.Message(0, 0, 0, 0.0)]

    def choose(self, t: int) -> int:
        return (t - 1) % self.n_arms

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.told = [rm.Message(self.agent, t, arm, reward)]

    def outgoing(self, t: int) -> list[rm.Message]:
        return self.told

    def receive(self, messages: Any) -> None:
        """Nothing is learnt."""


def own_policies() -> dict[str, float]:
    """µs a pull on the reference engine, ER(50, .3), five arms."""
    warnings.simplefilter("ignore")
    means = np.random.default_rng(0).random(5).tolist()
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in means])
    rounds, agents = PULLS
    network = rm.Network.erdos_renyi(agents, 0.3, rng=1)
    policies: dict[str, Any] = {"stub": Stub}
    for gamma in (1, 2, 3):
        unfiltered = rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False)
        policies |= {f"Decentralized, γ = {gamma}": unfiltered, f"KMP, γ = {gamma}": rm.KMPUCB(gamma=gamma)}
    found = {}
    for name, policy in policies.items():

        def play(policy: Any = policy) -> None:
            rm.simulate(bandit, network, policy, horizon=rounds, rng=7, engine="reference", workers=1)

        found[f"µs a pull, {name}"] = 1e6 * best_of(3, play) / (rounds * agents)
    return found


SPEC = """
name = "waits"
seed = 1
network = { kind = "ring", n = 8 }
arms = { law = "gaussian", K = 3 }
policies = [{ type = "kmp", gamma = 1 }, { type = "robust" }, { type = "decentralized", gamma = 1 }]
"""
SMALL = SPEC.replace("seed", "horizon = 100\ntrials = 200\nseed") + '[sweep]\n"arms.scale" = [0.5, 1.0]\n'
MANY = SPEC.replace("seed", "horizon = 50\ncheckpoints = 5\ntrials = 2000\nseed")


def small_run() -> dict[str, float]:
    """`rumormill run` of a spec with 400 cells, figures and page included."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small.toml").write_text(SMALL)

        def command(out: str) -> None:
            words = [sys.executable, "-m", "rumormill", "run", "small.toml", "--out", out]
            subprocess.run(words, cwd=folder, check=True, capture_output=True)

        command("compiled")
        return {
            "CPU s, `rumormill run`, 400 cells": best_of(2, lambda: command(tempfile.mkdtemp(dir=folder)))
        }


def many_cells() -> dict[str, float]:
    """What 2,000 small cells cost beyond playing them, and looking at them again."""
    from rumormill.experiments.run.runner import run
    from rumormill.experiments.spec.reading import parse_spec

    with tempfile.TemporaryDirectory() as folder:
        run(parse_spec(MANY.replace("2000", "10")), Path(folder, "compiled"))
        started = cpu()
        done = run(parse_spec(MANY), Path(folder, "run"))
        played = cpu() - started
        Path(folder, "run", "results.parquet").unlink()
        assert done.manifest.timings is not None
        return {
            "ms a cell beyond its kernels, 2,000 cells": 0.5 * (played - done.manifest.timings.kernel_s),
            "CPU s, the table made again from 2,000 cells": best_of(
                1, lambda: run(parse_spec(MANY), Path(folder, "run"))
            ),
            "files of 2,000 cells": len(list(Path(folder, "run", "parts").iterdir())),
        }


def second_comparison() -> dict[str, float]:
    """ms of `rm.compare` on a network that was used before, two trials of ten rounds included."""
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in (0.1, 0.5, 0.9)])
    network = rm.Network.erdos_renyi(50, 0.3, rng=1)
    kinds = rm.KMPUCB, rm.DecentralizedMPUCB, rm.CentralizedMPUCB
    policies = [*(kind(gamma=2) for kind in kinds), rm.RobustUCB()]

    def again() -> None:
        rm.compare(bandit, network, policies, horizon=10, trials=2, rng=1, workers=1)

    again()
    return {"ms, a second `rm.compare` of four policies": 1e3 * best_of(10, again)}


FIRST_GAMES = {
    "trimmed": ("rm.KMPUCB(gamma=1)", ""),
    "clipped": ("rm.DecentralizedMPUCB(gamma=1, estimator=rm.ClippedMean())", ""),
    "median of means": ("rm.DecentralizedMPUCB(gamma=1, estimator=rm.MedianOfMeans())", ""),
    "quiet": ("rm.KMPUCB(gamma=1, quiet=0.5)", ""),
    "losses": ("rm.KMPUCB(gamma=1)", "channel=rm.Imperfect(p=0.9)"),
    "rm.Default()": ("rm.Default()", ""),
}
FIRST_GAME = """
import rumormill as rm
bandit = rm.Bandit([rm.Gaussian(loc=mean) for mean in (0.1, 0.5, 0.9)])
rm.simulate(bandit, rm.Network.ring(8), POLICY, horizon=50, rng=1, engine="fast", OPTIONS)
"""


def first_games() -> dict[str, float]:
    """CPU seconds of the first game of a machine: nothing is compiled yet."""
    found = {}
    for name, (policy, options) in FIRST_GAMES.items():
        source = FIRST_GAME.replace("POLICY", policy).replace("OPTIONS", options)
        with tempfile.TemporaryDirectory() as folder:
            place = {**os.environ, "NUMBA_CACHE_DIR": folder}

            def play(source: str = source, place: dict[str, str] = place) -> None:
                subprocess.run([sys.executable, "-c", source], check=True, env=place)

            found[f"CPU s, first game, {name}"] = best_of(1, play)
    return found


MEASURED: dict[str, Callable[[], dict[str, float]]] = {
    "own policies": own_policies,
    "first games": first_games,
    "small run": small_run,
    "many cells": many_cells,
    "second comparison": second_comparison,
}


def measured(name: str, tree: Path) -> dict[str, float]:
    """One measurement with the sources of a tree, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, str(HERE), "--one", name]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--one", help="one measurement in this process, as JSON (used by the script itself)")
    parser.add_argument("--against", metavar="COMMIT", help="measure another commit in turns")
    parser.add_argument("--only", default="", help="only measurements whose name contains this")
    parser.add_argument("--turns", type=int, default=2, help="how often the trees take turns")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(MEASURED[options.one]()))
        return
    names = [name for name in MEASURED if options.only in name]
    here = HERE.parent.parent
    if options.against is None:
        for name in names:
            for what, value in measured(name, here).items():
                print(f"{what:60} {value:10.4g}", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "tree"
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", str(there), options.against], check=True, cwd=here
        )
        try:
            print(f"| | {options.against} | this tree | new / old |\n|---|---|---|---|")
            for name in names:
                turns = [(measured(name, there), measured(name, here)) for _ in range(options.turns)]
                for what in turns[0][1]:
                    old, new = (min(turn[i].get(what, np.inf) for turn in turns) for i in (0, 1))
                    print(f"| {what} | {old:.4g} | {new:.4g} | {new / old:.2f} |", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(there)], check=True, cwd=here)


if __name__ == "__main__":
    main()
