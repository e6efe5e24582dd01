"""Suites of games: a TOML file of networks × laws × worlds, and logs, as cells that can be played.

A cell is a spec without policies. Its seed is a hash of suite, purpose ("tuning" or "published"), network and
law: the two purposes never share chance, all worlds of one network and law do.

A log as a game: trial i replays a bootstrap resample of the rounds of its reward table, all agents and arms
of a round together (blocks of rounds with `remembers = true`). The true means are those of the whole log;
regret is against the best common arm.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from rumormill import catalogue
from rumormill.advice.reading.columns import Columns
from rumormill.advice.reading.log import read_log
from rumormill.advice.replay import block_length, resampled
from rumormill.advice.reward_table import build_reward_table, for_agents, with_support
from rumormill.arms import Bandit, Empirical, Objective, Replay
from rumormill.errors import DataError, InputError
from rumormill.experiments.spec.nesting import PARTS, SIZES
from rumormill.experiments.spec.reading import decode, encode
from rumormill.experiments.spec.schema import Count, Name, ScaleName, Settings, Spec
from rumormill.graphs.datasets import MissingDataError, find
from rumormill.text import nearest, plural


class LogTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a log is read: see `rm.read_log`."""

    file: str
    objective: Objective | None = None
    time: str | None = None
    agent: str | None = None
    arm: str | None = None
    reward: str | None = None
    arms: list[str] = []
    ignore: list[str] = []
    status: str | None = None
    ok: list[str] = []
    failure_cost: float | str | None = None
    remembers: bool = False
    """Rewards depend on the last ones: blocks of rounds are resampled."""


@dataclass(frozen=True, eq=False)
class LogGame:
    """A reward table [round, agent, arm] and its laws."""

    values: NDArray[np.float64] = field(repr=False)
    objective: Objective
    block: int
    sha256: str
    notes: list[str] = field(repr=False)
    """Its size, and what was filled in or left out."""

    def bandit(self) -> Bandit:
        """The arms as laws: the values of the whole log."""
        arms = [Empirical(column) for column in self.values.reshape(-1, self.values.shape[2]).T]
        return Bandit(arms, objective=self.objective)

    def replay(self, rng: np.random.Generator) -> Replay:
        """The rewards of one trial."""
        rows = resampled(len(self.values), self.block, 1.0, rng)
        return Replay(self.values[rows], self.values.mean(axis=(0, 1)), self.objective)


