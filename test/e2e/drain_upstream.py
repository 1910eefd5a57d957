"""Behind the proxies of test_shutdown_manager.py: it answers when it is told to, so that a request is as long as a test needs it.

    GET /          at once
    GET /silent    nothing at all until it is let go
    GET /drips     head at once, then a piece of the body each second; the last one when it is let go
    STREAM         one line, by TCP: a line each second, and "end" when it is let go; then it hangs up
    GET /state     for the test: who is held, and how many were answered at once, by the address that asks
    POST /release?over=SECONDS    for the test: lets all go who are held now, one after the other
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
from collections import Counter
from pathlib import Path

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
_PIECE = b"3\r\n...\r\n"
_LAST = b"3\r\nend\r\n0\r\n\r\n"
_EVERY = 1.0  # seconds between two pieces


class Upstream:
    def __init__(self) -> None:
        self._held: dict[asyncio.Event, str] = {}  # to whom, by its address
        self._gone = 0  # hung up while they were held
        self._answered: Counter[str] = Counter()  # at once

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readline()
            if first.strip() == b"STREAM":
                await self._hold(reader, writer, b"..\n", b"end\n")
            else:
                while first:
                    await _rest_of_head(reader)
                    await self._answer(first.split()[1].decode(), reader, writer)
                    first = await reader.readline()
        writer.close()

    async def _answer(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if path == "/silent":
            await self._hold(reader, writer, b"", b"")
            writer.write(_HEAD + b"Content-Length: 3\r\n\r\nend")
        elif path == "/drips":
            writer.write(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            await self._hold(reader, writer, _PIECE, _LAST)
        elif path == "/state":
            _say(writer, json.dumps({"held": Counter(self._held.values()), "gone": self._gone, "answered": self._answered}))
        elif path.startswith("/release?over="):
            _say(writer, str(self._release(float(path.partition("=")[2]))))
        else:
            self._answered[writer.get_extra_info("peername")[0]] += 1
            _say(writer, "ok")
        await writer.drain()

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: bytes, last: bytes) -> None:
        free = asyncio.Event()
        self._held[free] = writer.get_extra_info("peername")[0]
        hung_up = asyncio.create_task(reader.read(1))  # who is held has nothing to say
        freed = asyncio.create_task(free.wait())
        try:
            while not freed.done():
                writer.write(piece)
                await writer.drain()
                await asyncio.wait({hung_up, freed}, timeout=_EVERY, return_when=asyncio.FIRST_COMPLETED)
                if hung_up.done() and not freed.done():
                    self._gone += 1
                    raise ConnectionResetError
            writer.write(last)
            await writer.drain()
        finally:
            self._held.pop(free, None)
            hung_up.cancel()
            freed.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await hung_up

    def _release(self, over: float) -> int:
        held = list(self._held)
        random.shuffle(held)
        for number, free in enumerate(held):
            asyncio.get_running_loop().call_later(over * number / len(held), free.set)
        return len(held)


async def _rest_of_head(reader: asyncio.StreamReader) -> None:
    while (await reader.readline()).strip():
        pass


def _say(writer: asyncio.StreamWriter, text: str) -> None:
    writer.write(_HEAD + f"Content-Length: {len(text)}\r\n\r\n{text}".encode())


async def run(host: str, port_file: Path) -> None:
    server = await asyncio.start_server(Upstream().serve, host, 0, backlog=1024)
    half = port_file.with_suffix(".half")
    half.write_text(str(server.sockets[0].getsockname()[1]))
    os.replace(half, port_file)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", required=True, help="address to listen at")
    parser.add_argument("--port-file", type=Path, required=True, help="where to write the port, which is chosen")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.host, arguments.port_file))


if __name__ == "__main__":
    main()
