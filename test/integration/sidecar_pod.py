"""A pod on this machine: certroll-sidecar beside a small TLS server, and Secret volumes as a kubelet writes them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from control_plane import ROOT

sys.path[:0] = [str(ROOT / "hack" / "lib"), str(ROOT / "test" / "support")]

import sanitizers  # noqa: E402

PROGRAM = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "bin" / "certroll-sidecar"
PATIENCE_S = 60.0

Config = Mapping[str, Any]


def wait_for(what: str, check: Callable[[], Any], seconds: float = PATIENCE_S) -> Any:
    """What check says, once that is true."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.02)
    return value


def leaf_at(port: int) -> str:
    """What a client is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, context.wrap_socket(plain) as tls:
        return hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()


class Program:
    """Serves TLS with the files that it has read, and reads them anew when its Unix socket is told to: "reload" is answered
    with "OK", or with an error as often as it was asked to fail. A deaf one says "OK" and does nothing."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._folder = tempfile.TemporaryDirectory(prefix="certroll-")  # not in tmp_path: sockets cannot be copied as logs are
        self.socket = Path(self._folder.name) / "admin.sock"
        self.reloads = 0
        self.failures_left = 0
        self.deaf = False
        self._context = self._load()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._admin = socket.socket(socket.AF_UNIX)
        self._admin.bind(str(self.socket))
        self._admin.listen()
        self.port = int(self._server.getsockname()[1])
        for serve, listener in ((self._handshake, self._server), (self._command, self._admin)):
            threading.Thread(target=self._accept, args=(listener, serve), daemon=True).start()

    def close(self) -> None:
        self._server.close()
        self._admin.close()
        self._folder.cleanup()

    def leaf(self) -> str:
        return leaf_at(self.port)

    def reload(self) -> None:
        self.reloads += 1
        if not self.deaf:
            self._context = self._load()

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._files)
        return context

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                try:
                    serve(connection)
                except OSError:
                    pass  # of one client

    def _handshake(self, connection: socket.socket) -> None:
        with self._context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(1)

    def _command(self, connection: socket.socket) -> None:
        if connection.recv(64) != b"reload\n":
            connection.sendall(b"unknown\n")
        elif self.failures_left:
            self.failures_left -= 1
            connection.sendall(b"error: busy\n")
        else:
            self.reload()
            connection.sendall(b"OK\n")


class Sidecar:
    """certroll-sidecar with a configuration. Its log is read to its end, and must not have a sanitizer's report."""

    def __init__(self, folder: Path, config: Config, *flags: str, program: Path = PROGRAM) -> None:
        self._log = folder / "sidecar.log"
        self.config = folder / "sidecar.yaml"
        self.config.write_text(json.dumps(config))
        words = [str(program), "--config", str(self.config), "--address", "127.0.0.1:0", "--log-level", "debug", *flags]
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(words, stderr=log, env={**os.environ, **sanitizers.ENVIRONMENT})
        self._port = wait_for("the page is served", lambda: self.port_of("page"))

    def __enter__(self) -> Sidecar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def port_of(self, what: str) -> int:
        """0: it is not served yet."""
        assert self.process.poll() is None, self.log()
        found = re.search(rf'"msg":"serving","what":"{what}".*"port":"(\d+)"', self.log())
        return int(found[1]) if found else 0

    def log(self) -> str:
        return self._log.read_bytes()[self._begin :].decode()

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def material(self, index: int = 0) -> dict[str, Any]:
        status, page = self.get("/status")
        assert status == 200
        return dict(json.loads(page)["materials"][index])

    def wait_state(self, state: str, index: int = 0) -> dict[str, Any]:
        return wait_for(f"state {state}", lambda: (m := self.material(index))["state"] == state and m)

    def wait_delivered(self, leaf: str, index: int = 0) -> dict[str, Any]:
        def delivered() -> Any:
            material = self.material(index)
            return material["state"] == "Delivered" and material["delivered"].get("leaf") == leaf and material

        return wait_for(f"{leaf} is delivered", delivered)

    def metric(self, line: str) -> float:
        """Of the series that begins with line; 0: there is none."""
        found = re.search(rf"^{re.escape(line)} (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0

    def stop(self) -> float:
        """Seconds until it had ended."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self.log()
        assert sanitizers.report_in(self._log) is None
        return time.monotonic() - began

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
