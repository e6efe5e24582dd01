"""Advice on the first half of real logs, scored on their second half against simple ways of choosing.

    RUMORMILL_DATA=... python scripts/score_advice.py [NAME ...]     # the logs of $RUMORMILL_DATA/logs
    RUMORMILL_DATA=... python scripts/score_advice.py --leave-out    # constants from logs of other sources

`NAME.csv` is the first half, `NAME.npz` holds both halves as tables [round, client, option], the README the
options of the command line. Costs are ratios of mean outcomes (second half): recommended over the other way,
or the other way round where more is better, so that less than 1 is a gain. Intervals: 95 %, paired, block
bootstrap over the rounds. Where a log is refused every agent keeps its own best arm, as without advice.

`--leave-out` scores every source with the constants (cap and probe of a prior, what a kept arm has to gain)
that did best on the logs of the others: fewest logs surely 5 % worse than agents alone, then the least cost
over keeping the best.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rumormill.advice import replay
from rumormill.advice.advise import advise, log_problem, no_progress
from rumormill.advice.problem import Candidate
from rumormill.advice.reading.columns import Columns
from rumormill.advice.reading.log import Log, read_log
from rumormill.advice.replay import LogProblem, block_length, interval_of_differences
from rumormill.advice.report_text import LogAdvice
from rumormill.advice.search import Start, start_of
from rumormill.errors import RumormillError
from rumormill.policies import Prior
from rumormill.seeds import root_seed

Array = NDArray[np.float64]
Actions = NDArray[np.int64]
WAYS = ("alone", "keep-best", "grid", "UCB1", "eps-greedy", "uniform")
RESAMPLES, EPSILON, SEEDS = 400, 0.1, 8
CAPS, PROBES, BARS = (30, 300), (100, 300), (0.01, 0.05, 0.2)
Row = dict[str, tuple[float, float, float]]
ROW = re.compile(
    r"\| (\w+) \| (.*?) \| (\w+) \| .* \| (?P<way>minimise|maximise) \| (?P<unit>.*?) \| `(?P<options>.*)` \|"
)


@dataclass(frozen=True)
class Halves:
    """A log as an engineer has it, and what came after it: [round, agent, arm] in the order of the log."""

    name: str
    source: str
    log: Log
    later: Array


def halves_of(folder: Path, names: list[str]) -> Iterator[Halves]:
    """The logs that the README of a folder describes."""
    for line in (folder / "README.md").read_text().splitlines():
        found = ROW.match(line)
        if found is None or (names and found[1] not in names):
            continue
        words = found["options"].split()
        given: dict[str, Any] = {
            words[i][2:].removesuffix("-column"): words[i + 1] for i in range(0, len(words), 2)
        }
        objective: Any = found["way"]
        log = read_log(folder / f"{found[1]}.csv", Columns(**given), objective=objective, unit=found["unit"])
        tables = np.load(folder / f"{found[1]}.npz")
        agents, arms = order_of(log, tables["F"])
        source = re.split(r"[ :]", found[2])[0]
        yield Halves(found[1], source, log, np.ascontiguousarray(tables["H"][:, agents][:, :, arms]))


def order_of(log: Log, table: Array) -> tuple[Actions, Actions]:
    """Which agent and arm of a table each agent and arm of the log is, by the values they have in common."""

    def common(values: Array, cells: Array) -> float:
        one, other = Counter(values.round(6).tolist()), Counter(cells[~np.isnan(cells)].round(6).tolist())
        return sum((one & other).values()) / max(1, len(values))

    _, n_agents, n_arms = table.shape
    by_agent = [
        [common(log.value[log.agent == a], table[:, v].ravel()) for v in range(n_agents)]
        for a in range(n_agents)
    ]
    agents = linear_sum_assignment(-np.array(by_agent))[1]
    by_arm = np.zeros((n_arms, n_arms))
    for a in range(n_agents):
        for b in range(n_arms):
            values = log.value[(log.agent == a) & (log.arm == b)]
            by_arm[b] += [common(values, table[:, agents[a], k]) for k in range(n_arms)]
    return agents, linear_sum_assignment(-by_arm)[1]


# --- ways of choosing -----------------------------------------------------------------------------------


def keep_best(log: Log) -> Actions:
    """Every agent's best arm so far, by the mean."""
    cell, size = log.agent.astype(np.int64) * log.n_arms + log.arm, log.n_agents * log.n_arms
    counts = np.bincount(cell, minlength=size)
    means = np.bincount(cell, weights=log.sign * log.value, minlength=size) / np.maximum(counts, 1)
    found = np.where(counts, means, -np.inf).reshape(log.n_agents, log.n_arms)
    return np.asarray(found.argmax(axis=1))


