"""The demo (trust first, a leaf, a CA, restarts within budgets, under load) on the other minor versions of Kubernetes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from certroll_dev import paths, tools
from certroll_dev.demo.cluster import LocalCluster

_DEMO = paths.HACK / "demo"
_WITHIN = 900.0

pytestmark = pytest.mark.timeout(_WITHIN + 1800)  # programs that are not there yet are built


@pytest.mark.parametrize("minor", sorted(tools.OTHER_KUBERNETES))
def test_the_demo_sees_everything(minor: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    name = f"{request.config.getoption('--cluster-name')}-k{minor.replace('.', '')}"
    words = [_DEMO, "--name", name, "--logs", tmp_path / "demo"]
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(tools.kubernetes_folder(minor))}
    try:
        done = subprocess.run([*words, "--keep"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_WITHIN)
        assert done.returncode == 0, done.stdout
        assert "Everything was seen that should have been." in done.stdout
        told = [json.loads(LocalCluster(name).kubectl("get", "--raw", "/version"))["gitVersion"]]
        nodes = json.loads(LocalCluster(name).kubectl("get", "nodes", "-o", "json"))["items"]
        told += [node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes]
        assert set(told) == {tools.OTHER_KUBERNETES[minor].version}
    finally:
        subprocess.run([*words, "--down"], check=True, stdout=subprocess.DEVNULL)
