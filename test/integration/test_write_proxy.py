"""The recording proxy of the crash tests: what it must not change, what it must see, and that it kills at the right moment."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from write_points import Namer, Point, Write  # noqa: E402
from write_proxy import Trap, When, WriteProxy  # noqa: E402

POLICY = "/apis/certroll.dev/v1alpha1/namespaces/n/certrotationpolicies/p/status?fieldManager=x"


def body(obj: Any) -> bytes:
    return json.dumps(obj).encode()


def status(*pending: str) -> bytes:
    secrets = [{"name": name, "pending": {"id": "1"} if name in pending else None} for name in ("a", "b")]
    return body({"status": {"secrets": secrets}})


EVENT = {"reason": "Restarting", "involvedObject": {"kind": "Deployment", "name": "web"}}
POD_EVENT = {"reason": "EvictedStale", "involvedObject": {"kind": "Pod", "name": "web-6b7f6c4d9f-x8k2p"}}


@pytest.mark.parametrize(
    ("method", "path", "content", "label"),
    [
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/web?fieldManager=x", b"{}", "PATCH deployments/web"),
        ("PATCH", "/api/v1/namespaces/n/pods/web-6b7f6c4d9f-x8k2p/status", b"{}", "PATCH pods/web/status"),
        ("PATCH", "/api/v1/namespaces/n/pods/db-0/status", b"{}", "PATCH pods/db-0/status"),
        ("POST", "/api/v1/namespaces/n/pods/web-6b7f6c4d9f-x8k2p/eviction", b"{}", "POST pods/web/eviction"),
        ("POST", "/api/v1/namespaces/n/events", body(EVENT), "POST events Restarting Deployment/web"),
        ("POST", "/api/v1/namespaces/n/events", body(POD_EVENT), "POST events EvictedStale Pod/web"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", b"{}", "PUT leases/l"),
        ("DELETE", "/api/v1/namespaces/n", b"", "DELETE namespaces/n"),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/web", b"no JSON", "PATCH deployments/web"),
    ],
)
def test_a_write_is_named_by_what_it_does(method: str, path: str, content: bytes, label: str) -> None:
    assert Namer().name(method, path, content)[0] == Point(label, 1)


def test_a_status_is_named_by_what_it_puts_on_record() -> None:
    namer = Namer()

    def put(content: bytes, code: int = 200) -> str:
        point, target = namer.name("PATCH", POLICY, content)
        write = Write(point, target, "PATCH", status=code)
        namer.answered(write, content)
        return str(point).removeprefix("PATCH certrotationpolicies/p/status ")

    assert put(status()) == "(reports) #1"
    assert put(status("a"), code=409) == "(records a) #1"
    assert put(status("a")) == "(records a) #2"  # the first was refused
    assert put(status("a")) == "(reports) #2"
    assert put(body({"status": {"stage": "Idle"}})) == "(reports) #3"
    assert put(status("b")) == "(records b, settles a) #1"
    assert put(status()) == "(settles b) #1"
    namer.restart()
    assert put(status()) == "(reports) #1"


@pytest.fixture
def proxy(control_plane: ControlPlane, tmp_path: Path) -> Iterator[WriteProxy]:
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    with LocalCluster(control_plane.name).network(), WriteProxy(config, tmp_path) as proxy:
        proxy.kubeconfig(tmp_path / "kubeconfig")
        yield proxy
    assert proxy.errors == []


class Through:
    """kubectl through the proxy."""

    def __init__(self, control_plane: ControlPlane, kubeconfig: Path, namespace: str) -> None:
        self._plane = control_plane
        self._words = ["kubectl", "--kubeconfig", str(kubeconfig), "-n", namespace]

    def run(self, *words: str, stdin: str | None = None) -> str:
        return self._plane.run(*self._words, *words, input=stdin).stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        return self._plane.popen([*self._words, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def through(control_plane: ControlPlane, namespace: str, proxy: WriteProxy, tmp_path: Path) -> Through:
    return Through(control_plane, tmp_path / "kubeconfig", namespace)


def test_all_writes_are_seen_and_no_read(proxy: WriteProxy, through: Through) -> None:
    through.run("create", "configmap", "c", "--from-literal=a=1")
    through.run("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"a":"2"}}')
    through.run("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"a":"3"}}')
    assert json.loads(through.run("get", "configmap", "c", "-o", "json"))["data"] == {"a": "3"}
    through.run("delete", "configmap", "c")
    assert [(str(write.point), write.status) for write in proxy.writes()] == [
        ("POST configmaps #1", 201),
        ("PATCH configmaps/c #1", 200),
        ("PATCH configmaps/c #2", 200),
        ("DELETE configmaps/c #1", 200),
    ]
    proxy.begin()
    assert proxy.writes() == []


def test_errors_and_large_answers_pass_unchanged(control_plane: ControlPlane, through: Through) -> None:
    assert through.run("get", "--raw", "/openapi/v3") == control_plane.kubectl("get", "--raw", "/openapi/v3").stdout
    large = "/openapi/v2"  # compressed, and megabytes
    assert len(through.run("get", "--raw", large)) == len(control_plane.kubectl("get", "--raw", large).stdout) > 1_000_000
    with pytest.raises(AssertionError, match='configmaps "absent" not found'):
        through.run("get", "configmap", "absent")


def test_a_watch_is_streamed(control_plane: ControlPlane, namespace: str, proxy: WriteProxy, through: Through) -> None:
    """Each event must come when it happens, not when a buffer is full; and the end of the proxy ends the watch."""
    watch = through.start("get", "configmaps", "--watch", "-o", "name")
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(line.strip() for line in watch.stdout or ()), daemon=True)
    reader.start()
    try:
        for name in ("one", "two"):
            control_plane.kubectl("-n", namespace, "create", "configmap", name)
            wait_until(f"the watch to show {name}", lambda: f"configmap/{name}" in lines, timeout=60)
        proxy.disconnect()
        assert watch.wait(timeout=60) is not None
    finally:
        watch.kill()
        watch.wait()


@pytest.mark.parametrize(("when", "applied"), [("before", False), ("after", True)])
def test_a_trap_kills_at_its_write(
    control_plane: ControlPlane, namespace: str, proxy: WriteProxy, through: Through, when: When, applied: bool
) -> None:
    def strike(client: str) -> None:
        assert client == "127.0.0.1"
        victim.kill()
        victim.wait()

    control_plane.kubectl("-n", namespace, "create", "configmap", "c")
    patch = ("patch", "configmap", "c", "--type=merge", "-p", '{"metadata":{"annotations":{"by":"victim"}}}')
    trap = Trap(Point("PATCH configmaps/c", 2), when, strike)
    proxy.begin(trap)
    through.run("label", "configmap", "c", "not=this")  # the first of that name must pass
    assert not trap.sprung()
    victim = through.start(*patch)
    assert trap.sprung(20)
    out, _ = victim.communicate()
    assert victim.returncode == -9 and out == "", "it got an answer"
    write = proxy.writes()[-1]
    assert (write.applied, write.status) == (applied, 200 if applied else None)
    annotations = control_plane.get("configmap", "-n", namespace, "c")["metadata"].get("annotations", {})
    assert ("by" in annotations) == applied
    through.run(*patch)  # a trap springs once
    assert len(proxy.writes()) == 3


class SlowTrap(Trap):
    """Its kill takes until the test says so, or has seen a write held back."""

    def __init__(self) -> None:
        super().__init__(1, "before", lambda _: self._kill())
        self.struck, self.held, self.goes_on = threading.Event(), threading.Event(), threading.Event()

    def _kill(self) -> None:
        self.struck.set()
        assert self.goes_on.wait(30)

    def outlast(self) -> bool:
        self.held.set()
        return super().outlast()


def test_who_is_about_to_be_killed_writes_no_more(
    control_plane: ControlPlane, namespace: str, proxy: WriteProxy, through: Through
) -> None:
    """A kill takes its time. What is sent meanwhile would not have been sent by who was dead at once."""
    trap = SlowTrap()
    proxy.set(trap)
    doomed = [through.start("create", "configmap", "caught")]
    assert trap.struck.wait(20) and not trap.sprung()
    doomed.append(through.start("create", "configmap", "later"))
    assert trap.held.wait(20)
    assert _create(proxy, "127.0.0.1", namespace, "leases") == 201  # by the clock
    assert _create(proxy, "127.0.0.2", namespace, "configmaps") == 201
    trap.goes_on.set()
    assert trap.sprung(20)
    for each in doomed:
        assert "EOF" in each.communicate(timeout=20)[1]
    through.run("create", "configmap", "of-the-next")  # from the same address
    assert [str(write.point) for write in proxy.writes()] == ["POST configmaps #1", "POST configmaps #2", "POST configmaps #3"]
    assert [write.status for write in proxy.writes()] == [None, 201, 201]
    there = control_plane.kubectl("-n", namespace, "get", "configmaps", "-o", "name").stdout
    assert "of-the-next" in there and "caught" not in there and "later" not in there


def test_a_kill_that_fails_is_told_at_once(proxy: WriteProxy, through: Through) -> None:
    """And to who waits for it: in a thread of the proxy nobody hears of it."""

    def strike(_: str) -> None:
        raise OSError("no such process")

    trap = Trap(1, "before", strike)
    proxy.set(trap)
    with pytest.raises(AssertionError, match="EOF"):
        through.run("create", "configmap", "c")
    with pytest.raises(AssertionError, match="the kill before 1 failed: OSError.'no such process'"):
        trap.sprung()


def test_a_lease_passes_unseen(proxy: WriteProxy, through: Through) -> None:
    """It is renewed by the clock: a kill at its n-th write would be a kill at some moment."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    through.run("create", "--validate=false", "-f", "-", stdin=json.dumps(lease))
    through.run("delete", "lease", "l")
    assert proxy.writes() == []


