"""Graphs from elsewhere: edge-list files, the published graphs and where they are found or downloaded.

Graphs of other libraries become labels, pairs of agents, and what is left out.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


FOLDER_VARIABLE = "RUMORMILL_DATA"
BASE_URL = "https://snap.stanford.edu/data"
# Both files are below 2 MB unpacked: whatever is larger is something else.
MOST_BYTES = 32 << 20
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class PublishedGraph:
    """A published edge list; the checksum is that of the unpacked text."""

    name: str
    filename: str
    sha256: str
    about: str


KNOWN = (
    PublishedGraph(
        "p2p-Gnutella04",
        "p2p-Gnutella04.txt",
        "28e94e1b8587104b6b853ba5bd153efa88e047c368a719c46cf194a07f68aefb",
        "file-sharing hosts of August 2002: 10,876 nodes, 39,994 links",
    ),
    PublishedGraph(
        "ego-Facebook",
        "facebook_combined.txt",
        "f41c026ed8af3cc3359f1ca5573d0605fb09ae0eefa34544b820fd8c6e2ef296",
        "friends of ten people: 4,039 nodes, 88,234 links",
    ),
)


class MissingDataError(DataError):
    """A graph file that has to be fetched first."""


def cache_folder() -> Path:
    """Where downloads go."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rumormill"


def folders() -> list[Path]:
    """Where files are looked for, in this order."""
    named = os.environ.get(FOLDER_VARIABLE)
    return [*([Path(named)] if named else []), cache_folder()]


def published_graph(name: str) -> PublishedGraph:
    """The known file of this name."""
    for known in KNOWN:
        if name in (known.name, known.filename):
            return known
    names = " or ".join(known.name for known in KNOWN)
    raise InputError(
        f"{name!r} is neither a file nor a known graph: give the path of an edge list, or {names}"
    )


def locate(name: str) -> Path | None:
    """The file, plain or gzip, in the first folder that has it; its content is not looked at."""
    known = published_graph(name)
    for folder in folders():
        for path in (folder / known.filename, folder / f"{known.filename}.gz"):
            if path.is_file():
                return path
    return None


def find(name: str) -> Path:
    """The file of a known graph, with its checksum verified; the path of any other file as it is."""
    if Path(name).is_file():
        return Path(name)
    known = published_graph(name)
    path = locate(name)
    if path is None:
        looked = " and ".join(str(folder) for folder in folders())
        raise MissingDataError(
            f"{known.name} is not in {looked}: run `rumormill data --download {known.name}`, or put "
            f"{known.filename} into a folder and name it in {FOLDER_VARIABLE}"
        )
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    text = _unpacked(raw, str(path)) if path.suffix == ".gz" else raw
    _verify(known, text, f"{path} is not the published {known.name}", "delete it and download it again")
    return path


def download(name: str, *, base_url: str | None = None, folder: Path | None = None) -> Path:
    """Fetch a graph file into the cache; it gets its name only when it is whole and its checksum right."""
    known = published_graph(name)
    url = f"{(base_url or BASE_URL).rstrip('/')}/{known.filename}.gz"
    text = _unpacked(_fetch(url), url)
    _verify(known, text, f"{url} is not the published {known.name}", "try again, or another --url")
    folder = folder or cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _write_whole(folder / known.filename, text)
    except OSError as error:
        raise DataError(
            f"{known.name} cannot be written to {folder}: {error.strerror}; set XDG_CACHE_HOME to a folder "
            "with room"
        ) from None


def _write_whole(path: Path, content: bytes) -> Path:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def _fetch(url: str) -> bytes:
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{url} is not a web address: it must begin with https:// or http://")
    # Only here: they take longer to import than all networks together.
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            raw: bytes = answer.read(MOST_BYTES + 1)
            expected = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        raise DataError(f"{url} answers {error.code} {error.reason}: try again, or another --url") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"{url} cannot be reached ({reason}): check the network, or fetch the file by other means and "
            f"name its folder in {FOLDER_VARIABLE}"
        ) from None
    if len(raw) > MOST_BYTES:
        raise DataError(f"{url} is larger than {MOST_BYTES >> 20} MB: that is not the graph file")
    if expected is not None and expected.isdecimal() and len(raw) < int(expected):
        raise DataError(f"{url} broke off after {len(raw)} of {expected} bytes: try again")
    return raw


