"""HTTP/2 (RFC 9113): many requests on one connection, each answered by a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from .message import Headers, Request
from .wire import Gone, Wire

_BLOCK = 64 * 1024
# RFC 9113, section 8.2.2: these are of HTTP/1.1 only.
_OF_CONNECTIONS = frozenset({"connection", "transfer-encoding", "keep-alive", "proxy-connection", "upgrade"})

Serve = Callable[[Request, Wire], Awaitable[None]]


class H2Connection:
    """Runs until either side ends it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serve: Serve) -> None:
        self._reader = reader
        self._writer = writer
        self._serve = serve
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self._headers: dict[int, Headers] = {}
        self._bodies: dict[int, bytearray] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._window_grew = asyncio.Event()
        self.last_stream = 0
        self.left = False  # GOAWAY was sent: what comes later is refused
        self.closed = False

    async def run(self) -> None:
        self.h2.initiate_connection()
        try:
            await self.flush()
            while not self.closed and (data := await self._reader.read(_BLOCK)):
                for happened in self.h2.receive_data(data):
                    self._take(happened)
                await self.flush()
        except (OSError, h2.exceptions.ProtocolError, Gone):
            pass
        finally:
            self.closed = True
            self._wake()
            for task in list(self._tasks.values()):
                task.cancel()
            self._writer.close()

    def _take(self, happened: h2.events.Event) -> None:
        if isinstance(happened, h2.events.RequestReceived):
            self._headers[happened.stream_id] = [(str(name), str(value)) for name, value in happened.headers]
            self._bodies[happened.stream_id] = bytearray()
        elif isinstance(happened, h2.events.DataReceived):
            self._bodies[happened.stream_id] += happened.data
            self.h2.acknowledge_received_data(happened.flow_controlled_length, happened.stream_id)
        elif isinstance(happened, h2.events.StreamEnded):
            self._start(happened.stream_id)
        elif isinstance(happened, h2.events.StreamReset):
            self._end(happened.stream_id)
        elif isinstance(happened, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            self._wake()
        elif isinstance(happened, h2.events.ConnectionTerminated):
            self.closed = True

    def _wake(self) -> None:
        self._window_grew.set()
        self._window_grew = asyncio.Event()

    def _start(self, stream: int) -> None:
        fields, body = self._headers.pop(stream), bytes(self._bodies.pop(stream))
        if self.left:
            self.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        pseudo = dict(field for field in fields if field[0].startswith(":"))
        plain = [field for field in fields if not field[0].startswith(":")]
        request = Request(pseudo[":method"], pseudo[":path"], plain, body)
        self.last_stream = max(self.last_stream, stream)
        self._tasks[stream] = asyncio.create_task(self._answer(stream, request))

    async def _answer(self, stream: int, request: Request) -> None:
        try:
            await self._serve(request, H2Wire(self, stream))
        finally:
            self._tasks.pop(stream, None)

    def _end(self, stream: int) -> None:
        self._headers.pop(stream, None)
        task = self._tasks.get(stream)
        if task:
            task.cancel()

    async def flush(self) -> None:
        if data := self.h2.data_to_send():
            self._writer.write(data)
        try:
            await self._writer.drain()
        except OSError as error:
            raise Gone from error

    async def room(self, stream: int) -> int:
        """Waits until the client takes more."""
        while not self.closed:
            if size := min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size):
                return size
            await self._window_grew.wait()
        raise Gone

    def write(self, frame: bytes) -> None:
        """What h2 has no function for, after all that it has to send."""
        self._writer.write(self.h2.data_to_send() + frame)

    def drop(self) -> None:
        self.closed = True
        self._writer.transport.abort()

    def forsake(self, beyond: int) -> None:
        """End the streams above that one: GOAWAY says that they were never looked at."""
        for stream in [each for each in self._tasks if each > beyond]:
            self._tasks[stream].cancel()


@contextlib.contextmanager
def _listening() -> Iterator[None]:
    try:
        yield
    except (h2.exceptions.ProtocolError, KeyError) as error:
        raise Gone from error


class H2Wire:
    def __init__(self, connection: H2Connection, stream: int) -> None:
        self._connection = connection
        self._stream = stream

    async def head(self, status: int, headers: Headers) -> None:
        plain = [(name.lower(), value) for name, value in headers if name.lower() not in _OF_CONNECTIONS]
        with _listening():
            self._connection.h2.send_headers(self._stream, [(":status", str(status)), *plain])
            await self._connection.flush()

    async def data(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            with _listening():
                size = await self._connection.room(self._stream)
                self._connection.h2.send_data(self._stream, bytes(rest[:size]))
                await self._connection.flush()
            rest = rest[size:]

    async def finish(self) -> None:
        with _listening():
            self._connection.h2.end_stream(self._stream)
            await self._connection.flush()

    async def reset(self) -> None:
        with _listening():
            self._connection.h2.reset_stream(self._stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
            await self._connection.flush()

    async def drop(self) -> None:
        self._connection.drop()

    async def go_away(self, processed: bool) -> None:
        last = self._connection.last_stream if processed else max(self._stream - 2, 0)
        with _listening():
            _send_go_away(self._connection, last)
            await self._connection.flush()
        if not processed:
            self._connection.forsake(last)


def _send_go_away(connection: H2Connection, last: int) -> None:
    """As Go's server says it, once. h2's own close_connection would let nothing follow, but what counts must be finished."""
    frame = bytes.fromhex("000008" "07" "00" "00000000") + last.to_bytes(4, "big") + (0).to_bytes(4, "big")
    connection.left = True
    connection.write(frame)
