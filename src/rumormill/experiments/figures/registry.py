"""Figures of a run: the table of them, drawing and captions; several runs as panels of one figure.

A figure of a finished run is drawn once: its files are kept as long as results and drawing code are the same.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

import rumormill.experiments
import rumormill.plotting
from rumormill.experiments.analyse.measured import axis_name, in_words
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.figures.regret import (
    along_parameter,
    curves,
    far_apart,
    finish,
    left_out,
    regret_by_parameter,
    regret_over_time,
)
from rumormill.files import write_atomically
from rumormill.plotting.rendering import KINDS, in_notebook, save, shown_when_returned, write_caption
from rumormill.plotting.style import (
    Look,
    band_key,
    bar_key,
    for_pyplot,
    from_zero,
    key_below,
    looks,
    new_figure,
    sheet_in_use,
    style,
    unseen,
)
from rumormill.text import plural, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.measured import StoredRun

# What draws takes the Summary of a run and gives a figure; or several, by the tails of their names ("" for
# none), or an empty table where the run has nothing to show in it. The first line of its docstring is the
# caption in the report.
Draw = Callable[[Summary], "Figure | Mapping[str, Figure]"]

# The file of a figure beside this one, and the function in it.
FIGURES: dict[str, str] = {
    "regret": "regret:regret_over_time",
    "regret-linear": "regret:regret_over_time_linear",
    "regret-by": "regret:regret_by_each_parameter",
    "constants": "regret:regret_by_constant",
    "agents": "regret:agent_distribution",
    "messages": "regret:regret_per_message",
    "network": "network:network_figures",
    "regret-bounds": "theory:bounds_if_asked",
}


def drawer(name: str) -> Draw:
    """The function behind a name."""
    file, _, function = FIGURES[name].partition(":")
    draw: Draw = getattr(import_module(f"rumormill.experiments.figures.{file}"), function)
    return draw


def drawn(name: str, summary: Summary) -> dict[str, Figure]:
    """The figures of one line of the table, by the names of their files."""
    made = drawer(name)(summary)
    several: Mapping[str, Figure] = made if isinstance(made, Mapping) else {"": made}
    return {f"{name}-{tail}" if tail else name: figure for tail, figure in several.items()}


def draw_all(
    summary: Summary, out_dir: Path, names: Iterable[str] = FIGURES, kinds: tuple[str, ...] = KINDS
) -> list[Path]:
    """Every figure that this run has something to say in, as files of these kinds, its caption beside it.

    Those of a finished run that are there already, and would come out the same, are left as they are.
    """
    key = key_of(summary)
    return [
        path
        for name in names
        for path in drawn_once(out_dir, name, key, partial(_written, name, summary, out_dir, kinds), kinds)
    ]


def _written(name: str, summary: Summary, out_dir: Path, kinds: tuple[str, ...]) -> list[Path]:
    caption = full_caption(summary, caption_of(name))
    return [
        path
        for stem, figure in drawn(name, summary).items()
        for path in (*save(figure, out_dir / stem, kinds), write_caption(caption, out_dir / stem))
    ]


def main_figure(run: StoredRun | Summary) -> Figure:
    """The figure that answers the run's question: against the parameter swept, else against the round."""
    summary = run if isinstance(run, Summary) else summarise(run)
    notebook = in_notebook()  # which shows what is returned: pyplot would show it a second time
    with unseen() if notebook else nullcontext(), for_pyplot(), style():
        axes = summary.axes
        figure = regret_by_parameter(summary, axes[0]) if axes else regret_over_time(summary)
        # Ticks are made when they are first drawn: made here, they are of this style too.
        figure.draw_without_rendering()
    return shown_when_returned(figure) if notebook else figure


def caption_of(name: str) -> str:
    """What a figure shows: the first line of its function's docstring."""
    return (inspect.getdoc(drawer(name)) or name).splitlines()[0]


def full_caption(summary: Summary, what: str) -> str:
    """The same with what was run: for print, away from the report."""
    title = summary.spec.title or summary.name
    size = f"{rounded(summary.horizon)} rounds, {plural(summary.manifest.trials, 'trial')}"
    return f"{title}. {what} {size}, seed {summary.manifest.seed} (rumormill, {summary.name})."


# --- several runs in one figure -------------------------------------------------------------------------

COLUMNS = 3


