"""Entries as files: what a policy reached in every cell and trial, with checksums.

An entry is named by its policy's settings and by `rules`: what the policy does in small games, and the
checksums of own modules. A cell is kept under the checksum of its game. Files are written atomically and hold
a checksum of their own; a damaged one is reported and played again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rumormill.arena.suite import ArenaCell, Suite, checksum
from rumormill.arms import Arm, Bandit, Bernoulli, LogNormal, Pareto, StudentT
from rumormill.engine.trial import play_trial, prepare
from rumormill.errors import DataError
from rumormill.experiments.spec.building import build_policy
from rumormill.experiments.spec.errors import own_errors
from rumormill.experiments.spec.nesting import default_of
from rumormill.experiments.spec.reading import own_sources
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.files import read_bytes, write_atomically
from rumormill.graphs import Network
from rumormill.text import one_line

# Raised when what is played changes in a way that the small games do not show.
RULES = 2
# Rounds and laws: tails and skew, rewards that are bounded and tie, arms of different shapes and tails.
SMALL_GAMES: list[tuple[int, list[Arm]]] = [
    (60, [StudentT(df=2.5, loc=0.2), Pareto.with_mean(0.6, tail=1.8), StudentT(df=2.5, loc=0.5)]),
    (200, [Bernoulli().at_mean(mean) for mean in (0.3, 0.7, 0.5)]),
    (200, [LogNormal(sigma=sigma).at_mean(mean) for mean, sigma in ((1.0, 0.5), (1.3, 1.5), (1.1, 1.0))]),
    (100, [Pareto.with_mean(mean, tail=tail) for mean, tail in ((0.9, 1.5), (0.5, 3.0), (0.4, 2.2))]),
]


@dataclass(frozen=True)
class Played:
    """One trial of one policy in one cell."""

    regret: float
    floor: float
    uniform: float
    """The expected regret of uniform choice, on the same arms."""
    messages: int
    wire_bytes: int


@dataclass
class CellRecord:
    """The trials of a cell so far, or why the policy does not play there."""

    key: str
    trials: dict[int, Played] = field(default_factory=dict)
    refused: str = ""


@dataclass
class Entry:
    """A policy and its records, by cell."""

    label: str
    part: PolicyPart
    folder: str | None
    rules: str
    engine: str
    cells: dict[str, CellRecord] = field(default_factory=dict)

    def record(self, cell: ArenaCell) -> CellRecord:
        """The record of a cell; one of another game under the same name is dropped."""
        found = self.cells.get(cell.name)
        if found is None or found.key != cell.key:
            found = self.cells[cell.name] = CellRecord(cell.key)
        return found

    def missing(self, cell: ArenaCell, trials: int) -> list[int]:
        """The trials still to be played."""
        record = self.record(cell)
        return [] if record.refused else [i for i in range(trials) if i not in record.trials]


class EntryStore:
    """The entries of one suite, scale and purpose: one JSON file per entry.

    Parameters:
        folder: where files are written.
        shipped: where published entries are read from, if nothing newer is in the folder.
        warn: called with a line about every damaged file.
    """

    def __init__(self, folder: Path, shipped: Path | None, warn: Callable[[str], None]) -> None:
        self.folder, self.shipped, self._warn = folder, shipped, warn

    def open(self, spec: Spec) -> Entry:
        """The entry of the policy of a spec (see `suite.entry_of`), with what is stored of it."""
        (part,) = spec.policies
        entry = Entry(part.label, part, spec.folder, rules_of(spec), "reference")
        for place in [self.folder, *([] if self.shipped is None else [self.shipped])]:
            if (place / self._name(entry)).exists():
                stored = self._read(place / self._name(entry))
                if stored is not None:
                    entry.cells, entry.engine = stored.cells, stored.engine
                    return entry
        return entry

    def others(self, known: set[str]) -> list[Entry]:
        """Entries stored here beside those that are known by name."""
        found = [self._read(path) for path in sorted(self.folder.glob("*.json")) if path.name != "arena.json"]
        return [each for each in found if each is not None and each.label not in known]

    def write(self, entry: Entry) -> None:
        """Write the file of an entry; whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        body = _plain(entry)
        text = json.dumps({"sha256": checksum(body), **body}, ensure_ascii=False, separators=(",", ":"))
        write_atomically(self.folder / self._name(entry), text.encode() + b"\n")

    def _read(self, path: Path) -> Entry | None:
        try:
            plain = json.loads(read_bytes(path))
            if plain.pop("sha256", None) != checksum(plain):
                raise ValueError("its checksum does not fit")
            return _entry(plain)
        except (ValueError, KeyError, TypeError, AttributeError, DataError) as error:
            self._warn(f"{path} is damaged ({one_line(str(error))}): its games are played again")
            return None

    @staticmethod
    def _name(entry: Entry) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", entry.label.lower()).strip("-") or "entry"
        key = checksum([entry.part.type, _settings(entry.part, entry.folder), entry.rules])
        return f"{slug}-{key[:12]}.json"


def rules_of(spec: Spec) -> str:
    """Checksum of what the policy does in a few small games, and of the own modules that it is made of."""
    played = sha256()
    with own_errors(spec):
        policy = build_policy(spec, spec.policies[0])
        contender = prepare(policy, Network.ring(5), 3, engine="reference")
        for number, (rounds, laws) in enumerate(SMALL_GAMES):
            seed, marks = np.random.SeedSequence([20, number]), np.array([rounds], dtype=np.int64)
            (trial,) = play_trial([contender], Bandit(laws), rounds, seed, marks, keep_actions=True)
            assert trial.actions is not None
            played.update(trial.actions.astype("<i8").tobytes())
    return checksum([RULES, played.hexdigest(), own_sources(spec)])


def shipped_folder(suite: Suite) -> Path:
    """Where the published entries of a suite lie in the package."""
    return Path(__file__).parent / "published" / f"{suite.name}-{suite.scale}-{suite.seeds}"


def _settings(part: PolicyPart, folder: str | None) -> dict[str, Any]:
    """The settings that are not the defaults: a new setting of a class leaves its entries as they are."""
    kept = {
        key: value
        for key, value in part.settings.items()
        if value != default_of("policies", part, key, folder)
    }
    plain: dict[str, Any] = json.loads(json.dumps(kept, sort_keys=True, default=repr))
    return plain


def _plain(entry: Entry) -> dict[str, Any]:
    return {
        "label": entry.label,
        "type": entry.part.type,
        "settings": _settings(entry.part, entry.folder),
        "rules": entry.rules,
        "engine": entry.engine,
        "cells": {
            name: {
                "key": record.key,
                "refused": record.refused,
                "trials": {str(i): list(vars(one).values()) for i, one in sorted(record.trials.items())},
            }
            for name, record in sorted(entry.cells.items())
        },
    }


def _entry(plain: dict[str, Any]) -> Entry:
    part = PolicyPart(type=plain["type"], label=plain["label"], settings=plain["settings"])
    cells = {
        name: CellRecord(
            record["key"],
            {int(i): Played(*numbers) for i, numbers in record["trials"].items()},
            record["refused"],
        )
        for name, record in plain["cells"].items()
    }
    return Entry(plain["label"], part, None, plain["rules"], plain["engine"], cells)
