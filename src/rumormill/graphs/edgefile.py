"""Edge-list files as they are published: two labels per line, SNAP comments, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from os import PathLike
from pathlib import Path

from rumormill.errors import DataError, InputError

GZIP_MAGIC = b"\x1f\x8b"


def read_pairs(path: str | PathLike[str]) -> list[tuple[int, int]] | list[tuple[str, str]]:
    """The pairs of an edge list. Labels are ints when every one of them is, else strings."""
    numbers: list[int] = []
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(",")] if "," in line else line.split()
        if len(fields) != 2 or not all(fields):
            raise DataError(
                f"{path}, line {number}: {_shown(line)} is not an edge: two labels are expected, "
                "separated by blanks or one comma; comments start with #"
            )
        numbers.append(number)
        pairs.append((fields[0], fields[1]))
    if not pairs:
        raise DataError(f"{path} holds no edge: two labels per line are expected")
    try:
        rest = [(int(u), int(v)) for u, v in pairs[1:]]
    except ValueError:
        return pairs
    try:
        return [(int(pairs[0][0]), int(pairs[0][1])), *rest]
    except ValueError:
        if not rest:
            return pairs
    raise DataError(
        f"{path}, line {numbers[0]}: {_shown(' '.join(pairs[0]))} is the only line that is not two whole "
        "numbers; if it is a header, put # before it"
    )


def _text(path: str | PathLike[str]) -> str:
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}; give the path of an edge-list file"
        ) from None
    try:
        if raw.startswith(GZIP_MAGIC):
            raw = gzip.decompress(raw)
        text = raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file: byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise DataError(f"{path} is not a text file: it holds zero bytes")
    return text


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
