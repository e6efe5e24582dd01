"""What a trial and a simulation return: regret, messages and bytes at the checkpoints.

Both engines count pulls and use one gap per arm, which suffices where all agents face the same arms in every
round. Where arms differ between agents or change, regret is computed after the trial, for both engines alike,
from the actions and the means of their agent and round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, VaryingSource
from rumormill.arms.objective import best_of
from rumormill.catalogue import label_of
from rumormill.engine.workers import ThreadPool
from rumormill.errors import InputError
from rumormill.validate import is_whole, refused, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Opening:
    """The arguments of one trial of the compiled engine."""

    source: RewardSource
    horizon: int
    marks: NDArray[np.int64]
    keep_actions: bool
    seed: np.random.SeedSequence
    """The trial's own."""
    thread_pool: ThreadPool | None = None
    """Threads that share the trial; they change no result."""


DEFAULT_CHECKPOINTS = 200


@dataclass(frozen=True)
class Trial:
    """One trial: cumulative values at the checkpoints."""

    agent_regret: NDArray[np.float64]
    """Pseudo-regret of every agent, (checkpoints, agents)."""
    messages: NDArray[np.int64]
    """Messages sent over edges up to and including each checkpoint."""
    wire_bytes: NDArray[np.int64]
    """The bytes they take."""
    actions: NDArray[np.int64] | None
    """Every arm pulled, (rounds, agents), if requested; -1 where the agent did not pull."""
    agent_rounds: NDArray[np.int64] | None = None
    """Pulls up to and including each checkpoint, over all agents; None if no agent was absent."""
    agent_common_regret: NDArray[np.float64] | None = None
    """The same against the best common arm, (checkpoints, agents), where agents or rounds differ."""

    def pulls_at(self, checkpoints: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pulls so far at each checkpoint, over all agents."""
        return checkpoints * self.agent_regret.shape[1] if self.agent_rounds is None else self.agent_rounds


@dataclass(frozen=True)
class Result:
    """All trials of one policy, as `simulate` returns them. Values are cumulative at the checkpoints.

    Parameters
    ----------
    policy : Policy, class, str or mapping
        The policy as it was given.
    engine : "fast" or "reference"
        The engine that played.
    checkpoints : int array, (checkpoints,)
        The rounds at which values are recorded.
    agent_regret : float array, (trials, checkpoints, agents)
        Pseudo-regret: gaps of the arms pulled. Where arms differ between agents or change, the gap is that of
        the agent's own best arm in the round.
    messages : int array, (trials, checkpoints)
        Messages sent over edges.
    wire_bytes : int array, (trials, checkpoints)
        Bytes of these messages.
    actions : int array, (trials, rounds, agents), or None
        Every arm pulled, if requested; -1 where the agent did not pull.
    agent_rounds : int array, (trials, checkpoints)
        Pulls over all agents.
    agent_common_regret : float array, (trials, checkpoints, agents), or None
        Regret against the one arm that is best for all agents over all rounds; negative where agents do
        better. None where all agents face the same arms in every round.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(4), "kmp", horizon=50, trials=3, rng=0)
    >>> result.regret.shape, result.agent_regret.shape
    ((3, 50), (3, 50, 4))

    References
    ----------
    docs/semantics.md: pseudo-regret, checkpoints and bytes.
    """

    policy: Any
    engine: str
    checkpoints: NDArray[np.int64]
    agent_regret: NDArray[np.float64]
    messages: NDArray[np.int64]
    wire_bytes: NDArray[np.int64]
    actions: NDArray[np.int64] | None
    agent_rounds: NDArray[np.int64]
    agent_common_regret: NDArray[np.float64] | None = None

    @classmethod
    def gather(cls, policy: Any, engine: str, checkpoints: NDArray[np.int64], trials: list[Trial]) -> Result:
        actions = [trial.actions for trial in trials if trial.actions is not None]
        common = [trial.agent_common_regret for trial in trials if trial.agent_common_regret is not None]
        return cls(
            policy=policy,
            engine=engine,
            checkpoints=checkpoints,
            agent_regret=_stacked([trial.agent_regret for trial in trials]),
            messages=_stacked([trial.messages for trial in trials]),
            wire_bytes=_stacked([trial.wire_bytes for trial in trials]),
            actions=_stacked(actions) if actions else None,
            agent_rounds=_stacked([trial.pulls_at(checkpoints) for trial in trials]),
            agent_common_regret=_stacked(common) if common else None,
        )

    @property
    def regret(self) -> NDArray[np.float64]:
        """Group pseudo-regret, (trials, checkpoints)."""
        total: NDArray[np.float64] = self.agent_regret.sum(axis=2)
        return total

    @property
    def common_regret(self) -> NDArray[np.float64]:
        """Group pseudo-regret against the best common arm, (trials, checkpoints)."""
        if self.agent_common_regret is None:
            return self.regret
        total: NDArray[np.float64] = self.agent_common_regret.sum(axis=2)
        return total

    def plot(self, ax: Any = None, *, label: str | None = None) -> Figure:
        """Group regret against the round: the mean over trials, and its 95 % bootstrap band."""
        if ax is not None and not hasattr(ax, "fill_between"):
            raise refused("ax", ax, "matplotlib axes, or None for a new figure")
        from rumormill.plotting.curves import plot_regret
        from rumormill.stats.bootstrap import bootstrap_band

        if label is None:
            cls = self.policy if isinstance(self.policy, type) else type(self.policy)
            label = self.policy if isinstance(self.policy, str) else label_of(cls)
        return plot_regret(self.checkpoints, self.regret, bootstrap_band(self.regret), label, ax)


def _stacked(trials: list[NDArray[Any]]) -> NDArray[Any]:
    """All trials in one array; one trial of very many agents is not copied."""
    return trials[0][np.newaxis] if len(trials) == 1 else np.stack(trials)


def resolve_checkpoints(checkpoints: int | Any | None, horizon: int) -> NDArray[np.int64]:
    """Rounds at which values are recorded; the default is 200 of them, evenly spread, the last at T."""
    if checkpoints is None:
        checkpoints = min(horizon, DEFAULT_CHECKPOINTS)
    if is_whole(checkpoints):
        count = min(whole("checkpoints", checkpoints), horizon)
        # ⌈i·T/n⌉ in integers: a float product can round to just above a whole number, and T to T + 1.
        return -(-np.arange(1, count + 1, dtype=np.int64) * horizon // count)
    given = np.asarray(checkpoints)
    if given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
        raise InputError("checkpoints must be a number of them, or a list of rounds")
    if given[0] < 1 or given[-1] > horizon or (np.diff(given) <= 0).any():
        raise InputError(f"checkpoints must be increasing rounds between 1 and the horizon {horizon}")
    return given.astype(np.int64)


ROUNDS = 256  # looked at together


def needs_actions(source: RewardSource) -> bool:
    """Whether regret needs the actions: one gap per arm does not describe the source."""
    return isinstance(source, VaryingSource) and source.varies


def with_regret(trial: Trial, source: RewardSource, marks: NDArray[np.int64], keep_actions: bool) -> Trial:
    """The trial with regret from the means of agent and round, where they vary; actions only if requested."""
    if not (isinstance(source, VaryingSource) and source.varies):
        return trial
    assert trial.actions is not None
    own, common = regrets(trial.actions, source, marks)
    actions = trial.actions if keep_actions else None
    return replace(trial, agent_regret=own, agent_common_regret=common, actions=actions)


def regrets(
    actions: NDArray[np.int64], source: VaryingSource, marks: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Regret so far at every mark, (marks, agents): against the own best arm, against the best common one.

    The own best arm is that of the agent in the round. The common one is the arm that is best for all agents
    together over all rounds played: agents that do better than it have a negative regret.
    """
    horizon, agents = actions.shape
    paid, best = np.zeros(agents), np.zeros(agents)
    each = np.zeros((agents, source.n_arms))
    own = np.empty((len(marks), agents))
    arms_so_far = np.empty((len(marks), agents, source.n_arms))
    paid_so_far = np.empty((len(marks), agents))
    cuts = np.unique(np.concatenate([np.arange(0, horizon, ROUNDS), marks, [horizon]]))
    at = {int(mark): number for number, mark in enumerate(marks)}
    for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        means = source.expected(start, stop, agents)
        there = actions[start:stop] >= 0  # agents that do not pull have no regret
        chosen = np.take_along_axis(means, actions[start:stop, :, None], axis=2)[:, :, 0]
        paid += chosen.sum(axis=0, where=there)
        best += best_of(means, source.objective).sum(axis=0, where=there)
        each += means.sum(axis=0, where=there[:, :, None])
        if stop in at:
            own[at[stop]] = np.abs(best - paid)
            arms_so_far[at[stop]], paid_so_far[at[stop]] = each, paid
    totals = each.sum(axis=0)
    common = int(totals.argmax() if source.objective == "maximise" else totals.argmin())
    sign = 1.0 if source.objective == "maximise" else -1.0
    return own, sign * (arms_so_far[:, :, common] - paid_so_far)
