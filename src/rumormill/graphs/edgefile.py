"""Edge-list files as they are published: two labels per line, SNAP comments, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Hashable
from os import PathLike
from pathlib import Path

from rumormill.errors import DataError, InputError
from rumormill.text import shown

GZIP_MAGIC = b"\x1f\x8b"


def read_edges(path: str | PathLike[str]) -> tuple[list[tuple[Hashable, Hashable]], list[str]]:
    """The pairs of an edge list, and what was left out. Labels are ints when all of them are, else texts.

    A third field on every line, a number, is a weight: it is ignored, and the notes say so.
    """
    numbers: list[int] = []
    pairs: list[tuple[str, str]] = []
    widths: set[int] = set()
    for number, line in enumerate(_text(path).splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(",")] if "," in line else line.split()
        widths.add(len(fields))
        weighted = len(fields) == 3 and len(widths) == 1 and _is_number(fields[2])
        if not ((len(fields) == 2 and len(widths) == 1) or weighted) or not all(fields):
            raise DataError(
                f"{path}, line {number}: {shown(line)} is not an edge: two labels are expected, "
                "separated by blanks or one comma (a weight behind them is ignored, on all lines or none); "
                "comments start with #"
            )
        numbers.append(number)
        pairs.append((fields[0], fields[1]))
    if not pairs:
        raise DataError(f"{path} holds no edge: two labels per line are expected")
    notes = ["the third column is taken for weights and ignored"] if widths == {3} else []
    labels: list[tuple[Hashable, Hashable]] = [*pairs]
    try:
        rest = [(int(u), int(v)) for u, v in pairs[1:]]
    except ValueError:
        return labels, notes
    try:
        return [(int(pairs[0][0]), int(pairs[0][1])), *rest], notes
    except ValueError:
        if not rest:
            return labels, notes
    raise DataError(
        f"{path}, line {numbers[0]}: {shown(' '.join(pairs[0]))} is the only line that is not two whole "
        "numbers; if it is a header, put # before it"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
