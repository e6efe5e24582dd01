"""Writing TOML, as much of it as a mesh file needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """A table as TOML: plain values first, then tables, then lists of tables."""
    lines, later = [], []
    for key, value in table.items():
        if value is None:
            continue
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            later += [f"\n[[{prefix}{key}]]\n{to_toml(each, f'{prefix}{key}.')}" for each in value]
        elif isinstance(value, dict):
            later.append(f"\n[{prefix}{key}]\n{to_toml(value, f'{prefix}{key}.')}")
        else:
            lines.append(f"{_key(key)} = {_value(value)}\n")
    return "".join([*lines, *later])


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return msgspec.json.encode(value).decode()
