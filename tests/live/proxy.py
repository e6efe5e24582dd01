"""A userspace proxy between two nodes: a cable that can be pulled out and put in again."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Forwards connections from one local port to another while it is not cut."""

    def __init__(self, port: int, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", port))
        self._pairs: list[socket.socket] = []
        self._lock = threading.Lock()
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
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
                self._pairs += [near, far]
            for one, two in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(one, two), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for each in (source, sink):
                each.close()

    def cut(self) -> None:
        self.is_cut = True
        with self._lock:
            for each in self._pairs:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._pairs.clear()

    def mend(self) -> None:
        self.is_cut = False

    def close(self) -> None:
        self._listening.close()
        self.cut()
