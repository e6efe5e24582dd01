"""Candidates, their outcomes, and the problems they are played on.

A `Problem` plays candidates and returns outcomes; the search (`rumormill.advice.search`) uses nothing else.
`LogProblem` (`rumormill.advice.replay`) replays a log; `SpecProblem` simulates the arms of a spec.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import networkx as nx
import numpy as np
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.arms import Arm, Bandit, Moments, RewardSource
from rumormill.engine import Contender, Trial, play_trial, prepare
from rumormill.engine.workers import Threads, Tick
from rumormill.errors import InputError
from rumormill.estimators import Radius
from rumormill.experiments.plan import plan_of
from rumormill.experiments.spec.building import build_common_bandit, build_laws
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network
from rumormill.policies import Plan, Policy, Prior
from rumormill.seeds import root_seed, stream_seed
from rumormill.stats import Interval, bootstrap_interval, relative_difference
from rumormill.text import nearest

Array = NDArray[np.float64]

ALONE, TOGETHER, IN_GROUPS = "alone", "all", "groups"
FIXED, OWN = "fixed", "own"
DEFAULT = "default"
LABELS = {
    "robust": "Alone",
    "decentralized": "Decentralized",
    "centralized": "Centralized",
    "kmp": "KMP",
    DEFAULT: "Default",
}
LEVELS = {"offsets": ", less offsets", "scales": ", scaled"}
KEPT = {OWN: "the own best arm", IN_GROUPS: "the best arm of the group", TOGETHER: "the best common arm"}
ZETAS = (0.03, 0.1, 0.3, 1.0)
SHARING = ("decentralized", "centralized", "kmp")
# Catoni's mean solves an equation over all samples every round: too slow to be tried by default. The trimmed
# mean is not tried either: the clipped mean does better with the same moments and a smaller constant.
QUICK_ESTIMATORS = ("clipped", "median-of-means", "empirical")
# Fixed wherever the policy has the parameter: all agents in reach are used, a smallest dominating set leads.
PREFERRED = {"clique_filter": False, "leaders": "dominating"}
# The final of a spec's search plays this many times the trials of the first look.
FINAL_TIMES = 3


# --- candidates and outcomes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A policy with hop budget, estimator and ζ, on one of the problem's networks."""

    policy: str
    gamma: int
    estimator: str | None = None
    """None for Consensus and the default, which have neither an estimator nor a radius to scale."""
    zeta: float | None = None
    network: str = TOGETHER
    restart: int | None = None
    """Length in rounds after which agents are reset; None: never."""
    warm: bool = False
    """Whether agents are born with what the log before knows of the arms."""
    levels: tuple[str, ...] = ()
    """The LEVELS in which agents' outcomes differ with every arm alike, and which they remove."""

    def __str__(self) -> str:
        if self.fixed:
            return f"Always {KEPT[self.network]}"
        where = " in groups" if self.network == IN_GROUPS else ""
        less = "".join(LEVELS[each] for each in self.levels)
        if self.estimator is None:
            return f"{self.policy.capitalize()}{where}{less}"
        reach = f" γ={self.gamma}" if self.cooperates else ""
        restart = "" if self.restart is None else f", restart every {self.restart}"
        label = LABELS.get(self.policy, self.policy)
        start = ", warm start" if self.warm else ""
        return f"{label}{where}{reach}, {self.estimator}, ζ={self.zeta:g}{less}{restart}{start}"

    @property
    def fixed(self) -> bool:
        """Whether agents keep the arm that was best before."""
        return self.policy == FIXED

    @property
    def cooperates(self) -> bool:
        """Whether agents exchange messages."""
        return self.policy not in ("robust", FIXED)

    @property
    def kind(self) -> str:
        """Fixed, alone, all together, or in groups."""
        return FIXED if self.fixed else self.network if self.cooperates else ALONE

    def settings(self, moments: Moments) -> dict[str, Any]:
        """The arguments of the policy's class, in the order in which they are shown."""
        given: dict[str, Any] = {"gamma": self.gamma}
        if self.estimator is not None:
            given |= {"estimator": catalogue.make("estimator", self.estimator), "zeta": self.zeta}
        given |= {**PREFERRED, "moments": moments}
        taken = {one.name for one in catalogue.settings(catalogue.find("policy", self.policy))}
        return {name: value for name, value in given.items() if name in taken}

    def build(self, moments: Moments) -> Policy:
        """The policy object; a `Problem` keeps it (`Problem.policy`)."""
        policy: Policy = catalogue.find("policy", self.policy)(**self.settings(moments))
        return policy

    def covered(self, moments: Moments) -> bool:
        """Whether a lemma covers the radius with this constant."""
        if self.estimator is None:
            return False
        radius = Radius.build(catalogue.make("estimator", self.estimator), moments, c=None, zeta=self.zeta)
        return bool(radius.covered)

    def code(self, moments: Moments) -> str:
        """The policy as a Python expression."""
        given = [f"{name}={code_of(value)}" for name, value in self.settings(moments).items()]
        return f"rm.{catalogue.find('policy', self.policy).__name__}({', '.join(given)})"


