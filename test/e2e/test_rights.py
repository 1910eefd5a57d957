"""Least privilege, by the audit log of all other tests: whatever the manifests grant was used, and nothing was missing.

It runs last (conftest.py).
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from certroll_dev import paths
from certroll_dev.demo.cluster import LocalCluster

import rights

_MANIFESTS = paths.REPOSITORY / "manifests"
# Namespaces in which a test takes rights away, or tries what is forbidden.
_PROVOKED = ("certroll-withdrawn",)


def test_every_right_is_used_and_none_is_missing(request: pytest.FixtureRequest, cluster: LocalCluster) -> None:
    if _is_selection(request):
        pytest.skip("only all tests together use all rights")
    seen = list(rights.requests(cluster.layout.audit_log))
    forbidden = [str(one) for one in seen if one.code == 403 and not one.namespace.startswith(_PROVOKED)]
    unused = rights.granted(_manifests(cluster)) - {one.right for one in seen if one.code < 400}
    assert seen and not forbidden, "refused:\n" + "\n".join(forbidden)
    assert not unused, "granted, and never used: " + ", ".join(map(str, sorted(unused)))


def _is_selection(request: pytest.FixtureRequest) -> bool:
    """Some tests only, or a cluster that an earlier run has used."""
    config = request.config
    whole_folder = all(not arg.endswith(".py") and "::" not in arg for arg in config.args)
    return bool(config.option.keyword or config.option.markexpr or config.getoption("--keep-cluster") or not whole_folder)


def _manifests(cluster: LocalCluster) -> list[Mapping[str, Any]]:
    """Of every kustomization that is meant to be installed."""
    found: list[Mapping[str, Any]] = []
    for file in sorted(_MANIFESTS.glob("**/kustomization.yaml")):
        if yaml.safe_load(file.read_text())["kind"] == "Kustomization":
            text = subprocess.run([cluster.layout.bin / "kubectl", "kustomize", file.parent], capture_output=True, text=True, check=True)
            found += [obj for obj in yaml.safe_load_all(text.stdout) if obj]
    return found
