"""Very many agents on a sparse network: cut into parts, and a trial that several threads can play."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.compiled.reach import messages_sent
from rumormill.engine.compiled.state import finished, law_of
from rumormill.engine.result import Trial
from rumormill.engine.workers import Crew
from rumormill.kernels.partitioned import TILE, Part, Said, Told, crowd_kernel
from rumormill.kernels.state import Calendar, Hearing, Law, Output, Rules

if TYPE_CHECKING:
    from rumormill.engine.compiled.layout_messages import MessagePassingLayout

# From so many agents on several threads are worth their meeting at the end of every round; and from so many
# the sums no longer fit any cache, so that parts are quicker for one thread too (measured).
MANY_AGENTS, HUGE_CROWD = 1 << 15, 1 << 19
# Agents in a part: the sums of one arm take a megabyte, twice.
PART_AGENTS = 1 << 16
# More parts than threads, so that a thread that is held up does not hold up the others.
PARTS_PER_THREAD = 2


class CrowdTrial:
    """The arrays of one trial. However many threads play it, every agent adds in the same order."""

    def __init__(
        self, layout: MessagePassingLayout, rules: Rules, output: Output, crew: Crew | None = None
    ) -> None:
        self.layout, self.rules, self.output, self.crew = layout, rules, output, crew
        n_agents, slots = layout.network.n_agents, layout.slots
        self.said = Said(
            arm=np.zeros((slots, n_agents), dtype=np.int32),
            x=np.zeros((slots, n_agents)),
            need=np.zeros((slots, n_agents)),
            power=np.zeros((slots, n_agents)),
        )
        told = (slots, rules.n_arms, n_agents) if rules.shares_rows else (1, 1, 1)
        self.told = Told(mean=np.zeros(told), row=np.zeros(told, dtype=np.int64))
        self.parts: list[Part] = []
        self.calendars: list[Calendar] = []
        self._cut()
        self.fewest = np.zeros((2, len(self.parts), rules.n_arms))
        self._mark = 0

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        law, numbers = law_of(rewards), range(len(self.parts))
        for row in range(len(draws)):

            def play(
                number: int, t: int = first + row, now: NDArray[np.float64] = draws[row : row + 1]
            ) -> None:
                self._play(number, t, now, law)

            if self.crew is None:
                for number in numbers:
                    play(number)
            else:
                self.crew.each(play, numbers)  # a round ends when all have finished it
            if self._mark < len(self.output.marks):
                self._mark += int(self.output.marks[self._mark] == first + row)

    def finish(self) -> Trial:
        layout, rules = self.layout, self.rules
        sent = np.cumsum(messages_sent(layout.network, layout.gamma, rules.horizon))[self.output.marks - 1]
        return finished(self.output, sent, rules.n_arms if rules.shares_rows else 0)

    def _play(self, number: int, first: int, draws: NDArray[np.float64], law: Law) -> None:
        part = self.parts[number]
        if self.rules.trims:
            self._reserve(number, len(draws) * (len(part.hearer) + part.n.shape[1]))
        crowd_kernel(self.rules.shares_rows)(
            first,
            self._mark,
            draws,
            law,
            self.rules,
            part,
            self.calendars[number],
            self.said,
            self.told,
            self.fewest,
            self.output,
        )

    def _reserve(self, number: int, worst: int) -> None:
        """Room for every sample of the coming rounds; pages that are never touched cost nothing."""
        calendar = self.calendars[number]
        used = int(calendar.spare[1])
        if used + worst <= len(calendar.x):
            return
        grown = {}
        for name in ("after", "place", "x"):
            old = getattr(calendar, name)
            grown[name] = np.empty(2 * used + 4 * worst, dtype=old.dtype)
            grown[name][:used] = old[:used]
        self.calendars[number] = calendar._replace(**grown)

    def _cut(self) -> None:
        """Parts of about equal work: deliveries, and a decision between all arms for every agent."""
        layout, rules = self.layout, self.rules
        least = 1 if self.crew is None else PARTS_PER_THREAD * self.crew.threads
        count = max(-(-layout.network.n_agents // PART_AGENTS), least)
        work = np.cumsum(layout.heard + 1 + rules.n_arms)
        cuts = np.searchsorted(work, work[-1] * np.arange(1, count) / count)
        ends = np.unique([0, *cuts.tolist(), layout.network.n_agents]).tolist()
        shape = (rules.n_arms, TILE)
        for number, (low, high) in enumerate(itertools.pairwise(ends)):
            ptr, origin, hearer = heard_by(layout.hearing, low, high)
            size = (rules.n_arms, high - low)
            rows = size if rules.shares_rows else (1, 1)
            self.parts.append(
                Part(
                    number=number,
                    low=low,
                    ptr=ptr,
                    origin=origin,
                    hearer=hearer,
                    n=np.zeros(size),
                    total=np.zeros(size),
                    heard=np.zeros(rows, dtype=np.int64),
                    heard_hop=np.zeros(rows, dtype=np.int32),
                    pulls=np.zeros((high - low, rules.n_arms), dtype=np.int64),
                    mean=np.zeros(shape),
                    counts=np.ones(shape),
                    power=np.zeros(TILE),
                    best=np.zeros(TILE),
                    action=np.zeros(TILE, dtype=np.int32),
                    sure_x=np.full(rules.n_arms, -1.0),
                )
            )
            self.calendars.append(
                Calendar(
                    head=np.full(rules.horizon + 2 if rules.trims else 1, -1, dtype=np.int32),
                    after=np.zeros(0, dtype=np.int32),
                    place=np.zeros(0, dtype=np.int64),
                    x=np.zeros(0),
                    spare=np.array([-1, 0], dtype=np.int64),
                )
            )


def heard_by(
    hearing: Hearing, low: int, high: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """What agents low .. high - 1 hear: where hops begin, and pairs (origin, agent less low) by origin."""
    origins, hearers, ptr = [], [], [0]
    for hop in range(hearing.gamma):
        begin, end = hearing.ptr[hop, 0], hearing.ptr[hop, -1]
        hearer = hearing.hearers[begin:end]
        place = np.flatnonzero((hearer >= low) & (hearer < high))
        origins.append((np.searchsorted(hearing.ptr[hop], place + begin, side="right") - 1).astype(np.int32))
        hearers.append(hearer[place] - np.int32(low))
        ptr.append(ptr[-1] + len(place))
    none = np.zeros(0, dtype=np.int32)
    return np.array(ptr), np.concatenate([none, *origins]), np.concatenate([none, *hearers])
