"""manifest.json: what was run, with what, and how far it came.

The first line holds a checksum of all the rest, so that a damaged manifest is never shown as other numbers.
Format 1, of version 0.1.0, has none: there, what follows from the spec must agree with it.

It records beside the results: networks, games, resolved and tuned constants, engine notices.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from rumormill.engine import Contender, compiled
from rumormill.errors import DataError, InputError, RumormillError
from rumormill.experiments.plan import ExperimentPlan, SweepPoint, plan_of
from rumormill.experiments.run.cache import NETWORK_CACHE, PreparedNetwork, contenders, one_blas_thread
from rumormill.experiments.spec.building import CONSTANT, PRINTED, THEORY, n_choosing
from rumormill.experiments.spec.errors import own_errors
from rumormill.experiments.spec.reading import encode, known_claims, named_spec, restore, spec_names
from rumormill.experiments.spec.schema import WORDS, Spec
from rumormill.files import read_bytes, write_atomically
from rumormill.graphs import Network

if TYPE_CHECKING:
    import polars as pl

    from rumormill.arms import RewardSource

MANIFEST = "manifest.json"
FORMAT = 3
# Format 2 knew neither constants nor games; otherwise it is the same.
READABLE = (2, FORMAT)
# The checksum is that of the file with the digits between these two left out.
HEAD, DIGITS = b'{\n "checksum": "', 64


class NetworkFacts(Struct, kw_only=True, forbid_unknown_fields=True):
    """The network of trial 0 at one sweep point: enough to draw it with its cliques and leaders.

    Where it is too large to be drawn, a checksum stands for its links, and cliques and leaders are counted.
    """

    n_agents: int
    n_edges: int
    diameter: int
    diameter_at_most: int | None = None
    """Where finding the diameter takes too long: it lies between the two."""
    gamma: int | None = None
    cliques: list[list[int]] | None = None
    leaders: list[int] | None = None
    edges: list[tuple[int, int]] | None = None
    edges_of: str | None = None
    """The point that has the same links, where `edges` is left out."""
    edges_sha256: str | None = None
    """Of the pairs (smaller id, larger id), sorted, as little-endian int64."""
    n_cliques: int | None = None
    n_leaders: int | None = None


class Machine(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where it ran."""

    cores: int
    system: str


class Timings(Struct, kw_only=True, forbid_unknown_fields=True):
    """Seconds. Those of kernels and preparation are processor seconds over all cells.

    They are of the thread that played a cell: those that helped in it, where there were fewer cells than
    cores, are not counted. Sessions that were killed could not tell how long they took: the others count the
    last one only.
    """

    kernel_s: float
    prepare_s: float
    wall_s: float
    store_s: float


class Manifest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is known of a run beside its numbers."""

    format: int = FORMAT
    name: str
    scale: str
    spec: dict[str, Any]
    """The spec as the tables of a file, every default written out."""
    spec_sha256: str
    seed: int
    versions: dict[str, str]
    machine: Machine
    axes: list[str]
    policies: list[str]
    points: list[dict[str, Any]]
    trials: int
    horizon: int
    status: Literal["running", "done"] = "running"
    timings: Timings | None = None
    networks: dict[str, NetworkFacts] = {}
    """By the number of the point."""
    constants: dict[str, dict[str, dict[str, str | int | float]]] = {}
    """By the number of the point and the policy: those of its index, as resolved in the first trial."""
    results_sha256: str = ""
    games_sha256: str = ""
    own: dict[str, str] = {}
    """The user's own modules, with the checksums of their files."""
    folder: str | None = None
    """Where the spec lay, so that own modules are found again."""

    @property
    def key(self) -> str:
        """What decides the numbers in a part: spec, version and own files."""
        if self.format == 1:
            return self.spec_sha256
        return run_key(self.spec_sha256, self.versions["rumormill"], self.own)


def run_key(spec_sha: str, version: str, own: Mapping[str, str]) -> str:
    """A checksum of all that the numbers of a run depend on."""
    return _sha256(json.dumps([spec_sha, version, dict(sorted(own.items()))]).encode())


