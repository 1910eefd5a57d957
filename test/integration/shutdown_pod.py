"""A pod on this machine: certroll-shutdown-manager beside a proxy whose admin interface may be faulty."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane import ROOT
from sidecar_pod import PATIENCE_S, wait_for

sys.path[:0] = [str(ROOT / "test" / "support")]

import sanitizers  # noqa: E402

PROGRAM = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "bin" / "certroll-shutdown-manager"

Answer = Callable[[socket.socket], None]


def text(body: str, status: str = "200 OK") -> Answer:
    reply = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    return lambda connection: connection.sendall(reply)


def raw(reply: bytes) -> Answer:
    return lambda connection: connection.sendall(reply)


def silence(connection: socket.socket) -> None:
    """Until the other side hangs up."""
    connection.settimeout(PATIENCE_S)
    while connection.recv(4096):
        pass


def drip(connection: socket.socket) -> None:
    """An answer that would be right, if anybody waited for its end."""
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n0":
        connection.sendall(bytes([byte]))
        time.sleep(0.2)


class Proxy:
    """Told to drain by POST /drain, and asked for a number at /count: open, or whatever the test puts in its place."""

    def __init__(self) -> None:
        self.open = 0
        self.begins = 0
        self.counts = 0
        self.on_begin: Answer | None = None
        self.on_count: Answer | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def flags(self) -> list[str]:
        base = f"http://127.0.0.1:{self.port}"
        return ["--proxy", "generic", "--begin-url", f"{base}/drain", "--count-url", f"{base}/count"]

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(PATIENCE_S)
            try:
                self._answer(connection, connection.recv(65536))
            except OSError:
                pass  # of one request, whose time was over

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        if request.startswith(b"POST "):
            self.begins += 1
            (self.on_begin or text("ok"))(connection)
        elif request:
            self.counts += 1
            (self.on_count or text(f"{self.open}\n"))(connection)


@contextmanager
def a_proxy() -> Iterator[Proxy]:
    proxy = Proxy()
    try:
        yield proxy
    finally:
        proxy.close()


class Manager:
    """certroll-shutdown-manager with these arguments. Its log must not have a sanitizer's report."""

    def __init__(self, log: Path, *words: str | Path, program: str | Path = PROGRAM, stderr: int | None = None) -> None:
        """stderr: goes there, and not to the log."""
        self._log = log
        with log.open("ab") as out:
            self._begin = out.tell()
            to = out if stderr is None else stderr
            self.process = subprocess.Popen([program, *words], stderr=to, env={**os.environ, **sanitizers.ENVIRONMENT})

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self._log.read_bytes()[self._begin :].decode()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log().splitlines()]

    def says(self, what: str) -> bool:
        return what in self.log()

    def wait_said(self, what: str) -> None:
        wait_for(f"'{what}' is said: {self.log()}", lambda: self.says(what))

    @property
    def port(self) -> int:
        def served() -> int:
            assert self.process.poll() is None, self.log()
            found = re.search(r'"msg":"serving".*"port":"(\d+)"', self.log())
            return int(found[1]) if found else 0

        return int(wait_for("pages are served", served))

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def status(self) -> dict[str, Any]:
        code, page = self.get("/status")
        assert code == 200
        return dict(json.loads(page))

    def wait_status(self, **wanted: Any) -> dict[str, Any]:
        def reached() -> Any:
            status = self.status()
            return status.items() >= wanted.items() and status

        return dict(wait_for(f"status {wanted}", reached))

    def ask(self, path: str = "/shutdown") -> Waiting:
        return Waiting(self, path)

    def metric(self, line: str) -> float:
        found = re.search(rf"^{re.escape(line)} (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        assert found, line
        return float(found[1])

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """Its exit status, once it has ended by itself."""
        status = self.process.wait(PATIENCE_S)
        assert sanitizers.report_in(self._log) is None
        return status


class Waiting:
    """A request that may take its time; the manager has it when this is made."""

    def __init__(self, manager: Manager, path: str) -> None:
        self._connection = socket.create_connection(("127.0.0.1", manager.port), timeout=PATIENCE_S)
        self._connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())

    def is_over(self) -> bool:
        self._connection.setblocking(False)
        try:
            return self._connection.recv(1, socket.MSG_PEEK) is not None
        except BlockingIOError:
            return False
        finally:
            self._connection.settimeout(PATIENCE_S)

    def answer(self) -> tuple[int, str]:
        """(0, ""): it hung up without one."""
        heard = b""
        with self._connection:
            try:
                while piece := self._connection.recv(65536):
                    heard += piece
            except ConnectionResetError:
                pass
        head, _, body = heard.decode().partition("\r\n\r\n")
        return (int(head.split()[1]), body) if head else (0, "")

    def hang_up(self) -> None:
        self._connection.close()
