"""CoreDNS: the cluster's names, from an image made here and a manifest with the essentials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import controlplane, images, layout, node, paths
from .layout import Cluster, Machine

PROGRAMS = ("coredns",)
_IMAGE = "certroll.dev/coredns:1"
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
        "ADDRESS": str(layout.DNS_SERVICE_ADDRESS),
    }.items():
        text = text.replace(f"${{{key}}}", value)
    controlplane.kubectl(cluster, kubectl, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def wait(cluster: Cluster, kubectl: Path) -> None:
    controlplane.kubectl(
        cluster, kubectl, "--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s", timeout=70
    )
