"""Advice: the problem of a log or of a spec, the search on it, and the result with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from rumormill.advice.baselines import baselines_of, gain_of
from rumormill.advice.model_checks import ModelChecks, check_model
from rumormill.advice.model_checks.homogeneity import group_numbers, groups_of_table
from rumormill.advice.problem import (
    IN_GROUPS,
    QUICK_ESTIMATORS,
    TOGETHER,
    Candidate,
    Case,
    Outcome,
    SpecProblem,
    case_of_spec,
    check_estimators,
    check_tails,
    one_problem,
    relative_excess,
    restricted,
)
from rumormill.advice.reading.log import Log
from rumormill.advice.replay import Knowledge, LogProblem
from rumormill.advice.report_text import LogAdvice
from rumormill.advice.reward_table import RewardTable, build_reward_table, for_agents, shortened, with_support
from rumormill.advice.search import MARGIN, Recommendation, choose, explore
from rumormill.errors import InputError
from rumormill.experiments.spec.building import build_network
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs import Network
from rumormill.seeds import Role, root_seed, stream_seed
from rumormill.stats import LEAST_TRIALS, Interval, bootstrap_band
from rumormill.text import plural

HORIZON, TRIALS = 1_000, 16
# The share of a log's rounds on which candidates are compared; the rest is the hold-out.
FIRST = 0.6
# More agents are not linked all with all unless a network is given.
MOST_LINKED = 300


def no_progress(plays: int) -> None:
    """Called after each replay where no caller counts them."""


@overload
def advise(
    source: Log,
    network: Network | None = None,
    *,
    seed: int = 0,
    estimators: Sequence[str] = QUICK_ESTIMATORS,
    jobs: int | None = None,
    on_play: Callable[[int], None] = no_progress,
) -> LogAdvice: ...


@overload
def advise(
    source: Case | Spec,
    network: Network | None = None,
    *,
    horizon: int = HORIZON,
    trials: int = TRIALS,
    seed: int = 0,
    estimators: Sequence[str] = QUICK_ESTIMATORS,
    jobs: int | None = None,
) -> Advice: ...


def advise(
    source: Log | Case | Spec,
    network: Network | None = None,
    *,
    horizon: int = HORIZON,
    trials: int = TRIALS,
    seed: int = 0,
    estimators: Sequence[str] = QUICK_ESTIMATORS,
    jobs: int | None = None,
    on_play: Callable[[int], None] = no_progress,
) -> LogAdvice | Advice:
    """Recommend a policy, γ, estimator and ζ for the agents and arms of a log or a spec.

    Args:
        source: A log (`read_log`), which is replayed, or a spec at one scale, which is simulated.
        network: Who is linked to whom. Default: all agents of a log; the network of a spec.
        horizon: Specs: rounds of a trial.
        trials: Specs: trials of the first look (at least 5); final and hold-out play three times as many.
        seed: The same seed gives the same advice.
        estimators: Names of the means to compare.
        jobs: Threads; default: one per core.
        on_play: Logs: called with 1 after every candidate.

    Returns:
        `LogAdvice` for a log, `Advice` for a spec; `chosen`, `code` and `as_dict()` in both.

    Example:
        >>> from rumormill.experiments.spec.reading import at_scale, named_spec
        >>> spec = at_scale(named_spec("fig1a"), "quick")
        >>> advice = advise(spec, Network.ring(3), horizon=20, trials=5, estimators=["clipped"])
        >>> advice.code.startswith("rm.")
        True

    Reference: docs/advice.md, docs/decisions/007-cooperation-has-to-prove-itself.md.
    """
    from rumormill.engine.compiled import shared_kernels

    check_estimators(estimators)
    names = list(dict.fromkeys(estimators))
    if isinstance(source, Log):
        with shared_kernels():
            return _advise_log(source, network, names, seed, jobs, on_play)
    case = source if isinstance(source, Case) else case_of_spec(source)
    if network is None:
        if isinstance(source, Case):
            raise InputError("network is missing: a Case has arms only")
        network = build_network(one_problem(source), 0)
    with shared_kernels():
        return _advise_spec(case, network, names, horizon, trials, seed, jobs)


# --- logs -----------------------------------------------------------------------------------------------


def _advise_log(
    log: Log,
    network: Network | None,
    estimators: Sequence[str],
    seed: int,
    jobs: int | None,
    on_play: Callable[[int], None],
) -> LogAdvice:
    """Check the model, replay candidates on the first part of the log, measure baselines on the rest."""
    root = root_seed(seed)
    rng = np.random.default_rng(stream_seed(root, Role.BANDIT))
    table = build_reward_table(log, rng)
    model = check_model(table, rng)
    check_tails(estimators, model.light)
    table, left_out, notes = with_support(table, model.homogeneity.differs, rng)
    if left_out:
        model = check_model(table, rng)
    network = _network_of(table, network)
    full, table = table, shortened(table, network.n_agents)
    cut = round(FIRST * table.rounds)
    values = for_agents(table, network.n_agents, cut, rng)
    if model.drift.drifts:
        notes.append("The log drifts: settings are compared on all of it, as a part would not show changes.")
    longer = None if table is full else for_agents(full, network.n_agents, round(FIRST * full.rounds), rng)
    first = log_problem(table, model, network, values, cut, root, jobs, on_play, longer)
    choice = choose(first, explore(first, estimators))
    all_agents = (tuple(range(network.n_agents)),)
    groups = group_numbers(model.homogeneity.groups, network.n_agents)
    return LogAdvice(
        table.log,
        table,
        network,
        model,
        choice,
        tuple(baselines_of(table, first, choice, cut)),
        gain_of(first, choice, table.log.unit, table.rounds),
        Knowledge(values, recorded_cells(table, values), groups, table.log.sign, model.moments),
        model.homogeneity.groups if model.homogeneity.tested else all_agents,
        (*table.log.notes, *table.notes, *notes),
        (cut, table.rounds - cut),
        len(first.played),
        seed,
        dict(first.played),
    )


def log_problem(
    table: RewardTable,
    model: ModelChecks,
    network: Network,
    values: NDArray[np.float64],
    cut: int,
    root: np.random.SeedSequence,
    jobs: int | None,
    on_play: Callable[[int], None],
    longer: NDArray[np.float64] | None = None,
) -> LogProblem:
    """The first part of a log, with the rest as its hold-out; groups and levels come from the first part.

    A log that drifts is compared as a whole, since a part would not show how a candidate gets over a
    change; its hold-out counts the rounds after `cut` only. `longer`: all rounds of a shortened log.
    """
    drifts, sign = model.drift.drifts, table.log.sign
    groups = groups_of_table(values[:cut], sign) if model.homogeneity.differs else ()
    group_of = group_numbers(groups, network.n_agents)
    apart = {IN_GROUPS: restricted(network, group_of)} if len(groups) > 1 else {}
    networks = {TOGETHER: network, **apart}
    counts = table.recorded.sum(axis=0) if table.log.agents is not None else None

    def problem(
        part: NDArray[np.float64],
        number: int,
        count_from: int = 0,
        like: LogProblem | None = None,
        known: Knowledge | None = None,
    ) -> LogProblem:
        """One part of the log as a problem."""
        return LogProblem(
            part,
            table.log.objective,
            networks,
            model.moments,
            group_of,
            drifts=drifts,
            remembers=model.dependence.remembers,
            light=model.light,
            count_from=count_from,
            recorded=None if counts is None else counts * (len(part) / table.rounds),
            known=known,
            levels=before.levels if known is None else None,
            length=None if known is None else table.rounds,
            seed=stream_seed(root, number),
            jobs=jobs,
            on_play=on_play,
            like=like,
        )

    whole_log = Knowledge(values, recorded_cells(table, values), group_of, sign, model.moments)
    before, then = whole_log.part(slice(None, cut)), whole_log.part(slice(cut, None))
    whole = problem(values, 1)
    first = whole if drifts else problem(values[:cut], 1, like=whole)
    first.rest = problem(values, 2, cut, whole) if drifts else problem(values[cut:], 2, like=whole)
    first.whole, first.longer = whole, None if longer is None else problem(longer, 1, like=whole)
    first.after = problem(values[cut:], 4, like=whole, known=before)
    first.exchanged = problem(values[:cut], 5, like=whole, known=then)
    return first


def recorded_cells(table: RewardTable, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of the values were recorded; all, where a log without agents is read by several."""
    return table.recorded if table.log.agents is not None else np.ones(values.shape, dtype=np.bool_)


