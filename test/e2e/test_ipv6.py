"""The demo (trust first, a leaf, a CA, restarts within budgets, under load) where all addresses are IPv6."""

from __future__ import annotations

import json
import re
import subprocess
from ipaddress import ip_address
from pathlib import Path

import pytest
from certroll_dev import paths
from certroll_dev.demo.cluster import LocalCluster

_DEMO = paths.HACK / "demo"
_WITHIN = 900.0

pytestmark = pytest.mark.timeout(_WITHIN + 300)


def test_the_demo_sees_everything(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    name = f"{request.config.getoption('--cluster-name')}-v6"
    words = [_DEMO, "--name", name, "--logs", tmp_path / "demo"]
    try:
        done = subprocess.run(
            [*words, "--keep", "--ipv6"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_WITHIN
        )
        assert done.returncode == 0, done.stdout
        assert "Everything was seen that should have been." in done.stdout
        trust_first = re.search(r"trust first +(\d+) +(\d+)\n", done.stdout)
        assert trust_first and int(trust_first[1]) > 0 and int(trust_first[2]) == 0, done.stdout
        assert {ip_address(text).version for text in _addresses(LocalCluster(name))} == {6}
    finally:
        subprocess.run([*words, "--down"], check=True, stdout=subprocess.DEVNULL)


def _addresses(cluster: LocalCluster) -> list[str]:
    """Of all nodes, pods and Services."""

    def items(kind: str) -> list[dict]:
        return json.loads(cluster.kubectl("get", kind, "--all-namespaces", "-o", "json"))["items"]

    nodes = [each["address"] for node in items("nodes") for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
    pods = [each["ip"] for pod in items("pods") for each in pod["status"]["podIPs"]]
    services = [address for service in items("services") for address in service["spec"]["clusterIPs"]]
    assert nodes and pods and services
    return [*nodes, *pods, *services]
