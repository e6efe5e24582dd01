"""The process of a node: its clock, its journal, its links, its sidecar."""

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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rumormill.errors import InputError, RumormillError
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import node_config
from rumormill.live.core.signatures import Signer
from rumormill.live.io.http import HttpServer, Response
from rumormill.live.io.journal import Journal, pack
from rumormill.live.io.sidecar import Sidecar
from rumormill.live.io.transport import Transport, tls
from rumormill.mesh.file import KEYS, Mesh, read_mesh, split_address
from rumormill.text import nearest

log = logging.getLogger("rumormill.node")

SNAPSHOT_EVERY = 50_000
# Seconds between two ticks: timeouts, and frames for all neighbours.
TICK = 0.5
# Records that no request waits for are written with the next one that a request waits for, after so many
# seconds, or when there are so many: neighbours send those again that a crash loses.
WRITE_EVERY, MOST_UNWRITTEN = 1.0, 256
# Seconds between two status events.
EVENT_EVERY = 1.0
# Seconds after which the writer's thread yields, so that it does not delay a response.
SWITCH = 0.0005
# Records that may wait for the disk before links are no longer read.
MOST_BACKLOG = 20_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `rumormill node`."""

    mesh: Path
    name: str
    data: Path
    http: str = "127.0.0.1:7480"
    """HOST:PORT, or unix:PATH."""
    listen: str | None = None  # plain-words: allow
    """The listen address for neighbours; by default the one in the mesh file."""
    token: str | None = None
    """Required in every request; must be set unless the sidecar is local."""
    keys: Path | None = None


class Clock:
    """Starts at the time of day and never jumps."""

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._start + time.monotonic()


class Runtime:
    """One node as a process."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.name, self.token = settings, settings.name, settings.token
        self.clock: Callable[[], float] = Clock()
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
        self.node = Node(node_config(mesh, name, self.epoch, signer=load_signer(mesh, name, keys)))
        self.node.restart(self.journal.found.state, self.journal.found.records)
        self._since_snapshot = len(self.journal.found.records)
        self.journal.forget_found()
        self.transport = Transport(self.node, mesh.ids, contexts, _warn)
        self.sidecar = Sidecar(self)
        self.http = HttpServer(self.sidecar.respond, lambda why: self.transport.refuse("http", why))
        self.draining = False
        self.started = self.clock()
        # (record, order, future, its result)
        self._waiting: list[tuple[int, int, asyncio.Future[Response], Response]] = []
        self._order = itertools.count()
        self._scheduled = False
        self._flushed = self.started
        self._stop = asyncio.Event()

    # --- start and stop -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until SIGTERM or Ctrl-C."""
        loop = asyncio.get_running_loop()
        self.node.tick(self.clock())

        def on_commit(n: int) -> None:
            loop.call_soon_threadsafe(self._committed, n)

        self.journal.start(on_commit)
        self.node.start()
        host, port = split_address(
            self.settings.listen or self.mesh.nodes[self.name].address,  # plain-words: allow
            "the node's address",
        )
        await self.transport.serve(host, port)
        self.transport.dial(self._addresses())
        await self.http.start(self.host, self.port, self.unix)
        self.schedule_flush()
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
        """The addresses that this node dials: neighbours with a larger id."""
        mine, mesh = self.node.config.node, self.mesh
        return {
            other: split_address(mesh.nodes[mesh.names[other]].address, mesh.names[other])
            for other in self.node.config.neighbours
            if other > mine
        }

    async def _tick(self) -> None:
        """Tick, flush, send frames and publish events, until cancelled."""
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
                    self.http.publish(self.sidecar.status_event())

    def stop(self) -> None:
        """End `run`."""
        self._stop.set()

    async def drain(self) -> None:
        """Answer the requests under way, send Bye, write a snapshot, close everything."""
        self.draining = True
        await self.http.stop()
        self.node.send_bye("stopping")
        self._flush()
        self.transport.pump(self.congested)
        await self.transport.stop()
        self.journal.write_snapshot(pack(self.node.snapshot()))
        clean = await asyncio.to_thread(self.journal.close)
        log.info("stopped", extra={"fields": {"clean": clean}})

    def reload(self) -> None:
        """SIGHUP: apply a mesh file with a larger revision."""
        try:
            mesh = read_mesh(self.settings.mesh)
            if mesh.file.revision <= self.mesh.file.revision:
                raise InputError(f"its revision {mesh.file.revision} is not above {self.mesh.file.revision}")
            if mesh.file.name != self.mesh.file.name:
                raise InputError(f"it is of another mesh, {mesh.file.name!r}")
            signer = load_signer(mesh, self.settings.name, self._keys)
            config = node_config(mesh, self.settings.name, self.epoch, signer=signer)
        except RumormillError as error:
            log.error("the mesh file was not taken: %s", error)
            return
        self.mesh = mesh
        self.node.reconfigure(config)
        self.transport.rename(mesh.ids)
        self.transport.dial(self._addresses())
        self.transport.pump(self.congested)
        log.info("a new mesh file", extra={"fields": {"revision": mesh.file.revision}})
        self.schedule_flush()

    # --- journal ------------------------------------------------------------------------------------

    def schedule_flush(self) -> None:
        """Flush after this iteration of the event loop, because a request waits for the disk."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def flush_if_full(self) -> None:
        """Write records that no request waits for, if there are many."""
        if self.node.unwritten >= MOST_UNWRITTEN:
            self.schedule_flush()

    def _flush(self) -> None:
        """Pass all new records to the journal, and a snapshot if one is due."""
        self._scheduled = False
        self._flushed = self.clock()
        batch = self.node.take_journal()
        if batch:
            self.journal.write(batch)
            self._since_snapshot += len(batch)
            if self._since_snapshot >= SNAPSHOT_EVERY:
                self._since_snapshot = 0
                self.journal.write_snapshot(pack(self.node.snapshot()))

    def failed(self, what: str, error: Exception) -> None:
        """Log a defect; the node continues."""
        log.error("%s failed: %r", what, error, exc_info=error)

    @property
    def congested(self) -> bool:
        """Whether links should not be read because the disk does not keep up."""
        return self.journal.fault is not None or self.journal.backlog > MOST_BACKLOG

    @property
    def ready(self) -> bool:
        """Whether decisions can be made now."""
        return not self.draining and self.journal.fault is None and self.node.ready

    def _committed(self, n: int) -> None:
        """The first n records are on disk: resolve the futures that wait for them."""
        self.node.committed(n)
        while self._waiting and self._waiting[0][0] <= n:
            _, _, future, response = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(response)

    def when_durable(self, record: int, response: Response) -> Response | asyncio.Future[Response]:
        """The response if `record` is on disk, else a Future that resolves to it when it is."""
        if record <= self.node.durable:
            return response
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (record, next(self._order), future, response))
        self.schedule_flush()
        return future


def load_signer(mesh: Mesh, name: str, folder: Path) -> Signer | None:
    """The keys of a node in a mesh with signatures; None in one without."""
    if not mesh.file.signed:
        return None
    from rumormill.mesh.keys import signing_keys  # cryptography is large, and most meshes do without

    return Signer(
        mesh.file.name, *signing_keys(folder, name, {node.id: node.key for node in mesh.file.nodes})
    )


def _sidecar_address(settings: Settings) -> tuple[str | None, int, str | None]:
    """(host, port, path of the Unix socket) of the sidecar."""
    if settings.http.startswith("unix:"):
        return None, 0, settings.http.removeprefix("unix:")
    any_port = settings.http.endswith(":0")
    host, port = split_address(settings.http[:-1] + "1" if any_port else settings.http, "--http")
    local = host in ("127.0.0.1", "localhost", "::1")
    if not local and settings.token is None:
        raise InputError(f"--http {settings.http} is open to others: give a token with RUMORMILL_TOKEN")
    return host, 0 if any_port else port, None


def _warn(kind: str, text: str) -> None:
    """Log a refusal; `kind` is its name in status and metrics."""
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
    """Run a node in this process until it is stopped: `rumormill node`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)

    sys.setswitchinterval(SWITCH)

    async def main() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await Runtime(settings).run()

    asyncio.run(main())
