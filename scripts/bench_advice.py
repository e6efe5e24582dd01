"""What advice costs: processor time and memory on logs of the size that people have.

python scripts/bench_advice.py                   # 50 agents, 6 arms, 34,400 rows of a wide log
python scripts/bench_advice.py --rows 1000000    # so many rows of a long log: 100 agents, 5 arms
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from rumormill.advice.advise import advise
from rumormill.advice.reading.log import read_log

AGENTS, ARMS, SLICES = 50, 6, 688


def wide_log(path: Path) -> Path:
    """Round-trip times of clients to mirrors, one row per client and slice."""
    rng = np.random.default_rng(5)
    away = rng.random((AGENTS, 1, 2)) - rng.random((1, ARMS, 2))
    base = 0.03 + 0.4 * np.linalg.norm(away, axis=2)
    values = base * np.exp(0.12 * rng.standard_normal((SLICES, AGENTS, ARMS)))
    values += 0.008 * rng.pareto(1.6, values.shape)
    columns = {"time": np.repeat(np.arange(SLICES), AGENTS), "client": np.tile(np.arange(AGENTS), SLICES)}
    columns |= {f"mirror{k}": values[:, :, k].ravel() for k in range(ARMS)}
    pl.DataFrame(columns).write_csv(path)
    return path


def long_log(path: Path, rows: int) -> Path:
    """A row per decision of a hundred agents, only the arm chosen, at random; costs with Pareto tails."""
    rng = np.random.default_rng(3)
    rounds = rows // 100
    arm = rng.integers(5, size=100 * rounds)
    cost = np.array([1.0, 1.2, 1.5, 2.0, 3.0])[arm] * (1 + rng.pareto(1.8, len(arm)))
    columns = {"round": np.repeat(np.arange(rounds), 100), "agent": np.tile(np.arange(100), rounds)}
    pl.DataFrame({**columns, "arm": arm, "cost": cost.round(4)}).write_csv(path)
    return path


def write_log(path: Path, rows: int | None) -> None:
    """The log, written in a process of its own: its memory is none of the advice's."""
    given = (wide_log, (path,)) if rows is None else (long_log, (path, rows))
    writer = multiprocessing.get_context("spawn").Process(target=given[0], args=given[1])
    writer.start()
    writer.join()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int)
    rows = arguments.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_log(path, rows)
        before, wall = time.process_time(), time.monotonic()
        log = read_log(path, objective="minimise")
        read = time.process_time() - before
        advice = advise(log)
        used, spent = time.process_time() - before, time.monotonic() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{len(log.value):,} values: {advice.chosen}")
    print(f"reading {read:.1f} s, all {used:.1f} s of processor time ({spent:.1f} s), peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
