"""Recorded rewards as games: a log's reward table, resampled for every trial.

Trial i replays a bootstrap resample of the rounds, all agents and arms of a round together (blocks of rounds
with `remembers = true`). The true means are those of the whole log; regret is against the best common arm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from rumormill.advice.reading.columns import Columns
from rumormill.advice.reading.log import read_log
from rumormill.advice.replay import block_length, resampled
from rumormill.advice.reward_table import build_reward_table, for_agents, with_support
from rumormill.arms import Bandit, Empirical, Objective, Replay
from rumormill.errors import InputError


class LogTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a log is read: see `rm.read_log`."""

    file: str
    objective: Objective | None = None
    time: str | None = None
    agent: str | None = None
    arm: str | None = None
    reward: str | None = None
    arms: list[str] = []
    ignore: list[str] = []
    status: str | None = None
    ok: list[str] = []
    failure_cost: float | str | None = None
    remembers: bool = False
    """Rewards depend on the last ones: blocks of rounds are resampled."""


@dataclass(frozen=True, eq=False)
class LogGame:
    """A reward table [round, agent, arm] and its laws."""

    values: NDArray[np.float64] = field(repr=False)
    objective: Objective
    block: int
    sha256: str

    @property
    def rounds(self) -> int:
        return int(self.values.shape[0])

    @property
    def agents(self) -> int:
        return int(self.values.shape[1])

    @property
    def n_arms(self) -> int:
        return int(self.values.shape[2])

    def bandit(self) -> Bandit:
        """The arms as laws: the values of the whole log."""
        arms = [Empirical(self.values[:, :, k].ravel()) for k in range(self.n_arms)]
        return Bandit(arms, objective=self.objective)

    def replay(self, rng: np.random.Generator) -> Replay:
        """The rewards of one trial."""
        rows = resampled(self.rounds, self.block, 1.0, rng)
        return Replay(self.values[rows], self.values.mean(axis=(0, 1)), self.objective)


def read_log_game(table: Mapping[str, Any], folder: Path | None, agents: int) -> LogGame:
    """The game of a log; one without agents is read by so many agents, each from another place."""
    try:
        given = msgspec.convert(table, LogTable, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(str(error).replace("`", "")) from None
    path = Path(given.file) if folder is None else folder / given.file
    roles = (given.time, given.agent, given.arm, given.reward)
    columns = Columns(*roles, tuple(given.arms), tuple(given.ignore), given.status, tuple(given.ok))
    cost: Any = given.failure_cost
    log = read_log(path, columns, objective=given.objective, failure_cost=cost)
    rng = np.random.default_rng(0)
    made, _, _ = with_support(build_reward_table(log, rng), False, rng)
    values = for_agents(made, agents, made.rounds // 2, rng)
    sha256 = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
    block = block_length(len(values)) if given.remembers else 1
    return LogGame(values, log.objective, block, f"{sha256} {block}")
