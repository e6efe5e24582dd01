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
WORDS = ("title", "question", "claims", "verdicts")


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """Common to all parts: keyword-only, never changed, unknown keys refused."""


# --- what plays -----------------------------------------------------------------------------------------


class NetworkPart(Form, frozen=True, kw_only=True):
    """Where the network comes from. `fresh`: another random one in every trial."""

    kind: str
    """The family, a file, or module:Class."""
    fresh: bool
    """Another random network in every trial; true where the family is random."""
    settings: Settings = {}


class ClusterArms(Form, frozen=True, kw_only=True):
    """Agents that face other means than the rest."""

    members: Annotated[list[Natural], Meta(min_length=1)]
    """Their numbers."""
    means: list[float]
    """The means that they face, by arm."""


class ChangedArms(Form, frozen=True, kw_only=True):
    """Means that hold for all agents from round `at` on."""

    at: Annotated[int, Meta(ge=2)]
    """The first round."""
    means: Literal["uniform"] | list[float]
    """The means from then on, by arm; or "uniform": from U[0, 1], fresh in every trial."""


class SeasonOfArms(Form, frozen=True, kw_only=True):
    """Means that swing: amplitude and phase (in turns) by arm."""

    amplitude: list[float]
    """How far each mean swings."""
    period: Annotated[float, Meta(gt=0)]
    """Rounds per swing."""
    phase: list[float] | None = None
    """Where each swing begins, in turns; 0 if left out."""


class TrendOfArms(Form, frozen=True, kw_only=True):
    """Means that move in a line to `to` within so many rounds, and stay there."""

    to: list[float]
    """The means in the end, by arm."""
    rounds: Annotated[int, Meta(ge=2)]
    """How many rounds it takes."""


class ScenarioOfArms(Form, frozen=True, kw_only=True):
    """One way in which the means change over time; what it gives replaces what `[arms]` has."""

    changes: list[ChangedArms] | None = None
    """Rounds in which the means change for all."""
    season: SeasonOfArms | None = None
    """Means that swing."""
    trend: TrendOfArms | None = None
    """Means that move in a line."""


class ArmsPart(Form, frozen=True, kw_only=True):
    """`means`: "uniform" (K means from U[0, 1], fresh in every trial) or the K means themselves.

    `eps` is the order of the moment bounds minus one; left out, the bandit chooses it. `objective` says which
    way is better ("maximise" where it is left out). The rest make arms that differ between agents or change.
    """

    law: str
    """The law of the rewards, or module:Class."""
    K: Annotated[int, Meta(ge=2)] | None = None
    """The number of arms; as many as there are means or tables in `each`, or 5."""
    means: Literal["uniform"] | list[float] = "uniform"
    """The means themselves, or "uniform": from U[0, 1], fresh in every trial."""
    gap: Annotated[float, Meta(gt=0, le=1)] | None = None
    """Instead of means: one arm at (1 + gap)/2, drawn in every trial, the others at (1 - gap)/2."""
    each: Annotated[list[Settings], Meta(min_length=2)] | None = None
    """Arms of different shape: one table of settings per arm, on top of those of the law."""
    eps: Annotated[float, Meta(gt=0, le=1)] | None = None
    """The order of the moment bounds minus one; chosen from the tails if left out."""
    objective: Literal["maximise", "minimise"] | None = None
    """Which way is better; more, if left out."""
    clusters: list[ClusterArms] | None = None
    """Agents that face other means than the rest."""
    changes: list[ChangedArms] | None = None
    """Rounds in which the means change for all."""
    season: SeasonOfArms | None = None
    """Means that swing."""
    trend: TrendOfArms | None = None
    """Means that move in a line."""
    scenarios: dict[Name, ScenarioOfArms] | None = None
    """Several ways of changing, by name: `scenario` is then an axis of the sweep."""
    settings: Settings = {}

    @property
    def varies(self) -> bool:
        """Whether the arms differ between agents or change over time."""
        return any(part is not None for part in (self.clusters, self.changes, self.season, self.trend))


