"""Commands that look at what there is: networks, names, data files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from rumormill.cli.printing import note, print_json, print_table
from rumormill.cli.running import Json, network_part
from rumormill.errors import InputError

if TYPE_CHECKING:
    from rumormill.graphs import Network

# Beyond this size the cover of a far-reaching power takes minutes: only near ones are worked out unasked.
LARGE = 2_000
FEW_HOPS = 2
MOST_GAMMAS = 8


class Kind(StrEnum):
    """What `list` lists."""

    policies = "policies"
    arms = "arms"
    networks = "networks"
    estimators = "estimators"
    specs = "specs"


def add_looking(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(network)
    app.command("list")(list_names)
    app.command()(data)


def network(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|GENERATOR [KEY=VALUE]...",
            help="An edge list, a known graph, or a generator with its settings: erdos_renyi n=200 p=0.7",
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
    """Describe a network: size, diameter, and cliques and leaders for every γ."""
    if picture is not None and picture.suffix not in (".png", ".svg"):
        raise InputError(f"{picture} is not a picture: the name must end in .png or .svg")
    made = made_network(words, seed)
    gammas = sorted(set(gamma)) if gamma else _gammas(made)
    rows = [_row(made, hops) for hops in gammas]
    if json:
        facts = {"agents": made.n_agents, "links": made.n_edges, "diameter": made.diameter}
        print_json({**facts, "parts": len(made.components), "gammas": rows})
    else:
        typer.echo(made.describe())
        typer.echo()
        print_table(rows)
        if len(gammas) < made.diameter + 1 and not gamma:
            note(f"only some γ up to the diameter {made.diameter} are shown: choose with --gamma")
    if picture is not None:
        _draw(made, gamma[-1] if gamma else (made.diameter + 1) // 2, picture)
        note(f"picture: {picture}")


def made_network(words: list[str], seed: int) -> Network:
    """The network that a spec with this part would play on."""
    from rumormill.experiments.spec.building import build_network
    from rumormill.experiments.spec.reading import at_scale, decode

    smallest = {
        "name": "network",
        "seed": seed,
        "horizon": 2,
        "trials": 1,
        "network": network_part(words),
        "arms": {"law": "gaussian", "K": 2},
        "policies": [{"type": "robust"}],
    }
    return build_network(at_scale(decode(smallest)), 0)


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
    from rumormill.experiments.figures.network import network_figure
    from rumormill.experiments.figures.regret import style
    from rumormill.graphs import clique_cover, independent_set

    figure = network_figure(
        made.n_agents,
        made.edges(),
        clique_cover(made, gamma).groups,
        independent_set(made, gamma).leaders,
        f"{made.n_agents:,} agents, {made.n_edges:,} links, diameter {made.diameter}, γ = {gamma}",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure.savefig(path)


def list_names(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)], json: Json = False
) -> None:
    """List what a spec or `simulate` may name, with its settings."""
    from rumormill.experiments.spec import schema
    from rumormill.experiments.spec.building import ESTIMATORS
    from rumormill.experiments.spec.reading import named_spec, spec_names

    if kind is Kind.specs:
        rows = [
            {"name": name, "title": spec.title, "question": spec.question, "scales": ", ".join(spec.scale)}
            for name, spec in ((name, named_spec(name)) for name in spec_names())
        ]
    elif kind is Kind.estimators:
        rows = [{"name": name, "about": _first_line(made)} for name, made in ESTIMATORS.items()]
    else:
        union = {
            Kind.policies: schema.AnyPolicy,
            Kind.arms: schema.AnyArms,
            Kind.networks: schema.AnyNetwork,
        }[kind]
        rows = [
            {"name": str(form.__struct_config__.tag), "settings": _settings(form)} for form in get_args(union)
        ]
    if json:
        print_json(rows)
    else:
        print_table(rows)


def _first_line(documented: Any) -> str:
    return str(documented.__doc__).strip().splitlines()[0]


def _settings(form: Any) -> str:
    """The keys of a form; those that must be given stand first and bare."""
    import msgspec

    needed, free = [], []
    for field in msgspec.structs.fields(form):
        if field.required:
            needed.append(field.name)
        elif field.name != "label":
            shown = "…" if field.default is None else _written(field.default)
            free.append(f"{field.name}={shown}")
    return " ".join([*needed, *free])


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def data(
    download: Annotated[
        list[str] | None, typer.Option(help="Fetch a graph by name, or all; repeatable.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Where to fetch from, instead of the publisher.", metavar="BASE")
    ] = None,
    json: Json = False,
) -> None:
    """Say where graph files are looked for and which are there; fetch those that are not."""
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
    typer.echo("Looked for in: " + ", then ".join(folders))
    typer.echo()
    print_table(rows)
    if any(row["file"] == "not there" for row in rows):
        typer.echo()
        typer.echo(
            f"To get them: rumormill data --download all; or put them into a folder and name it in "
            f"{files.FOLDER_VARIABLE}"
        )
