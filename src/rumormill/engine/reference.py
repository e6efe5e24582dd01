"""The readable truth: every message is an object, every agent a state machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rumormill.engine.game import BLOCK, Game
from rumormill.engine.result import Trial


def play(
    game: Game,
    n_agents: int,
    gaps: NDArray[np.float64],
    horizon: int,
    checkpoints: NDArray[np.int64],
    *,
    keep_actions: bool = False,
    on_rounds: Callable[[int], None] = lambda rounds: None,
) -> Trial:
    """Play a game to its end; `on_rounds` hears how many rounds were just played."""
    n_arms = len(gaps)
    pulls = np.zeros((n_agents, n_arms + 1), dtype=np.int64)  # the last column, -1: rounds without a pull
    everyone = np.arange(n_agents)
    actions = np.empty((horizon if keep_actions else 0, n_agents), dtype=np.int64)
    agent_regret = np.empty((len(checkpoints), n_agents))
    totals = np.empty((2, len(checkpoints)), dtype=np.int64)  # messages and bytes so far
    present = np.empty(len(checkpoints), dtype=np.int64)
    messages = wire_bytes = next_checkpoint = 0
    for t in range(1, horizon + 1):
        played = game.play_round(t)
        pulls[everyone, played.arms] += 1
        if keep_actions:
            actions[t - 1] = played.arms
        messages += played.messages
        wire_bytes += played.wire_bytes
        if t == checkpoints[next_checkpoint]:
            agent_regret[next_checkpoint] = sum(pulls[:, arm] * gaps[arm] for arm in range(n_arms))
            totals[:, next_checkpoint] = messages, wire_bytes
            present[next_checkpoint] = t * n_agents - pulls[:, -1].sum()
            next_checkpoint = min(next_checkpoint + 1, len(checkpoints) - 1)
        if t % BLOCK == 0 or t == horizon:
            on_rounds((t - 1) % BLOCK + 1)
    return Trial(agent_regret, totals[0], totals[1], actions if keep_actions else None, present)
