"""What clients of the worked examples say: over TLS of their own each time, with a client certificate, one request."""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass

_TIMEOUT = 30.0  # seconds


@dataclass(frozen=True)
class Protocol:
    """What is sent before TLS and what must come back; the request; and how an answer ends, of which `good` must be a part."""

    request: bytes
    end: bytes
    good: bytes
    prelude: bytes = b""
    granted: bytes = b""


def _postgresql(kind: bytes, body: bytes) -> bytes:
    """One message of the frontend (PostgreSQL 15, 55.7); the start-up packet has no kind."""
    return kind + struct.pack("!I", len(body) + 4) + body


# A session of role app, one query, and the end, in one go: a client that authenticates by certificate is asked for nothing.
_SESSION = (
    _postgresql(b"", struct.pack("!I", 196608) + b"user\0app\0database\0postgres\0\0")
    + _postgresql(b"Q", b"SELECT 1\0")
    + _postgresql(b"X", b"")
)

PROTOCOLS: Mapping[str, Protocol] = {
    "http": Protocol(b"GET / HTTP/1.1\r\nHost: example\r\nConnection: close\r\n\r\n", b"\r\n", b"HTTP/1.1 200 "),
    "postgresql": Protocol(_SESSION, b"SELECT 1\0", b"SELECT 1\0", prelude=struct.pack("!II", 8, 80877103), granted=b"S"),
    "redis": Protocol(b"PING\r\n", b"\r\n", b"+PONG"),
}


@dataclass(frozen=True)
class Answer:
    ok: bool
    why: str  # not
    leaf: str = ""  # SHA-256 of the certificate that was served, in hexadecimal
    resumed: bool = False
    session: ssl.SSLSession | None = None


def ask(ip: str, port: int, protocol: Protocol, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> Answer:
    """One request. `context` does not look at names: they are the load generator's to verify."""
    try:
        with socket.create_connection((ip, port), _TIMEOUT) as plain:
            if protocol.prelude:
                plain.sendall(protocol.prelude)
                if plain.recv(1) != protocol.granted:
                    return Answer(False, "TLS is not granted")
            with context.wrap_socket(plain, session=session) as tls:
                return _talk(tls, protocol)
    except OSError as error:  # ssl.SSLError is one
        return Answer(False, str(error))


def _talk(tls: ssl.SSLSocket, protocol: Protocol) -> Answer:
    leaf = hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()
    tls.sendall(protocol.request)
    answer = b""
    while protocol.end not in answer and (piece := tls.recv(4096)):
        answer += piece
    if protocol.good in answer:
        return Answer(True, "", leaf, bool(tls.session_reused), tls.session)
    return Answer(False, f"it said {answer[:80]!r}", leaf, bool(tls.session_reused), tls.session)
