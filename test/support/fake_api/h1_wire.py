"""HTTP/1.1 (RFC 9112), for clients that offer nothing else: one request after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus

from .h2_wire import Serve
from .message import Headers, Request
from .wire import Gone


async def serve_h1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serve: Serve) -> None:
    """Runs until either side ends it."""
    try:
        while request := await _request(reader):
            wire = H1Wire(writer)
            await serve(request, wire)
            if wire.broken:
                break
    except (OSError, asyncio.IncompleteReadError, Gone):
        pass
    finally:
        writer.close()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    first = await reader.readline()
    if not first:
        return None
    method, path, _ = first.decode().split(" ", 2)
    headers = await read_headers(reader)
    body = await read_body(reader, headers, when_unsaid=0)
    return Request(method, path, headers, body)


async def read_headers(reader: asyncio.StreamReader) -> Headers:
    headers = []
    while line := (await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers.append((name.lower(), value.strip()))
    return headers


async def read_body(reader: asyncio.StreamReader, headers: Headers, when_unsaid: int) -> bytes:
    """`when_unsaid`: its length where no header says it; -1 for up to the end of the connection."""
    fields = dict(headers)
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return b"".join([block async for block in chunks(reader)])
    length = int(fields.get("content-length", when_unsaid))
    return await reader.read() if length < 0 else await reader.readexactly(length)


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():
        pass  # trailers


class H1Wire:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.broken = False  # nothing more may go over this connection

    async def head(self, status: int, headers: Headers) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers if name.lower() not in ("content-length", "transfer-encoding")]
        await self._write(("\r\n".join([*lines, "transfer-encoding: chunked"]) + "\r\n\r\n").encode())

    async def data(self, content: bytes) -> None:
        if content:
            await self._write(b"%x\r\n%b\r\n" % (len(content), content))

    async def finish(self) -> None:
        await self._write(b"0\r\n\r\n")

    async def reset(self) -> None:
        await self.drop()

    async def drop(self) -> None:
        self.broken = True
        self._writer.transport.abort()

    async def go_away(self, processed: bool) -> None:
        self.broken = True
        if not processed:
            await self.drop()

    async def _write(self, content: bytes) -> None:
        self._writer.write(content)
        try:
            await self._writer.drain()
        except OSError as error:
            raise Gone from error
