"""Watches that share a connection get their events, whatever else the connection brings in the same moment."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from control_plane import ROOT, ControlPlane
from kube_driver import Driver

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from fake_api.h2_wire import H2Connection  # noqa: E402
from fake_api.message import Request  # noqa: E402
from fake_api.wire import Wire  # noqa: E402
from tls_ends import self_signed, server_context  # noqa: E402

_LOOPBACK = "127.0.0.1"
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


def _event(kind: str, name: str, version: int, size: int = 0, annotations: dict[str, str] | None = None) -> bytes:
    """A line of a watch, with so many bytes of data."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"some": "x" * size}}
    return json.dumps({"type": kind, "object": config_map}).encode() + b"\n"


class _Server:
    """Answers each watch by what it selects, and sends what it is told to in one piece: one TLS record."""

    def __init__(self, folder: Path) -> None:
        self.certificate = self_signed(folder, "shared-connection", _LOOPBACK)
        self.streams: dict[str, int] = {}  # by label selector
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._connection: H2Connection | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        started = threading.Event()
        thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        thread.start()
        assert started.wait(10)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join(10)

    def send(self, *events: tuple[str, bytes]) -> None:
        asyncio.run_coroutine_threadsafe(self._send(events), self._loop).result(10)

    async def _send(self, events: tuple[tuple[str, bytes], ...]) -> None:
        assert self._connection
        for selector, line in events:
            self._connection.h2.send_data(self.streams[selector], line)
        await self._connection.flush()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        server = await asyncio.start_server(self._connected, _LOOPBACK, 0, ssl=server_context(self.certificate, ["h2"]))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._over.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._connection is None, "a second connection"
        self._connection = H2Connection(reader, writer, self._watch)
        await self._connection.run()

    async def _watch(self, request: Request, wire: Wire) -> None:
        assert self._connection
        selector = parse_qs(urlsplit(request.path).query)["labelSelector"][0]
        await wire.head(200, [("content-type", "application/json")])
        await wire.data(_event("BOOKMARK", "", 1, annotations=_INITIAL_END))
        self.streams[selector] = self._connection.last_stream
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "sizes",
    [(6_000, 10), (6_000, 6_000, 10), (9_000, 10, 10), (4_000, 4_000, 10), (15_000, 10)],
    ids=lambda sizes: "+".join(map(str, sizes)),
)
def test_events_in_one_record(control_plane: ControlPlane, tmp_path: Path, sizes: tuple[int, ...]) -> None:
    """The first is longer than what the client reads at once: those behind it are not left lying."""
    names = [f"watch{i}" for i in range(len(sizes))]
    server = _Server(tmp_path)
    with LocalCluster(control_plane.name).network(), server.running():
        kubeconfig = _kubeconfig(tmp_path / "kubeconfig", server)
        selectors = [f"w={name}" for name in names]
        with Driver(control_plane, kubeconfig).running("watch", "/v1/configmaps", "-", "60", *selectors, log=tmp_path / "log") as driver:
            place = 0
            for _ in names:
                place = driver.wait_for("each watch to be in sync", lambda line: line["callback"] == "synced", after=place) + 1
            for version in range(2, 6):
                server.send(*((f"w={name}", _event("MODIFIED", name, version, size)) for name, size in zip(names, sizes, strict=True)))
                for name in names:
                    wanted = {"callback": "object", "key": f"default/{name}", "resourceVersion": str(version)}
                    driver.wait_for(f"version {version} of {name}", lambda line, wanted=wanted: wanted.items() <= line.items())


def _kubeconfig(path: Path, server: _Server) -> Path:
    cluster = {"server": f"https://{_LOOPBACK}:{server.port}", "certificate-authority": str(server.certificate)}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x",
    }  # fmt: skip
    path.write_text(json.dumps(config))
    return path
