"""Rewards from draws; and the slowest part of stable draws, with the same bits as on whole arrays."""

from __future__ import annotations

from rumormill import formulas
from rumormill.kernels.jit import kernel, linked, part, step
from rumormill.kernels.state import Floats, Ids, Ints, RewardLaw

quarter_sine = step(formulas.quarter_sine)
centred = step(formulas.centred)
stable_parts = linked(formulas.stable_parts, centred=centred, quarter_sine=quarter_sine)


@kernel
def shape_stable(u: Floats, wait: Floats, alpha: float) -> None:
    """Replace u and wait by their `formulas.stable_parts`."""
    for i in range(u.shape[0]):
        u[i], wait[i] = stable_parts(u[i], wait[i], alpha)


@part
def draw_rewards(draws: Floats, law: RewardLaw, arms: Ids, xs: Floats, pulls: Ints) -> None:
    """The reward of every agent, and its pull counted."""
    for v in range(draws.shape[0]):
        arm = arms[v]
        xs[v] = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
        pulls[v, arm] += 1
