"""`make bench`: how fast the compiled engine is, as ratios to a bare loop measured in the same run.

Every workload runs in a process of its own, so that its peak memory is its own. Times are CPU seconds of
one thread, the best of several repeats with floor and kernel in turn: other work on the machine changes
them little.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rumormill as rm
from rumormill.engine import Role, fast, root_seed, stream_seed
from rumormill.policies import Problem

K = 5
REPEATS = 5

NETWORKS: dict[str, Callable[[], rm.Network]] = {
    "ER(200, .7)": lambda: rm.Network.erdos_renyi(200, 0.7, rng=1),
    "BA(200, 5)": lambda: rm.Network.barabasi_albert(200, 5, rng=1),
    "ring(200)": lambda: rm.Network.ring(200),
    "snowball(500) of BA(10000, 4)": lambda: rm.Network.barabasi_albert(10_000, 4, rng=1).subgraph(
        500, rng=1
    ),
    "BA(200, 3)": lambda: rm.Network.barabasi_albert(200, 3, rng=1),
    "BA(20000, 3)": lambda: rm.Network.barabasi_albert(20_000, 3, rng=1),
    "ER(50, .3)": lambda: rm.Network.erdos_renyi(50, 0.3, rng=1),
}

POLICIES: dict[str, Callable[[int], Any]] = {
    "decentralized": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma, clique_filter=False),
    "clique filter": lambda gamma: rm.DecentralizedMPUCB(gamma=gamma),
    "centralized": lambda gamma: rm.CentralizedMPUCB(gamma=gamma),
    "kmp": lambda gamma: rm.KMPUCB(gamma=gamma),
    "consensus": lambda gamma: rm.ConsensusUCB(),
    "robust": lambda gamma: rm.RobustUCB(),
}

# (network, gamma, horizon, policy, goal on the ratio to the floor or None)
WORKLOADS: list[tuple[str, int, int, str, float | None]] = [
    ("ER(200, .7)", 1, 10_000, "decentralized", 1.5),
    ("ER(200, .7)", 1, 10_000, "kmp", 2.5),
    ("ER(200, .7)", 1, 10_000, "centralized", None),
    ("ER(200, .7)", 1, 10_000, "clique filter", None),
    ("ER(200, .7)", 1, 10_000, "consensus", None),
    ("ER(200, .7)", 1, 10_000, "robust", None),
    ("BA(200, 5)", 2, 10_000, "decentralized", None),
    ("BA(200, 5)", 2, 10_000, "kmp", None),
    ("ring(200)", 10, 10_000, "decentralized", None),
    ("ring(200)", 10, 10_000, "kmp", None),
    ("snowball(500) of BA(10000, 4)", 2, 2_000, "decentralized", None),
    ("snowball(500) of BA(10000, 4)", 2, 2_000, "kmp", None),
    ("BA(200, 3)", 1, 10_000, "decentralized", None),
    ("BA(20000, 3)", 1, 1_000, "decentralized", None),
    ("ER(50, .3)", 1, 1_000, "decentralized", None),
    ("ER(50, .3)", 1, 10_000, "decentralized", None),
    ("ER(50, .3)", 1, 100_000, "decentralized", None),
]


def bandit() -> rm.Bandit:
    means = np.random.default_rng(0).random(K)
    return rm.Bandit([rm.AlphaStable(alpha=1.9, loc=float(mean)) for mean in means])


def measure(network_name: str, gamma: int, horizon: int, policy_name: str) -> dict[str, float]:
    """One workload, in this process."""
    from rumormill.kernels.floor import floor_loop

    source, network, policy = bandit(), NETWORKS[network_name](), POLICIES[policy_name](gamma)
    problem, marks = Problem(source, network, horizon), np.array([horizon])
    started = time.thread_time()
    prepared = fast.Prepared(policy, network, policy.plan(network), K)
    prepare_s = time.thread_time() - started
    everybody = fast.Prepared(POLICIES["decentralized"](gamma), network, None, K).hearing
    deliveries = len(everybody.sources) * horizon

    # The floor: the same deliveries, with the arms and rewards of one round.
    seed = stream_seed(root_seed(7), 0, Role.REWARDS)
    xs = source.stream(seed, network.n_agents, 1).block(0, 1)[0, :, 0].copy()
    arms = np.where(np.arange(network.n_agents) % 7 == 0, 1, 0).astype(np.int32)
    n, total = np.ones((K, network.n_agents)), np.zeros((K, network.n_agents))
    needs = np.ones(network.n_agents)
    floor_rounds = max(1, min(horizon, int(2e7 / max(len(everybody.sources), 1))))
    floor_loop(1, everybody, arms, xs, needs, n, total)

    def floor() -> float:
        started = time.thread_time()
        floor_loop(floor_rounds, everybody, arms, xs, needs, n, total)
        return (time.thread_time() - started) * horizon / floor_rounds

    def trial(rounds: int) -> tuple[float, float]:
        kernel_s = draw_s = 0.0
        started = time.thread_time()
        run = fast.Run(prepared, problem, marks, False)
        kernel_s += time.thread_time() - started
        rewards = source.stream(seed, network.n_agents, horizon)
        step = max(64, 64 * (fast.rounds_per_block(prepared) // 64))
        for start in range(0, rounds, step):
            started = time.thread_time()
            draws = rewards.block(start, min(start + step, horizon))
            drawn = time.thread_time()
            run.advance(start + 1, draws, rewards)
            draw_s += drawn - started
            kernel_s += time.thread_time() - drawn
        return kernel_s, draw_s

    trial(min(horizon, 64))  # warm: compiled code loaded
    repeats = [(floor(), *trial(horizon)) for _ in range(REPEATS)]
    floor_s, kernel_s, draw_s = np.array(repeats).min(axis=0)
    pulls = network.n_agents * horizon
    return {
        "agents": network.n_agents,
        "deliveries_per_round": len(everybody.sources),
        "prepare_s": prepare_s,
        "trial_s": kernel_s,
        "ns_per_delivery": kernel_s / deliveries * 1e9,
        "floor_ns_per_delivery": floor_s / deliveries * 1e9,
        "ratio_to_floor": kernel_s / floor_s,
        "million_pulls_per_s": pulls / kernel_s / 1e6,
        "million_draws_per_s": pulls / draw_s / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def against_reference() -> dict[str, float]:
    """The same trial on both engines: ER(50, .3), T = 1000, γ half the diameter as in the paper."""
    source, network = bandit(), NETWORKS["ER(50, .3)"]()
    policy = POLICIES["decentralized"](network.resolve_gamma("half-diameter"))
    seconds = {}
    for engine, repeats in (("fast", 5), ("reference", 1)):
        rm.simulate(source, network, policy, horizon=20, rng=7, engine=engine, workers=1)
        best = np.inf
        for _ in range(repeats):
            started = time.thread_time()
            rm.simulate(source, network, policy, horizon=1000, rng=7, engine=engine, workers=1)
            best = min(best, time.thread_time() - started)
        seconds[engine] = best
    return {**{f"{k}_s": v for k, v in seconds.items()}, "ratio": seconds["reference"] / seconds["fast"]}


def start_up() -> dict[str, float]:
    """A fresh process with compiled code on disk: until the import is done, until the first trial is done."""
    code = (
        "import time; a = time.perf_counter(); import rumormill as rm; b = time.perf_counter();"
        "s = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)]);"
        "rm.simulate(s, rm.Network.ring(8), rm.KMPUCB(gamma=1), horizon=10, rng=1);"
        "c = time.perf_counter(); print(b - a, c - a)"
    )
    runs = [
        [
            float(x)
            for x in subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout.split()
        ]
        for _ in range(3)
    ]
    imported, first_trial = np.array(runs[1:]).min(axis=0)
    return {"import_s": imported, "first_trial_s": first_trial}


def in_own_process(call: str) -> dict[str, float]:
    out = subprocess.run(
        [sys.executable, __file__, "--one", call], capture_output=True, text=True, check=True, env=os.environ
    ).stdout
    result: dict[str, float] = json.loads(out)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="measure one workload and print JSON (used by the script itself)")
    parser.add_argument("--out", default="bench.json", help="where the numbers go")
    options = parser.parse_args()
    if options.one:
        call = json.loads(options.one)
        special = {"reference": against_reference, "start": start_up}
        print(json.dumps(special[call]() if isinstance(call, str) else measure(*call)))
        return

    rows = []
    print("CPU seconds of one thread, warm; floor = count + compare + add over the same deliveries\n")
    print(
        f"{'network':30} {'γ':>2} {'T':>6} {'policy':14} {'s/trial':>8} {'ns/deliv.':>9} {'floor':>6} "
        f"{'ratio':>6} {'goal':>5} {'Mpulls/s':>8} {'Mdraws/s':>8} {'MB':>5}"
    )
    for network, gamma, horizon, policy, goal in WORKLOADS:
        row = in_own_process(json.dumps([network, gamma, horizon, policy]))
        rows.append(
            {"network": network, "gamma": gamma, "horizon": horizon, "policy": policy, "goal": goal, **row}
        )
        print(
            f"{network:30} {gamma:2} {horizon:6} {policy:14} {row['trial_s']:8.3f} "
            f"{row['ns_per_delivery']:9.2f} "
            f"{row['floor_ns_per_delivery']:6.2f} {row['ratio_to_floor']:6.2f} {goal or '':>5} "
            f"{row['million_pulls_per_s']:8.2f} {row['million_draws_per_s']:8.1f} {row['peak_mb']:5.0f}",
            flush=True,
        )
    reference = in_own_process('"reference"')
    start = in_own_process('"start"')
    print(f"\nreference / fast on ER(50, .3), T = 1000: {reference['ratio']:.0f} (goal: 1000)")
    print(f"import {start['import_s']:.2f} s (goal 0.3)")
    print(f"first trial of a second process {start['first_trial_s']:.2f} s (goal 2)")
    Path(options.out).write_text(
        json.dumps({"workloads": rows, "reference": reference, "start": start}, indent=1)
    )
    print(f"numbers in {options.out}")


if __name__ == "__main__":
    main()
