"""Advice on synthetic logs with a known source, scored on what the same source gives afterwards.

    python scripts/calibrate_advice.py                # the held-out half: the table of docs/advice.md
    python scripts/calibrate_advice.py --tuning       # the half on which rules and widths were chosen
    python scripts/calibrate_advice.py --first 3      # the first three logs of every family
    python scripts/calibrate_advice.py --warm         # cold over warm regret by drift and age of the prior
    python scripts/calibrate_advice.py --bound        # what knowing the second half would be worth

A log is made from its family and its number alone; odd numbers are held out from tuning. Costs are expected
costs of the second half (the law is known), so chance does not count; the interval of the gain is compared
with what the recommended setting saved there, as measured.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rumormill as rm
from rumormill.advice.advise import advise
from rumormill.advice.reading.log import Log
from rumormill.errors import RumormillError

try:
    from scripts.score_advice import keep_best, outcome, ratio, stage_after
except ModuleNotFoundError:  # started by its path
    from score_advice import keep_best, outcome, ratio, stage_after  # type: ignore[import-not-found, no-redef]

Array = NDArray[np.float64]
LOGS = 26  # of every family
WAYS = ("alone", "keep-best")


@dataclass(frozen=True)
class Case:
    """A synthetic log, the table that follows it, and the expected outcomes of that table."""

    name: str
    family: str
    log: Log
    later: Array
    expected: Array
    """As `later`: [round, agent, arm]."""
    right: int | None = None
    """Failures and limits: the arm that is best in truth."""


# --- sources --------------------------------------------------------------------------------------------


def sizes(rng: np.random.Generator) -> tuple[int, int, int]:
    """Rounds of a half, agents and arms."""
    return int(rng.integers(80, 161)), int(rng.integers(3, 9)), int(rng.integers(3, 6))


def noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Factors of mean 1: log-normal, or Pareto with a tail index of 1.5 to 3.5."""
    if rng.random() < 0.5:
        sigma = rng.uniform(0.3, 1.2)
        return np.exp(sigma * rng.standard_normal(shape) - sigma**2 / 2)
    a = rng.uniform(1.5, 3.5)
    return np.asarray((rng.pareto(a, shape) + 1) * (a - 1) / a)


def levels(rng: np.random.Generator, n_arms: int, spread: float = 0.6) -> Array:
    """The mean of every arm, in ms."""
    return rng.uniform(20, 200) * rng.uniform(1 - spread / 2, 1 + spread, n_arms)


def log_of(table: Array, family: str, objective: Any = "minimise", **more: Any) -> Log:
    """A full log of a table; cells that are NaN have no row."""
    rounds, agents, arms = table.shape
    t, v, k = np.meshgrid(np.arange(rounds), np.arange(agents), np.arange(arms), indexing="ij")
    there = ~np.isnan(table).ravel()
    return Log(
        family,
        tuple(f"arm{i}" for i in range(arms)),
        tuple(f"agent{i}" for i in range(agents)),
        objective,
        "ms" if objective == "minimise" else "clicks",
        t.ravel()[there].astype(np.float64),
        v.ravel()[there].astype(np.int32),
        k.ravel()[there].astype(np.int32),
        table.ravel()[there],
        True,
        **more,
    )


def halved(means: Array, rng: np.random.Generator, family: str) -> tuple[Log, Array, Array]:
    """The first half of a table with these means as a log; the second half, and its means."""
    values, half = means * noise(rng, means.shape), len(means) // 2
    return log_of(values[:half], family), values[half:], means[half:]


def stationary(rng: np.random.Generator, family: str = "stationary") -> Case:
    rounds, agents, arms = sizes(rng)
    means = np.broadcast_to(levels(rng, arms), (2 * rounds, agents, arms))
    return Case("", family, *halved(means, rng, family))


def drifting(rng: np.random.Generator) -> Case:
    """One change at any time, or a random walk of every arm."""
    rounds, agents, arms = sizes(rng)
    if rng.random() < 0.5:
        at = int(rng.uniform(0.2, 1.6) * rounds)
        later = (np.arange(2 * rounds) >= at)[:, None]
        means = np.where(later, levels(rng, arms), levels(rng, arms))
    else:
        steps = 0.6 * rng.standard_normal((2 * rounds, arms)) / math.sqrt(rounds)
        means = levels(rng, arms) * np.exp(np.cumsum(steps, axis=0))
    return Case("", "drifting", *halved(np.repeat(means[:, None], agents, axis=1), rng, "drifting"))


