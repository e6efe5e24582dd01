"""A spec written as TOML: the standard library only reads it."""

from __future__ import annotations

import json
import math
from typing import Any


def to_toml(table: dict[str, Any]) -> str:
    """Plain values as TOML text that reads back equal."""
    return "\n".join(_lines(table, ())).strip() + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """Simple values first: what follows a [header] belongs to it."""
    below = {key: value for key, value in table.items() if _is_below(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in below]
    for key, value in below.items():
        here = (*path, key)
        name = ".".join(_key(part) for part in here)
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *_lines(value, here)]
        else:
            for item in value:
                lines += ["", f"[[{name}]]", *_lines(item, here)]
    return lines


def _is_below(value: Any) -> bool:
    """Whether a value gets a header of its own."""
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    # Strings and numbers are written alike in both, but TOML wants the delete character escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
