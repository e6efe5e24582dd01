"""File formats: CSV with any separator, decimal commas, byte-order marks, UTF-16, gzip; Parquet; Arrow.

Text that cannot be read is refused with the number of the line.
"""

from __future__ import annotations

import codecs
import gzip
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rumormill.errors import DataError, InputError

if TYPE_CHECKING:
    import polars as pl

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
SEPARATORS = (",", ";", "\t", "|")
HEAD = 1 << 16
DECIMAL_COMMA = re.compile(r"^\s*[-+]?\d+,\d+\s*$")
FORM = "a header with the names of the columns, then a row per record"


@dataclass(frozen=True)
class TextFormat:
    """Encoding, separator and decimal mark of a text file."""

    encoding: str
    separator: str
    decimal_comma: bool
    carriage_returns: bool = False
    """Lines end with a carriage return alone."""


def is_log(path: str | Path) -> bool:
    """Whether a file is a table, by the ending of its name."""
    return suffix_of(Path(path)) in (*TEXT, *PARQUET, *ARROW)


def suffix_of(path: Path) -> str:
    """The ending of the name, without .gz."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


@contextmanager
def scanned(path: Path) -> Iterator[pl.LazyFrame]:
    """The table as a lazy frame; columns of a text file are text, so that errors can name a cell."""
    import polars as pl

    if path.is_dir():
        inside = sorted(each.name for each in path.iterdir() if is_log(each))
        found = f": give one of its files, {', '.join(inside[:4])}" if inside else ", and holds no table"
        raise InputError(f"{path} is a folder{found}")
    if not is_log(path):
        raise InputError(
            f"{path} is no table: its name must end in .csv, .tsv, .parquet or .arrow (.gz may follow)"
        )
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty: it needs {FORM}")
    with tempfile.TemporaryDirectory(prefix="rumormill-") as folder:
        try:
            yield _scan(path, Path(folder))
        except pl.exceptions.PolarsError as error:
            raise DataError(_explained(path, str(error))) from None
        except (OSError, EOFError, gzip.BadGzipFile) as error:
            raise DataError(f"{path} cannot be read: {error}") from None


def _scan(path: Path, folder: Path) -> pl.LazyFrame:
    """The lazy frame of a file, unpacked and decoded if needed."""
    import polars as pl

    kind, plain = suffix_of(path), path
    if _magic(path).startswith(b"\x1f\x8b"):
        plain = folder / "plain"
        with _opened(path) as packed, plain.open("wb") as out:
            while piece := packed.read(1 << 22):
                out.write(piece)
    if kind in PARQUET:
        return pl.scan_parquet(plain)
    if kind in ARROW:
        return pl.scan_ipc(plain)
    form = text_format(path, _magic(plain, HEAD))
    if form.encoding.startswith("utf-16"):
        plain = _as_utf8(path, plain, folder / "utf8")
    if form.carriage_returns:
        plain = _with_newlines(plain, folder / "lines")
    table = pl.scan_csv(plain, separator=form.separator, infer_schema=False)
    names = table.collect_schema().names()
    if all(_is_number(name) for name in names):
        raise DataError(f"{path}: the first line holds numbers; it must name the columns")
    repeated = [name for name in names if "_duplicated_" in name]
    if repeated:
        first = repeated[0].split("_duplicated_")[0]
        raise DataError(f"{path}: two columns are called {first!r}: rename one")
    if form.decimal_comma:
        table = table.with_columns(
            pl.when(pl.col(name).str.contains(DECIMAL_COMMA.pattern))
            .then(pl.col(name).str.replace(",", ".", literal=True))
            .otherwise(pl.col(name))
            .alias(name)
            for name in names
        )
    return table.rename({name: name.strip() for name in names if name != name.strip()})


def text_format(path: Path, head: bytes) -> TextFormat:
    """Encoding, separator and decimal comma from the beginning of a file."""
    encoding = "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif head[1:200:2].count(0) > 50 and head[0:200:2].count(0) == 0:
        encoding = "utf-16-le"
    elif head[0:200:2].count(0) > 50 and head[1:200:2].count(0) == 0:
        encoding = "utf-16-be"
    elif b"\0" in head:
        raise DataError(f"{path} is no text: line {head[: head.index(0)].count(10) + 1} holds zero bytes")
    text = head.decode(encoding, errors="replace").lstrip("\ufeff")
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty: it needs {FORM}")
    counts = {mark: lines[0].count(mark) for mark in SEPARATORS}
    separator = max(counts, key=lambda mark: counts[mark])
    if counts[separator] == 0:
        raise DataError(
            f"{path}: {lines[0].strip()!r} is the only column; a choice needs at least two arms: one column "
            "each, or the columns agent, arm and reward, with a comma, semicolon or tab between"
        )
    cells = [cell for line in lines[1:] for cell in line.split(separator)]
    comma = separator != "," and any(DECIMAL_COMMA.match(cell) for cell in cells)
    return TextFormat(encoding, separator, comma, "\r" in text and "\n" not in text)


def _magic(path: Path, size: int = 4) -> bytes:
    """The first bytes of a file."""
    with path.open("rb") as file:
        return file.read(size)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is packed."""
    if _magic(path).startswith(b"\x1f\x8b"):
        with gzip.open(path) as packed:
            yield packed  # type: ignore[misc]
    else:
        with path.open("rb") as plain:
            yield plain


def _with_newlines(source: Path, target: Path) -> Path:
    """The file with newlines in place of carriage returns."""
    with source.open("rb") as file, target.open("wb") as out:
        while piece := file.read(1 << 22):
            out.write(piece.replace(b"\r", b"\n"))
    return target


def _as_utf8(path: Path, source: Path, target: Path) -> Path:
    """The file in UTF-8; the line of the first thing that is no UTF-16 is named."""
    head = _magic(source, 2)
    encoding = "utf-16"
    if head not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        encoding = "utf-16-be" if head[:1] == b"\0" else "utf-16-le"
    decoder, lines = codecs.getincrementaldecoder(encoding)(), 1
    with source.open("rb") as file, target.open("w", encoding="utf-8", newline="") as out:
        try:
            while piece := file.read(1 << 22):
                text = decoder.decode(piece)
                lines += text.count("\n")
                out.write(text)
            out.write(decoder.decode(b"", final=True))
        except UnicodeDecodeError:
            raise DataError(
                f"{path}: after line {lines} it is no UTF-16 any more: save it as UTF-8"
            ) from None
    return target


def _explained(path: Path, text: str) -> str:
    """What the reader found wrong; of bytes that are no UTF-8, the line."""
    if "utf-8" in text.lower() or "utf8" in text.lower():
        line = _first_bad_line(path)
        if line is not None:
            return f"{path}: line {line:,} is not UTF-8 text: save the file as UTF-8"
    if "more fields" in text:
        return f"{path}: a line has more cells than the header has names{_longest_line(path)}: repair it"
    return f"{path} cannot be read as a table: {text.splitlines()[0]}"


def _longest_line(path: Path) -> str:
    """Which line that is; separators within quotes are beyond this."""
    with _opened(path) as file:
        lines = iter(file)
        separator = text_format(path, head := next(lines)).separator.encode()
        for number, line in enumerate(lines, 2):
            if b'"' not in line and line.count(separator) > head.count(separator):
                return f" (line {number:,})"
    return ""


def _first_bad_line(path: Path) -> int | None:
    """The first line that is no UTF-8."""
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


def _is_number(text: str) -> bool:
    """Whether a text is a number, with a point or a comma."""
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
