"""From a spec to the things that play: network, bandit and policies of one trial."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rumormill.arms import AlphaStable, Arm, Bandit, Gaussian, LogNormal, Pareto, StudentT
from rumormill.engine import Role, root_seed, stream_seed
from rumormill.errors import InputError
from rumormill.estimators import Catoni, EmpiricalMean, Estimator, MedianOfMeans, TrimmedMean
from rumormill.experiments.spec import schema
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network
from rumormill.policies import (
    KMPUCB,
    CentralizedMPUCB,
    ConsensusUCB,
    DecentralizedMPUCB,
    Policy,
    RobustUCB,
)

ESTIMATORS: dict[str, type[Estimator]] = {
    "trimmed": TrimmedMean,
    "median-of-means": MedianOfMeans,
    "catoni": Catoni,
    "empirical": EmpiricalMean,
}
POLICIES: dict[type, type[Policy]] = {
    schema.DecentralizedForm: DecentralizedMPUCB,
    schema.CentralizedForm: CentralizedMPUCB,
    schema.KMPForm: KMPUCB,
    schema.ConsensusForm: ConsensusUCB,
    schema.RobustForm: RobustUCB,
}


def trial_seed(spec: Spec, trial: int) -> np.random.SeedSequence:
    """The seed of a trial. No sweep value enters: all points of a sweep see the same chance."""
    return stream_seed(root_seed(spec.seed), trial)


# --- networks -------------------------------------------------------------------------------------------


def is_fresh(network: schema.AnyNetwork) -> bool:
    """Whether every trial has a network of its own."""
    if isinstance(network, schema.FromFile) and network.subgraph is None:
        return False
    return bool(getattr(network, "fresh", False))


def build_network(spec: Spec, trial: int) -> Network:
    """The network of a trial."""
    form = spec.network
    seed = stream_seed(trial_seed(spec, trial if is_fresh(form) else 0), Role.NETWORK)
    rng = np.random.default_rng(seed)
    if isinstance(form, schema.FromFile):
        whole = graph_file(form.file)
        return whole if form.subgraph is None else whole.subgraph(form.subgraph, rng=rng)
    parameters = {key: getattr(form, key) for key in form.__struct_fields__ if key not in ("fresh",)}
    if hasattr(form, "fresh"):
        parameters["rng"] = rng
    make: Any = getattr(Network, str(form.__struct_config__.tag))
    network: Network = make(**parameters)
    return network


@lru_cache(maxsize=4)
def graph_file(name: str) -> Network:
    """A graph from a path, or by its name in the data directory."""
    from rumormill.graphs.datasets import find

    return Network.from_file(find(name))


def check_network(spec: Spec) -> None:
    """Refuse sizes that do not go together, without drawing a graph."""
    form = spec.network
    if isinstance(form, schema.BarabasiAlbert) and form.m >= form.n:
        raise InputError(f"network.m = {form.m} is not allowed for n = {form.n}: it must be below n")
    if isinstance(form, schema.WattsStrogatz) and (form.k % 2 or form.k >= form.n):
        raise InputError(f"network.k = {form.k} is not allowed for n = {form.n}: it must be even and below n")
    if isinstance(form, schema.RandomRegular) and (form.d >= form.n or form.n * form.d % 2):
        raise InputError(
            f"network.d = {form.d} is not allowed for n = {form.n}: it must be below n, and n times d even"
        )


# --- arms -----------------------------------------------------------------------------------------------


class BanditAt(Bandit):
    """A bandit whose moment bounds are of a given order."""

    def __init__(self, arms: list[Arm], eps: float) -> None:
        super().__init__(arms)
        self._eps = eps
        self.moments()  # refuses an order that is not finite

    def default_eps(self) -> float:
        return self._eps


def build_bandit(spec: Spec, trial: int) -> Bandit:
    """The bandit of a trial: uniform means are fresh in every trial."""
    if spec.arms.means == "uniform":
        rng = np.random.default_rng(stream_seed(trial_seed(spec, trial), Role.BANDIT))
        means: list[float] = rng.random(spec.n_arms).tolist()
    else:
        means = list(spec.arms.means)
    arms = [arm(spec.arms, mean) for mean in means]
    return Bandit(arms) if spec.arms.eps is None else BanditAt(arms, spec.arms.eps)


def arm(form: schema.AnyArms, mean: float) -> Arm:
    """One arm of the given law, moved to the given mean."""
    if isinstance(form, schema.AlphaStableArms):
        return AlphaStable(alpha=form.alpha, loc=mean, scale=form.scale, beta=form.beta)
    if isinstance(form, schema.GaussianArms):
        return Gaussian(loc=mean, scale=form.scale)
    if isinstance(form, schema.StudentTArms):
        return StudentT(df=form.df, loc=mean, scale=form.scale)
    if isinstance(form, schema.ParetoArms):
        at_zero = Pareto(tail=form.tail, scale=form.scale)
        return Pareto(tail=form.tail, scale=form.scale, shift=mean - at_zero.mean)
    return LogNormal(sigma=form.sigma, shift=mean - LogNormal(sigma=form.sigma).mean)


def check_arms(spec: Spec) -> None:
    """Refuse arms that leave nothing to learn, or moments that are not finite."""
    form = spec.arms
    if form.means != "uniform" and form.K is not None and len(form.means) != form.K:
        raise InputError(f"arms.K = {form.K} is not allowed: arms.means has {len(form.means)} values")
    if spec.size.horizon < spec.n_arms:
        raise InputError(
            f"horizon = {spec.size.horizon} is not allowed: "
            f"the first K = {spec.n_arms} rounds try every arm once"
        )
    try:
        build_bandit(spec, 0)
    except InputError as error:
        raise InputError(f"arms: {error}") from None


# --- policies -------------------------------------------------------------------------------------------


def build_policy(form: schema.AnyPolicy) -> Policy:
    """The policy that a form describes."""
    given = {key: getattr(form, key) for key in form.__struct_fields__ if key != "label"}
    if "estimator" in given:
        given["estimator"] = ESTIMATORS[given["estimator"]]()
    return POLICIES[type(form)](**{key: value for key, value in given.items() if value is not None})


def check_policies(spec: Spec) -> None:
    """Refuse parameters that a policy does not take together."""
    bandit = build_bandit(spec, 0)
    for number, form in enumerate(spec.policies):
        try:
            policy = build_policy(form)
            if not isinstance(policy, ConsensusUCB):
                policy.radius(bandit)  # type: ignore[attr-defined]
        except InputError as error:
            raise InputError(f"policies[{number}] ({form.label}): {error}") from None
