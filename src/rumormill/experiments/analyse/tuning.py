"""A run with a tuned constant: best values, how sensitive regret is to them, and one value for all.

The best value is chosen on the first trials; everything here is computed on the others (hold-out). A run is
folded into three columns: as printed, at theory's constants, and each policy at the best value of each sweep
point. Every claim is tested on all three.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rumormill.errors import DataError
from rumormill.experiments.analyse.claims import FAILS, HOLDS, OPEN, own_verdicts
from rumormill.experiments.analyse.measured import Measurements, Row, Series, Values
from rumormill.experiments.spec.building import PRINTED, THEORY, n_choosing

BEST = "best"
COLUMNS = {
    PRINTED: "as printed",
    BEST: "each at its best",  # plain-words: allow
    THEORY: "at theory's constants",
}
SHORT_WORDS: dict[str, str] = {HOLDS: "holds", FAILS: "fails", OPEN: "open"}
# Values within so many times the least regret count as good.
WITHIN = 2.0


@dataclass(frozen=True, eq=False)
class Curve:
    """Regret of one policy at one sweep point against the constant, over the trials reported."""

    policy: str
    values: Values
    numbers: list[float]
    """The values of the constant, ascending; empty where a policy has none."""
    series: list[Series]
    """At each of them."""
    chosen: float | None
    """The best value, by the other trials."""

    @property
    def means(self) -> list[float]:
        """Mean regret at the last round, at every value."""
        return [float(one.regret[:, -1].mean()) for one in self.series]

    @property
    def at_edge(self) -> bool:
        """Whether the best lies at an end of the grid, however far it was extended."""
        return self.chosen is not None and self.chosen in (self.numbers[0], self.numbers[-1])

    @property
    def insensitive(self) -> tuple[float, float] | None:
        """From where to where around the chosen value regret stays within twice that of the chosen."""
        if self.chosen is None:
            return None
        at = low = high = self.numbers.index(self.chosen)
        means = self.means
        most = WITHIN * means[at]
        while low > 0 and means[low - 1] <= most:
            low -= 1
        while high + 1 < len(self.numbers) and means[high + 1] <= most:
            high += 1
        return self.numbers[low], self.numbers[high]


@dataclass(frozen=True, eq=False)
class Tuning:
    """What a tuned run has beside its folded summary."""

    curves: dict[tuple[Any, ...], Curve]
    """By policy and sweep point, as the series of the summary."""
    raw: Mapping[tuple[Any, ...], Series]
    """By policy, constant and sweep point, all trials."""
    choosing: int
    """How many trials choose the value; the others are reported."""
    over: str | None
    columns: Mapping[str, Measurements]
    """The run as printed, at theory's constants, and each policy at its best constant."""

    @property
    def best(self) -> Measurements:
        """Each policy at its best constant."""
        return self.columns[BEST]

    @property
    def reporting(self) -> int:
        """How many trials are reported."""
        return len(self.best.of(self.best.policies[0], self.best.points[0]).trials)

    def one_for_all(self) -> list[Row]:
        """Per policy and choice of the other axes: the one value whose worst case over `over` is least.

        The worst case is the largest regret relative to the policy's own best; the value is chosen on the
        first trials, its cost is measured on the others.
        """
        rows: list[Row] = []
        if self.over is None:
            return rows
        for policy in self.best.policies:
            groups: dict[tuple[Any, ...], list[Curve]] = {}
            for values in self.best.points:
                others = tuple(value for axis, value in values.items() if axis != self.over)
                curve = self.curves[policy, *values.values()]
                if curve.chosen is not None:
                    groups.setdefault(others, []).append(curve)
            rows += [self._one_value(policy, curves) for curves in groups.values()]
        return rows

    def _one_value(self, policy: str, curves: list[Curve]) -> Row:
        numbers = curves[0].numbers
        chosen = min(numbers, key=lambda one: max(self._loss(curve, one, early=True) for curve in curves))
        losses = {curve.values[str(self.over)]: self._loss(curve, chosen) for curve in curves}
        worst = max(losses, key=losses.__getitem__)
        others = {axis: value for axis, value in curves[0].values.items() if axis != self.over}
        return {**others, "policy": policy, "one value": chosen, "worst": losses[worst], "at": worst}

    def _loss(self, curve: Curve, number: float, *, early: bool = False) -> float:
        """Regret at a value relative to that at the chosen one."""

        def mean(one: float) -> float:
            series = self.raw[curve.policy, str(one), *curve.values.values()]
            first = np.array(series.trials) < self.choosing
            return float(series.regret[first if early else ~first, -1].mean())

        assert curve.chosen is not None
        best = mean(curve.chosen)
        return mean(number) / best if best > 0 else 1.0


