"""Very many agents on a sparse network: partitions, and a trial that several threads can play."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.compiled.reach import messages_sent
from rumormill.engine.compiled.state import empty_calendar, finished, law_of, reserve
from rumormill.engine.result import Trial
from rumormill.engine.workers import ThreadPool
from rumormill.formulas import certain_size
from rumormill.graphs import Network
from rumormill.kernels.partitioned import TILE, Partition, Sent, partition_kernel
from rumormill.kernels.state import Output, RewardLaw, Rules, Sources, Trimming

# From so many agents on, several threads pay for their barrier at the end of every round; and from so many on
# the sums no longer fit any cache, so that partitions are faster for one thread too (measured).
MANY_AGENTS, HUGE_NETWORK = 1 << 15, 1 << 19
# Agents in a partition: the sums that expired samples are taken off are a few megabytes.
PART_AGENTS = 1 << 16
# More partitions than threads, so that a delayed thread does not delay the others.
PARTS_PER_THREAD = 2
# Samples of a rank from here on stay for sure up to the size of the last of them: these fit a small cache.
SURE_RANKS = 1 << 12


class PartitionedTrial:
    """The arrays of one trial. Every agent adds in the same order, however many threads play it."""

    def __init__(
        self,
        network: Network,
        gamma: int,
        sources: Sources,
        rules: Rules,
        output: Output,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        self.network, self.gamma, self.rules, self.output = network, gamma, rules, output
        self.thread_pool = thread_pool
        n_agents, slots, rows = network.n_agents, gamma + 1, rules.shares_rows
        shape = (slots, n_agents, rules.n_arms + 1) if rows else (1, 1, 1)
        n_sources = sources.ptr[:, -1] - sources.ptr[:, 0]
        self.sent = Sent(
            sources=sources,
            trimming=Trimming(rules.u, rules.p, rules.L),
            sure_x=sure_sizes(rules),
            arm=np.zeros((slots, n_agents), dtype=np.int32),
            x=np.zeros((slots, n_agents)),
            mean=np.zeros((slots, n_agents, rules.n_arms) if rows else shape),
            n=np.zeros(shape, dtype=np.int32),
            due=np.zeros(len(sources.ids) if rows else 1, dtype=np.int32),
        )
        self.sent.n[:, :, -1] = 1 + n_sources if rows else 0
        self.partitions = [
            empty_partition(low, high, rules) for low, high in itertools.pairwise(self._cuts(n_sources))
        ]
        self.calendars = [empty_calendar(rules) for _ in self.partitions]
        self._mark = 0

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        law, numbers = law_of(rewards), range(len(self.partitions))
        for t, now in enumerate(draws, first):
            play = partial(self._play, t, now, law)
            if self.thread_pool is None:
                for number in numbers:
                    play(number)
            else:  # a barrier: the next round begins when all have finished
                self.thread_pool.each(play, numbers)
            if self._mark < len(self.output.marks):
                self._mark += int(self.output.marks[self._mark] == t)

    def finish(self) -> Trial:
        rules = self.rules
        sent = np.cumsum(messages_sent(self.network, self.gamma, rules.horizon))[self.output.marks - 1]
        return finished(self.output, sent, rules.n_arms if rules.shares_rows else 0)

    def _play(self, t: int, draws: NDArray[np.float64], law: RewardLaw, number: int) -> None:
        rules, partition, calendar = self.rules, self.partitions[number], self.calendars[number]
        if rules.trims:
            low, size, ptr = partition.low, partition.n.shape[1], self.sent.sources.ptr
            used, worst = int(calendar.spare[1]), int(size + ptr[low + size - 1, -1] - ptr[low, 0])
            self.calendars[number] = calendar = reserve(calendar, used + worst, 2 * used + 4 * worst)
        play = partition_kernel(rules.shares_rows)
        play(t, self._mark, draws, law, rules, partition, calendar, self.sent, self.output)

    def _cuts(self, n_sources: NDArray[np.int64]) -> list[int]:
        """Limits of partitions of about equal work: deliveries, and a decision for every agent."""
        n_agents = self.network.n_agents
        least = 1 if self.thread_pool is None else PARTS_PER_THREAD * self.thread_pool.threads
        count = max(-(-n_agents // PART_AGENTS), least)
        work = np.cumsum(n_sources + 1 + self.rules.n_arms)
        cuts = np.searchsorted(work, work[-1] * np.arange(1, count) / count)
        limits: list[int] = np.unique([0, *cuts.tolist(), n_agents]).tolist()
        return limits


def empty_partition(low: int, high: int, rules: Rules) -> Partition:
    """The agents low .. high - 1 before the first round."""
    size, tile = (rules.n_arms, high - low), (rules.n_arms, TILE)
    rows = (TILE, rules.n_arms) if rules.shares_rows else (1, 1)
    return Partition(
        low=low,
        n=np.zeros(size),
        total=np.zeros(size),
        pulls=np.zeros((high - low, rules.n_arms), dtype=np.int64),
        mean=np.zeros(tile),
        counts=np.ones(tile),
        power=np.zeros(TILE),
        best=np.zeros(TILE),
        action=np.zeros(TILE, dtype=np.int32),
        row=np.zeros(rows, dtype=np.int64),
    )


def sure_sizes(rules: Rules) -> NDArray[np.float64]:
    """Up to which size a sample surely stays to the end, by its rank in a mean."""
    if not rules.trims:
        return np.full(1, np.inf)
    ranks: Any = np.arange(float(SURE_RANKS))
    return np.full(SURE_RANKS, certain_size(ranks, rules.u, rules.p, float(rules.L[-1])))
