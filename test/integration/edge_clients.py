"""Clients of a proxy that drains: what they ask for, and what they see of its end. Also the server behind the proxy."""

from __future__ import annotations

import http.server
import select
import socket
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import hpack  # h2 brings it
from own_network import own_network

PATIENCE_S = 60.0
Address = tuple[str, int] | str  # str: the path of a Unix socket


def connect(address: Address) -> socket.socket:
    """From now on nothing may take longer than PATIENCE_S."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(PATIENCE_S)
        sock.connect(address)
        return sock
    return socket.create_connection(address, timeout=PATIENCE_S)


class Cut(Exception):
    """What was asked for did not come whole."""


# --- HTTP/1.1


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def connect_through(address: Address) -> socket.socket:
    """A TCP session that the proxy has accepted and the upstream answers."""
    sock = connect(address)
    sock.sendall(b"on")
    assert sock.recv(16) == b"on"
    return sock


class Http1:
    """A connection that is kept."""

    def __init__(self, address: Address) -> None:
        self.sock = connect(address)
        self._heard = b""

    def close(self) -> None:
        self.sock.close()

    def send(self, path: str) -> None:
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())

    def answer(self) -> Answer:
        head = self._until(b"\r\n\r\n").decode()
        status, *lines = head.splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        if "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            body = self._chunks()
        return Answer(int(status.split()[1]), headers, body)

    def get(self, path: str = "/") -> Answer:
        try:
            self.send(path)
            return self.answer()
        except ConnectionError as error:  # who asks on a connection that was closed is told by a reset, or by its end
            raise Cut(str(error)) from error

    def is_open(self) -> bool:
        return is_open(self.sock)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._exactly(size + 2)[:size]
        self._exactly(2)
        return body

    def _until(self, end: bytes) -> bytes:
        while end not in self._heard:
            self._hear()
        found, _, self._heard = self._heard.partition(end)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._heard) < size:
            self._hear()
        found, self._heard = self._heard[:size], self._heard[size:]
        return found

    def _hear(self) -> None:
        if not (data := self.sock.recv(65536)):
            raise Cut("closed in the midst of it")
        self._heard += data


def is_open(sock: socket.socket) -> bool:
    """Nothing has come, also no end."""
    return not select.select([sock], [], [], 0)[0]


# --- HTTP/2


class Http2:
    """A connection for frames (RFC 9113, section 4), with prior knowledge: the order in which they come is what is looked at, so
    that no library hides what comes behind a GOAWAY."""

    DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
    _END_STREAM, _END_HEADERS, _ACK = 0x1, 0x4, 0x1
    LAST_STREAM = 2**31 - 1  # of a GOAWAY that only announces

    def __init__(self, address: Address) -> None:
        self.sock = connect(address)
        self.goaways: list[int] = []  # their last streams
        self.ended = False
        self._heard = b""
        self._encoder = hpack.Encoder()
        self._stream = -1
        self._over: set[int] = set()
        self._bodies: dict[int, bytes] = {}
        self.sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(self.SETTINGS, 0, 0))

    def close(self) -> None:
        self.sock.close()

    def send(self, path: str) -> int:
        self._stream += 2
        headers = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "test")]
        block = self._encoder.encode(headers)
        self.sock.sendall(_frame(self.HEADERS, self._END_STREAM | self._END_HEADERS, self._stream, block))
        return self._stream

    def answer(self, stream: int) -> bytes:
        while stream not in self._over:
            self.hear()
        return self._bodies.get(stream, b"")

    def get(self, path: str = "/") -> bytes:
        return self.answer(self.send(path))

    def hear(self) -> None:
        """Whatever comes next."""
        if not (data := self.sock.recv(65536)):
            self.ended = True
            raise Cut("closed in the midst of it")
        self._heard += data
        while len(self._heard) >= 9 and len(self._heard) >= 9 + (size := int.from_bytes(self._heard[:3], "big")):
            kind, flags, stream = self._heard[3], self._heard[4], int.from_bytes(self._heard[5:9], "big")
            payload, self._heard = self._heard[9 : 9 + size], self._heard[9 + size :]
            self._take(kind, flags, stream, payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == self.GOAWAY:
            self.goaways.append(struct.unpack(">I", payload[:4])[0])
        elif kind == self.RST_STREAM:
            raise Cut(f"stream {stream} was reset")
        elif kind == self.PING and not flags & self._ACK:
            self.sock.sendall(_frame(self.PING, self._ACK, 0, payload))
        elif kind == self.DATA:
            self._bodies[stream] = self._bodies.get(stream, b"") + payload
        if kind in (self.DATA, self.HEADERS) and flags & self._END_STREAM:
            self._over.add(stream)


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


# --- what stands behind the proxy


class Upstream:
    """HTTP/1.1: /?seconds=2 answers so late; &drip=1: it begins at once and ends so late. TCP: says back what it is told."""

    END = b"end"

    def __init__(self, host: str, http_port: int, tcp_port: int) -> None:
        self._http = _Server((host, http_port), _Handler)
        self._tcp = socket.create_server((host, tcp_port))
        for serve in (self._http.serve_forever, self._accept):
            threading.Thread(target=serve, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._tcp.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=_echo, args=(sock,), daemon=True).start()


@contextmanager
def upstream_network(http_port: int, tcp_port: int) -> Iterator[None]:
    """A network of the test's own, with an upstream on loopback."""
    with own_network():
        upstream = Upstream("127.0.0.1", http_port, tcp_port)
        yield
        upstream.close()


