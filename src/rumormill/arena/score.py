"""Scores: regret ÷ floor per cell, one number per entry, paired comparisons with the leader; the leaderboard.

The floor is what no consistent policy can go below, as far as such a bound is known.
Mean ratio of a cell: mean regret ÷ mean floor. Score: the geometric mean of the mean ratios over the cells
played. Intervals are exact ones of a median over trials (order statistics): in a cell of regret ÷ floor, over
the suite of the trial's geometric mean over cells, against the leader of their ratio in a trial.
A trial is lost if its regret exceeds 10 × max(floor, median regret of the cell).
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arena.entries import Entry, Played
from rumormill.arena.suite import Suite, checksum
from rumormill.arms import Bandit, Piecewise, RewardSource
from rumormill.errors import InputError
from rumormill.experiments.report.markup import safe_json
from rumormill.experiments.report.markup import template as report_part
from rumormill.stats import Interval, exact_median, ratios
from rumormill.text import plural
from rumormill.theory import lower_bound


def floor_of(source: RewardSource, agents: int, horizon: int) -> float:
    """Σ over worse arms of min(max(C ln T, Δ), Δ M T), C the coefficient of `rm.theory.lower_bound`.

    C ln T is an asymptotic slope, no bound at this T: regret below the floor can happen. After a change it
    starts again. At least one pull of every worse arm is counted, which matters where C is 0.
    """
    return sum(_floor(bandit, agents, rounds) for bandit, rounds in _pieces(source, horizon))


def uniform_regret(source: RewardSource, agents: int, horizon: int) -> float:
    """The expected regret of agents that choose among the arms at random."""
    return sum(float(bandit.gaps.mean()) * agents * rounds for bandit, rounds in _pieces(source, horizon))


def _floor(bandit: Bandit, agents: int, rounds: int) -> float:
    pulls, slope = agents * rounds, math.log(rounds)
    return sum(
        min(max(term.coefficient * slope, term.gap), term.gap * pulls) for term in lower_bound(bandit).arms
    )


def _pieces(source: RewardSource, horizon: int) -> list[tuple[Bandit, int]]:
    """The bandits that are played one after the other, and for how many rounds."""
    if isinstance(source, Bandit):
        return [(source, horizon)]
    if isinstance(source, Piecewise):
        ends = [*source.starts[1:], horizon]
        parts = [
            (part, min(end, horizon) - start)
            for part, start, end in zip(source.sources, source.starts, ends, strict=True)
            if start < horizon
        ]
        known = [(part, rounds) for part, rounds in parts if isinstance(part, Bandit)]
        if len(known) == len(parts):
            return known
    raise InputError(
        f"no floor is known for {source!r}: the arena plays one bandit, or one that changes at given rounds"
    )


CONFIDENCE = 0.95
LOST = 10.0
# A cell counts as good if its mean ratio is at most this, and no trial is lost.
GOOD = 2.0
UNIFORM = "Uniform (expected)"
Array = NDArray[np.float64]


@dataclass(frozen=True)
class CellScore:
    """One entry in one cell."""

    ratio: float
    """Mean regret ÷ mean floor."""
    median: Interval
    """The median trial's regret ÷ floor, with its exact interval."""
    worst: float
    """The largest regret ÷ floor of a trial."""
    lost: int
    messages: float
    """Per trial, over all agents."""
    wire_bytes: float
    trials: int
    regret: Array = field(repr=False)
    floor: Array = field(repr=False)

    @property
    def good(self) -> bool:
        return self.ratio <= GOOD and not self.lost


@dataclass(frozen=True)
class EntryScore:
    """One line of the leaderboard."""

    label: str
    engine: str
    cells: dict[str, CellScore]
    refused: dict[str, str]
    """Why a cell was not played."""
    against: Interval | None = None
    """Regret ÷ that of the leader: the median over trials of the geometric mean over the cells of both."""

    @property
    def score(self) -> float:
        return _geometric([cell.ratio for cell in self.cells.values()])

    @property
    def median(self) -> Interval:
        """The median over trials of the geometric mean over cells of regret ÷ floor."""
        return _over_trials([ratios(cell.regret, cell.floor) for cell in self.cells.values()])

    @property
    def worst_cell(self) -> str:
        return max(self.cells, key=lambda name: self.cells[name].ratio)

    @property
    def lost(self) -> int:
        return sum(cell.lost for cell in self.cells.values())

    @property
    def good(self) -> int:
        return sum(cell.good for cell in self.cells.values())

    def over(self, names: Sequence[str]) -> float:
        """The score over some of its cells."""
        return _geometric([self.cells[name].ratio for name in names]) if names else float("nan")


