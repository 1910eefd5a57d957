"""The operator's page over TLS, as a scraper reads it."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import tempfile

from certroll_dev.demo.pki import Material

_TIMEOUT = 20.0
# What a server does to a client that it refuses: with TLS 1.3 the client hears of it only after its handshake.
REFUSALS = (ssl.SSLError, ConnectionError, EOFError)


def client_context(trust: bytes, client: Material | None = None, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Which CAs it trusts, which certificate it shows if any, the latest version of TLS that it speaks."""
    context = ssl.create_default_context(cadata=trust.decode())
    context.maximum_version = version or ssl.TLSVersion.MAXIMUM_SUPPORTED
    if client:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
            file.write(client.certificate + client.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


class Page:
    """Of the server with this name in its certificate. EOFError: it hung up without an answer."""

    def __init__(self, address: str, port: int, name: str) -> None:
        self.address, self.port, self._name = address, port, name

    def connect(self, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        plain = socket.create_connection((self.address, self.port), _TIMEOUT)
        try:
            return context.wrap_socket(plain, server_hostname=self._name, session=session)
        except BaseException:
            plain.close()
            raise

    def read(self, connection: ssl.SSLSocket) -> str:
        """The one answer that this connection gives."""
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n")
        answer = b""
        with contextlib.suppress(ssl.SSLEOFError):  # it has told the length, and may hang up without a word
            while part := connection.recv(65536):
                answer += part
        if not answer:
            raise EOFError
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        return body.decode()

    def get(self, context: ssl.SSLContext) -> str:
        with self.connect(context) as connection:
            return self.read(connection)

    def leaf(self) -> str:
        """SHA-256 of what it shows. In TLS 1.3 that is there even when it then wants a certificate that there is not."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with self.connect(context) as connection:
            return hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
