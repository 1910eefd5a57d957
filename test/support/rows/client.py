"""A client of the programs: which leaf a server shows, and what it answers to whom."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rows.leaves import Leaf

_TIMEOUT = 15.0


@dataclass(frozen=True)
class Client:
    """Calls one server and takes whatever certificate it shows: each time by a new connection, unless it keeps them."""

    port: int
    host: str = "127.0.0.1"
    leaf: Leaf | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: bool = False  # a connection for each thread
    _kept: threading.local = field(default_factory=threading.local, compare=False)

    def served(self, name: str = "localhost") -> str | None:
        """Fingerprint of the server's leaf; None when nobody answers."""
        context = self._context()
        context.minimum_version = ssl.TLSVersion.TLSv1_3  # there before the server judges the client
        try:
            with socket.create_connection((self.host, self.port), _TIMEOUT) as plain, context.wrap_socket(plain, server_hostname=name) as tls:
                der = tls.getpeercert(binary_form=True)
                return hashlib.sha256(der).hexdigest() if der else None
        except OSError:
            return None

    def get(self, path: str) -> tuple[int, bytes]:
        return self.call("GET", path)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and body; 0 when nobody answers."""
        kept: http.client.HTTPSConnection | None = getattr(self._kept, "connection", None) if self.keep else None
        connection = kept or http.client.HTTPSConnection(self.host, self.port, timeout=_TIMEOUT, context=self._context())
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        done = False
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind, **self.headers})
            answer = connection.getresponse()
            found = answer.status, answer.read()
            done = self.keep
            return found
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            if not done:
                connection.close()
            self._kept.connection = connection if done else None

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """What a call brought that went well."""
        status, answer = self.call(method, path, body)
        assert 200 <= status < 300, f"{method} {path} at {self.port}: {status} {answer[:500].decode(errors='replace')}"
        return json.loads(answer)

    def works(self, path: str) -> bool:
        return self.get(path)[0] == 200

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if self.leaf:
            with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
                file.write(self.leaf.both)
                file.flush()
                context.load_cert_chain(file.name)
        return context