def read_log_game(table: Mapping[str, Any], folder: Path | None, agents: int) -> LogGame:
    """The game of a log; one without agents is read by so many agents, each from another place."""
    given = _convert(table, LogTable)
    path = Path(given.file) if folder is None else folder / given.file
    roles = (given.time, given.agent, given.arm, given.reward)
    columns = Columns(*roles, tuple(given.arms), tuple(given.ignore), given.status, tuple(given.ok))
    cost: Any = given.failure_cost
    log = read_log(path, columns, objective=given.objective, failure_cost=cost)
    rng = np.random.default_rng(0)
    made, _, borrowed = with_support(build_reward_table(log, rng), False, rng)
    values = for_agents(made, agents, made.rounds // 2, rng)
    sha256 = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
    block = block_length(len(values)) if given.remembers else 1
    shape = zip(("round", "agent", "arm"), values.shape, strict=True)
    size = ", ".join(plural(count, thing) for thing, count in shape)
    if not made.recorded.all():
        size += f"; {100 * made.recorded.mean():.0f} % of the rewards were recorded, others fill the gaps"
    notes = [*log.notes, *made.notes, *borrowed, size]
    return LogGame(values, log.objective, block, f"{sha256} {block}", notes)


def _as_keys(text: str) -> str:
    """Options of the command line as keys of a suite."""
    ways = re.sub("--(minimise|maximise)", r'objective = "\1"', text)
    return re.sub("--(time|agent|arm|reward|status)-column|--(ignore|ok)", lambda m: m[1] or m[2], ways)


Form = TypeVar("Form", bound=Struct)


def _convert(raw: Mapping[str, Any], form: type[Form]) -> Form:
    """Tables as a form; a mistake in one line, with the keys there are."""
    try:
        return msgspec.convert(raw, form, strict=True)
    except msgspec.ValidationError as error:
        text = str(error)
        unknown, place = re.search("unknown field `(.*?)`", text), SuiteScale if "`$.scale" in text else form
        keys = nearest(unknown[1], place.__struct_fields__) if unknown else ""
        raise InputError(text.replace("`", "") + keys) from None


Seeds = Literal["tuning", "published"]
SHIPPED = ("arena-1",)
# Keys of a world that are parts of a spec; "changes" is one of the arms.
SURROUNDINGS = ("channel", "absences", "outages", "churn", "corruption", "byzantine")
WORLD_KEYS = (*SURROUNDINGS, "changes")


class SuiteScale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How large the games are, and which cells are played."""

    horizon: Count
    trials: Count
    n: Count
    """Agents, where the network has a size to set; a log has its own."""
    cells: Annotated[list[str], Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["*"])
    """Patterns of cell names, as of file names."""


class SuiteFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite as it is written."""

    name: Name
    title: str = ""
    scale: Annotated[dict[ScaleName, SuiteScale], Meta(min_length=1)]
    networks: Annotated[dict[Name, Settings], Meta(min_length=1)]
    laws: dict[Name, Settings] = {}
    """As `[arms]` of a spec."""
    logs: dict[Name, Settings] = {}
    """Files of recorded rewards, and how they are read."""
    worlds: dict[Name, Settings] = msgspec.field(default_factory=lambda: {"perfect": {}})
    entries: dict[str, Settings] = {}
    """Policies beside those of the leaderboard, by name."""


@dataclass(frozen=True)
class ArenaCell:
    """One game of a suite: a spec whose policies are still to be chosen."""

    name: str
    spec: Spec
    log: LogGame | None = field(default=None, repr=False)

    @cached_property
    def key(self) -> str:
        """Checksum of all that determines the game, except the policy and the number of trials."""
        plain = encode(self.spec)
        ((_, size),) = plain["scale"].items()
        kept = {
            key: plain[key] for key in (*PARTS, *WORLD_KEYS, "seed") if key in plain and key != "policies"
        }
        return checksum([kept, size["horizon"], "" if self.log is None else self.log.sha256])


@dataclass(frozen=True)
class Suite:
    """A suite at one scale, for one purpose of its seeds."""

    name: str
    title: str
    scale: str
    seeds: Seeds
    trials: int
    cells: list[ArenaCell]
    left_out: dict[str, str]
    """Cells that cannot be played here, and why."""
    entries: dict[str, Settings]
    folder: Path | None
    """Where own classes are looked for."""

    @property
    def notes(self) -> list[str]:
        """How its logs were read."""
        logs = {cell.name.split("/")[1]: cell.log for cell in self.cells if cell.log is not None}
        return [f"logs.{name}: {_as_keys(line)}" for name, log in logs.items() for line in log.notes]


def checksum(value: Any) -> str:
    """SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def read_suite(
    source: str, scale: str, seeds: Seeds, patterns: Sequence[str] = (), trials: int | None = None
) -> Suite:
    """A shipped suite by its name, or one from a TOML file, at one of its scales.

    Parameters:
        source: "arena-1", or the path of a file.
        scale: "quick", "full", or another scale of the file.
        seeds: "tuning" to choose constants, "published" to report.
        patterns: cells to play, as patterns of names; by default those of the scale.
        trials: instead of those of the scale.
    """
    if source in SHIPPED:
        text, folder = (resources.files("rumormill.arena") / f"{source}.toml").read_bytes(), None
    else:
        path = Path(source)
        if not path.is_file():
            raise InputError(f"--suite {source!r}: there is no such file{nearest(source, SHIPPED)}")
        text, folder = path.read_bytes(), path.resolve().parent
    try:
        file = _convert(tomllib.loads(text.decode("utf-8-sig")), SuiteFile)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, InputError) as error:
        raise InputError(f"{source}: {error}") from None
    for name in file.logs:
        if name in file.laws:
            raise InputError(f"{source}: logs.{name} is a law too: give one of them another name")
    if folder is not None and file.name in SHIPPED:
        raise InputError(f"{source}: name = {file.name!r} is that of the shipped suite: choose another")
    if scale not in file.scale:
        raise InputError(f"{source} has no scale {scale!r}{nearest(scale, list(file.scale))}")
    size = file.scale[scale]
    cells, left_out = _cells(file, size, seeds, patterns or size.cells, folder)
    if not cells:
        raise InputError(f"{source}: no cell is left of {', '.join(patterns or size.cells)}")
    count = size.trials if trials is None else trials
    return Suite(file.name, file.title, scale, seeds, count, cells, left_out, file.entries, folder)


def shipped_entries() -> dict[str, Settings]:
    """The entries of the leaderboard: name → settings of the policy."""
    text = (resources.files("rumormill.arena") / "entries.toml").read_text("utf-8")
    return tomllib.loads(text)


def entry_of(name: str, settings: Mapping[str, Any], folder: Path | None) -> Spec:
    """A small experiment with the policy of an entry, its settings written out; own classes in the folder."""
    game = {
        "name": "entry",
        "seed": 0,
        "horizon": 10,
        "trials": 1,
        "network": {"kind": "ring", "n": 3},
        "arms": {"law": "gaussian", "K": 2},
    }
    table = {**settings, **({"label": name} if name else {})}
    return decode({**game, "policies": [table]}, folder=str(folder or Path.cwd()))


# --- cells ----------------------------------------------------------------------------------------------


def _cells(
    file: SuiteFile, size: SuiteScale, seeds: Seeds, patterns: Sequence[str], folder: Path | None
) -> tuple[list[ArenaCell], dict[str, str]]:
    cells, left_out, logs = [], {}, {}
    for network in file.networks:
        for law in (*file.laws, *file.logs):
            for world in file.worlds:
                name = f"{network}/{law}/{world}"
                if not any(fnmatchcase(name, pattern) for pattern in patterns):
                    continue
                try:
                    if law in file.logs and law not in logs:
                        logs[law] = read_log_game(file.logs[law], folder, size.n)
                    cells.append(_cell(file, size, seeds, (network, law, world), folder, logs.get(law)))
                except MissingDataError as error:
                    left_out[name] = str(error)
                except (InputError, DataError) as error:
                    kind = DataError if isinstance(error, DataError) else InputError
                    raise kind(f"cell {name}: {_as_keys(str(error))}") from None
    return cells, left_out


def _cell(
    file: SuiteFile,
    size: SuiteScale,
    seeds: Seeds,
    parts: tuple[str, str, str],
    folder: Path | None,
    log: LogGame | None,
) -> ArenaCell:
    network, law, world = parts
    around = dict(file.worlds[world])
    for key in around:
        if key not in WORLD_KEYS:
            raise InputError(f"worlds.{world}.{key}: unknown key{nearest(key, WORLD_KEYS)}")
    horizon, agents = size.horizon, size.n
    if log is not None:
        horizon, agents, n_arms = log.values.shape
        arms: Settings = {"law": "gaussian", "K": n_arms, "objective": log.objective}
        if "changes" in around:
            raise MissingDataError("a log brings its own changes")
    else:
        arms = dict(file.laws[law])
        if "changes" in around:
            arms["changes"] = [_at_round(change, horizon) for change in around["changes"]]
    raw = {
        "name": file.name,
        "seed": seed_of(file.name, seeds, f"{network}/{law}"),
        "scale": {"arena": {"horizon": horizon, "trials": size.trials, "checkpoints": 1}},
        "network": _sized(file.networks[network], agents, folder),
        "arms": arms,
        "policies": [{"type": "robust"}],
        **{key: around[key] for key in SURROUNDINGS if key in around},
    }
    return ArenaCell("/".join(parts), decode(raw, folder=None if folder is None else str(folder)), log)


def seed_of(suite: str, seeds: Seeds, game: str) -> int:
    """The seed of a game: other purposes, suites and games have others."""
    return int.from_bytes(hashlib.sha256(f"{suite} {seeds} {game}".encode()).digest()[:7], "big")


def _at_round(change: Any, horizon: int) -> Any:
    """A change whose time is a share of the horizon, at its round."""
    if not isinstance(change, Mapping) or not isinstance(change.get("at"), float):
        return change
    return {**change, "at": max(2, round(change["at"] * horizon) + 1)}


def _sized(network: Settings, agents: int, folder: Path | None) -> Settings:
    """The network with so many agents, where its kind has a size to set and none is given."""
    kind = network.get("kind", "")
    cls = catalogue.find("network", kind, folder=folder)
    keys = [one.name for one in catalogue.settings_of("network", cls)]
    if kind == "file":
        find(network.get("file", ""))
    size = next((key for key in SIZES if key in keys), None)
    return dict(network) if size is None or size in network else {**network, size: agents}