def learned(rewards: Array, choose: Callable[[int, Array, Array], Actions]) -> Actions:
    """Actions of agents alone that start with every arm once; `choose` sees round, means and counts."""
    rounds, n_agents, n_arms = rewards.shape
    sums, counts = np.zeros((n_agents, n_arms)), np.zeros((n_agents, n_arms))
    agents, made = np.arange(n_agents), np.empty((rounds, n_agents), dtype=np.int64)
    for t in range(rounds):
        made[t] = t if t < n_arms else choose(t, sums / np.maximum(counts, 1), counts)
        sums[agents, made[t]] += rewards[t, agents, made[t]]
        counts[agents, made[t]] += 1
    return made


def ucb1(rewards: Array, low: float, high: float) -> Actions:
    """UCB1 on rewards scaled by the range of the first half."""
    scaled = (rewards - low) / max(high - low, 1e-300)
    return learned(scaled, lambda t, means, n: (means + np.sqrt(2 * math.log(t) / n)).argmax(axis=1))


def eps_greedy(rewards: Array, seed: int) -> Actions:
    """ε-greedy with a fixed ε."""
    rng = np.random.default_rng(seed)

    def choose(t: int, means: Array, counts: Array) -> Actions:
        any_arm = rng.integers(means.shape[1], size=len(means))
        return np.where(rng.random(len(means)) < EPSILON, any_arm, means.argmax(axis=1))

    return learned(rewards, choose)


def outcome(values: Array, actions: Actions) -> Array:
    """The mean outcome of every round."""
    return np.asarray(np.take_along_axis(values, actions[:, :, None], axis=2)[:, :, 0].mean(axis=1))


def stage_after(advice: LogAdvice, values: Array) -> LogProblem:
    """Games on a table that came after the log of an advice: what the log knows is known."""
    return LogProblem(
        values,
        advice.log.objective,
        advice.networks,
        advice.model.moments,
        np.zeros(values.shape[1], dtype=np.int64),
        drifts=False,
        remembers=False,
        known=advice.known,
        seed=np.random.SeedSequence(1),
        jobs=1,
    )


def chosen_at(start: Start, sign: float, bar: float) -> Candidate:
    """What is recommended where a kept arm has to gain this share of its outcome."""
    more = interval_of_differences(sign * (start.best_fixed.paid - start.learner.paid))
    costly = more.low > 0 and more.estimate > bar * abs(float(start.best_fixed.paid.mean()))
    return (start.best_fixed if costly else start.learner).candidate


def ways_of(halves: Halves, advice: LogAdvice, chosen: Sequence[Candidate]) -> list[dict[str, Array]]:
    """The outcome of every round of the second half, way by way, for each that may be recommended."""
    log = advice.log
    names = list(halves.log.agents or ())
    values = np.ascontiguousarray(halves.later[:, [names.index(name) for name in log.agents or ()]])
    stage = stage_after(advice, values)

    def played(candidate: Any) -> Array:
        return outcome(values, stage.actions_on(candidate, values)[0])

    tried = [played(candidate) for candidate in advice.losses]
    rewards = log.sign * values
    signed = log.sign * log.value
    random = [outcome(values, eps_greedy(rewards, seed)) for seed in range(SEEDS)]
    fixed = np.broadcast_to(keep_best(log), values.shape[:2])
    others = {
        "alone": played(advice.start.cold.candidate),
        "keep-best": outcome(values, fixed),
        "grid": max(tried, key=lambda each: log.sign * float(each.mean())),
        "UCB1": outcome(values, ucb1(rewards, float(signed.min()), float(signed.max()))),
        "eps-greedy": np.mean(random, axis=0),
        "uniform": values.mean(axis=(1, 2)),
    }
    return [{"recommended": played(each), **others} for each in chosen]


# --- comparison -----------------------------------------------------------------------------------------


