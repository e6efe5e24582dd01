"""Play a run from the command line and print its results: tables, JSON, a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.cli.arguments import ExecutorName
from rumormill.cli.printing import note, print_json, print_table, say, with_band
from rumormill.errors import InputError
from rumormill.text import nearest, plural

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.analyse.summary import Pair, Summary
    from rumormill.experiments.run.store import RunFolder
    from rumormill.experiments.spec.schema import Spec


def play(
    spec: Spec, folder: Path, jobs: int | None, executor: ExecutorName, address: str | None = None
) -> RunFolder:
    """Run the spec into the folder, with a display of how far it is."""
    from rumormill.experiments.run import runner
    from rumormill.experiments.run.executors import executor_of
    from rumormill.experiments.run.progress import progress_for
    from rumormill.graphs.datasets import find

    for part in spec.networks.values() or [spec.network]:
        if part.kind == "file":
            find(part.settings["file"])  # before a folder is made for a run that cannot begin
    workers = executor_of(executor.value, jobs, address)
    return runner.run(spec, folder, jobs, progress_for(spec.name), workers)


def with_available_data(spec: Spec) -> tuple[Spec, list[str]]:
    """The spec without those of its networks whose data are not there, and a line about each of them."""
    from rumormill.experiments.spec.reading import without_networks
    from rumormill.graphs.datasets import MissingDataError, find

    missing = {}
    for name, part in spec.networks.items():
        try:
            if part.kind == "file":
                find(part.settings["file"])
        except MissingDataError as error:
            missing[name] = f"{spec.name} goes without the network {name}: {error}"
    return (without_networks(spec, missing) if missing else spec), list(missing.values())


# Beyond so many rows a table of pairs is left to the report and to JSON.
MOST_PAIRS = 45


@dataclass(frozen=True)
class Against:
    """How policies are compared: what is not said is as the spec has it."""

    baseline: str | None = None
    margin: float | None = None

    def pairs(self, summary: Summary) -> list[Pair]:
        """Every policy against every other, or against the baseline."""
        from rumormill.experiments.analyse.summary import compare_policies

        if self.baseline is not None and self.baseline not in summary.policies:
            raise InputError(
                f"--baseline {self.baseline!r} is not allowed{nearest(self.baseline, summary.policies)}"
            )
        return compare_policies(summary, self.baseline, self.margin)


WORD_STYLES = {"holds": "green", "does not hold": "red", "not decided at this size": "yellow"}


def conclude(
    runs: Sequence[RunFolder],
    json: bool,
    *,
    report: bool,
    bounds: bool = False,
    against: Against | None = None,
) -> None:
    """Print the results of runs just played, and where they are stored."""
    from rumormill.experiments.analyse.summary import summarise

    summaries = [summarise(run, bounds=bounds) for run in runs]
    written = [write_report(summary) for summary in summaries] if report else []
    folders = [str(summary.path) for summary in summaries]
    reports = [str(paths[-1]) for paths in written]
    present(summaries, json, against=against, folders=folders, reports=reports)
    if json:
        return
    for paths in written:
        note(f"picture: {paths[0]} (and more beside it)")
        note(f"report: {paths[-1]}")
    for folder in [] if report else folders:
        note(f"folder: {folder} (for a report: rumormill report {folder})")


def present(
    summaries: Sequence[Summary],
    json: bool,
    *,
    claims: bool = True,
    against: Against | None = None,
    folders: Sequence[str] = (),
    reports: Sequence[str] = (),
) -> None:
    """The tables of the runs, then the verdicts over all of them, then how the policies compare."""
    from rumormill.experiments.analyse.claims import too_few_for, verdict_row
    from rumormill.experiments.analyse.summary import verdicts

    found = verdicts(summaries) if claims else []
    pairs = [(against or Against()).pairs(each) for each in summaries] if claims else [[] for _ in summaries]
    if json:
        print_json(
            {
                "runs": [
                    {
                        "name": each.name,
                        "rows": each.rows,
                        "constants": each.constants,
                        "pairs": [vars(pair) for pair in compared],
                        **_tuning_json(each),
                        **_bounds_json(each.bounds),
                    }
                    for each, compared in zip(summaries, pairs, strict=True)
                ],
                "verdicts": [vars(verdict) for verdict in found],
                "folders": list(folders),
                "reports": list(reports),
            }
        )
        return
    for each in summaries:
        print_table([_shown(row) for row in each.rows], title=_headline(each))
        say()
        if each.constants and each.tuning is None:
            print_table(each.constants_in_short, title="Constants as resolved in the first trial")
            say()
        if each.bounds is not None:
            _print_bounds(each.bounds)
        if each.tuning is not None:
            _print_tuning(each)
    tuned = {each.name for each in summaries if each.tuning is not None}
    listed = [verdict for verdict in found if verdict.scope.split(" (")[0] not in tuned]
    if too_few_for(listed):
        say(f"The claims: {too_few_for(listed)} (--trials)")
        say()
    elif listed:
        rows = [verdict_row(verdict) for verdict in listed]
        for row in rows:  # for the report, where there is room
            row.pop("detail")
        print_table(rows, title="The claims", styles=WORD_STYLES)
        say()
    for each, compared in zip(summaries, pairs, strict=True):
        _print_pairs(each, compared)


def write_report(summary: Summary, out: Path | None = None, figures: bool = True) -> list[Path]:
    """The figures as PNG (`rumormill figure` draws others too) and the page; the page comes last."""
    from rumormill.experiments.figures import draw_all
    from rumormill.experiments.report.html_page import write_report as write_page

    drawn = draw_all(summary, summary.path / "figures", kinds=("png",)) if figures else []
    return [*drawn, write_page(summary, out or summary.path / "report.html")]


def _bounds_json(bounds: RunBounds | None) -> dict[str, Any]:
    from rumormill.experiments.analyse.bounds import bound_rows, lower_rows

    return {} if bounds is None else {"bounds": bound_rows(bounds), "lower_bounds": lower_rows(bounds)}


def _print_bounds(bounds: RunBounds) -> None:
    from rumormill.experiments.analyse.bounds import bound_rows
    from rumormill.experiments.report.html_page import remarks

    rows = bound_rows(bounds)
    for row in rows:  # for the report, where there is room
        row.pop("assumptions")
    print_table(rows, title=f"The theory's upper bounds at round {bounds.horizon:,}")
    for remark in remarks(bounds):
        say(remark)
    say()


def _print_pairs(summary: Summary, pairs: Sequence[Pair]) -> None:
    """A table where it has a reader; else where to find it."""
    from rumormill.experiments.analyse.summary import pair_row, too_few_to_compare

    if too_few_to_compare(pairs):
        say(f"{summary.name}: {too_few_to_compare(pairs)}")
        return
    if len(pairs) > MOST_PAIRS:
        say(
            f"{summary.name}: {len(pairs):,} comparisons of policies are in the report and in --json; "
            "--baseline LABEL compares with one"
        )
    elif pairs:
        print_table([pair_row(pair) for pair in pairs], title=f"{summary.name}: policies compared")
        say()


def _tuning_json(summary: Summary) -> dict[str, Any]:
    from rumormill.experiments.analyse.tuning import claims_by_column, tuned_rows

    if summary.tuning is None:
        return {}
    return {
        "tuned": tuned_rows(summary.tuning),
        "one_for_all": summary.tuning.one_for_all(),
        "claims_by_column": claims_by_column(summary.tuning),
    }


def _print_tuning(summary: Summary) -> None:
    from rumormill.experiments.analyse.claims import too_few_for
    from rumormill.experiments.analyse.tuning import claims_by_column, shown_row, tuned_rows

    assert summary.tuning is not None
    print_table(
        [shown_row(row) for row in tuned_rows(summary.tuning)],
        title=f"{summary.name}: mean group regret in {plural(summary.tuning.reporting, 'trial')}, "
        f"constants chosen in {summary.tuning.choosing} others",
    )
    say()
    rows = summary.tuning.one_for_all()
    if rows:
        print_table(
            rows, title=f"One value for every {summary.tuning.over}: its worst case, × the best there"
        )
        say()
    claims = claims_by_column(summary.tuning)
    few = too_few_for([verdict for column in summary.columns.values() for verdict in column.verdicts])
    if few:
        say(f"{summary.name}, the claims: {few} (--trials)")
        say()
    elif claims:
        print_table(claims, title=f"{summary.name}: the claims, at so many sweep points")
        say()


def _headline(summary: Summary) -> str:
    manifest = summary.manifest
    state = "" if manifest.status == "done" else ", not finished"
    return (
        f"{manifest.name} ({manifest.scale}{state}): group regret at round {manifest.horizon:,}, "
        f"{plural(manifest.trials, 'trial')}, seed {manifest.seed}"
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the summary as it is printed."""
    from rumormill.experiments.analyse.measured import band_of

    left_out = ("low", "high", "trials", "bytes_per_round")
    kept = {key: value for key, value in row.items() if key not in left_out}
    return with_band(kept, "regret", band_of(row))
