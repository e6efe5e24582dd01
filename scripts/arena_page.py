"""The published leaderboard: stored entries into the package, and the tables of the docs from there.

python -m scripts.arena_page runs/arena     # copy what `rumormill arena` stored, then print the tables
python -m scripts.arena_page                # print the tables of the entries in the package
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from rumormill.arena.entries import Entry, EntryStore, Played, shipped_folder
from rumormill.arena.score import as_plain, leaderboard
from rumormill.arena.suite import read_suite
from rumormill.text import number

# Scale, cells and trials of every published table.
TABLES = {
    "full": ("full", ["*/*/perfect"], 12),
    "quick": ("quick", ["er/*/perfect"], 8),
}
HEAD = (
    "entry",
    "score",
    "common",
    "median trial",
    "× leader",
    "lost",
    "good",
    "worst cell",
    "messages/round",
    "KB/round",
)


def published(scale: str, patterns: list[str], trials: int) -> dict[str, Any]:
    """A leaderboard of the entries in the package; nothing is played."""
    suite = read_suite("arena-1", scale, "published", patterns, trials)
    stored = EntryStore(shipped_folder(suite), None, _refuse).others(set())
    return as_plain(leaderboard(suite, stored))


def table(plain: dict[str, Any]) -> str:
    """The rows of a leaderboard as Markdown, and its checksum."""
    lines = [f"| {' | '.join(HEAD)} |", f"|---|{'---:|' * (len(HEAD) - 1)}"]
    lines += [f"| {' | '.join(_row(each, plain['leader']))} |" for each in plain["entries"]]
    return "\n".join([*lines, "", f"sha256 of its trials: `{plain['sha256']}`"])


# Laws that a user can tell apart.
GROUPS = {
    "symmetric": ("stable-1.2", "stable-1.5", "stable-1.9", "gauss", "student-2.5"),
    "one skewed shape": ("pareto-1.5", "pareto-1.8"),
    "mixed shapes": ("pareto-mixed", "lognormal-mixed"),
    "coins": ("two-point", "bernoulli"),
}


def verdicts(plain: dict[str, Any]) -> str:
    """Score, worst cell and lost trials of every entry by groups of laws, as Markdown."""
    lines = [f"| entry | {' | '.join(GROUPS)} |", f"|---|{'---:|' * len(GROUPS)}"]
    for each in plain["entries"]:
        cells = []
        for laws in GROUPS.values():
            found = [cell for name, cell in each["by_cell"].items() if name.split("/")[1] in laws]
            score = math.exp(math.fsum(math.log(cell["ratio"]) for cell in found) / len(found))
            worst, lost = max(cell["ratio"] for cell in found), sum(cell["lost"] for cell in found)
            cells.append(f"{_short(score)} ({_short(worst)}; {lost})")
        lines.append(f"| {each['entry']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def publish(runs: Path) -> None:
    """Copy the stored entries of every published table, numbers to nine digits."""
    for scale, patterns, trials in TABLES.values():
        suite = read_suite("arena-1", scale, "published", patterns, trials)
        target = shipped_folder(suite)
        kept = {cell.name for cell in suite.cells}
        for entry in EntryStore(runs / target.name, None, _refuse).others(set()):
            _write(entry, EntryStore(target, None, _refuse), kept, trials)


def _write(entry: Entry, store: EntryStore, kept: set[str], trials: int) -> None:
    """One entry: complete cells only."""
    for name, record in list(entry.cells.items()):
        complete = record.refused or all(trial in record.trials for trial in range(trials))
        if name not in kept or not complete:
            del entry.cells[name]
            continue
        record.trials = {trial: _nine(one) for trial, one in record.trials.items() if trial < trials}
    if entry.cells:
        store.write(entry)


def _nine(one: Played) -> Played:
    regret, floor, uniform = (float(f"{x:.9g}") for x in (one.regret, one.floor, one.uniform))
    return Played(regret, floor, uniform, one.messages, one.wire_bytes)


def _row(each: dict[str, Any], leader: str) -> list[str]:
    against = "leader" if each["entry"] == leader else _range(each, "against_leader")
    return [
        each["entry"],
        _short(each["score"]),
        _short(each["score_common"]),
        _range(each, "median"),
        against,
        f"{each['lost']} of {each['trials']}",
        f"{each['good']} of {each['cells']}",
        f"{_short(each['worst_ratio'])} {each['worst_cell']}",
        f"{each['messages_per_round']:,.0f}",
        f"{each['bytes_per_round'] / 1000:,.0f}",
    ]


def _range(each: dict[str, Any], key: str) -> str:
    return f"{_short(each[f'{key}_low'])} – {_short(each[f'{key}_high'])}"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 10 else number(round(value, 1))


def _refuse(line: str) -> None:
    raise SystemExit(line)


def main(arguments: list[str]) -> None:
    """Publish, if a folder is given, and print the tables."""
    if arguments:
        publish(Path(arguments[0]))
    for name, asked in TABLES.items():
        print(f"<!-- {name} -->\n{table(published(*asked))}\n<!-- end -->\n")
    print(f"<!-- verdicts -->\n{verdicts(published(*TABLES['full']))}\n<!-- end -->")


if __name__ == "__main__":
    main(sys.argv[1:])
