"""Parts of a spec from words on the command line: `kmp gamma=1 zeta=1`."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Sequence
from typing import Any

from rumormill.errors import InputError


def part_of_spec(words: Sequence[str], tag: str) -> dict[str, Any]:
    """The first word under the key `tag`, the others as key=value with values as in TOML."""
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


def split(text: str) -> list[str]:
    """The words of one option, with quotes as in a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{text!r} cannot be split into words: {error}") from None


def value_of(text: str) -> Any:
    """A TOML value, or the text itself where it is none."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if list(parsed) == ["value"] else text