def _network_of(table: RewardTable, network: Network | None) -> Network:
    """The network given, checked against the log; else all agents linked."""
    if network is None:
        if table.log.agents is None:
            raise InputError(
                "the log does not say who measured what, so it has no agents: add for example --network "
                '"erdos_renyi n=50 p=0.1", or name the column with --agent-column'
            )
        if table.n_agents > MOST_LINKED:
            raise InputError(
                f"the log has {table.n_agents:,} agents, too many to link all with all: say who is linked to "
                f'whom, for example --network "random_regular n={table.n_agents} d=8"'
            )
        return Network.complete(table.n_agents) if table.n_agents > 1 else Network(nx.empty_graph(1))
    if table.log.agents is not None and network.n_agents != table.n_agents:
        raise InputError(
            f"the network has {plural(network.n_agents, 'agent')}, the log {table.n_agents}: give a network "
            f"of {table.n_agents}, in the order {', '.join((table.log.agents or ())[:3])}, ..."
        )
    return network


# --- specs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Advice:
    """The recommendation for a spec with everything it is based on."""

    problem: SpecProblem
    choice: Recommendation
    worse: dict[Candidate, Interval]
    """Regret above the best's, as a share of it, with a 95 % interval."""
    front: tuple[Candidate, ...]
    """Pareto front: no other candidate has both less regret and fewer messages; fewest messages first."""
    reasons: tuple[str, ...]
    seed: int

    @property
    def case(self) -> Case:
        return self.problem.case

    @property
    def network(self) -> Network:
        return self.problem.network

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Of every candidate that was played."""
        return tuple(self.problem.played.values())

    @property
    def horizon(self) -> int:
        return self.problem.rounds

    @property
    def chosen(self) -> Candidate:
        """The recommended candidate."""
        return self.choice.chosen.candidate

    @property
    def code(self) -> str:
        """The recommended policy as a Python expression."""
        return self.chosen.code(self.case.moments)

    def rows(self) -> list[dict[str, Any]]:
        """Every candidate that was played, least regret first."""
        return [row for row, _ in self._ranked()]

    def short_rows(self) -> list[dict[str, Any]]:
        """The best, the recommended, the front, and the best candidate of every policy."""
        shown, seen = [], set()
        wanted = {self.choice.best.candidate, self.chosen, *self.front}
        for row, candidate in self._ranked():
            if candidate in wanted or row["policy"] not in seen:
                shown.append(row)
            seen.add(row["policy"])
        return shown

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        made, moments = self.network, self.case.moments
        return {
            "source": self.case.name,
            "network": {"agents": made.n_agents, "links": made.n_edges, "diameter": made.diameter},
            "simulated": {"horizon": self.horizon, "trials": self.problem.trials, "seed": self.seed},
            "tails": [tail.row() for tail in self.case.tails],
            "moments": {"eps": moments.eps, "u": moments.u, "rho": moments.rho},
            "recommendation": {**self._row(self.choice.chosen), "code": self.code},
            "reasons": list(self.reasons),
            "settings": self.rows(),
        }

    def _ranked(self) -> list[tuple[dict[str, Any], Candidate]]:
        """Rows with their candidates, least regret first."""
        rows = [(self._row(outcome), outcome.candidate) for outcome in self.outcomes]
        return sorted(rows, key=lambda pair: pair[0]["regret"])

    def _row(self, outcome: Outcome) -> dict[str, Any]:
        """One row of the JSON."""
        candidate, worse = outcome.candidate, self.worse[outcome.candidate]
        comparable = outcome.loss * scale(outcome, self.choice.best)
        low, high = (float(end[0]) for end in bootstrap_band(comparable[:, None]))
        return {
            "policy": candidate.policy,
            "gamma": candidate.gamma,
            "estimator": candidate.estimator,
            "zeta": candidate.zeta,
            "trials": len(outcome.loss),
            "regret": float(comparable.mean()),
            "low": low,
            "high": high,
            "worse": worse.estimate,
            "worse_low": worse.low,
            "worse_high": worse.high,
            "messages_per_round": outcome.messages,
            "bytes_per_round": outcome.wire_bytes,
            "on_front": candidate in self.front,
            "allowed": self.problem.allows(candidate),
            "recommended": candidate == self.chosen,
        }


def _advise_spec(
    case: Case,
    network: Network,
    estimators: Sequence[str],
    horizon: int,
    trials: int,
    seed: int,
    jobs: int | None,
) -> Advice:
    """Simulate candidates on the arms of a spec."""
    check_tails(estimators, case.light)
    if trials < LEAST_TRIALS:
        raise InputError(f"trials = {trials} is not allowed: comparisons need at least {LEAST_TRIALS}")
    if horizon <= len(case.tails):
        raise InputError(
            f"horizon = {horizon} is not allowed: the first {len(case.tails)} rounds only try every arm once"
        )
    problem = SpecProblem(case, network, horizon=horizon, trials=trials, seed=seed, jobs=jobs)
    choice = choose(problem, explore(problem, estimators))
    played = problem.played
    worse = {candidate: relative_excess(played[candidate], choice.best) for candidate in played}
    front = pareto_front([each for each in played.values() if problem.allows(each.candidate)], worse)
    return Advice(problem, choice, worse, front, (*case.reasons, *_reasons(problem, choice, worse)), seed)


def scale(outcome: Outcome, best: Outcome) -> float:
    """Factor that makes the regret over fewer trials comparable: the best's mean regret over that on them."""
    shared = float(best.loss[: len(outcome.loss)].mean())
    return best.mean / shared if shared else 1.0