class PolicyPart(Form, frozen=True, kw_only=True):
    """`label` is its name in tables and figures; left out, one is made from the type."""

    type: str
    """The policy, or module:Class."""
    label: str = ""
    """Its name in tables and figures; made from the type if left out."""
    settings: Settings = {}


class ChannelPart(Form, frozen=True, kw_only=True):
    """What happens to messages on their way."""

    type: str = "perfect"
    """The channel, or module:Class."""
    settings: Settings = {}


class ChurnPart(Form, frozen=True, kw_only=True):
    """Agents come and go: spells up and down, so many rounds in the mean."""

    up: float
    """How many rounds an agent stays, in the mean."""
    down: float
    """How many rounds it is away, in the mean."""


class CorruptionPart(Form, frozen=True, kw_only=True):
    """Rewards in messages are falsified: one of shift, scale and law says how."""

    rate: float
    """The probability that a message is falsified."""
    shift: float | None = None
    """What is added to its reward."""
    scale: float | None = None
    """What its reward is multiplied by."""
    law: str | Settings | None = None
    """What is drawn in place of its reward: a law of rewards, by name or as a table."""
    at: str = "origin"
    """Where: "origin", the same for all receivers, or "receiver", each for itself."""
    rows: bool = False
    """Whether the means in the rows of KMP are falsified too."""


class ByzantinePart(Form, frozen=True, kw_only=True):
    """Agents that lie; a number n stands for the agents 0..n-1."""

    agents: list[Natural] | Natural
    """Who lies."""
    attack: str = "promote"
    """What they say: "promote" the worst arm, "slander" the best one, or "flood" with absurd rewards."""
    size: float | None = None
    """The reward they tell of, where it is not that of the attack."""


# --- claims ---------------------------------------------------------------------------------------------


class ClaimPart(Form, tag_field="kind", frozen=True, kw_only=True):
    """A sentence about the outcome, to be tested on the trials. Policies are named by their labels."""

    policy: str
    """The label of the policy that it is about."""


class Beats(ClaimPart, tag="beats", frozen=True, kw_only=True):
    """The policy has lower regret at the horizon than another one."""

    than: str
    """The label of the other one."""


class AtLeastAsGood(ClaimPart, tag="at-least-as-good", frozen=True, kw_only=True):
    """The policy does at least as well as another one."""

    than: str
    """The label of the other one."""


class Matters(ClaimPart, tag="matters", frozen=True, kw_only=True):
    """A swept parameter changes the policy's regret by more than the margin (10 %)."""

    parameter: str
    """A key of `[sweep]`."""


class HardlyMatters(ClaimPart, tag="hardly-matters", frozen=True, kw_only=True):
    """A swept parameter does not."""

    parameter: str
    """A key of `[sweep]`."""


class Worsens(ClaimPart, tag="worsens", frozen=True, kw_only=True):
    """Regret grows as a swept parameter goes towards its lowest or its highest value."""

    parameter: str
    """A key of `[sweep]`."""
    toward: Literal["low", "high"]
    """Which end of the sweep is the worse one."""


class LargerGain(ClaimPart, tag="larger-gain", frozen=True, kw_only=True):
    """What the policy gains over another one is larger here than in another experiment."""

    over: str
    """The label of the one it gains over."""
    than_in: str
    """The name of the other experiment."""


Claim = Beats | AtLeastAsGood | Matters | HardlyMatters | Worsens | LargerGain


class VerdictPart(Form, frozen=True, kw_only=True):
    """How all policies of a run are compared with each other, beside the claims.

    `baseline`: with this policy only; left out, every pair. `margin`: a difference below this share of
    regret counts as none.
    """

    baseline: str | None = None
    """The label of the policy that all others are compared with; every pair if left out."""
    margin: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    """The share of regret below which a difference counts as none."""


# --- tuning ---------------------------------------------------------------------------------------------


class Added(Form, frozen=True, kw_only=True):
    """A value that was added beyond an end of the grid, for the policies that were best at that end."""

    value: float
    """The value."""
    policies: list[str]
    """Their labels."""


