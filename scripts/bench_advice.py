"""What advice costs: processor time and memory on two logs of the size that people have.

python scripts/bench_advice.py            # 50 agents, 6 arms, 34,400 rows of a wide log
python scripts/bench_advice.py --large    # 10⁷ rows of a long log, only the chosen arm
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from rumormill.advice.advise import advise
from rumormill.advice.reading.log import read_log

AGENTS, ARMS, SLICES = 50, 6, 688
ROWS = 10_000_000


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


def long_log(path: Path) -> Path:
    """A row per decision of a hundred agents, arms chosen at random."""
    rng = np.random.default_rng(6)
    arm = rng.integers(8, size=ROWS).astype(np.int16)
    pl.DataFrame(
        {
            "time": np.sort(rng.random(ROWS) * 1e6),
            "agent": rng.integers(100, size=ROWS).astype(np.int16),
            "arm": arm,
            "reward": (0.1 * arm + rng.standard_t(3, ROWS)).astype(np.float32),
        }
    ).write_csv(path)
    return path


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--large", action="store_true")
    large = arguments.parse_args().large
    with tempfile.TemporaryDirectory() as folder:
        path = (long_log if large else wide_log)(Path(folder) / "log.csv")
        before, wall = time.process_time(), time.monotonic()
        log = read_log(path, objective="maximise" if large else "minimise")
        read = time.process_time() - before
        advice = advise(log)
        used, spent = time.process_time() - before, time.monotonic() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(log.value):,} values: {advice.chosen}")
    print(f"reading {read:.1f} s, all {used:.1f} s of processor time ({spent:.1f} s), peak {peak:.2f} GB")


if __name__ == "__main__":
    main()
