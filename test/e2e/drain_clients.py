"""Clients that are in the middle of something: long requests and streams, each over a TLS connection of its own.

    drain_clients.py --http HOST:PORT --tcp HOST:PORT --ca FILE --name SERVERNAME --requests N --streams N --out FILE

They begin at once and go on until they have their end or are cut. One JSON line is written for each when it is over: what it was,
and how it was cut, if it was. The program ends with the last of them, or cuts them itself when it is told to end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TextIO

_AT_ONCE = 20  # handshakes: neither side is to be flooded at the start
_PATIENCE = 600.0  # seconds


class Cut(Exception):
    """The client did not get what it asked for; in words."""


class Clients:
    def __init__(self, arguments: argparse.Namespace, out: TextIO) -> None:
        self._arguments = arguments
        self._out = out
        self._context = ssl.create_default_context(cafile=str(arguments.ca))
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = []
        for number in range(self._arguments.requests):
            kinds.append((self._silent, self._drips)[number % 2])
        kinds += [self._stream] * self._arguments.streams
        await asyncio.gather(*(self._one(number, ask) for number, ask in enumerate(kinds)))

    async def _one(self, number: int, ask: Callable[[], Awaitable[None]]) -> None:
        began = time.time()
        cut = ""
        try:
            async with asyncio.timeout(_PATIENCE):
                await ask()
        except Cut as error:
            cut = str(error)
        except asyncio.IncompleteReadError:
            cut = "closed in the midst of it"
        except TimeoutError:
            cut = f"no end within {_PATIENCE:g} s"
        except (OSError, ssl.SSLError, ValueError) as error:
            cut = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else f"{type(error).__name__}: {error}"
        record = {"number": number, "kind": ask.__name__.strip("_"), "began": began, "ended": time.time(), "cut": cut}
        self._out.write(json.dumps(record) + "\n")
        self._out.flush()

    async def _open(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = address.rpartition(":")
        async with self._gate:
            return await asyncio.open_connection(host, int(port), ssl=self._context, server_hostname=self._arguments.name)

    async def _get(self, path: str) -> None:
        """One request on a connection of its own; the answer must come whole."""
        reader, writer = await self._open(self._arguments.http)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._arguments.name}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            status = head.split()[1].decode()
            if status != "200":
                raise Cut(f"HTTP {status}")
            length = [line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            body = await reader.readexactly(int(length[0])) if length else await _chunks(reader)
            if not body.endswith(b"end"):
                raise Cut(f"an answer without its end: {body[-20:]!r}")
        finally:
            writer.transport.abort()

    async def _silent(self) -> None:
        await self._get("/silent")

    async def _drips(self) -> None:
        await self._get("/drips")

    async def _stream(self) -> None:
        reader, writer = await self._open(self._arguments.tcp)
        try:
            writer.write(b"STREAM\n")
            while (line := await reader.readline()) != b"end\n":
                if not line.endswith(b"\n"):
                    raise Cut("the stream was closed in the midst of it")
        finally:
            writer.transport.abort()


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:size]
    await reader.readexactly(2)
    return body


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", required=True, metavar="HOST:PORT")
    parser.add_argument("--tcp", required=True, metavar="HOST:PORT")
    parser.add_argument("--ca", type=Path, required=True, help="PEM file with the CA of the servers")
    parser.add_argument("--name", required=True, help="what the servers' certificate must be good for")
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, help="file for the JSON lines")
    arguments = parser.parse_args()
    with arguments.out.open("a", encoding="utf-8") as out:
        asyncio.run(Clients(arguments, out).run())


if __name__ == "__main__":
    main()
