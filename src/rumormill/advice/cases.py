"""The problems of specs that advice is given on: known laws, and the moment bounds that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from rumormill.arms import Bandit, Moments, RewardSource
from rumormill.errors import InputError
from rumormill.experiments.spec.building import build_common_bandit, build_law
from rumormill.experiments.spec.reading import points
from rumormill.experiments.spec.schema import Spec


@dataclass(frozen=True)
class ArmTail:
    """The exact tail index of one arm's law."""

    arm: str
    mean: float | None
    exact: float

    def row(self) -> dict[str, Any]:
        words = "known from the law" + (": every moment is finite" if math.isinf(self.exact) else "")
        return {"arm": self.arm, "mean": self.mean, "tail_index": self.exact, "tail": words}


@dataclass(frozen=True)
class Case:
    """A problem to give advice on: rewards for every trial, moment bounds, and why these."""

    name: str
    tails: tuple[ArmTail, ...]
    moments: Moments
    light: bool
    reasons: tuple[str, ...]
    source: Callable[[int, int, int], RewardSource]
    """The rewards of a trial, for so many agents and rounds."""


def case_of_spec(spec: Spec) -> Case:
    """The arms of an experiment: tails and moments are exact."""
    single = one_problem(spec)
    if single.arms.varies:
        raise InputError(
            f"{spec.name} has arms that differ between agents or change: advice on a spec is for one bandit; "
            "record a log of it and ask about that"
        )
    bandit = build_common_bandit(single, 0)
    eps = bandit.default_eps()
    uniform = single.arms.means == "uniform"
    # E|X + m|^p is convex in m: over means in [0, 1] it is largest at an end.
    worst = Bandit([build_law(single, 0.0), build_law(single, 1.0)]) if uniform else bandit
    moments = worst.moments(eps)
    tails = tuple(
        ArmTail(arm=f"arm {k}", mean=None if uniform else law.mean, exact=law.tail_index)
        for k, law in enumerate(bandit.arms)
    )
    index = bandit.tail_index
    why = "variances are finite" if index > 2 else f"moments are finite below order {index:g}"
    if single.arms.eps is not None:
        why = "given by the spec"
    means = " for any means in [0, 1]" if uniform else ""
    reasons = (
        f"ε = {eps:.3g}: {why}.",
        f"u = {moments.u:.4g}, ρ = {moments.rho:.4g}: exact{means}.",
    )
    return Case(
        single.name,
        tails,
        moments,
        index > 2,
        reasons,
        lambda trial, agents, horizon: build_common_bandit(single, trial),
    )


def one_problem(spec: Spec) -> Spec:
    """The spec at its only network and arms; refused where a sweep makes it several problems."""
    several = points(spec)
    first = several[0].spec
    if any((point.spec.network, point.spec.arms) != (first.network, first.arms) for point in several):
        raise InputError(
            f"{spec.name} sweeps {', '.join(spec.sweep)}: advice is for one network and one law, "
            "so give a spec without that sweep"
        )
    return msgspec.structs.replace(first, sweep={})
