"""hack/cluster with the control plane as kubeadm has it: static pods of three kubelets, behind a load balancer.

What certroll says of a control plane's certificates is tried on such a cluster, so it must be what it claims to be.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from certroll_dev import control_plane_pods, daemons, footprint, layout, machines, paths, restart_kubelet
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.layout import Machine

T = TypeVar("T")
_NAME = "certroll-planes"
_NODES = ("node-1", "node-2", "node-3")
_PODS = {f"{component}-{node}" for component in control_plane_pods.COMPONENTS for node in _NODES}
_LONG = os.environ.get("CERTROLL_LONG") == "1"
_PATIENCE = 180  # seconds; the machine may have much else to do


class Plane(LocalCluster):
    """The cluster of this module, and what the tests ask of it."""

    def status(self) -> dict[str, Any]:
        done = subprocess.run([paths.HACK / "cluster", "status", "--name", self.name, "--json"], capture_output=True)
        return json.loads(done.stdout)

    def kubelets(self) -> dict[str, int | None]:
        return {each["machine"]: each["pid"] for each in self.status()["daemons"] if each["name"] == "kubelet"}

    def pods(self) -> dict[str, dict[str, Any]]:
        """Those of the control plane, by name."""
        items = self.json("get", "pods", "--namespace=kube-system", "--selector=tier=control-plane")["items"]
        return {item["metadata"]["name"]: item for item in items}

    def containers(self, node: str) -> dict[str, str]:
        """The one container of each of the node's pods."""
        return {name: _container(pod) for name, pod in self.pods().items() if pod["spec"]["nodeName"] == node}

    def json(self, *words: str) -> Any:
        return json.loads(self.kubectl(*words, "--output=json"))

    def metrics_of_etcd(self, node: str) -> dict[str, str]:
        """etcd shows them on the node itself only."""
        machine = self.layout.machine(_NODES.index(node) + 1)
        text = machines.run(machine, ["curl", "--silent", "--fail", "--max-time", "5", "http://127.0.0.1:2381/metrics"])
        return dict(line.split(" ") for line in text.splitlines() if re.fullmatch(r"etcd_server_\w+ \S+", line))


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """Up; afterwards nothing of it is left."""
    plane = Plane(_NAME)
    plane.down()  # of a run that was killed
    before = footprint.take(plane.layout)
    try:
        plane.up("--control-plane-nodes", "3")
        yield plane
    finally:
        plane.down()
    assert footprint.differences(before, footprint.take(plane.layout)) == []


def test_it_is_up_when_all_of_it_is(plane: Plane) -> None:
    pods = plane.pods()
    assert {name for name, pod in pods.items() if _is_ready(pod)} == _PODS
    assert {pod["spec"]["containers"][0]["image"] for pod in pods.values()} == {
        control_plane_pods.image_of(component) for component in control_plane_pods.COMPONENTS
    }

    def leads() -> bool:
        return sorted(plane.metrics_of_etcd(node)["etcd_server_is_leader"] for node in _NODES) == ["0", "0", "1"]

    _until(lambda: _answers(leads), "one of the three leads")
    # Each API server is somebody: they have a Lease each.
    servers = plane.json("get", "leases", "--namespace=kube-system", "--selector=apiserver.kubernetes.io/identity")
    assert len(servers["items"]) == 3


def test_the_status_names_the_files_that_the_pods_read(plane: Plane) -> None:
    status = plane.status()
    assert status["state"] == "running"
    for node in status["nodes"]:
        assert {path.stem for path in Path(node["staticPods"]).iterdir()} == set(control_plane_pods.COMPONENTS)
        for name in ("apiserver.crt", "front-proxy-client.key", "etcd/peer.crt", "sa.pub"):
            assert Path(node["pki"], name).is_file()
        for name in ("admin", "controller-manager", "kubelet", "scheduler"):
            assert Path(node["kubeconfigs"][name]).read_text().startswith("apiVersion: v1")
        assert Path(node["kubeletPki"], "kubelet.crt").is_file()
        assert Path(node["auditLog"]).stat().st_size > 0


@pytest.mark.skipif(not _LONG, reason="an API server takes 40 s to end and to begin: with CERTROLL_LONG=1")
def test_clients_do_not_notice_that_an_api_server_is_replaced(plane: Plane, report: list[str]) -> None:
    name, manifest = "kube-apiserver-node-2", plane.layout.machine(2).static_pods / "kube-apiserver.yaml"
    before = plane.pods()
    with plane.network():
        balanced = Client(plane, str(plane.layout.family.balancer), layout.BALANCER_PORT)
        alone = Client(plane, str(plane.layout.machine(2).address), layout.API_PORT)
        with balanced, alone:
            _touch(manifest)
            _until(lambda: alone.failing_since is not None, "the API server of node-2 ends")
            _until(lambda: alone.failing_since is None, "the API server of node-2 serves again")
    after = _until(lambda: _pods_with_another(plane, before, name), "the API shows the new pod")
    replaced = {each for each in _PODS if _container(after[each]) != _container(before[each])}
    # Who leads has its node's API server only, and ends when it cannot renew its Lease by it.
    leaders = {"kube-controller-manager-node-2", "kube-scheduler-node-2"}
    assert name in replaced and replaced <= {name, *leaders}
    away, noticed = alone.longest_failure, balanced.longest_failure
    report.append(f"API server away for {away:.1f} s; through the balancer for {noticed:.1f} s, {balanced.calls} calls")
    assert balanced.calls > 100
    assert noticed < min(away, 5), balanced.errors


