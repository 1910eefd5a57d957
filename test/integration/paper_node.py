"""A node on paper: folders as kubeadm has them, a kubelet that is played, and a real etcd that it runs as a static pod.

The agent sees the folders below --root, and below --proc the processes of this node alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane import ROOT, ControlPlane, wait_until
from operators import Operator

from certroll_dev.demo import pki

PROGRAM = Path(os.environ.get("CERTROLL_BUILD", ROOT / "build" / "dev")).absolute() / "bin" / "certroll-node-agent"
NAMESPACE = "certroll-nodes"
ACCOUNT = "certroll-node-agent-control-plane"  # which may take turns
WORKER = "certroll-node-agent-workers"
MANIFESTS = ROOT / "manifests" / "node-agent"
LEASE = ("lease", "certroll-control-plane", "-n", "kube-system")
ANNOTATION = "certroll.dev/restart"
_PKI = "/etc/kubernetes/pki/etcd"
_LOOK = 0.05

_MANIFEST = """\
# As a person wrote it.
apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/etcd.advertise-client-urls: https://127.0.0.1:{client}
  name: etcd
  namespace: kube-system
spec:
  hostNetwork: true
  containers:
  - name: etcd
    image: registry.k8s.io/etcd:3.6.8-0
    command:
    - etcd
{words}
    volumeMounts:
    - {{mountPath: {pki}, name: etcd-certs}}
  volumes:
  - name: etcd-certs
    hostPath: {{path: {pki}, type: DirectoryOrCreate}}
