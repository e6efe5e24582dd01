"""`python scripts/scale.py`: time and memory of one trial from a hundred agents to a million.

Every cell is a process of its own, so that its peak memory is its own. Times are processor seconds of all
threads. A cell that would take too long is played for its first rounds only, and says so: a round costs the
same from some hundred rounds on. What is refused is in the table in its own words. With `--write` the
table goes to docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import rumormill as rm
from rumormill.errors import RumormillError

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- scale: begin -->", "<!-- scale: end -->"
PATIENCE = 3_600.0
# Processor seconds after which a cell has played enough.
MOST_CPU = 30.0

Cell = tuple[str, int, int, int, int, str, int]
# (policy, agents, rounds, arms, gamma, estimator, rounds that are played at most): BA(agents, 3).
CELLS: list[Cell] = [
    *[("decentralized", m, 1_000, 5, 1, "trimmed", 1_000) for m in (100, 1_000, 10_000, 100_000)],
    *[("kmp", m, 1_000, 5, 1, "trimmed", 1_000) for m in (100, 1_000, 10_000)],
    ("kmp", 100_000, 1_000, 5, 1, "trimmed", 300),
    ("decentralized", 1_000_000, 1_000, 5, 1, "trimmed", 64),
    ("kmp", 1_000_000, 1_000, 5, 1, "trimmed", 64),
    ("decentralized", 100, 10_000, 5, 1, "trimmed", 10_000),
    ("decentralized", 100, 100_000, 5, 1, "trimmed", 100_000),
    ("decentralized", 100, 1_000_000, 5, 1, "trimmed", 200_000),
    ("kmp", 100, 100_000, 5, 1, "trimmed", 100_000),
    *[("decentralized", 1_000, 2_000, k, 1, "trimmed", 2_000) for k in (2, 30)],
    ("decentralized", 1_000, 2_000, 1_000, 1, "trimmed", 1_200),
    *[("kmp", 1_000, 2_000, k, 1, "trimmed", 2_000) for k in (2, 30)],
    ("kmp", 1_000, 2_000, 1_000, 1, "trimmed", 1_200),
    ("kmp", 1_000_000, 2_000, 1_000, 1, "trimmed", 64),
    *[("decentralized", 1_000, 1_000, 5, g, "trimmed", 1_000) for g in (2, 4, 10)],
    *[("kmp", 1_000, 1_000, 5, g, "trimmed", 1_000) for g in (2, 4, 10)],
    ("decentralized", 100, 1_000, 5, 1, "empirical", 1_000),
    ("decentralized", 10_000, 1_000, 5, 1, "empirical", 1_000),
    *[
        ("decentralized", agents, rounds, 5, 1, estimator, rounds)
        for estimator in ("clipped", "median-of-means", "catoni", "catoni slack=0.02")
        for agents, rounds in ((100, 1_000), (1_000, 1_000), (100, 10_000))
    ],
    ("decentralized", 100_000, 100_000, 5, 1, "median-of-means", 64),
]


class Enough(Exception):
    """So many rounds are enough."""


def measure(
    policy: str, agents: int, rounds: int, arms: int, gamma: int, estimator: str, played: int
) -> dict[str, Any]:
    """One cell in this process."""
    name, *settings = estimator.split()
    table: dict[str, Any] = {"type": name, **{k: float(v) for k, v in (each.split("=") for each in settings)}}
    given: dict[str, Any] = {"type": policy, "gamma": gamma, "estimator": table}
    if policy == "decentralized":
        given["clique_filter"] = False
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=k / arms) for k in range(arms)])
    started = time.process_time()
    network = rm.Network.barabasi_albert(agents, 3, rng=1)
    network_s = time.process_time() - started
    rm.simulate(bandit, rm.Network.ring(5), given, horizon=arms + 2, rng=1)  # compiled code loaded
    seen: list[tuple[int, float]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, time.process_time()))
        if done >= played or time.process_time() - started > MOST_CPU:
            raise Enough

    started = time.process_time()
    try:
        rm.simulate(bandit, network, given, horizon=rounds, rng=7, progress=progress)
    except Enough:
        pass
    except RumormillError as refusal:
        return {"refused": str(refusal), "network_s": network_s}
    spent = time.process_time() - started
    half = [each for each in seen if each[0] <= seen[-1][0] // 2] or seen[:1]
    late = max(1, seen[-1][0] - half[-1][0])
    return {
        "network_s": network_s,
        "rounds": seen[-1][0],
        "cpu_s": spent,
        "late_ms": 1e3 * (seen[-1][1] - half[-1][1]) / late if len(seen) > 1 else 1e3 * spent / seen[-1][0],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_own_process(cell: Cell) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", json.dumps(cell)]
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    except subprocess.TimeoutExpired:
        return {"refused": f"given up after {PATIENCE:.0f} s"}
    found: dict[str, Any] = json.loads(out)
    return found


def line(cell: Cell, found: dict[str, Any]) -> str:
    policy, agents, rounds, arms, gamma, estimator, _ = cell
    head = f"| {policy} | {agents:,} | {rounds:,} | {arms:,} | {gamma} | {estimator} |"
    if "refused" in found:
        return f"{head} refused: {found['refused']} | | | |"
    done = "" if found["rounds"] == rounds else f" ({found['rounds']:,} rounds)"
    return (
        f"{head} {found['cpu_s']:.2f}{done} | {found['late_ms']:.3g} | "
        f"{1e6 * found['late_ms'] / agents:.3g} | {found['peak_mb']:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="measure one cell and print JSON (used by the script itself)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    parser.add_argument("--only", default="", help="only cells whose line contains this")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*json.loads(options.one))))
        return
    lines = [
        "| policy | agents | rounds | arms | γ | mean | CPU s | ms a round, late | ns an agent | peak MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for cell in CELLS:
        if options.only in " ".join(map(str, cell)):
            lines.append(line(cell, in_own_process(cell)))
            print(lines[-1], flush=True)
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        table = "\n".join([BEGIN, "", *lines, "", END])
        PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
