"""Least privilege, by the audit log of all other tests: whatever the manifests grant was used, and nothing was missing.

It runs last (conftest.py), or after several runs that kept their audit logs: --audit-logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from certroll_dev import commands, install_overlay, tools
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.install_overlay import MANIFESTS, Setup

import rights

# Namespaces in which a test takes rights away, or tries what is forbidden.
_PROVOKED = ("certroll-withdrawn",)
_TRIED = "certroll-admission-check"  # a Secret that each operator asks for at its start, to see that it is refused


def test_every_right_is_used_and_none_is_missing(
    request: pytest.FixtureRequest, other_audit_logs: list[Path], tmp_path: Path
) -> None:
    if _is_selection(request) and not request.config.getoption("--check-rights"):
        pytest.skip("only all tests together use all rights; to see how far a kept cluster is: --check-rights")
    seen = [request for log in (*_own_audit_log(request), *other_audit_logs) for request in rights.requests(log)]
    forbidden = [str(one) for one in seen if one.code == 403 and not one.namespace.startswith(_PROVOKED) and one.name != _TRIED]
    unused = rights.unused(rights.granted(_manifests(tmp_path)), seen)
    assert len(seen) > 0
    assert not forbidden, "refused:\n" + "\n".join(forbidden)
    assert not unused, "granted, and never used: " + ", ".join(map(str, unused))


def _own_audit_log(request: pytest.FixtureRequest) -> list[Path]:
    if request.config.getoption("--audit-logs"):
        return []
    cluster: LocalCluster = request.getfixturevalue("cluster")
    return [cluster.layout.audit_log]


def _is_selection(request: pytest.FixtureRequest) -> bool:
    """Some tests only, or a cluster that an earlier run has used."""
    config = request.config
    if config.getoption("--audit-logs"):
        return False
    whole_folder = all(not arg.endswith(".py") and "::" not in arg for arg in config.args)
    return bool(config.option.keyword or config.option.markexpr or config.getoption("--keep-cluster") or not whole_folder)


def _manifests(folder: Path) -> list[Mapping[str, Any]]:
    """Of each overlay, and of each component on top of one."""
    setups = [{"overlay": path.name} for path in sorted((MANIFESTS / "overlays").iterdir())]
    beside = [path.name for path in sorted((MANIFESTS / "components").iterdir()) if path.name != "metrics"]  # which cluster-wide has
    components = [{"overlay": "cluster-wide", "components": (name,)} for name in beside]
    kubectl = tools.ensure(["kubectl"])["kubectl"]
    found: list[Mapping[str, Any]] = []
    for number, setup in enumerate([*setups, *components]):
        kustomization = install_overlay.write(folder / str(number), Setup(image="certroll.dev/operator:any", **setup))
        found += [obj for obj in yaml.safe_load_all(commands.run([kubectl, "kustomize", kustomization])) if obj]
    return found