def test_nobody_else_gets_a_lease_until_the_test_goes_on(proxy: WriteProxy, through: Through, namespace: str) -> None:
    trap = Trap(1, "before", lambda _: None)
    proxy.set(trap)
    with pytest.raises(AssertionError, match="EOF"):
        through.run("create", "configmap", "c")
    assert not proxy.take_back(trap), "what has sprung is no more to be taken back"
    assert _create(proxy, "127.0.0.1", namespace, "leases") == 201  # it would end by itself before a slow kill
    with pytest.raises(http.client.RemoteDisconnected):
        _create(proxy, "127.0.0.2", namespace, "leases")
    proxy.set(None)
    assert _create(proxy, "127.0.0.2", namespace, "leases") == 201


_CREATED = {
    "leases": ("/apis/coordination.k8s.io/v1", {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}}),
    "configmaps": ("/api/v1", {"apiVersion": "v1", "kind": "ConfigMap"}),
}


def _create(proxy: WriteProxy, client: str, namespace: str, resource: str) -> int:
    """By a client of that address; the answer's status."""
    group, plain = _CREATED[resource]
    insecure = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    insecure.check_hostname, insecure.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(*proxy.endpoint, context=insecure, source_address=(client, 0), timeout=20)
    with contextlib.closing(connection):
        content = json.dumps(plain | {"metadata": {"generateName": "c-"}})
        connection.request("POST", f"{group}/namespaces/{namespace}/{resource}", content, {"Content-Type": "application/json"})
        return connection.getresponse().status