def _echo(sock: socket.socket) -> None:
    with sock:
        try:
            while data := sock.recv(4096):
                sock.sendall(data)
        except OSError:
            pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever was cut is seen by the clients."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        seconds = float(query.get("seconds", ["0"])[0])
        drips = "drip" in query
        if not drips:
            time.sleep(seconds)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = 10 if drips else 1
        for _ in range(pieces):
            time.sleep(seconds / pieces if drips else 0)
            self.wfile.write(b"4\r\ndrip\r\n")
        self.wfile.write(b"3\r\nend\r\n0\r\n\r\n")

    def log_message(self, format: str, *words: object) -> None:
        pass


# --- load


@dataclass
class Load:
    """Clients in the midst of something, each in a thread of its own; what each of them saw."""

    http: Address
    tcp: Address
    http2: Address | None = None  # where it is not the same port
    done: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    begun: int = 0
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)

    def begin(self, seconds: float, each: int) -> None:
        """So many of each kind, over connections of their own, that take up to so long. Returns when all have asked."""
        asked = threading.Barrier(4 * each + 1)
        for number in range(each):
            late = seconds * (number + 1) / each
            for kind in (self._late, self._drips, self._streams, self._talks):
                self._start(kind, late, asked)
        asked.wait(PATIENCE_S)

    def keep_coming(self) -> None:
        """Short requests, each on a new connection, until `stop_coming`."""
        self._start(self._short)

    def stop_coming(self) -> None:
        """As when load balancers have learned of the end."""
        self._stop.set()

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a client waits for ever"

    def _start(self, kind: Callable[..., None], *words: object) -> None:
        def run() -> None:
            kind(*words)

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def _over(self, kind: str, problem: str = "") -> None:
        with self._lock:
            (self.cut if problem else self.done).append(f"{kind}: {problem}" if problem else kind)

    def _try(self, kind: str, ask: Callable[[], bytes]) -> None:
        try:
            body = ask()
            self._over(kind, "" if body.endswith(Upstream.END) else f"an answer without its end: {body[-20:]!r}")
        except (Cut, OSError, ValueError) as error:
            self._over(kind, str(error) or type(error).__name__)

    def _late(self, seconds: float, asked: threading.Barrier) -> None:
        client = Http1(self.http)
        client.send(f"/?seconds={seconds}")
        asked.wait(PATIENCE_S)
        self._try("late", lambda: client.answer().body)

    def _drips(self, seconds: float, asked: threading.Barrier) -> None:
        client = Http1(self.http)
        client.send(f"/?drip=1&seconds={seconds}")
        asked.wait(PATIENCE_S)
        self._try("drips", lambda: client.answer().body)
        client.close()

    def _streams(self, seconds: float, asked: threading.Barrier) -> None:
        client = Http2(self.http2 or self.http)
        stream = client.send(f"/?seconds={seconds}")
        asked.wait(PATIENCE_S)
        self._try("HTTP/2", lambda: client.answer(stream))
        client.close()

    def _talks(self, seconds: float, asked: threading.Barrier) -> None:
        sock = connect(self.tcp)
        sock.sendall(b"begin")
        assert sock.recv(16) == b"begin"
        asked.wait(PATIENCE_S)

        def talk() -> bytes:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                sock.sendall(b"on")
                if not sock.recv(16):
                    raise Cut("closed in the midst of it")
                time.sleep(0.05)
            sock.sendall(Upstream.END)
            return sock.recv(16)

        self._try("TCP", talk)
        sock.close()

    def _short(self) -> None:
        while not self._stop.is_set():
            try:
                client = Http1(self.http)
            except OSError as error:
                self._over("short", str(error))
                continue
            self._try("short", lambda: client.get().body)  # noqa: B023
            client.close()
