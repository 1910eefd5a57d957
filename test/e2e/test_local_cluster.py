"""hack/cluster itself: up is idempotent and mends what was killed, down leaves nothing behind."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
from certroll_dev import daemons, footprint, namespaces, paths
from certroll_dev.layout import Cluster

_PROGRAM = paths.HACK / "cluster"
_NODE_DAEMONS = ("containerd", "kubelet", "kube-proxy")
_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class Subject:
    """A cluster of its own for a test, by its command line."""

    def __init__(self, name: str) -> None:
        self.layout = Cluster(name)

    def run(self, verb: str, *words: str) -> str:
        done = subprocess.run([*self.command(verb), *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, verb: str) -> list[str]:
        return [str(_PROGRAM), verb, "--name", self.layout.name]

    def status(self) -> dict:
        return json.loads(subprocess.run([*self.command("status"), "--json"], capture_output=True).stdout)

    def pids(self) -> dict[str, int | None]:
        return {f"{daemon['machine']}/{daemon['name']}": daemon["pid"] for daemon in self.status()["daemons"]}

    def healthy_dns_pods(self) -> set[str]:
        """The nodes whose CoreDNS pod answers the API server, which goes through the pods' network."""
        question = ("--namespace=kube-system", "get", "pods", "--selector=k8s-app=kube-dns", "--output=json")
        pods = json.loads(self.run("kubectl", *question))["items"]
        path = "/api/v1/namespaces/kube-system/pods/{}:8080/proxy/health"
        names = {pod["spec"].get("nodeName"): pod["metadata"]["name"] for pod in pods}
        return {node for node, pod in names.items() if self.run("kubectl", "get", "--raw", path.format(pod)) == "OK"}


@pytest.fixture
def subject() -> Iterator[Subject]:
    """Not up yet; afterwards it is down, and nothing of it is left."""
    subject = Subject("certroll-lifecycle")
    subject.run("down")  # of a run that was killed
    before = footprint.take(subject.layout)
    try:
        yield subject
    finally:
        subject.run("down")
    assert footprint.differences(before, footprint.take(subject.layout)) == []


def test_a_second_up_changes_nothing_and_a_later_one_mends_what_was_killed(subject: Subject) -> None:
    subject.run("up")
    first = subject.pids()
    subject.run("up")
    assert subject.pids() == first

    for name in (*_NODE_DAEMONS, *_CONTROL_PLANE):
        _kill(first[f"node-1/{name}"])
    assert subject.status()["state"] == "degraded"
    subject.run("up")
    assert subject.status()["state"] == "running"
    assert subject.healthy_dns_pods() == {"node-1"}


def test_a_machine_that_was_killed_comes_back_with_its_objects(subject: Subject) -> None:
    subject.run("up")
    subject.run("kubectl", "create", "configmap", "kept")
    _kill(subject.pids()["node-1/machine"])
    subject.run("up")
    assert subject.healthy_dns_pods() == {"node-1"}
    assert "kept" in subject.run("kubectl", "get", "configmaps", "--output=name")


@pytest.mark.parametrize("seconds", [0.3, 0.8, 2.0, 4.0])
def test_up_goes_on_where_a_killed_one_stopped(subject: Subject, seconds: float) -> None:
    with subprocess.Popen(subject.command("up"), stderr=subprocess.DEVNULL) as interrupted:
        time.sleep(seconds)  # the moment is the point: anywhere between two steps
        interrupted.kill()
    subject.run("up")
    assert subject.status()["state"] == "running"


@pytest.mark.parametrize(
    ("option", "versions"),
    [pytest.param((), [4], id="ipv4"), pytest.param(("--ipv6",), [6], id="ipv6"), pytest.param(("--dual-stack",), [4, 6], id="dual-stack")],
)
def test_two_nodes_carry_pods_that_reach_one_another(subject: Subject, option: tuple[str, ...], versions: list[int]) -> None:
    subject.run("up", "--nodes", "2", *option)
    subject.run("kubectl", "--namespace=kube-system", "scale", "deployment/coredns", "--replicas=2")
    subject.run("kubectl", "--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")
    assert subject.healthy_dns_pods() == {"node-1", "node-2"}
    pods = json.loads(subject.run("kubectl", "get", "pods", "--all-namespaces", "--output=json"))["items"]
    assert all([ip_address(each["ip"]).version for each in pod["status"]["podIPs"]] == versions for pod in pods)
    nodes = json.loads(subject.run("kubectl", "get", "nodes", "--output=json"))["items"]
    addresses = [[each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"] for node in nodes]
    assert [[ip_address(address).version for address in each] for each in addresses] == [versions] * 2


def test_a_service_has_an_address_of_the_family_that_it_asks_for(subject: Subject) -> None:
    subject.run("up", "--dual-stack")
    patch = {"spec": {"ipFamilyPolicy": "RequireDualStack"}}
    subject.run("kubectl", "--namespace=kube-system", "patch", "service", "kube-dns", f"--patch={json.dumps(patch)}")
    service = json.loads(subject.run("kubectl", "--namespace=kube-system", "get", "service", "kube-dns", "--output=json"))
    assert [ip_address(address).version for address in service["spec"]["clusterIPs"]] == [4, 6]
    end = time.monotonic() + 60
    while not all(_connects(subject, address, 53) for address in service["spec"]["clusterIPs"]):
        assert time.monotonic() < end, "CoreDNS is not reached by both of its Service's addresses"


def test_a_cluster_keeps_its_family(subject: Subject) -> None:
    subject.run("up", "--control-plane-only", "--ipv6")
    refused = subprocess.run([*subject.command("up"), "--dual-stack"], capture_output=True, text=True)
    assert refused.returncode == 1
    assert "are IPv6, and cannot become IPv4 and IPv6: take the cluster down first, or choose another --name" in refused.stderr
    subject.run("up", "--control-plane-only", "--ipv6")
    subject.run("up", "--control-plane-only")
    assert subject.status()["ipFamilies"] == ["IPv6"]


def test_a_control_plane_alone_takes_objects_and_admits_them(subject: Subject) -> None:
    subject.run("up", "--control-plane-only")
    subject.run("kubectl", "create", "configmap", "one")
    assert {name.removeprefix("node-1/") for name in subject.pids()} == {"machine", *_CONTROL_PLANE}
    events = [json.loads(line) for line in subject.layout.audit_log.read_text().splitlines()]
    writes = [event["objectRef"].get("name") for event in events if event["verb"] == "create" and "objectRef" in event]
    assert "one" in writes


def _connects(subject: Subject, address: str, port: int) -> bool:
    def connect() -> bool:
        try:
            socket.create_connection((address, port), timeout=1).close()
        except OSError:
            time.sleep(0.1)  # refused at once, while there is no endpoint
            return False
        return True

    return namespaces.in_network(subject.layout.netns_path, connect)


def _kill(pid: int | None) -> None:
    process = daemons.Process.of(pid or 0)
    assert process is not None
    process.kill()
    assert daemons.wait_for_end([process], 10) == []