def fingerprint(spec: Spec | Mapping[str, Any]) -> str:
    """A checksum of everything in a spec that decides what a run computes."""
    plain = encode(spec) if isinstance(spec, Spec) else spec
    decisive = {key: value for key, value in plain.items() if key not in WORDS}
    if "tune" in decisive:  # values are added as the run goes on, and change no other
        decisive["tune"] = {key: value for key, value in decisive["tune"].items() if key != "added"}
    return _sha256(json.dumps(decisive, sort_keys=True).encode())


# --- writing and reading --------------------------------------------------------------------------------


def write_manifest(path: Path, manifest: Manifest) -> None:
    """The manifest of a folder, readable by people too."""
    text = json.dumps(msgspec.to_builtins(_without_none(manifest)), indent=1, ensure_ascii=False)
    # Long lists of numbers (links, cliques) go on one line each.
    text = re.sub(r"\[[\s\d,\[\]]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
    rest = b'",\n' + text.removeprefix("{\n").encode() + b"\n"
    write_atomically(path / MANIFEST, HEAD + _sha256(HEAD + rest).encode() + rest)


def _without_none(manifest: Manifest) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(manifest)
    plain["networks"] = {
        point: {key: value for key, value in facts.items() if value is not None}
        for point, facts in plain["networks"].items()
    }
    return {key: value for key, value in plain.items() if value is not None}


def read_manifest(path: Path) -> Manifest:
    """The manifest of a folder, refused if it is damaged or of a format that is not known."""
    file = path / MANIFEST
    data = read_bytes(file)
    try:
        if not data.startswith(HEAD):
            return _read_format_1(data)
        found, rest = data[len(HEAD) : len(HEAD) + DIGITS], data[len(HEAD) + DIGITS :]
        if found != _sha256(HEAD + rest).encode():
            raise ValueError("its checksum does not fit")
        plain = json.loads(HEAD + found + rest)
        plain.pop("checksum")
        if plain.get("format") in READABLE:
            return msgspec.convert(plain, Manifest, strict=True)
    except (ValueError, KeyError, TypeError, RumormillError) as error:
        raise DataError(
            f"{file} is damaged ({error}): run the spec again into this folder to rebuild it from its parts, "
            "or choose another folder"
        ) from None
    raise DataError(f"{file} has the format {plain.get('format')}; this version reads formats 1 to {FORMAT}")


def _read_format_1(data: bytes) -> Manifest:
    """A manifest of version 0.1.0."""
    plain = json.loads(data)
    if plain["format"] != 1:
        raise ValueError("its checksum is not there")
    plain["timings"] = plain["timings"] or None
    manifest = msgspec.convert(plain, Manifest, strict=True)
    if _sha256(json.dumps(plain["spec"], sort_keys=True).encode()) != manifest.spec_sha256:
        raise ValueError("its spec does not match its checksum")
    expected = of_spec(restore(manifest.spec))
    for field, value in expected.items():
        if getattr(manifest, field) != value:
            raise ValueError(f"its {field} does not follow from its spec")
    return manifest


def of_spec(spec: Spec) -> dict[str, Any]:
    """The fields that follow from a spec that is ready to run."""
    (scale,), plan = spec.scale, plan_of(spec)
    return {
        "name": spec.name,
        "scale": scale,
        "seed": spec.seed,
        "axes": list(plan.axes),
        "policies": spec.labels,
        "points": [point.values for point in plan.points],
        "trials": spec.size.trials,
        "horizon": spec.size.horizon,
    }


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def spec_of(manifest: Manifest) -> Spec:
    """The spec that was run; own classes are looked for where it lay."""
    spec = restore(manifest.spec, folder=manifest.folder)
    if manifest.format == 1 and spec.name in spec_names():
        # Claims were part of the program then, not of the spec.
        return msgspec.structs.replace(spec, claims=known_claims(spec, named_spec(spec.name).claims))
    return spec


def refuse_difference(path: Path, old: Manifest, new: Manifest) -> None:
    """Refuse to go on with a run of another spec, another version, or other files of the user's own."""
    if old.format == FORMAT and old.spec_sha256 != new.spec_sha256:
        was, now = (
            {key: value for key, value in manifest.spec.items() if key not in WORDS}
            for manifest in (old, new)
        )
        raise InputError(f"{path} holds another run ({difference(was, now)}): choose another folder")
    versions = [manifest.versions["rumormill"] for manifest in (old, new)]
    if old.format != FORMAT or versions[0] != versions[1]:
        raise InputError(
            f"{path} was begun with rumormill {versions[0]}"
            f"{'' if old.format == FORMAT else f' (format {old.format})'}, this is {versions[1]}: "
            "choose another folder"
        )
    for module in sorted({*old.own, *new.own}):
        if old.own.get(module) != new.own.get(module):
            raise InputError(
                f"{path} was begun with another {module}.py (its checksum has changed): choose another "
                "folder, or bring the old file back"
            )


def difference(old: Any, new: Any, path: str = "") -> str:
    """The first key in which two specs differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *old]:
            if old.get(key) != new.get(key):
                return difference(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return difference(one, other, f"{path}[{number}]")
    return f"{path} was {old!r}, now {new!r}"


# A picture of more shows nothing, and springs take minutes to lay it out.
DRAWN_AGENTS, DRAWN_LINKS = 2_000, 100_000


def describe_networks(plan: ExperimentPlan) -> dict[str, NetworkFacts]:
    """The network of trial 0 at every point: enough to draw it with its cliques and leaders."""
    seen: dict[str, str] = {}
    described: dict[str, NetworkFacts] = {}
    for point in plan.points:
        if point.values.get(CONSTANT, PRINTED) != PRINTED:  # the same networks again
            continue
        with one_blas_thread(), own_errors(plan.spec):
            ready = contenders(point, 0)
        network = ready[0].network
        facts = _facts(network, ready)
        key = repr(point.spec.network)
        if network.n_agents > DRAWN_AGENTS or network.n_edges > DRAWN_LINKS:
            _count_only(facts, network)
        elif key in seen:
            facts.edges_of = seen[key]
        else:
            seen[key] = str(point.index)
            facts.edges = [(int(u), int(v)) for u, v in network.edges()]
        described[str(point.index)] = facts
    return described


def _facts(network: Network, ready: list[Contender]) -> NetworkFacts:
    """Size and diameter; reach, cliques and leaders of the first policy that has them."""
    low, high = network.diameter_between
    facts = NetworkFacts(n_agents=network.n_agents, n_edges=network.n_edges, diameter=low)
    facts.diameter_at_most = None if low == high else high
    for contender in ready:
        plan = contender.plan
        if facts.gamma is None and hasattr(contender.policy, "gamma"):
            facts.gamma = getattr(plan, "gamma", None)
        if facts.cliques is None and getattr(plan, "groups", None) is not None:
            facts.cliques = [[int(v) for v in group] for group in plan.groups]  # type: ignore[attr-defined]
        if facts.leaders is None and getattr(plan, "leaders", None) is not None:
            facts.leaders = [int(v) for v in plan.leaders]  # type: ignore[attr-defined]
    return facts


def _count_only(facts: NetworkFacts, network: Network) -> None:
    """Keep checksum and counts of a network that is too large to draw."""
    facts.edges_sha256 = hashlib.sha256(network.edges().astype("<i8").tobytes()).hexdigest()
    facts.n_cliques = None if facts.cliques is None else len(facts.cliques)
    facts.n_leaders = None if facts.leaders is None else len(facts.leaders)
    facts.cliques = facts.leaders = None


def describe_constants(
    plan: ExperimentPlan, known: dict[str, dict[str, Constants]]
) -> dict[str, dict[str, Constants]]:
    """The constants of every policy at every point, tuned ones as printed; those known are kept."""
    found = dict(known)
    for point in plan.points:
        if str(point.index) not in found and point.values.get(CONSTANT, PRINTED) == PRINTED:
            with one_blas_thread(), own_errors(plan.spec):
                found[str(point.index)] = resolved_constants(point, NETWORK_CACHE.at(point, 0))
    return found


def slow_notices(plan: ExperimentPlan) -> list[str]:
    """One line for every reason why policies run on the reference engine."""
    reasons: dict[str, dict[str, None]] = {}
    for point in plan.points:
        for part in point.spec.policies:
            reason = compiled.unsupported_reason(point.policy(part), point.world)
            if reason is not None:
                reasons.setdefault(reason, {})[part.label] = None
    return [
        f"{', '.join(labels)} {'runs' if len(labels) == 1 else 'run'} on the reference engine: {reason}"
        for reason, labels in reasons.items()
    ]


GAMES = "games.parquet"
"""One row per sweep point, trial and arm: its mean and gap, the moment bounds of all arms, agents and γ."""

Constants = dict[str, str | int | float]


def game_note(source: RewardSource, n_agents: int, gamma: int | None) -> str:
    """The game of a trial, as a note beside the rows of its cell."""
    moments = source.moments()
    return json.dumps(
        {
            "mean": [float(mean) for mean in source.means],
            "gap": [float(gap) for gap in source.gaps],
            "eps": moments.eps,
            "u": moments.u,
            "rho": moments.rho,
            "agents": n_agents,
            "gamma": gamma,
        }
    )


def gamma_of(plans: list[Any]) -> int | None:
    """The reach of messages in a trial: the farthest of all policies."""
    found = [gamma for plan in plans if (gamma := getattr(plan, "gamma", None)) is not None]
    return max(found) if found else None


def game_rows(values: dict[str, Any], trial: int, note: str) -> list[dict[str, Any]]:
    """The rows of one cell; a sweep over a name that they have, such as the gap, is `swept_gap`."""
    game = json.loads(note)
    arms = zip(game.pop("mean"), game.pop("gap"), strict=True)
    rows = [{"trial": trial, "arm": arm, "mean": m, "gap": gap, **game} for arm, (m, gap) in enumerate(arms)]
    swept = {f"swept_{axis}" if axis in rows[0] else axis: value for axis, value in values.items()}
    return [{**swept, **row} for row in rows]


def resolved_constants(point: SweepPoint, prepared: PreparedNetwork) -> dict[str, Constants]:
    """By policy, the constants of its index in the first trial of a sweep point."""
    moments = point.bandit(0).moments()
    found: dict[str, Constants] = {}
    for part in point.spec.policies:
        ready = prepared.contender(point, part)
        gamma = getattr(ready.plan, "gamma", None)
        found[part.label] = {
            **ready.policy.constants(moments),
            **({} if gamma is None else {"gamma": int(gamma)}),
            **getattr(ready.plan, "ways", {}),  # how what it needs was found: exactly, by search, ...
        }
    return found


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """The table of all games."""
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)


SLACK = 1.25


def best_constants(spec: Spec, frame: pl.DataFrame) -> dict[tuple[Any, ...], float]:
    """By policy and sweep point the best value; policies without a knob have none.

    The mean decides, not the median: a value that loses one trial in ten is a bad one. Too small a constant
    loses a trial now and then, which a few trials that choose may not see, and too large a one costs a little
    in all of them: so the largest value counts whose mean is within SLACK of the least.
    """
    import polars as pl

    assert spec.tune is not None
    choosing, place = n_choosing(spec.tune, spec.size.trials), ["policy", *spec.sweep]
    best = (
        frame.filter(
            (pl.col("trial") < choosing)
            & (pl.col("t") == pl.col("t").max())
            & ~pl.col(CONSTANT).is_in([PRINTED, THEORY])
        )
        .with_columns(pl.col(CONSTANT).cast(pl.Float64))
        .group_by(*place, CONSTANT)
        .agg(pl.col("regret").mean())
        .filter(pl.col("regret") <= SLACK * pl.col("regret").min().over(place))
        .group_by(*place)
        .agg(pl.col(CONSTANT).max())
    )
    return {tuple(where): value for *where, value in best.select(*place, CONSTANT).iter_rows()}