def folded(summary: Measurements, best: Mapping[tuple[Any, ...], float]) -> Tuning:
    """A tuned run in three columns: as printed, at theory's constants, each at its best constant."""
    tune, raw = summary.spec.tune, summary.series
    assert tune is not None
    choosing, axes = n_choosing(tune, summary.manifest.trials), summary.axes
    points = [dict(zip(axes, key, strict=True)) for key in dict.fromkeys(key[2:] for key in raw)]
    known: dict[str, dict[tuple[Any, ...], Series]] = {name: {} for name in COLUMNS}
    curves, whole = {}, []
    for values in points:
        place = tuple(values.values())
        found = {policy: _curve(summary, policy, place, choosing, best) for policy in summary.policies}
        if any(curve is None for curve in found.values()):
            continue  # a run under way, whose trials at this point do not suffice yet
        whole.append(values)
        for policy, curve in found.items():
            assert curve is not None
            curves[policy, *place] = curve
            at = {
                PRINTED: PRINTED,
                THEORY: THEORY,
                BEST: PRINTED if curve.chosen is None else str(curve.chosen),
            }
            for name in COLUMNS:
                known[name][policy, *place] = reported(raw[policy, at[name], *place], choosing)
    if not whole:
        raise DataError(f"{summary.path} has no trial to report yet: run it again to go on")
    made = {
        name: dataclasses.replace(summary, points=whole, series=series, column=COLUMNS[name])
        for name, series in known.items()
    }
    ordered = {name: made[name] for name in (PRINTED, THEORY, BEST)}
    return Tuning(curves, raw, choosing, tune.over, ordered)


def _curve(
    summary: Measurements,
    policy: str,
    place: tuple[Any, ...],
    choosing: int,
    best: Mapping[tuple[Any, ...], float],
) -> Curve | None:
    """None where trials are missing."""
    raw = summary.series
    at: dict[str, Series] = {key[1]: one for key, one in raw.items() if key[0] == policy and key[2:] == place}
    numbers = sorted(float(text) for text in at if text not in (PRINTED, THEORY))
    needed = [at.get(PRINTED), at.get(THEORY), *(at[str(number)] for number in numbers)]
    for one in needed:
        if one is None or min(one.trials) >= choosing or max(one.trials) < choosing:
            return None
    series = [reported(at[str(number)], choosing) for number in numbers]
    values = dict(zip(summary.axes, place, strict=True))
    return Curve(policy, values, numbers, series, best.get((policy, *place)))


def reported(series: Series, choosing: int) -> Series:
    """The series over the trials that did not choose."""
    kept = np.array(series.trials) >= choosing
    return dataclasses.replace(
        series,
        trials=[trial for trial in series.trials if trial >= choosing],
        regret=series.regret[kept],
        ends=series.ends.filter(kept),
    )


# --- rows -----------------------------------------------------------------------------------------------


def tuned_rows(tuning: Tuning) -> list[Row]:
    """One row per sweep point and policy: regret in three columns, the best value, its insensitive range."""
    rows: list[Row] = []
    for values in tuning.best.points:
        for policy in tuning.best.policies:
            curve = tuning.curves[policy, *values.values()]
            row: Row = {**values, "policy": policy}
            for name, text in COLUMNS.items():
                row[text] = float(tuning.columns[name].of(policy, values).mean[-1])
            row["best value"] = curve.chosen
            row["within twice the best"] = curve.insensitive
            row["at the edge"] = curve.at_edge
            rows.append(row)
    return rows


def shown_row(row: Row) -> Row:
    """A row of `tuned_rows` as text."""
    low_high = row["within twice the best"]
    best = "–" if row["best value"] is None else f"{row['best value']:g}"
    kept = {key: value for key, value in row.items() if key != "at the edge"}
    return {
        **kept,
        "best value": f"{best} (edge)" if row["at the edge"] else best,
        "within twice the best": "–" if low_high is None else f"{low_high[0]:g} – {low_high[1]:g}",
    }


def claims_by_column(tuning: Tuning) -> list[Row]:
    """One row per claim of the spec: at how many sweep points it holds, fails or stays open, by column."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for name, text in COLUMNS.items():
        for verdict in own_verdicts(tuning.columns[name]):
            by_word = counts.setdefault(verdict.sentence, {}).setdefault(text, dict.fromkeys(SHORT_WORDS, 0))
            by_word[verdict.word] += 1
    return [
        {"claim": claim, **{text: _counted(words) for text, words in columns.items()}}
        for claim, columns in counts.items()
    ]


def _counted(words: dict[str, int]) -> str:
    """holds 12, fails 1, open 3; one word where all agree."""
    some = [f"{SHORT_WORDS[word]} {count}" for word, count in words.items() if count]
    return some[0].split()[0] if len(some) == 1 else ", ".join(some)
