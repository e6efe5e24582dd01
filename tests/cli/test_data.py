"""Graph files: where they are looked for, and downloads from a server on this machine."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.real_graphs import FOLDER, needs_real_graphs
from rumormill.errors import DataError, InputError
from rumormill.graphs import datasets as data

TEXT = b"# a small graph\n0 1\n1 2\n"


@pytest.fixture(autouse=True)
def empty_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(data.FOLDER_VARIABLE, raising=False)
    for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def small_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known graphs, with a small text in place of theirs."""
    checksum = hashlib.sha256(TEXT).hexdigest()
    small = tuple(dataclasses.replace(known, sha256=checksum) for known in data.KNOWN)
    monkeypatch.setattr(data, "KNOWN", small)


class Server(http.server.ThreadingHTTPServer):
    """Answers with what `answers` holds; anything else is not found."""

    answers: dict[str, bytes]
    claim_more = False
    asked: list[str]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.answers.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (100 if self.server.claim_more else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.answers, running.asked = {}, []
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def base(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/data"


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.usefixtures("small_graphs")
def test_download_unpacks_into_the_cache(server: Server) -> None:
    server.answers["/data/facebook_combined.txt.gz"] = gzip.compress(TEXT)
    path = data.download("ego-Facebook", base_url=base(server))
    assert path == data.cache_folder() / "facebook_combined.txt"
    assert path.read_bytes() == TEXT
    assert data.find("ego-Facebook") == path
    assert files_in(data.cache_folder()) == ["facebook_combined.txt"]
    assert server.asked == ["/data/facebook_combined.txt.gz"]


@pytest.mark.usefixtures("small_graphs")
def test_download_from_the_command_line(server: Server, cli: Any) -> None:
    for name in ("facebook_combined", "p2p-Gnutella04"):
        server.answers[f"/data/{name}.txt.gz"] = gzip.compress(TEXT)
    before = json.loads(cli("data", "--json").out)
    assert [row["file"] for row in before["graphs"]] == ["not there", "not there"]
    assert "rumormill data --download all" in cli("data").out
    answer = cli("data", "--download", "all", "--url", base(server) + "/", "--json")
    assert answer.code == 0
    told = json.loads(answer.out)
    assert [Path(row["file"]).read_bytes() for row in told["graphs"]] == [TEXT, TEXT]
    assert told["folders"] == [str(data.cache_folder())]
    assert "3 agents, 2 links" in cli("network", "p2p-Gnutella04").out


@pytest.mark.usefixtures("small_graphs")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (gzip.compress(TEXT + b"2 3\n"), "is not the published ego-Facebook: sha256"),
        (gzip.compress(TEXT)[:-9], "is not a whole gzip file"),
        (TEXT, "is not a whole gzip file"),
        (b"", "is not a whole gzip file"),
        (None, "answers 404"),
    ],
    ids=["other content", "cut off", "not packed", "empty", "not found"],
)
def test_what_is_not_the_file_is_never_kept(server: Server, body: bytes | None, message: str) -> None:
    if body is not None:
        server.answers["/data/facebook_combined.txt.gz"] = body
    with pytest.raises(DataError, match=message):
        data.download("ego-Facebook", base_url=base(server))
    assert files_in(data.cache_folder()) == []


@pytest.mark.usefixtures("small_graphs")
def test_a_broken_connection_is_noticed(server: Server) -> None:
    server.answers["/data/facebook_combined.txt.gz"] = gzip.compress(TEXT)
    server.claim_more = True
    with pytest.raises(DataError, match="try again"):
        data.download("ego-Facebook", base_url=base(server))
    assert files_in(data.cache_folder()) == []


def test_a_file_far_too_large_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MOST_BYTES", 1000)
    server.answers["/data/facebook_combined.txt.gz"] = b"x" * 2000
    with pytest.raises(DataError, match="is larger than"):
        data.download("ego-Facebook", base_url=base(server))
    server.answers["/data/facebook_combined.txt.gz"] = gzip.compress(b"x" * 100_000)
    with pytest.raises(DataError, match="is not a whole gzip file"):
        data.download("ego-Facebook", base_url=base(server))


def test_nobody_answers() -> None:
    with socket.socket() as deaf:  # bound, so that nobody else gets the port, but not listening
        deaf.bind(("127.0.0.1", 0))
        with pytest.raises(DataError, match=r"cannot be reached .*RUMORMILL_DATA"):
            data.download("ego-Facebook", base_url=f"http://127.0.0.1:{deaf.getsockname()[1]}")


@pytest.mark.usefixtures("small_graphs")
def test_a_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    server.answers["/data/facebook_combined.txt.gz"] = gzip.compress(TEXT)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataError, match=r"cannot be written to .*XDG_CACHE_HOME"):
        data.download("ego-Facebook", base_url=base(server), folder=tmp_path / "taken" / "below")


@pytest.mark.usefixtures("small_graphs")
def test_the_named_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = data.cache_folder()
    cache.mkdir(parents=True)
    (cache / "p2p-Gnutella04.txt").write_bytes(TEXT)
    assert data.find("p2p-Gnutella04") == cache / "p2p-Gnutella04.txt"
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv(data.FOLDER_VARIABLE, str(mine))
    assert data.find("p2p-Gnutella04") == cache / "p2p-Gnutella04.txt"
    (mine / "p2p-Gnutella04.txt.gz").write_bytes(gzip.compress(TEXT))
    assert data.find("p2p-Gnutella04") == mine / "p2p-Gnutella04.txt.gz"


def test_a_damaged_file_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(data.FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "p2p-Gnutella04.txt").write_bytes(TEXT)
    with pytest.raises(DataError, match=r"is not the published p2p-Gnutella04: sha256 .* delete it"):
        data.find("p2p-Gnutella04")


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv(data.FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "p2p-Gnutella04.txt").write_bytes(TEXT)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(DataError, match=r"p2p-Gnutella04.txt cannot be read: Permission denied"):
        data.find("p2p-Gnutella04")


def test_a_missing_file_says_how_to_get_it() -> None:
    with pytest.raises(data.MissingDataError, match="rumormill data --download ego-Facebook"):
        data.find("ego-Facebook")


def test_a_file_of_ones_own_is_taken_as_it_is(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_bytes(TEXT)
    assert data.find(str(own)) == own
    with pytest.raises(InputError, match="neither a file nor a known graph"):
        data.find(str(tmp_path / "other.txt"))


@needs_real_graphs
@pytest.mark.parametrize("name", ["p2p-Gnutella04", "ego-Facebook"])
def test_the_published_files_have_the_checksums_written_here(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(data.FOLDER_VARIABLE, str(FOLDER))
    assert data.find(name).parent == FOLDER
