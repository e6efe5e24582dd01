"""The readable truth: every message is an object, every agent a state machine."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.result import Trial
from rumormill.errors import ContractError
from rumormill.policies import Agent, Problem
from rumormill.protocol import Channel, Message

BLOCK = 64  # rounds of rewards held at a time


def play(
    problem: Problem,
    agents: Sequence[Agent],
    rewards: RewardStream,
    channel: Channel,
    checkpoints: NDArray[np.int64],
    *,
    keep_actions: bool = False,
    on_rounds: Callable[[int], None] = lambda rounds: None,
) -> Trial:
    """Drive the agents through one trial; `on_rounds` hears how many rounds were just played."""
    n_agents, n_arms, horizon = problem.n_agents, problem.n_arms, problem.horizon
    neighbours = [problem.network.neighbours(v).tolist() for v in range(n_agents)]
    gaps = problem.source.gaps
    pulls = np.zeros((n_agents, n_arms), dtype=np.int64)
    actions = np.empty((horizon if keep_actions else 0, n_agents), dtype=np.int64)
    agent_regret = np.empty((len(checkpoints), n_agents))
    sent = np.zeros((2, horizon + 1), dtype=np.int64)  # messages and bytes of each round

    next_checkpoint = 0
    for t in range(1, horizon + 1):
        row = (t - 1) % BLOCK
        if row == 0:
            block = rewards.block(t - 1, min(t - 1 + BLOCK, horizon))

        for v, agent in enumerate(agents):
            arm = _checked_arm(agent.choose(t), n_arms, v, t)
            reward = rewards.loc[arm] + rewards.scale[arm] * block[row, v, 0 if rewards.shared else arm]
            agent.observe(t, arm, float(reward))
            pulls[v, arm] += 1
            if keep_actions:
                actions[t - 1, v] = arm

        for v, agent in enumerate(agents):
            batch = checked_batch(agent.outgoing(t), v, t)
            sent[0, t] += len(batch) * len(neighbours[v])
            sent[1, t] += sum(message.wire_size for message in batch) * len(neighbours[v])
            for w in neighbours[v]:
                channel.send(t, v, w, batch)

        for v, agent in enumerate(agents):
            agent.receive(channel.deliver(t, v))

        if t == checkpoints[next_checkpoint]:
            agent_regret[next_checkpoint] = sum(pulls[:, arm] * gaps[arm] for arm in range(n_arms))
            next_checkpoint = min(next_checkpoint + 1, len(checkpoints) - 1)
        if row == BLOCK - 1 or t == horizon:
            on_rounds(row + 1)

    messages, wire_bytes = np.cumsum(sent, axis=1)[:, checkpoints]
    return Trial(agent_regret, messages, wire_bytes, actions if keep_actions else None)


def _checked_arm(arm: object, n_arms: int, v: int, t: int) -> int:
    try:
        index = operator.index(arm)  # type: ignore[arg-type]
    except TypeError:
        index = -1
    if not 0 <= index < n_arms:
        raise ContractError(f"agent {v} chose {arm!r} in round {t}: an arm is a whole number 0..{n_arms - 1}")
    return index


def checked_batch(batch: object, v: int, t: int) -> Sequence[Message]:
    """What an agent sent, if it is a list of messages."""
    if not isinstance(batch, list | tuple) or not all(isinstance(m, Message) for m in batch):
        raise ContractError(f"agent {v} sent {batch!r} in round {t}: outgoing() returns a list of Message")
    return batch
