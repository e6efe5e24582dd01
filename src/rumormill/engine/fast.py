"""The compiled engine: the built-in policies on whole trials, with the reference engine's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.engine.hearing import build_hearing, messages_sent
from rumormill.engine.loops import ConsensusLoop, MessagePassingLoop, Output
from rumormill.engine.result import Trial
from rumormill.estimators import Catoni, EmpiricalMean, MedianOfMeans, TrimmedMean
from rumormill.graphs import Network
from rumormill.policies import (
    KMPUCB,
    CentralizedMPUCB,
    ConsensusUCB,
    DecentralizedMPUCB,
    Problem,
    RobustPolicy,
    RobustUCB,
)
from rumormill.protocol import wire_size

if TYPE_CHECKING:
    from rumormill.kernels.state import Hearing

FastPolicy = DecentralizedMPUCB | CentralizedMPUCB | KMPUCB | RobustUCB | ConsensusUCB

# Work between two looks at the clock and the keyboard: some milliseconds.
DELIVERIES_PER_BLOCK = 4_000_000
ROUNDS_PER_BLOCK = 256


def why_not(policy: Any) -> str | None:
    """Why the compiled engine cannot run a policy; None if it can."""
    if type(policy) not in FastPolicy.__args__:  # a subclass may do something else
        return "it runs the built-in policies only"
    if isinstance(policy, RobustPolicy):
        estimator = policy.estimator
        if type(estimator) not in (TrimmedMean, EmpiricalMean, MedianOfMeans, Catoni):
            return f"it does not know the estimator {type(estimator).__name__}"
        if isinstance(estimator, TrimmedMean) and estimator.variant != "exact":
            return f"it does not know the variant {estimator.variant!r} of the trimmed mean"
    return None


class Prepared:
    """A policy laid out on a network: worked out once, used by every trial."""

    def __init__(self, policy: FastPolicy, network: Network, plan: Any, n_arms: int) -> None:
        self.policy, self.network, self.plan = policy, network, plan
        self.gamma = policy.reach(network)
        n_agents = network.n_agents
        self.leader_of = np.full(n_agents, -1, dtype=np.int32)
        self.leader_distance = np.zeros(n_agents, dtype=np.int32)
        if isinstance(policy, ConsensusUCB):
            return
        learners = np.arange(n_agents, dtype=np.int32)
        group_of = None
        if isinstance(policy, CentralizedMPUCB):
            follows = plan.leader_of != np.arange(n_agents)
            self.leader_of[follows] = plan.leader_of[follows]
            self.leader_distance[follows] = plan.distance[follows]
            # A follower decides for itself only in rounds K < t <= distance.
            learners = np.flatnonzero(~follows | (self.leader_distance > n_arms)).astype(np.int32)
        elif isinstance(policy, DecentralizedMPUCB) and plan is not None:
            group_of = np.empty(n_agents, dtype=np.int64)
            for number, group in enumerate(plan):
                group_of[list(group)] = number
        self.hearing: Hearing = build_hearing(network, self.gamma, learners, group_of)

    def messages(self, horizon: int, marks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Messages sent up to each mark."""
        if isinstance(self.policy, ConsensusUCB):
            edges = int(self.network.degrees.sum())
            return np.asarray(marks * edges, dtype=np.int64)
        total: NDArray[np.int64] = np.cumsum(messages_sent(self.network, self.gamma, horizon))[marks - 1]
        return total

    @property
    def sends_rows(self) -> bool:
        return isinstance(self.policy, KMPUCB | ConsensusUCB)


class Run:
    """One trial of one policy, advanced block by block."""

    def __init__(
        self, prepared: Prepared, problem: Problem, marks: NDArray[np.int64], keep_actions: bool
    ) -> None:
        self.prepared, self.problem, self.keep_actions = prepared, problem, keep_actions
        rows, n_agents = problem.horizon if keep_actions else 0, problem.n_agents
        self.output = Output(
            marks, np.empty((len(marks), n_agents)), np.empty((rows, n_agents), dtype=np.int64)
        )
        policy = prepared.policy
        if isinstance(policy, ConsensusUCB):
            self.advance = ConsensusLoop(policy, prepared.plan, problem, self.output).advance
        else:
            leaders = prepared.leader_of, prepared.leader_distance
            loop = MessagePassingLoop(policy, prepared.hearing, *leaders, problem, self.output)
            self.advance = loop.advance

    def finish(self) -> Trial:
        """What the trial came to."""
        messages = self.prepared.messages(self.problem.horizon, self.output.marks)
        size = wire_size(self.problem.n_arms if self.prepared.sends_rows else 0)
        actions = self.output.actions if self.keep_actions else None
        return Trial(self.output.agent_regret, messages, messages * size, actions)


def rounds_per_block(prepared: Prepared) -> int:
    """How many rounds to play between two looks at the outside world."""
    if isinstance(prepared.policy, ConsensusUCB):
        deliveries = 10 * int(prepared.network.degrees.sum())
    else:
        deliveries = len(prepared.hearing.sources) + len(prepared.hearing.learners)
        if isinstance(prepared.policy.estimator, MedianOfMeans | Catoni):
            deliveries *= 16
    return max(1, min(ROUNDS_PER_BLOCK, DELIVERIES_PER_BLOCK // max(deliveries, 1)))
