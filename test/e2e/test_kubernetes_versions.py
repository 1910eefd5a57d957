"""The demo (trust first, a leaf, a CA, restarts within budgets, under load) on the other minor versions of Kubernetes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from certroll_dev import tools
from certroll_dev.demo.cluster import LocalCluster
from demo_runs import DEMO_WITHIN, demo

pytestmark = pytest.mark.timeout(DEMO_WITHIN + 1800)  # programs that are not there yet are built


@pytest.mark.parametrize("minor", sorted(tools.OTHER_KUBERNETES))
def test_the_demo_sees_everything(minor: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    name = f"{request.config.getoption('--cluster-name')}-k{minor.replace('.', '')}"
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(tools.kubernetes_folder(minor))}
    with demo(name, tmp_path, env=environment):
        told = [json.loads(LocalCluster(name).kubectl("get", "--raw", "/version"))["gitVersion"]]
        nodes = json.loads(LocalCluster(name).kubectl("get", "nodes", "-o", "json"))["items"]
        told += [node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes]
        assert set(told) == {tools.OTHER_KUBERNETES[minor].version}
