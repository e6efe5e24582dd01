"""The state of a node as bytes, with a checksum in front."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from rumormill.errors import DataError

_DIGEST = 16


def pack(state: dict[str, Any]) -> bytes:
    """The state as bytes."""
    body = msgspec.msgpack.encode(state)
    return digest(body) + body


def unpack(data: bytes) -> dict[str, Any]:
    """The state that `pack` was given; damaged bytes raise DataError."""
    body = memoryview(data)[_DIGEST:]  # it can be large: no copy
    if len(data) <= _DIGEST or digest(body) != data[:_DIGEST]:
        raise DataError("the snapshot is damaged: its checksum does not fit")
    state: dict[str, Any] = msgspec.msgpack.decode(body)
    return state


def digest(data: bytes | memoryview) -> bytes:
    """A checksum of 16 bytes."""
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
