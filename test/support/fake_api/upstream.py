"""The real API server, asked over HTTP/1.1 on kept connections; a watch has one of its own."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tls_ends import client_context

from .h1_wire import chunks, read_body, read_headers
from .message import Answer, Headers, Request, refusal

NO_TOKEN = "the-fake-has-a-certificate"
# RFC 9110, 7.6.1: these belong to a connection, not to the message. What is compressed cannot be cut at frames.
_OURS = frozenset({
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
    "accept-encoding", "host",
})  # fmt: skip
_LINE = 64 * 1024 * 1024

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Upstream:
    """Headers, bodies and status pass unchanged, the bearer token among them: the API server sees the client's own user. A
    client certificate cannot be passed on, so with a kubeconfig that has one it is presented here."""

    def __init__(self, kubeconfig: Mapping[str, Any]) -> None:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        server = urllib.parse.urlsplit(cluster["server"])
        self._host, self._port = server.hostname or "", server.port or 443
        self._context = client_context(cluster, user)
        self._idle: list[_Stream] = []

    async def answer(self, request: Request) -> Answer:
        """503 when there is no API server, as a load balancer would say."""
        try:
            if request.is_watch:
                return await self._ask(await self._connect(), request)
            return await self._ask_kept(request)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            return refusal(503, f"no API server: {error!r}")

    async def _ask_kept(self, request: Request) -> Answer:
        """A kept connection may have died meanwhile; only what changes nothing is then sent again."""
        while request.method == "GET" and self._idle:
            stream = self._idle.pop()
            try:
                return await self._ask(stream, request)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                stream[1].close()
        return await self._ask(await self._connect(), request)

    async def _ask(self, stream: _Stream, request: Request) -> Answer:
        reader, writer = stream
        writer.write(self._encode(request))
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        headers = await read_headers(reader)
        told = [(name, value) for name, value in headers if name not in _OURS]
        if request.is_watch and status == 200:
            return Answer(status, told, frames=_frames(stream))
        body = b"" if request.method == "HEAD" or status in (204, 304) else await read_body(reader, headers, -1)
        if ("connection", "close") in headers or request.is_watch:
            writer.close()
        else:
            self._idle.append(stream)
        return Answer(status, told, body)

    def _encode(self, request: Request) -> bytes:
        headers: Headers = [("host", f"{self._host}:{self._port}")]
        headers += [pair for pair in request.headers if pair[0].lower() not in _OURS and pair[1] != f"Bearer {NO_TOKEN}"]
        headers += [("content-length", str(len(request.body)))] if request.body else []
        lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + request.body

    async def _connect(self) -> _Stream:
        return await asyncio.open_connection(self._host, self._port, ssl=self._context, limit=_LINE)

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


async def _frames(stream: _Stream) -> AsyncIterator[bytes]:
    """Whole lines; a line that the API server itself cuts is left out, and ends the watch."""
    reader, writer = stream
    rest = b""
    try:
        async for block in chunks(reader):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield line + b"\n"
    except (OSError, asyncio.IncompleteReadError, ValueError):
        return
    finally:
        writer.close()
