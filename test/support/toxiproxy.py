"""toxiproxy (github.com/Shopify/toxiproxy): a TCP proxy that treats a connection as bad networks do.

Unlike the fake API server it knows nothing of HTTP; what goes through it is the API server's own TLS.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from typing import Any

_LOOPBACK = "127.0.0.1"


class Toxiproxy:
    """One server with one proxy. Use it as a context, within the network that it is to be in."""

    def __init__(self, program: Path, upstream: str, log: Path) -> None:
        self._program = program
        self._upstream = upstream
        self._log = log
        self._port = 0

    def __enter__(self) -> Toxiproxy:
        with create_server((_LOOPBACK, 0)) as free:
            self._port = free.getsockname()[1]
        with self._log.open("w") as log:
            words = [self._program, "-host", _LOOPBACK, "-port", str(self._port)]
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait_ready()
            proxy = {"name": "api", "listen": f"{_LOOPBACK}:0", "upstream": self._upstream, "enabled": True}
            self.address = str(self._ask("POST", "/proxies", proxy)["listen"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    @contextmanager
    def toxic(self, kind: str, stream: str = "downstream", name: str = "toxic", **attributes: int) -> Iterator[None]:
        """On all connections, also those that are open. `stream`: downstream is what the API server says."""
        body = {"name": name, "type": kind, "stream": stream, "attributes": attributes}
        self._ask("POST", "/proxies/api/toxics", body)
        try:
            yield
        finally:
            self._ask("DELETE", f"/proxies/api/toxics/{name}")

    @contextmanager
    def down(self) -> Iterator[None]:
        """Connections end, and new ones are refused."""
        self._ask("POST", "/proxies/api", {"enabled": False})
        try:
            yield
        finally:
            # toxiproxy 2.12 opens what it is told to listen at, so the port that it chose must be said.
            self._ask("POST", "/proxies/api", {"listen": self.address, "enabled": True})

    def _wait_ready(self) -> None:
        end = time.monotonic() + 10
        while True:
            try:
                self._ask("GET", "/version")
                return
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{_LOOPBACK}:{self._port}{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")
