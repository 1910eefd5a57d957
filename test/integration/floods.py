"""Who wants to keep others from a port: `floods.py PORT KIND COUNT PEERS` does it until it is killed, and says "ready" when all connections are open.

A program of its own, so that those who measure do not wait for it.
"""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "
_HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
_METRICS = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
# A TLS record that begins a ClientHello of 512 bytes, of which nothing else comes.
_HELLO = bytes.fromhex("16030102000100 01fc0303".replace(" ", ""))
_LOOK_S = 0.05
_CLOSED_BY_US = 64  # in each look, of a kind that comes and goes


@dataclass(frozen=True)
class Kind:
    """What each connection does."""

    says: bytes = b""
    drips_s: float = 0  # then a byte, each so many seconds
    again: bool = False  # says it whenever it is looked at
    ends: bool = False  # it says no more, and stays
    reads: bool = True
    leaves: bool = False  # some go at each look, and others come


KINDS = {
    "a byte each 9 s": Kind(_HALF, drips_s=9),
    "a byte each look": Kind(_HALF, drips_s=_LOOK_S),
    "nothing": Kind(),
    "a head of any length": Kind(_HALF + b"y" * 15_000, drips_s=_LOOK_S),
    "half a head and an end": Kind(_HALF, ends=True),
    "a request and no other": Kind(_HEALTHZ),
    "requests without end": Kind(_HEALTHZ * 50, again=True),
    "metrics without end": Kind(_METRICS, again=True),
    "metrics, never read": Kind(_METRICS * 50, again=True, reads=False),
    "metrics and an end, never read": Kind(_METRICS * 50, ends=True, reads=False),
    "half a handshake": Kind(_HELLO),
    "they come and go": Kind(leaves=True),
    "they ask, come and go": Kind(_HEALTHZ, leaves=True),
}


class _Connection:
    def __init__(self, port: int, kind: Kind, source: str) -> None:
        self._kind = kind
        self._dripped = time.monotonic()
        self._socket = socket.socket()
        self._socket.bind((source, 0))
        self._socket.setblocking(False)
        with suppress(BlockingIOError):
            self._socket.connect(("127.0.0.1", port))
        self._begun = False

    def goes_on(self) -> bool:
        """False: it was hung up."""
        try:
            self._say()
            return not self._kind.reads or self._socket.recv(1 << 16) != b""
        except BlockingIOError:
            return True
        except OSError as error:
            return error.errno == 107  # ENOTCONN: not yet

    def _say(self) -> None:
        if not self._begun or self._kind.again:
            with suppress(BlockingIOError) if self._begun else suppress():
                self._socket.send(self._kind.says)
            if self._kind.ends and not self._begun:
                self._socket.shutdown(socket.SHUT_WR)
            self._begun = True
        elif self._kind.drips_s and time.monotonic() - self._dripped >= self._kind.drips_s:
            self._dripped = time.monotonic()
            self._socket.send(b"y")

    def close(self) -> None:
        self._socket.close()


def _attack(port: int, kind: Kind, count: int, peers: int) -> None:
    """Each that is hung up is opened again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    sources = [f"127.0.{1 + number // 250}.{1 + number % 250}" if number else "127.0.0.1" for number in range(peers)]
    connections: list[_Connection] = []
    for at in range(count):
        connections.append(_Connection(port, kind, sources[at % peers]))
        connections[-1].goes_on()
    print("ready", flush=True)
    turn = 0
    while True:
        for at, connection in enumerate(connections):
            turn += 1
            if not connection.goes_on() or (kind.leaves and turn % _CLOSED_BY_US == 0):
                connection.close()
                connections[at] = _Connection(port, kind, sources[at % peers])
        time.sleep(_LOOK_S)


@contextmanager
def flood(port: int, kind: str, count: int, peers: int = 1) -> Iterator[None]:
    """That many connections from that many addresses, the first of which is our own."""
    words = [sys.executable, str(Path(__file__)), str(port), kind, str(count), str(peers)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=lambda: os.nice(5)) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"ready\n"
            yield
            assert process.poll() is None, "the flood has ended by itself"
        finally:
            process.kill()


if __name__ == "__main__":
    _attack(int(sys.argv[1]), KINDS[sys.argv[2]], int(sys.argv[3]), int(sys.argv[4]))