def pareto_front(outcomes: Sequence[Outcome], worse: dict[Candidate, Interval]) -> tuple[Candidate, ...]:
    """Candidates of which each has less regret than all with fewer messages; fewest messages first.

    Only those with the most trials count, unless there is none of them at that number of messages.
    """
    most = max(len(outcome.loss) for outcome in outcomes)
    reached = {outcome.messages for outcome in outcomes if len(outcome.loss) == most}
    shown = [each for each in outcomes if len(each.loss) == most or each.messages not in reached]
    front: list[Candidate] = []
    for outcome in sorted(shown, key=lambda o: (o.messages, worse[o.candidate].estimate, o.wire_bytes)):
        if not front or worse[outcome.candidate].estimate < worse[front[-1]].estimate:
            front.append(outcome.candidate)
    return tuple(front)


def _reasons(problem: SpecProblem, choice: Recommendation, worse: dict[Candidate, Interval]) -> list[str]:
    """Why this candidate, what agents alone lose, and what is shown for comparison only."""
    best, chosen, alone = choice.best, choice.chosen, choice.alone
    text = []
    if choice.rejected is not None:
        text.append(f"{choice.rejected} did best in the final, but worse than agents alone on fresh trials.")
    elif choice.sharing is not None and not best.candidate.cooperates:
        candidate, more = choice.sharing
        text.append(
            f"No setting that cooperates is surely better than agents alone: of the best, {candidate}, the "
            f"regret differs by {more.estimate:+,.0f} (95 % interval {more.low:+,.0f} to {more.high:+,.0f})."
        )
    elif chosen is best:
        text.append(f"{chosen.candidate} has the lowest regret in the final, {chosen.mean:,.0f}.")
        if chosen.messages:
            text.append("No setting with fewer messages or bytes comes near it.")
    else:
        share = worse[chosen.candidate]
        saved = "no messages at all" if not chosen.messages else _saving(chosen, best)
        text.append(
            f"{best.candidate} has the lowest regret in the final, {best.mean:,.0f}; {chosen.candidate} is "
            f"worse by {share.high:.1%} at most ({share.estimate:+.1%}, 95 % interval {share.low:+.1%} to "
            f"{share.high:+.1%}; allowed are {MARGIN:.0%} of what agents alone lose) and needs {saved}."
        )
    if chosen is not alone:
        times = alone.mean / chosen.mean if chosen.mean else float("inf")
        fresh = choice.held_out[chosen.candidate], choice.held_out[alone.candidate]
        text.append(
            f"Without messages ({alone.candidate}) regret is {times:.3g} times as large; on "
            f"{len(fresh[0].loss)} fresh trials it is {fresh[1].mean:,.0f} against {fresh[0].mean:,.0f}."
        )
    if not problem.light:
        text.append(
            "The empirical mean and Consensus are shown for comparison only: no lemma covers them "
            "where variances may be infinite."
        )
    return text


def _saving(chosen: Outcome, best: Outcome) -> str:
    """What the chosen candidate saves against the best."""
    if chosen.messages < best.messages:
        return f"{best.messages / chosen.messages:.3g} times fewer messages"
    if chosen.wire_bytes < best.wire_bytes:
        return f"{best.wire_bytes / chosen.wire_bytes:.3g} times fewer bytes in as many messages"
    return "as many messages, with a larger ζ"
