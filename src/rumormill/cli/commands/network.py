"""`rumormill network`: size, diameter, clique covers and leaders of a network.

`rumormill data`: where graph files are, and how to get them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.cli.arguments import Json, made_network
from rumormill.cli.printing import note, print_json, print_table, say
from rumormill.errors import InputError

if TYPE_CHECKING:
    from rumormill.graphs import Network

# Above this size the clique cover of a high power takes minutes: by default only low powers are computed.
LARGE = 2_000
FEW_HOPS = 2
MOST_GAMMAS = 8


def network(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|GENERATOR [KEY=VALUE]...",
            help=(
                "An edge list, a known graph, or a generator with its settings: erdos_renyi n=200 p=0.7; "
                "an own one as module:Class."
            ),
            show_default=False,
        ),
    ],
    gamma: Annotated[
        list[int] | None, typer.Option(min=0, help="Hops to look at; repeatable. All by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of a random network.")] = 0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw it to this PNG or SVG file, cliques and leaders coloured.")
    ] = None,
    json: Json = False,
) -> None:
    """Describe a network: size, cliques and leaders for every γ."""
    if picture is not None and picture.suffix not in (".png", ".svg"):
        raise InputError(f"{picture} is not a picture: the name must end in .png or .svg")
    made = made_network(words, seed)
    gammas = sorted(set(gamma)) if gamma else _gammas(made)
    rows = [_row(made, hops) for hops in gammas]
    if json:
        facts = {"agents": made.n_agents, "links": made.n_edges, "diameter": made.diameter}
        print_json({**facts, "parts": len(made.components), "gammas": rows})
    else:
        say(made.describe())
        say()
        print_table(rows)
        if len(gammas) < made.diameter + 1 and not gamma:
            note(f"only some γ up to the diameter {made.diameter} are shown: choose with --gamma")
    if picture is not None:
        _draw(made, gamma[-1] if gamma else (made.diameter + 1) // 2, picture)
        note(f"picture: {picture}")


def _gammas(made: Network) -> list[int]:
    most = FEW_HOPS if made.n_agents > LARGE else made.diameter
    if most < MOST_GAMMAS:
        return list(range(most + 1))
    return sorted({round(i * most / (MOST_GAMMAS - 1)) for i in range(MOST_GAMMAS)})


def _row(made: Network, gamma: int) -> dict[str, Any]:
    from rumormill.graphs import clique_cover, dominating_set, independent_set

    cover = clique_cover(made, gamma)
    return {
        "gamma": gamma,
        "cliques": len(cover.groups),
        "at_least": cover.lower_bound,
        "largest_clique": max(len(group) for group in cover.groups),
        "independent_leaders": len(independent_set(made, gamma).leaders),
        "dominating_leaders": len(dominating_set(made, gamma).leaders),
        "mean_heard": float(made.neighbourhoods(gamma).sizes.mean()),
    }


def _draw(made: Network, gamma: int, path: Path) -> None:
    from rumormill.experiments.figures.network import network_figure, title_of
    from rumormill.graphs import clique_cover, independent_set
    from rumormill.plotting.rendering import write_figure

    figure = network_figure(
        made.n_agents,
        made.edges(),
        clique_cover(made, gamma).groups,
        independent_set(made, gamma).leaders,
        title_of(made.n_agents, made.n_edges, made.diameter, gamma),
    )
    write_figure(figure, path)


def data(
    download: Annotated[
        list[str] | None, typer.Option(help="Fetch a graph by name, or all; repeatable.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Where to fetch from, instead of the publisher.", metavar="BASE")
    ] = None,
    json: Json = False,
) -> None:
    """Say which graph files are there, and fetch the others."""
    from rumormill.graphs import datasets as files

    wanted = download or []
    for name in [known.name for known in files.KNOWN] if "all" in wanted else wanted:
        note(f"fetched {files.download(name, base_url=url)}")
    rows = [
        {"graph": known.name, "file": str(files.locate(known.name) or "not there"), "about": known.about}
        for known in files.KNOWN
    ]
    folders = [str(folder) for folder in files.folders()]
    if json:
        print_json({"folders": folders, "graphs": rows})
        return
    say("Looked for in: " + ", then ".join(folders))
    say()
    print_table(rows)
    if any(row["file"] == "not there" for row in rows):
        say()
        say(
            "To get them: rumormill data --download all; or put them into a folder and name it in "
            f"{files.FOLDER_VARIABLE}"
        )
