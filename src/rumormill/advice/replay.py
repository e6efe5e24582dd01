"""A log replayed: candidates on the recorded table in its own order, and on bootstrap resamples of the log.

Resamples come from a block bootstrap over time: time is cut into blocks, and each is replaced by another,
all agents and arms together: from anywhere, or in a log that drifts from a neighbourhood in time. Shocks
common to all agents stay common, serial dependence stays within a block, and a drift stays where it is.
Without serial dependence a block is one round: a hundred blocks have too few different beginnings, and
lock-in happens in the beginning. All candidates are played on the same resamples: differences are paired.

What a part of a log knows of the arms: a prior for agents that start after it, and arms to keep. Only
recorded values count. A prior is made by the estimator of the policy that is born with it, agent by agent;
of an arm that an agent never tried it takes what its group knows, as one sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from rumormill import catalogue
from rumormill.advice.problem import OWN, TOGETHER, Candidate, Outcome, Problem
from rumormill.arms import Moments, Replay
from rumormill.arms.base import Objective, sign_of
from rumormill.engine import Contender, play_trial
from rumormill.engine.workers import Threads, Tick, no_tick
from rumormill.formulas import log_confidence
from rumormill.graphs import Network
from rumormill.policies import Prior
from rumormill.seeds import stream_seed
from rumormill.stats import Interval, row_means, winsor_limits, winsorised_mean
from rumormill.validate import LARGEST_SCALE

# Agents differ if the offset of one, or the logarithm of its scale, is beyond so many standard errors.
OFFSET_SURELY = 4.0
# The standard error of a median of many, in those of a mean; of a standard deviation, from the MAD.
OF_MEDIAN, OF_MAD = 1.2533, 1.4826


def offsets_of(values: Array, recorded: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Per agent the median over arms of (its median with the arm − the median of all agents with it).

    And its standard error.
    """
    found, errors = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    usual = [np.median(values[:, :, k][recorded[:, :, k]]) for k in range(values.shape[2])]
    for v in range(values.shape[1]):
        above, squares = [], []
        for k, there in enumerate(recorded[:, v].T):
            if there.any():
                own = values[there, v, k]
                middle = np.median(own)
                above.append(middle - usual[k])
                squares.append((OF_MEDIAN * OF_MAD * np.median(np.abs(own - middle))) ** 2 / len(own))
        if above:
            found[v] = np.median(above)
            errors[v] = OF_MEDIAN * math.sqrt(np.mean(squares) / len(above))
    return found, errors


def differ(offsets: Array, errors: Array) -> bool:
    """Whether the offset of some agent is surely not zero."""
    return bool((np.abs(offsets) > OFFSET_SURELY * errors).any())


@dataclass(frozen=True)
class Levels:
    """What agents may take off their outcomes, and divide them by, and what of it is tried."""

    offsets: Array
    """Per agent, in the user's unit."""
    scales: Array
    tried: tuple[str, ...] = ()
    """The one of LEVELS that agents surely differ by; of both, that which explains more."""

    def without(self, values: Array, levels: Sequence[str]) -> Array:
        """The values [..., agent, arm] as agents have them that remove these levels."""
        values = values - self.offsets[:, None] if "offsets" in levels else values
        return values / self.scales[:, None] if "scales" in levels else values


def of_one_sign(values: Array) -> bool:
    """Whether all are above zero, or all below."""
    return bool((values > 0).all() or (values < 0).all())


def levels_of(values: Array, recorded: NDArray[np.bool_], *, scalable: bool = True) -> Levels:
    """Offsets, and scales where all that is recorded is of one sign: exp of the offsets of ln |value|."""
    by, factors = {"offsets": offsets_of(values, recorded)}, np.ones(values.shape[1])
    if scalable and of_one_sign(values[recorded]):
        by["scales"] = offsets_of(np.log(np.where(recorded, np.abs(values), 1.0)), recorded)
        factors = np.clip(np.exp(by["scales"][0]), 1 / LARGEST_SCALE, LARGEST_SCALE)
    found = Levels(by["offsets"][0], factors)
    sure = [name for name, each in by.items() if differ(*each)]
    sure.sort(key=lambda name: apart(found.without(values, [name]), recorded))
    return replace(found, tried=tuple(sure[:1]))