@dataclass(frozen=True)
class Leaderboard:
    """All entries, best first; the leader is the first that played every cell."""

    suite: Suite
    entries: list[EntryScore]
    leader: str
    common: list[str]
    """Cells that all entries played."""
    sha256: str
    """Checksum of the trials that it is made of, to nine digits: the same on every machine."""


def leaderboard(suite: Suite, entries: Sequence[Entry]) -> Leaderboard:
    """Score what the entries hold of the suite; entries without a complete cell are left out."""
    scored = [_entry_score(suite, entry) for entry in entries]
    scored = [each for each in scored if each.cells]
    if scored:
        scored.append(_uniform(suite, entries))
    scored.sort(key=lambda each: (each.score, each.label))
    full = [each for each in scored if len(each.cells) == len(suite.cells)]
    leader = (full or scored)[0] if scored else None
    compared = [_against(each, leader) for each in scored] if leader else []
    common = [cell.name for cell in suite.cells if all(cell.name in each.cells for each in scored)]
    return Leaderboard(suite, compared, "" if leader is None else leader.label, common, _sum(suite, entries))


def _sum(suite: Suite, entries: Sequence[Entry]) -> str:
    games = [
        [
            entry.label,
            cell.name,
            cell.key,
            entry.record(cell).refused,
            [
                [f"{x:.9g}" for x in vars(one).values()]
                for _, one in sorted(entry.record(cell).trials.items())
            ][: suite.trials],
        ]
        for entry in sorted(entries, key=lambda each: each.label)
        for cell in suite.cells
    ]
    return checksum([suite.name, suite.scale, suite.seeds, suite.trials, games])


def _entry_score(suite: Suite, entry: Entry) -> EntryScore:
    cells, refused = {}, {}
    for cell in suite.cells:
        record = entry.record(cell)
        if record.refused:
            refused[cell.name] = record.refused
        elif all(trial in record.trials for trial in range(suite.trials)):
            cells[cell.name] = cell_score([record.trials[trial] for trial in range(suite.trials)])
        else:
            refused[cell.name] = f"{plural(len(record.trials), 'trial')} of {suite.trials} played"
    return EntryScore(entry.label, entry.engine, cells, refused)


def cell_score(trials: Sequence[Played]) -> CellScore:
    """The score of one cell from its trials."""
    regret, floor = (np.array([getattr(one, name) for one in trials]) for name in ("regret", "floor"))
    each = ratios(regret, floor)
    lost = regret > LOST * np.maximum(floor, np.median(regret))
    return CellScore(
        ratio=float(regret.mean() / floor.mean()),
        median=exact_median(each, CONFIDENCE),
        worst=float(each.max()),
        lost=int(lost.sum()),
        messages=float(np.mean([one.messages for one in trials])),
        wire_bytes=float(np.mean([one.wire_bytes for one in trials])),
        trials=len(trials),
        regret=regret,
        floor=floor,
    )


def _uniform(suite: Suite, entries: Sequence[Entry]) -> EntryScore:
    """What choosing at random costs in expectation, on the arms of the same trials."""
    cells = {}
    for cell in suite.cells:
        for entry in entries:
            trials = entry.record(cell).trials
            if all(trial in trials for trial in range(suite.trials)):
                played = [trials[trial] for trial in range(suite.trials)]
                cells[cell.name] = cell_score([Played(p.uniform, p.floor, p.uniform, 0, 0) for p in played])
                break
    return EntryScore(UNIFORM, "none", cells, {})


def _against(entry: EntryScore, leader: EntryScore) -> EntryScore:
    both = [name for name in entry.cells if name in leader.cells]
    if entry is leader or not both:
        return entry
    paired = [ratios(entry.cells[name].regret, leader.cells[name].regret) for name in both]
    return EntryScore(entry.label, entry.engine, entry.cells, entry.refused, _over_trials(paired))


