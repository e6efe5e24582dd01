"""The tables of measured speed in README.md, docs/live.md and docs/performance.md, as Markdown.

python -m scripts.speed_tables engine|live|draws
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scripts.bench import AVX2, in_own_process, processor

SCRIPTS = Path(__file__).resolve().parent
ER, BA = "ER(200, .7)", "BA(20000, 3)"
ENGINE: dict[str, Any] = {
    "Decentralized, all agents in reach": [ER, 1, 10_000, "decentralized"],
    "KMP": [ER, 1, 10_000, "kmp"],
    "Centralized": [ER, 1, 10_000, "centralized"],
    "20,000 agents, Barabási–Albert m = 3, T = 1,000": [BA, 1, 1_000, "decentralized"],
}
LIVE = ("choosing", "taking", "serving", "starting", "fifty", "large")


def run(*words: str) -> str:
    """What a script of this folder prints."""
    command = [sys.executable, str(SCRIPTS / words[0]), *words[1:]]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def engine() -> list[str]:
    """Seconds of one trial and against the bare loop of the same run; and compiled for Haswell."""
    found = {name: in_own_process(json.dumps(each)) for name, each in ENGINE.items()}
    narrow = {name: in_own_process(json.dumps(each), environment=AVX2) for name, each in ENGINE.items()}
    rows = [
        f"| {name} | {each['trial_s']:.2f} | {each['ratio_to_floor']:.2f} "
        f"| {narrow[name]['trial_s']:.2f} | {narrow[name]['ratio_to_floor']:.2f} |"
        for name, each in found.items()
    ]
    dense, dense_narrow = found[next(iter(ENGINE))], narrow[next(iter(ENGINE))]
    draws, slow = (200 * 10_000 / each["million_draws_per_s"] / 1e6 for each in (dense, dense_narrow))
    deliveries = f"{dense['deliveries_per_round'] / 1e4:.1f}·10⁸ deliveries ({processor()})"
    head = f"| 200 agents, Erdős–Rényi p = 0.7, T = 10,000: {deliveries} "
    rows.insert(3, f"| drawing the rewards, α-stable | {draws:.2f} | | {slow:.2f} | |")
    columns = "| s per trial | against the floor | s, compiled for AVX2 | against the floor, too |"
    return [head + columns, "|---|---|---|---|---|", *rows]


def draws() -> list[str]:
    """Millions of rewards a second of one thread."""
    found = json.loads(run("bench.py", "--one", '"draws"'))
    names = {
        "α-stable, α = 1.9": "alpha-stable",
        "Gaussian": "gaussian",
        "shifted Pareto": "pareto",
        "Student t": "student-t",
        "numpy's uniforms and exponentials alone, which a stable draw is made of": "floor",
    }
    rows = [f"| {name} | {found[key]:.0f} |" for name, key in names.items()]
    return ["| | million a second |", "|---|---|", *rows]


def live() -> list[str]:
    """What a node takes: memory, time to answer, time to start."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for only in LIVE:
            out = Path(folder) / f"{only}.json"
            run("bench_live.py", "--only", only, "--out", str(out))
            found |= json.loads(out.read_text(encoding="utf-8"))
    f = {name: f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}" for name, value in found.items()}
    rows = {
        "choose in process, K = 10": (
            f"{f['choose_us']} µs (99th percentile {f['choose_p99_us']} µs)",
            "50 µs",
        ),
        "samples of others taken in, per second of processor": (f["samples_per_s"], "20,000"),
        "choose over HTTP at 500 requests a second, 99th percentile": (
            f"{f['http_p99_ms']} ms (median {f['http_p50_ms']} ms); "
            f"a server that does nothing {f['bare_http_p99_ms']} ms",
            "5 ms",
        ),
        "observe over HTTP, on disk, 99th percentile": (
            f"{f['http_observe_p99_ms']} ms (median {f['http_observe_p50_ms']} ms); "
            f"a page written to this disk {f['bare_disk_p99_ms']} ms",
            "",
        ),
        "memory of a node": (f"{f['rss_mb']} MB; {f['start_rss_mb']} MB with a million samples", "80 MB"),
        "from start to ready with a million samples": (
            f"{f['start_s']} s, {f['start_ratio_to_python_with_numpy']} times Python with NumPy",
            "1 s",
        ),
        "fifty nodes (γ = 2, Barabási–Albert m = 2, ten choices a second each)": (
            f"{f['fifty_choices_per_s']} choices a second, {f['fifty_cores']} cores in all, "
            f"{f['fifty_rss_mb']} MB each",
            "1 core",
        ),
        "one of 200 nodes that retains 100,000 items of each: memory": (f"{f['large_rss_mb']} MB", "120 MB"),
        "the same: start, stop": (f"{f['large_start_s']} s, {f['large_stop_s']} s", "2 s, 3 s"),
        "the same, while a neighbour fetches all: choose over HTTP, 99th percentile": (
            f"{f['large_choose_p99_ms']} ms (median {f['large_choose_p50_ms']} ms)",
            "10 ms",
        ),
    }
    return [
        "| what | measured | goal |",
        "|---|---|---|",
        *(f"| {name} | {measured} | {goal} |" for name, (measured, goal) in rows.items()),
    ]


if __name__ == "__main__":
    print("\n".join({"engine": engine, "live": live, "draws": draws}[sys.argv[1]]()))
