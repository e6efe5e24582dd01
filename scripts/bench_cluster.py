"""What an executor costs beyond the work itself, and how it scales from one worker to two.

    python scripts/bench_cluster.py [--cells N]

Work that does nothing gives the cost of a task; the cells of a panel give the speed, by the clock and in
processor seconds inside of the cells, which count on a machine that has other things to do. Best of three;
starting is left out by an untimed first run, but named.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import ray

from rumormill.engine.workers import Executor, Tick
from rumormill.experiments.plan import plan_of
from rumormill.experiments.run.cell import CellOutcome, PlayCells
from rumormill.experiments.run.executors import EXECUTORS
from rumormill.experiments.spec.reading import at_scale, named_spec

TASKS = 500


def nothing(task: int, tick: Tick) -> int:
    """Work that costs nothing."""
    return task


def best_of_three(executor: Executor, tasks: Any, work: Any) -> tuple[float, float]:
    """Seconds by the clock, and processor seconds inside of the cells."""
    inside = [0.0]

    def keep(task: Any, outcome: Any) -> None:
        if isinstance(outcome, CellOutcome):
            inside[-1] += outcome.kernel_s + outcome.prepare_s

    executor.run(tasks[:4], work, keep)
    taken = []
    for _ in range(3):
        inside.append(0.0)
        start = time.perf_counter()
        executor.run(tasks, work, keep)
        taken.append(time.perf_counter() - start)
    return min(taken), min(inside[1:])


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--cells", type=int, default=8)
    cells_wanted = words.parse_args().cells
    start = time.perf_counter()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    print(f"a Ray of its own starts in {time.perf_counter() - start:.1f} s")
    spec = at_scale(named_spec("fig1b"), "quick", trials=cells_wanted, horizon=2000)
    cells = plan_of(spec).cells(2)
    for name, make in EXECUTORS.items():
        tasks = list(range(TASKS))
        cost = best_of_three(make(2), tasks, nothing)[0] / TASKS
        one, one_inside = best_of_three(make(1), cells, PlayCells(spec))
        two, two_inside = best_of_three(make(2), cells, PlayCells(spec))
        print(
            f"{name}: {1e3 * cost:.2f} ms per empty task; {len(cells)} cells of fig1b take {one:.1f} s with "
            f"one worker ({one_inside:.1f} processor seconds), {two:.1f} s with two ({two_inside:.1f})"
        )
    ray.shutdown()


if __name__ == "__main__":
    main()
