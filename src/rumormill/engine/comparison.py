"""Several policies on the same network and rewards, and what their paired trials say about the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource
from rumormill.engine.result import Result, label_of_policy, with_settings
from rumormill.engine.simulate import OnProgress, Table, play_policies, world_of
from rumormill.engine.trial import Engine
from rumormill.errors import InputError
from rumormill.graphs import Network, Topology
from rumormill.policies import Prior
from rumormill.protocol import Byzantine, Channel, Churn, Corruption
from rumormill.seeds import RandomSource
from rumormill.stats import Interval, exact_median, least_trials, ratios
from rumormill.text import cell, nearest, plural, shown
from rumormill.validate import inside, named_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of several policies on the same rewards, and exact intervals of their paired differences.

    Trial i of every policy has the same rewards, so policies are compared within trials. An interval is one
    of the median over trials: order statistics, exact for every distribution of regret. All pairs hold
    together with the given confidence (Bonferroni).

    Parameters
    ----------
    results : dict of str to Result
        The result of each policy, by name.
    confidence : float, default 0.95
        Joint confidence of the intervals of all pairs.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> found = rm.compare(bandit, rm.Network.ring(4), ["kmp", "robust"], horizon=50, trials=8, rng=0)
    >>> found.names
    ['kmp', 'robust']
    >>> found.ratio("kmp", "robust").estimate < 1
    True
    >>> found.verdicts()
    ['kmp beats robust: 0.35 times its regret (0.22 to 0.70)']

    References
    ----------
    Conover, "Practical Nonparametric Statistics", section 3.2: exact intervals of a median.
    """

    results: dict[str, Result]
    confidence: float = 0.95

    @property
    def names(self) -> list[str]:
        """The names of the policies, in the order given."""
        return list(self.results)

    @property
    def best(self) -> str:
        """The policy with the least mean group regret at the last checkpoint."""
        return min(self.results, key=lambda name: float(self._final(name).mean()))

    def difference(self, first: str, second: str) -> Interval:
        """The median over trials of the regret of `first` minus that of `second`, at the last checkpoint."""
        return exact_median(self._final(first) - self._final(second), self._each)

    def ratio(self, first: str, second: str) -> Interval:
        """The median over trials of the regret of `first` divided by that of `second`."""
        return exact_median(ratios(self._final(first), self._final(second)), self._each)

    def pairs(self) -> list[dict[str, Any]]:
        """One row per pair of policies: median difference and ratio of regret with their intervals."""
        rows = []
        for first, second in combinations(self.results, 2):
            difference, ratio = self.difference(first, second), self.ratio(first, second)
            rows.append(
                {
                    "first": first,
                    "second": second,
                    "difference": difference.estimate,
                    "difference_low": difference.low,
                    "difference_high": difference.high,
                    "ratio": ratio.estimate,
                    "ratio_low": ratio.low,
                    "ratio_high": ratio.high,
                }
            )
        return rows

    def table(self) -> list[dict[str, Any]]:
        """One row per policy, at the last checkpoint: regret, messages, and the ratio to the best policy."""
        best, rows = self.best, []
        for name, result in self.results.items():
            ratio = Interval(1.0, 1.0, 1.0) if name == best else self.ratio(name, best)
            rows.append(
                {
                    "policy": name,
                    "regret": float(self._final(name).mean()),
                    "median": float(np.median(self._final(name))),
                    "messages": float(result.messages[:, -1].mean()),
                    "ratio": ratio.estimate,
                    "low": ratio.low,
                    "high": ratio.high,
                    "engine": result.engine,
                }
            )
        return rows

    def verdicts(self) -> list[str]:
        """A sentence for every pair: who beats whom, by how much, or that it is not decided at this size.

        The interval of the median ratio must exclude 1, and the means must not contradict it.
        """
        return [self._verdict(first, second) for first, second in combinations(self.results, 2)]

    def _verdict(self, first: str, second: str) -> str:
        if self._final(first).mean() > self._final(second).mean():
            first, second = second, first
        found = self.ratio(first, second)
        if not found.known:
            played, needed = plural(len(self._final(first)), "trial"), least_trials(self._each)
            return f"{first} against {second}: not decided, {needed} trials are needed, {played} played"
        said = f"{found.estimate:.2f} times its regret ({found.low:.2f} to {found.high:.2f})"
        if found.high < 1:
            return f"{first} beats {second}: {said}"
        doubt = ", the mean and most trials disagree" if found.low > 1 else ""
        return f"{first} against {second}: not decided, {said}{doubt}"

    def plot(self, ax: Any = None) -> Axes:
        """Group regret of every policy against the round; see `Result.plot`."""
        for name, result in self.results.items():
            ax = result.plot(ax, label=label_of_policy(name))
        axes: Axes = ax
        return axes

    def _title(self) -> str:
        result = self.results[self.best]
        trials, rounds = plural(len(result.regret), "trial"), plural(int(result.checkpoints[-1]), "round")
        return f"{trials} of {rounds}; ratio: median over trials of the regret divided by that of {self.best}"

    def __repr__(self) -> str:
        rows = [{key: cell(value) for key, value in row.items()} for row in self.table()]
        widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
        lines = [{key: key for key in widths}, *rows]
        table = ("  ".join(line[key].ljust(widths[key]) for key in widths).rstrip() for line in lines)
        return "\n".join([self._title(), *table, *self.verdicts()])

    def _repr_html_(self) -> str:
        from rumormill.plotting.rendering import html_lines, html_picture, html_table
        from rumormill.plotting.style import unseen

        with unseen():
            picture = html_picture(self.plot(), "Group regret of every policy against the round")
        return html_table(self.table(), self._title()) + html_lines(self.verdicts()) + picture

    def _final(self, name: str) -> NDArray[np.float64]:
        """Group regret of every trial at the last checkpoint."""
        if name not in self.results:
            raise InputError(
                f"policy = {shown(name)} is not in the comparison{nearest(str(name), self.results)}"
            )
        return self.results[name].regret[:, -1]

    @property
    def _each(self) -> float:
        """The confidence of one pair, so that all pairs hold together."""
        n = len(self.results)
        return 1 - (1 - self.confidence) / max(1, n * (n - 1) // 2)


@named_arguments
def compare(
    bandit: RewardSource,
    network: Network | Topology | str | Table,
    policies: Mapping[str, Any] | Sequence[Any],
    *,
    horizon: int,
    trials: int = 1,
    rng: RandomSource,
    confidence: float = 0.95,
    engine: Engine = "auto",
    actions: bool = False,
    rewards: bool = False,
    checkpoints: int | Sequence[int] | None = None,
    channel: Channel | str | Table | None = None,
    absences: Sequence[tuple[int, int, int]] = (),
    outages: Sequence[tuple[int, int, int, int]] = (),
    churn: Churn | None = None,
    corruption: Corruption | None = None,
    byzantine: Byzantine | None = None,
    prior: Prior | None = None,
    offsets: Sequence[float] | None = None,
    scales: Sequence[float] | None = None,
    allowed: Any = None,
    k: int = 1,
    propensities: bool = False,
    progress: OnProgress | bool | None = None,
    workers: int | None = None,
    block: int | None = None,
) -> Comparison:
    """Play several policies on the same rewards; each result, and every other parameter, is as in `simulate`.

    Parameters
    ----------
    policies : mapping of names to policies, or sequence of policies
        A policy, or a group as in `simulate`; in a sequence under its label, with settings if two are alike.
    confidence : float, default 0.95
        Joint confidence of the intervals of all pairs; two policies need at least 6 trials for them.

    Returns
    -------
    Comparison
        Results by name, paired differences and ratios with exact intervals.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    >>> found = rm.compare(bandit, rm.Network.ring(6), ["kmp", "robust"], horizon=100, trials=8, rng=0)
    >>> found.best, found.results["kmp"].regret.shape
    ('kmp', (8, 100))

    References
    ----------
    docs/semantics.md: seeds, and the same rewards for every policy.
    """
    named, confidence = _named(policies), inside("confidence", confidence, 0, 1)
    world, given = world_of(channel, absences, outages, churn, corruption, byzantine), list(named.values())
    size = horizon, trials, rng, engine, actions, rewards, checkpoints, world, (prior, offsets, scales)
    found = play_policies(bandit, network, given, *size, (allowed, k, propensities), progress, workers, block)
    return Comparison(dict(zip(named, found, strict=True)), confidence)


def _named(policies: Any) -> dict[str, Any]:
    """The policies by name; names that occur again are numbered."""
    if isinstance(policies, Mapping):
        named = dict(policies)
        if not all(isinstance(name, str) for name in named):
            raise InputError("policies must be named by text")
    elif isinstance(policies, Sequence) and not isinstance(policies, str):
        names = [policy if isinstance(policy, str) else label_of_policy(policy) for policy in policies]
        longer = [with_settings(name, policy) for name, policy in zip(names, policies, strict=True)]
        names = [long if names.count(name) > 1 else name for name, long in zip(names, longer, strict=True)]
        named = {}
        for name, policy in zip(names, policies, strict=True):
            same = sum(known == name or known.startswith(f"{name} #") for known in named)
            named[f"{name} #{same + 1}" if same else name] = policy
    else:
        raise InputError(
            f"policies = {shown(policies)} is not allowed: a dict of names and policies, or a list"
        )
    if not named:
        raise InputError("policies is empty: give at least one policy")
    return named