def seasonal(rng: np.random.Generator) -> Case:
    """Every arm has a wave of its own phase, two to eight periods in a half."""
    rounds, agents, arms = sizes(rng)
    period = rounds / rng.uniform(2, 8)
    wave = np.sin(2 * np.pi * (np.arange(2 * rounds)[:, None] / period + rng.random(arms)))
    means = levels(rng, arms) * (1 + rng.uniform(0.1, 0.4) * wave)
    return Case("", "seasonal", *halved(np.repeat(means[:, None], agents, axis=1), rng, "seasonal"))


def heterogeneous(rng: np.random.Generator, family: str = "heterogeneous") -> Case:
    """Two or three groups with levels of their own; some clients are slower to all arms."""
    rounds, agents, arms = sizes(rng)
    agents = max(agents, 6)
    group = rng.integers(int(rng.integers(2, 4)), size=agents)
    level = np.array([levels(rng, arms) for _ in range(3)])[group]
    level = level * rng.uniform(0.8, 1.5, (agents, 1))
    return Case("", family, *halved(np.broadcast_to(level, (2 * rounds, agents, arms)), rng, family))


def chosen_only(rng: np.random.Generator) -> Case:
    """Only the chosen arm is in the log: at random, or mostly the best so far."""
    case = (stationary if rng.random() < 0.5 else heterogeneous)(rng, "chosen-only")
    log, share = case.log, float(rng.choice([1.0, 0.4]))
    rounds, agents, arms = int(log.time[-1]) + 1, log.n_agents, log.n_arms
    values, picked = log.value.reshape(rounds, agents, arms), np.zeros((rounds, agents, arms), dtype=bool)
    sums, counts, who = np.zeros((agents, arms)), np.zeros((agents, arms)), np.arange(agents)
    for t in range(rounds):
        greedy = np.where(counts == 0, -np.inf, sums / np.maximum(counts, 1)).argmin(axis=1)
        arm = np.where(rng.random(agents) < share, rng.integers(arms, size=agents), greedy)
        picked[t, who, arm] = True
        sums[who, arm] += values[t, who, arm]
        counts[who, arm] += 1
    return replace(case, log=log.taken(picked.ravel()))


def rare_clicks(rng: np.random.Generator) -> Case:
    """Clicks of 1 to 6 %."""
    rounds, agents, arms = int(rng.integers(250, 400)), int(rng.integers(3, 7)), int(rng.integers(2, 5))
    means = np.broadcast_to(rng.uniform(0.01, 0.06, arms), (2 * rounds, agents, arms))
    values = (rng.random(means.shape) < means).astype(float)
    log = log_of(values[:rounds], "rare clicks", "maximise")
    return Case("", "rare clicks", log, values[rounds:], means[rounds:])


def failing(rng: np.random.Generator) -> Case:
    """One arm, good when it answers, fails in 15 to 40 % of its tries; half of the logs give its cost."""
    rounds, agents, arms = sizes(rng)
    level, bad = levels(rng, arms), int(rng.integers(arms))
    level[bad] = 0.8 * level.min()
    share = np.where(np.arange(arms) == bad, rng.uniform(0.15, 0.4), rng.uniform(0.0, 0.02))
    cost = 5.0 * float(level.max())
    means = np.broadcast_to(level, (2 * rounds, agents, arms))
    values = means * noise(rng, means.shape)
    fails = rng.random(values.shape) < share
    said = bool(rng.random() < 0.5)
    first = np.where(fails[:rounds], cost if said else np.nan, values[:rounds])
    missing = fails[:rounds].sum(axis=0).astype(np.int64)
    log = log_of(first, "failing", missing=missing, failure_cost=cost if said else None)
    expected = level * (1 - share) + cost * share
    later = np.where(fails[rounds:], cost, values[rounds:])
    return Case("", "failing", log, later, np.broadcast_to(expected, later.shape), int(expected.argmin()))


