"""The cluster's own: what kubeadm renews, two kubelets and a kube-proxy, which are given files and a server of their own.

The kubelet of node-1 asks for its certificates itself, as kubeadm's do (rotateCertificates). That of node-2, a worker,
does not, and reads what its kubeconfig names; so does node-2's kube-proxy.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from certroll_dev import machines, node, tools
from certroll_dev.layout import Machine
from rows import settings
from rows.client import Client
from rows.folder import Folder
from rows.leaves import Leaf
from rows.common import calling, kubeconfig_rows
from rows.planes import Planes, file_pair, images, pair
from rows.row import Row

_FOLDER = "rows"  # below /etc/kubernetes
_KUBELET = 10250


@dataclass
class Nodes:
    """After `ready` the programs read the files that the rows swap."""

    planes: Planes

    def __post_init__(self) -> None:
        cluster = self.planes.cluster
        self.first, self.second = cluster.machine(1), cluster.machine(2)
        self.authority = (cluster.pki / "ca.crt").read_bytes()
        trust = self.authority.decode()
        own = (("kubelet-1", settings.KUBELET_1), ("kubelet-2", settings.KUBELET_2), ("proxy-2", settings.PROXY_2))
        self.taps = {name: self.planes.tap(name, port, self.planes.to_cluster(), trust=trust) for name, port in own}
        for name in self.taps:
            shutil.rmtree(self._place(name), ignore_errors=True)  # of a cluster that was kept
        self.files = {name: Folder(self._place(name)) for name in self.taps}

    def ready(self) -> None:
        leaf = self.planes.pki.client("system:node:node-2", "system:nodes")
        self._kubelet("kubelet-1", self.first, settings.KUBELET_1, None)
        self._kubelet("kubelet-2", self.second, settings.KUBELET_2, leaf)
        self._proxy()
        self.restart_kubelet(self.first)
        self.restart_kubelet(self.second)
        inside = machines.pid_of(self.second)
        assert inside
        node.start_proxy(self.second, tools.ensure(["kube-proxy"]), inside)  # anew, as its kubeconfig is another
        for tap in self.taps.values():
            self._wait(lambda tap=tap: tap.client is not None, f"nobody calls {tap.port}")

    def restart_kubelet(self, machine: Machine) -> None:
        node.restart_kubelet_of(machine)

    def _wait(self, call: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + 60
        while not call():
            assert time.monotonic() < end, what
            time.sleep(0.2)

    def inside(self, file: Path) -> Path:
        """As its node sees it."""
        for here, there in self.inside_out().items():
            if file.is_relative_to(here):
                return Path(there) / file.relative_to(here)
        return file

    def inside_out(self) -> dict[str, str]:
        """The nodes' folders here, and where they are on the node."""
        found = {}
        for machine in (self.first, self.second):
            found |= {str(machine.kubernetes): "/etc/kubernetes", str(machine.kubelet): "/var/lib/kubelet"}
        return found

    def write_manifests(self, folder: Path) -> None:
        """Of kube-proxy, which is a process here and a pod elsewhere: of the node's files, as a container sees them."""
        etc, own = self.second.etc, self.second.kubernetes
        # Its kubeconfig is told by a path of this machine, and names files by those of the node.
        mounts = {"etc": (etc, etc), "kubeconfig": (own, own), "files": (own, Path("/etc/kubernetes"))}
        container = {
            "name": "kube-proxy",
            "image": images()["kube-proxy"],
            "command": ["kube-proxy", f"--config={etc / 'proxy.json'}"],
            "volumeMounts": [{"name": name, "mountPath": str(inside)} for name, (_, inside) in mounts.items()],
        }
        volumes = [{"name": name, "hostPath": {"path": str(here)}} for name, (here, _) in mounts.items()]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
            "spec": {"hostNetwork": True, "containers": [container], "volumes": volumes},
        }
        (folder / "kube-proxy.yaml").write_text(json.dumps(pod, indent=1) + "\n")

    def _place(self, name: str) -> Path:
        machine = self.first if name.endswith("1") else self.second
        return machine.kubernetes / f"{_FOLDER}-{name}"

    def _kubelet(self, name: str, machine: Machine, port: int, leaf: Leaf | None) -> None:
        """`leaf`: of a kubelet that is given its certificate, and does not ask for one."""
        files = self.files[name]
        files.write({"server-ca.crt": self.planes.pki.old.certificate, "client-ca.crt": self.authority, **(pair("api", leaf) if leaf else {})})
        current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
        names = [str(self.inside(files / f"api.{suffix}")) for suffix in ("crt", "key")] if leaf else [current, current]
        text = settings.node_kubeconfig(f"https://{settings.NODE}:{port}", str(self.inside(files / "server-ca.crt")), *names)
        _put(machine.kubernetes / "kubelet.conf", text)
        file = machine.kubelet / "config.yaml"
        config = json.loads(file.read_text())
        config["authentication"]["x509"]["clientCAFile"] = str(self.inside(files / "client-ca.crt"))
        config["rotateCertificates"] = leaf is None
        _put(file, (json.dumps(config, indent=1) + "\n").encode())

    def _proxy(self) -> None:
        files = self.files["proxy-2"]
        files.write({"server-ca.crt": self.planes.pki.old.certificate, **pair("api", self.planes.pki.client("system:kube-proxy"))})
        names = [str(self.inside(files / name)) for name in ("server-ca.crt", "api.crt", "api.key")]
        _put(self.second.kubernetes / "kube-proxy.conf", settings.node_kubeconfig(f"https://{settings.NODE}:{settings.PROXY_2}", *names))


