"""A proxy between a controller and the API server that sees every write, and can have the controller killed at one.

It ends TLS on both sides and speaks HTTP/1.1. Headers, bodies and status pass unchanged, the bearer token among them, so the
API server sees the controller's own user; only a client certificate cannot be passed on, so with a kubeconfig that has
one the proxy presents it itself. Answers are streamed as they come, watches above all.

A write that has arrived can be dropped before it is forwarded, or its answer after it was, and with it whatever else its
sender writes until the kill is over, which takes a while: exactly what a crash at that moment does. A Lease is renewed by
the clock, whatever else happens: that is no write of a rotation, and only passed on; but from the moment a trap has caught
a write until `set`, nobody else gets one, so that nobody takes over before the test is ready.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from tls_ends import client_context, self_signed, server_context
from write_points import READS, Namer, Point, Target, Write

When = Literal["before", "after"]

_BLOCK = 64 * 1024
_LOOPBACK = "127.0.0.1"
_NO_TOKEN = "the-proxy-has-a-certificate"
# RFC 9110, 7.6.1: these belong to a connection, not to the message.
_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
})


# A Lease is renewed all the time; who one is is a question, though it is posted.
_NO_WRITES = frozenset({"leases", "selfsubjectreviews"})


class Trap:
    """Springs once. `strike` is called in the proxy's thread with the client's address, and must have ended it on return.

    `at` is a point, or how many writes there must have been since the trap was set, the one at which it springs included.
    """

    def __init__(self, at: Point | int, when: When, strike: Callable[[str], None]) -> None:
        self.at = at
        self.when = when
        self._strike = strike
        self._over = threading.Event()
        self._failure: Exception | None = None

    def sprung(self, timeout: float = 0.0) -> bool:
        """Whether what it caught is dead, waited for so many seconds. AssertionError: it could not be killed."""
        over = self._over.wait(timeout)
        if over and self._failure:
            raise AssertionError(f"the kill {self.when} {self.at} failed: {self._failure!r}") from self._failure
        return over

    def fits(self, write: Write, count: int, when: When) -> bool:
        return when == self.when and (self.at == count if isinstance(self.at, int) else self.at == write.point)

    def spring(self, client: str) -> None:
        try:
            self._strike(client)
        except Exception as error:  # for the thread that waits for the kill; here nobody would hear of it
            self._failure = error
        self._over.set()

    def outlast(self) -> bool:
        """Whether the kill was under way. Returns when it is over."""
        under_way = not self._over.is_set()
        self._over.wait()
        return under_way


class Dropped(Exception):
    """The controller was killed at this request: it gets no answer."""


class WriteProxy:
    """Listens in the network of whoever creates it. Use it as a context."""

    def __init__(
        self,
        kubeconfig: Mapping[str, Any],
        folder: Path,
        address: str = _LOOPBACK,
        certificate: Path | None = None,
        streaming_lists: bool = True,
    ) -> None:
        """`kubeconfig` is what `kubectl config view --raw --minify -o json` prints; `folder` gets the proxy's key.

        With a `certificate` for the address (its key beside it, as .key) whoever trusts the cluster's CA can be led here.
        Without streaming lists the API server looks like one before 1.34, which refuses them.
        """
        self.streaming_lists = streaming_lists
        self._kubeconfig = kubeconfig
        self._certificate = certificate or self_signed(folder, "write-proxy", _LOOPBACK)
        self._upstream = _Upstream.of(kubeconfig)
        self._lock = threading.Lock()
        self._namer = Namer()
        self._writes: list[Write] = []
        self._trap: Trap | None = None
        self._caught: str | None = None  # by a trap, and nothing was set since: nobody else is to lead
        self._catcher: Trap | None = None  # which trap
        self._dead: set[str] = set()  # in this recording: what they sent may still arrive, and springs nothing
        self._countable: list[Write] = []  # of the living, since the trap was set
        self._sockets: set[socket.socket] = set()
        self._last_write = time.monotonic()
        self.errors: list[str] = []  # of the proxy itself; there should be none
        self._server = _Server(self, (address, 0), server_context(self._certificate, ["http/1.1"]))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="write-proxy", daemon=True)

    def __enter__(self) -> WriteProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.disconnect()

    @property
    def endpoint(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def address(self) -> str:
        return "https://{}:{}".format(*self.endpoint)

    def kubeconfig(self, path: Path) -> Path:
        """Write the kubeconfig that leads here."""
        authority = base64.b64encode(self._certificate.read_bytes()).decode()
        # kubectl asks for a name and a password when it has nothing at all.
        token = self._kubeconfig["users"][0]["user"].get("token", _NO_TOKEN)
        document = dict(self._kubeconfig) | {
            "clusters": [{"name": "proxy", "cluster": {"server": self.address, "certificate-authority-data": authority}}],
            "users": [{"name": "proxy", "user": {"token": token}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document))
        return path

    # --- what was written

    def begin(self, trap: Trap | None = None) -> None:
        """Record anew, and count each name from one."""
        with self._lock:
            self._writes = []
            self._dead.clear()
            self._namer.restart()
        self.set(trap)

    def set(self, trap: Trap | None) -> None:
        """In the midst of a recording."""
        with self._lock:
            self._trap = trap
            self._caught = None
            self._countable = []

    def bury(self, client: str) -> None:
        """Nobody at this address can be killed again before the next recording."""
        with self._lock:
            self._dead.add(client)

    def take_back(self, trap: Trap) -> bool:
        """Whether it had caught nothing, and never will. Else it springs, or has."""
        with self._lock:
            if self._trap is not trap:
                return False
            self._trap = None
            return True

    def writes(self) -> list[Write]:
        with self._lock:
            return list(self._writes)

    def quiet_for(self) -> float:
        """Seconds since the last write came or was answered."""
        with self._lock:
            return time.monotonic() - self._last_write

    def disconnect(self) -> None:
        """End all connections, as the death of the client does; watches would only notice at their next event."""
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # not SSLSocket's, which pulls TLS from under its reader

    # --- for the handler

    def may_lead(self, client: str) -> bool:
        """A leader that is not dead yet renews: without its Lease it would end by itself before a slow kill."""
        with self._lock:
            return self._caught in (None, client)

    def arrived(self, client: str, method: str, path: str, body: bytes) -> Write:
        self._hold_back(client)
        with self._lock:
            point, target = self._namer.name(method, path, body)
            write = Write(point, target, method)
            self._writes.append(write)
            if client not in self._dead:
                self._countable.append(write)
            self._last_write = write.at
        self._maybe_spring(client, write, "before")
        return write

    def answered(self, client: str, write: Write, body: bytes, status: int) -> None:
        with self._lock:
            write.status = status
            self._namer.answered(write, body)
            self._last_write = time.monotonic()
        self._maybe_spring(client, write, "after")

    def _maybe_spring(self, client: str, write: Write, when: When) -> None:
        with self._lock:
            trap = self._trap
            # What was sent before the trap was set is no write of its own: its sender may be dead, or of another recording.
            if not trap or client in self._dead or write not in self._countable:
                return
            if not trap.fits(write, self._countable.index(write) + 1, when):
                return
            self._trap, self._caught, self._catcher = None, client, trap
        trap.spring(client)
        raise Dropped

    def _hold_back(self, client: str) -> None:
        """What would never have been sent, had the kill taken no time."""
        with self._lock:
            catcher = self._catcher if self._caught == client else None
        if catcher and catcher.outlast():
            raise Dropped

    @contextlib.contextmanager
    def tracked(self, one: socket.socket) -> Iterator[None]:
        with self._lock:
            self._sockets.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(one)

    @contextlib.contextmanager
    def exchange(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> Iterator[http.client.HTTPResponse]:
        """One request to the API server, on a connection of its own: a kept one may die just when a write is on it."""
        connection = self._upstream.connect()
        try:
            connection.connect()
            with self.tracked(connection.sock):
                _send(connection, method, path, headers, body)
                yield connection.getresponse()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, proxy: WriteProxy, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self.proxy = proxy
        self._context = context
        super().__init__(address, _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread, so that a slow handshake holds up nobody else."""
        with self._context.wrap_socket(request, server_side=True) as secured, self.proxy.tracked(secured):
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that ends early is a client that was killed: what all this is for."""
        error = sys.exc_info()[1]
        if not isinstance(error, (OSError, http.client.HTTPException)):
            self.proxy.errors.append(repr(error))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def pass_on(self) -> None:
        proxy, client = self.server.proxy, str(self.client_address[0])
        body = self._body()
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP]
        if "sendInitialEvents=" in self.path and not proxy.streaming_lists:
            self._refuse_streaming_list()
            return
        try:
            if self._is_of_lease() and not proxy.may_lead(client):
                raise Dropped
            write = proxy.arrived(client, self.command, self.path, body or b"") if self._is_recorded() else None
            with proxy.exchange(self.command, self.path, headers, body) as response:
                if write:
                    # Read whole first: only then it is certain that the API server is done with it.
                    answer = response.read()
                    proxy.answered(client, write, body or b"", response.status)
                    self._answer(response, answer)
                else:
                    self._stream(response)
        except Dropped:
            self.close_connection = True

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

    def _is_recorded(self) -> bool:
        return self.command not in READS and Target.of(self.path).kind not in _NO_WRITES and "dryRun=" not in self.path

    def _is_of_lease(self) -> bool:
        return self.command not in READS and Target.of(self.path).kind == "leases"

    def _body(self) -> bytes | None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        length = self.headers.get("Content-Length")
        return None if length is None else self.rfile.read(int(length))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers

    def _head(self, response: http.client.HTTPResponse, *framing: tuple[str, str]) -> None:
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        for name, value in framing:
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, response: http.client.HTTPResponse, body: bytes) -> None:
        self._head(response, ("Content-Length", str(len(body))))
        self.wfile.write(body)

    def _refuse_streaming_list(self) -> None:
        """As k8s.io/apimachinery's ValidateListOptions does without the feature gate WatchList."""
        message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422, "message": message}
        body = json.dumps(status).encode()
        self.send_response_only(422)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, response: http.client.HTTPResponse) -> None:
        if self.command == "HEAD" or response.status in (204, 304):
            self._head(response)
            return
        if response.length is not None and not response.chunked:
            self._head(response, ("Content-Length", str(response.length)))
            while block := response.read1(_BLOCK):
                self.wfile.write(block)
            return
        self._head(response, ("Transfer-Encoding", "chunked"))
        while block := response.read1(_BLOCK):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass  # what matters is recorded


@dataclass(frozen=True)
class _Upstream:
    host: str
    port: int
    context: ssl.SSLContext

    @staticmethod
    def of(kubeconfig: Mapping[str, Any]) -> _Upstream:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        server = urllib.parse.urlsplit(cluster["server"])
        return _Upstream(server.hostname or "", server.port or 443, client_context(cluster, user))

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self.context)


def _send(
    connection: http.client.HTTPSConnection, method: str, path: str, headers: list[tuple[str, str]], body: bytes | None
) -> None:
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        if value != f"Bearer {_NO_TOKEN}":
            connection.putheader(name, value)
    connection.putheader("Connection", "close")
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