def _unpacked(raw: bytes, where: str) -> bytes:
    try:
        # Never more than the limit in memory, whatever the sender packed.
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = unpacker.decompress(raw, MOST_BYTES + 1)
    except zlib.error as error:
        raise DataError(f"{where} is not a whole gzip file ({error}): try again") from None
    if len(text) > MOST_BYTES or not unpacker.eof:
        raise DataError(f"{where} is not a whole gzip file: try again")
    return text


def _verify(known: PublishedGraph, text: bytes, what: str, fix: str) -> None:
    found = hashlib.sha256(text).hexdigest()
    if found != known.sha256:
        raise DataError(f"{what}: sha256 {found[:12]}… instead of {known.sha256[:12]}…; {fix}")


DIRECTED = "links are directed: each is taken in both directions"
WEIGHTED = "link weights play no part: distance is the number of hops"
PARALLEL = "parallel links are merged"

Parts = tuple[Sequence[Hashable], NDArray[np.int64], list[str]]


def parts_of(graph: Any) -> Parts | None:
    """Labels, pairs of places in them, and notes; None where it is no graph that is known here."""
    kind = type(graph).__module__.partition(".")[0]
    if hasattr(graph, "adj") and hasattr(graph, "is_multigraph"):
        return _networkx(graph)
    if kind == "rustworkx":
        return _rustworkx(graph)
    if kind == "scipy" and hasattr(graph, "tocoo"):
        entries = graph.tocoo()
        return _matrix(graph.shape, entries.row, entries.col, entries.data)
    if isinstance(graph, np.ndarray) and graph.ndim == 2:
        pairs = graph.shape[1] == 2 and not (np.issubdtype(graph.dtype, np.floating) or graph.dtype == bool)
        return None if pairs else _dense(graph)
    return None


def _networkx(graph: Any) -> Parts:
    labels = tuple(graph.nodes)
    ids = {label: i for i, label in enumerate(labels)}
    edges = _pairs((ids[u], ids[v]) for u, v in graph.edges())
    weights = [data["weight"] for _, _, data in graph.edges(data=True) if "weight" in data]
    return labels, edges, _notes(graph.is_directed(), weights, graph.is_multigraph(), edges)


def _rustworkx(graph: Any) -> Parts:
    nodes = list(graph.node_indices())  # with gaps where nodes were removed
    ids = {node: i for i, node in enumerate(nodes)}
    edges = _pairs((ids[u], ids[v]) for u, v in graph.edge_list())
    weights = [each for each in graph.edges() if isinstance(each, int | float)]
    labels = [graph[node] for node in nodes]
    try:
        named = len(set(labels)) == len(labels) and None not in labels
    except TypeError:
        named = False
    directed = "Di" in type(graph).__name__
    return (labels if named else nodes), edges, _notes(directed, weights, graph.multigraph, edges)


def _dense(graph: NDArray[Any]) -> Parts:
    if not (np.issubdtype(graph.dtype, np.number) or graph.dtype == np.bool_):
        raise InputError(f"an adjacency matrix of {graph.dtype} is not allowed: numbers or truth values")
    rows, columns = np.nonzero(graph)
    return _matrix(graph.shape, rows, columns, graph[rows, columns])


def _matrix(shape: tuple[int, ...], rows: Any, columns: Any, values: NDArray[Any]) -> Parts:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"an adjacency matrix of shape {shown(shape)} is not allowed: as many rows as columns"
        )
    if not np.isfinite(values).all():
        raise InputError("the adjacency matrix has entries that are not finite: 0 where there is no link")
    kept = np.asarray(values) != 0
    edges = np.column_stack([rows, columns]).astype(np.int64)[kept]
    there = {(u, v) for u, v in edges.tolist()}
    directed = any((v, u) not in there for u, v in there)
    once = edges[edges[:, 0] <= edges[:, 1]] if not directed else edges
    return range(shape[0]), once, _notes(directed, values[kept].tolist(), False, once)


def _pairs(found: Any) -> NDArray[np.int64]:
    return np.array(list(found), np.int64).reshape(-1, 2)


def _notes(directed: bool, weights: Sequence[Any], multi: bool, edges: NDArray[np.int64]) -> list[str]:
    notes = [DIRECTED] if directed else []
    if any(weight != 1 for weight in weights):
        notes.append(WEIGHTED)
    sides = np.sort(edges, axis=1) if not directed else edges
    if multi and len(np.unique(sides, axis=0)) < len(edges):
        notes.append(PARALLEL)
    return notes
