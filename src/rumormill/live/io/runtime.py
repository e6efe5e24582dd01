"""The process of a node: its clock, its journal, its links, its sidecar."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rumormill.errors import InputError, RumormillError
from rumormill.live.core.node import WORN_OUT, Node
from rumormill.live.core.node_config import node_config
from rumormill.live.core.records import Peer, Record
from rumormill.live.core.signatures import Signer
from rumormill.live.io.folder import pack, set_aside_damage
from rumormill.live.io.http import HttpConnection, HttpServer, Response
from rumormill.live.io.items import named_segments
from rumormill.live.io.journal import Journal
from rumormill.live.io.sidecar import Sidecar, sidecar_address
from rumormill.live.io.status import DAY, History, JsonLines, expiring, note_history
from rumormill.live.io.transport import Transport
from rumormill.mesh.file import KEYS, Mesh, read_mesh, split_address
from rumormill.mesh.keys import load_tls, signing_keys
from rumormill.text import VERSION, nearest

log = logging.getLogger("rumormill.node")

# Between two snapshots: records, each with a fourth of the items in it, because a start replays them.
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
# The exit code of a node whose own code failed: not that of wrong input (2) or of a signal (130, 143).
DEFECT = 70
# Seconds to answer requests and to close the journal after a failure.
LAST_SECONDS = 2.0
# Records that may wait for the disk before links are no longer read.
MOST_BACKLOG = 20_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `rumormill node`."""

    mesh: Path
    name: str
    data: Path
    http: str = "127.0.0.1:7480"
    """HOST:PORT, or unix:PATH; empty for a node in an application, which has no sidecar."""
    listen: str | None = None  # plain-words: allow
    """The listen address for neighbours; by default the one in the mesh file."""
    token: str | None = None
    """Required in every request; must be set unless the sidecar is local."""
    keys: Path | None = None
    rejoin: bool = False
    """Set a damaged folder aside and join with a new epoch."""


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
        self.host, self.port, self.unix = sidecar_address(settings.http, settings.token)
        self._keys = keys = settings.keys or settings.mesh.parent / KEYS
        own = load_tls(keys, name)
        signer = load_signer(mesh, name, keys, own.serial)
        owner = f"mesh {mesh.file.name}, node {name}"
        if settings.rejoin and (aside := set_aside_damage(settings.data)) is not None:
            log.warning("the damaged folder was set aside", extra={"fields": {"where": str(aside)}})
        self.journal = Journal(settings.data, owner, fresh_epoch=lambda: time.time_ns() // 1_000_000)
        config = node_config(mesh, name, self.journal.found.epoch, signer=signer)
        self.node = Node(config, self.journal.items)
        self.node.restart(self.journal.found.state, self.journal.found.records)
        self._since_snapshot = sum(cost(record) for record in self.journal.found.records)
        self.journal.forget_found()
        self.transport = Transport(self.node, mesh.ids, own, _log, self.fail)
        self.history = History()
        self.sidecar = Sidecar(self)
        self.http = HttpServer(self.sidecar.respond, lambda why: self.transport.refuse("http", why))
        self.draining = False
        self.defect: str | None = None
        """The first background task that failed, and how; None while all of them run."""
        self.started = self.ticked = self.clock()
        # Requests that wait for a record, at most one per connection: those that are cancelled leave.
        self._waiting: dict[asyncio.Future[Response], tuple[int, Response]] = {}
        self._scheduled = False
        self._flushed = self.started
        self._was_ready, self._last_epoch = True, self.epoch
        self._next_warning = self.started
        self._stop = asyncio.Event()

    @property
    def epoch(self) -> int:
        """The epoch of the own streams."""
        return self.node.config.epoch

    # --- start and stop -----------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until SIGTERM, Ctrl-C or the failure of a background task; the exit code."""
        with self._signals():
            return await self.serve()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals, from the start until the end: the handlers of a loop would end with it."""
        loop = asyncio.get_running_loop()
        wanted = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGHUP: self._on_hangup}

        def handle(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(wanted[signal.Signals(number)])

        before = {number: signal.signal(number, handle) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def serve(self) -> int:
        """Run until `stop` or the failure of a background task; the exit code."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(self._callback_failed)
        try:
            return await self._serve(loop)
        finally:
            loop.set_exception_handler(before)

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> int:
        self.node.tick(self.clock())
        self.ticked = self.clock()
        soon = loop.call_soon_threadsafe
        self.journal.start(
            lambda n: soon(self._committed, n), lambda error: soon(self.fail, "the journal's writer", error)
        )
        self.node.start()
        host, port = split_address(
            self.settings.listen or self.mesh.nodes[self.name].address,  # plain-words: allow
            "the node's address",
        )
        await self.transport.serve(host, port)
        self.transport.dial(self._addresses())
        if self.settings.http:
            await self.http.start(self.host, self.port, self.unix)
        self.schedule_flush()
        where = f"{self.host}:{self.http.port}" if self.host else self.settings.http
        revision, certificate = self.mesh.file.revision, self.transport.keys.serial
        known = {"version": VERSION, "revision": revision, "certificate": certificate}
        _log("info", "ready", http=where, epoch=self.epoch, **known)
        ticking = asyncio.ensure_future(self._tick())
        ticking.add_done_callback(self._tick_ended)
        await self._stop.wait()
        ticking.cancel()
        if self.defect is None:
            try:
                await self.drain()
            except Exception as error:
                self.fail("stopping", error)
        if self.defect is None:
            return 0
        await self._abandon()
        log.critical(
            "the node ends with exit code %d, a defect: start it again, and report the trace above",
            DEFECT,
            extra={"fields": {"exit": DEFECT, "defect": self.defect}},
        )
        return DEFECT

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
            note_history(self)
            self.log_changes()
            self.ticked = self.clock()

    def log_changes(self) -> None:
        """Log when the node becomes ready or stops being so, and warn of certificates that expire soon."""
        if self.ready != self._was_ready:
            self._was_ready = self.ready
            why = self.not_ready or "unknown"
            _log(*(("info", "ready again") if self.ready else ("warning", f"not ready: {why}")))
        if self.epoch != self._last_epoch:
            self._last_epoch = self.epoch
            _log("warning", "the disk is an old copy: the node continues with a new epoch", epoch=self.epoch)
        now = self.clock()
        if now < self._next_warning:
            return
        self._next_warning = now + DAY
        for whose, days, text in expiring(self):
            _log("warning", text, kind="expiry", days=round(days, 1), certificate=whose)

    # --- failures -----------------------------------------------------------------------------------

    def fail(self, what: str, error: BaseException) -> None:
        """A background task failed: log it, be neither ready nor alive, end the process."""
        log.critical("%s failed: %r", what, error, exc_info=error, extra={"fields": {"task": what}})
        if self.defect is None:
            self.defect = f"{what} failed: {error!r}"
        self._stop.set()

    def _tick_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self.fail("the tick", task.exception() or RuntimeError("it ended"))

    def _callback_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that no task carries; one of this package's code outside HTTP ends the node."""
        error, text = context.get("exception"), str(context.get("message", "a callback"))
        if error is None or not _is_own(error) or isinstance(context.get("protocol"), HttpConnection):
            log.error(text, exc_info=error)
        else:
            self.fail(text, error)

    def _on_hangup(self) -> None:
        try:
            self.reload()
        except Exception as error:
            self.fail("the new mesh file", error)

    async def _abandon(self) -> None:
        """Close everything after a failure, without a snapshot of a state that may be wrong."""
        self.draining = True
        for closing in (self.http.stop(LAST_SECONDS), self.transport.stop()):
            try:
                async with asyncio.timeout(2 * LAST_SECONDS):
                    await closing
            except Exception as error:
                log.error("closing failed: %r", error, exc_info=error)
        await asyncio.to_thread(self.journal.close, LAST_SECONDS)

    @property
    def tick_age(self) -> float:
        """Seconds since the last tick."""
        return self.clock() - self.ticked

    @property
    def not_alive(self) -> str | None:
        """Why this process should be started again; None while it is alive."""
        if self.defect is None and self.tick_age > self.mesh.file.limits.tick_within:
            return f"the tick has not run for {self.tick_age:.1f} s"
        return self.defect

    def stop(self) -> None:
        """End `run`."""
        self._stop.set()

    async def drain(self) -> None:
        """Answer the requests under way, send Bye, write a snapshot, close everything."""
        log.info("stopping")
        self.draining = True
        await self.http.stop()
        self.node.send_bye("stopping")
        self._flush()
        self.transport.pump(self.congested)
        await self.transport.stop()
        self._write_snapshot()
        clean = await asyncio.to_thread(self.journal.close)
        if not clean:  # the exit code is 0 all the same: nothing acknowledged is lost
            log.warning("not all was written, none of it acknowledged: %s", self.journal.fault)
        log.info("stopped", extra={"fields": {"clean": clean}})

    def reload(self) -> None:
        """SIGHUP: apply new keys, and a mesh file with a larger revision."""
        try:
            keys, mesh = load_tls(self._keys, self.name), read_mesh(self.settings.mesh)
            mine, its = self.mesh.file.revision, mesh.file.revision
            if its < mine or (its == mine and keys.serial == self.transport.keys.serial):
                raise InputError(f"its revision {its} is not above {mine}")
            if mesh.file.name != self.mesh.file.name:
                raise InputError(f"it is of another mesh, {mesh.file.name!r}")
            signer = load_signer(mesh, self.name, self._keys, keys.serial)
            config = node_config(mesh, self.name, self.epoch, signer=signer)
        except RumormillError as error:
            log.error("the mesh file was not taken: %s", error)
            return
        self.mesh, self.transport.keys, self.transport.names = mesh, keys, mesh.ids
        self._next_warning = self.clock()
        self.node.reconfigure(config)
        self.transport.dial(self._addresses())
        self.transport.pump(self.congested)
        _log("info", "a new mesh file", revision=its, nodes=len(mesh.ids), certificate=keys.serial)
        # What was learned under the old plan is not computed again from its records under the new one.
        self._flush()
        self._write_snapshot()

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
            self._since_snapshot += sum(cost(record) for record in batch)
            if self._since_snapshot >= SNAPSHOT_EVERY:
                self._write_snapshot()

    def _write_snapshot(self) -> None:
        """Write a snapshot, with all records before it."""
        batch = self.node.take_journal()
        self._since_snapshot = 0
        self.journal.write(batch)
        state = self.node.snapshot()
        self.journal.write_snapshot(pack(state), self.epoch, named_segments(state))

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
        return self.not_ready is None

    @property
    def not_ready(self) -> str | None:
        """Why no decisions can be made now; None if they can."""
        if self.draining:
            return "the node is stopping"
        if self.node.is_worn_out:
            return WORN_OUT
        numbers = None if self.node.ready else "decision numbers wait for the disk"
        return self.not_alive or self.journal.fault or numbers

    def _committed(self, n: int) -> None:
        """The first n records are on disk: resolve the futures that wait for them."""
        self.node.committed(n)
        for future, (record, response) in list(self._waiting.items()):
            if record <= n and not future.done():
                future.set_result(response)

    def when_durable(self, record: int, response: Response) -> Response | asyncio.Future[Response]:
        """The response if `record` is on disk, else a Future that resolves to it when it is."""
        if record <= self.node.durable:
            return response
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[future] = (record, response)
        future.add_done_callback(self._waiting.pop)
        self.schedule_flush()
        return future


def cost(record: Record) -> float:
    """How much a record counts until the next snapshot."""
    return 1 + len(record.items) / 4 if isinstance(record, Peer) else 1


def load_signer(mesh: Mesh, name: str, folder: Path, serial: str = "") -> Signer | None:
    """The keys of a node in a mesh with signatures, None in one without; InputError if it revokes them."""
    if serial in mesh.revoked:
        raise InputError(
            f"{mesh.path} revokes the certificate {serial} of node {name!r}: "
            f"copy its new {name}.crt and {name}.key to {folder}"
        )
    if not mesh.file.signed:
        return None
    public = {node.id: [node.key, *node.former_keys] for node in mesh.file.nodes}
    signer = Signer(mesh.file.name, *signing_keys(folder, name, public))
    if not signer.verify(mesh.ids[name], b"", signer.sign(b"")):
        raise InputError(f"{folder / name}.key is not the key of node {name!r} in {mesh.path}")
    return signer


def _log(level: str, text: str, **fields: Any) -> None:
    """Log a line with fields, for example the kind of a refusal as in status and metrics."""
    log.log(logging.getLevelNamesMapping()[level.upper()], text, extra={"fields": fields})


def _is_own(error: BaseException) -> bool:
    """Whether an exception passed through the code of this package."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").startswith("rumormill."):
            return True
        trace = trace.tb_next
    return False


def run_node(settings: Settings, stopping: threading.Event | None = None) -> int:
    """Run a node in this process until it is stopped: `rumormill node`; the exit code, 0 or `DEFECT`.

    If `stopping` is set, SIGTERM came before signals are handled here: the node stops as soon as it runs.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)

    sys.setswitchinterval(SWITCH)

    async def main() -> int:
        with contextlib.suppress(asyncio.CancelledError):
            runtime = Runtime(settings)
            if stopping is not None and stopping.is_set():
                runtime.stop()
            return await runtime.run()
        return 0

    return asyncio.run(main())