def ratio(one: Array, other: Array, sign: float) -> tuple[float, float, float]:
    """The first over the second way (less is better), with its interval; one value per round each."""
    rng, rounds = np.random.default_rng(0), len(one)
    length = block_length(rounds)
    starts = rng.integers(max(1, rounds - length + 1), size=(RESAMPLES, -(-rounds // length)))
    rows = (starts[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)[:, :rounds]
    a, b = (one, other) if sign < 0 else (other, one)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = a[rows].mean(axis=1) / b[rows].mean(axis=1)
        middle = float(a.mean() / b.mean())
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return middle, float(low), float(high)


def summary(title: str, rows: Sequence[Row], refused: int = 0) -> str:
    """Geometric means, and how many logs are surely more than 5 % worse."""
    means = [math.exp(float(np.mean([math.log(row[way][0]) for row in rows]))) for way in WAYS]
    surely = [sum(row[way][1] > 1.05 for row in rows) for way in WAYS]
    shown = "  ".join(f"{mean:5.3f} ({n} > 5 %)" for mean, n in zip(means, surely, strict=True))
    kept = means[WAYS.index("keep-best")] ** (len(rows) / (len(rows) + refused))
    also = f"   with {refused} refused: keep-best {kept:.3f}" if refused else ""
    return f"{title + f', {len(rows)}':15} {shown}{also}"


def line(name: str, row: Row, also: str = "") -> str:
    """The costs of one log with their intervals."""
    shown = "  ".join(f"{row[way][0]:5.3f} ({row[way][1]:.2f}-{row[way][2]:.2f})" for way in WAYS)
    return f"{name:9} {shown}  {also}"


def rows_of(halves: Halves, advice: LogAdvice, chosen: Sequence[Candidate]) -> list[Row]:
    """The costs of what is recommended over those of every way."""
    found = ways_of(halves, advice, chosen)
    return [{way: ratio(one["recommended"], one[way], halves.log.sign) for way in WAYS} for one in found]


def restarted(halves: Halves, advice: LogAdvice, cap: int, probe: int) -> list[Row]:
    """The costs with these constants, for every share that a kept arm may have to gain."""
    table, model, network, root = advice.table, advice.model, advice.network, root_seed(advice.seed)
    known = replace(advice.known, _priors={})
    with patch.object(replay, "Prior", partial(Prior, cap=cap, probe=probe)):
        first = log_problem(table, model, network, known.values, advice.rounds[0], root, 1, no_progress)
        start = start_of(first, advice.choice.chosen.candidate, advice.choice.alone.candidate)
        assert start is not None
        chosen = [chosen_at(start, halves.log.sign, bar) for bar in BARS]
        return rows_of(halves, replace(advice, known=known), chosen)


def left_out(several: Sequence[Halves]) -> None:
    """Every source with the constants that did best on the other sources."""
    found: dict[str, dict[tuple[int, int, float], Row]] = {}
    source, refused = {halves.name: halves.source for halves in several}, 0
    for halves in several:
        try:
            advice = advise(halves.log, jobs=1)
        except RumormillError:
            refused += 1
            continue
        drifts = advice.model.drift.drifts
        for cap, probe in itertools.product(CAPS, PROBES):
            rows = restarted(halves, advice, cap, probe)
            for bar, row in zip(BARS, rows, strict=True):
                found.setdefault(halves.name, {})[cap, probe, bar] = row
                print(line(halves.name, row, f"{cap} {probe} {bar:g} {'drifts' * drifts}"), flush=True)
    scored: dict[str, Row] = {}
    for name, rows_by in found.items():
        others = [rows for other, rows in found.items() if source[other] != source[name]]

        def cost(given: tuple[int, int, float], others: Any = others) -> tuple[int, float]:
            worse = sum(rows[given]["alone"][1] > 1.05 for rows in others)
            return worse, sum(math.log(rows[given]["keep-best"][0]) for rows in others)

        best = min(rows_by, key=cost)
        scored[name] = rows_by[best]
        print(line(name, scored[name], f"cap {best[0]}, probe {best[1]}, bar {best[2]:g}"))
    print(summary("left out", list(scored.values()), refused))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--leave-out", action="store_true", help="constants from the logs of other sources")
    given = parser.parse_args()
    several = list(halves_of(Path(os.environ["RUMORMILL_DATA"]) / "logs", given.names))
    if given.leave_out:
        left_out(several)
        return
    found: list[dict[str, Any]] = []
    for halves in several:
        before = time.process_time()
        try:
            advice = advise(halves.log, jobs=1)
        except RumormillError as error:
            print(f"{halves.name:9} refused: {str(error)[:90]}", flush=True)
            continue
        spent = time.process_time() - before
        (row,) = rows_of(halves, advice, [advice.chosen])
        drifts = advice.model.drift.drifts
        found.append({"name": halves.name, "source": halves.source, "drift": drifts, **row})
        print(line(halves.name, row, f"{spent:4.1f} s  {'drift, ' * drifts}{advice.chosen}"), flush=True)
    print(summary("all", found, len(several) - len(found)))
    print(summary("no drift", [each for each in found if not each["drift"]]))
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
