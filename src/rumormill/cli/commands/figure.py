"""`rumormill figure`: pictures and tables to publish."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rumormill.cli.printing import note, say
from rumormill.errors import InputError
from rumormill.text import nearest

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Summary

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}


class StyleName(StrEnum):
    """What the figures are for."""

    screen = "screen"
    paper = "paper"


def figure(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", show_default=False)],
    panel: Annotated[bool, typer.Option("--panel", help="All runs in one figure, with one key.")] = False,
    only: Annotated[str | None, typer.Option(help="One kind of figure: regret, agents, messages, …")] = None,
    style: Annotated[
        StyleName, typer.Option(help="paper: width of a column or page, fonts of a journal.")
    ] = StyleName.screen,
    width: Annotated[str | None, typer.Option(help="Another width: 3.3in, 84mm, 8.4cm, 240pt.")] = None,
    linear: Annotated[bool, typer.Option("--linear", help="With --panel: plain axes.")] = False,
    bounds: Annotated[bool, typer.Option("--bounds", help="Also the theory's bounds.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder; with --panel the name without ending. figures/ of the run, or panel."),
    ] = None,
) -> None:
    """Draw runs to publish, with captions and tables.

    PNG, SVG and PDF; tables as LaTeX, Markdown and CSV.
    """
    from rumormill.experiments.analyse.summary import summarise
    from rumormill.experiments.run.store import open_run
    from rumormill.plotting.style import drawn_for

    inches = None if width is None else in_inches(width)
    if linear and not panel:
        raise InputError("--linear is for --panel: single runs have regret-linear beside regret")
    summaries = [summarise(open_run(run), bounds=bounds) for run in runs]
    with drawn_for(style.value, inches):
        written = _one_figure(summaries, out, linear) if panel else _of_each(summaries, out, only)
    for path in written:
        say(path)


def _one_figure(summaries: list[Summary], out: Path | None, linear: bool) -> list[Path]:
    from rumormill.experiments.figures.registry import panel_caption, panel_figure
    from rumormill.plotting.rendering import save, write_caption

    stem, caption = out or Path("panel"), panel_caption(summaries)
    note(caption)
    return [*save(panel_figure(summaries, linear=linear), stem), write_caption(caption, stem)]


def _of_each(summaries: list[Summary], out: Path | None, only: str | None) -> list[Path]:
    from rumormill.experiments.figures import FIGURES, draw_all
    from rumormill.experiments.report.markup import write_tables

    if only is not None and only not in FIGURES:
        raise InputError(f"--only {only!r} is not allowed{nearest(only, FIGURES)}")
    written = []
    for each in summaries:
        folder = each.path / "figures" if out is None else out / each.name if len(summaries) > 1 else out
        written += draw_all(each, folder, list(FIGURES) if only is None else [only])
        written += write_tables(each, folder) if only is None else []
    return written


def in_inches(text: str) -> float:
    """A width with its unit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)?", text.strip())
    wide = float(found[1]) * INCHES[found[2] or "in"] if found else 0.0
    if not 1 <= wide <= 40:
        raise InputError(f"--width {text!r} is not allowed: from 1in to 40in, as 3.3in, 84mm, 8.4cm or 240pt")
    return wide