class TunePart(Form, frozen=True, kw_only=True):
    """Every policy is played at every value of a constant, and reported at the one that is best for it.

    Which setting the constant is may differ between policies: it is the first of `knobs` that a policy takes
    ("zeta", or with a dot a setting of its estimator, "estimator.C"). The best value (the largest whose mean
    regret is within a quarter of the least) is chosen on the first `choose` of the trials, at every sweep
    point; what is reported are the others. Where it lies at an end of the grid, the grid is extended, at most
    `extend` times. `over`: a swept parameter over which the worst case of one fixed value is sought.
    """

    knobs: Annotated[list[str], Meta(min_length=1)]
    """The settings that may be the constant; a policy's is the first that it takes."""
    grid: Annotated[list[Annotated[float, Meta(gt=0)]], Meta(min_length=2)]
    """The values to try."""
    choose: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    """The share of the trials on which the best value is chosen; the others are reported."""
    extend: Natural = 3
    """How often the grid may be extended where the best value lies at its end."""
    over: str | None = None
    """A swept parameter over which the worst case of one fixed value is sought."""
    added: list[Added] = []
    """Written by a run, not by people: what the numbers of its other points do not depend on."""


# --- the whole ------------------------------------------------------------------------------------------


class Scale(Form, frozen=True, kw_only=True):
    """How large a run is. `n` replaces the number of agents."""

    horizon: Count
    """Rounds."""
    trials: Count
    """Trials."""
    checkpoints: Count = 200
    """How many rounds of each trial are kept."""
    n: Count | None = None
    """The number of agents, in place of the network's."""


class Spec(Form, frozen=True, kw_only=True):
    """One experiment. A spec that can be run has exactly one scale."""

    name: Name
    """Small letters, digits, dots and dashes: folders are called after it."""
    title: str = ""
    """A heading for figures and report."""
    question: str = ""
    """What it is to answer, in a sentence."""
    seed: Natural
    """The seed of all randomness."""
    network: NetworkPart
    """Who is linked to whom."""
    networks: dict[Name, NetworkPart] = {}
    """Several networks by name: then `network` is an axis of the sweep."""
    arms: ArmsPart
    """What the arms pay."""
    channel: ChannelPart = ChannelPart()
    """What happens to messages on their way."""
    absences: list[tuple[Natural, Count, Count]] = []
    """(agent, first round, last round)"""
    outages: list[tuple[Natural, Natural, Count, Count]] = []
    """(agent, agent, first round, last round)"""
    churn: ChurnPart | None = None
    """Agents that come and go."""
    corruption: CorruptionPart | None = None
    """Messages falsified by accident."""
    byzantine: ByzantinePart | None = None
    """Agents that lie."""
    policies: Annotated[list[PolicyPart], Meta(min_length=1)]
    """Who plays; all of them on the same rewards."""
    sweep: dict[str, AxisValues] = {}
    """Values to try, by the key that takes them (`gamma`, `alpha`, …); several keys make a grid."""
    scale: Annotated[dict[ScaleName, Scale], Meta(min_length=1)]
    """Sizes by name: `quick`, `full`, …; or `horizon` and `trials` at the top."""
    tune: TunePart | None = None
    """A constant to choose on trials of its own, before the run."""
    claims: list[Claim] = []
    """Sentences to test on the outcome."""
    verdicts: VerdictPart = VerdictPart()
    """Which policies are compared, and by which margin."""
    folder: str | None = None
    """Where the file lies, so that own classes beside it can be imported. No part of what is run."""

    @property
    def size(self) -> Scale:
        """The one scale of a spec that is ready to run."""
        (only,) = self.scale.values()
        return only

    @property
    def surroundings(self) -> tuple[Any, ...]:
        """Channel and fault models."""
        return (self.channel, self.absences, self.outages, self.churn, self.corruption, self.byzantine)

    @property
    def all_pull(self) -> bool:
        """Whether all agents pull in every round."""
        return not (self.absences or self.churn or self.byzantine)

    @property
    def n_arms(self) -> int:
        """The number of arms: K, or as many as there are means or shapes."""
        listed = self.arms.each if self.arms.means == "uniform" else self.arms.means
        return self.arms.K or (5 if listed is None else len(listed))

    @property
    def labels(self) -> list[str]:
        """The names of the policies, in order."""
        return [policy.label for policy in self.policies]
