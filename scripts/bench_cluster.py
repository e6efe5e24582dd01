"""What an executor costs beyond the work itself, and how it scales from one worker to two.

    python scripts/bench_cluster.py [--cells N]

Work that does nothing gives the cost of a task; the cells of a panel give the speed. Best of three, since the
machine may have other things to do; the cost of starting is left out by an untimed first run, but named.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import ray

from rumormill.engine.workers import Executor, Processes, Threads, Tick
from rumormill.experiments.run.cell import PlayCells, cells_of
from rumormill.experiments.run.cluster import Ray
from rumormill.experiments.spec.reading import at_scale, named_spec

TASKS = 500


def nothing(task: int, tick: Tick) -> int:
    """Work that costs nothing."""
    return task


def ignore(task: Any, outcome: Any) -> None:
    """Outcomes are not kept here."""


def best_of_three(executor: Executor, tasks: Any, work: Any) -> float:
    """Seconds by the clock."""
    executor.run(tasks[:4], work, ignore)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        executor.run(tasks, work, ignore)
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--cells", type=int, default=16)
    cells_wanted = words.parse_args().cells
    start = time.perf_counter()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    print(f"a Ray of its own starts in {time.perf_counter() - start:.1f} s")
    spec = at_scale(named_spec("fig1b"), "quick", trials=cells_wanted, horizon=2000)
    cells = cells_of(spec, 2)
    made = {"threads": Threads, "processes": Processes, "ray": Ray}
    for name, make in made.items():
        tasks = list(range(TASKS))
        cost = best_of_three(make(2), tasks, nothing) / TASKS
        one = best_of_three(make(1), cells, PlayCells(spec))
        two = best_of_three(make(2), cells, PlayCells(spec))
        print(
            f"{name}: {1e3 * cost:.2f} ms per empty task; {len(cells)} cells of fig1b take {one:.1f} s with "
            f"one worker, {two:.1f} s with two ({one / two:.2f} times as fast)"
        )
    ray.shutdown()


if __name__ == "__main__":
    main()
