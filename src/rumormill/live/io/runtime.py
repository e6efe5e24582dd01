"""The process around a node: its clock, its disk, its links, its sidecar."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import json
import logging
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rumormill.errors import InputError, RumormillError
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import node_setup
from rumormill.live.core.signatures import Sealer
from rumormill.live.io import journal as snapshot
from rumormill.live.io.http import Answer, HttpServer
from rumormill.live.io.journal import Journal
from rumormill.live.io.transport import Transport, tls
from rumormill.mesh.file import KEYS, Mesh, read_mesh, split_address
from rumormill.text import nearest

log = logging.getLogger("rumormill.node")

SNAPSHOT_EVERY = 50_000
# Seconds between two looks at everything that can wait: what is told to neighbours is then sent at once.
TICK = 0.5
# Records that nobody waits for go to the disk with the next one that somebody waits for, after so many
# seconds, or when there are so many: after a crash neighbours tell again what was lost of them.
WRITE_EVERY, MOST_UNWRITTEN = 1.0, 256
# Seconds between two pictures of the state in the event stream.
EVENT_EVERY = 1.0
# The writer's thread must not hold up an answer: it is interrupted after as many seconds.
SWITCH = 0.0005
# Records that may wait for the disk before links are no longer read.
MOST_BACKLOG = 20_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line says."""

    mesh: Path
    name: str
    data: Path
    http: str = "127.0.0.1:7480"
    """HOST:PORT, or unix:PATH."""
    listen: str | None = None
    """Where to listen for neighbours; as in the mesh file by default."""
    token: str | None = None
    """Required of every request, and required itself unless the sidecar is local."""
    keys: Path | None = None


class Clock:
    """Starts at the time of day and then never jumps."""

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._start + time.monotonic()


