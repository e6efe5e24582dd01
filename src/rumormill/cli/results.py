"""What runs came to: tables for people, JSON for programs, a report beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.cli.printing import note, print_json, print_table, say, with_band
from rumormill.text import band, plural

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.analyse.summary import Summary
    from rumormill.experiments.run.store import RunFolder

WORD_STYLES = {"holds": "green", "does not hold": "red", "not decided at this size": "yellow"}


def conclude(runs: Sequence[RunFolder], json: bool, *, report: bool, bounds: bool = False) -> None:
    """What runs that were just played came to, and where it is kept."""
    from rumormill.experiments.analyse.summary import summarise

    summaries = [summarise(run, bounds=bounds) for run in runs]
    written = [write_report(summary) for summary in summaries] if report else []
    folders = [str(summary.path) for summary in summaries]
    present(summaries, json, folders=folders, reports=[str(paths[-1]) for paths in written])
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
    folders: Sequence[str] = (),
    reports: Sequence[str] = (),
) -> None:
    """The tables of the runs, then the verdicts over all of them."""
    from rumormill.experiments.analyse.claims import verdict_row, verdicts

    found = verdicts(summaries) if claims else []
    if json:
        print_json(
            {
                "runs": [
                    {"name": each.name, "rows": each.rows, **_bounds_json(each.bounds)} for each in summaries
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
        if each.bounds is not None:
            _print_bounds(each.bounds)
    if found:
        rows = [verdict_row(verdict) for verdict in found]
        for row in rows:  # for the report, where there is room
            row.pop("detail")
        print_table(rows, title="The claims", styles=WORD_STYLES)


def write_report(summary: Summary, out: Path | None = None, figures: bool = True) -> list[Path]:
    """The figures and the page; the page comes last."""
    from rumormill.experiments.figures.table import draw_all
    from rumormill.experiments.report.page import write_report as write_page

    drawn = draw_all(summary, summary.path / "figures") if figures else []
    return [*drawn, write_page(summary, out or summary.path / "report.html")]


def _bounds_json(bounds: RunBounds | None) -> dict[str, Any]:
    from rumormill.experiments.analyse.bounds import bound_rows, lower_rows

    return {} if bounds is None else {"bounds": bound_rows(bounds), "lower_bounds": lower_rows(bounds)}


def _print_bounds(bounds: RunBounds) -> None:
    from rumormill.experiments.analyse.bounds import bound_rows
    from rumormill.experiments.report.bounds import remarks

    rows = bound_rows(bounds)
    for row in rows:  # for the report, where there is room
        row.pop("assumptions")
    print_table(rows, title=f"The theory's upper bounds at round {bounds.horizon:,}")
    for remark in remarks(bounds):
        say(remark)
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
    left_out = ("low", "high", "trials", "bytes_per_round")
    kept = {key: value for key, value in row.items() if key not in left_out}
    return with_band(kept, "regret", band(row["low"], row["high"]))
