"""The demo (trust first, a leaf, a CA, restarts within budgets, under load) where all addresses are IPv6."""

from __future__ import annotations

import json
import re
from ipaddress import ip_address
from pathlib import Path

import pytest
from certroll_dev.demo.cluster import LocalCluster
from demo_runs import DEMO_WITHIN, demo

pytestmark = pytest.mark.timeout(DEMO_WITHIN + 300)


def test_the_demo_sees_everything(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    name = f"{request.config.getoption('--cluster-name')}-v6"
    with demo(name, tmp_path, "--ipv6") as told:
        trust_first = re.search(r"trust first +(\d+) +(\d+)\n", told)
        assert trust_first and int(trust_first[1]) > 0 and int(trust_first[2]) == 0, told
        assert {ip_address(text).version for text in _addresses(LocalCluster(name))} == {6}


def _addresses(cluster: LocalCluster) -> list[str]:
    """Of all nodes, pods and Services."""

    def items(kind: str) -> list[dict]:
        return json.loads(cluster.kubectl("get", kind, "--all-namespaces", "-o", "json"))["items"]

    nodes = [each["address"] for node in items("nodes") for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
    pods = [each["ip"] for pod in items("pods") for each in pod["status"]["podIPs"]]
    services = [address for service in items("services") for address in service["spec"]["clusterIPs"]]
    assert nodes and pods and services
    return [*nodes, *pods, *services]
