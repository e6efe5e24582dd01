"""`rumormill watch`: rumours as they spread, as a page or a film."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rumormill.cli.printing import note, say
from rumormill.errors import InputError
from rumormill.experiments.run.progress import CountDisplay

if TYPE_CHECKING:
    from rumormill.experiments.spec.schema import Spec
    from rumormill.experiments.watch.cases import Watched

ENDINGS = (".html", ".gif", ".mp4")
# A film of more rounds is too long for a slide.
PAGE_ROUNDS, FILM_ROUNDS = 60, 30


SpecName = Annotated[
    str,
    typer.Argument(
        help="A TOML file, or the name of a shipped experiment: fig1a, loss, …", show_default=False
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        help="Only this policy (its label); repeatable. A film shows agents of the first.", show_default="all"
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PARAMETER=VALUE",
        help="A value of a swept parameter, for example channel.p=0.5; repeatable.",
        show_default="the middle one",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=500,
        help="The first so many rounds.",
        show_default=f"{PAGE_ROUNDS}, {FILM_ROUNDS} in a film",
    ),
]
Agents = Annotated[int, typer.Option(min=2, max=200, help="Of a larger network, so many agents play alone.")]
Scale = Annotated[
    str | None,
    typer.Option(help="quick, full, or another scale of the file.", show_default="quick, or the first"),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="The file: .html, .gif or .mp4 (with ffmpeg).", show_default="NAME-watch.html"
    ),
]


def watch(
    spec: SpecName,
    policy: Policies = None,
    at: At = None,
    rounds: Rounds = None,
    agents: Agents = 30,
    scale: Scale = None,
    output: Output = None,
) -> None:
    """Look at the first rounds of an experiment as rumours spread.

    A page with a slider, or a film for slides: who pulls what, messages on their way, lost and late ones too.
    """
    found = _spec(spec, scale)
    path = output or Path(f"{found.name}-watch.html")
    if path.suffix not in ENDINGS:
        raise InputError(f"--output {path} is not allowed: the name must end in .html, .gif or .mp4")
    if path.suffix == ".html":
        from rumormill.experiments.watch.cases import write_watch_page

        seen = _played(found, policy, at, rounds or PAGE_ROUNDS, agents)
        say(write_watch_page(seen, path))
    else:
        from rumormill.experiments.watch.film import n_frames, refuse_unwritable, write_film

        refuse_unwritable(path)
        seen = _played(found, policy, at, rounds or FILM_ROUNDS, agents)
        with CountDisplay("picture", n_frames(seen)) as counting:
            written = write_film(seen, path, counting.add)
        say(written)
    for remark in seen.remarks:
        note(remark)


def _spec(given: str, scale: str | None) -> Spec:
    from rumormill.experiments.spec.reading import at_scale, named_spec, read_spec, spec_names

    found = named_spec(given) if given in spec_names() and not Path(given).exists() else read_spec(given)
    usual = "quick" if "quick" in found.scale else next(iter(found.scale))
    return at_scale(found, scale or usual)


def _played(
    spec: Spec, policies: list[str] | None, at: list[str] | None, rounds: int, agents: int
) -> Watched:
    from rumormill.experiments.watch.cases import chosen_policies, watched

    values = {}
    for each in at or ():
        axis, equals, value = each.partition("=")
        if not equals:
            raise InputError(f"--at {each!r} is not allowed: write PARAMETER=VALUE, for example gamma=2")
        values[axis] = value
    games = len(chosen_policies(spec, policies))
    with CountDisplay("round", games * min(rounds, spec.size.horizon)) as counting:
        return watched(
            spec, rounds=rounds, agents=agents, policies=policies, at=values, on_round=counting.add
        )
