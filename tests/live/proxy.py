"""A userspace proxy between two nodes: a cable that can be pulled out and put in again."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


class Proxy:
    """Forwards connections from one local port to another while it is not cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._ending = False
        self.is_cut = False
        self._begin(self._accept)

    def _begin(self, work: Callable[..., None], *given: socket.socket) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listening.accept()
            if self._ending:
                near.close()
                return
            try:
                if self.is_cut:
                    raise OSError
                far = socket.create_connection(("127.0.0.1", self._target), timeout=2)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._pairs.append((near, far))
            self._begin(self._copy, near, far)
            self._begin(self._copy, far, near)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):  # the other direction ends too
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.is_cut = True
        with self._lock:
            for pair in self._pairs:
                for each in pair:
                    with contextlib.suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.is_cut = False

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *error: object) -> None:
        """Everything ends, and every socket is closed."""
        self._ending = True
        with socket.create_connection(("127.0.0.1", self.port), timeout=10):
            self._threads[0].join(30)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(30)
        for pair in self._pairs:
            for each in pair:
                each.close()