"""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class PaperNode:
    """Use it as a context, in the network of the control plane."""

    def __init__(self, plane: ControlPlane, name: str, folder: Path) -> None:
        self.plane, self.name, self.folder = plane, name, folder
        self.root = folder / "root"
        self.proc = Path(tempfile.mkdtemp(prefix="certroll-proc-"))  # not in the folder, which is copied when a test fails
        self.manifest = self.root / "etc/kubernetes/manifests/etcd.yaml"
        self.pki = self.root / _PKI.lstrip("/")
        self.starts = 0  # of etcd
        self.deaf = threading.Event()  # while it is set, the kubelet sees nothing
        self._generation = 0
        self._etcd: subprocess.Popen | None = None
        self._seen = ""
        self._stop = threading.Event()
        self._kubelet = threading.Thread(target=self._watch, name=f"kubelet of {name}", daemon=True)
        self._write_folders()

    def _write_folders(self) -> None:
        for each in (self.manifest.parent, self.pki, self.root / "var/lib/kubelet"):
            each.mkdir(parents=True)
        for each in ("sys", "stat", "uptime"):
            (self.proc / each).symlink_to(f"/proc/{each}")
        self.put_leaf()
        self.put_trust()
        client, peer, metrics = _free_ports(3)
        self._words = {
            "name": self.name, "client-cert-auth": "true",
            "listen-client-urls": f"https://127.0.0.1:{client}", "advertise-client-urls": f"https://127.0.0.1:{client}",
            "listen-peer-urls": f"https://127.0.0.1:{peer}", "initial-advertise-peer-urls": f"https://127.0.0.1:{peer}",
            "initial-cluster": f"{self.name}=https://127.0.0.1:{peer}", "listen-metrics-urls": f"http://127.0.0.1:{metrics}",
            "cert-file": f"{_PKI}/server.crt", "key-file": f"{_PKI}/server.key", "trusted-ca-file": f"{_PKI}/ca.crt",
            "peer-cert-file": f"{_PKI}/server.crt", "peer-key-file": f"{_PKI}/server.key", "peer-trusted-ca-file": f"{_PKI}/ca.crt",
        }  # fmt: skip
        words = "\n".join(f"    - --{key}={value}" for key, value in self._words.items())
        self.manifest.write_text(_MANIFEST.format(client=client, words=words, pki=_PKI))

    # --- files, as somebody writes them

    def put_leaf(self) -> None:
        self._generation += 1
        self._authority = getattr(self, "_authority", None) or pki.new_authority(self._generation)
        leaf = self._authority.issue("etcd")
        _replace(self.pki / "server.key", leaf.key)
        _replace(self.pki / "server.crt", leaf.certificate)

    def put_trust(self) -> None:
        """A bundle with one CA more than before: etcd reads it at its start only."""
        self._generation += 1
        bundle = self.pki / "ca.crt"
        before = bundle.read_bytes() if bundle.exists() else self._authority.certificate
        more = pki.new_authority(self._generation).certificate if bundle.exists() else b""
        _replace(bundle, before + more)

    def token(self) -> str | None:
        """The annotation of the manifest."""
        found = re.search(rf"{ANNOTATION}\"?: *\"?([^\"\n]*)", self.manifest.read_text())
        return found and found[1]

    # --- the kubelet

    def __enter__(self) -> PaperNode:
        self._kubelet.start()
        wait_until("etcd to run", lambda: self.starts)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._kubelet.join()
        self._end_etcd()
        shutil.rmtree(self.proc)

    def _watch(self) -> None:
        """Another Pod is another process; the same again is the same."""
        while not self._stop.wait(_LOOK):
            text = self.manifest.read_text()
            if text == self._seen or self.deaf.is_set():
                continue
            self._seen = text
            self._end_etcd()
            time.sleep(4 * _LOOK)  # as a kubelet, which begins the new one a while after the old one's end
            self._start_etcd()

    def _start_etcd(self) -> None:
        words = [f"--{key}={value.replace(_PKI, str(self.pki))}" for key, value in self._words.items()]
        own = [f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", "--log-level=warn"]
        with (self.folder / "etcd.log").open("a") as log:
            self._etcd = self.plane.popen([self.plane.bin / "etcd", *words, *own], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        # Before it is etcd it is nsenter for a moment.
        name = Path(f"/proc/{self._etcd.pid}/comm")
        wait_until("nsenter to have become etcd", lambda: name.read_text() == "etcd\n", pause=0.01)
        (self.proc / str(self._etcd.pid)).symlink_to(f"/proc/{self._etcd.pid}")
        self.starts += 1

    def _end_etcd(self) -> None:
        if self._etcd:
            (self.proc / str(self._etcd.pid)).unlink()
            self._etcd.kill()
            self._etcd.wait()
        self._etcd = None

    # --- the agent and its report

    def agent(self, kubeconfig: Path, name: str, *flags: str) -> Agent:
        return Agent(self, kubeconfig, name, *flags)

    def report(self) -> Any:
        return self.plane.get("ncr", self.name)

    def restart(self) -> dict[str, Any]:
        """status.restart."""
        done = self.plane.kubectl("get", "ncr", self.name, "-o", "json", check=False)
        return json.loads(done.stdout).get("status", {}).get("restart", {}) if done.returncode == 0 else {}

    def order(self, token: str, component: str = "etcd") -> None:
        patch = {"spec": {"restart": {"token": token, "component": component}}}
        self.plane.kubectl("patch", "ncr", self.name, "--type=merge", "-p", json.dumps(patch))

    def wait_phase(self, phase: str, token: str, timeout: float = 60.0) -> dict[str, Any]:
        def there() -> Any:
            found = self.restart()
            return found.get("phase") == phase and found.get("token") == token and found

        try:
            return wait_until(f"{phase} of {token}", there, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.restart()}, the manifest has {self.token()}") from None

    def etcd(self) -> dict[str, Any]:
        return next(each for each in self.report()["status"]["components"] if each["name"] == "etcd")

    def rows(self, parameter: str) -> list[dict[str, Any]]:
        return [row for row in self.report()["status"]["files"] if row["parameter"] == parameter]


class Agent(Operator):
    """A process of the agent. Its log, and pages, are read as the operator's are."""

    def __init__(self, node: PaperNode, kubeconfig: Path, name: str, *flags: str) -> None:
        own = ["--node-name", node.name, "--root", str(node.root), "--proc", str(node.proc), "--manifests", "/etc/kubernetes/manifests"]
        own += ["--kubeconfig", str(kubeconfig), "--metrics-bind-address", "127.0.0.1:0"]
        self.name, self._plane = name, node.plane
        self.log = node.folder / f"{name}.log"
        environment: Mapping[str, str] = node.plane.environment()
        with self.log.open("a") as log:
            words = [PROGRAM, *own, "--step-deadline=60s", *flags]
            self.process = node.plane.popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()


def _replace(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, path)


@contextmanager
def node_agents(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Their manifests; there is nobody who would make pods of them. Their namespace may still be on its way out, after others."""
    apply = ("apply", "--server-side", "--force-conflicts", "-k", str(MANIFESTS))
    wait_until("the manifests to be taken", lambda: plane.kubectl(*apply, check=False).returncode == 0, timeout=120, pause=1.0)
    yield plane
    plane.kubectl("delete", "-k", str(MANIFESTS), "--wait=false", check=False)


def node_token(plane: ControlPlane, node: str | None, account: str = ACCOUNT) -> str:
    """As an agent's pod on that node has it; None: of no node."""
    bound = ["--bound-object-kind=Node", f"--bound-object-name={node}"] if node else []
    return plane.kubectl("create", "token", account, "-n", NAMESPACE, *bound).stdout.strip()


def node_kubeconfig(plane: ControlPlane, node: str | None, folder: Path) -> Path:
    """Of the account of control-plane nodes' agents."""
    config = json.loads(plane.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json").stdout)
    config["users"][0]["user"] = {"token": node_token(plane, node)}
    path = folder / f"{node or 'nowhere'}.kubeconfig"
    path.write_text(json.dumps(config))
    return path
