"""`rumormill coverage`: how often confidence radii fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.arguments import Json, Seed, made_estimator, made_law
from rumormill.cli.printing import note, print_json, print_table
from rumormill.experiments.run.progress import CountDisplay
from rumormill.text import number

if TYPE_CHECKING:
    from rumormill.estimators import Estimator
    from rumormill.theory import CoverageRow


def coverage(
    law: Annotated[
        str, typer.Option(help='The law of the samples: "alpha-stable alpha=1.9", "pareto tail=1.5".')
    ] = "alpha-stable alpha=1.9",
    mean: Annotated[float, typer.Option(help="Its mean.")] = 0.0,
    estimator: Annotated[
        list[str] | None, typer.Option(help="A mean to test; repeatable. All that have a radius.")
    ] = None,
    n: Annotated[list[int] | None, typer.Option(min=1, help="Samples; repeatable. 100 and 1000.")] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="The share of failures allowed; repeatable. 0.1, 0.03 and 0.01."),
    ] = None,
    zeta: Annotated[float | None, typer.Option(help="Radii with this factor, instead of theory's.")] = None,
    c: Annotated[float | None, typer.Option(help="Radii with this constant, instead of theory's.")] = None,
    eps: Annotated[float | None, typer.Option(help="The order of the moments minus one.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Lists of samples per row.")] = 2000,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.99,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the figure; runs/coverage by default.")] = None,
    json: Json = False,
) -> None:
    """Measure how often the estimators' radii fail.

    How often the true mean is outside each estimator's radius, against the δ that is allowed.
    """
    from rumormill import theory
    from rumormill.experiments.figures.theory import coverage_figure
    from rumormill.plotting.rendering import save
    from rumormill.validate import inside

    levels = [inside("--delta", level, 0, 1) for level in delta or [0.1, 0.03, 0.01]]
    by_theory = zeta is None and c is None
    drawn, sizes, tested = made_law(law, mean), n or [100, 1000], _estimators(estimator, by_theory)
    with CountDisplay("row", len(tested) * len(sizes) * len(levels)) as counting:
        found = {
            name: theory.coverage(
                each,
                drawn,
                n=sizes,
                L=[-math.log(level) for level in levels],
                repeats=repeats,
                seed=seed,
                eps=eps,
                c=c,
                zeta=zeta,
                confidence=confidence,
                on_row=counting.add,
            )
            for name, each in tested.items()
        }
    used = "theory constants" if by_theory else f"ζ = {zeta:g}" if zeta is not None else f"c = {c:g}"
    figure = coverage_figure(found, f"{law}, {used}")
    paths = save(figure, (out or Path("runs") / "coverage") / "coverage")
    rows = [_row(name, row) for name, each in found.items() for row in each]
    if json:
        print_json({"law": repr(drawn), "constants": used, "rows": rows, "figures": [str(p) for p in paths]})
    else:
        _print(rows, paths, f"{law}, {used}: estimates off by more than the radius, of {repeats:,}")


def _print(rows: list[dict[str, Any]], figures: list[Path], title: str) -> None:
    styles = {"at most δ": "green", "above δ": "red", "not decided": "yellow"}
    print_table([_shown(row) for row in rows], title=title, styles=styles)
    for path in figures:
        note(f"figure: {path}")


def _estimators(names: list[str] | None, by_theory: bool) -> dict[str, Estimator]:
    """Those asked for, or all that have a radius: theory's needs a lemma."""
    from rumormill import catalogue

    if names:
        return {name: made_estimator(name) for name in names}
    every = {name: made_estimator(name) for name in catalogue.ESTIMATORS}
    with_radius = {name: each for name, each in every.items() if not each.brings_index}
    return {name: each for name, each in with_radius.items() if each.has_lemma or not by_theory}


def _row(name: str, row: CoverageRow) -> dict[str, Any]:
    """Everything measured. The promise is about either side alone, so the worse side counts."""
    if math.isinf(row.radius):
        word = "no radius"
    elif row.refuted:
        word = "above δ"
    else:
        word = "at most δ" if row.high <= row.delta else "not decided"
    return {
        "estimator": name,
        "eps": row.eps,
        "n": row.n,
        "delta": row.delta,
        "radius": row.radius,
        "in_range": row.valid,
        "repeats": row.repeats,
        "above": row.above,
        "below": row.below,
        "rate": row.rate,
        "low": row.low,
        "high": row.high,
        "confidence": row.confidence,
        "failures": word,
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    interval = f"{number(row['low'])} – {number(row['high'])}"
    if row["failures"] == "no radius":
        row, interval = {**row, **dict.fromkeys(("radius", "above", "below", "rate"), math.nan)}, "–"
    return {
        "estimator": row["estimator"],
        "n": row["n"],
        "delta": row["delta"],
        "radius": row["radius"],
        "above": row["above"],
        "below": row["below"],
        "rate": row["rate"],
        f"{row['confidence']:.4%}".rstrip("0%").rstrip(".") + " % interval": interval,
        "lemma's range": row["in_range"],
        "failures": row["failures"],
    }
