"""Handshakes of a mesh, counted by who begins them: each call to a frontend, and each of a batch client, is one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from certroll_dev.demo.calls import Call, CallLog, Summary, summarise
from certroll_dev.demo.processes import Load
from certroll_dev.demo.waiting import wait_for
from certroll_dev.pod_logs import PodLogs
from mesh import BATCH, FRONTEND, Mesh

_KEEP_EVERY = 0.5
_TIMEOUT = 60.0  # seconds: a machine that is only slow must not look like broken trust
_ANSWERED = _TIMEOUT + 10.0
_QUIET = 2.0


@dataclass(frozen=True)
class Count:
    """Of one stretch of time."""

    calls: Sequence[Call]
    seconds: float

    @property
    def failed(self) -> int:
        return sum(not call.ok for call in self.calls)

    @property
    def good(self) -> int:
        return len(self.calls) - self.failed

    @property
    def rate(self) -> float:
        """Handshakes a second."""
        return len(self.calls) / self.seconds

    def failed_of(self, target: str) -> int:
        return sum(not call.ok for call in self.calls if call.target == target)

    def summaries(self) -> list[Summary]:
        return summarise(self.calls)

    @property
    def outage(self) -> float:
        """The longest stretch of failures that any kind of client saw, in seconds."""
        return max((window.last - window.first for summary in self.summaries() for window in summary.windows), default=0.0)

    def describe(self, since: float) -> str:
        return "\n".join(line for summary in self.summaries() for line in summary.lines(since))


class Handshakes:
    """Those of all clients, from when it was begun. Nothing is lost: calls are numbered, and each number is waited for."""

    def __init__(self, mesh: Mesh, rate: float) -> None:
        """`rate`: calls a second of each frontend pod; batch clients have theirs in their manifest."""
        self._mesh = mesh
        self._frontends = [pod.name for pod in mesh.pods(FRONTEND)]
        targets = [f"{pod.name}={pod.ip}:8000/frontend.frontend.svc" for pod in mesh.pods(FRONTEND)]
        calls = mesh.logs / "calls.jsonl"
        calls.unlink(missing_ok=True)
        self._load = Load(targets, None, rate, calls, mesh.logs / "load.log", _TIMEOUT)
        self._log = CallLog(calls)
        self._batch = BatchLogs(mesh)

    def stop(self) -> None:
        self._load.stop()
        self._batch.stop()

    def between(self, start: float, end: float) -> Count:
        """Calls that began then. Those under way are waited for."""
        wait_for("the frontends' calls to end", lambda: self._log.answered(end), deadline=_ANSWERED)
        calls = [_renamed(call, FRONTEND.name) for call in self._log.between(start, end)]
        return Count([*calls, *self._batch.between(start, end)], end - start)

    def since(self, start: float) -> Count:
        return self.between(start, time.time())

    def wait_succeed(self, quiet: float = _QUIET, deadline: float = 60.0) -> None:
        """Until all kinds of clients call, and none has failed for so long."""
        wanted = {BATCH.name, FRONTEND.name} if self._mesh.deployment(BATCH)["spec"]["replicas"] else {FRONTEND.name}

        def look() -> bool:
            self._load.check()
            count = self.since(time.time() - quiet)
            return not count.failed and {call.target for call in count.calls} == wanted

        began = time.time()
        wait_for("handshakes to succeed", look, deadline=deadline, every=0.5, missing=lambda: self.since(began).describe(began))


class BatchLogs:
    """What the batch clients wrote, also those that have ended: a thread keeps their logs while they are there."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._logs = PodLogs(mesh.cluster.layout, BATCH.name, BATCH.name)
        self._logs.forget()  # of clients that went before
        self._ended: dict[str, Client] = {}  # by the uid of the pod
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    def _keep(self) -> None:
        while not self._ending.wait(_KEEP_EVERY):
            self._logs.keep()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def between(self, start: float, end: float) -> list[Call]:
        wait_for("the batch clients' calls to end", lambda: not self._under_way(end), deadline=_ANSWERED, missing=lambda: self._under_way(end))
        return [call for uid in self._logs.uids() for call in self._client(uid).calls if start <= call.at < end]

    def _under_way(self, end: float) -> str:
        """Which client has not written yet how all its calls before then ended."""
        living = {pod.uid for pod in self._mesh.pods(BATCH)}
        clients = {uid: self._client(uid) for uid in living | self._logs.uids()}
        open_ones = [f"{uid}: {client}" for uid, client in clients.items() if not client.is_complete(end, uid in living)]
        return ", ".join(open_ones)

    def _client(self, uid: str) -> Client:
        if uid in self._ended:
            return self._ended[uid]
        client = Client.of(self._logs.text(uid))
        if client.is_complete(0.0, False):
            self._ended[uid] = client
        return client


@dataclass(frozen=True)
class Client:
    calls: Sequence[Call]
    ended: int | None  # so many calls there were in all; None: it has not ended, or not as it was asked to

    @staticmethod
    def of(text: str) -> Client:
        lines = [line for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
        ends = [json.loads(line)["ended"] for line in lines if line.startswith('{"ended"')]
        calls = [Call.parse(line) for line in lines if not line.startswith('{"ended"')]
        return Client(calls, ends[-1] if ends else None)

    def is_complete(self, end: float, lives: bool) -> bool:
        numbers = {call.number for call in self.calls}
        if self.ended is not None:
            return numbers == set(range(self.ended))
        later = [call.number for call in self.calls if call.at >= end]
        return lives and bool(later) and numbers.issuperset(range(min(later)))

    def __str__(self) -> str:
        return f"{len(self.calls)} calls, {'ended' if self.ended is not None else 'not ended'}"


def _renamed(call: Call, target: str) -> Call:
    return Call(call.at, target, call.number, call.ok, call.reason, call.leaf)


@contextmanager
def handshakes(mesh: Mesh, rate: float = 40.0) -> Iterator[Handshakes]:
    """They run throughout."""
    found = Handshakes(mesh, rate)
    try:
        found.wait_succeed()
        yield found
    finally:
        found.stop()
