"""Edges in a namespace of their own, their upstream, and their clients: who was cut is what counts."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import drain_clients
import drain_upstream
from certroll_dev import cgroups, paths
from certroll_dev.demo import pki
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.calls import Call, CallLog
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Authority
from certroll_dev.demo.policy import Status
from certroll_dev.demo.processes import Background, Load
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import is_rolled_out
from certroll_dev.pod_logs import PodLogs
from drain_edge import HTTP, NAMESPACE, TCP, Edge

_UP = 120.0  # seconds
_TIMEOUT = 60.0  # seconds: a machine that is only slow must not look like somebody who was cut
_PROGRAMS = ("certroll-shutdown-manager", "contour", "envoy-gateway")  # what the shutdown manager may be called


@dataclass(frozen=True)
class Change:
    version: str  # the Secret's resourceVersion
    leaf: str  # SHA-256 of the certificate


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    ip: str
    told: bool  # to end
    containers: Mapping[str, str]  # their ids, by name

    @staticmethod
    def of(obj: Object) -> Pod:
        status = obj["status"]
        all_of_them = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
        ids = {each["name"]: each.get("containerID", "").rpartition("/")[2] for each in all_of_them}
        return Pod(obj["metadata"]["name"], obj["metadata"]["uid"], status.get("podIP", ""), "deletionTimestamp" in obj["metadata"], ids)


@dataclass
class World:
    cluster: LocalCluster
    api: API
    logs: Path
    scratch: Path
    manager: str  # the image of the shutdown manager
    authority: Authority = field(default_factory=lambda: pki.new_authority(1))

    def __post_init__(self) -> None:
        self._pod_logs = PodLogs(self.cluster.layout, NAMESPACE, "")
        (self.scratch / "ca.pem").write_bytes(self.authority.certificate)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return (NAMESPACE,)

    # --- life

    @contextmanager
    def running(self) -> Iterator[World]:
        self.cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")  # of a run before, if any
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        self.upstream = Upstream(str(self.cluster.layout.machine(1).address), self.scratch)
        try:
            yield self
        finally:
            self.upstream.stop()
            self.cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
            self._delete_now("--all")  # nobody is connected any more

    def create(self, *edges: Edge) -> None:
        """Returns when they are up."""
        for edge in edges:
            self.renew(edge)
        folders = [edge.write(self.scratch / edge.name, self.upstream.address, self.manager) for edge in edges]
        built = "\n---\n".join(self.cluster.kubectl("kustomize", str(folder)) for folder in folders)
        self.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=built)
        for edge in edges:
            self.wait_up(edge)

    def wait_up(self, edge: Edge) -> None:
        """Until it is known to the operator, and its Service leads to its pods."""
        address = self.api.get("services", NAMESPACE, edge.name)["spec"]["clusterIP"]

        def look() -> bool:
            deployment = self.api.get("deployments", NAMESPACE, edge.name)
            return is_rolled_out(deployment) and self.status(edge).holds("Ready") and _health(address) == 200

        wait_for(f"Deployment {edge.name}", look, deadline=_UP, missing=lambda: self._describe(edge))

    def remove(self, edge: Edge) -> None:
        """At once, with whoever is connected: room for the next ones."""
        self.api.delete("certrotationpolicies", NAMESPACE, edge.name)
        self.api.delete("deployments", NAMESPACE, edge.name)
        self._delete_now("-l", f"app={edge.name}")

    def _delete_now(self, *which: str) -> None:
        self.cluster.kubectl("-n", NAMESPACE, "delete", "pods", *which, "--grace-period=0", "--force", "--wait=false", "--ignore-not-found")

    def _describe(self, edge: Edge) -> str:
        words = ("-n", NAMESPACE)
        return self.cluster.kubectl(*words, "describe", "pods", "-l", f"app={edge.name}")[-3000:] + json.dumps(self._policy(edge).get("status"), indent=1)

    # --- changing

    def renew(self, edge: Edge) -> Change:
        material = self.authority.issue(edge.name, namespace=NAMESPACE)
        written = self.api.apply("secrets", material.secret(edge.secret, NAMESPACE))
        return Change(written["metadata"]["resourceVersion"], material.fingerprint())

    def delete(self, pod: Pod) -> None:
        """Told to end, as by anybody. Returns at once."""
        self.cluster.kubectl("-n", NAMESPACE, "delete", "pod", pod.name, "--wait=false")

    # --- looking

    def _policy(self, edge: Edge) -> Object:
        return self.api.get("certrotationpolicies", NAMESPACE, edge.name)

    def status(self, edge: Edge) -> Status:
        return Status.of(self._policy(edge))

    def pods(self, edge: Edge) -> list[Pod]:
        """Those that end, too."""
        self._pod_logs.keep()
        return sorted((Pod.of(obj) for obj in self.api.list("pods", NAMESPACE, f"app={edge.name}")), key=lambda pod: pod.name)

    def log(self, pod: Pod) -> str:
        """Of all its containers, also when it is gone."""
        return self._pod_logs.text(pod.uid)

    def results(self, pod: Pod) -> list[Object]:
        """Of the drains that have come to an end in it, as the shutdown manager logged them."""
        lines = [json.loads(line) for line in self.log(pod).splitlines() if line.startswith("{")]
        return [line for line in lines if "result" in line]

    def events(self, pod: Pod) -> list[Object]:
        return [event for event in self.api.list("events", NAMESPACE) if event["involvedObject"].get("uid") == pod.uid]

    def managers(self, pod: Pod) -> dict[int, str]:
        """Processes of the shutdown manager in its containers: number, as this process counts them, and the container."""
        found = {}
        for container, identity in pod.containers.items():
            for pid in cgroups.pids_of_container(self.cluster.layout.cgroup, identity) if identity else []:
                with contextlib.suppress(OSError):
                    program = os.path.basename(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode())
                    if program in _PROGRAMS:
                        found[pid] = container
        return found

    def wait_draining(self, edge: Edge, pods: list[Pod], deadline: float = 120.0) -> None:
        """Until each of them has failed its health check because it was told to end."""
        uids = {pod.uid for pod in pods}

        def look() -> bool:
            told = {pod.uid for pod in self.pods(edge) if pod.told}
            return uids <= told and all(_health(pod.ip) == 503 for pod in pods)

        wait_for("the old pods to drain", look, deadline=deadline, missing=lambda: self._describe(edge))

    def wait_told(self, edge: Edge, pods: list[Pod], deadline: float = 120.0) -> None:
        """Until each of them was told to end, or is gone already."""
        uids = {pod.uid for pod in pods}

        def look() -> bool:
            return not uids & {pod.uid for pod in self.pods(edge) if not pod.told}

        wait_for("the old pods to be told to end", look, deadline=deadline, missing=lambda: self._describe(edge))

    def wait_gone(self, edge: Edge, pods: list[Pod], deadline: float) -> dict[str, float]:
        """When each was gone, in seconds of the monotonic clock, by uid."""
        gone: dict[str, float] = {}

        def look() -> bool:
            there = {pod.uid for pod in self.pods(edge)}
            for pod in pods:
                if pod.uid not in there:
                    gone.setdefault(pod.uid, time.monotonic())
            return len(gone) == len(pods)

        wait_for("the old pods to end", look, deadline=deadline, missing=lambda: self._describe(edge))
        return gone

    def wait_settled(self, edge: Edge, change: Change, deadline: float = 180.0) -> Status:
        wait_for(
            f"policy {edge.name} to be settled", lambda: self.status(edge).settled({edge.secret: change.version}),
            deadline=deadline, missing=lambda: self._describe(edge),
        )  # fmt: skip
        return self.status(edge)

    # --- clients

    def _address(self, edge: Edge, port: int) -> str:
        return f"{self.api.get('services', NAMESPACE, edge.name)['spec']['clusterIP']}:{port}"

    @contextmanager
    def clients(self, edge: Edge, requests: int, streams: int) -> Iterator[Clients]:
        """Through the Service; they are in the middle of it when this returns."""
        before = self.upstream.held()
        clients = Clients(self.logs, [
            "--http", self._address(edge, HTTP), "--tcp", self._address(edge, TCP), "--ca", self.scratch / "ca.pem",
            "--name", edge.server_name, "--requests", str(requests), "--streams", str(streams),
        ])  # fmt: skip
        try:
            wait_for(
                "all clients to be in the middle of it", lambda: clients.check() or self.upstream.held() >= before + requests + streams,
                deadline=_TIMEOUT, missing=lambda: f"{self.upstream.held()} are; over: {clients.over()[:3]}",
            )  # fmt: skip
            yield clients
        finally:
            clients.stop()

    @contextmanager
    def calls(self, edge: Edge, rate: float) -> Iterator[Calls]:
        """Short requests all the time, through the Service, each over a connection of its own."""
        calls = Calls(f"{edge.name}={self._address(edge, HTTP)}/{edge.server_name}", self.scratch / "ca.pem", rate, self.logs)
        try:
            yield calls
        finally:
            calls.stop()


def _health(ip: str) -> int | None:
    """What Envoy says of itself to load balancers. None: nobody answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(ip, HTTP, timeout=10, context=context)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Upstream:
    """At the node's own address, where its pods reach it."""

    def __init__(self, host: str, folder: Path) -> None:
        port_file = folder / "upstream.port"
        command = [sys.executable, drain_upstream.__file__, "--host", host, "--port-file", str(port_file)]
        self._process = Background("the upstream", command, folder / "upstream.log")
        wait_for("the upstream", lambda: self._process.check() or port_file.exists(), deadline=30)
        self.address = f"{host}:{port_file.read_text()}"

    def stop(self) -> None:
        self._process.stop()

    def held(self, ip: str = "") -> int:
        """How many wait to be let go, of those that come through this pod, or all."""
        held = self._state("held")
        return held.get(ip, 0) if ip else sum(held.values())

    def answered(self, ip: str) -> int:
        """How many that came through this pod were answered at once."""
        return self._state("answered").get(ip, 0)

    def _state(self, what: str) -> dict[str, int]:
        state: dict[str, dict[str, int]] = json.loads(self._ask("GET", "/state"))
        return state[what]

    def release(self, over: float) -> int:
        """All who are held now, one after the other within so many seconds. Returns at once, how many they are."""
        return int(self._ask("POST", f"/release?over={over}"))

    def _ask(self, method: str, target: str) -> str:
        self._process.check()
        connection = http.client.HTTPConnection(self.address, timeout=_TIMEOUT)
        try:
            connection.request(method, target)
            return connection.getresponse().read().decode()
        finally:
            connection.close()