def test_etcd_bears_the_loss_of_a_member(plane: Plane, report: list[str]) -> None:
    manifest = plane.layout.machine(3).static_pods / "etcd.yaml"
    aside = manifest.parent.parent / "etcd.yaml.aside"
    os.replace(manifest, aside)
    try:
        _until(lambda: not _answers(lambda: plane.metrics_of_etcd("node-3")), "the member ends")
        began = time.monotonic()
        write = ("annotate", "--overwrite", "namespace/default", f"certroll.dev/written={began}")
        _until(lambda: _answers(lambda: plane.kubectl(*write)), "two of three take a write")
        report.append(f"a write through the balancer {time.monotonic() - began:.1f} s after a member of etcd had gone")
        assert all(_has_leader(plane, node) for node in _NODES[:2])
    finally:
        os.replace(aside, manifest)
    _until(lambda: _answers(lambda: _has_leader(plane, "node-3")), "the member is back")


def test_a_kubelet_that_was_killed_is_started_by_the_nodes_own_command(plane: Plane) -> None:
    before, containers = plane.kubelets(), plane.containers("node-2")
    _kill(before["node-2"])
    assert plane.status()["state"] == "degraded"

    _run_as_a_pod(plane.layout.machine(2), [restart_kubelet.COMMAND])
    second = plane.kubelets()
    assert second["node-2"] not in (None, before["node-2"])
    assert {**second, "node-2": None} == {**before, "node-2": None}
    # It does not end with the pod that asked for it.
    assert "kubepods" not in Path(f"/proc/{second['node-2']}/cgroup").read_text()

    command = [paths.HACK / "cluster", "restart-kubelet", "--name", plane.name, "--node", "node-2", "--quiet"]
    subprocess.run(command, check=True)
    assert plane.kubelets()["node-2"] not in (None, second["node-2"])
    assert plane.status()["state"] == "running"
    _until(lambda: all(map(_is_ready, plane.pods().values())), "all pods are Ready")
    assert plane.containers("node-2") == containers


def test_another_control_plane_is_refused(plane: Plane) -> None:
    command = [paths.HACK / "cluster", "up", "--name", plane.name, "--control-plane-nodes", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "take the cluster down first" in done.stderr


@dataclass
class Client(threading.Thread):
    """Calls an API server, each time by a new connection, and remembers for how long it failed."""

    plane: Plane
    host: str
    port: int
    calls: int = 0
    failing_since: float | None = None
    longest_failure: float = 0
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        pki = self.plane.layout.pki
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._end = threading.Event()

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> Client:
        self.start()
        _until(lambda: self.calls > 0 and self.failing_since is None, f"{self.host} answers")
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join()

    def run(self) -> None:
        while not self._end.wait(0.05):
            self._note(time.monotonic(), self._call())
            self.calls += 1

    def _call(self) -> str | None:
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=10, context=self._tls)
        try:
            connection.request("GET", "/api/v1/namespaces/default")
            status = connection.getresponse().status
            return None if status == 200 else f"HTTP {status}"
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        finally:
            connection.close()

    def _note(self, began: float, error: str | None) -> None:
        if error is not None:
            self.errors.append(error)
            self.failing_since = began if self.failing_since is None else self.failing_since
        if self.failing_since is not None:
            self.longest_failure = max(self.longest_failure, time.monotonic() - self.failing_since)
        if error is None:
            self.failing_since = None


def _has_leader(plane: Plane, node: str) -> bool:
    return plane.metrics_of_etcd(node)["etcd_server_has_leader"] == "1"


def _touch(manifest: Path) -> None:
    """Change an annotation, in one step: whatever else is written into the folder would be a pod, too."""
    text = manifest.read_text().replace("  annotations:\n", "  annotations:\n    certroll.dev/touched: once\n", 1)
    half = manifest.parent.parent / f".{manifest.name}.new"
    half.write_text(text)
    half.chmod(0o600)
    os.replace(half, manifest)


def _pods_with_another(plane: Plane, before: dict[str, Any], name: str) -> dict[str, Any] | None:
    """All pods, once the API server has the new one of that name with a container."""
    if not _answers(plane.pods):
        return None
    pods = plane.pods()
    is_new = name in pods and pods[name]["metadata"]["uid"] != before[name]["metadata"]["uid"]
    return pods if is_new and pods[name]["status"].get("containerStatuses") else None


def _container(pod: dict[str, Any]) -> str:
    return pod["status"]["containerStatuses"][0]["containerID"]


def _is_ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


def _answers(call: Callable[[], object]) -> bool:
    try:
        return call() is not False
    except Exception:
        return False


def _until(call: Callable[[], T | None], what: str) -> T:
    """Its result, as soon as there is one."""
    end = time.monotonic() + _PATIENCE
    while True:
        found = call()
        if found:
            return found
        assert time.monotonic() < end, f"not within {_PATIENCE} s: {what}"
        time.sleep(0.1)


def _run_as_a_pod(machine: Machine, command: list[str]) -> None:
    """From within the cgroups of the node's pods, as an agent that has the host's PID namespace."""
    enter = 'for each in /sys/fs/cgroup/*/"$0"/kubepods/cgroup.procs; do echo $$ > "$each"; done; '
    check = 'grep -q kubepods /proc/$$/cgroup; exec "$@"'
    subprocess.run(["sh", "-ec", enter + check, machine.cgroup, *machines.enter(machine, command)], check=True)


def _kill(pid: int | None) -> None:
    process = daemons.Process.of(pid or 0)
    assert process is not None
    process.kill()
    assert daemons.wait_for_end([process], 10) == []