@dataclass(frozen=True)
class Outcome:
    """Losses and messages of one candidate."""

    candidate: Candidate
    loss: Array
    """A log: loss per request, (resamples, repeats). A spec: group regret, (trials,)."""
    paid: Array
    """A log: winsorised mean outcome of the same replays. A spec: the regret."""
    messages: float
    """Messages per round over all links."""
    wire_bytes: float
    recorded: float
    """The loss in the recorded order of a log; of a spec, the mean."""

    @property
    def mean(self) -> float:
        return float(self.loss.mean())

    @property
    def score(self) -> float:
        """What candidates are ranked by, lowest first."""
        return self.mean


def has_lemma(estimator: str) -> bool:
    """Whether a concentration lemma holds for the estimator of this name."""
    return bool(catalogue.make("estimator", estimator).has_lemma)


def for_nodes() -> list[str]:
    """The means that are tried by default and that live nodes accept: those of bounded memory."""
    return [name for name in QUICK_ESTIMATORS if catalogue.make("estimator", name).bounded_memory]


def check_estimators(names: Iterable[str]) -> None:
    """Refuse unknown names, and estimators with an index of their own: candidates differ by a factor ζ."""
    for name in names:
        if name not in catalogue.ESTIMATORS and not catalogue.is_own(name):
            raise InputError(f"estimator {name!r} is unknown{nearest(name, catalogue.ESTIMATORS)}")
        if catalogue.make("estimator", name).brings_index:
            raise InputError(
                f"estimator {name!r} brings its own index, so there is no ζ to compare: give one with a "
                f"radius, such as {QUICK_ESTIMATORS[0]!r}"
            )


def check_tails(names: Iterable[str], light: bool) -> None:
    """Refuse the empirical mean alone where variances may be infinite."""
    if not light and not any(has_lemma(name) for name in names):
        raise InputError(
            "the empirical mean alone cannot be recommended where variances may be infinite: "
            "give another estimator too"
        )


def code_of(value: Any) -> str:
    """A value as a Python expression, floats to six digits."""
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


# --- problems -------------------------------------------------------------------------------------------


