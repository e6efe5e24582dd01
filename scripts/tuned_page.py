"""Turn a finished run of `tuned` into the tables and the figure of docs/reproduction.md.

    rumormill reproduce tuned --full --out runs/tuned-full
    python -m scripts.tuned_page runs/tuned-full > tables.md

Prints Markdown and writes docs/figures/tuned-full.png.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from scripts.reproduction_page import FIGURES, markdown

from rumormill.experiments.analyse.claims import HOLDS, OPEN
from rumormill.experiments.analyse.summary import Summary, summarise
from rumormill.experiments.analyse.tuning import COLUMNS, tuned_rows
from rumormill.experiments.figures.regret import regret_by_constant
from rumormill.experiments.run.store import open_run
from rumormill.text import rounded, setting

SIGNS = {HOLDS: "yes", OPEN: "?"}


def regrets(summary: Summary, column: str) -> str:
    """Mean regret of every policy (rows) at every sweep point (columns)."""
    head = ["policy", *(f"{v['network']} {setting(v['alpha'])}" for v in summary.points)]
    rows = []
    for policy in summary.policies:
        series = [summary.columns[column].of(policy, values) for values in summary.points]
        rows.append([policy, *(rounded(float(one.mean[-1])) for one in series)])
    return markdown(head, rows)


def best_values(summary: Summary) -> str:
    """The chosen constants, an asterisk at the edge of the grid, and how forgiving they are."""
    rows: dict[str, list[str]] = {}
    assert summary.tuning is not None
    for row in tuned_rows(summary.tuning):
        low_high, best = row["within twice the best"], row["best value"]
        edge = "*" if row["at the edge"] else ""
        text = "–" if best is None else f"{short(best)}{edge} ({short(low_high[0])} – {short(low_high[1])})"
        rows.setdefault(row["policy"], []).append(text)
    head = ["policy", *(f"{v['network']} {setting(v['alpha'])}" for v in summary.points)]
    return markdown(head, [[policy, *cells] for policy, cells in rows.items()])


def worst_cases(summary: Summary) -> str:
    """One value for all tails: its worst case relative to the policy's own best."""
    assert summary.tuning is not None
    found: dict[str, list[str]] = {}
    for row in summary.tuning.one_for_all():
        words = f"{short(row['one value'])}: {row['worst']:.1f} × at {setting(row['at'])}"
        found.setdefault(row["policy"], []).append(words)
    networks = list(dict.fromkeys(values["network"] for values in summary.points))
    return markdown(["policy", *networks], [[policy, *cells] for policy, cells in found.items()])


def claims(summary: Summary) -> str:
    """Every claim in the three columns: at which sweep points it holds, fails, or is not decided."""
    found: dict[tuple[str, Any], dict[str, dict[str, str]]] = {}
    networks = list(dict.fromkeys(values["network"] for values in summary.points))
    for column in COLUMNS:
        for verdict in summary.columns[column].verdicts:
            place = found.setdefault((verdict.sentence, verdict.values["alpha"]), {})
            place.setdefault(column, {})[verdict.values["network"]] = SIGNS.get(verdict.word, "**no**")
    head = ["claim", "α", *(f"{text} ({', '.join(networks)})" for text in COLUMNS.values())]
    rows = [
        [claim, setting(alpha), *(" ".join(place[column][n] for n in networks) for column in COLUMNS)]
        for (claim, alpha), place in found.items()
    ]
    return markdown(head, rows)


def short(value: float) -> str:
    return setting(value) if value >= 1 else f"1/{round(1 / value)}"


def main() -> None:
    summary = summarise(open_run(sys.argv[1]))
    draw(summary)
    for column, text in COLUMNS.items():
        print(f"## Mean group regret, {text}\n\n{regrets(summary, column)}\n")
    print(f"## The best constants, and the range within twice the best\n\n{best_values(summary)}\n")
    print(f"## One constant for all tails: its worst case\n\n{worst_cases(summary)}\n")
    print(f"## The claims in three columns\n\n{claims(summary)}\n")


def draw(summary: Summary) -> Path:
    path = FIGURES / f"tuned-{summary.manifest.scale}.png"
    regret_by_constant(summary)[""].savefig(path, dpi=110)
    return path


if __name__ == "__main__":
    main()
