"""Commands that run experiments or read their folders."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.printing import note, print_json, print_table
from rumormill.cli.words import part_of_spec, split
from rumormill.errors import InputError

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.run.store import RunFolder
    from rumormill.experiments.spec.schema import Spec

WORD_STYLES = {"holds": "green", "does not hold": "red", "not decided at this size": "yellow"}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials, instead of those of the scale.")]
Horizon = Annotated[int | None, typer.Option(min=1, help="Rounds, instead of those of the scale.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Workers; all cores by default.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME-SCALE by default.")]
Report = Annotated[bool, typer.Option(help="Write report.html and figures/ into the folder.")]
Bounds = Annotated[bool, typer.Option("--bounds", help="Also the theory's bounds, drawn and as a table.")]
Folder = Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)]


def add_running(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (run, reproduce, report, show, compare, simulate):
        app.command()(command)


def names_starting_with(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from rumormill.experiments.spec.reading import spec_names

    return [name for name in ["all", *spec_names()] if name.startswith(incomplete)]


def run(
    spec: Annotated[Path, typer.Argument(help="An experiment as a TOML file.", show_default=False)],
    scale: Annotated[str | None, typer.Option(help="quick, full, or another scale of the file.")] = None,
    trials: Trials = None,
    horizon: Horizon = None,
    jobs: Jobs = None,
    out: Out = None,
    report: Report = True,
    bounds: Bounds = False,
    json: Json = False,
) -> None:
    """Run an experiment of your own; run it again to go on after a stop."""
    from rumormill.experiments.spec.reading import at_scale, read_spec

    ready = at_scale(read_spec(spec), scale, trials=trials, horizon=horizon)
    folder = _run(ready, out or default_folder(ready), jobs)
    _present([folder], json, report=report, bounds=bounds)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="fig1a … fig1f, theory, gamma-sparse, estimators, or all.",
            autocompletion=names_starting_with,
            show_default=False,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="About a minute on two cores (default).")] = False,
    full: Annotated[bool, typer.Option("--full", help="The size of the paper.")] = False,
    trials: Trials = None,
    horizon: Horizon = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder; with `all`, the folder of all runs. runs/ by default.")
    ] = None,
    report: Report = True,
    bounds: Bounds = False,
    json: Json = False,
) -> None:
    """Run an experiment of the paper, draw it, and test the paper's claims on it."""
    from rumormill.experiments.spec.reading import at_scale, named_spec, spec_names
    from rumormill.graphs.datasets import MissingDataError

    if quick and full:
        raise InputError("--quick and --full were both given: choose one")
    scale = "full" if full else "quick"
    everything = name == "all"
    runs, missing = [], []
    for each in spec_names() if everything else [name]:
        ready = at_scale(named_spec(each), scale, trials=trials, horizon=horizon)
        folder = default_folder(ready, out or Path("runs")) if everything else out or default_folder(ready)
        try:
            runs.append(_run(ready, folder, jobs))
        except MissingDataError as error:
            if not everything:
                raise
            missing.append(f"{each} is left out: {error}")
    _present(runs, json, report=report, bounds=bounds)
    for line in missing:
        note(line)


def report(
    folder: Folder,
    out: Annotated[Path | None, typer.Option(help="The file; report.html in the folder by default.")] = None,
    figures: Annotated[bool, typer.Option(help="Also draw the figures, PNG and SVG.")] = True,
    bounds: Bounds = False,
) -> None:
    """Write the report of a run as one HTML file, and its figures."""
    from rumormill.experiments.run.store import open_run

    opened = open_run(folder)
    for path in _write_report(opened, out, figures, _bounds(opened, bounds)):
        typer.echo(path)


def show(folder: Folder, json: Json = False) -> None:
    """Print what a run came to."""
    from rumormill.experiments.run.store import open_run

    _present([open_run(folder)], json, report=False)


def compare(
    first: Folder,
    second: Annotated[Path, typer.Argument(help="The folder of another run.", show_default=False)],
    json: Json = False,
) -> None:
    """Print two runs side by side: regret, the change, and how their settings differ."""
    from rumormill.experiments.analyse import summary
    from rumormill.experiments.run.store import open_run

    one, other = open_run(first), open_run(second)
    rows, settings = summary.compare(one, other), summary.differences(one, other)
    if json:
        print_json({"first": str(first), "second": str(second), "settings": settings, "rows": rows})
        return
    if settings:
        print_table(settings, title="Settings that differ")
        typer.echo()
    paired = "trial by trial" if rows[0]["paired"] else "trials independent"
    print_table(
        [_with_shares(row) for row in rows],
        title=f"Group regret at the horizon: {first} and {second} ({paired}, 95 % interval)",
    )


