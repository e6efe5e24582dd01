"""Regret where the arms differ between agents or change over time: worked out from the arms pulled.

Both engines count pulls and know one gap per arm, which is enough where everybody faces the same arms for
ever. Elsewhere the arms that were pulled are compared with the means of their agent and round, once, after
the trial and for both engines alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, VaryingSource
from rumormill.arms.objective import best_of
from rumormill.engine.result import Trial

ROUNDS = 256  # looked at together


def needs_actions(source: RewardSource) -> bool:
    """Whether one gap per arm does not describe the source."""
    return isinstance(source, VaryingSource) and source.varies


def with_regret(trial: Trial, source: RewardSource, marks: NDArray[np.int64], keep_actions: bool) -> Trial:
    """The trial with its regret as the source's own means have it; actions only if they were asked for."""
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
        there = actions[start:stop] >= 0  # whoever does not pull pays nothing, and regrets nothing
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
