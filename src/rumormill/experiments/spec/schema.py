"""The form of an experiment: plain data that can be written, compared and sent to another process.

What settings a network, a law, a policy or a channel takes is not written here: it follows from the class
that the catalogue has under its name, and is checked when a spec is read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]*$")]
ScaleName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]*$")]
AxisValues = Annotated[list[Any], Meta(min_length=1)]
Settings = dict[str, Any]

# What the numbers of a run do not depend on.
WORDS = ("title", "question", "claims")


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """Common to all parts: keyword-only, never changed, unknown keys refused."""


# --- what plays -----------------------------------------------------------------------------------------


class NetworkPart(Form, frozen=True, kw_only=True):
    """Where the network comes from. `fresh`: another random one in every trial."""

    kind: str
    fresh: bool
    settings: Settings = {}


class ClusterArms(Form, frozen=True, kw_only=True):
    """Agents that face other means than the rest."""

    members: Annotated[list[Natural], Meta(min_length=1)]
    means: list[float]


class ChangedArms(Form, frozen=True, kw_only=True):
    """Means that hold for everybody from round `at` on."""

    at: Annotated[int, Meta(ge=2)]
    means: list[float]


class SeasonOfArms(Form, frozen=True, kw_only=True):
    """Means that swing: amplitude and phase (in turns) by arm."""

    amplitude: list[float]
    period: Annotated[float, Meta(gt=0)]
    phase: list[float] | None = None


class TrendOfArms(Form, frozen=True, kw_only=True):
    """Means that move in a line to `to` within so many rounds, and stay there."""

    to: list[float]
    rounds: Annotated[int, Meta(ge=2)]


class ArmsPart(Form, frozen=True, kw_only=True):
    """`means`: "uniform" (K means from U[0, 1], fresh in every trial) or the K means themselves.

    `eps` is the order of the moment bounds minus one; left out, the bandit chooses it. `objective` says which
    way is better ("maximise" where it is left out). The rest make arms that differ between agents or change.
    """

    law: str
    K: Annotated[int, Meta(ge=2)] | None = None
    means: Literal["uniform"] | list[float] = "uniform"
    eps: Annotated[float, Meta(gt=0, le=1)] | None = None
    objective: Literal["maximise", "minimise"] | None = None
    clusters: list[ClusterArms] | None = None
    changes: list[ChangedArms] | None = None
    season: SeasonOfArms | None = None
    trend: TrendOfArms | None = None
    settings: Settings = {}

    @property
    def varies(self) -> bool:
        """Whether the arms differ between agents or change over time."""
        return any(part is not None for part in (self.clusters, self.changes, self.season, self.trend))


class PolicyPart(Form, frozen=True, kw_only=True):
    """`label` is its name in tables and figures; left out, one is made from the type."""

    type: str
    label: str = ""
    settings: Settings = {}


class ChannelPart(Form, frozen=True, kw_only=True):
    """What happens to messages on their way."""

    type: str = "perfect"
    settings: Settings = {}


class ChurnPart(Form, frozen=True, kw_only=True):
    """Agents come and go: spells up and down, so many rounds in the mean."""

    up: float
    down: float


class CorruptionPart(Form, frozen=True, kw_only=True):
    """Rewards in messages are falsified: one of shift, scale and law says how."""

    rate: float
    shift: float | None = None
    scale: float | None = None
    law: str | Settings | None = None
    at: str = "origin"
    rows: bool = False


class ByzantinePart(Form, frozen=True, kw_only=True):
    """Agents that lie; a number n stands for the agents 0..n-1."""

    agents: list[Natural] | Natural
    attack: str = "promote"
    size: float | None = None


# --- claims ---------------------------------------------------------------------------------------------


class ClaimPart(Form, tag_field="kind", frozen=True, kw_only=True):
    """A sentence about the outcome, to be tested on the trials. Policies are named by their labels."""

    policy: str


class Beats(ClaimPart, tag="beats", frozen=True, kw_only=True):
    """The policy has lower regret at the horizon than another one."""

    than: str


class AtLeastAsGood(ClaimPart, tag="at-least-as-good", frozen=True, kw_only=True):
    """The policy does at least as well as another one."""

    than: str


class Matters(ClaimPart, tag="matters", frozen=True, kw_only=True):
    """A swept parameter changes the policy's regret by an amount worth speaking of."""

    parameter: str


class HardlyMatters(ClaimPart, tag="hardly-matters", frozen=True, kw_only=True):
    """A swept parameter does not."""

    parameter: str


class Worsens(ClaimPart, tag="worsens", frozen=True, kw_only=True):
    """Regret grows as a swept parameter goes towards its lowest or its highest value."""

    parameter: str
    toward: Literal["low", "high"]


class LargerGain(ClaimPart, tag="larger-gain", frozen=True, kw_only=True):
    """What the policy gains over another one is larger here than in another experiment."""

    over: str
    than_in: str


Claim = Beats | AtLeastAsGood | Matters | HardlyMatters | Worsens | LargerGain


# --- the whole ------------------------------------------------------------------------------------------


class Scale(Form, frozen=True, kw_only=True):
    """How large a run is. `n` replaces the number of agents."""

    horizon: Count
    trials: Count
    checkpoints: Count = 200
    n: Count | None = None


class Spec(Form, frozen=True, kw_only=True):
    """One experiment. A spec that can be run has exactly one scale."""

    name: Name
    title: str = ""
    question: str = ""
    seed: Natural
    network: NetworkPart
    arms: ArmsPart
    channel: ChannelPart = ChannelPart()
    absences: list[tuple[Natural, Count, Count]] = []
    """(agent, first round, last round)"""
    outages: list[tuple[Natural, Natural, Count, Count]] = []
    """(agent, agent, first round, last round)"""
    churn: ChurnPart | None = None
    corruption: CorruptionPart | None = None
    byzantine: ByzantinePart | None = None
    policies: Annotated[list[PolicyPart], Meta(min_length=1)]
    sweep: dict[str, AxisValues] = {}
    scale: Annotated[dict[ScaleName, Scale], Meta(min_length=1)]
    claims: list[Claim] = []
    folder: str | None = None
    """Where the file lies, so that own classes beside it can be imported. No part of what is run."""

    @property
    def size(self) -> Scale:
        """The one scale of a spec that is ready to run."""
        (only,) = self.scale.values()
        return only

    @property
    def surroundings(self) -> tuple[Any, ...]:
        """All that can go wrong around the agents."""
        return (self.channel, self.absences, self.outages, self.churn, self.corruption, self.byzantine)

    @property
    def all_pull(self) -> bool:
        """Whether everybody pulls in every round."""
        return not (self.absences or self.churn or self.byzantine)

    @property
    def n_arms(self) -> int:
        """The number of arms: K, or as many as there are means."""
        return self.arms.K or (5 if self.arms.means == "uniform" else len(self.arms.means))

    @property
    def labels(self) -> list[str]:
        """The names of the policies, in order."""
        return [policy.label for policy in self.policies]
