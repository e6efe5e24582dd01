"""Messages about a bad experiment file: the key's path, what stands there, and the nearest valid name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from rumormill.experiments.spec import schema
from rumormill.experiments.spec.schema import Spec

UNIONS: dict[str, Any] = {
    "network": schema.AnyNetwork,
    "arms": schema.AnyArms,
    "policies": schema.AnyPolicy,
}


def explain(raw: Any, text: str) -> str:
    """The library's message with the key's path first, the value found there, and the nearest name."""
    words, _, at = text.partition(" - at `")
    if at.startswith("key` in `$"):
        path = at.removeprefix("key` in `$").rstrip("`").lstrip(".")
        bad = next(key for key in _look_up(raw, path) if key not in _choices(raw, path))
        return f"{_join(path, bad)}: unknown key{nearest(bad, _choices(raw, path))}"
    path = _exact(raw, at.rstrip("`").lstrip("$").lstrip("."))
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", words)
    if unknown:
        allowed = _keys_at(raw, path)
        return f"{_join(path, unknown[1])}: unknown key{nearest(unknown[1], allowed)}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", words)
    if missing:
        hint = ""
        tags = _tags(path)
        if tags and missing[1] in ("kind", "law", "type"):
            hint = f"; one of {', '.join(tags)}"
        elif missing[1] == "scale":
            hint = "; give horizon and trials, or [scale.quick] and [scale.full]"
        return f"{_join(path, missing[1])}: missing{hint}"
    found = _look_up(raw, path)
    bad_name = re.fullmatch(r"Invalid (?:enum )?value (.*)", words)
    if bad_name:
        above, _, key = path.rpartition(".")
        allowed = _tags(above) if key in ("kind", "law", "type") else _choices(raw, path)
        return f"{path} = {found!r} is not allowed{nearest(str(found), allowed)}"
    if "matching regex" in words:
        words = "Expected small letters, digits and . _ - only"
    return f"{path} = {found!r} is not allowed: {words[:1].lower()}{words[1:]}".replace("`", "")


def nearest(given: str, allowed: Iterable[str]) -> str:
    """What is allowed instead: the nearest name first, if one is near."""
    allowed = [str(name) for name in allowed]
    near = difflib.get_close_matches(given, allowed, 1, 0.5)
    hint = f": did you mean {near[0]!r}? Allowed" if near else ": allowed"
    return f"{hint} are {', '.join(allowed)}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _exact(raw: Any, path: str) -> str:
    """The path with the key that the library leaves out: the first one whose value is refused."""
    part, unnamed, rest = path.partition("[...]")
    if not unnamed:
        return path
    form: Any = schema.Scale if part == "scale" else schema.AxisValues
    for key, value in raw[part].items():
        try:
            msgspec.convert(value, form, strict=True)
        except msgspec.ValidationError:
            return f"{part}.{key}{rest}"
    return path


def _look_up(raw: Any, path: str) -> Any:
    """The value at a path."""
    for step in re.findall(r"[^.\[\]]+", path):
        raw = raw[int(step) if step.isdigit() else step]
    return raw


def _tags(path: str) -> list[str]:
    """The kinds that a part of the file may be of."""
    union = UNIONS.get(path.split("[")[0])
    return [form.__struct_config__.tag for form in get_args(union)] if union else []


def _form(part: str, table: dict[str, Any]) -> Any:
    """The form that a table of this kind has to follow."""
    for form in get_args(UNIONS[part]):
        config = form.__struct_config__
        if table.get(config.tag_field) == config.tag:
            return form
    return None


def keys_of(part: str, table: dict[str, Any]) -> list[str]:
    form = _form(part, table)
    return [] if form is None else list(form.__struct_fields__)


def _keys_at(raw: Any, path: str) -> list[str]:
    part = path.split("[")[0].split(".")[0]
    if part == "":
        return [*Spec.__struct_fields__, "horizon", "trials", "checkpoints"]
    if part == "scale":
        return list(schema.Scale.__struct_fields__)
    return keys_of(part, _look_up(raw, path))


def _choices(raw: Any, path: str) -> list[str]:
    """The words that a key takes."""
    part = path.split("[")[0].split(".")[0]
    if part == "scale":
        return list(get_args(schema.ScaleName))
    table_path, _, key = path.rpartition(".")
    form = _form(part, _look_up(raw, table_path))
    info = {field.name: field.type for field in msgspec.structs.fields(form)}[key]
    options = [info, *get_args(info)]
    words = [word for option in options for word in get_args(option) if isinstance(word, str)]
    kinds = {get_args(option)[0] if get_args(option) else option for option in options}
    return words + ["a number"] * bool(kinds & {int, float} and info not in (int, float))
