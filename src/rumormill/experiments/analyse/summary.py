"""The summary of a run, made once: terminal, figures and page all read it from here."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rumormill.experiments.analyse.claims import Verdict, gains_between, own_verdicts, verdict_row
from rumormill.experiments.analyse.comparisons import Pair, compare_policies
from rumormill.experiments.analyse.measured import Measurements, StoredRun, measured
from rumormill.experiments.analyse.measured import Row as Row
from rumormill.experiments.analyse.measured import Series as Series
from rumormill.experiments.analyse.tuning import BEST, Tuning, folded
from rumormill.experiments.run.describe import best_constants
from rumormill.text import plural

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import RunBounds


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Measurements):
    """The numbers of a run with its verdicts, comparisons, bounds and tuned constants."""

    bounds: RunBounds | None = None
    """What the theory promises, if it was asked for."""
    columns: dict[str, Summary] = field(default_factory=dict)
    """The run by value of a tuned constant; this one, each policy at its best constant, is among them."""
    tuning: Tuning | None = None

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The claims of the spec that this run alone can decide."""
        return own_verdicts(self)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every policy against every other, or against the spec's baseline."""
        return compare_policies(self)

    def __repr__(self) -> str:
        points = "" if len(self.points) == 1 else f", {len(self.points)} sweep points"
        return f"Summary({self.name}: {', '.join(self.policies)}{points}; round {self.horizon:,})"

    def _repr_html_(self) -> str:
        from rumormill.plotting.notebook import html_table

        title = (
            f"{self.name}: group regret at round {self.horizon:,}, {plural(self.manifest.trials, 'trial')}"
        )
        tables = [html_table(self.rows, title)]
        if self.verdicts:
            tables.append(html_table([verdict_row(verdict) for verdict in self.verdicts], "the claims"))
        return "".join(tables)


def summarise(run: StoredRun, *, bounds: bool = False) -> Summary:
    """Take a run's table apart, once; with `bounds`, also what the theory promises for it.

    Parameters:
        run: the folder of a run, `open_run(path)`; it may be under way.
        bounds: whether to work out the bounds of the theory; not for a run with a tuned constant.
    """
    found = measured(run)
    if run.spec.tune is None:
        if not bounds:
            return _summary(found)
        from rumormill.experiments.analyse.bounds import run_bounds

        return _summary(found, bounds=run_bounds(found))
    tuning = folded(found, best_constants(run.spec, run.frame))
    columns = {name: _summary(each) for name, each in tuning.columns.items()}
    return dataclasses.replace(columns[BEST], columns=columns, tuning=tuning)


def _summary(found: Measurements, **more: Any) -> Summary:
    fields = {each.name: getattr(found, each.name) for each in dataclasses.fields(Measurements)}
    return Summary(**fields, **more)


def verdicts(summaries: Sequence[Summary]) -> list[Verdict]:
    """The claims that these runs can decide: of each run, and between runs where a claim compares two."""
    done = [
        verdict
        for summary in summaries
        for column in summary.columns.values() or [summary]
        for verdict in column.verdicts
    ]
    return done + gains_between({summary.name: summary for summary in summaries})