def test_a_trap_that_was_taken_back_never_springs(proxy: WriteProxy, through: Through) -> None:
    trap = Trap(1, "before", lambda _: None)
    proxy.set(trap)
    assert proxy.take_back(trap)
    through.run("create", "configmap", "c")
    assert not trap.sprung()


def test_a_trap_can_count_writes(control_plane: ControlPlane, namespace: str, proxy: WriteProxy, through: Through) -> None:
    through.run("create", "configmap", "c")
    trap = Trap(2, "after", lambda _: None)
    proxy.set(trap)
    through.run("label", "configmap", "c", "a=1")
    assert not trap.sprung()
    with pytest.raises(AssertionError, match="EOF"):  # made, but not answered
        through.run("annotate", "configmap", "c", "a=1")
    assert trap.sprung()
    points = [str(write.point) for write in proxy.writes()]
    assert points == ["POST configmaps #1", "PATCH configmaps/c #1", "PATCH configmaps/c #2"]


def test_what_the_dead_have_sent_springs_no_trap(
    control_plane: ControlPlane, namespace: str, proxy: WriteProxy, through: Through
) -> None:
    trap = Trap(1, "before", lambda _: None)
    proxy.bury("127.0.0.1")
    proxy.set(trap)
    through.run("create", "configmap", "c")
    assert not trap.sprung()
    proxy.begin(trap)  # the next recording may see the same address again
    with pytest.raises(AssertionError, match="EOF"):
        through.run("label", "configmap", "c", "a=1")
    assert trap.sprung()
