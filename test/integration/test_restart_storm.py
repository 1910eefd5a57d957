"""200 Secrets (500 with CERTROLL_LONG=1) change at once, for as many workloads whose pods take a second to be ready, and the operator is killed in the middle: never
more restarts under way than the limits allow, by each event of a watch of the Deployments; all are done, each once.

The pods are kwok's, the rollouts those of the real controllers.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import Operator
from rotations import Object, direct, leaves, patiently

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import sanitizers  # noqa: E402
from certroll_dev.demo.api import API, APIError  # noqa: E402
from certroll_dev.kwok import Kwok, node_name  # noqa: E402
from certroll_dev.layout import Cluster  # noqa: E402

_NAMESPACES, _EACH = 5, 100 if os.environ.get("CERTROLL_LONG") == "1" else 40
_IN_NAMESPACE, _IN_ALL = 12, 40  # restarts at a time; in all namespaces together fewer than their limits would allow
_READY_AFTER = 1.0
_PATIENCE = 1200.0  # 40 s of work each, on a machine that has nothing else to do
_PAUSE = 2.0  # between two looks at all of them
_WATCH = 60  # seconds; then the next goes on where this one ended
_HANDS = 8


@dataclass
class Rollouts:
    """Each event of the Deployments. They have one history: resourceVersions of all objects are in the order of their writes."""

    api: API
    namespaces: list[str]
    events: list[tuple[int, str, str, int, bool]] = field(default_factory=list)  # version, namespace, name, generation, complete
    before: dict[tuple[str, str], int] = field(default_factory=dict)  # generations

    @contextmanager
    def recorded(self) -> Iterator[None]:
        end = threading.Event()
        threads = []
        for namespace in self.namespaces:
            listed = self.api.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments")
            for each in listed["items"]:
                assert _is_complete(each)
                self.before[namespace, each["metadata"]["name"]] = each["metadata"]["generation"]
            words = (namespace, listed["metadata"]["resourceVersion"], end)
            threads.append(threading.Thread(target=self._record, args=words, daemon=True))
        for thread in threads:
            thread.start()
        yield
        end.set()
        # Whatever was written before the end has come when a later event of each has.
        for namespace in self.namespaces:
            name = next(name for place, name in self.before if place == namespace)
            patch = {"metadata": {"labels": {"storm": str(time.monotonic_ns())}}}
            last = int(self.api.merge("deployments", namespace, name, patch)["metadata"]["resourceVersion"])
            wait_until(f"the last event of {namespace}", lambda n=namespace, v=last: self._has(n, v), 60)

    def _record(self, namespace: str, version: str, end: threading.Event) -> None:
        while not end.is_set():
            try:
                for kind, each in self.api.watch("deployments", namespace, version, _WATCH):
                    version = each["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        meta = each["metadata"]
                        self.events.append((int(version), namespace, meta["name"], meta["generation"], _is_complete(each)))
            except (OSError, APIError):
                time.sleep(0.5)

    def _has(self, namespace: str, version: int) -> bool:
        return any(event[0] >= version and event[1] == namespace for event in self.events)

    def done(self) -> int:
        """How many have been restarted, and are complete."""
        return len({(namespace, name) for _, namespace, name, generation, complete in list(self.events)
                    if complete and generation > self.before[namespace, name]})  # fmt: skip

    def most(self) -> tuple[int, dict[str, int]]:
        """Under way at the worst moment: in all namespaces, and in each."""
        under_way: set[tuple[str, str]] = set()
        in_all, within = 0, dict.fromkeys(self.namespaces, 0)
        for _, namespace, name, generation, complete in sorted(self.events):
            if complete or generation == self.before[namespace, name]:
                under_way.discard((namespace, name))
            else:
                under_way.add((namespace, name))
            in_all = max(in_all, len(under_way))
            within[namespace] = max(within[namespace], sum(place == namespace for place, _ in under_way))
        assert not under_way
        return in_all, within

    def not_once(self) -> dict[tuple[str, str], int]:
        """Who was restarted more than once, or never."""
        last = dict(self.before)
        for _, namespace, name, generation, _ in sorted(self.events):
            last[namespace, name] = generation
        return {place: last[place] - first for place, first in self.before.items() if last[place] - first != 1}


def _is_complete(deployment: Object) -> bool:
    """As `kubectl rollout status` says."""
    wanted, status = deployment["spec"]["replicas"], deployment.get("status", {})
    counts = [status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration", 0) >= deployment["metadata"]["generation"] and counts == [wanted] * 3


class Fleet:
    """A policy, a Secret and a Deployment of one replica, so many times."""

    def __init__(self, api: API, namespaces: list[str]) -> None:
        self.api = api
        self.namespaces = namespaces
        self._leaves = leaves(3)
        self._turn = 0
        self._versions: dict[tuple[str, str], str] = {}  # of the Secrets
        self._places = [(namespace, f"web-{number}") for namespace in namespaces for number in range(_EACH)]

    def create(self) -> None:
        self._each(self._create)
        wait_until("the first pods", self._are_complete, _PATIENCE, _PAUSE)

    def change_all(self) -> float:
        """How long it took."""
        self._turn += 1
        began = time.monotonic()
        self._each(self._change)
        return time.monotonic() - began

    def are_settled(self) -> bool:
        """What every Secret holds is on record, with nothing left to do."""
        return all(self._is_settled(each) for namespace in self.namespaces for each in self._list("certrotationpolicies", namespace))

    def _is_settled(self, policy: Object) -> bool:
        place = (policy["metadata"]["namespace"], policy["metadata"]["name"])
        secrets = policy.get("status", {}).get("secrets", [])
        return any("settled" in each and "pending" not in each and each["observedResourceVersion"] == self._versions[place]
                   for each in secrets)  # fmt: skip

    def _are_complete(self) -> bool:
        return all(_is_complete(each) for namespace in self.namespaces for each in self._list("deployments", namespace))

    def _list(self, kind: str, namespace: str) -> list[Object]:
        items = patiently(lambda: {"items": self.api.list(kind, namespace)})["items"]
        assert len(items) == _EACH
        return list(items)

    def _each(self, do: Callable[[tuple[str, str]], None]) -> None:
        with ThreadPoolExecutor(_HANDS) as pool:
            list(pool.map(do, self._places))

    def _change(self, place: tuple[str, str]) -> None:
        namespace, name = place
        patch = {"data": self._leaves[self._turn]}
        written = patiently(lambda: self.api.merge("secrets", namespace, name, patch))  # the same twice is one change
        self._versions[place] = written["metadata"]["resourceVersion"]

    def _create(self, place: tuple[str, str]) -> None:
        namespace, name = place
        metadata = {"name": name, "namespace": namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": self._leaves[0]}
        self._versions[place] = patiently(lambda: self.api.apply("secrets", secret))["metadata"]["resourceVersion"]
        reference = {"secretKeyRef": {"name": name, "key": "tls.crt"}}
        container = {"name": "c", "image": "example.com/unknown:1", "env": [{"name": "CERTIFICATE", "valueFrom": reference}]}
        labels = {"app": name}
        pod = {"nodeName": node_name(0), "containers": [container], "terminationGracePeriodSeconds": 0}  # needs no scheduler
        deployment = {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels}, "revisionHistoryLimit": 0,
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }  # fmt: skip
        policy = {
            "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": metadata,
            "spec": {
                "secrets": [{"name": name}],
                "consumers": [{"name": "c", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}],
                "restart": {"coalesce": "0s"},
            },
        }  # fmt: skip
        patiently(lambda: self.api.apply("deployments", deployment))
        patiently(lambda: self.api.apply("certrotationpolicies", policy))


@pytest.fixture(scope="module")
def fleet(control_plane: ControlPlane) -> Iterator[Fleet]:
    prefix = f"fleet-{time.time_ns() % 10**9}"
    namespaces = [f"{prefix}-{number}" for number in range(_NAMESPACES)]
    control_plane.create(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces))
    with direct(control_plane) as api, Kwok(Cluster(control_plane.name), nodes=1, ready_after=_READY_AFTER):
        made = Fleet(api, namespaces)
        made.create()
        yield made
    control_plane.kubectl("delete", "namespace", *namespaces, "--wait=false")
    control_plane.kubectl("delete", "node", node_name(0))


@contextmanager
def operator(plane: ControlPlane, fleet: Fleet, name: str, folder: Path) -> Iterator[Operator]:
    first, *others = fleet.namespaces
    limits = [f"--max-restarts={_IN_ALL}", f"--max-restarts-per-namespace={_IN_NAMESPACE}"]
    flags = ["--leader-elect=false", *limits, *(f"--namespace={namespace}" for namespace in others)]
    running = Operator(plane, first, name, plane.kubeconfig, folder, *flags, extra_environment=sanitizers.ENVIRONMENT)
    try:
        yield running
        assert sanitizers.report_in(running.log) is None
    finally:
        running.end()


def change_all_at_once(fleet: Fleet, running: Operator) -> None:
    """However long the writes take on a busy machine: the operator is stopped meanwhile, so to it they are one."""
    running.signal(signal.SIGSTOP)
    took = fleet.change_all()
    running.signal(signal.SIGCONT)
    print(f"{_NAMESPACES * _EACH} Secrets changed in {took:.1f} s")


@pytest.mark.timeout(3600)  # on a machine that has much else to do
def test_many_changes_at_once_and_a_kill(control_plane: ControlPlane, fleet: Fleet, tmp_path: Path) -> None:
    rollouts = Rollouts(fleet.api, fleet.namespaces)
    with rollouts.recorded():
        with operator(control_plane, fleet, "first", tmp_path) as running:
            wait_until("all policies to be seen", fleet.are_settled, _PATIENCE, _PAUSE)
            began = time.monotonic()
            change_all_at_once(fleet, running)
            wait_until("one that waits for a limit", lambda: 'reason="Limit"' in running.get("/metrics")[1], _PATIENCE)
            wait_until("a third of them", lambda: rollouts.done() > _NAMESPACES * _EACH / 3, _PATIENCE)
            running.signal(signal.SIGKILL)
            running.wait()
        with operator(control_plane, fleet, "second", tmp_path) as running:
            running.wait_line("restarted", _PATIENCE)
            synced, first = running.wait_line("all caches are in sync"), running.wait_line("restarted")
            wait_until("all to have it", fleet.are_settled, _PATIENCE, _PAUSE)
            assert "certroll_restarts_in_flight{" not in running.get("/metrics")[1]
    in_all, within = rollouts.most()
    print(f"all done in {time.monotonic() - began:.0f} s; under way at most {in_all}, in a namespace {max(within.values())}; "
          f"after the kill in sync at {synced['ts']}, the first restart at {first['ts']}")  # fmt: skip
    assert rollouts.not_once() == {}
    assert in_all <= _IN_ALL
    assert max(within.values()) <= _IN_NAMESPACE
    # Else it was not the limits that held them.
    assert in_all > _IN_ALL // 2
