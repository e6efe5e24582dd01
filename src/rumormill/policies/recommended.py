"""What the tournament recommends, by what is known of the rewards; see docs/decisions/009-recommended.md."""

from __future__ import annotations

from rumormill.estimators import ClippedMean, HuberSGD, SelfTuned
from rumormill.policies.kmp import KMPUCB
from rumormill.validate import truth


def recommended(*, symmetric: bool = False, proven: bool = False) -> KMPUCB:
    """A policy for rewards of which little is known.

    Nothing said: no moments are needed, skewed laws are allowed. `symmetric`: the laws are symmetric about
    their means, whatever their tails; least regret, and wrong for skewed ones. `proven`: at the constant of a
    lemma, with known moments. The paper's own settings are those of the class itself, `rm.KMPUCB()`.

    >>> recommended().estimator.needs_moments
    False
    """
    if truth("proven", proven):
        return KMPUCB(estimator=ClippedMean(), c="theory")
    if truth("symmetric", symmetric):
        return KMPUCB(estimator=HuberSGD(), start="shared")
    return KMPUCB(estimator=SelfTuned())
