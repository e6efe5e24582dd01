"""What a trial and a simulation return: regret, messages and bytes at the checkpoints.

Both engines count pulls and use one gap per arm, which suffices where all agents face the same arms in every
round. Where arms differ between agents or change, regret is computed after the trial, for both engines alike,
from the actions and the means of their agent and round.
"""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.arms import RewardSource, VaryingSource
from rumormill.arms.base import best_of, sign_of
from rumormill.engine.workers import ThreadPool
from rumormill.errors import DataError, InputError
from rumormill.files import read_bytes, write_atomically
from rumormill.seeds import Role, stream_seed
from rumormill.stats import bootstrap_band
from rumormill.text import plural, rounded, setting
from rumormill.validate import is_whole, named_arguments, refused, whole

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


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
    propensities: NDArray[np.float64] | None = None
    """The probability of every choice, (rounds, agents), if requested."""

    def pulls_at(self, checkpoints: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pulls so far at each checkpoint, over all agents."""
        return checkpoints * self.agent_regret.shape[1] if self.agent_rounds is None else self.agent_rounds


@dataclass(frozen=True, repr=False)
class Result:
    """All trials of one policy, as `simulate` returns them. Values are cumulative at the checkpoints.

    Parameters
    ----------
    policy : Policy, class, str or mapping
        The policy as it was given; its label and settings as text in a result that was loaded.
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
        Every arm pulled, if requested; -1 where the agent did not pull. A last axis of length k where agents
        try several arms.
    agent_rounds : int array, (trials, checkpoints)
        Pulls over all agents.
    agent_common_regret : float array, (trials, checkpoints, agents), or None
        Regret against the one arm that is best for all agents over all rounds; negative where agents do
        better. None where all agents face the same arms in every round.
    rewards : float array, (trials, rounds, agents), or None
        Every reward, if requested, in the unit of the bandit; nan where the agent did not pull.
    propensities : float array, (trials, rounds, agents), or None
        The probability that the agent's draws of the round lead to its (first) arm, if requested; 1 where
        nothing is drawn, nan where it is not known.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(4), "kmp", horizon=50, trials=3, rng=0)
    >>> result.regret.shape, result.agent_regret.shape
    ((3, 50), (3, 50, 4))
    >>> result
    Result(KMP: 3 trials of 50 rounds, 4 agents; group regret 25 (16 – 37), messages 400; engine fast)
    >>> result.to_frame().columns
    ['trial', 't', 'regret', 'messages', 'wire_bytes', 'pulls']

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
    rewards: NDArray[np.float64] | None = None
    propensities: NDArray[np.float64] | None = None

    @classmethod
    def gather(cls, policy: Any, engine: str, checkpoints: NDArray[np.int64], trials: list[Trial]) -> Result:
        """The result of these trials."""
        actions = [trial.actions for trial in trials if trial.actions is not None]
        chances = [trial.propensities for trial in trials if trial.propensities is not None]
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
            propensities=_stacked(chances) if chances else None,
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

    @property
    def label(self) -> str:
        """The name of the policy in tables and figures."""
        return label_of_policy(self.policy)

    def plot(self, ax: Any = None, *, label: str | None = None) -> Axes:
        """Group regret against the round: the mean over trials, and its 95 % bootstrap band.

        Several results in one picture: `second.plot(first.plot())`. The figure is `.figure` of the axes.
        """
        if ax is not None and not hasattr(ax, "fill_between"):
            raise refused("ax", ax, "matplotlib axes, or None for a new figure")
        from rumormill.plotting.drawing import plot_regret

        if label is None:
            taken = () if ax is None else ax.get_legend_handles_labels()[1]
            label = self.label if self.label not in taken else with_settings(self.label, self.policy)
        return plot_regret(self.checkpoints, self.regret, bootstrap_band(self.regret), label, ax)

    def to_frame(self, *, agents: bool = False) -> pl.DataFrame:
        """A tidy polars table: one row per trial and checkpoint, or per trial, checkpoint and agent.

        Messages, bytes and pulls are those of the group. `.to_pandas()` makes a pandas table of it.
        """
        import polars as pl

        trials, marks, n_agents = self.agent_regret.shape
        each = n_agents if agents else 1
        numbers, rounds = (
            np.arange(trials).repeat(marks * each),
            np.tile(self.checkpoints.repeat(each), trials),
        )
        columns: dict[str, Any] = {"trial": numbers, "t": rounds}
        if agents:
            columns["agent"] = np.tile(np.arange(n_agents), trials * marks)
        columns["regret"] = (self.agent_regret if agents else self.regret).ravel()
        if self.agent_common_regret is not None:
            columns["common_regret"] = (self.agent_common_regret if agents else self.common_regret).ravel()
        if not agents:
            group = {"messages": self.messages, "wire_bytes": self.wire_bytes, "pulls": self.agent_rounds}
            columns |= {name: values.ravel() for name, values in group.items()}
        return pl.DataFrame(columns)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the result into one file (.npz), whole or not at all; `rm.load_result` reads it.

        All arrays are kept exactly. The policy is kept as text: code is not written into files.
        """
        target = Path(path)
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        header = {"policy": with_settings(self.label, self.policy), "engine": given.pop("engine")}
        arrays: dict[str, Any] = {key: value for key, value in given.items() if isinstance(value, np.ndarray)}
        data = io.BytesIO()
        np.savez_compressed(data, header=np.array(json.dumps(header)), **arrays)
        write_atomically(target, data.getvalue())
        return target

    def summary(self) -> dict[str, Any]:
        """The result at the last checkpoint in one row: sizes, group regret with its band, messages."""
        low, high = bootstrap_band(self.regret[:, -1:])
        return {
            "policy": self.label,
            "trials": len(self.regret),
            "rounds": int(self.checkpoints[-1]),
            "agents": self.agent_regret.shape[2],
            "regret": float(self.regret[:, -1].mean()),
            "low": float(low[0]),
            "high": float(high[0]),
            "messages": float(self.messages[:, -1].mean()),
            "engine": self.engine,
        }

    def __repr__(self) -> str:
        row = self.summary()
        size = f"{plural(row['trials'], 'trial')} of {plural(row['rounds'], 'round')}"
        band = "" if row["trials"] == 1 else f" ({rounded(row['low'])} – {rounded(row['high'])})"
        return (
            f"Result({row['policy']}: {size}, {plural(row['agents'], 'agent')}; group regret "
            f"{rounded(row['regret'])}{band}, messages {rounded(row['messages'])}; engine {row['engine']})"
        )

    def _repr_html_(self) -> str:
        from rumormill.plotting.rendering import html_picture, html_table
        from rumormill.plotting.style import unseen

        with unseen():
            picture = html_picture(self.plot(), f"Group regret of {self.label} against the round")
        return html_table([self.summary()], "group regret at the end: mean, 95 % band") + picture


def label_of_policy(given: Any) -> str:
    """The name of a policy in tables and figures, from an object, a class, a name or a table."""
    if isinstance(given, Mapping) and "type" not in given:  # a mixed group
        return " + ".join(dict.fromkeys(map(label_of_policy, given.values())))
    given = given["type"] if isinstance(given, Mapping) else given
    if isinstance(given, str):
        if given not in catalogue.POLICIES:
            return given.rpartition(":")[2]
        given = catalogue.POLICIES[given]
    given = getattr(given, "func", given)  # of a functools.partial, which holds settings
    if inspect.isfunction(given):
        return given.__name__
    named = getattr(given, "name", None) if not isinstance(given, type) else None
    return (
        named
        if isinstance(named, str)
        else catalogue.label_of(given if isinstance(given, type) else type(given))
    )


def with_settings(label: str, given: Any) -> str:
    """The label with the settings that are not the default ones: KMP (gamma=2)."""
    changed: dict[str, Any] = {}
    if isinstance(given, Mapping) and "type" in given:
        changed = {key: value for key, value in given.items() if key != "type"}
    elif hasattr(given, "func"):
        changed = dict(getattr(given, "keywords", {}))
    elif is_dataclass(given) and not isinstance(given, type):
        defaults = {one.name: one.default for one in catalogue.settings(type(given))}
        changed = {key: getattr(given, key) for key in defaults if getattr(given, key) != defaults[key]}
    words = ", ".join(f"{key}={_in_short(value)}" for key, value in changed.items())
    return f"{label} ({words})" if words else label


def _in_short(value: Any) -> str:
    """A setting in a word: an estimator by its name in the catalogue."""
    if isinstance(value, str | int | float | tuple) or value is None:
        return setting(value)
    return next(
        (name for name, cls in catalogue.ESTIMATORS.items() if cls is type(value)), type(value).__name__
    )


@named_arguments
def load_result(path: str | PathLike[str]) -> Result:
    """Read a result that `Result.save` wrote.

    Parameters
    ----------
    path : path
        The file (.npz).

    Returns
    -------
    Result
        As it was saved; `policy` is text.

    Raises
    ------
    DataError
        The file is missing, damaged, or no saved result.

    Examples
    --------
    >>> import rumormill as rm, tempfile
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(4), rm.KMPUCB(gamma=2), horizon=50, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = rm.load_result(result.save(f"{folder}/kmp.npz"))
    >>> again.policy, bool((again.regret == result.regret).all())
    ('KMP (gamma=2)', True)

    References
    ----------
    numpy's format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
    """
    data = read_bytes(Path(path))
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop("header")))
        return Result(**{"actions": None, **header, **arrays})
    except Exception as error:
        raise DataError(
            f"{path} is no saved result ({type(error).__name__}): Result.save writes one"
        ) from None


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


def regrets_of_round(source: RewardSource, t: int, arms: NDArray[np.int64]) -> float:
    """Group regret of one round: gaps of the arms pulled, or of agent and round where means vary."""
    pulled = arms >= 0
    if not (isinstance(source, VaryingSource) and source.varies):
        return float(source.gaps[arms[pulled]].sum())
    means = source.expected(t - 1, t, len(arms))[0]
    chosen = np.take_along_axis(means, np.maximum(arms, 0)[:, None], axis=1)[:, 0]
    return float(np.abs(best_of(means, source.objective) - chosen)[pulled].sum())


def with_rewards(
    result: Result, source: RewardSource, seeds: Sequence[np.random.SeedSequence], keep_actions: bool
) -> Result:
    """The result with the reward of every action: the stream of a trial's seed is read once more."""
    assert result.actions is not None
    horizon, agents = result.actions.shape[1:3]
    paid = np.full(result.actions.shape, np.nan)
    sign = sign_of(getattr(source, "objective", "maximise"))
    for trial, seed in enumerate(seeds):
        stream = source.stream(stream_seed(seed, Role.REWARDS), agents, horizon)
        for start in range(0, horizon, ROUNDS):
            arms = result.actions[trial, start : start + ROUNDS]
            draws = stream.block(start, start + len(arms))
            columns = np.zeros_like(arms) if stream.shared else arms
            drawn = np.take_along_axis(draws, columns.reshape(*columns.shape[:2], -1), axis=2)
            drawn = drawn.reshape(arms.shape)
            values = sign * (stream.loc[arms] + stream.scale[arms] * drawn)
            paid[trial, start : start + ROUNDS] = np.where(arms >= 0, values, np.nan)
    return replace(result, rewards=paid, actions=result.actions if keep_actions else None)


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
