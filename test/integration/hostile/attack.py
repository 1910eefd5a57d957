"""All ways at once, from one namespace."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rotations import APIError

from .domain_ways import Domains
from .pod_ways import Pods, Servers
from .policy_ways import Policies
from .secret_ways import Secrets
from .tenant import Object, Tenant, Way
from .workload_ways import Workloads

_PAUSE_S = 0.02  # between two writes of a thread
_THREADS = 4


class Attack:
    """Each way is gone by one thread at a time, as often as its turn comes; those that are due are taken at random."""

    def __init__(self, tenant: Tenant, good: Sequence[Object], servers: Servers, folder: Path) -> None:
        self._tenant = tenant
        self._policies, self._pods = Policies(tenant, good[0]), Pods(tenant, good, servers)
        self._groups = [Secrets(tenant, good, folder), self._policies, Workloads(tenant, good[0]), Domains(tenant, good[0]), self._pods]
        self._due: dict[str, float] = {}
        self._turns: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self.written: Counter[str] = Counter()
        self.refused: dict[str, str] = {}  # what the API server said last

    def prepare(self) -> None:
        for group in self._groups:
            group.prepare()
        self._ways = [way for group in self._groups for way in group.ways()]
        self._due = dict.fromkeys((way.name for way in self._ways), 0.0)

    @contextmanager
    def under_way(self) -> Iterator[None]:
        running = [threading.Thread(target=self._go_on, daemon=True) for _ in range(_THREADS)]
        for each in running:
            each.start()
        try:
            yield
        finally:
            self._end.set()
            for each in running:
                each.join()

    def leave(self) -> None:
        self._policies.leave()

    def names(self) -> list[str]:
        """Of all ways, those of the pods' servers among them."""
        return [*self._due, *self._pods.said()]

    def none(self) -> dict[str, str]:
        """Ways that were never gone to their end, and why."""
        return {name: self.refused.get(name, "its turn never came") for name in self._due if not self.written[name]}

    def _go_on(self) -> None:
        while not self._end.wait(_PAUSE_S):
            way = self._take()
            if way:
                self._go(way)

    def _take(self) -> Way | None:
        with self._lock:
            due = [way for way in self._ways if self._due[way.name] <= time.monotonic()]
            way = self._tenant.dice.choice(due) if due else None
            if way:
                self._due[way.name] = float("inf")
        return way

    def _go(self, way: Way) -> None:
        turn = self._turns[way.name]
        self._turns[way.name] += 1
        try:
            way.act(turn)
            self.written[way.name] += 1
        except APIError as error:
            self.refused[way.name] = str(error)
        with self._lock:
            self._due[way.name] = time.monotonic() + way.every
