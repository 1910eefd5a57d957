"""The cluster's certificates: its CAs and a leaf per component, made with the openssl command."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import commands, files, layout
from .layout import Cluster, Machine

_DAYS = "3650"


@dataclass(frozen=True)
class Leaf:
    """A certificate to issue. `names` makes it fit for a server; all of them are fit for clients."""

    file: str
    common_name: str
    organization: str | None = None
    names: Sequence[str] = ()
    authority: str = "ca"


def ensure_control_plane(cluster: Cluster) -> None:
    """The CAs, the service account key, and the leaves of everything but nodes; complete or not there at all."""
    if cluster.pki.exists():
        return
    cluster.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cluster.root, prefix=".pki-") as scratch:
        half = Path(scratch) / "pki"
        half.mkdir(mode=0o700)
        for authority in ("ca", "front-proxy-ca", "etcd-ca"):
            _issue_authority(half, authority)
        _new_key(half / "service-account.key", "RSA")
        commands.run(
            ["openssl", "pkey", "-in", half / "service-account.key", "-pubout", "-out", half / "service-account.pub"]
        )
        for leaf in _control_plane_leaves(cluster):
            _issue(half, half, leaf)
        os.replace(half, cluster.pki)


def ensure_node(machine: Machine) -> Path:
    """The folder with the kubelet's client and serving certificate."""
    folder = machine.root / "pki"
    if not folder.exists():
        machine.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=machine.root, prefix=".pki-") as scratch:
            half = Path(scratch) / "pki"
            half.mkdir(mode=0o700)
            user = f"system:node:{machine.name}"
            _issue(machine.cluster.pki, half, Leaf("kubelet-client", user, "system:nodes"))
            names = [f"DNS:{machine.name}", *(f"IP:{address}" for address in machine.addresses)]
            _issue(machine.cluster.pki, half, Leaf("kubelet-server", user, "system:nodes", names))
            shutil.copy(machine.cluster.pki / "ca.crt", half)
            os.replace(half, folder)
    return folder


def ensure_kubelet(machine: Machine) -> None:
    """As `ensure_node`, by the names and in the folder that a kubelet has which kubeadm has made."""
    folder = machine.kubelet / "pki"
    if folder.exists():
        return
    with tempfile.TemporaryDirectory(dir=machine.root, prefix=".pki-") as scratch:
        half = Path(scratch) / "pki"
        half.mkdir(mode=0o755)
        user = f"system:node:{machine.name}"
        names = [f"DNS:{machine.name}", *(f"IP:{address}" for address in machine.addresses)]
        _issue(machine.cluster.pki, half, Leaf("kubelet", user, "system:nodes", names))
        _issue(machine.cluster.pki, half, Leaf("client", user, "system:nodes"))
        pair = half / time.strftime("kubelet-client-%Y-%m-%d-%H-%M-%S.pem")
        files.put(pair, (half / "client.crt").read_text() + (half / "client.key").read_text(), 0o600)
        (half / "client.crt").unlink()
        (half / "client.key").unlink()
        (half / "kubelet-client-current.pem").symlink_to(f"/var/lib/kubelet/pki/{pair.name}")
        os.replace(half, folder)


def _control_plane_leaves(cluster: Cluster) -> list[Leaf]:
    service = "kubernetes.default.svc"
    hosts = ["kubernetes", "kubernetes.default", service, f"{service}.{layout.CLUSTER_DOMAIN}", "localhost"]
    families = cluster.families
    addresses = [family.api_service for family in families] + [*cluster.machine(1).addresses]
    addresses += [family.loopback for family in families]
    names = [f"DNS:{host}" for host in hosts] + [f"IP:{address}" for address in addresses]
    return [
        Leaf("apiserver", "kube-apiserver", names=names),
        Leaf("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
        Leaf("front-proxy-client", "front-proxy-client", authority="front-proxy-ca"),
        Leaf("admin", "kubernetes-admin", "system:masters"),
        Leaf("controller-manager", "system:kube-controller-manager"),
        Leaf("scheduler", "system:kube-scheduler"),
        Leaf("proxy", "system:kube-proxy"),
    ]


def _issue_authority(folder: Path, name: str) -> None:
    _new_key(folder / f"{name}.key", "EC")
    key, certificate = str(folder / f"{name}.key"), str(folder / f"{name}.crt")
    commands.run(
        ["openssl", "req", "-x509", "-new", "-key", key, "-out", certificate]
        + ["-days", _DAYS, "-subj", f"/CN=certroll-dev-{name}"]
        + ["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"]
    )


def _issue(authorities: Path, folder: Path, leaf: Leaf) -> None:
    key, certificate = folder / f"{leaf.file}.key", folder / f"{leaf.file}.crt"
    _new_key(key, "EC")
    subject = (f"/O={leaf.organization}" if leaf.organization else "") + f"/CN={leaf.common_name}"
    request = commands.run(["openssl", "req", "-new", "-key", key, "-subj", subject])
    extensions = folder / f"{leaf.file}.cnf"
    extensions.write_text(_extensions(leaf))
    authority = authorities / leaf.authority
    commands.run(
        ["openssl", "x509", "-req", "-out", str(certificate), "-days", _DAYS, "-extfile", str(extensions)]
        + ["-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-set_serial", f"0x{secrets.token_hex(16)}"],
        stdin=request,
    )
    extensions.unlink()


def _extensions(leaf: Leaf) -> str:
    lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature"]
    lines += ["extendedKeyUsage=clientAuth" + (",serverAuth" if leaf.names else "")]
    if leaf.names:
        lines += ["subjectAltName=" + ",".join(leaf.names)]
    return "\n".join(lines) + "\n"


def _new_key(path: Path, kind: str) -> None:
    """EC for its speed; RSA for the service account key, as every verifier of tokens knows RS256."""
    options = {"EC": ["-pkeyopt", "ec_paramgen_curve:P-256"], "RSA": ["-pkeyopt", "rsa_keygen_bits:2048"]}[kind]
    commands.run(["openssl", "genpkey", "-quiet", "-algorithm", kind, *options, "-out", path])
    path.chmod(0o600)
