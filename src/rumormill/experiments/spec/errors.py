"""Error texts for a bad experiment file, and errors raised by a user's own classes."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args

import msgspec

from rumormill import catalogue
from rumormill.errors import ContractError, InputError, RumormillError
from rumormill.experiments.spec import schema
from rumormill.experiments.spec.nesting import PARTS, flat
from rumormill.experiments.spec.schema import Spec
from rumormill.text import nearest, one_line, shown

NAME = "expected small letters, digits and . _ - only"
CLAIMS = {str(form.__struct_config__.tag): form for form in get_args(schema.Claim)}
FORMS: dict[str, Any] = {
    "scale": schema.Scale,
    "tune": schema.TunePart,
    "verdicts": schema.VerdictPart,
    "churn": schema.ChurnPart,
    "corruption": schema.CorruptionPart,
    "byzantine": schema.ByzantinePart,
    "arms.scenarios": schema.ScenarioOfArms,
}
SINGLE = ("horizon", "trials", "checkpoints")


def explain(raw: Any, text: str) -> str:
    """The library's message with the key's path first, the value found there, and the nearest name."""
    words, _, at = text.partition(" - at `")
    if at.startswith("key` in `$"):
        path = at.removeprefix("key` in `$").rstrip("`").lstrip(".")
        bad = next(key for key in _look_up(raw, path) if not re.fullmatch("[a-z0-9][a-z0-9_-]*", key))
        return f"{path}.{bad} is not allowed: expected small letters, digits and _ - only"
    path, value = _found(raw, at.rstrip("`").lstrip("$").lstrip("."))
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", words)
    if unknown:
        return f"{_join(path, unknown[1])}: unknown key{nearest(unknown[1], _keys_at(path, value))}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", words)
    if missing:
        return f"{_join(path, missing[1])}: missing{_hint(path, missing[1])}"
    if words.startswith("Invalid"):
        return f"{path} = {shown(value)} is not allowed{nearest(str(value), _choices(path))}"
    if "matching regex" in words:
        words = NAME
    return f"{path} = {shown(value)} is not allowed: {words[:1].lower()}{words[1:]}".replace("`", "")


def convert(tables: Mapping[str, Any]) -> Spec:
    """The spec from nested tables, each value of its type, or an error that names the key."""
    try:
        return msgspec.convert(tables, Spec, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(explain(tables, str(error))) from None


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _hint(path: str, key: str) -> str:
    if key == "scale":
        return "; give horizon and trials, or [scale.quick] and [scale.full]"
    return f"; one of {', '.join(CLAIMS)}" if path.startswith("claims") and key == "kind" else ""


def _found(raw: Any, path: str) -> tuple[str, Any]:
    """The path, with the key that the library leaves out of it, and what stands there."""
    part, unnamed, rest = path.partition("[...]")
    if not unnamed:
        return path, _look_up(raw, path)
    form = FORMS.get(part, schema.AxisValues)
    for key, value in _look_up(raw, part).items():
        try:
            msgspec.convert(value, form, strict=True)
        except msgspec.ValidationError:
            return f"{part}.{key}{rest}", _look_up(value, rest)
    return path, raw[part]


def _look_up(raw: Any, path: str) -> Any:
    """The value at a path."""
    for step in re.findall(r"[^.\[\]]+", path):
        raw = raw[int(step) if step.isdigit() and isinstance(raw, list) else step]
    return raw


def _keys_at(path: str, table: Any) -> list[str]:
    if path.startswith("claims"):
        claim = CLAIMS.get(table.get("kind"), schema.ClaimPart)
        return ["kind", *claim.__struct_fields__]
    for part, form in FORMS.items():
        if path.startswith(part):
            return list(form.__struct_fields__)
    return [*(field for field in Spec.__struct_fields__ if field != "folder"), *SINGLE]


def _choices(path: str) -> list[str]:
    """The words that a key takes."""
    if path.endswith(".kind"):
        return list(CLAIMS)
    return ["uniform", "a list of numbers"] if path == "arms.means" else ["low", "high"]


def own_names(spec: Spec) -> list[str]:
    """All words of a spec that may name an own class: "module:Class"."""
    plain = flat(spec)
    parts = (plain.get(part) for part in (*PARTS, "networks", "corruption", "sweep"))
    return [word for part in parts for word in _words(part) if catalogue.is_own(word)]


def _words(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [value] if isinstance(value, str) else []


@contextmanager
def own_errors(spec: Spec) -> Iterator[None]:
    """What an own class raises is reported as its own, with the line it comes from."""
    try:
        yield
    except RumormillError:
        raise
    except Exception as error:
        modules = {name.partition(":")[0] for name in own_names(spec)}
        frames = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_globals.get("__name__") in modules
        ]
        if not frames:
            raise
        file, line = frames[-1]
        said = f"{type(error).__name__}: {one_line(str(error))}"
        raise ContractError(f"{file}, line {line}: {said} (raised by a class of your own)") from error
