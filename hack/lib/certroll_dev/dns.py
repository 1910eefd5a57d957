"""CoreDNS: the cluster's names, from an image made here and a manifest with the essentials."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from . import commands, controlplane, images, layout, namespaces, node, paths
from .addresses import Family
from .layout import Cluster, Machine
from .ui import DevError

PROGRAMS = ("coredns",)
_IMAGE = "certroll.dev/coredns:1"
_SOCKETS = {4: socket.AF_INET, 6: socket.AF_INET6}
_TYPES = {4: 1, 6: 28}  # A and AAAA (RFC 3596)
_MANIFEST = paths.HACK / "manifests" / "coredns.yaml"


def load(machines: Sequence[Machine], coredns: Path) -> None:
    archive = images.cached_image(_IMAGE, {"/coredns": coredns}, entrypoint=["/coredns"], libs=False)
    for machine in machines:
        node.ensure_image(machine, _IMAGE, archive)


def apply(cluster: Cluster, kubectl: Path) -> None:
    text = _MANIFEST.read_text()
    for key, value in {
        "IMAGE": _IMAGE,
        "DOMAIN": layout.CLUSTER_DOMAIN,
        "ADDRESS": str(cluster.family.dns_service),
    }.items():
        text = text.replace(f"${{{key}}}", value)
    controlplane.kubectl(cluster, kubectl, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def wait(cluster: Cluster, kubectl: Path, timeout: float = 120) -> None:
    """Until it answers. The Deployment's status would not do: after a restart of the machine it is that of the past."""
    end = time.monotonic() + timeout
    while not namespaces.in_network(cluster.netns_path, lambda: _answers(cluster.family)):
        if time.monotonic() > end:
            pods = controlplane.kubectl(cluster, kubectl, "describe", "pods", "--namespace=kube-system")
            raise DevError(f"CoreDNS gives no answer after {timeout:g} s:\n{commands.tail(pods)}")


def _answers(family: Family) -> bool:
    """Whether the API server's name is resolved at the address that pods are told."""
    with socket.socket(_SOCKETS[family.version], socket.SOCK_DGRAM) as client:
        client.settimeout(0.2)
        try:
            client.connect((str(family.dns_service), 53))
            client.send(_query(f"kubernetes.default.svc.{layout.CLUSTER_DOMAIN}", _TYPES[family.version]))
            answer = client.recv(512)
        except OSError:
            time.sleep(0.1)  # refused at once, while there is no endpoint
            return False
    return answer.endswith(family.api_service.packed)


def _query(name: str, kind: int) -> bytes:
    """RFC 1035, section 4: a question for an address; nothing in it needs escaping."""
    header = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0)  # id, recursion desired, one question
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return header + labels + b"\0" + struct.pack("!2H", kind, 1)  # class IN
