"""Settings replayed on the recorded table in its own order, and on the logs that might have been.

A log is one of many that could have been recorded. Others come from a block bootstrap: time is cut into
blocks, and in place of each another is taken, all agents and arms together: from anywhere, or where the log
drifts from about the same time. What happens at once stays together, what follows stays in order, and a drift
stays where it was. Where nothing resembles what was before, a block is one round: a log of a hundred blocks
has few beginnings, and it is in the beginning that a group gets stuck. Every setting is played on the same
logs: differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rumormill.advice.settings import Setting
from rumormill.arms import Moments, Replay
from rumormill.arms.objective import Objective, sign_of
from rumormill.engine import Contender, play_trial, prepare
from rumormill.engine.workers import Threads, Tick, no_tick
from rumormill.graphs import Network
from rumormill.policies import Plan
from rumormill.seeds import stream_seed
from rumormill.stats.bootstrap import Interval
from rumormill.stats.winsorize import cell_means, moved_in

Array = NDArray[np.float64]
Actions = NDArray[np.int64]

# A first look takes so many other logs. The final takes more, each played so often: what the log leaves open
# is told from chance. Many values and messages leave less open and take longer: they get half as many.
LOOK, LOGS, TIMES = 8, 24, 2
LARGE = 1_000_000
# Blocks hold the cube root of the rounds, some more; in a log that drifts they come from a tenth around.
LEAST_BLOCK, NEAR = 5, 0.1
CONFIDENCE = 0.95
WORST = 0.5
DRIFT_SEGMENTS = 4


@dataclass(frozen=True)
class Replayed:
    """What a setting came to: loss per request against every agent's own best arm, by log and replay."""

    setting: Setting
    loss: Array
    """(logs, times), in the user's unit."""
    paid: Array
    """Mean realised outcome of the same replays, outermost values moved in."""
    messages: float
    wire_bytes: float
    actions: Actions = field(repr=False)
    """Those on the recorded order itself."""
    recorded: float
    """The loss in the recorded order itself."""

    @property
    def mean(self) -> float:
        return float(self.loss.mean())

    @property
    def score(self) -> float:
        """The mean over the worse half: what now and then gets stuck with a bad arm is no bargain.

        Agents alone play many games at once, so that the recorded order tells as much: the worse of both.
        """
        worst = float(np.sort(self.loss, axis=None)[-math.ceil(WORST * self.loss.size) :].mean())
        return worst if self.setting.cooperates else max(worst, self.recorded)


