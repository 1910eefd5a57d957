"""The server: a thread with a loop of its own, beside the test that lays out faults and asks what came."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tls_ends import self_signed, server_context

from .call import Call, Source
from .h1_wire import serve_h1
from .h2_wire import H2Connection
from .message import Request, event
from .replay import Replay
from .schedule import ALWAYS, Fits, FitsFrame, FrameFault, RequestFault, Rule, Schedule
from .tape import Tape
from .upstream import NO_TOKEN, Upstream
from .wire import Gone, Wire

_LOOPBACK = "127.0.0.1"
_FILLER = event("MODIFIED", {"metadata": {"name": "never-whole", "annotations": {"filler": "x" * 200}}})


class FakeApi:
    """Listens in the network of whoever enters it. Use it as a context.

    With a `kubeconfig` (what `kubectl config view --raw --minify -o json` prints) it stands before that API server and records;
    else it replays the tape.
    """

    def __init__(self, folder: Path, kubeconfig: Mapping[str, Any] | None = None, tape: Tape | None = None, port: int = 0) -> None:
        self.schedule = Schedule()
        self.tape = Tape()  # of what passes now, in both modes
        self.errors: list[str] = []  # of the fake itself; there should be none
        self._replay = None if kubeconfig is not None else Replay(tape or Tape())
        self._source: Source = self._replay or Upstream(kubeconfig or {})
        self._kubeconfig = kubeconfig
        self._certificate = self_signed(folder, "fake-api", _LOOPBACK)
        self._port = port
        self._calls: list[Call] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-api", daemon=True)

    def __enter__(self) -> FakeApi:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._replay:
            self.errors += self._replay.errors

    @property
    def address(self) -> str:
        return f"https://{_LOOPBACK}:{self._port}"

    def kubeconfig(self, path: Path, token: str | None = None) -> Path:
        """Write the kubeconfig that leads here; by default with the token of the one it was given."""
        authority = base64.b64encode(self._certificate.read_bytes()).decode()
        user = self._kubeconfig["users"][0]["user"] if self._kubeconfig else {}
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": self.address, "certificate-authority-data": authority}}],
            "users": [{"name": "fake", "user": {"token": token or user.get("token", NO_TOKEN)}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        }  # fmt: skip
        path.touch(mode=0o600)
        path.write_text(json.dumps(document))
        return path

    # --- what tests lay out

    def fault(self, fits: Fits, fault: RequestFault | FrameFault, frame: FitsFrame | None = None, skip: int = 0, times: int = 1) -> Rule:
        return self.schedule.add(Rule(fits, fault, frame, skip, times))

    def always(self, fits: Fits, fault: RequestFault | FrameFault, frame: FitsFrame | None = None) -> Rule:
        return self.fault(fits, fault, frame, times=ALWAYS)

    def strike(self, fits: Fits, fault: FrameFault) -> int:
        """Breaks the watches that run now, each at once; how many."""

        async def all_of_them() -> int:
            running = [call for call in self._calls if call.ended is None and call.told == 200 and fits(call.request)]
            for call in running:
                assert call.task
                call.task.cancel()
                call.fault = str(fault)
                with contextlib.suppress(Gone):
                    await fault.frame(call, _FILLER)
            return len(running)

        return asyncio.run_coroutine_threadsafe(all_of_them(), self._loop).result(30)

    # --- what tests ask

    def calls(self, fits: Fits | None = None, since: int = 0) -> list[Call]:
        """In the order in which they came; `since`: those after so many."""
        return [call for call in list(self._calls)[since:] if fits is None or fits(call.request)]

    def count(self) -> int:
        return len(self._calls)

    # --- the server

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        context = server_context(self._certificate, ["h2", "http/1.1"])
        server = await asyncio.start_server(self._connected, _LOOPBACK, self._port, ssl=context, backlog=256)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._source.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        try:
            secured = writer.get_extra_info("ssl_object")
            if secured.selected_alpn_protocol() == "h2":
                await H2Connection(reader, writer, self._answer).run()
            else:
                await serve_h1(reader, writer, self._answer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _answer(self, request: Request, wire: Wire) -> None:
        call = Call(request, wire, self._source, self.tape, self.schedule)
        self._calls.append(call)
        try:
            await call.run()
        except Gone:
            pass  # the client has left
        except Exception as error:  # a test must learn of it, whatever it is
            self.errors.append(f"{request}: {error!r}")
            await wire.drop()
