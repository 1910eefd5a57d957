"""certgen's Secrets in the real Contour and the real Envoy: xDS over mTLS, while certificates rotate. Nothing is restarted.

Contour and Envoy are processes with Secret volumes. What a kubelet does is done here, of the API server's Secrets, for each with
a delay of its own: that is what makes one of them trust or present something before the other does.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certgen_set import Certgen, data_of  # noqa: E402
from certroll_dev import tools  # noqa: E402
from certroll_dev.demo import programs as sources  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from programs import clouds  # noqa: E402
from programs.program import CERTS, SECRET  # noqa: E402
from programs.sandbox import Sandbox  # noqa: E402
from tcp_gate import Gate  # noqa: E402

pytestmark = pytest.mark.timeout(900)

_PORT = 31500  # and the three behind it: no other test has them in this network
_DELAYS = {"contourcert": 0.2, "envoycert": 2.5}  # seconds after a Secret has changed
_ROTATIONS_MAX = 8
_SETTLE = "10s"  # more than the delays, also on a busy machine
# The ends of names of Envoy's figures: of its streams (clusters, listeners, the runtime), and of the cluster that they go to.
_CONNECTED = ".control_plane.connected_state"
_CONNECTIONS = ".upstream_cx_total"
_FAILED = (".ssl.connection_error", ".ssl.fail_verify_error", ".ssl.fail_verify_san")

Data = Mapping[str, bytes]


class Volumes:
    """Keeps Secret volumes of sandboxes up to date."""

    def __init__(self, api: API, namespace: str, sandboxes: Mapping[str, Sandbox]) -> None:
        self._api, self._namespace, self._sandboxes = api, namespace, sandboxes
        self.held: dict[str, Data] = {}
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._keep, args=(name,), daemon=True) for name in sandboxes]
        self.fill()

    def fill(self) -> None:
        for name in self._sandboxes:
            self._write(name, self._read(name))

    def __enter__(self) -> Volumes:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _read(self, name: str) -> Data:
        return data_of(self._api.get("secrets", self._namespace, name))

    def _write(self, name: str, data: Data) -> None:
        self._sandboxes[name].write_secret(SECRET, data)
        self.held[name] = data

    def _keep(self, name: str) -> None:
        while not self._end.wait(0.05):
            data = self._read(name)
            if data != self.held[name]:
                self._end.wait(_DELAYS[name])
                self._write(name, self._read(name))


class Pair:
    """Contour and Envoy, with a gate between them."""

    def __init__(self, contour: Sandbox, envoy: Sandbox, gate: Gate, volumes: Volumes, folder: Path) -> None:
        self.contour, self.envoy, self.gate, self.volumes, self._folder = contour, envoy, gate, volumes, folder

    def stats(self, end: str) -> list[int]:
        """All whose name ends so."""
        page = self._admin("/stats?format=json")
        return [each["value"] for each in page["stats"] if each.get("name", "").endswith(end)]

    def is_connected(self) -> bool:
        self.envoy.check()
        try:
            streams = self.stats(_CONNECTED)
        except OSError:
            return False
        return bool(streams) and all(value == 1 for value in streams)

    def connections(self) -> int:
        return sum(self.stats(_CONNECTIONS))

    def refused(self) -> int:
        return sum(sum(self.stats(end)) for end in _FAILED)

    def presented(self) -> set[str]:
        """Serial numbers of the leaves that Envoy has loaded."""
        page = self._admin("/certs")
        return {leaf["serial_number"] for each in page["certificates"] for leaf in each["cert_chain"]}

    def handshake(self) -> str:
        """A fresh one, with what Envoy's volume holds now, both sides verified; the fingerprint of Contour's leaf."""
        data = self.volumes.held["envoycert"]
        context = ssl.create_default_context(cadata=data["ca.crt"].decode())
        with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".pem") as identity:  # mode 0600; one for each who calls at a time
            identity.write(data["tls.key"] + data["tls.crt"])
            identity.flush()
            context.load_cert_chain(identity.name)
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(("127.0.0.1", _PORT), timeout=60) as plain, context.wrap_socket(plain, server_hostname="contour") as tls:
            # In TLS 1.3 a refusal comes behind the handshake: only an answer is consent.
            tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            if not tls.recv(4096):
                raise ConnectionError("Contour hung up")
            return hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()

    def serves(self, secret: Data) -> bool:
        try:
            return self.handshake() == _fingerprint(secret)
        except OSError:
            return False

    def _admin(self, path: str) -> Any:
        """By a folder's descriptor: a socket's path may have 107 bytes."""
        folder = os.open(self.envoy.root / "tmp", os.O_RDONLY)
        try:
            connection = http.client.HTTPConnection("localhost", timeout=10)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(f"/proc/self/fd/{folder}/admin.sock")
            connection.request("GET", path)
            answer = json.loads(connection.getresponse().read())
            connection.close()
            return answer
        finally:
            os.close(folder)


def _fingerprint(secret: Data) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(secret["tls.crt"].decode())).hexdigest()


def _serial(secret: Data, folder: Path) -> str:
    path = folder / "serial.pem"
    path.write_bytes(secret["tls.crt"])
    decoded = ssl._ssl._test_decode_cert(str(path))  # type: ignore[attr-defined]
    return str(decoded["serialNumber"]).lower().lstrip("0")


def _envoy(folder: Path, gate: Gate) -> Sandbox:
    """Configured as the init container of Contour's own DaemonSet does it."""
    mounts = [{"name": "certs", "mountPath": CERTS, "readOnly": True}]
    command = ["envoy", "-c", "/tmp/envoy.json", "--service-cluster", "test", "--service-node", "envoy-0", "--concurrency", "1"]
    container = {"name": "envoy", "command": [*command, "--disable-hot-restart", "--log-level", "warning"], "volumeMounts": mounts}
    pod = {"containers": [container], "volumes": [{"name": "certs", "secret": {"secretName": SECRET}}]}
    sandbox = Sandbox(folder, pod, configs={}, programs={"envoy": sources.envoy(), "contour": tools.ensure(["contour"])["contour"]})
    # What stands there at the first start is read by the bootstrap, too.
    sandbox.bootstrap = [  # type: ignore[attr-defined]
        "contour", "bootstrap", "/tmp/envoy.json", "--admin-address=/tmp/admin.sock", "--xds-address=127.0.0.1", f"--xds-port={gate.port}",
        "--resources-dir=/tmp/resources", f"--envoy-cafile={CERTS}/ca.crt", f"--envoy-cert-file={CERTS}/tls.crt",
        f"--envoy-key-file={CERTS}/tls.key",
    ]  # fmt: skip
    return sandbox