def censored(rng: np.random.Generator) -> Case:
    """Values beyond a limit are recorded as the limit; one arm has a heavier tail than the others."""
    rounds, agents, arms = sizes(rng)
    level, heavy = levels(rng, arms), int(rng.integers(arms))
    level[heavy] = level.min()
    slow = np.where(np.arange(arms) == heavy, rng.uniform(0.05, 0.15), rng.uniform(0.0, 0.01))
    shape = (2 * rounds, agents, arms)
    values, times = level * noise(rng, shape), rng.uniform(20, 60)
    values = np.where(rng.random(shape) < slow, times * level.max(), values)
    limit = 4.0 * float(level.max())
    true = level * (1 - slow) + times * level.max() * slow
    log = log_of(np.minimum(values[:rounds], limit), "censored")
    later = np.minimum(values[rounds:], limit)
    expected = level * (1 - slow) + limit * slow
    return Case("", "censored", log, later, np.broadcast_to(expected, later.shape), int(true.argmin()))


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "stationary": stationary,
    "drifting": drifting,
    "seasonal": seasonal,
    "failing": failing,
    "censored": censored,
    "heterogeneous": heterogeneous,
    "chosen-only": chosen_only,
    "rare clicks": rare_clicks,
}


def case_of(family: str, number: int) -> Case:
    """The log of this family and number."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), number])
    return replace(FAMILIES[family](rng), name=f"{family} {number}")


# --- scoring --------------------------------------------------------------------------------------------


def score(case: Case) -> dict[str, Any]:
    """Advice on the first half, and what came after it; `refused` where there is no advice."""
    row: dict[str, Any] = {"name": case.name, "family": case.family}
    try:
        advice = advise(case.log, jobs=1)
    except RumormillError as error:
        return {**row, "refused": str(error)}
    log, sign = advice.log, advice.log.sign
    names = [(case.log.agents or ()).index(name) for name in log.agents or ()]
    later = np.ascontiguousarray(case.later[:, names])
    expected = np.ascontiguousarray(case.expected[:, names])
    stage = stage_after(advice, later)
    ways = {way.candidate: stage.actions_on(way.candidate, later)[0] for way in advice.start.ways}
    actions = {
        "recommended": ways[advice.chosen],
        "alone": ways[advice.start.cold.candidate],
        "keep-best": np.broadcast_to(keep_best(log), later.shape[:2]),
    }
    mean = {way: float(outcome(expected, made).mean()) for way, made in actions.items()}
    for way in WAYS:
        middle = mean["recommended"] / mean[way] if sign < 0 else mean[way] / mean["recommended"]
        row[way] = [
            middle,
            *ratio(outcome(later, actions["recommended"]), outcome(later, actions[way]), sign),
        ]
    row["ways"] = {str(each): [float(outcome(expected, made).mean())] for each, made in ways.items()}
    for each in advice.start.ways:
        row["ways"][str(each.candidate)] += [each.mean, each.score, each.recorded]
    best = advice.model.enough.best
    row |= {
        "chosen": str(advice.chosen),
        "drift": advice.model.drift.drifts,
        "priced": log.missing is None or log.failure_cost is not None,
        "named": case.right in (None, best),
        "unsure": advice.model.failures.hides_order(best) or not advice.model.enough.is_enough,
        "saved": sign * (mean["recommended"] - mean["alone"]),
        "saved_measured": sign
        * float((outcome(later, actions["recommended"]) - outcome(later, actions["alone"])).mean()),
        "gain": vars(advice.gain),
        "lines": [line.row() for line in advice.baselines],
        "measured": {way: float(outcome(later, made).mean()) for way, made in actions.items()},
    }
    return row


def table_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table by family, and of all."""
    lines = [
        f"{'family':14} {'logs':>4} {'refused':>7}  {'alone':>6} {'surely':>6}  {'keep':>6} {'> 5 %':>6} "
        f"{'worst':>6}  {'covered':>7} {'truth':>6}"
    ]
    families = [*dict.fromkeys(row["family"] for row in rows)]
    for family in (*families, "all"):
        here = [row for row in rows if family in (row["family"], "all")]
        told = [row for row in here if "refused" not in row]
        right = np.mean([row["named"] or row["unsure"] for row in told]) if told else math.nan
        told = [row for row in told if row["priced"]]
        if not told:
            lines.append(f"{family:14} {len(here):4} {len(here):7}")
            continue
        geo = {way: math.exp(float(np.mean([math.log(row[way][0]) for row in told]))) for way in WAYS}
        surely = sum(row["alone"][2] > 1.05 for row in told)
        worse = sum(row["keep-best"][0] > 1.05 for row in told)
        covered = [
            row["gain"]["low"] <= row["saved_measured"] <= row["gain"]["high"]
            for row in told
            if row["gain"]["low"] is not None
        ]
        share = f"{np.mean(covered):7.1%}" if covered else "      –"
        lines.append(
            f"{family:14} {len(here):4} {len(here) - len(told):7}  {geo['alone']:6.3f} {surely:6} "
            f" {geo['keep-best']:6.3f} {worse:6} {max(row['keep-best'][0] for row in told):6.3f}  {share} "
            f"{right:6.0%}"
        )
    return lines


