"""Our own ports when others want to keep a kubelet from them: each probe is answered, and a drain is waited for to its end."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from control_plane import ROOT, wait_until
from floods import KINDS, flood
from operators import UNGUARDED
from shutdown_pod import Manager, Proxy, a_proxy

PROGRAMS = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")) / "bin"
CONNECTIONS = 1600
PROBES = 10
PROBE_S = 5.0  # a kubelet gives 1 s; these programs have sanitizers, and the machine other work
_PERIOD_S = 0.1

# An API server that is not there: what these pages say has nothing to do with it.
_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "none", "user": {}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none", "namespace": "default"}}],
    "current-context": "none",
}


def probe(port: int, path: str = "/healthz") -> int:
    """The status, as a kubelet asks for it: by a connection of its own (pkg/probe/http of Kubernetes 1.36)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_S)
    try:
        connection.request("GET", path, headers={"Connection": "close", "User-Agent": "kube-probe/1.36"})
        return connection.getresponse().status
    finally:
        connection.close()


def answers(port: int, path: str = "/healthz") -> list[object]:
    """Of so many probes, one after the other: the status, or what was in the way."""
    found: list[object] = []
    for _ in range(PROBES):
        try:
            found.append(probe(port, path))
        except OSError as error:
            found.append(repr(error))
        time.sleep(_PERIOD_S)
    return found


class Program:
    """One of ours that serves pages."""

    def __init__(self, log: Path, *words: str) -> None:
        self._log = log
        with log.open("w") as out:
            self.process = subprocess.Popen([PROGRAMS / words[0], *words[1:]], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def port(self, page: str) -> int:
        """Of the address that serves it."""
        return int(wait_until(f"{page} to be served; its log: {self._log}", lambda: self._served(page))["port"])

    def _served(self, page: str) -> dict[str, str]:
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        return next((line for line in lines if line["msg"] == "serving" and page in line.get("pages", line.get("what", ""))), {})

    def files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextmanager
def running(log: Path, *words: str) -> Iterator[Program]:
    program = Program(log, *words)
    try:
        yield program
    finally:
        program.process.terminate()
        try:
            assert program.process.wait(30) == 0
        except subprocess.TimeoutExpired:
            program.process.kill()
            raise


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("operator")
    (folder / "kubeconfig").write_text(json.dumps(_KUBECONFIG))
    addresses = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--metrics-open"]
    flags = ["--kubeconfig", str(folder / "kubeconfig"), "--namespace", "default", "--leader-elect=false", *UNGUARDED, *addresses]
    with running(folder / "log", "certroll-operator", *flags) as operator:
        yield operator


@pytest.mark.parametrize(("kind", "peers"), [(kind, 400) for kind in KINDS] + [("a byte each 9 s", 1), ("they come and go", 1)])
def test_each_probe_of_the_operator_is_answered(operator: Program, kind: str, peers: int) -> None:
    """Whether the flood has the kubelet's own address or hundreds of others."""
    port = operator.port("/healthz")
    idle = operator.files()
    with flood(port, kind, CONNECTIONS, peers):
        assert answers(port) == [200] * PROBES
        assert operator.files() < idle + 520


@pytest.mark.parametrize("kind", ["a byte each 9 s", "metrics without end", "metrics, never read"])
def test_a_flood_of_the_metrics_port_leaves_the_probes_alone(operator: Program, kind: str) -> None:
    with flood(operator.port("/metrics"), kind, CONNECTIONS, 400):
        assert answers(operator.port("/healthz")) == [200] * PROBES
        assert 200 in answers(operator.port("/metrics"), "/metrics")


@pytest.mark.parametrize("kind", ["a byte each 9 s", "metrics, never read", "they come and go"])
def test_each_probe_of_the_sidecar_is_answered(tmp_path: Path, kind: str) -> None:
    """Which has its probes and all else at one port."""
    config = {"materials": [{"name": "none", "trust": str(tmp_path / "ca.crt")}]}
    (tmp_path / "sidecar.yaml").write_text(json.dumps(config))
    with running(tmp_path / "log", "certroll-sidecar", "--config", str(tmp_path / "sidecar.yaml"), "--address", "127.0.0.1:0") as sidecar:
        port = sidecar.port("page")
        with flood(port, kind, CONNECTIONS, 400):
            assert answers(port) == [200] * PROBES


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with a_proxy() as proxy:
        yield proxy


def _drain(port: int) -> bytes:
    """As a preStop hook asks for it, which waits for as long as it takes."""
    with socket.create_connection(("127.0.0.1", port)) as hook:
        hook.sendall(b"GET /shutdown HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: hook.recv(4096), b""))


@pytest.mark.parametrize("kind", ["a byte each 9 s", "they ask, come and go"])
@pytest.mark.parametrize("begins", ["before the flood", "in the flood"])
def test_a_drain_is_waited_for_to_its_end(tmp_path: Path, proxy: Proxy, kind: str, begins: str) -> None:
    quick = ["--min-drain-duration", "200ms", "--check-interval", "100ms", "--address", "127.0.0.1:0"]
    proxy.open = 1
    with Manager(tmp_path / "log", "serve", *proxy.flags, *quick) as manager, ThreadPoolExecutor() as pool:
        hook = pool.submit(_drain, manager.port) if begins == "before the flood" else None
        with flood(manager.port, kind, CONNECTIONS, 400):
            hook = hook or pool.submit(_drain, manager.port)
            assert answers(manager.port) == [200] * PROBES
            assert not hook.done()
            proxy.open = 0
            assert b'"result":"Drained"' in hook.result(30)
