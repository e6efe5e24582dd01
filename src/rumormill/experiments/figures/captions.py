"""What to write under a figure or over a table of a run."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from rumormill.experiments.figures.table import drawer
from rumormill.text import plural, rounded

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Summary


def caption_of(name: str) -> str:
    """What a figure shows: the first line of its function's docstring."""
    return (inspect.getdoc(drawer(name)) or name).splitlines()[0]


def full_caption(summary: Summary, what: str) -> str:
    """The same with what was run: for print, away from the report."""
    title = summary.spec.title or summary.name
    size = f"{rounded(summary.horizon)} rounds, {plural(summary.manifest.trials, 'trial')}"
    return f"{title}. {what} {size}, seed {summary.manifest.seed} (rumormill, {summary.name})."
