"""What runs came to: tables for people, JSON for programs, a report beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.cli.printing import note, print_json, print_table, say, with_band

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.run.store import RunFolder

WORD_STYLES = {"holds": "green", "does not hold": "red", "not decided at this size": "yellow"}


def present(
    runs: list[RunFolder], json: bool, *, report: bool = True, claims: bool = True, bounds: bool = False
) -> None:
    """The tables of the runs, then the verdicts over all of them."""
    from rumormill.experiments.analyse.claims import verdicts
    from rumormill.experiments.analyse.summary import summary, verdict_row

    found = verdicts(runs) if claims else []
    theory = [bounds_of(run, bounds) for run in runs]
    both = list(zip(runs, theory, strict=True))
    written = [write_report(run, bounds=known) for run, known in both] if report else []
    if json:
        print_json(
            {
                "runs": [
                    {"name": run.manifest.name, "rows": summary(run), **_bounds_json(known)}
                    for run, known in both
                ],
                "verdicts": [vars(verdict) for verdict in found],
                "reports": [str(paths[-1]) for paths in written],
            }
        )
        return
    for run, known in both:
        print_table([_shown(row) for row in summary(run)], title=_headline(run))
        say()
        _print_bounds(known)
    if found:
        rows = [verdict_row(verdict) for verdict in found]
        for row in rows:  # for the report, where there is room
            row.pop("detail")
        print_table(rows, title="The paper's claims", styles=WORD_STYLES)
    for paths in written:
        note(f"picture: {paths[0]} (and more beside it)")
        note(f"report: {paths[-1]}")


def bounds_of(run: RunFolder, wanted: bool) -> RunBounds | None:
    """The theory's bounds beside a run, if they are asked for."""
    from rumormill.experiments.analyse.bounds import run_bounds

    return run_bounds(run) if wanted else None


def write_report(
    run: RunFolder, out: Path | None = None, figures: bool = True, bounds: RunBounds | None = None
) -> list[Path]:
    """The figures and the page; the page comes last."""
    from rumormill.experiments.figures.regret import draw_all
    from rumormill.experiments.report.page import write_report as write_page

    drawn = draw_all(run, run.path / "figures", bounds) if figures else []
    return [*drawn, write_page(run, out or run.path / "report.html", bounds)]


def _bounds_json(bounds: RunBounds | None) -> dict[str, Any]:
    from rumormill.experiments.analyse.bounds import bound_rows, lower_rows

    return {} if bounds is None else {"bounds": bound_rows(bounds), "lower_bounds": lower_rows(bounds)}


def _print_bounds(bounds: RunBounds | None) -> None:
    from rumormill.experiments.analyse.bounds import bound_rows
    from rumormill.experiments.report.bounds import remarks

    if bounds is None:
        return
    rows = bound_rows(bounds)
    for row in rows:  # for the report, where there is room
        row.pop("assumptions")
    print_table(rows, title=f"The theory's upper bounds at round {bounds.horizon:,}")
    for remark in remarks(bounds):
        say(remark)
    say()


def _headline(run: RunFolder) -> str:
    manifest = run.manifest
    state = "" if run.done else ", not finished"
    return (
        f"{manifest.name} ({manifest.scale}{state}): group regret at round {manifest.horizon:,}, "
        f"{manifest.trials:,} trials, seed {manifest.seed}"
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the summary as it is printed."""
    left_out = ("low", "high", "trials", "bytes_per_round")
    kept = {key: value for key, value in row.items() if key not in left_out}
    return with_band(kept, "regret", (row["low"], row["high"]))