def _over_trials(cells: Sequence[Array]) -> Interval:
    """The median over trials of the geometric mean over cells, with its exact interval."""
    with np.errstate(divide="ignore"):
        return exact_median(np.exp(np.log(np.stack(cells)).mean(axis=0)), CONFIDENCE)


def _geometric(values: Sequence[float]) -> float:
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(values).mean()))


# --- as plain values ------------------------------------------------------------------------------------


def as_plain(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard for JSON and for the page."""
    suite = board.suite
    return {
        "sha256": board.sha256,
        "suite": suite.name,
        "title": suite.title,
        "scale": suite.scale,
        "seeds": suite.seeds,
        "trials": suite.trials,
        "cells": {cell.name: cell.key for cell in suite.cells},
        "left_out": suite.left_out,
        "notes": suite.notes,
        "leader": board.leader,
        "common_cells": len(board.common),
        "entries": [_plain_entry(each, board) for each in board.entries],
    }


def _plain_entry(entry: EntryScore, board: Leaderboard) -> dict[str, Any]:
    worst, games = entry.worst_cell, {cell.name: cell for cell in board.suite.cells}
    rounds = {name: games[name].spec.size.horizon for name in entry.cells}
    return {
        "entry": entry.label,
        "engine": entry.engine,
        "score": entry.score,
        "score_common": entry.over(board.common),
        **_ends("median", entry.median),
        "worst_cell": worst,
        "worst_ratio": entry.cells[worst].ratio,
        "lost": entry.lost,
        "trials": sum(cell.trials for cell in entry.cells.values()),
        "good": entry.good,
        "cells": len(entry.cells),
        **_ends("against_leader", entry.against),
        "messages_per_round": float(np.mean([c.messages / rounds[n] for n, c in entry.cells.items()])),
        "bytes_per_round": float(np.mean([c.wire_bytes / rounds[n] for n, c in entry.cells.items()])),
        "not_played": dict(entry.refused),
        "by_cell": {name: _plain_cell(cell) for name, cell in entry.cells.items()},
    }


def _plain_cell(cell: CellScore) -> Mapping[str, Any]:
    return {
        "ratio": cell.ratio,
        **_ends("median", cell.median),
        "worst": cell.worst,
        "lost": cell.lost,
        "regret": float(cell.regret.mean()),
        "floor": float(cell.floor.mean()),
        "messages": cell.messages,
        "wire_bytes": cell.wire_bytes,
    }


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    """An interval under three keys; None where there are too few trials for one."""
    if interval is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    values = (interval.estimate, interval.low, interval.high)
    kept = [value if np.isfinite(value) else None for value in values]
    return dict(zip((name, f"{name}_low", f"{name}_high"), kept, strict=True))


def page_html(plain: dict[str, Any], command: str) -> str:
    """The page of a leaderboard.

    Parameters:
        plain: see `score.as_plain`.
        command: how it was made.
    """
    entries = plain["entries"]
    refused = sum(len(each["not_played"]) for each in entries)
    notes = [*plain["notes"], *(f"Left out: {line}" for line in by_reason(plain["left_out"]))]
    if refused:
        notes.append(
            "Some entries do not play in every cell (the reasons are below): their score is that of the "
            f"cells they played. “common”: the score over the {plain['common_cells']} cells that all played."
        )
    return Template(_part("arena.html")).substitute(
        css=report_part("report.css") + _part("arena.css"),
        title=html.escape(f"{plain['suite']}: {plain['title']}" if plain["title"] else plain["suite"]),
        scale=html.escape(f"{plain['scale']} · seeds: {plain['seeds']}"),
        size=f"{plural(len(plain['cells']), 'cell')}, {plural(plain['trials'], 'trial')} each",
        notes="".join(f'<p class="notice">{html.escape(note)}</p>' for note in notes),
        command=html.escape(command),
        sha256=plain["sha256"],
        data=safe_json(plain),
        js=_part("arena.js"),
    )


def by_reason(reasons: Mapping[str, str]) -> list[str]:
    """Cells that are not played for the same reason, in one line."""
    cells: dict[str, list[str]] = {}
    for name, why in reasons.items():
        cells.setdefault(why, []).append(name)
    return [f"{plural(len(names), 'cell')} (as {names[0]}): {why}" for why, names in cells.items()]


def _part(name: str) -> str:
    return (resources.files("rumormill.arena") / "page" / name).read_text("utf-8")
