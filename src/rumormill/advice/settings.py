"""The settings that advice compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rumormill import catalogue
from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.estimators import Radius
from rumormill.policies import Policy

ALONE, TOGETHER, IN_GROUPS = "alone", "all", "groups"
LABELS = {"robust": "Alone", "decentralized": "Decentralized", "centralized": "Centralized", "kmp": "KMP"}
ZETAS = (0.03, 0.1, 0.3, 1.0)
SHARING = ("decentralized", "centralized", "kmp")
# Catoni's mean solves an equation over all samples every round: far too slow to be tried unasked. The trimmed
# mean is left to the clipped one, which does better with the same moments and a smaller constant.
QUICK_ESTIMATORS = ("clipped", "median-of-means", "empirical")
# What a setting fixes where its policy has it: everybody in reach is heard, as few as possible lead.
PREFERRED = {"clique_filter": False, "leaders": "dominating"}


@dataclass(frozen=True)
class Setting:
    """One thing to try: a policy, how far messages go, a mean and its constant, and on which network."""

    policy: str
    gamma: int
    estimator: str
    zeta: float
    network: str = TOGETHER
    restart: int | None = None
    """Everything is forgotten every so many rounds."""

    def __str__(self) -> str:
        reach = "" if self.policy == "robust" else f" γ={self.gamma}"
        where = " in groups" if self.network == IN_GROUPS else ""
        again = "" if self.restart is None else f", restart every {self.restart}"
        return f"{LABELS[self.policy]}{where}{reach}, {self.estimator}, ζ={self.zeta:g}{again}"

    @property
    def cooperates(self) -> bool:
        return self.policy != "robust"

    def settings(self, moments: Moments) -> dict[str, Any]:
        """What the policy is given, of all that its class takes."""
        given: dict[str, Any] = {
            "gamma": self.gamma,
            "estimator": catalogue.make("estimator", self.estimator),
            "zeta": self.zeta,
            **PREFERRED,
            "moments": moments,
        }
        return {name: value for name, value in given.items() if name in self._taken}

    def build(self, moments: Moments) -> Policy:
        """The policy itself."""
        policy: Policy = catalogue.find("policy", self.policy)(**self.settings(moments))
        return policy

    def covered(self, moments: Moments) -> bool:
        """Whether a lemma stands behind the radius with this very constant."""
        radius = Radius.build(catalogue.make("estimator", self.estimator), moments, c=None, zeta=self.zeta)
        return bool(radius.covered)

    @cached_property
    def _taken(self) -> set[str]:
        return {one.name for one in catalogue.settings(catalogue.find("policy", self.policy))}


def has_lemma(estimator: str) -> bool:
    """Whether a lemma stands behind the mean of this name."""
    return bool(catalogue.make("estimator", estimator).has_lemma)


def require_radius(estimators: Iterable[str]) -> None:
    """Refuse means that bring their own index: what is compared are factors ζ on a radius."""
    for name in estimators:
        if catalogue.make("estimator", name).brings_index:
            raise InputError(
                f"estimator {name!r} brings its own index, so there is no ζ to compare: give one with a "
                f"radius, such as {QUICK_ESTIMATORS[0]!r}"
            )


def code_of(value: Any) -> str:
    """A setting as Python writes it, without the digits that nobody would type."""
    if dataclasses.is_dataclass(value):
        given = [
            f"{field.name}={code_of(getattr(value, field.name))}"
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != field.default
        ]
        return f"rm.{type(value).__name__}({', '.join(given)})"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f'"{value}"' if isinstance(value, str) else repr(value)
