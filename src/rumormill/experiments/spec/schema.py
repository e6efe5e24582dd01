"""The form of an experiment file: every key, its type and its range."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Probability = Annotated[float, Meta(ge=0, le=1)]
AxisValues = Annotated[list[Any], Meta(min_length=1)]


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """Common to all parts: keyword-only, never changed, unknown keys refused."""


# --- networks -------------------------------------------------------------------------------------------


class NetworkForm(Form, tag_field="kind", frozen=True, kw_only=True):
    """Where the network comes from. `fresh`: another random one in every trial."""


class ErdosRenyi(NetworkForm, tag="erdos_renyi", frozen=True, kw_only=True):
    n: Count
    p: Probability
    connected: bool = True
    fresh: bool = True


class BarabasiAlbert(NetworkForm, tag="barabasi_albert", frozen=True, kw_only=True):
    n: Annotated[int, Meta(ge=2)]
    m: Count
    fresh: bool = True


class WattsStrogatz(NetworkForm, tag="watts_strogatz", frozen=True, kw_only=True):
    n: Annotated[int, Meta(ge=3)]
    k: Annotated[int, Meta(ge=2)]
    p: Probability
    connected: bool = True
    fresh: bool = True


class RandomRegular(NetworkForm, tag="random_regular", frozen=True, kw_only=True):
    n: Count
    d: Natural
    connected: bool = True
    fresh: bool = True


class Ring(NetworkForm, tag="ring", frozen=True, kw_only=True):
    n: Annotated[int, Meta(ge=3)]


class Line(NetworkForm, tag="path", frozen=True, kw_only=True):
    n: Count


class Star(NetworkForm, tag="star", frozen=True, kw_only=True):
    n: Count


class Complete(NetworkForm, tag="complete", frozen=True, kw_only=True):
    n: Count


class Grid(NetworkForm, tag="grid", frozen=True, kw_only=True):
    rows: Count
    cols: Count


class BalancedTree(NetworkForm, tag="balanced_tree", frozen=True, kw_only=True):
    branching: Count
    height: Natural


class FromFile(NetworkForm, tag="file", frozen=True, kw_only=True):
    """`file` is a path, or the name of a graph in the data directory; `subgraph` the size of a snowball."""

    file: str
    subgraph: Count | None = None
    fresh: bool = True


AnyNetwork = (
    ErdosRenyi
    | BarabasiAlbert
    | WattsStrogatz
    | RandomRegular
    | Ring
    | Line
    | Star
    | Complete
    | Grid
    | BalancedTree
    | FromFile
)


# --- arms -----------------------------------------------------------------------------------------------


class ArmsForm(Form, tag_field="law", frozen=True, kw_only=True):
    """`means`: "uniform" (K means from U[0, 1], fresh in every trial) or the K means themselves.

    `eps` is the order of the moment bounds minus one; left out, the bandit chooses it.
    """

    K: Annotated[int, Meta(ge=2)] | None = None
    means: Literal["uniform"] | list[float] = "uniform"
    eps: Annotated[float, Meta(gt=0, le=1)] | None = None


class AlphaStableArms(ArmsForm, tag="alpha-stable", frozen=True, kw_only=True):
    alpha: Annotated[float, Meta(gt=1, le=2)]
    scale: Positive = 1.0
    beta: Annotated[float, Meta(ge=-1, le=1)] = 0.0


class GaussianArms(ArmsForm, tag="gaussian", frozen=True, kw_only=True):
    scale: Positive = 1.0


class StudentTArms(ArmsForm, tag="student-t", frozen=True, kw_only=True):
    df: Annotated[float, Meta(gt=1)]
    scale: Positive = 1.0


class ParetoArms(ArmsForm, tag="pareto", frozen=True, kw_only=True):
    tail: Annotated[float, Meta(gt=1)]
    scale: Positive = 1.0


class LogNormalArms(ArmsForm, tag="lognormal", frozen=True, kw_only=True):
    sigma: Positive = 1.0


AnyArms = AlphaStableArms | GaussianArms | StudentTArms | ParetoArms | LogNormalArms


# --- policies -------------------------------------------------------------------------------------------

ScaleName = Literal["quick", "full", "custom"]
EstimatorName = Literal["trimmed", "median-of-means", "catoni", "empirical"]


class PolicyForm(Form, tag_field="type", frozen=True, kw_only=True):
    """`label` is its name in tables and figures; left out, one is made from the type."""

    label: str = ""


class RobustForm(PolicyForm, tag="robust", frozen=True, kw_only=True):
    """Every agent alone."""

    estimator: EstimatorName = "trimmed"
    c: Positive | Literal["theory"] | None = None
    zeta: Positive | None = None
    confidence: Literal["paper", "anytime"] = "paper"


class SharingForm(RobustForm, frozen=True, kw_only=True):
    gamma: Natural | Literal["half-diameter"] = "half-diameter"


class DecentralizedForm(SharingForm, tag="decentralized", frozen=True, kw_only=True):
    clique_filter: bool = True


class CentralizedForm(SharingForm, tag="centralized", frozen=True, kw_only=True):
    leaders: Literal["independent", "dominating"] = "independent"


class KMPForm(SharingForm, tag="kmp", frozen=True, kw_only=True):
    pass


class ConsensusForm(PolicyForm, tag="consensus", frozen=True, kw_only=True):
    kappa: Positive | None = None
    epsilon: Annotated[float, Meta(ge=0)] | None = None


AnyPolicy = DecentralizedForm | CentralizedForm | KMPForm | ConsensusForm | RobustForm


# --- the whole ------------------------------------------------------------------------------------------


class Scale(Form, frozen=True, kw_only=True):
    """How large a run is. `n` replaces the number of agents."""

    horizon: Count
    trials: Count
    checkpoints: Count = 200
    n: Count | None = None


class Spec(Form, frozen=True, kw_only=True):
    """One experiment. A spec that can be run has exactly one scale."""

    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]*$")]
    title: str = ""
    question: str = ""
    seed: Natural
    network: AnyNetwork
    arms: AnyArms
    policies: Annotated[list[AnyPolicy], Meta(min_length=1)]
    sweep: dict[str, AxisValues] = {}
    scale: dict[ScaleName, Scale]

    @property
    def size(self) -> Scale:
        """The one scale of a spec that is ready to run."""
        (only,) = self.scale.values()
        return only

    @property
    def n_arms(self) -> int:
        """The number of arms: K, or as many as there are means."""
        return self.arms.K or (5 if self.arms.means == "uniform" else len(self.arms.means))

    @property
    def labels(self) -> list[str]:
        """The names of the policies, in order."""
        return [policy.label for policy in self.policies]
