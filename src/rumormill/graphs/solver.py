"""The exact solver, loaded only when asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rumormill.errors import SolverError
from rumormill.validate import positive


@dataclass(frozen=True)
class Answer:
    """The variables that are true in the best solution; a proven bound, None if time ran out before any."""

    chosen: tuple[int, ...]
    bound: float | None

    def at_least(self) -> int:
        """The bound of a count that was made small."""
        return 0 if self.bound is None else math.ceil(self.bound - 1e-6)


def cp_model() -> Any:
    """OR-Tools' constraint solver."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise SolverError("method='exact' needs OR-Tools: pip install 'rumormill[exact]'") from None
    return cp_model


def solve(model: Any, variables: Sequence[Any], hint: Iterable[int], time_limit: float) -> Answer:
    """Solve a model over 0/1 variables, starting from a known solution given as its true variables.

    One worker, so that the same question gets the same answer unless time runs out first.
    """
    known = set(hint)
    for i, variable in enumerate(variables):
        model.add_hint(variable, i in known)
    cp = cp_model()
    solver = cp.CpSolver()
    solver.parameters.max_time_in_seconds = positive("time_limit", time_limit)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    if status in (cp.OPTIMAL, cp.FEASIBLE):
        chosen = tuple(i for i, variable in enumerate(variables) if solver.boolean_value(variable))
        return Answer(chosen, float(solver.best_objective_bound))
    if status == cp.UNKNOWN:  # no time even to look at the hint: it still stands
        return Answer(tuple(sorted(known)), None)
    raise SolverError(f"the exact solver ended with status {solver.status_name(status)}; use method='greedy'")