def simulate(
    network: Annotated[
        str, typer.Option(help='A generator or file with settings: "erdos_renyi n=50 p=0.7".')
    ] = "erdos_renyi n=50 p=0.7",
    arms: Annotated[
        str, typer.Option(help='The law of the rewards: "alpha-stable alpha=1.9 K=5".')
    ] = "alpha-stable alpha=1.9 K=5",
    policy: Annotated[
        list[str] | None, typer.Option(help='A policy with settings: "kmp gamma=1 zeta=1"; repeatable.')
    ] = None,
    horizon: Annotated[int, typer.Option(min=1, help="Rounds.")] = 1000,
    trials: Annotated[int, typer.Option(min=1, help="Trials.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all randomness.")] = 0,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(help="Keep the run in this folder, with a report.")] = None,
    json: Json = False,
) -> None:
    """Play a few policies without writing a spec, and print what they came to."""
    from rumormill.experiments.spec.reading import at_scale, decode

    chosen = policy or ["kmp zeta=1", "decentralized zeta=1", "robust zeta=1"]
    ready = at_scale(
        decode(
            {
                "name": "simulate",
                "seed": seed,
                "horizon": horizon,
                "trials": trials,
                "network": network_part(split(network)),
                "arms": part_of_spec(split(arms), "law"),
                "policies": [part_of_spec(split(each), "type") for each in chosen],
            }
        )
    )
    if out is not None:
        _present([_run(ready, out, jobs)], json)
        return
    with tempfile.TemporaryDirectory(prefix="rumormill-") as folder:
        _present([_run(ready, Path(folder), jobs)], json, report=False, claims=False)


def network_part(words: list[str]) -> dict[str, Any]:
    """The network of a spec: a generator by name, or else a file."""
    from rumormill.graphs.datasets import KNOWN

    first = words[0] if words else ""
    if "/" in first or "." in first or Path(first).is_file() or first in [known.name for known in KNOWN]:
        return {**part_of_spec(words, "file"), "kind": "file"}
    return part_of_spec(words, "kind")


def default_folder(spec: Spec, base: Path = Path("runs")) -> Path:
    """Where a run goes when nobody says: other sizes go elsewhere."""
    ((scale, size),) = spec.scale.items()
    tail = f"{size.trials}x{size.horizon}" if scale == "custom" else scale
    return base / f"{spec.name}-{tail}"


def _run(spec: Spec, folder: Path, jobs: int | None) -> RunFolder:
    from rumormill.experiments.run import runner
    from rumormill.experiments.run.progress import progress_for
    from rumormill.experiments.spec.schema import FromFile
    from rumormill.graphs.datasets import find

    if isinstance(spec.network, FromFile):
        find(spec.network.file)  # before a folder is made for a run that cannot begin
    return runner.run(spec, folder, jobs, progress_for(spec.name))


def _bounds(run: RunFolder, wanted: bool) -> RunBounds | None:
    from rumormill.experiments.analyse.bounds import run_bounds

    return run_bounds(run) if wanted else None


def _write_report(
    run: RunFolder, out: Path | None = None, figures: bool = True, bounds: RunBounds | None = None
) -> list[Path]:
    from rumormill.experiments.figures.regret import draw_all
    from rumormill.experiments.report.page import write_report

    drawn = draw_all(run, run.path / "figures", bounds) if figures else []
    return [*drawn, write_report(run, out or run.path / "report.html", bounds)]


def _present(
    runs: list[RunFolder], json: bool, *, report: bool = True, claims: bool = True, bounds: bool = False
) -> None:
    """The tables of the runs, then the verdicts over all of them."""
    from rumormill.experiments.analyse.claims import verdicts
    from rumormill.experiments.analyse.summary import summary, verdict_row

    found = verdicts(runs) if claims else []
    theory = [_bounds(run, bounds) for run in runs]
    both = list(zip(runs, theory, strict=True))
    written = [_write_report(run, bounds=known) for run, known in both] if report else []
    if json:
        print_json(
            {
                "runs": [
                    {"name": run.manifest["name"], "rows": summary(run), **_bounds_json(known)}
                    for run, known in both
                ],
                "verdicts": [vars(verdict) for verdict in found],
                "reports": [str(paths[-1]) for paths in written],
            }
        )
        return
    for run, known in both:
        print_table([_rounded(row) for row in summary(run)], title=_headline(run))
        typer.echo()
        _print_bounds(known)
    if found:
        rows = [verdict_row(verdict) for verdict in found]
        for row in rows:  # for the report, where there is room
            row.pop("detail")
        print_table(rows, title="The paper's claims", styles=WORD_STYLES)
    for paths in written:
        note(f"picture: {paths[0]} (and more beside it)")
        note(f"report: {paths[-1]}")


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
        typer.echo(remark)
    typer.echo()


def _headline(run: RunFolder) -> str:
    manifest = run.manifest
    state = "" if manifest["status"] == "done" else ", not finished"
    return (
        f"{manifest['name']} ({manifest['scale']}{state}): group regret at round {manifest['horizon']:,}, "
        f"{manifest['trials']:,} trials, seed {manifest['seed']}"
    )


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the summary as it is printed."""
    band = f"{row['low']:,.0f} – {row['high']:,.0f}"
    shown = {
        key: value for key, value in row.items() if key not in ("low", "high", "trials", "bytes_per_round")
    }
    at = list(shown).index("regret") + 1
    pairs = list(shown.items())
    return dict([*pairs[:at], ("95 % band", band), *pairs[at:]])


def _with_shares(row: dict[str, Any]) -> dict[str, Any]:
    from rumormill.experiments.analyse.summary import share

    kept = {key: value for key, value in row.items() if key not in ("change", "low", "high", "paired")}
    return {**kept, "change": share(row["change"]), "from": share(row["low"]), "to": share(row["high"])}