def panel_figure(summaries: Sequence[Summary], *, linear: bool = False) -> Figure:
    """The main picture of every run: against the parameter swept first, else against the round."""
    columns = min(len(summaries), COLUMNS)
    rows = math.ceil(len(summaries) / columns)
    look = looks(dict.fromkeys(policy for each in summaries for policy in each.policies))
    with style():
        figure = new_figure(2.3 * columns + 0.3, 2.0 * rows + 0.6)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        room = float(figure.get_size_inches()[0]) / columns - 0.7
        for place, (axes, summary) in enumerate(zip(panels, summaries, strict=False)):
            _panel(axes, summary, room, look, linear=linear)
            axes.set_title(f"({letter(place)}) {short_title(summary)}")
            if place % columns == 0:
                axes.set_ylabel("group regret")
        for axes in panels[len(summaries) :]:
            axes.set_visible(False)
        key_below(figure, _key(summaries))
    return figure


def _panel(axes: Axes, summary: Summary, room: float, look: dict[str, Look], *, linear: bool) -> None:
    if not summary.axes:
        curves(axes, summary, summary.points[0], log=not linear, look=look)
        axes.set_xlabel("round")
        if linear:
            from_zero([axes])
        return
    axis = summary.axes[0]
    others = {name: value for name, value in summary.points[-1].items() if name != axis}
    along_parameter(axes, summary, axis, others, room, look)
    finish([axes], log=not linear and far_apart(summary))
    axes.set_xlabel(axis_name(axis) + (f" ({in_words(others)})" if others else ""))


def _key(summaries: Sequence[Summary]) -> dict[str, object]:
    """Bands and bars, with their trials where all runs have as many."""
    more: dict[str, object] = {}
    for swept, key in ((False, band_key), (True, bar_key)):
        trials = {each.manifest.trials for each in summaries if bool(each.axes) == swept}
        for number in sorted(trials):
            more |= key(number)
    for each in summaries:
        more |= left_out(each)
    return more


def letter(place: int) -> str:
    """a, b, c, …"""
    return chr(ord("a") + place % 26)


def short_title(summary: Summary) -> str:
    """A run's title as far as its colon, or its name."""
    return summary.spec.title.partition(":")[0].strip() or summary.name


def panel_caption(summaries: Sequence[Summary]) -> str:
    """What the panels show, one after the other."""
    parts = []
    for place, each in enumerate(summaries):
        what = (
            f"at round {rounded(each.horizon)} against {axis_name(each.axes[0])}" if each.axes else "by round"
        )
        size = f"{rounded(each.horizon)} rounds, {plural(each.manifest.trials, 'trial')}"
        parts.append(f"({letter(place)}) {short_title(each)} ({each.name}): {what}; {size}.")
    return (
        "Mean group regret of all agents together. "
        + " ".join(parts)
        + " Bands and bars: 95 % bootstrap intervals of the mean over trials."
    )


# --- drawn once -----------------------------------------------------------------------------------------

RECORD = "drawn.json"


def key_of(summary: Summary) -> str | None:
    """Everything that a picture of a run depends on, in short; None while the run is under way."""
    manifest = summary.manifest
    if manifest.status != "done" or manifest.results_sha256 is None:
        return None
    parts = (
        manifest.results_sha256,
        manifest.spec_sha256,
        summary.bounds is not None,
        sheet_in_use(),
        _code(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@cache
def _code() -> str:
    """Checksum of the code that draws: experiments, plotting, and the version of matplotlib."""
    found = hashlib.sha256(metadata.version("matplotlib").encode())
    for folder in (*rumormill.experiments.__path__, *rumormill.plotting.__path__):
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".py", ".js", ".css", ".html"):
                found.update(path.read_bytes())
    return found.hexdigest()


def drawn_once(
    folder: Path, name: str, key: str | None, draw: Callable[[], list[Path]], kinds: tuple[str, ...] = KINDS
) -> list[Path]:
    """The files of a figure: those that are there, if they were drawn for this key, else new ones."""
    record = _read(folder / RECORD)
    known = record.get(name, [])
    files = [folder / file for file in known[1:]]
    there = {file.suffix.removeprefix(".") for file in files} >= {*kinds} or not files
    if key is not None and known[:1] == [key] and there and all(file.is_file() for file in files):
        return files
    paths = draw()
    if key is not None and folder.is_dir():
        record[name] = [key, *(path.name for path in paths)]
        write_atomically(folder / RECORD, json.dumps(record, indent=1).encode())
    return paths


def _read(path: Path) -> dict[str, list[str]]:
    """The record; where it is missing or damaged, everything is drawn again."""
    try:
        found = json.loads(path.read_bytes())
        return {str(name): [str(each) for each in known] for name, known in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