class Runtime:
    """One node as a process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = Clock()
        self.mesh = read_mesh(settings.mesh)
        mesh, name = self.mesh, settings.name
        if name not in mesh.ids:
            raise InputError(f"{mesh.path} has no node {name!r}{nearest(name, mesh.ids)}")
        self.host, self.port, self.unix = _sidecar_address(settings)
        self._keys = keys = settings.keys or settings.mesh.parent / KEYS
        contexts = (tls(keys, name, server=True), tls(keys, name, server=False))
        owner = f"mesh {mesh.file.name}, node {name}"
        self.journal = Journal(settings.data, owner, fresh_epoch=lambda: time.time_ns() // 1_000_000)
        self.epoch = self.journal.found.epoch
        self.node = Node(node_setup(mesh, name, self.epoch, sealer=load_sealer(mesh, name, keys)))
        self.node.restart(self.journal.found.state, self.journal.found.records)
        self._since_snapshot = len(self.journal.found.records)
        self.journal.forget_found()
        self.transport = Transport(self.node, mesh.ids, contexts, _warn)
        from rumormill.live.io.sidecar import Sidecar

        self.sidecar = Sidecar(self)
        self.http = HttpServer(self.sidecar.answer, lambda why: self.transport.refuse("http", why))
        self.draining = False
        self.started = self.clock()
        # (record, order, whom to tell, what)
        self._waiting: list[tuple[int, int, asyncio.Future[Answer], Answer]] = []
        self._order = itertools.count()
        self._scheduled = False
        self._flushed = self.started
        self._stop = asyncio.Event()

    # --- life ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until SIGTERM or Ctrl-C."""
        loop = asyncio.get_running_loop()
        self.node.tick(self.clock())

        def on_commit(n: int) -> None:
            loop.call_soon_threadsafe(self._committed, n)

        self.journal.start(on_commit)
        self.node.start()
        host, port = split_address(
            self.settings.listen or self.mesh.nodes[self.settings.name].address, "the node's address"
        )
        await self.transport.listen(host, port)
        self.transport.dial(self._addresses())
        await self.http.start(self.host, self.port, self.unix)
        self.changed()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        where = self.settings.http if self.unix else f"{self.host}:{self.http.port}"
        log.info("ready", extra={"fields": {"http": where, "epoch": self.epoch}})
        ticking = asyncio.ensure_future(self._tick())
        await self._stop.wait()
        ticking.cancel()
        await self.drain()

    def _addresses(self) -> dict[int, tuple[str, int]]:
        """Whom this node dials: neighbours of a larger id."""
        mine, mesh = self.node.setup.node, self.mesh
        return {
            other: split_address(mesh.nodes[mesh.names[other]].address, mesh.names[other])
            for other in self.node.setup.neighbours
            if other > mine
        }

    async def _tick(self) -> None:
        published = self.clock()
        while True:
            await asyncio.sleep(TICK)
            self.node.tick(self.clock())
            if self.clock() - self._flushed >= WRITE_EVERY or self.node.unwritten >= MOST_UNWRITTEN:
                self._flush()
            self.transport.pump(self.congested)
            if self.clock() - published >= EVENT_EVERY:
                published = self.clock()
                if self.http.watched:
                    self.http.publish(self.sidecar.picture())

    def stop(self) -> None:
        self._stop.set()

    async def drain(self) -> None:
        """Answer what came in, say goodbye, write a snapshot, leave."""
        self.draining = True
        await self.http.stop()
        self.node.say_goodbye("stopping")
        self._flush()
        self.transport.pump(self.congested)
        await self.transport.stop()
        self.journal.write_snapshot(snapshot.pack(self.node.snapshot()))
        clean = await asyncio.to_thread(self.journal.close)
        log.info("stopped", extra={"fields": {"clean": clean}})

    def reload(self) -> None:
        """SIGHUP: take a mesh file with a larger revision."""
        try:
            mesh = read_mesh(self.settings.mesh)
            if mesh.file.revision <= self.mesh.file.revision:
                raise InputError(f"its revision {mesh.file.revision} is not above {self.mesh.file.revision}")
            if mesh.file.name != self.mesh.file.name:
                raise InputError(f"it is of another mesh, {mesh.file.name!r}")
            sealer = load_sealer(mesh, self.settings.name, self._keys)
            setup = node_setup(mesh, self.settings.name, self.epoch, sealer=sealer)
        except RumormillError as error:
            log.error("the mesh file was not taken: %s", error)
            return
        self.mesh = mesh
        self.node.reconfigure(setup)
        self.transport.rename(mesh.ids)
        self.transport.dial(self._addresses())
        self.transport.pump(self.congested)
        log.info("a new mesh file", extra={"fields": {"revision": mesh.file.revision}})
        self.changed()

    # --- what follows every change ------------------------------------------------------------------

    def changed(self) -> None:
        """Somebody waits for the disk: after this turn of the loop it gets all that is to be written."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def may_wait(self) -> None:
        """There is something to write that nobody waits for: the next look around does it."""
        if self.node.unwritten >= MOST_UNWRITTEN:
            self.changed()

    def _flush(self) -> None:
        self._scheduled = False
        self._flushed = self.clock()
        batch = self.node.take_journal()
        if batch:
            self.journal.write(batch)
            self._since_snapshot += len(batch)
            if self._since_snapshot >= SNAPSHOT_EVERY:
                self._since_snapshot = 0
                self.journal.write_snapshot(snapshot.pack(self.node.snapshot()))

    def failed(self, what: str, error: Exception) -> None:
        """A mistake in the program: said in full, and the node goes on."""
        log.error("%s failed: %r", what, error, exc_info=error)

    @property
    def congested(self) -> bool:
        return self.journal.trouble is not None or self.journal.backlog > MOST_BACKLOG

    @property
    def ready(self) -> bool:
        return not self.draining and self.journal.trouble is None and self.node.ready

    def _committed(self, n: int) -> None:
        self.node.committed(n)
        while self._waiting and self._waiting[0][0] <= n:
            _, _, future, answer = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(answer)

    def when_on_disk(self, record: int, answer: Answer) -> Answer | asyncio.Future[Answer]:
        """The answer, as soon as a record is on disk."""
        if record <= self.node.durable:
            return answer
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (record, next(self._order), future, answer))
        self.changed()
        return future


def load_sealer(mesh: Mesh, name: str, folder: Path) -> Sealer | None:
    """The keys of a node in a mesh with signatures; None in one without."""
    if not mesh.file.signed:
        return None
    from rumormill.mesh.keys import signing_keys  # cryptography is large, and most meshes do without

    return Sealer(
        mesh.file.name, *signing_keys(folder, name, {node.id: node.key for node in mesh.file.nodes})
    )


def _sidecar_address(settings: Settings) -> tuple[str | None, int, str | None]:
    if settings.http.startswith("unix:"):
        return None, 0, settings.http.removeprefix("unix:")
    any_port = settings.http.endswith(":0")
    host, port = split_address(settings.http[:-1] + "1" if any_port else settings.http, "--http")
    local = host in ("127.0.0.1", "localhost", "::1")
    if not local and settings.token is None:
        raise InputError(f"--http {settings.http} is open to others: give a token with RUMORMILL_TOKEN")
    return host, 0 if any_port else port, None


def _warn(kind: str, text: str) -> None:
    """A line about what was refused; its kind is the one of the status page and the metrics."""
    log.warning(text, extra={"fields": {"kind": kind}})


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "text": record.getMessage(),
        }
        row.update(getattr(record, "fields", {}))
        if record.exc_info:
            row["trace"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)


def run_node(settings: Settings) -> None:
    """What `rumormill node` does."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)

    sys.setswitchinterval(SWITCH)

    async def main() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await Runtime(settings).run()

    asyncio.run(main())