class Problem(ABC):
    """Plays candidates; all candidates see the same rewards, so differences are paired."""

    def __init__(
        self,
        networks: Mapping[str, Network],
        moments: Moments,
        n_arms: int,
        *,
        light: bool = False,
        jobs: int | None = None,
        like: Problem | None = None,
    ) -> None:
        self.networks, self.moments, self.n_arms, self.light = networks, moments, n_arms, light
        self.workers = Threads(jobs)
        # Another part of the same data (`like`) has the same policies and plans.
        self._policies: dict[Candidate, Policy] = {} if like is None else like._policies
        self._plans: dict[Hashable, Plan] = {} if like is None else like._plans
        self._lemmas: dict[str, bool] = {}

    drifts: bool = False
    """Whether restarts are tried."""
    tried_levels: tuple[str, ...] = ()
    """How agents' outcomes differ with every arm alike, so that it is tried to remove that."""
    rounds: int

    @property
    @abstractmethod
    def played(self) -> Mapping[Candidate, Outcome]:
        """All outcomes so far."""

    @abstractmethod
    def play(self, candidates: Sequence[Candidate], *, look: bool = False) -> Sequence[Outcome]:
        """The outcomes of the candidates: few games for a first look, more in the final."""

    @abstractmethod
    def excess(self, one: Outcome, other: Outcome, *, paid: bool = False) -> Interval:
        """Loss of the first above that of the second (`paid`: of measured outcomes), 95 % interval."""

    @property
    @abstractmethod
    def hold_out(self) -> Problem:
        """The same problem on data that was not used to choose."""

    def worse_in_order(self, chosen: Candidate, alone: Candidate) -> bool:
        """Whether the recorded order of the whole log contradicts `chosen`."""
        return False

    @property
    def later(self) -> Problem | None:
        """Games that begin after a part of the data that is known by then; None where there are none."""
        return None

    def extras(self, estimators: Sequence[str]) -> list[Candidate]:
        """Candidates beside the grid; those without a lemma are played for comparison only."""
        return []

    def allows(self, candidate: Candidate) -> bool:
        """Whether a candidate may be recommended: its mean has a lemma, or all tails are light.

        The default has a bound wherever the means exist (docs/theory.md).
        """
        name = candidate.estimator
        if candidate.policy == DEFAULT:
            return True
        if name is not None and name not in self._lemmas:
            self._lemmas[name] = has_lemma(name)
        return self.light or (name is not None and self._lemmas[name])

    def policy(self, candidate: Candidate) -> Policy:
        """The policy of a candidate, built once; restarts and networks share it."""
        key = Candidate(candidate.policy, candidate.gamma, candidate.estimator, candidate.zeta)
        if key not in self._policies:
            self._policies[key] = key.build(self.moments)
        return self._policies[key]

    def contender(self, candidate: Candidate) -> Contender:
        """The policy prepared for its network; candidates with the same plan share it."""
        policy = self.policy(candidate)
        key = (candidate.network, policy.plan_key())
        network = self.networks[candidate.network]
        made = prepare(
            policy, network, self.n_arms, plan=self._plans.get(key), prior=self.prior(candidate), quiet=True
        )
        self._plans[key] = made.plan
        return made

    def prior(self, candidate: Candidate) -> Prior | None:
        """What the agents of a candidate know at the start."""
        return None


def restricted(network: Network, group_of: NDArray[np.int64]) -> Network:
    """The network without its links between groups."""
    graph = nx.Graph()
    graph.add_nodes_from(range(network.n_agents))
    for v in range(network.n_agents):
        graph.add_edges_from((v, int(w)) for w in network.neighbours(v) if group_of[v] == group_of[w])
    return Network(graph)


# --- problems from specs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArmTail:
    """The exact tail index of one arm's law."""

    arm: str
    mean: float | None
    exact: float

    def row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        text = "known from the law" + (": every moment is finite" if math.isinf(self.exact) else "")
        return {"arm": self.arm, "mean": self.mean, "tail_index": self.exact, "tail": text}


@dataclass(frozen=True)
class Case:
    """The arms of a spec: rewards of every trial, moment bounds, and why these."""

    name: str
    tails: tuple[ArmTail, ...]
    moments: Moments
    light: bool
    reasons: tuple[str, ...]
    source: Callable[[int], RewardSource]
    """The rewards of a trial."""


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
    # E|X + m|^p is convex in m: over means in [0, 1] it is largest at an end; that of a coin in the middle.
    ends = [law.at_mean(mean) for law in build_laws(single) for mean in _means_in_reach(law)]
    worst = Bandit(ends) if uniform else bandit
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
    reasons = (f"ε = {eps:.3g}: {why}.", f"u = {moments.u:.4g}, ρ = {moments.rho:.4g}: exact{means}.")
    return Case(
        single.name, tails, moments, index > 2, reasons, lambda trial: build_common_bandit(single, trial)
    )


def _means_in_reach(law: Arm) -> tuple[float, ...]:
    """The ends of [0, 1], for a law that cannot have them as its mean means just inside, and its middle."""
    try:
        for end in (0.0, 1.0):
            law.at_mean(end)
    except InputError:
        return 1e-9, 0.5, 1 - 1e-9
    return 0.0, 1.0


def one_problem(spec: Spec) -> Spec:
    """The spec at its only network and arms; a sweep over several is refused."""
    several = plan_of(spec).points
    first = several[0].spec
    if any((point.spec.network, point.spec.arms) != (first.network, first.arms) for point in several):
        raise InputError(
            f"{spec.name} sweeps {', '.join(spec.sweep)}: advice is for one network and one law, "
            "so give a spec without that sweep"
        )
    return msgspec.structs.replace(first, sweep={})