@pytest.fixture
def certgen(control_plane: ControlPlane, namespace: str) -> Certgen:
    control_plane.kubectl("apply", "-f", "-", input="".join(json.dumps(crd) for crd in clouds.contour_crds()))
    control_plane.wait_for_crds()
    own = Certgen(control_plane, namespace, ("--profile", "contour"))
    own.run()
    return own


@pytest.fixture
def pair(control_plane: ControlPlane, certgen: Certgen, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Not in tmp_path, which is copied when a test has failed: Envoy's socket cannot be."""
    folder = tmp_path_factory.mktemp("pair")
    program = clouds.contour(
        tools.ensure(["contour"])["contour"], tools.version_of("contour"), _PORT, control_plane.kubeconfig.read_text()
    )
    cluster = LocalCluster(control_plane.name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(cluster.network())
        gate = stack.enter_context(Gate("127.0.0.1", _PORT))
        contour = Sandbox(folder / "contour", program.pod(), configs={"program": program.config}, programs=program.programs)
        stack.callback(contour.remove)
        envoy = _envoy(folder / "envoy", gate)
        stack.callback(envoy.remove)
        volumes = Volumes(cluster.api(), certgen.namespace, {"contourcert": contour, "envoycert": envoy})
        envoy.run(envoy.bootstrap)  # type: ignore[attr-defined]
        pair = Pair(contour, envoy, gate, volumes, tmp_path)
        contour.start()
        wait_until("Contour serves", lambda: pair.serves(certgen.data()["contourcert"]), 60)
        envoy.start()
        stack.enter_context(volumes)
        wait_until("Envoy's stream is open", lambda: pair.is_connected(), 60)
        yield pair


def _wait_rotated(pair: Pair, certgen: Certgen, folder: Path) -> None:
    data = certgen.data()
    wait_until("Contour serves the new leaf", lambda: pair.serves(data["contourcert"]), 60)
    wait_until("Envoy has the new leaf", lambda: _serial(data["envoycert"], folder) in {each.lstrip("0") for each in pair.presented()}, 60)


class Caller:
    """Fresh handshakes all the time; counts those that fail."""

    def __init__(self, pair: Pair) -> None:
        self.good, self.failures = 0, []
        self._pair, self._end = pair, threading.Event()
        self._thread = threading.Thread(target=self._call, daemon=True)

    def __enter__(self) -> Caller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _call(self) -> None:
        while not self._end.wait(0.02):
            try:
                self._pair.handshake()
                self.good += 1
            except OSError as error:
                self.failures.append(str(error))


def _cut_until(pair: Pair, condition: Any, timeout: float = 300.0) -> int:
    """Envoy must connect anew, again and again; how often it has."""
    before, end = pair.connections(), time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end
        if pair.is_connected():
            pair.gate.cut()
        time.sleep(0.2)
    wait_until("the stream is open again", lambda: pair.is_connected(), 60)
    return pair.connections() - before


def test_the_stream_stays_while_certificates_rotate(pair: Pair, certgen: Certgen, tmp_path: Path) -> None:
    """As both projects' jobs rotate them, but for the previous CA in the bundles."""
    pids = pair.contour.pid, pair.envoy.pid
    before = pair.connections()
    with Caller(pair) as caller:
        # Leaves that come with their CA are refused until it has arrived: so the calls can fail. A busy machine may miss the moment.
        for rotation in range(_ROTATIONS_MAX):
            if rotation >= 2 and caller.failures:
                break
            certgen.run("--overwrite")
            _wait_rotated(pair, certgen, tmp_path)
    assert pair.is_connected() and pair.connections() == before
    assert caller.failures and caller.good
    # Who must connect anew afterwards can.
    pair.gate.cut()
    wait_until("another connection", lambda: pair.connections() > before and pair.is_connected(), 60)
    pair.contour.check()
    assert (pair.contour.pid, pair.envoy.pid) == pids
    assert not pair.refused()
    print(f"{caller.good} good handshakes, {len(caller.failures)} failed: {set(caller.failures)}")


def test_in_stages_no_handshake_fails(pair: Pair, certgen: Certgen, tmp_path: Path) -> None:
    """Though Envoy must connect anew all the time, and another client does so 10 times and more in a second."""
    pids = pair.contour.pid, pair.envoy.pid
    log = tmp_path / "certgen.log"
    with Caller(pair) as caller:
        process = certgen.start(log, "--staged", f"--settle={_SETTLE}", "--timeout=5m")
        connections = _cut_until(pair, lambda: process.poll() is not None)
        assert process.returncode == 0, log.read_text()
        _wait_rotated(pair, certgen, tmp_path)
    pair.contour.check()
    print(f"{caller.good} good handshakes, {len(caller.failures)} failed; Envoy connected {connections} times anew")
    print(log.read_text())
    assert not caller.failures and caller.good > 50, caller.failures
    assert connections > 2 and not pair.refused()
    assert (pair.contour.pid, pair.envoy.pid) == pids
