"""A TLS server that a program under test calls: it sees which leaf the program presents and whether it is trusted."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from programs.material import Generations

_TIMEOUT = 3.0


@dataclass(frozen=True)
class Call:
    """One that came to its first words, or did not."""

    presented: int  # the generation of our leaf
    trusted: bool  # the caller spoke to us
    leaf: str | None  # fingerprint of its leaf


class Peer:
    """Listens from the beginning; what it presents can be changed at any time."""

    def __init__(self, generations: Generations, port: int) -> None:
        self._generations = generations
        self._presented = 1
        self._calls: list[Call] = []
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def meet(self, generation: int, provoke: Callable[[], bool]) -> Call | None:
        """The program's next call, when we present the leaf of that generation; None when there is none in time.

        `provoke` makes the program call, unless it cannot (False).
        """
        with self._changed:
            self._presented = generation
            self._calls.clear()
        if not provoke():
            return None
        end = time.monotonic() + _TIMEOUT
        with self._changed:
            while True:
                for call in self._calls:
                    if call.presented == generation:
                        return call
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    return None

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(plain,), daemon=True).start()

    def _answer(self, plain: socket.socket) -> None:
        presented = self._presented
        plain.settimeout(_TIMEOUT)
        with plain:
            try:
                with self._context(presented).wrap_socket(plain, server_side=True) as tls:
                    # nginx judges our certificate after the handshake: only who says something trusts us.
                    trusted = bool(tls.recv(4096))
                    der = tls.getpeercert(binary_form=True)
                    self._record(Call(presented, trusted, hashlib.sha256(der).hexdigest() if der else None))
                    tls.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
            except OSError:  # an alert, or just the end of the connection
                self._record(Call(presented, False, None))

    def _record(self, call: Call) -> None:
        with self._changed:
            self._calls.append(call)
            self._changed.notify_all()

    def _context(self, presented: int) -> ssl.SSLContext:
        """Asks for a certificate and takes it whichever of our CAs it is from. Without tickets each handshake is a full one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._generations[presented].peer.file)
        context.load_verify_locations(cadata=self._generations.trust())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        return context
