"""What the compiled engine asks of a layout, and what all layouts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.opening import Opening
from rumormill.engine.result import Trial
from rumormill.graphs import Network
from rumormill.kernels.state import Law, Output
from rumormill.protocol import World, wire_size

# Work between two looks at the clock and the keyboard: some milliseconds.
DELIVERIES_PER_BLOCK = 4_000_000
ROUNDS_PER_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Ground:
    """Where a policy is laid out."""

    network: Network
    n_arms: int
    world: World
    gamma: int | None
    """How many hops messages travel; None where the policy does not flood."""


class CompiledTrial(Protocol):
    """One trial of one policy, advanced block by block."""

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        """Play the rounds first, first + 1, ... for which draws are given."""

    def finish(self) -> Trial:
        """What the trial came to."""


class Layout(Protocol):
    """A policy laid out on a network for the kernels: worked out once, used by every trial."""

    @property
    def deliveries(self) -> int:
        """Messages that reach an agent, per round."""

    @property
    def rounds_per_block(self) -> int:
        """How many rounds to play between two looks at the outside world."""

    def start(self, opening: Opening) -> CompiledTrial:
        """A trial before its first round."""


def rounds_for(cost: int) -> int:
    """Rounds per block where a round costs so many deliveries."""
    return max(1, min(ROUNDS_PER_BLOCK, DELIVERIES_PER_BLOCK // max(cost, 1)))


def law_of(rewards: RewardStream) -> Law:
    """The rewards' law as the kernels take it."""
    return Law(rewards.shared, rewards.loc, rewards.scale)


def empty_output(n_agents: int, opening: Opening) -> Output:
    """Where a trial writes."""
    marks, rows = opening.marks, opening.horizon if opening.keep_actions else 0
    return Output(
        marks,
        np.empty((len(marks), n_agents)),
        np.empty((rows, n_agents), dtype=np.int64),
        np.zeros(len(marks), dtype=np.int64),
        np.zeros(len(marks), dtype=np.int64),
    )


def finished(
    output: Output,
    messages: NDArray[np.int64],
    rows_sent: int,
    agent_rounds: NDArray[np.int64] | None = None,
) -> Trial:
    """The trial that was written, with the messages it took."""
    actions = output.actions if len(output.actions) else None
    return Trial(output.agent_regret, messages, messages * wire_size(rows_sent), actions, agent_rounds)
