"""Pods that are no friends of who asks them: `servers.py ADDRESS FOLDER` serves each kind at a port of its own until it is killed.

A program of its own, as floods.py is, so that those who measure do not wait for it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

_DRIP_S = 0.2
_PIECE = 16 * 1024
_MOST = 64 << 20  # bytes to one who goes on reading
_FILES = ("strange.der", "foreign.der", "dhe.pem", "server.pem")  # material.py makes them

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Bytes = AsyncIterator[bytes]
Say = Callable[[], Bytes]


def _record(kind: int, body: bytes) -> bytes:
    """Of TLS 1.2 (RFC 5246, section 6.2.1)."""
    return bytes([kind, 3, 3]) + len(body).to_bytes(2, "big") + body


def _message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


# TLS 1.2, no session, ECDHE-RSA with AES-128-GCM, no compression.
_SERVER_HELLO = _record(22, _message(2, b"\x03\x03" + bytes([1] * 32) + b"\x00\xc0\x2f\x00"))
_HELLO_REQUEST = _record(22, _message(0, b""))
_WARNING = _record(21, b"\x01\x5a")  # user_canceled
_NO_CONTENT = _record(22, b"")


def _certificate(der: bytes) -> bytes:
    one = len(der).to_bytes(3, "big") + der
    return _record(22, _message(11, len(one).to_bytes(3, "big") + one))


async def _endless(piece: bytes) -> Bytes:
    sent = 0
    while sent < _MOST:
        sent += len(piece)
        yield piece


async def _drip(data: bytes) -> Bytes:
    for byte in data:
        yield bytes([byte])
        await asyncio.sleep(_DRIP_S)


async def _at_once(*pieces: bytes) -> Bytes:
    for piece in pieces:
        yield piece


def _head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: application/json", *lines, "", ""]).encode()


def _page(body: bytes, *lines: str) -> Bytes:
    return _at_once(_head(f"Content-Length: {len(body)}", *lines), body)


async def _after(first: bytes, then: Bytes) -> Bytes:
    yield first
    async for piece in then:
        yield piece


def handshakes(folder: Path) -> dict[str, Say]:
    """What each says, whatever it is asked; before a handshake, or in it."""
    strange, foreign = ((folder / name).read_bytes() for name in _FILES[:2])
    zeros = _record(22, bytes(_PIECE))
    done = _record(22, _message(14, b""))
    return {
        "a hello byte by byte": lambda: _drip(_SERVER_HELLO),
        "no content without end": lambda: _endless(_NO_CONTENT * 1000),
        "requests for a hello": lambda: _endless(_HELLO_REQUEST * 1000),
        "warnings without end": lambda: _endless(_WARNING * 1000),
        "certificates of 16 MiB": lambda: _after(_SERVER_HELLO + _record(22, b"\x0b\xff\xff\xff"), _endless(zeros)),
        "a key of 16384 bits": lambda: _at_once(_SERVER_HELLO, _certificate(strange), done),
        "another's leaf": lambda: _at_once(_SERVER_HELLO, _certificate(foreign), done),
        "a greeting of 16 MiB": lambda: _after(b"\xff\xff\xff\x00\x0a", _endless(b"8" * _PIECE)),
        "a yes without end": lambda: _endless(b"S" * _PIECE),
    }


def pages() -> dict[str, Say]:
    zeros = b"[" + b"0," * (1 << 20) + b"0]"
    names = b'{"certificates": [' + b'{"ca_cert": [{"path": "x", "serial_number": "1"}]},' * 20_000 + b"{}]}"
    chunk = b"4000\r\n" + b" " * _PIECE + b"\r\n"
    bomb = gzip.compress(zeros * 32, 1)
    return {
        "zeros": lambda: _page(zeros),
        "arrays in arrays": lambda: _page(b"[" * (2 << 20)),
        "CAs by the thousand": lambda: _page(names),
        "a page byte by byte": lambda: _after(_head("Content-Length: 2000000"), _drip(zeros)),
        "chunks without end": lambda: _after(_head("Transfer-Encoding: chunked"), _endless(chunk)),
        "a head of 100 KB": lambda: _at_once(_head(*(f"X-{number}: {'y' * 1000}" for number in range(100))), b"[]"),
        "heads without end": lambda: _endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
        "a length of 2^62": lambda: _after(_head(f"Content-Length: {1 << 62}"), _endless(b"0," * _PIECE)),
        "elsewhere": lambda: _at_once(_head("Location: https://127.0.0.1:6443/", "Content-Length: 0", status="302 Found")),
        "32 MiB in 32 KiB": lambda: _page(bomb, "Content-Encoding: gzip"),
    }


# A server that OpenSSL is: its prime costs who takes it a second for each handshake.
FINITE_FIELD = "a prime of 8192 bits"

def _handler(say: Say) -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            await asyncio.wait_for(reader.read(_PIECE), 5)
            async for piece in say():
                writer.write(piece)
                await asyncio.wait_for(writer.drain(), 30)
            await asyncio.wait_for(reader.read(), 30)  # until the other hangs up
        writer.close()

    return handle


def _finite_field(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0")
    context.load_cert_chain(folder / _FILES[3])
    context.load_dh_params(folder / _FILES[2])
    return context


async def _serve(address: str, folder: Path) -> None:
    """The first line tells the ports: of handshakes, and of pages."""
    running: list[asyncio.Server] = []

    async def listen(says: dict[str, Say], context: ssl.SSLContext | None = None) -> dict[str, int]:
        found = {}
        for kind, say in says.items():
            running.append(await asyncio.start_server(_handler(say), address, 0, ssl=context))
            found[kind] = running[-1].sockets[0].getsockname()[1]
        return found

    asked = await listen(handshakes(folder)) | await listen({FINITE_FIELD: lambda: _at_once()}, _finite_field(folder))
    print(json.dumps([asked, await listen(pages())]), flush=True)
    await asyncio.gather(*(each.serve_forever() for each in running))


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], Path(sys.argv[2])))
