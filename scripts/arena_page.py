"""The published leaderboard: stored entries into the package, and the tables of the docs from there.

python -m scripts.arena_page runs/arena     # copy what `rumormill arena` stored, then write the tables
python -m scripts.arena_page                # write the tables of the entries in the package
"""

from __future__ import annotations

import json
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

from rumormill.arena.entries import Entry, EntryStore, Played, shipped_folder
from rumormill.arena.score import as_plain, leaderboard
from rumormill.arena.suite import read_suite
from rumormill.text import number

# Scale, cells and trials of every published table.
TABLES = {
    "perfect": ("full", ["*/*/perfect"], 24),
    "change": ("full", ["*/*/change"], 6),
    "lossy": ("full", ["*/*/lossy"], 6),
    "liar": ("full", ["*/*/liar"], 6),
    "quick": ("quick", [], 8),
}
# With fewer trials the median is too near to each of them for one to be lost.
LEAST_FOR_LOST = 3
WORLDS = [name for name, (scale, _, _) in TABLES.items() if scale == "full"]
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


DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "arena.md", DOCS / "arena-cells.md", DOCS / "tournament.md"]
END = "<!-- end -->"


def published(scale: str, patterns: list[str], trials: int) -> dict[str, Any]:
    """A leaderboard of the entries in the package; nothing is played."""
    suite = read_suite("arena-1", scale, "published", patterns, trials)
    for name, why in suite.left_out.items():
        raise SystemExit(f"{name} is left out: {why}")
    stored = EntryStore(shipped_folder(suite), None, _refuse).others(set())
    whole = [each for each in stored if not any(each.missing(cell, trials) for cell in suite.cells)]
    return as_plain(leaderboard(suite, whole))