class SpecProblem(Problem):
    """Simulates candidates on the arms of a spec; trial i has the same rewards for all of them.

    A first look plays `trials` trials, the final `FINAL_TIMES` as many, the hold-out as many fresh ones.
    """

    def __init__(
        self,
        case: Case,
        network: Network,
        *,
        horizon: int,
        trials: int,
        seed: int,
        jobs: int | None = None,
        first_trial: int = 0,
        like: SpecProblem | None = None,
    ) -> None:
        super().__init__(
            {TOGETHER: network}, case.moments, len(case.tails), light=case.light, jobs=jobs, like=like
        )
        self.case, self.network, self.rounds, self.trials = case, network, horizon, trials
        self._seed, self._jobs, self._first = seed, jobs, first_trial
        self._played: dict[Candidate, Outcome] = {}
        self._held_out: SpecProblem | None = None

    @property
    def played(self) -> Mapping[Candidate, Outcome]:
        return self._played

    @property
    def hold_out(self) -> SpecProblem:
        if self._held_out is None:
            self._held_out = SpecProblem(
                self.case,
                self.network,
                horizon=self.rounds,
                trials=self.trials,
                seed=self._seed,
                jobs=self._jobs,
                first_trial=self._first + FINAL_TIMES * self.trials,
                like=self,
            )
        return self._held_out

    def extras(self, estimators: Sequence[str]) -> list[Candidate]:
        """Consensus where the network is connected; means without a lemma on the grid of ζ."""
        linked = self.network.n_edges > 0
        probe = ("decentralized", max(1, math.ceil(self.network.diameter / 2))) if linked else ("robust", 0)
        without = [name for name in estimators if not (self.light or has_lemma(name))]
        found = [Candidate(*probe, name, zeta) for name in without for zeta in ZETAS]
        return [*found, Candidate("consensus", 1)] if linked and self.network.connected else found

    def play(self, candidates: Sequence[Candidate], *, look: bool = False) -> list[Outcome]:
        """Group regret over so many trials; trials that were played before are kept."""
        wanted = self.trials * (1 if look else FINAL_TIMES)
        by_done: dict[int, list[Candidate]] = {}
        for candidate in dict.fromkeys(candidates):
            done = len(self._played[candidate].loss) if candidate in self._played else 0
            if done < wanted:
                by_done.setdefault(done, []).append(candidate)
        for done, waiting in by_done.items():
            self._simulate(waiting, range(done, wanted))
        return [self._played[candidate] for candidate in candidates]

    def excess(self, one: Outcome, other: Outcome, *, paid: bool = False) -> Interval:
        return paired_excess(one, other)

    def _simulate(self, candidates: Sequence[Candidate], trials: range) -> None:
        """Play these trials and append their regret."""
        contenders = [self.contender(candidate) for candidate in candidates]
        last = np.array([self.rounds], dtype=np.int64)
        root, done = root_seed(self._seed), dict[int, list[Trial]]()

        def work(trial: int, tick: Tick) -> list[Trial]:
            number = self._first + trial
            seed = stream_seed(root, number)
            return play_trial(contenders, self.case.source(number), self.rounds, seed, last, on_rounds=tick)

        self.workers.run(trials, work, done.__setitem__)
        for number, candidate in enumerate(candidates):
            ends = [done[trial][number] for trial in trials]
            before = self._played[candidate].loss if candidate in self._played else np.empty(0)
            loss = np.concatenate([before, [end.agent_regret[-1].sum() for end in ends]])
            # What is sent does not depend on the rewards.
            sent = float(ends[0].messages[-1]) / self.rounds, float(ends[0].wire_bytes[-1]) / self.rounds
            self._played[candidate] = Outcome(candidate, loss, loss, *sent, float(loss.mean()))


def paired_excess(one: Outcome, other: Outcome) -> Interval:
    """Regret of the first above that of the second over the trials of both; BCa bootstrap interval."""
    trials = min(len(one.loss), len(other.loss))
    differences = one.loss[:trials] - other.loss[:trials]
    if np.ptp(differences) == 0:
        return Interval(*[float(differences[0])] * 3)
    return bootstrap_interval([differences[:, None]], lambda means: means[0][..., 0])


def relative_excess(outcome: Outcome, best: Outcome) -> Interval:
    """The same as a share of the best's regret."""
    if outcome is best:
        return Interval(0.0, 0.0, 0.0)
    pairs = np.column_stack([outcome.loss, best.loss[: len(outcome.loss)]])
    if not pairs[:, 1].any():  # the best never erred: there is no share
        size = math.inf if pairs.any() else 0.0
        return Interval(size, size, size)
    return bootstrap_interval([pairs], relative_difference)
