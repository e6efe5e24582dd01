"""Every kind of figure, drawn from small runs while the site is built, with the command that makes it."""

from __future__ import annotations

import shutil
from pathlib import Path

from rumormill.experiments.analyse.summary import summarise
from rumormill.experiments.figures.registry import FIGURES, caption_of, drawn
from rumormill.experiments.run.runner import run
from rumormill.experiments.spec.reading import at_scale, named_spec
from rumormill.experiments.watch.cases import watched
from rumormill.experiments.watch.film import write_film
from rumormill.plotting.rendering import save

# Sizes at which the site is built in seconds; the commands below draw the same figures at their own size.
RUNS = {
    "fig1b": ("reproduce fig1b --quick --bounds", {"trials": 12, "horizon": 400}),
    "gamma-sparse": ("reproduce gamma-sparse --quick", {"trials": 6, "horizon": 300}),
}
HEAD = """# Gallery

Every figure that a run writes into its folder, with the command that makes it. What is shown here was drawn
when this site was built, from the same experiments with few trials and rounds: the shapes are right, the
bands are wide. The figures at the paper's size are on [the page of the reproduction](reproduction.md).
"""


def page(source: Path) -> str:
    """Play, draw into SOURCE/gallery, and describe."""
    parts, seen = [HEAD], set[str]()
    runs = source.parent / "runs"
    shutil.rmtree(runs, ignore_errors=True)  # of an earlier version, perhaps
    for name, (command, size) in RUNS.items():
        spec = at_scale(named_spec(name), "quick", **size)
        summary = summarise(run(spec, runs / name), bounds="--bounds" in command)
        folder = source / "gallery" / name
        for figure in FIGURES:
            made = drawn(figure, summary)
            if not made or figure in seen:
                continue
            seen.add(figure)
            stem, picture = next(iter(made.items()))
            paths = save(picture, folder / stem)
            (shown,) = [path for path in paths if path.suffix == ".png"]
            caption = caption_of(figure)
            parts += [
                f"## {figure}",
                caption,
                f"![{caption}](gallery/{name}/{shown.name})",
                f"```sh\nrumormill {command}\n```",
            ]
    return "\n\n".join([*parts, *_film(source / "gallery")]) + "\n"


def _film(folder: Path) -> list[str]:
    """Rumours as they spread, a few rounds of them."""
    seen = watched(at_scale(named_spec("loss"), "quick"), rounds=8, agents=30)
    path = write_film(seen, folder / "loss.gif")
    caption = "Rumours as they spread where three in ten are lost."
    return [
        "## watch",
        caption,
        f"![{caption}](gallery/{path.name})",
        "```sh\nrumormill watch loss --output loss.gif\n```",
        "Without `--output` it is a page with a slider; a report has the same.",
    ]
