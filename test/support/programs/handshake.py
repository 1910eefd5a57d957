"""A server as its clients see it: which leaf it shows, and whose client certificates it accepts."""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from programs.material import Identity

_TIMEOUT = 3.0

HTTP_REQUEST = b"GET / HTTP/1.0\r\n\r\n"


def _no_prelude(_: socket.socket) -> None:
    """TLS from the first byte."""


@dataclass(frozen=True)
class Server:
    """A port of a program. After the handshake `request` is sent, and an answer that `accepted` likes means that the
    client's certificate was accepted: in TLS 1.3 a refusal comes only after the client's handshake is over."""

    port: int
    request: bytes = HTTP_REQUEST
    accepted: Callable[[bytes], bool] = bool
    prelude: Callable[[socket.socket], None] = _no_prelude
    alpn: tuple[str, ...] = field(default=())

    def leaf(self) -> str | None:
        """SHA-256 of the certificate that it shows, in hexadecimal; None when nobody answers.

        In TLS 1.3, so that it is there even when the server then refuses a client without a certificate.
        """
        context = self._context()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            with self._connect(context) as tls:
                der = tls.getpeercert(binary_form=True)
                return hashlib.sha256(der).hexdigest() if der else None
        except OSError:
            return None

    def accepts(self, client: Identity) -> bool:
        context = self._context()
        context.load_cert_chain(client.file)
        try:
            with self._connect(context) as tls:
                tls.sendall(self.request)
                return self.accepted(tls.recv(4096))
        except OSError:
            return False

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # what is shown is to be seen, whoever issued it
        context.verify_mode = ssl.CERT_NONE
        if self.alpn:
            context.set_alpn_protocols(list(self.alpn))
        return context

    def _connect(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), _TIMEOUT)
        try:
            self.prelude(plain)
            return context.wrap_socket(plain, server_hostname="program")
        except BaseException:
            plain.close()
            raise


def exchange(port: int, request: bytes) -> bool:
    """A plain request and the beginning of its answer: it makes a proxy call its upstream. False: nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), _TIMEOUT) as plain:
            plain.sendall(request)
            plain.recv(4096)
    except ConnectionRefusedError:
        return False
    except OSError:
        pass  # it may have ended without an answer when its upstream refused
    return True


# --- protocols that begin in plain text -------------------------------------------------------------------------


def postgresql_prelude(plain: socket.socket) -> None:
    """SSLRequest (postgresql.org/docs, protocol-message-formats): the answer S is followed by TLS."""
    plain.sendall(struct.pack("!II", 8, 80877103))
    if plain.recv(1) != b"S":
        raise ConnectionError("PostgreSQL does not want TLS")


def postgresql_startup(user: str) -> bytes:
    fields = b"".join(word.encode() + b"\0" for word in ("user", user, "database", user)) + b"\0"
    return struct.pack("!II", len(fields) + 8, 196608) + fields


_MYSQL_CAPABILITIES = 0x00000200 | 0x00000800 | 0x00008000 | 0x00080000  # protocol 4.1, SSL, secure and plug-in authentication
_MYSQL_SETTINGS = struct.pack("<IIB23x", _MYSQL_CAPABILITIES, 1 << 24, 45)


def mysql_prelude(plain: socket.socket) -> None:
    """The server speaks first; then SSLRequest (dev.mysql.com, Connection Phase Packets) and TLS."""
    length = int.from_bytes(_exactly(plain, 4)[:3], "little")
    _exactly(plain, length)
    plain.sendall(_mysql_packet(1, _MYSQL_SETTINGS))


def mysql_login(user: str) -> bytes:
    """HandshakeResponse41 with an empty password."""
    return _mysql_packet(2, _MYSQL_SETTINGS + user.encode() + b"\0" + b"\0" + b"mysql_native_password\0")


def _mysql_packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def _exactly(plain: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = plain.recv(size - len(data))
        if not piece:
            raise ConnectionError("the server has closed the connection")
        data += piece
    return data
