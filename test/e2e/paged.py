"""An API server of yesterday in front of today's: without streaming lists, so that all is listed in pages."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import sanitizers
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.install import Operator
from certroll_dev.operator_image import Image
from write_proxy import WriteProxy


@contextlib.contextmanager
def pages_only(cluster: LocalCluster, folder: Path) -> Iterator[dict[str, str]]:
    """What leads an operator's pod there, as its environment: what a kubelet sets leads to the API server itself."""
    kubeconfig = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json")) | {"users": [{"user": {}}]}
    certificate = cluster.layout.pki / "apiserver.crt"
    with WriteProxy(kubeconfig, folder, str(cluster.layout.machine(1).address), certificate, streaming_lists=False) as proxy:
        host, port = proxy.endpoint
        yield {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}


@contextlib.contextmanager
def operator_of_all_namespaces(cluster: LocalCluster, image: Image, folder: Path, components: Sequence[str]) -> Iterator[Operator]:
    """Installed for the time being, with the rights of these components, listing in pages; it must leave no sanitizer's word."""
    with pages_only(cluster, folder) as env:
        environment = sanitizers.ENVIRONMENT | env
        operator = Operator(cluster.layout, image, overlay="cluster-wide", components=components, env=environment)
        operator.forget_logs()  # of other tests
        operator.install()
        yield operator
        operator.uninstall()
    found = sanitizers.reports(operator.logs())
    assert not found, found