def rows(nodes: Nodes) -> list[Row]:
    return [*_renewed(nodes), *_kubelet_rows(nodes), *_calling(nodes)]


def _renewed(nodes: Nodes) -> list[Row]:
    """In place, certificate and key one after the other, as kubeadm does it."""
    machine = nodes.first
    pki, kubeadm = machine.kubernetes / "pki", tools.ensure(["kubeadm"])["kubeadm"]

    def row(seed: int, component: str, name: str, file: str, flags: tuple[str, str], port: int) -> Row:
        path, before = pki / f"{file}.crt", _fingerprint(pki / f"{file}.crt")
        served = Client(port, host=settings.NODE)
        command = [kubeadm, "certs", "renew", name, f"--config={machine.etc / 'kubeadm.yaml'}"]
        return Row(
            seed, component, {flags[0]: path, flags[1]: path.with_suffix(".key")}, "serverLeaf", lambda: machines.run(machine, command),
            lambda: served.served() == _fingerprint(path) != before, works=lambda: served.served() == before, note="kubeadm certs renew",
        )  # fmt: skip

    return [
        row(1, "kube-apiserver", "apiserver", "apiserver", ("--tls-cert-file", "--tls-private-key-file"), 6443),
        row(17, "etcd", "etcd-server", "etcd/server", ("--cert-file", "--key-file"), 2379),
        row(18, "etcd", "etcd-peer", "etcd/peer", ("--peer-cert-file", "--peer-key-file"), 2380),
    ]


def _kubelet_rows(nodes: Nodes) -> list[Row]:
    planes, machine, files = nodes.planes, nodes.first, nodes.files["kubelet-1"]
    leaf, own = planes.pki.server(), machine.kubelet / "pki"
    served = Client(_KUBELET, host=settings.NODE)
    newcomer, known = (replace(served, leaf=each) for each in (planes.new_client, file_pair(machine.kubernetes / "pki/apiserver-kubelet-client")))

    def put() -> None:
        """Each by a rename."""
        for name, content in pair("kubelet", leaf).items():
            _put(own / name, content)

    return [
        Row(
            14, "kubelet", {"tlsCertFile": own / "kubelet.crt", "tlsPrivateKeyFile": own / "kubelet.key"}, "serverLeaf", put,
            lambda: served.served() == leaf.fingerprint, works=lambda: served.served() is not None,
        ),
        Row(
            14, "kubelet", {"authentication.x509.clientCAFile": files / "client-ca.crt"}, "clientCA",
            lambda: files.write({"client-ca.crt": nodes.authority + planes.pki.new.certificate}),
            lambda: newcomer.get("/pods")[0] == 200, works=lambda: known.get("/pods")[0] == 200,
        ),
    ]  # fmt: skip


def _calling(nodes: Nodes) -> list[Row]:
    """What a kubeconfig names, of kubelets that ask for their certificates and that do not, and of kube-proxy."""
    planes, machine = nodes.planes, nodes.first
    leaf, current = planes.pki.client("system:node:node-1", "system:nodes"), machine.kubelet / "pki/kubelet-client-current.pem"

    def restart() -> None:
        nodes.restart_kubelet(machine)

    def link() -> None:
        """As the kubelet itself does it: a new file, and a link to it."""
        file = current.with_name("kubelet-client-rows.pem")
        _put(file, leaf.both)
        half = current.with_name(".current.new")
        half.unlink(missing_ok=True)
        half.symlink_to(f"/var/lib/kubelet/pki/{file.name}")
        os.replace(half, current)

    asks = kubeconfig_rows(planes, 15, "kubelet", nodes.files["kubelet-1"], nodes.taps["kubelet-1"], "rotateCertificates")
    names = {"kubeconfig client-certificate": current, "kubeconfig client-key": current}
    tap = nodes.taps["kubelet-1"]
    bootstrap = calling(planes, 15, planes.programs["bootstrap"], planes.taps["bootstrap"])
    return [
        *(replace(row, via="--bootstrap-kubeconfig", note="while it joins", by_catalogue=("--rotate-certificates=false",)) for row in bootstrap),
        replace(asks[0], files=names, swap=link, seen=lambda: tap.client == leaf.fingerprint, restart=restart),
        replace(asks[1], restart=restart),
        *kubeconfig_rows(planes, 15, "kubelet", nodes.files["kubelet-2"], nodes.taps["kubelet-2"], "rotateCertificates: false"),
        *kubeconfig_rows(planes, 16, "kube-proxy", nodes.files["proxy-2"], nodes.taps["proxy-2"], ""),
    ]


def _fingerprint(file: Path) -> str:
    """Of its first certificate; empty while it is being written."""
    try:
        return Leaf(file.read_bytes(), b"").fingerprint
    except (OSError, ValueError):
        return ""


def _put(file: Path, text: bytes) -> None:
    half = file.with_name(f".{file.name}.new")
    half.write_bytes(text)
    half.chmod(0o600)
    os.replace(half, file)
