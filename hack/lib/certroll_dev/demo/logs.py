"""Everything that says what happened, in one folder: for whoever has to find out why a run failed."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from certroll_dev import install
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.ui import DevError

_KINDS = ("certrotationpolicies", "trustdomains", "deployments", "replicasets", "pods", "events")


def collect(cluster: LocalCluster, api: API, folder: Path, namespaces: Sequence[str] = (NAMESPACE,)) -> None:
    """Never fails: half of the logs is better than none and a second error."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(DevError):
        (folder / "clustertrustdomains.json").write_text(json.dumps(api.list("clustertrustdomains", ""), indent=1))
    for namespace in namespaces:
        _namespace(cluster, api, namespace, folder if len(namespaces) == 1 else folder / namespace)
    for namespace in (*namespaces, install.NAMESPACE):
        with contextlib.suppress(DevError):
            for pod in api.list("pods", namespace):
                _pod_logs(cluster, pod, folder / "pods")
    with contextlib.suppress(DevError):
        (folder / "operator.txt").write_text(cluster.kubectl("-n", install.NAMESPACE, "describe", "all"))
    # What the control plane and the nodes wrote, the audit log among it.
    with contextlib.suppress(OSError, shutil.Error):
        shutil.copytree(cluster.layout.logs, folder / "cluster", dirs_exist_ok=True)


def _namespace(cluster: LocalCluster, api: API, namespace: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for kind in _KINDS:
        with contextlib.suppress(DevError):
            (folder / f"{kind}.json").write_text(json.dumps(api.list(kind, namespace), indent=1))
    with contextlib.suppress(DevError):
        (folder / "events.txt").write_text(cluster.kubectl("-n", namespace, "get", "events", "--sort-by=.lastTimestamp"))


def _pod_logs(cluster: LocalCluster, pod: Object, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    for suffix, options in (("", ()), (".previous", ("--previous",))):
        with contextlib.suppress(DevError):
            text = cluster.kubectl("-n", namespace, "logs", name, "--all-containers", *options)
            (folder / f"{name}{suffix}.log").write_text(text)
