"""A gate on the way to the API server, for TCP as it is: shut, stopped, or cut at any byte. TLS goes through it unbroken."""

from __future__ import annotations

import contextlib
import socket
import threading

_BLOCK = 64 * 1024
_LOOPBACK = "127.0.0.1"


class Gate:
    """Listens in the network of whoever creates it. Use it as a context.

    Leave a client's --kubeconfig with this address and `tls-server-name` of the server's own.
    """

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._flowing = threading.Event()
        self._flowing.set()
        self._open = True
        self._listener = socket.create_server((_LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0  # connections that were cut
        threading.Thread(target=self._accept, name="gate", daemon=True).start()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.flow()
        self.cut()

    def cut(self) -> None:
        """End what is there, wherever it is."""
        with self._lock:
            sockets = list(self._sockets)
        self.cuts += len(sockets) // 2
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def shut(self) -> None:
        """Cut, and end what comes at once, until it is opened."""
        with self._lock:
            self._open = False
        self.cut()

    def open(self) -> None:
        with self._lock:
            self._open = True

    def stop(self) -> None:
        """Nothing goes through, and nobody is told."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the end
            self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(client.close)
            with contextlib.suppress(OSError):
                server = socket.create_connection(self._upstream, timeout=5)
                server.settimeout(None)
                stack.callback(server.close)
                with self._lock:
                    if not self._open:
                        return
                    self._sockets |= {client, server}
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stack.pop_all()
                both = _Both(self, client, server)
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=both.pump, args=(source, sink), daemon=True).start()

    def _forget(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._sockets -= set(sockets)


class _Both:
    """The two directions of a connection; whichever ends, ends both, and the last one closes."""

    def __init__(self, gate: Gate, client: socket.socket, server: socket.socket) -> None:
        self._gate = gate
        self._ends = (client, server)
        self._left = 2
        self._lock = threading.Lock()

    def pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(_BLOCK):
                self._gate._flowing.wait()
                sink.sendall(block)
        for one in self._ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._left -= 1
            last = not self._left
        if last:
            self._gate._forget(*self._ends)
            for one in self._ends:
                one.close()
