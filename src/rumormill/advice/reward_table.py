"""The log as a reward table [round, agent, arm] on which policies are replayed, in its own order.

In a round every agent decides once. Where agents share a clock, rounds are the times of the log; else
rounds are made so that an agent decides about once in each.

Cells that were not recorded (30 % lost, or only the chosen arm is known) are imputed from the same agent and
arm, with values recorded at about the same time. That is inverse-propensity weighting with a propensity
that is constant in the neighbourhood: unbiased if the choice of the arm depended on agent, time and past
rewards, not on a hidden variable that also moved the reward. (agent, arm) pairs with too few values:
`with_support`.
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
# A log of more values than this is replayed in games of so many samples, all that agents may receive counted,
# but of so many rounds at least.
ORDINARY, MOST_SAMPLES, LEAST_SHORT = 50_000, 3_000_000, 200
# Agents share a clock if on average this share of them decides at a time.
ALIGNED = 0.5
# An agent with fewer values of an arm cannot be replayed from its own.
LEAST_OF_ARM = 5
# Imputed from this share of the values (at least so many) to either side in time.
NEAR_SHARE, LEAST_NEAR = 0.05, 3
# A log of which fewer agents than this share can be replayed is refused.
LEAST_LEFT = 0.5


@dataclass(frozen=True)
class RewardTable:
    """Rounds to replay. `values` is complete; `recorded` is False where a value was imputed."""

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


def build_reward_table(log: Log, rng: np.random.Generator) -> RewardTable:
    """The reward table of a log. Agents with hardly any values are left out, with a note."""
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
    values.ravel()[cells[::-1]] = log.value[::-1]  # of several values in a cell the first is kept
    recorded = ~np.isnan(values)
    return RewardTable(log, slot, _filled(values, recorded, rng), recorded, kind, tuple(notes))


def unsupported(table: RewardTable) -> NDArray[np.bool_]:
    """(agent, arm) pairs with fewer than `LEAST_OF_ARM` values."""
    return np.asarray(table.log.counts() < LEAST_OF_ARM)


def without_agents(table: RewardTable, out: NDArray[np.bool_]) -> RewardTable:
    """The table without some agents."""
    return replace(
        table,
        log=table.log.without_agents(out),
        slot=table.slot[~out[table.log.agent]],
        values=np.ascontiguousarray(table.values[:, ~out]),
        recorded=np.ascontiguousarray(table.recorded[:, ~out]),
    )


def borrowed(table: RewardTable, rng: np.random.Generator) -> RewardTable:
    """The table with missing cells imputed from all agents."""
    values, donors = table.values.copy(), []
    for k in range(table.log.n_arms):
        there = table.recorded[:, :, k]
        donors.append((np.nonzero(there)[0], table.values[:, :, k][there]))
    for v in range(table.n_agents):
        for k, (rounds, found) in enumerate(donors):
            gaps = np.flatnonzero(~table.recorded[:, v, k])
            if len(rounds):
                values[gaps, v, k] = found[_neighbours_in_time(rounds, gaps, rng)]
    return replace(table, values=values)


def with_support(
    table: RewardTable, differs: bool, rng: np.random.Generator
) -> tuple[RewardTable, bool, list[str]]:
    """Impute or leave out agents that hardly tried some arm; also whether agents were left out, and notes.

    Where the arms are the same for all agents (not `differs`), values of other agents are imputed.
    """
    weak = unsupported(table)
    if table.log.agents is not None and table.kind != "full" and not differs:
        # Few values of one agent, used repeatedly, would fix its luck: impute from all agents.
        table = borrowed(table, rng)
    if not weak.any():
        return table, False, []
    agents: NDArray[np.bool_] = np.asarray(weak.any(axis=1), dtype=np.bool_)
    names = np.array(table.log.agents or ("the log",))
    who = f"{', '.join(names[agents][:3])}{', ...' if agents.sum() > 3 else ''}"
    if not differs:
        note = (
            f"{plural(int(agents.sum()), 'agent')} ({who}) hardly tried some arms: what others got from "
            "them stands in, as the arms look the same for all."
        )
        return table, False, [note]
    if (~agents).sum() < max(2, LEAST_LEFT * len(agents)):
        raise DataError(
            f"{plural(int(agents.sum()), 'agent')} of {len(agents)} ({who}) hardly tried some arms, and the "
            "arms are not the same for all: the log cannot say what these agents would have got. Let every "
            "agent try every arm now and then, and record that"
        )
    note = (
        f"{plural(int(agents.sum()), 'agent')} ({who}) left out: they hardly tried some arms, and "
        "the arms are not the same for all."
    )
    return without_agents(table, agents), True, [note]


def shortened(table: RewardTable, n_agents: int) -> RewardTable:
    """The table of a large log, its rounds joined until a game of so many agents has `MOST_SAMPLES` samples.

    Every agent may hear of every pull. Of several recorded values in a cell the first is kept.
    """
    most = max(LEAST_SHORT, MOST_SAMPLES // n_agents**2)
    if len(table.log.value) <= ORDINARY or table.rounds <= most:
        return table
    ends = np.arange(1, most + 1) * table.rounds // most
    here = np.concatenate([[0], ends[:-1]])
    values, recorded = table.values[here], table.recorded[here]
    for _ in range(-(-table.rounds // most) - 1):
        here = np.minimum(here + 1, ends - 1)
        new = table.recorded[here] & ~recorded
        values[new], recorded[new] = table.values[here][new], True
    slot = np.searchsorted(ends, table.slot, side="right").astype(np.int32)
    note = (
        f"Of {len(table.log.value):,} values all were checked; games have {most:,} rounds instead of "
        f"{table.rounds:,}, and losses, gains and intervals are those of games of this length."
    )
    return replace(table, slot=slot, values=values, recorded=recorded, notes=(*table.notes, note))


def for_agents(table: RewardTable, n_agents: int, cut: int, rng: np.random.Generator) -> Array:
    """The values for so many agents; a log without agents is read by each from a random offset.

    Rounds before and after `cut` are kept apart.
    """
    if table.log.agents is not None:
        return table.values
    stream, parts = table.values[:, 0], []
    for part in (stream[:cut], stream[cut:]):
        shifts = rng.integers(len(part), size=n_agents)
        parts.append(part[(np.arange(len(part))[:, None] + shifts) % len(part)])
    return np.ascontiguousarray(np.concatenate(parts))


# --- rounds ---------------------------------------------------------------------------------------------


def _with_enough(log: Log) -> tuple[Log, list[str]]:
    """The log without agents that have hardly any values, and a note."""
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
        # No times: the n-th decision of every agent makes the n-th round.
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
    """Whether every agent has equally many values of all arms."""
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


# --- imputation -----------------------------------------------------------------------------------------


def _filled(values: Array, recorded: NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """Missing cells imputed from values of the same agent and arm recorded at about the same time."""
    if recorded.all():
        return values
    filled = values.copy()
    for v, k in np.argwhere(~recorded.all(axis=0)):
        there, gaps = np.flatnonzero(recorded[:, v, k]), np.flatnonzero(~recorded[:, v, k])
        if len(there):
            filled[gaps, v, k] = values[there[_neighbours_in_time(there, gaps, rng)], v, k]
        else:  # imputed from other agents later, or refused
            others = values[:, :, k][recorded[:, :, k]]
            filled[gaps, v, k] = rng.choice(others, len(gaps)) if len(others) else 0.0
    return filled


def _neighbours_in_time(
    there: NDArray[np.int64], gaps: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For every missing cell the number of a recorded value at about the same time, drawn at random."""
    wide = max(LEAST_NEAR, int(NEAR_SHARE * len(there)))
    low = np.clip(np.searchsorted(there, gaps) - wide, 0, max(0, len(there) - 2 * wide))
    span = np.minimum(2 * wide, len(there) - low)
    picked: NDArray[np.int64] = low + (rng.random(len(gaps)) * span).astype(np.int64)
    return picked