def bound_table(tuning: bool, first: int) -> list[str]:
    """Cost of knowing the means of the second half over that of keeping the own best arm of the first."""
    lines = [f"{'family':14} {'logs':>4} {'own best arm':>12} {'of the round':>12}"]
    found: dict[str, list[Array]] = {}
    for family in FAMILIES:
        for number in range(0 if tuning else 1, 2 * first, 2):
            case = case_of(family, number)
            if case.log.missing is not None and case.log.failure_cost is None:
                continue
            rewards = case.log.sign * case.expected
            kept = outcome(rewards, np.broadcast_to(keep_best(case.log), rewards.shape[:2])).mean()
            known = np.array([rewards.mean(axis=0).max(axis=1).mean(), rewards.max(axis=2).mean()])
            found.setdefault(family, []).append(known / kept if case.log.sign < 0 else kept / known)
    found["all"] = [each for several in found.values() for each in several]
    for family, ratios in found.items():
        own, of_round = np.exp(np.log(ratios).mean(axis=0))
        lines.append(f"{family:14} {len(ratios):4} {own:12.3f} {of_round:12.3f}")
    return lines


def warm_table(trials: int = 40, horizon: int = 500) -> list[str]:
    """Group regret of a cold start over that of a warm one, by drift and age of the prior.

    Eight agents, five arms (Student t, 3 degrees of freedom) that share everything; means walk at random by
    `drift` standard deviations of a reward in a hundred rounds. The prior has the mean of 50 samples of each
    agent, and is so many rounds old.
    """
    ages, lines = (0, 100, 1_000, 10_000), []
    lines.append("drift in 100 rounds" + "".join(f"{age:>10,}" for age in ages) + "   rounds old")
    for drift in (0.0, 0.03, 0.1, 0.3):
        cells = []
        for age in ages:
            regrets = np.zeros(2)
            for trial in range(trials):
                rng = np.random.default_rng([trial, int(1_000 * drift), age])
                then = rng.uniform(0.0, 1.0, 5)
                now = then + drift * math.sqrt(age / 100) * rng.standard_normal(5)
                spread = math.sqrt(3.0)  # of Student t with 3 degrees of freedom
                known = then + spread / math.sqrt(50) * rng.standard_normal((8, 5))
                bandit = rm.Bandit([rm.StudentT(df=3.0, loc=float(mean)) for mean in now])
                for i, prior in enumerate(
                    (None, rm.Prior(mean=known.tolist(), n=np.full((8, 5), 50).tolist()))
                ):
                    played = rm.simulate(
                        bandit,
                        rm.Network.complete(8),
                        rm.DecentralizedMPUCB(gamma=1, zeta=0.3, clique_filter=False),
                        horizon=horizon,
                        rng=trial,
                        prior=prior,
                    )
                    regrets[i] += float(played.regret[0, -1])
            cells.append(regrets[0] / regrets[1])
        lines.append(f"{drift:19}" + "".join(f"{cell:10.2f}" for cell in cells))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tuning", action="store_true", help="even numbers instead of odd ones")
    parser.add_argument("--first", type=int, default=LOGS // 2, help="logs of every family")
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument("--json", type=Path, help="one line per log")
    parser.add_argument("--warm", action="store_true", help="cold over warm regret instead")
    parser.add_argument("--bound", action="store_true", help="what knowing the second half is worth instead")
    given = parser.parse_args()
    if given.bound:
        print("\n".join(bound_table(given.tuning, given.first)))
        return
    if given.warm:
        print("\n".join(warm_table()))
        return
    rows, before = [], time.process_time()
    for family in given.family or FAMILIES:
        for number in range(0 if given.tuning else 1, 2 * given.first, 2):
            rows.append(score(case_of(family, number)))
            if given.json:
                given.json.write_text("\n".join(json.dumps(row) for row in rows))
    print("\n".join(table_of(rows)))
    print(f"{len(rows)} logs, {time.process_time() - before:.0f} s of processor time")


if __name__ == "__main__":
    main()