def apart(values: Array, recorded: NDArray[np.bool_]) -> float:
    """How far the quartiles of agents with the same arm lie apart, on average over arms."""
    spreads = []
    for k in np.flatnonzero(recorded.any(axis=(0, 1))):
        cells = [values[there, v, k] for v, there in enumerate(recorded[:, :, k].T) if there.any()]
        spreads.append(np.std([np.quantile(each, (0.25, 0.5, 0.75)) for each in cells], axis=0).mean())
    return float(np.mean(spreads))


@dataclass(frozen=True)
class Knowledge:
    """The recorded values of a part of a log."""

    values: Array
    """Rounds × agents × arms, in the user's unit."""
    recorded: NDArray[np.bool_]
    group_of: NDArray[np.int64]
    sign: float
    """-1 where less is better."""
    moments: Moments
    known_levels: Levels | None = None
    """Those of a mesh that runs; None: estimated."""
    scalable: bool = True
    """Whether scales may be estimated: not if the log that this is a part of has both signs."""
    _priors: dict[tuple[str, Sequence[str]], Prior] = field(default_factory=dict, repr=False)
    _kept: dict[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @cached_property
    def levels(self) -> Levels:
        """By how much agents differ with every arm alike."""
        return self.known_levels or levels_of(self.values, self.recorded, scalable=self.scalable)

    def part(self, rounds: slice) -> Knowledge:
        """What some of the rounds know."""
        known = self.values[rounds], self.recorded[rounds], self.group_of, self.sign, self.moments
        return Knowledge(*known, scalable=of_one_sign(self.values[self.recorded]))

    def samples(self, agents: NDArray[np.int64], arm: int) -> Array:
        """The recorded rewards of some agents with an arm, in order of time; more is better."""
        return self.sign * self.values[:, agents, arm][self.recorded[:, agents, arm]]

    def prior_of(self, candidate: Candidate) -> Prior | None:
        """What the agents of a candidate are born with; None for a cold start."""
        name, levels = candidate.estimator, candidate.levels
        if not candidate.warm or name is None:
            return None
        if (name, levels) not in self._priors:
            known = replace(self, values=self.levels.without(self.values, levels)) if levels else self
            self._priors[name, levels] = known.prior(name)
        return self._priors[name, levels]

    def prior(self, estimator: str) -> Prior:
        """What every agent knows of every arm, by this estimator."""
        n_agents, n_arms = self.values.shape[1:]
        mean, n = np.zeros((n_agents, n_arms)), np.zeros((n_agents, n_arms))
        for arm in range(n_arms):
            for v in range(n_agents):
                own = self.samples(np.array([v]), arm)
                n[v, arm] = max(1, len(own))
                mean[v, arm] = self._mean(estimator, own if len(own) else self._of_group(v, arm))
        return Prior(mean=mean.tolist(), n=n.tolist())

    def best_arms(self, candidate: Candidate) -> NDArray[np.int64]:
        """The arm that each agent keeps: its own best, or the best of its group or of all agents."""
        if candidate.network in self._kept:
            return self._kept[candidate.network]
        n_agents, n_arms = self.values.shape[1:]
        one, each = np.zeros(n_agents, dtype=np.int64), np.arange(n_agents)
        group = {TOGETHER: one, OWN: each}.get(candidate.network, self.group_of)
        found = np.empty((n_agents, n_arms))
        for number in np.unique(group):
            here = np.flatnonzero(group == number)
            found[here] = [winsorised_mean(self.samples(here, arm))[0] for arm in range(n_arms)]
        self._kept[candidate.network] = np.where(np.isnan(found), -np.inf, found).argmax(axis=1)
        return self._kept[candidate.network]

    def _of_group(self, agent: int, arm: int) -> Array:
        """What the agents of the same group recorded of an arm; else what all did."""
        near = self.samples(np.flatnonzero(self.group_of == self.group_of[agent]), arm)
        return near if len(near) else self.samples(np.arange(self.values.shape[1]), arm)

    def _mean(self, name: str, samples: Array) -> float:
        """The estimator's mean at the level of as many rounds; at a lower one where it needs more samples."""
        estimator = catalogue.make("estimator", name)
        L = log_confidence("paper", max(2, len(self.values)), 1)
        while L > 0.1 and len(samples):
            mean = float(estimator.of(samples.tolist(), L, self.moments))
            if math.isfinite(mean):
                return mean
            L /= 2
        return float(samples.mean()) if len(samples) else 0.0


Array = NDArray[np.float64]
Actions = NDArray[np.int64]

# A first look takes LOOK resamples. The final takes LOGS, each resampled TIMES times again: the interval
# tells variance between logs from variance between replays. Large tables get half as many.
LOOK, LOGS, TIMES = 8, 24, 2
LARGE = 1_000_000
# Samples that games with means that keep them all may hold at once, some 60 bytes each.
AT_ONCE = 2_000_000
# Block length: twice the cube root of the rounds, at least LEAST_BLOCK. Drift: donors within NEAR of the log.
LEAST_BLOCK, NEAR = 5, 0.1
CONFIDENCE = 0.95
# The share of the worst replays that the score averages.
WORST = 0.5
DRIFT_SEGMENTS = 4


@dataclass(frozen=True)
class ReplayOutcome(Outcome):
    """Loss per request against every agent's own best arm, in the user's unit."""

    actions: Actions = field(repr=False)
    """Those in the recorded order."""

    @property
    def score(self) -> float:
        """The mean over the worse half of the replays; of agents alone, the recorded order where worse.

        A game is played once, so a rare lock-in counts. Agents alone play many independent games at once, so
        the recorded order says as much about them as a resample.
        """
        worst = float(np.sort(self.loss, axis=None)[-math.ceil(WORST * self.loss.size) :].mean())
        return worst if self.candidate.cooperates else max(worst, self.recorded)


class LogProblem(Problem):
    """A reward table (or a part of it), its networks, and all that was played on it.

    `remembers`: rewards depend on the last ones, so blocks are resampled. Outcomes count from round
    `count_from` on. `recorded`: number of values of every (agent, arm) that were recorded, not imputed.
    `known`: what is known at the start, for warm starts and fixed arms. `levels` of the agents, default
    those of `known`. `length`: rounds of a resample, default as many as recorded. The caller sets `rest` (the
    hold-out), `whole`, `longer` (`whole` with all rounds, where these are fewer than its table had), `after`
    (the rest, with the first part known) and `exchanged` (the first part, with the rest known).
    """

    def __init__(
        self,
        values: Array,
        objective: Objective,
        networks: Mapping[str, Network],
        moments: Moments,
        group_of: NDArray[np.int64],
        *,
        drifts: bool,
        remembers: bool,
        light: bool = False,
        count_from: int = 0,
        recorded: Array | None = None,
        known: Knowledge | None = None,
        levels: Levels | None = None,
        length: int | None = None,
        seed: np.random.SeedSequence,
        jobs: int | None = None,
        on_play: Callable[[int], None] = lambda plays: None,
        like: LogProblem | None = None,
    ) -> None:
        super().__init__(networks, moments, values.shape[2], light=light, jobs=jobs, like=like)
        self.values, self.objective, self.rounds = values, objective, len(values)
        self.known, self.length = known, length or len(values)
        self.count_from = count_from
        self.levels = known.levels if levels is None and known is not None else levels
        self.tried_levels = () if self.levels is None else self.levels.tried
        self.recorded = np.full(values.shape[1:], len(values)) if recorded is None else recorded
        self.group_of, self.on_play, self._seed = group_of, on_play, seed
        self.drifts = drifts
        messages = 2 * len(values) * max(network.n_edges for network in networks.values())
        large = values.size + messages > LARGE
        self.look, self.logs = (LOOK // 2, LOGS // 2) if large else (LOOK, LOGS)
        self.block = block_length(len(values)) if drifts or remembers else 1
        self.segments, self.near = (DRIFT_SEGMENTS, NEAR) if drifts else (1, 1.0)
        self._logs: dict[tuple[int, int], tuple[NDArray[np.int64], Array, Array]] = {}
        self._played: dict[Candidate, ReplayOutcome] = {}
        self.rest: LogProblem | None = None
        self.whole: LogProblem | None = None
        self.longer: LogProblem | None = None
        self.after: LogProblem | None = None
        self.exchanged: LogProblem | None = None

    @property
    def later(self) -> LogProblem | None:
        return self.after

    def prior(self, candidate: Candidate) -> Prior | None:
        return None if self.known is None else self.known.prior_of(candidate)

    @property
    def played(self) -> Mapping[Candidate, ReplayOutcome]:
        return self._played

    @property
    def hold_out(self) -> LogProblem:
        assert self.rest is not None
        return self.rest

    def log(self, number: int, time: int) -> tuple[Array, Array, Array]:
        """Rewards of a resample, its means [segment, agent, arm], its limits to winsorise at.

        Number 0 is the recorded log. (Winsorised over all that was pulled, rare pulls of a bad arm would
        count as outliers.) Kept are the rows, not the rewards: these would fill the memory.
        """
        key = (number, time)
        if key not in self._logs:
            rows = np.arange(self.rounds)
            if number:
                outer = np.random.default_rng(stream_seed(self._seed, number))
                rows = resampled(self.rounds, self.block, self.near, outer, self.length)
                if time:
                    inner = np.random.default_rng(stream_seed(self._seed, number, time))
                    rows = rows[resampled(self.length, self.block, self.near, inner)]
            values = self.values[rows]
            self._logs[key] = rows, self._means(values), _winsor_limits(values)
        rows, means, limits = self._logs[key]
        return self.values[rows] if number else self.values, means, limits

    def play(self, candidates: Sequence[Candidate], *, look: bool = False) -> list[ReplayOutcome]:
        """The candidates on the recorded log and on resamples, few for a first look; none is played twice."""
        logs, times = (self.look, 1) if look else (self.logs, TIMES)
        waiting = [
            candidate
            for candidate in dict.fromkeys(candidates)
            if candidate not in self._played or self._played[candidate].loss.size < logs * times
        ]
        keys = [(0, 0), *((number + 1, time) for number in range(logs) for time in range(times))]
        for key in keys:
            self.log(*key)
        done: dict[Candidate, ReplayOutcome] = {}

        def work(candidate: Candidate, tick: Tick) -> ReplayOutcome:
            return self._replayed(candidate, keys, (logs, times), tick)

        def keep(candidate: Candidate, outcome: ReplayOutcome) -> None:
            done[candidate] = outcome
            self.on_play(1)

        if waiting:
            for candidate in waiting:  # built once, before the threads
                if not candidate.fixed:
                    self.policy(candidate)
                    self.prior(candidate)
            self.workers.run([each for each in waiting if not self._stores(each)], work, keep)
            at_once = AT_ONCE // (self.length * self.values.shape[1] ** 2)
            few = Threads(max(1, min(self.workers.jobs, at_once)))
            few.run([each for each in waiting if self._stores(each)], work, keep)
        # In the order of the request, not of the workers: ties must not depend on scheduling.
        self._played.update({candidate: done[candidate] for candidate in waiting})
        return [self._played[candidate] for candidate in candidates]

    def excess(self, one: Outcome, other: Outcome, *, paid: bool = False) -> Interval:
        """Loss per request of the first above that of the second, over the resamples of both."""
        sign = -sign_of(self.objective) if paid else 1.0
        a, b = (one.paid, other.paid) if paid else (one.loss, other.loss)
        logs, times = min(len(a), len(b)), min(a.shape[1], b.shape[1])
        return interval_of_differences(sign * (a[:logs, :times] - b[:logs, :times]))

    def worse_in_order(self, chosen: Candidate, alone: Candidate) -> bool:
        """Whether `chosen` lost and paid more than `alone` on the whole log in its recorded order."""
        whole = self.whole if self.longer is None or self._stores(chosen) else self.longer
        assert whole is not None
        (loss, paid), (lost, spent) = whole.in_order(chosen), whole.in_order(alone)
        return loss > lost and sign_of(self.objective) * (paid - spent) < 0

    def in_order(self, candidate: Candidate) -> tuple[float, float]:
        """Loss and winsorised mean outcome per request in the recorded order."""
        values, means, limits = self.log(0, 0)
        actions, _ = self.actions_on(candidate, values)
        return self._loss(actions, means), self._paid(actions, values, limits)

    def actions_on(self, candidate: Candidate, values: Array) -> tuple[Actions, tuple[float, float]]:
        """The actions (round, agent) on these rewards, and messages and bytes per round."""
        contender = None if candidate.fixed else self.contender(candidate)
        return self._actions(candidate, contender, values)

    # --- one candidate ----------------------------------------------------------------------------------

    def _stores(self, candidate: Candidate) -> bool:
        """Whether agents keep every sample of all others."""
        name = candidate.estimator if candidate.cooperates else None
        return name is not None and not catalogue.make("estimator", name).bounded_memory

    def _replayed(
        self, candidate: Candidate, keys: Sequence[tuple[int, int]], shape: tuple[int, int], tick: Tick
    ) -> ReplayOutcome:
        """The outcome on the resamples `keys`, of which the first is the recorded log; a look goes on."""
        contender = None if candidate.fixed else self.contender(candidate)
        look, sent, first = self._played.get(candidate), (0.0, 0.0), None
        found: dict[tuple[int, int], tuple[float, float]] = {}
        if look is not None:
            pairs = zip(look.loss[:, 0].tolist(), look.paid[:, 0].tolist(), strict=True)
            found = {(number + 1, 0): pair for number, pair in enumerate(pairs)}
            found[0, 0], first = (look.recorded, 0.0), look.actions
        for key in keys:
            if key not in found:
                values, means, limits = self.log(*key)
                actions, sent = self._actions(candidate, contender, values, tick)
                first = actions if first is None else first
                found[key] = self._loss(actions, means), self._paid(actions, values, limits)
        assert first is not None
        loss, outcome = np.array([found[key] for key in keys[1:]]).T.reshape(2, *shape)
        return ReplayOutcome(candidate, loss, outcome, *sent, found[0, 0][0], first)

    def _actions(
        self, candidate: Candidate, contender: Contender | None, values: Array, tick: Tick = no_tick
    ) -> tuple[Actions, tuple[float, float]]:
        """Actions, messages and bytes per round; a restart begins a new game. No contender: fixed arms."""
        pieces, messages, wire_bytes, rounds = [], 0.0, 0.0, len(values)
        if contender is None:
            assert self.known is not None
            return np.tile(self.known.best_arms(candidate), (rounds, 1)), (0.0, 0.0)
        length = candidate.restart or rounds
        values = values if self.levels is None else self.levels.without(values, candidate.levels)
        for start in range(0, rounds, length):
            part = values[start : start + length]
            source, marks = Replay(part, objective=self.objective), np.array([len(part)], dtype=np.int64)
            game = [contender], source, len(part), self._seed, marks
            (trial,) = play_trial(*game, keep_actions=True, on_rounds=tick)
            assert trial.actions is not None
            pieces.append(trial.actions)
            messages += float(trial.messages[-1])
            wire_bytes += float(trial.wire_bytes[-1])
        return np.concatenate(pieces), (messages / rounds, wire_bytes / rounds)

    def _loss(self, actions: Actions, means: Array) -> float:
        """Mean gap of the arms pulled, over rounds and agents."""
        best = means.max(axis=2) if self.objective == "maximise" else means.min(axis=2)
        segment = np.arange(len(actions)) * len(means) // len(actions)
        chosen = means[segment[:, None], np.arange(means.shape[1])[None, :], actions]
        return float(np.abs(best[segment] - chosen)[self.count_from :].mean())

    def _paid(self, actions: Actions, values: Array, limits: Array) -> float:
        """Mean of the winsorised rewards of the arms pulled."""
        pulled = actions[self.count_from :]
        rewards = np.take_along_axis(values[self.count_from :], pulled[:, :, None], axis=2)[:, :, 0]
        low, high = limits[:, np.arange(values.shape[1]), pulled]
        return float(np.clip(rewards, low, high).mean())

    def _means(self, values: Array) -> Array:
        """The means [segment, agent, arm]: the agent's own, shrunk towards those of its group."""
        rounds, n_agents, n_arms = values.shape
        shape = (self.segments, n_agents, n_arms)
        starts = -(-np.arange(1, self.segments) * rounds // self.segments)
        flat: Array = np.array([row_means(_columns(part)) for part in np.split(values, starts)])
        # Imputed cells add no information: the error is that of the values recorded.
        thin = np.sqrt(rounds / np.clip(self.recorded, 1, self.rounds))
        own, errors = flat[:, 0].reshape(shape), flat[:, 1].reshape(shape) * thin
        made = np.empty_like(own)
        for group in range(int(self.group_of.max()) + 1):
            here = self.group_of == group
            made[:, here] = shrunk_means(own[:, here], errors[:, here])
        return made


def _winsor_limits(values: Array) -> Array:
    """[low or high, agent, arm]: what the values [round, agent, arm] are winsorised at."""
    return winsor_limits(_columns(values)).reshape(2, *values.shape[1:])


def _columns(values: Array) -> Array:
    """The values [round, agent, arm] of every (agent, arm) as a row."""
    return np.ascontiguousarray(values.reshape(len(values), -1).T, dtype=np.float64)


def shrunk_means(means: Array, errors: Array) -> Array:
    """Means of several agents (axis 1) shrunk towards their average (empirical Bayes).

    The weight of an agent's own mean is the share of its variance that standard errors do not explain.
    """
    if means.shape[1] == 1:
        return means
    middle = means.mean(axis=1, keepdims=True)
    chance = (errors**2).mean(axis=1, keepdims=True)
    really = np.maximum(means.var(axis=1, ddof=1, keepdims=True) - chance, 0.0)
    # A variance estimated from few agents is uncertain: below two standard errors it counts as chance.
    really = np.where(really > chance * 2 * np.sqrt(2 / (means.shape[1] - 1)), really, 0.0)
    weight = really / np.maximum(really + errors**2, 1e-300)
    return np.asarray(middle + weight * (means - middle))


def interval_of_differences(differences: Array) -> Interval:
    """Mean of (logs, times) and its t interval: variance between resamples plus that between replays."""
    logs, times = differences.shape
    middle = float(differences.mean())
    if logs < 2:
        return Interval(middle, -np.inf, np.inf)
    between = float(differences.mean(axis=1).var(ddof=1))
    within = float(differences.var(axis=1, ddof=1).mean()) if times > 1 else 0.0
    of_log = max(between - within / times, 0.0)
    error = np.sqrt(of_log + within / (logs * times)) if times > 1 else np.sqrt(between)
    reach = float(stdtrit(logs - 1, (1 + CONFIDENCE) / 2)) * float(error)
    return Interval(middle, middle - reach, middle + reach)


def block_length(rounds: int) -> int:
    """Rounds of a bootstrap block where rewards depend on the last ones."""
    return max(LEAST_BLOCK, round(2 * math.cbrt(rounds)))


def resampled(
    rounds: int, length: int, near: float, rng: np.random.Generator, wanted: int | None = None
) -> NDArray[np.int64]:
    """The rounds of a bootstrap resample, `wanted` of them: blocks from within a share `near` of the log."""
    wanted = wanted or rounds
    starts, last = np.arange(0, wanted, length) * rounds // wanted, max(0, rounds - length)
    reach = max(length, round(near * rounds))
    low, high = np.clip(starts - reach, 0, last), np.minimum(starts + reach, last)
    drawn = low + (rng.random(len(starts)) * (high - low + 1)).astype(np.int64)
    return np.asarray((drawn[:, None] + np.arange(length)).ravel()[:wanted])
