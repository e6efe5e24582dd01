"""Very many agents on a sparse network: partitions, and a trial that several threads can play."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.compiled.reach import messages_sent
from rumormill.engine.compiled.state import empty_calendar, finished, law_of, reserve
from rumormill.engine.result import Trial
from rumormill.engine.workers import ThreadPool
from rumormill.graphs import Network
from rumormill.kernels.partitioned import TILE, PackedRows, Partition, SentSamples, partition_kernel
from rumormill.kernels.state import Output, Reach, RewardLaw, Rules

# From so many agents on, several threads pay for their barrier at the end of every round; and from so many on
# the sums no longer fit any cache, so that partitions are faster for one thread too (measured).
MANY_AGENTS, HUGE_NETWORK = 1 << 15, 1 << 19
# Agents in a partition: the sums of one arm take a megabyte, twice.
PART_AGENTS = 1 << 16
# More partitions than threads, so that a delayed thread does not delay the others.
PARTS_PER_THREAD = 2


class PartitionedTrial:
    """The arrays of one trial. Every agent adds in the same order, however many threads play it."""

    def __init__(
        self,
        network: Network,
        gamma: int,
        reach: Reach,
        n_sources: NDArray[np.int64],
        rules: Rules,
        output: Output,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        self.network, self.gamma, self.rules, self.output = network, gamma, rules, output
        self.thread_pool = thread_pool
        n_agents, slots = network.n_agents, gamma + 1
        self.samples = SentSamples(
            arm=np.zeros((slots, n_agents), dtype=np.int32),
            x=np.zeros((slots, n_agents)),
            need=np.zeros((slots, n_agents)),
            power=np.zeros((slots, n_agents)),
        )
        rows = (slots, rules.n_arms, n_agents) if rules.shares_rows else (1, 1, 1)
        self.packed = PackedRows(mean=np.zeros(rows), row=np.zeros(rows, dtype=np.int64))
        self.partitions = [
            empty_partition(number, low, high, reach, rules)
            for number, (low, high) in enumerate(itertools.pairwise(self._cuts(n_sources)))
        ]
        self.calendars = [empty_calendar(rules) for _ in self.partitions]
        self.fewest = np.zeros((2, len(self.partitions), rules.n_arms))
        self._mark = 0

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        law, numbers = law_of(rewards), range(len(self.partitions))
        for row in range(len(draws)):

            def play(
                number: int, t: int = first + row, now: NDArray[np.float64] = draws[row : row + 1]
            ) -> None:
                self._play(number, t, now, law)

            if self.thread_pool is None:
                for number in numbers:
                    play(number)
            else:
                self.thread_pool.each(
                    play, numbers
                )  # a barrier: the next round begins when all have finished
            if self._mark < len(self.output.marks):
                self._mark += int(self.output.marks[self._mark] == first + row)

    def finish(self) -> Trial:
        rules = self.rules
        sent = np.cumsum(messages_sent(self.network, self.gamma, rules.horizon))[self.output.marks - 1]
        return finished(self.output, sent, rules.n_arms if rules.shares_rows else 0)

    def _play(self, number: int, first: int, draws: NDArray[np.float64], law: RewardLaw) -> None:
        partition = self.partitions[number]
        if self.rules.trims:
            calendar = self.calendars[number]
            used, worst = (
                int(calendar.spare[1]),
                len(draws) * (len(partition.receiver) + partition.n.shape[1]),
            )
            self.calendars[number] = reserve(calendar, used + worst, 2 * used + 4 * worst)
        partition_kernel(self.rules.shares_rows)(
            first,
            self._mark,
            draws,
            law,
            self.rules,
            partition,
            self.calendars[number],
            self.samples,
            self.packed,
            self.fewest,
            self.output,
        )

    def _cuts(self, n_sources: NDArray[np.int64]) -> list[int]:
        """Limits of partitions of about equal work: deliveries, and a decision for every agent."""
        n_agents = self.network.n_agents
        least = 1 if self.thread_pool is None else PARTS_PER_THREAD * self.thread_pool.threads
        count = max(-(-n_agents // PART_AGENTS), least)
        work = np.cumsum(n_sources + 1 + self.rules.n_arms)
        cuts = np.searchsorted(work, work[-1] * np.arange(1, count) / count)
        limits: list[int] = np.unique([0, *cuts.tolist(), n_agents]).tolist()
        return limits


def empty_partition(number: int, low: int, high: int, reach: Reach, rules: Rules) -> Partition:
    """The agents low .. high - 1 before the first round."""
    ptr, origin, receiver = partition_reach(reach, low, high)
    size, tile = (rules.n_arms, high - low), (rules.n_arms, TILE)
    rows = size if rules.shares_rows else (1, 1)
    return Partition(
        number=number,
        low=low,
        ptr=ptr,
        origin=origin,
        receiver=receiver,
        n=np.zeros(size),
        total=np.zeros(size),
        best_packed=np.zeros(rows, dtype=np.int64),
        received_hop=np.zeros(rows, dtype=np.int32),
        pulls=np.zeros((high - low, rules.n_arms), dtype=np.int64),
        mean=np.zeros(tile),
        counts=np.ones(tile),
        power=np.zeros(TILE),
        best=np.zeros(TILE),
        action=np.zeros(TILE, dtype=np.int32),
        sure_x=np.full(rules.n_arms, -1.0),
    )


def partition_reach(
    reach: Reach, low: int, high: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """What agents low .. high - 1 receive: where hops begin, and pairs (origin, agent less low) by origin."""
    origins, receivers, ptr = [], [], [0]
    for hop in range(reach.gamma):
        begin, end = reach.ptr[hop, 0], reach.ptr[hop, -1]
        receiver = reach.receivers[begin:end]
        place = np.flatnonzero((receiver >= low) & (receiver < high))
        origins.append((np.searchsorted(reach.ptr[hop], place + begin, side="right") - 1).astype(np.int32))
        receivers.append(receiver[place] - np.int32(low))
        ptr.append(ptr[-1] + len(place))
    none = np.zeros(0, dtype=np.int32)
    return np.array(ptr), np.concatenate([none, *origins]), np.concatenate([none, *receivers])
