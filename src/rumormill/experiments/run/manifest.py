"""manifest.json: what was run, with what, and how far it came.

The first line holds a checksum of all the rest, so that a damaged manifest is never shown as other numbers.
Format 1, of version 0.1.0, has none: there, what follows from the spec must agree with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from rumormill.errors import DataError, InputError, RumormillError
from rumormill.experiments.plan import plan_of
from rumormill.experiments.spec.reading import encode, known_claims, named_spec, restore, spec_names
from rumormill.experiments.spec.schema import WORDS, Spec
from rumormill.files import read_bytes, write_atomically

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
