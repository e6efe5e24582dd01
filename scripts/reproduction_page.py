"""Turn finished run folders into the tables and figures of docs/reproduction.md.

    rumormill reproduce all --full --out runs/full
    python scripts/reproduction_page.py runs/full/* > tables.md

Prints the tables as Markdown and writes the main figure of every run to docs/figures/NAME-full.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from rumormill.experiments.analyse.claims import verdicts
from rumormill.experiments.analyse.summary import summary
from rumormill.experiments.figures.regret import main_figure
from rumormill.experiments.run.store import RunFolder, open_run

FIGURES = Path(__file__).parent.parent / "docs" / "figures"


def percent(value: float) -> str:
    return f"{100 * value:+.1f} %"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def panel(run: RunFolder) -> str:
    manifest = run.manifest
    figure = main_figure(run)
    name = f"{manifest['name']}-{manifest['scale']}.png"
    figure.savefig(FIGURES / name, dpi=130)
    plt.close(figure)
    head = [*run.axes, "policy", "group regret at T", "95 % band", "messages per round"]
    rows = [
        [
            *(str(row[axis]) for axis in run.axes),
            str(row["policy"]),
            f"{row['regret']:,.0f}",
            f"{row['low']:,.0f} – {row['high']:,.0f}",
            f"{row['messages_per_round']:,.0f}",
        ]
        for row in summary(run)
    ]
    timings = manifest["timings"]
    return "\n\n".join(
        [
            f"## {manifest['name']}: {run.spec.title}",
            f"{manifest['trials']} trials, T = {manifest['horizon']:,}, seed {manifest['seed']}; kernels "
            f"{timings['kernel_s']:,.0f} s, preparation {timings['prepare_s']:,.0f} s, store "
            f"{timings['store_s']:.1f} s (all workers), wall {timings['wall_s']:,.0f} s.",
            f"![{run.spec.title}](figures/{name})",
            markdown(head, rows),
        ]
    )


def claims(runs: list[RunFolder]) -> str:
    rows = [
        [v.claim, v.scope, f"**{v.word}**", percent(v.estimate), f"{percent(v.low)} to {percent(v.high)}"]
        for v in verdicts(runs)
    ]
    return markdown(["claim", "where", "verdict", "difference", "interval"], rows)


def main() -> None:
    runs = [open_run(path) for path in sys.argv[1:]]
    FIGURES.mkdir(parents=True, exist_ok=True)
    print("## The claims\n\n" + claims(runs) + "\n")
    for run in runs:
        print(panel(run) + "\n")


if __name__ == "__main__":
    main()
