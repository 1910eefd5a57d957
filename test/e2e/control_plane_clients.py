"""Clients that call API servers all the time as a pod does: by the token and the CA that its volume has at the moment.

Each failure is remembered with its time, so that a test can say for how long nobody was served, and by which way.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT = 10.0
_EVERY = 0.25  # seconds from one call to the next


@dataclass(frozen=True)
class Target:
    name: str
    host: str
    port: int
    kept: bool  # one connection as long as it lasts; else a new one for each call


@dataclass
class Outage:
    began: float  # time.time() of the first call that failed
    error: str
    calls: int = 1
    ended: float | None = None  # of the end of the first that did not; None: it still lasts

    def seconds(self, now: float) -> float:
        return (self.ended or now) - self.began


@dataclass
class Client(threading.Thread):
    """Reads its own namespace's kube-root-ca.crt: so it must be known, allowed, and etcd asked or its cache."""

    target: Target
    volume: Path  # of a pod: ca.crt, token, namespace
    calls: int = 0
    handshakes: int = 0
    outages: list[Outage] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True, name=f"client {self.target.name}")
        self._end = threading.Event()
        self._connection: http.client.HTTPSConnection | None = None

    def __hash__(self) -> int:
        return id(self)

    def stop(self) -> None:
        self._end.set()

    def failing(self) -> Outage | None:
        return self.outages[-1] if self.outages and self.outages[-1].ended is None else None

    def run(self) -> None:
        while not self._end.wait(_EVERY):
            began = time.time()
            error = self._call()
            self.calls += 1
            self._note(began, error)
        self._close()

    def _note(self, began: float, error: str | None) -> None:
        now = self.failing()
        if error is None and now:
            now.ended = time.time()
        elif error is not None and now:
            now.calls += 1
        elif error is not None:
            self.outages.append(Outage(began, error))

    def _call(self) -> str | None:
        try:
            connection = self._connected()
            namespace, token = ((self.volume / name).read_text() for name in ("namespace", "token"))
            path = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._close()
            return f"{type(error).__name__}: {error}"
        if not self.target.kept:
            self._close()
        return None if response.status == 200 else f"HTTP {response.status} {answer[:200]!r}"

    def _connected(self) -> http.client.HTTPSConnection:
        if not self._connection:
            tls = ssl.create_default_context(cafile=str(self.volume / "ca.crt"))
            self._connection = http.client.HTTPSConnection(self.target.host, self.target.port, timeout=_TIMEOUT, context=tls)
            self._connection.connect()
            self.handshakes += 1
        return self._connection

    def _close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


@dataclass
class Clients:
    all: list[Client]

    def longest(self, name: str = "") -> float:
        """Seconds, of those whose target's name begins so."""
        now = time.time()
        return max((outage.seconds(now) for _, outage in self.outages(name)), default=0.0)

    def outages(self, name: str = "") -> Iterator[tuple[str, Outage]]:
        for client in self.all:
            if client.target.name.startswith(name):
                yield from ((client.target.name, outage) for outage in client.outages)

    def all_served(self) -> bool:
        return all(client.calls > 0 and not client.failing() for client in self.all)

    def describe(self) -> str:
        now = time.time()
        lines = [f"{client.target.name}: {client.calls} calls, {client.handshakes} handshakes" for client in self.all]
        for name, outage in sorted(self.outages(), key=lambda each: each[1].began):
            clock = time.strftime("%H:%M:%S", time.localtime(outage.began))
            still = "" if outage.ended else ", and still"
            lines.append(f"  {clock} {name}: {outage.calls} calls failed in {outage.seconds(now):.1f} s{still}: {outage.error}")
        return "\n".join(lines)


@contextmanager
def calling(volume: Path, balancer: tuple[str, int], servers: Sequence[tuple[str, str, int]]) -> Iterator[Clients]:
    """Of each way two, with a connection for each call and with a kept one. servers: (node, host, port)."""
    ways = [("balancer", *balancer), *servers]
    targets = [Target(f"{name} {kind}", host, port, kind == "kept") for name, host, port in ways for kind in ("new", "kept")]
    clients = Clients([Client(target, volume) for target in targets])
    for client in clients.all:
        client.start()
    try:
        yield clients
    finally:
        for client in clients.all:
            client.stop()
        for client in clients.all:
            client.join()