def table(plain: dict[str, Any]) -> str:
    """The rows of a leaderboard as Markdown, and its checksum."""
    lines = [f"| {' | '.join(HEAD)} |", f"|---|{'---:|' * (len(HEAD) - 1)}"]
    lines += [f"| {' | '.join(_row(each, plain))} |" for each in plain["entries"]]
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
        cells = [
            _summary([cell for name, cell in each["by_cell"].items() if name.split("/")[1] in laws], plain)
            for laws in GROUPS.values()
        ]
        lines.append(f"| {each['entry']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def worlds(plain: dict[str, dict[str, Any]]) -> str:
    """Score, worst cell and lost trials of every entry, over all its cells and by worlds, as Markdown."""
    found = {name: {each["entry"]: each["by_cell"] for each in one["entries"]} for name, one in plain.items()}
    labels = {label: [cells.get(label, {}) for cells in found.values()] for label in found["perfect"]}
    every = {label: [one for cells in each for one in cells.values()] for label, each in labels.items()}
    size = max(map(len, every.values()))
    order = sorted(labels, key=lambda label: (len(every[label]) < size, _score(every[label])))
    lines = [f"| entry | all cells | {' | '.join(found)} |", f"|---|---:|{'---:|' * len(found)}"]
    for label in order:
        columns = [
            _summary(list(cells.values()), one)
            for cells, one in zip(labels[label], plain.values(), strict=True)
        ]
        count = "" if len(every[label]) == size else f" in {len(every[label])}"
        lines.append(f"| {label} | {short(_score(every[label]))}{count} | {' | '.join(columns)} |")
    return "\n".join(lines)


def cell_map(plain: dict[str, Any]) -> str:
    """Regret ÷ floor of every entry in every cell, lost trials in brackets, as Markdown."""
    entries = plain["entries"]
    lines = [f"| cell | {' | '.join(each['entry'] for each in entries)} |", f"|---|{'---:|' * len(entries)}"]
    for name in plain["cells"]:
        cells = [each["by_cell"].get(name) for each in entries]
        shown = ["–" if one is None else f"{short(one['ratio'])}{_lost(one['lost'])}" for one in cells]
        lines.append(f"| {name.rpartition('/')[0]} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _lost(count: int) -> str:
    return f" ({count})" if count else ""


def _score(cells: list[dict[str, Any]]) -> float:
    return math.exp(math.fsum(math.log(cell["ratio"]) for cell in cells) / len(cells))


def _summary(cells: list[dict[str, Any]], plain: dict[str, Any]) -> str:
    if not cells:
        return "–"
    worst, lost = max(cell["ratio"] for cell in cells), sum(cell["lost"] for cell in cells)
    trials = f"; {lost}" if plain["trials"] >= LEAST_FOR_LOST else ""
    return f"{short(_score(cells))} ({short(worst)}{trials})"


@cache
def leaderboards() -> dict[str, dict[str, Any]]:
    """The leaderboard of every published table."""
    return {name: published(*asked) for name, asked in TABLES.items()}


def pages() -> dict[str, str]:
    """Every generated table, by its mark."""
    plain = leaderboards()
    full = {name: plain[name] for name in WORLDS}
    made = {name: table(one) for name, one in plain.items()}
    made |= {"worlds": worlds(full)}
    made |= {f"verdicts {name}": verdicts(one) for name, one in full.items()}
    return made | {f"cells {name}": cell_map(one) for name, one in full.items()}


def publish(runs: Path) -> None:
    """Copy the stored entries of every published table, numbers to nine digits; complete cells only."""
    for scale in dict.fromkeys(scale for scale, _, _ in TABLES.values()):
        trials = {
            cell.name: count
            for where, patterns, count in TABLES.values()
            if where == scale
            for cell in read_suite("arena-1", scale, "published", patterns, count).cells
        }
        target = shipped_folder(read_suite("arena-1", scale, "published"))
        entries = EntryStore(runs / target.name, None, _refuse).others(set())
        for path in target.glob("*.json"):  # older rules of the same entries
            if json.loads(path.read_text("utf-8"))["label"] in {entry.label for entry in entries}:
                path.unlink()
        for entry in entries:
            _write(entry, EntryStore(target, None, _refuse), trials)


def _write(entry: Entry, store: EntryStore, trials: dict[str, int]) -> None:
    for name, record in list(entry.cells.items()):
        wanted = range(trials.get(name, 0))
        if not wanted or not (record.refused or all(trial in record.trials for trial in wanted)):
            del entry.cells[name]
            continue
        record.trials = {trial: _nine(record.trials[trial]) for trial in wanted if not record.refused}
    if entry.cells:
        store.write(entry)


def _nine(one: Played) -> Played:
    regret, floor, uniform = (float(f"{x:.9g}") for x in (one.regret, one.floor, one.uniform))
    return Played(regret, floor, uniform, one.messages, one.wire_bytes)


def _row(each: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    against = "leader" if each["entry"] == plain["leader"] else _range(each, "against_leader")
    return [
        each["entry"],
        short(each["score"]),
        short(each["score_common"]),
        _range(each, "median"),
        against,
        f"{each['lost']} of {each['trials']}" if plain["trials"] >= LEAST_FOR_LOST else "–",
        f"{each['good']} of {each['cells']}",
        f"{short(each['worst_ratio'])} {each['worst_cell']}",
        f"{each['messages_per_round']:,.0f}",
        f"{each['bytes_per_round'] / 1000:,.0f}",
    ]


def _range(each: dict[str, Any], key: str) -> str:
    low, high = each[f"{key}_low"], each[f"{key}_high"]
    return "–" if low is None else f"{short(low)} – {short(high)}"


def short(value: float | None) -> str:
    """A number of a table."""
    return "–" if value is None else f"{value:.2f}" if value < 10 else number(round(value, 1))


def _refuse(line: str) -> None:
    raise SystemExit(line)


def main(arguments: list[str]) -> None:
    """Publish, if a folder is given, and write the tables into the pages."""
    if arguments:
        publish(Path(arguments[0]))
    made = pages()
    for path in PAGES:
        text = path.read_text("utf-8")
        for name, rows in made.items():
            begin, found, rest = text.partition(f"<!-- {name} -->\n")
            if found:
                text = f"{begin}{found}{rows}\n{END}{rest.partition(END)[2]}"
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
