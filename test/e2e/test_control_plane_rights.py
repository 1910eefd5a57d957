"""The control plane's policy with the rights that its component grants, on an install of its own: each kind of object that it may
write is written (test_rights.py holds the grants against the audit log). All is listed in pages, since streaming lists need no right
to list. The nodes are real, what their agents say is on paper."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from certroll_dev import node
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.waiting import wait_for
from certroll_dev.install import Operator
from certroll_dev.operator_image import Image
from paged import operator_of_all_namespaces
from paper_agents import SMALL, PaperAgents

_SPACE = "certroll-control-plane"
_SYSTEM = "kube-system"
_NAME = "control-plane"
_KEY = "certroll-service-account-key"
_LEASES = ("kube-controller-manager", "kube-scheduler")  # here they lead without one
_KINDS = ("Deployment", "StatefulSet", "DaemonSet")
_OLD = hashlib.sha256(b"the key before").hexdigest()
_DEADLINE = 180.0


@pytest.fixture(scope="module")
def place(cluster: LocalCluster) -> Iterator[str]:
    """Workloads that read their token once, a token Secret of another key, and Leases."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "nobody_0", "leaseDurationSeconds": 15}}
    _create(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _SPACE}}, _account(), *map(_workload, _KINDS), _token())
    _create(cluster, *({**lease, "metadata": {"name": name, "namespace": _SYSTEM}} for name in _LEASES))
    yield _SPACE
    cluster.kubectl("-n", _SYSTEM, "delete", "cpp", "--all")
    cluster.kubectl("-n", _SYSTEM, "delete", "configmap", _KEY, "--ignore-not-found")
    cluster.kubectl("-n", _SYSTEM, "delete", "lease", *_LEASES)
    cluster.kubectl("delete", "namespace", _SPACE)


@pytest.fixture(scope="module")
def operated(
    cluster: LocalCluster, place: str, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    with operator_of_all_namespaces(cluster, image, tmp_path_factory.mktemp("control-plane-rights"), ("control-plane",)) as operator:
        yield operator


def _create(cluster: LocalCluster, *objects: Object) -> None:
    cluster.kubectl("create", "-f", "-", stdin="".join(map(json.dumps, objects)))


def _account() -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": _SPACE}}


def _token() -> Object:
    """As the controller manager makes them, of another key."""
    kid = base64.urlsafe_b64encode(bytes.fromhex(_OLD)).decode().rstrip("=")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": kid}).encode()).decode().rstrip("=")
    metadata = {"name": "robot-token", "namespace": _SPACE, "annotations": {"kubernetes.io/service-account.name": "robot"}}
    kind = "kubernetes.io/service-account-token"
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "stringData": {"token": f"{head}.e30.c2lnbmVk"}}


def _workload(kind: str) -> Object:
    labels = {"reads": kind.lower()}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "pause", "image": node.PAUSE_IMAGE, "imagePullPolicy": "Never"}]}
    spec: Object = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    spec |= {} if kind == "DaemonSet" else {"replicas": 1}
    spec |= {"serviceName": "nobody"} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "reader", "namespace": _SPACE}, "spec": spec}


def _key(cluster: LocalCluster) -> str:
    """With which the controller manager signs."""
    words = ["openssl", "pkey", "-in", str(cluster.layout.pki / "service-account.key"), "-pubout", "-outform", "DER"]
    return hashlib.sha256(subprocess.run(words, capture_output=True, check=True).stdout).hexdigest()


def _root(api: API) -> str:
    text = api.get("configmaps", "default", "kube-root-ca.crt")["data"]["ca.crt"]
    return hashlib.sha256(base64.b64decode("".join(line for line in text.splitlines() if "-----" not in line))).hexdigest()


def _status(api: API) -> Object:
    status: Object = api.get("controlplanepolicies", _SYSTEM, _NAME).get("status", {})
    return status


def _converged(api: API) -> bool:
    return any(each["type"] == "Converged" and each["status"] == "True" for each in _status(api).get("conditions", []))


def _published(api: API) -> str:
    found = api.find("configmaps", _SYSTEM, _KEY)
    return found["data"]["key"] if found else ""


def _policy() -> Object:
    workloads = [
        {"name": kind.lower(), "targetRef": {"kind": kind, "namespace": _SPACE, "name": "reader"}, "reads": ["Token"]} for kind in _KINDS
    ]
    metadata = {"name": _NAME, "namespace": _SYSTEM}
    return {"apiVersion": "certroll.dev/v1alpha1", "kind": "ControlPlanePolicy", "metadata": metadata, "spec": {"workloads": workloads}}


def _restarted_for(api: API) -> list[str]:
    templates: list[Any] = [api.get(f"{kind.lower()}s", _SPACE, "reader")["spec"]["template"]["metadata"] for kind in _KINDS]
    return [each.get("annotations", {}).get("certroll.dev/service-account-key", "") for each in templates]


def test_a_new_signing_key_is_followed_everywhere(cluster: LocalCluster, api: API, operated: Operator) -> None:
    nodes = [each["metadata"]["name"] for each in api.list("nodes", "")]
    key, root = _key(cluster), _root(api)
    files = {"ca.crt": [root], "apiserver.crt": ["a" * 64], "sa.pub": [_OLD, key], "sa.key": [_OLD]}
    for kind in _KINDS:  # a pod that began after the key would need no restart
        cluster.kubectl("-n", _SPACE, "rollout", "status", f"{kind}/reader", "--timeout=120s")
    with PaperAgents(api, nodes, files, {"apiserver.crt": root}, SMALL, real_nodes=True) as agents:
        _create(cluster, _policy())
        wait_for("the key before to be published", lambda: _published(api) == _OLD, deadline=_DEADLINE)
        # Of two keys, it may be new to them.
        wait_for("workloads to be restarted for it", lambda: _restarted_for(api) == [_OLD] * 3, deadline=_DEADLINE)
        wait_for("workloads to be known", lambda: _status(api)["workloads"] == {"total": 3, "converged": 3}, deadline=_DEADLINE)
        agents.write("sa.key", [key])
        wait_for("the new one to be published", lambda: _published(api) == key, deadline=_DEADLINE)
        wait_for("all workloads to be restarted", lambda: _restarted_for(api) == [key] * 3, deadline=_DEADLINE)
        wait_for("everything to have converged", lambda: _converged(api), deadline=_DEADLINE)
        assert [each.component for each in agents.restarts] == ["kube-controller-manager"] * len(nodes)