@dataclass(frozen=True)
class Over:
    kind: str
    ended: float  # seconds since the epoch
    cut: str  # how; empty: it got what it asked for


class Clients:
    """Of drain_clients.py."""

    def __init__(self, folder: Path, words: list[str | Path]) -> None:
        self._out = folder / f"clients-{time.time_ns()}.jsonl"
        command = [sys.executable, drain_clients.__file__, *words, "--out", self._out]
        self._process = Background("the clients", command, folder / "clients.log", {"PYTHONPATH": str(paths.HACK / "lib")})

    def check(self) -> None:
        if not self._process.running() and self._process.stop() != 0:
            self._process.check()

    def stop(self) -> None:
        self._process.stop()

    def over(self) -> list[Over]:
        """Those that have come to an end, in their order."""
        lines = self._out.read_text().split("\n")[:-1] if self._out.exists() else []
        return [Over(record["kind"], record["ended"], record["cut"]) for record in map(json.loads, lines)]

    def wait_over(self, deadline: float) -> list[Over]:
        wait_for("the clients to come to their end", lambda: self.check() or not self._process.running(), deadline=deadline)
        return self.over()


class Calls:
    """Of the demo's load generator."""

    def __init__(self, target: str, trust: Path, rate: float, folder: Path) -> None:
        out = folder / f"calls-{time.time_ns()}.jsonl"
        self._log = CallLog(out)
        self._load = Load([target], trust, rate, out, folder / "load.log", _TIMEOUT)
        self._began = time.time()

    def stop(self) -> None:
        self._load.stop()

    def so_far(self) -> list[Call]:
        """All of them until now; those under way are waited for."""
        now = time.time()

        def answered() -> bool:
            self._load.check()
            return self._log.answered(now)

        wait_for("calls under way to end", answered, deadline=_TIMEOUT + 10)
        return self._log.between(self._began, now)


def rss_anon(pid: int) -> int:
    """Bytes of memory of its own; 0: it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def kill(pid: int) -> None:
    """As a crash."""
    os.kill(pid, signal.SIGKILL)
