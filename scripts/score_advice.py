"""Advice on the first half of real logs, scored on their second half against simple ways of choosing.

    RUMORMILL_DATA=... python scripts/score_advice.py [NAME ...]      # the logs of $RUMORMILL_DATA/logs

`NAME.csv` is the first half, `NAME.npz` holds both halves as tables [round, client, option], the README the
options of the command line. Costs are ratios of mean outcomes (second half): recommended over the other way,
or the other way round where more is better, so that less than 1 is a gain. Intervals: 95 %, paired, block
bootstrap over the rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rumormill.advice.advise import advise
from rumormill.advice.reading.columns import Columns
from rumormill.advice.reading.log import Log, read_log
from rumormill.advice.replay import LogProblem, block_length
from rumormill.advice.report_text import LogAdvice
from rumormill.errors import RumormillError

Array = NDArray[np.float64]
Actions = NDArray[np.int64]
WAYS = ("alone", "keep-best", "grid", "UCB1", "eps-greedy", "uniform")
RESAMPLES, EPSILON, SEEDS = 400, 0.1, 8
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


def ways_of(halves: Halves, advice: LogAdvice) -> dict[str, Array]:
    """The outcome of every round of the second half, way by way."""
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
    return {
        "recommended": played(advice.chosen),
        "alone": played(advice.start.cold.candidate),
        "keep-best": outcome(values, fixed),
        "grid": max(tried, key=lambda each: log.sign * float(each.mean())),
        "UCB1": outcome(values, ucb1(rewards, float(signed.min()), float(signed.max()))),
        "eps-greedy": np.mean(random, axis=0),
        "uniform": values.mean(axis=(1, 2)),
    }


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for halves in halves_of(Path(os.environ["RUMORMILL_DATA"]) / "logs", given.names):
        before = time.process_time()
        try:
            advice = advise(halves.log, jobs=1)
        except RumormillError as error:
            print(f"{halves.name:9} refused: {str(error)[:90]}", flush=True)
            continue
        spent = time.process_time() - before
        ways = ways_of(halves, advice)
        row = {way: ratio(ways["recommended"], ways[way], halves.log.sign) for way in WAYS}
        found.append(
            {"name": halves.name, "source": halves.source, "drift": advice.model.drift.drifts, **row}
        )
        shown = "  ".join(f"{row[way][0]:5.3f} ({row[way][1]:.2f}-{row[way][2]:.2f})" for way in WAYS)
        drift = "drift" if advice.model.drift.drifts else ""
        print(f"{halves.name:9} {drift:5} {shown}  {spent:4.1f} s  {advice.chosen}", flush=True)
    for title, rows in (("all", found), ("no drift", [each for each in found if not each["drift"]])):
        means = [math.exp(float(np.mean([math.log(each[way][0]) for each in rows]))) for way in WAYS]
        surely = [sum(each[way][1] > 1.05 for each in rows) for way in WAYS]
        shown = "  ".join(f"{mean:5.3f} ({n} > 5 %)" for mean, n in zip(means, surely, strict=True))
        print(f"{title + f', {len(rows)}':15} {shown}")
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
