"""The log as a table [slot, agent, arm] that policies can be replayed on, in its own order.

A slot is a round: every agent decides once. Where agents kept a common clock, slots are the times of the log;
else they are made so that an agent decides about once in each.

Cells that were not recorded (30 % lost, or only the chosen arm is known) are filled from the same agent and
arm, with values recorded about the same time. Within such a neighbourhood what was recorded stands for what
was not, which is inverse-propensity weighting with the propensity taken as constant there: it is right where
the choice of the arm depended on agent, time and past rewards, not on something hidden that also moved
the reward. An agent that hardly tried an arm cannot be replayed so; see `unsupported`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.reading.log import Log
from rumormill.errors import DataError
from rumormill.text import plural

Array = NDArray[np.float64]
Kind = Literal["full", "partial", "chosen"]

MOST_ROUNDS, LEAST_ROUNDS = 2_000, 40
MOST_CELLS = 1_000_000
# Agents keep a common clock if so many of them decide at one time, on average.
ALIGNED = 0.5
# Fewer values than this of an arm say too little about it to stand in for others.
LEAST_OF_ARM = 5
# Filled from so many values about the same time, to either side.
NEAR_SHARE, LEAST_NEAR = 0.05, 3


@dataclass(frozen=True)
class Table:
    """Rounds to replay. `values` has no holes; `recorded` says what is not filled."""

    log: Log
    slot: NDArray[np.int32]
    """The round of every line of the log."""
    values: Array
    recorded: NDArray[np.bool_]
    kind: Kind
    notes: tuple[str, ...] = ()

    @property
    def rounds(self) -> int:
        return len(self.values)

    @property
    def n_agents(self) -> int:
        return int(self.values.shape[1])


def lay_out(log: Log, rng: np.random.Generator) -> Table:
    """The table of a log. Agents with hardly any values are left out, and said."""
    log, notes = _with_enough(log)
    slot, rounds, kind = _slots(log)
    most = max(LEAST_ROUNDS, min(MOST_ROUNDS, MOST_CELLS // (log.n_agents * log.n_arms)))
    if rounds > most:
        slot = (slot.astype(np.int64) * most // rounds).astype(np.int32)
        notes.append(f"{rounds:,} times were joined into {most:,} rounds for the replay.")
        rounds = most
    if rounds < LEAST_ROUNDS:
        raise DataError(
            f"the log has {plural(rounds, 'round')} (times at which agents decide): too few to learn and "
            f"to check on, give at least {LEAST_ROUNDS}"
        )
    values = np.full((rounds, log.n_agents, log.n_arms), np.nan)
    cells = (slot.astype(np.int64) * log.n_agents + log.agent) * log.n_arms + log.arm
    values.ravel()[cells[::-1]] = log.value[::-1]  # the first of several in a cell stays
    recorded = ~np.isnan(values)
    return Table(log, slot, _filled(values, recorded, rng), recorded, kind, tuple(notes))


def unsupported(table: Table) -> NDArray[np.bool_]:
    """(agent, arm) pairs with too few values to be replayed from their own."""
    return np.asarray(table.log.counts() < LEAST_OF_ARM)


def without_agents(table: Table, out: NDArray[np.bool_]) -> Table:
    """The table without some agents."""
    return replace(
        table,
        log=table.log.without_agents(out),
        slot=table.slot[~out[table.log.agent]],
        values=np.ascontiguousarray(table.values[:, ~out]),
        recorded=np.ascontiguousarray(table.recorded[:, ~out]),
    )


def borrowed(
    table: Table, weak: NDArray[np.bool_], group_of: NDArray[np.int64], rng: np.random.Generator
) -> Table:
    """The table with the cells of weak (agent, arm) pairs filled from agents of the same group."""
    values = table.values.copy()
    for v, k in np.argwhere(weak):
        near = np.flatnonzero(group_of == group_of[v])
        there = np.argwhere(table.recorded[:, near, k])
        if not len(there):
            continue
        donors = table.values[there[:, 0], near[there[:, 1]], k]
        holes = np.flatnonzero(~table.recorded[:, v, k])
        values[holes, v, k] = donors[_nearby(there[:, 0], holes, rng)]
    return replace(table, values=values)


# --- slots ----------------------------------------------------------------------------------------------


def _with_enough(log: Log) -> tuple[Log, list[str]]:
    if log.agents is None:
        return log, []
    counts = np.bincount(log.agent, minlength=log.n_agents)
    few = counts < LEAST_ROUNDS / 2
    if not few.any():
        return log, []
    if few.all():
        raise DataError(f"no agent has {LEAST_ROUNDS // 2} values or more: too few to learn from")
    return log.without_agents(few), [
        f"{plural(int(few.sum()), 'agent')} with fewer than {LEAST_ROUNDS // 2} values left out: "
        f"{', '.join(np.array(log.agents)[few][:5])}{', ...' if few.sum() > 5 else ''}."
    ]


def _slots(log: Log) -> tuple[NDArray[np.int32], int, Kind]:
    """The round of every line, how many rounds there are, and how much of them was recorded."""
    moment = np.concatenate([[0], np.cumsum(log.time[1:] != log.time[:-1])]).astype(np.int64)
    decision = np.unique(moment * log.n_agents + log.agent, return_counts=True)
    per_decision = float(decision[1].mean())
    kind: Kind = "full" if per_decision > log.n_arms - 0.01 else "partial"
    if per_decision < 1.05:
        kind = "chosen"
    if not log.timed and log.agents is not None:
        # Nobody kept the time: the n-th decision of every agent makes the n-th round.
        codes = log.agent if kind != "chosen" or not _balanced(log) else log.agent * log.n_arms + log.arm
        kind = "full" if kind == "chosen" and _balanced(log) else kind
        slot = _ranks(codes.astype(np.int64), moment)
        return slot, int(slot.max()) + 1, kind
    times = int(moment[-1]) + 1
    agent_of = decision[0] % log.n_agents
    if len(decision[0]) >= ALIGNED * times * log.n_agents:
        return moment.astype(np.int32), times, kind
    rounds = max(1, int(np.median(np.bincount(agent_of, minlength=log.n_agents))))
    return (moment * rounds // times).astype(np.int32), rounds, kind


def _balanced(log: Log) -> bool:
    counts = log.counts()
    return bool((counts == counts[:, :1]).all())


def _ranks(codes: NDArray[np.int64], moment: NDArray[np.int64]) -> NDArray[np.int32]:
    """Within every code, the number of different moments before this one."""
    order = np.lexsort((moment, codes))
    new_code = np.concatenate([[True], np.diff(codes[order]) != 0])
    new_moment = np.concatenate([[False], np.diff(moment[order]) != 0])
    steps = np.cumsum(new_moment & ~new_code)
    start = np.maximum.accumulate(np.where(new_code, steps, 0))
    ranks = np.empty(len(codes), dtype=np.int32)
    ranks[order] = steps - start
    return ranks


# --- holes ----------------------------------------------------------------------------------------------


def _filled(values: Array, recorded: NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """Holes filled from values of the same agent and arm recorded about the same time."""
    if recorded.all():
        return values
    filled = values.copy()
    for v, k in np.argwhere(~recorded.all(axis=0)):
        there, holes = np.flatnonzero(recorded[:, v, k]), np.flatnonzero(~recorded[:, v, k])
        if len(there):
            filled[holes, v, k] = values[there[_nearby(there, holes, rng)], v, k]
        else:  # borrowed from others later, or refused
            others = values[:, :, k][recorded[:, :, k]]
            filled[holes, v, k] = rng.choice(others, len(holes)) if len(others) else 0.0
    return filled


def _nearby(
    there: NDArray[np.int64], holes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For every hole the number of a recorded value about the same time, drawn at random."""
    wide = max(LEAST_NEAR, int(NEAR_SHARE * len(there)))
    low = np.clip(np.searchsorted(there, holes) - wide, 0, max(0, len(there) - 2 * wide))
    span = np.minimum(2 * wide, len(there) - low)
    picked: NDArray[np.int64] = low + (rng.random(len(holes)) * span).astype(np.int64)
    return picked
