"""Parts of a spec from words on the command line: `kmp gamma=1 zeta=1`, `my_module:Greedy rate=0.1`."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rumormill.errors import InputError

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
