"""Options that commands share, and objects of the catalogue from words on the command line."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rumormill.errors import InputError

if TYPE_CHECKING:
    from rumormill.arms import Arm
    from rumormill.estimators import Estimator
    from rumormill.graphs import Network


class ExecutorName(StrEnum):
    """Where the cells of a run are played."""

    threads = "threads"
    processes = "processes"
    ray = "ray"


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials, instead of those of the scale.")]
Horizon = Annotated[int | None, typer.Option(min=1, help="Rounds, instead of those of the scale.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Workers; all cores by default.")]
Executor = Annotated[
    ExecutorName,
    typer.Option(
        help="threads (the compiled engine runs in parallel), processes (own policies too), ray (a cluster)."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="host:port of the Ray cluster; else RAY_ADDRESS, the one on this machine, or one for this run.",
        show_default=False,
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME-SCALE by default.")]
Report = Annotated[bool, typer.Option(help="Write report.html and figures/ into the folder.")]
Bounds = Annotated[bool, typer.Option("--bounds", help="Also the theory's bounds, drawn and as a table.")]
Baseline = Annotated[
    str | None,
    typer.Option(help="Compare with this policy (its label) instead of every pair.", show_default=False),
]
Margin = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=0.99,
        help="Margin of equivalence, as a share of regret; 0.1 by default.",
        show_default=False,
    ),
]
Folder = Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)]
OtherSeed = Annotated[int | None, typer.Option(min=0, help="The seed, instead of that of the file.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of all randomness.")]


# Python's spelling of truth values, outside of quotes.
SPELLING = re.compile(r"\"[^\"]*\"|'[^']*'|\b(?:True|False)\b")
# Numbers that people write and TOML does not know: .5 and 5.
OPEN_NUMBER = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?")


def split(text: str) -> list[str]:
    """The words of one option, with quotes as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{text!r} cannot be split into words: {error}") from None


def part_of_spec(words: Sequence[str], tag: str) -> dict[str, Any]:
    """The first word under the key `tag`, the others as key=value."""
    if not words:
        raise InputError(f"a name is missing: give the {tag} first, then key=value pairs")
    first, *rest = words
    part: dict[str, Any] = {tag: first}
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise InputError(f"{word!r} after {first!r} is not a setting: write key=value, for example n=50")
        if key in part:
            raise InputError(f"{key} is given twice for {first!r}: give it once")
        part[key] = value_of(value)
    return part


def network_part(words: Sequence[str]) -> dict[str, Any]:
    """The network of a spec: a generator by name, an own class as module:Class, or else a file."""
    from rumormill.graphs.datasets import KNOWN

    first = words[0] if words else ""
    own = ":" in first and not Path(first).exists()
    is_path = "/" in first or "." in first or Path(first).is_file()
    if not own and (is_path or first in [known.name for known in KNOWN]):
        return {**part_of_spec(words, "file"), "kind": "file"}
    return part_of_spec(words, "kind")


def value_of(text: str) -> Any:
    """A TOML value, truth values in Python's spelling too; the text itself where it is none."""
    if OPEN_NUMBER.fullmatch(text):
        return float(text)
    written = SPELLING.sub(lambda found: _toml_truth(found.group()), text)
    try:
        parsed = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if list(parsed) == ["value"] else text


def _toml_truth(word: str) -> str:
    return word.lower() if word in ("True", "False") else word


def made_network(words: Sequence[str], seed: int) -> Network:
    """The network that the first trial of a spec with this part and seed would play on."""
    import numpy as np

    from rumormill.seeds import Role, root_seed, stream_seed

    # Here there is one network: whether every trial has its own does not matter.
    part = {key: value for key, value in network_part(words).items() if key != "fresh"}
    rng = np.random.default_rng(stream_seed(root_seed(seed), 0, Role.NETWORK))
    network: Network = _made("network", part, "network").build(rng)
    return network


def made_law(text: str, mean: float) -> Arm:
    """The law, moved to the mean."""
    law: Arm = _made("law", part_of_spec(split(text), "law"), "arms")
    return law.at_mean(mean)


def made_estimator(text: str) -> Estimator:
    """A robust mean by its name."""
    words = split(text)
    part = part_of_spec(words, "type")
    estimator: Estimator = _made("estimator", part if len(words) > 1 else words[0], "estimator")
    return estimator


def _made(kind: str, given: Any, where: str) -> Any:
    from rumormill import catalogue

    return catalogue.make(kind, given, where=where, folder=Path.cwd())