class Stage:
    """A table (or a part of it), its networks, and everything that was played on it.

    `remembers` says that rewards resemble the last ones. Outcomes count from round `count_from` on.
    `recorded` says how many values of every (agent, arm) were recorded and not filled in.
    """

    def __init__(
        self,
        values: Array,
        objective: Objective,
        networks: dict[str, Network],
        moments: Moments,
        group_of: NDArray[np.int64],
        *,
        drifts: bool,
        remembers: bool,
        count_from: int = 0,
        recorded: Array | None = None,
        seed: np.random.SeedSequence,
        jobs: int | None = None,
        on_play: Callable[[int], None] = lambda plays: None,
    ) -> None:
        self.values, self.objective, self.networks, self.moments = values, objective, networks, moments
        self.count_from = count_from
        self.recorded = np.full(values.shape[1:], len(values)) if recorded is None else recorded
        self.group_of, self.on_play, self._seed, self._jobs = group_of, on_play, seed, jobs
        self.drifts = drifts
        messages = 2 * len(values) * max(network.n_edges for network in networks.values())
        large = values.size + messages > LARGE
        self.look, self.logs = (LOOK // 2, LOGS // 2) if large else (LOOK, LOGS)
        self.block = block_length(len(values)) if drifts or remembers else 1
        self.segments, self.near = (DRIFT_SEGMENTS, NEAR) if drifts else (1, 1.0)
        self._plans: dict[Hashable, Plan] = {}
        self._logs: dict[tuple[int, int], tuple[Array, Array]] = {}
        self.played: dict[Setting, Replayed] = {}

    @property
    def rounds(self) -> int:
        return len(self.values)

    def log(self, number: int, time: int) -> tuple[Array, Array]:
        """The rewards of a log that might have been, and the means [segment, agent, arm] that hold in it."""
        key = (number, time)
        if key not in self._logs:
            rows = np.arange(self.rounds)
            if number:
                outer = np.random.default_rng(stream_seed(self._seed, number))
                rows = rows[resampled(self.rounds, self.block, self.near, outer)]
                if time:
                    inner = np.random.default_rng(stream_seed(self._seed, number, time))
                    rows = rows[resampled(self.rounds, self.block, self.near, inner)]
            values = self.values[rows]
            self._logs[key] = values, self._means(values)
        return self._logs[key]

    def play(self, settings: Sequence[Setting], *, look: bool = False) -> list[Replayed]:
        """The settings on the recorded log and on others, few for a first look; none is played twice."""
        logs, times = (self.look, 1) if look else (self.logs, TIMES)
        waiting = [
            setting
            for setting in dict.fromkeys(settings)
            if setting not in self.played or self.played[setting].loss.size < logs * times
        ]
        keys = [(0, 0), *((number + 1, time) for number in range(logs) for time in range(times))]
        for key in keys:
            self.log(*key)
        done: dict[Setting, Replayed] = {}

        def work(setting: Setting, tick: Tick) -> Replayed:
            return self._replayed(setting, keys, logs, times, tick)

        def keep(setting: Setting, outcome: Replayed) -> None:
            done[setting] = outcome
            self.on_play(1)

        if waiting:
            Threads(self._jobs).run(waiting, work, keep)
        # In the order asked for, not in that of the workers: ties must not depend on who was first.
        self.played.update({setting: done[setting] for setting in waiting})
        return [self.played[setting] for setting in settings]

    def excess(self, one: Replayed, other: Replayed, *, paid: bool = False) -> Interval:
        """By how much the first loses more than the second per request, over the logs both have played."""
        sign = -sign_of(self.objective) if paid else 1.0
        a, b = (one.paid, other.paid) if paid else (one.loss, other.loss)
        logs, times = min(len(a), len(b)), min(a.shape[1], b.shape[1])
        return spread_out(sign * (a[:logs, :times] - b[:logs, :times]))

    def in_order(self, setting: Setting) -> tuple[float, float]:
        """Loss and outcome per request in the recorded order alone."""
        values, means = self.log(0, 0)
        actions, _ = self.actions_on(setting, values)
        paid = realised(values[self.count_from :], actions[self.count_from :])
        return self._loss(actions, means), paid

    # --- one setting ------------------------------------------------------------------------------------

    def _replayed(
        self, setting: Setting, keys: Sequence[tuple[int, int]], logs: int, times: int, tick: Tick
    ) -> Replayed:
        losses, paid, first, sent = [], [], None, (0.0, 0.0)
        for key in keys:
            values, means = self.log(*key)
            actions, sent = self.actions_on(setting, values, tick)
            first = actions if first is None else first
            losses.append(self._loss(actions, means))
            paid.append(realised(values[self.count_from :], actions[self.count_from :]))
        assert first is not None
        shape = (logs, times)
        return Replayed(
            setting,
            np.array(losses[1:]).reshape(shape),
            np.array(paid[1:]).reshape(shape),
            *sent,
            first,
            losses[0],
        )

    def actions_on(
        self, setting: Setting, values: Array, tick: Tick = no_tick
    ) -> tuple[Actions, tuple[float, float]]:
        """What every agent pulls on these rewards, and messages and bytes per round."""
        network = self.networks[setting.network]
        pieces, messages, wire_bytes = [], 0.0, 0.0
        length = setting.restart or self.rounds
        for start in range(0, self.rounds, length):
            part = values[start : start + length]
            contender = self._contender(setting, network)
            trial = play_trial(
                [contender],
                Replay(part, objective=self.objective),
                len(part),
                self._seed,
                np.array([len(part)], dtype=np.int64),
                keep_actions=True,
                on_rounds=tick,
            )[0]
            assert trial.actions is not None
            pieces.append(trial.actions)
            messages += float(trial.messages[-1])
            wire_bytes += float(trial.wire_bytes[-1])
        return np.concatenate(pieces), (messages / self.rounds, wire_bytes / self.rounds)

    def _contender(self, setting: Setting, network: Network) -> Contender:
        policy = setting.build(self.moments)
        key = (setting.network, policy.plan_key())
        made = prepare(policy, network, self.values.shape[2], plan=self._plans.get(key), quiet=True)
        self._plans[key] = made.plan
        return made

    def _loss(self, actions: Actions, means: Array) -> float:
        """Mean over rounds and agents of the gap of what was pulled, from the means that hold."""
        best = means.max(axis=2) if self.objective == "maximise" else means.min(axis=2)
        segment = np.arange(self.rounds) * len(means) // self.rounds
        chosen = means[segment[:, None], np.arange(means.shape[1])[None, :], actions]
        return float(np.abs(best[segment] - chosen)[self.count_from :].mean())

    def _means(self, values: Array) -> Array:
        """The means [segment, agent, arm] that hold: the agent's own, drawn towards those of its group.

        How far depends on the log (empirical Bayes): where the members of a group differ by no more than
        chance makes them, the group's mean is the better guess; where they really differ, their own.
        """
        rounds, n_agents, n_arms = values.shape
        segment = np.arange(rounds) * self.segments // rounds
        cell = (segment[:, None] * n_agents + np.arange(n_agents))[:, :, None] * n_arms + np.arange(n_arms)
        shape = (self.segments, n_agents, n_arms)
        flat = cell_means(values.ravel(), cell.ravel(), math.prod(shape))
        # Cells that were filled say nothing new: the error is that of the values really recorded.
        thin = np.sqrt(rounds / np.clip(self.recorded, 1, rounds))
        own, errors = flat[0].reshape(shape), flat[1].reshape(shape) * thin
        made = np.empty_like(own)
        for group in range(int(self.group_of.max()) + 1):
            here = self.group_of == group
            made[:, here] = towards_the_middle(own[:, here], errors[:, here])
        return made


def towards_the_middle(means: Array, errors: Array) -> Array:
    """Means of several agents (axis 1) drawn towards their average, by as much as chance explains."""
    if means.shape[1] == 1:
        return means
    middle = means.mean(axis=1, keepdims=True)
    chance = (errors**2).mean(axis=1, keepdims=True)
    really = np.maximum(means.var(axis=1, ddof=1, keepdims=True) - chance, 0.0)
    # A variance estimated from few agents is uncertain: what may well be chance is taken for chance.
    really = np.where(really > chance * 2 * np.sqrt(2 / (means.shape[1] - 1)), really, 0.0)
    weight = really / np.maximum(really + errors**2, 1e-300)
    return np.asarray(middle + weight * (means - middle))


def realised(values: Array, actions: Actions) -> float:
    """The mean of what was paid, outermost values moved in."""
    return float(moved_in(np.take_along_axis(values, actions[:, :, None], axis=2).ravel()).mean())


def spread_out(differences: Array) -> Interval:
    """The mean of (logs, times), and an interval from what differs between logs and what between replays."""
    logs, times = differences.shape
    middle = float(differences.mean())
    if logs < 2:
        return Interval(middle, -np.inf, np.inf)
    between = float(differences.mean(axis=1).var(ddof=1))
    within = float(differences.var(axis=1, ddof=1).mean()) if times > 1 else 0.0
    of_log = max(between - within / times, 0.0)
    error = np.sqrt(of_log + within / (logs * times)) if times > 1 else np.sqrt(between)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, logs - 1)) * float(error)
    return Interval(middle, middle - reach, middle + reach)


def block_length(rounds: int) -> int:
    """How many rounds stay in order where rewards resemble the last ones."""
    return max(LEAST_BLOCK, round(2 * math.cbrt(rounds)))


def resampled(rounds: int, length: int, near: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rounds of a log that might have been: blocks from within a share `near` of the log."""
    starts, last = np.arange(0, rounds, length), max(0, rounds - length)
    reach = max(length, round(near * rounds))
    low, high = np.clip(starts - reach, 0, last), np.minimum(starts + reach, last)
    drawn = low + (rng.random(len(starts)) * (high - low + 1)).astype(np.int64)
    return np.asarray((drawn[:, None] + np.arange(length)).ravel()[:rounds])
