"""A TLS server between a program and what it calls: which leaf the program presents, and which of ours it takes.

Usually it presents a leaf of the old CA. While it probes, every other connection is shown one of the new CA: who has not
read its bundle again refuses it, comes back, and goes on working by the next. Connections are then ended after some
seconds, as there would be nothing to see of one that stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
import tempfile
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rows.leaves import Leaf

T = TypeVar("T")
_PIECE = 64 * 1024


class Taps:
    """The loop that all of them share, in the network of the thread that makes it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # A client that refuses us is no error of ours.
        self.loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=30)

    def close(self) -> None:
        self.call(self._cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=10)

    async def _cancel(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@dataclass(frozen=True)
class Upstream:
    """Where a connection is passed on to; `identity` takes the place of the client's own certificate."""

    host: str
    port: int
    authority: str  # PEM
    identity: Leaf


Answer = Callable[[str], bytes]  # from the path that is asked for to the body


@dataclass
class Shown:
    """What became of one of our two leaves."""

    presented: int = 0
    taken: int = 0  # the client went on: it verifies us before it says anything


@dataclass
class Tap:
    taps: Taps
    address: str
    port: int
    old: Leaf
    new: Leaf
    trust: str  # PEM of all CAs that a client's leaf may be of
    upstream: Upstream | None = None
    answer: Answer | None = None  # or this, by itself
    shown: dict[str, Shown] = field(default_factory=lambda: {"old": Shown(), "new": Shown()})
    client: str | None = None  # fingerprint of the leaf that was presented last
    hold: float | None = 3.0  # seconds that a connection lasts while it probes; None: as long as it likes
    many: int = 1000  # how many connections are ended at once: of a hundred to etcd a few will do
    probing: bool = False
    _holding: bool = False

    def __post_init__(self) -> None:
        self._contexts = {name: self._context(leaf) for name, leaf in (("old", self.old), ("new", self.new))}
        self._contexts["old"].sni_callback = self._choose
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = self.taps.call(self._listen())

    def probe(self) -> None:
        """Show the new leaf by turns, and count from nothing."""
        self.shown = {"old": Shown(), "new": Shown()}
        self.probing = self._holding = True
        self.drop()

    def settle(self) -> None:
        """Leave connections alone from now on; new ones are still shown the new leaf by turns."""
        self._holding = False

    def drop(self) -> None:
        """End all connections, so that there are handshakes."""
        self.client = None
        self.taps.loop.call_soon_threadsafe(self._drop)

    def is_new_taken(self) -> bool:
        return self.shown["new"].taken > 0

    def is_old_taken(self) -> bool:
        return self.shown["old"].taken > 0

    def words(self) -> str:
        """Of what was shown."""
        return ", ".join(f"{name}: taken {each.taken} of {each.presented} times" for name, each in self.shown.items())

    def _drop(self) -> None:
        for writer in list(self._writers)[: self.many]:
            writer.transport.abort()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, self.address, self.port, ssl=self._contexts["old"], backlog=256)

    def _context(self, leaf: Leaf) -> ssl.SSLContext:
        """Asks for a certificate and takes it of any of our CAs. Without tickets each handshake is a full one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # mode 0600; ssl reads keys only from files
            file.write(leaf.both)
            file.flush()
            context.load_cert_chain(file.name)
        context.load_verify_locations(cadata=self.trust)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        context.set_alpn_protocols(["h2", "http/1.1"] if self.upstream else ["http/1.1"])
        return context

    def _choose(self, tls: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        turn = sum(each.presented for each in self.shown.values())
        name = "new" if self.probing and turn % 2 == 0 else "old"
        self.shown[name].presented += 1
        tls.certroll_shown = name
        tls.context = self._contexts[name]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A client that has taken our leaf."""
        tls = writer.get_extra_info("ssl_object")
        self.shown[tls.certroll_shown].taken += 1
        der = tls.getpeercert(binary_form=True)
        self.client = hashlib.sha256(der).hexdigest() if der else None
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.TimeoutError, asyncio.IncompleteReadError):
                limit = self.hold if self._holding else None
                await asyncio.wait_for(self._talk(reader, writer, tls.selected_alpn_protocol()), limit)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: str | None) -> None:
        if self.upstream:
            await self._pass_on(reader, writer, self.upstream, protocol)
        elif self.answer:
            head = await reader.readuntil(b"\r\n\r\n")
            body = self.answer(head.split()[1].decode())
            status = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(status + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
            await reader.read()
        else:
            await reader.read()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: Upstream, protocol: str | None
    ) -> None:
        context = ssl.create_default_context(cadata=upstream.authority)
        context.check_hostname = False
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(upstream.identity.both)
            file.flush()
            context.load_cert_chain(file.name)
        if protocol:
            context.set_alpn_protocols([protocol])
        there, back = await asyncio.open_connection(upstream.host, upstream.port, ssl=context)
        try:
            pumps = {asyncio.ensure_future(_pump(reader, back)), asyncio.ensure_future(_pump(there, writer))}
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            back.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
