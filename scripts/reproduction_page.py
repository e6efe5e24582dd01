"""Turn finished run folders into the tables and figures of docs/reproduction.md.

    rumormill reproduce all --full --out runs/full
    python scripts/reproduction_page.py runs/full/* > tables.md

Prints the tables as Markdown and writes the main figure of every run to docs/figures/NAME-full.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from rumormill.experiments.analyse.claims import verdict_row
from rumormill.experiments.analyse.summary import Summary, summarise, verdicts
from rumormill.experiments.figures import main_figure
from rumormill.experiments.run.store import open_run
from rumormill.text import band, plural, rounded, setting

FIGURES = Path(__file__).parent.parent / "docs" / "figures"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def panel(summary: Summary) -> str:
    manifest, title = summary.manifest, summary.spec.title
    figure = main_figure(summary)
    name = f"{manifest.name}-{manifest.scale}.png"
    figure.savefig(FIGURES / name, dpi=130)
    plt.close(figure)
    head = [*summary.axes, "policy", "group regret at T", "95 % band", "messages per round"]
    rows = [
        [
            *(setting(row[axis]) for axis in summary.axes),
            row["policy"],
            rounded(row["regret"]),
            band(row["low"], row["high"]),
            rounded(row["messages_per_round"]),
        ]
        for row in summary.rows
    ]
    return "\n\n".join(
        [
            f"## {manifest.name}: {title}",
            f"{plural(manifest.trials, 'trial')}, T = {rounded(manifest.horizon)}, seed {manifest.seed}"
            f"{times(summary)}.",
            f"![{title}](figures/{name})",
            markdown(head, rows),
        ]
    )


def times(summary: Summary) -> str:
    spent = summary.manifest.timings
    if spent is None:
        return ""
    return f"; kernels {rounded(spent.kernel_s)} s, preparation {rounded(spent.prepare_s)} s (all workers)"


def claims(summaries: list[Summary]) -> str:
    rows = []
    for verdict in verdicts(summaries):
        row = verdict_row(verdict)
        found = [row["difference"], row["confidence interval"]]
        rows.append([row["claim"], row["scope"], f"**{row['verdict']}**", *found])
    return markdown(["claim", "where", "verdict", "difference", "interval"], rows)


def main() -> None:
    summaries = [summarise(open_run(path)) for path in sys.argv[1:]]
    FIGURES.mkdir(parents=True, exist_ok=True)
    print("## The claims\n\n" + claims(summaries) + "\n")
    for summary in summaries:
        print(panel(summary) + "\n")


if __name__ == "__main__":
    main()
