"""Overrides of the catalogue, from a ConfigMap of a real API server, with no more rights than the manifests give."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane, Object, wait_until
from operators import Operator, account

NAME = "certroll-catalogue"
# As manifests/base/role.yaml and manifests/namespace/role.yaml have them, as far as this test needs them.
RULES: list[Object] = [
    {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": ["get", "list", "watch", "create"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["list", "watch"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["get", "list", "watch"]},
]


def document(method: str) -> str:
    return f"""
schema: 1
components:
- name: acme/shop
  images: [acme/shop]
  uses: [{{roles: [serverLeaf, clientLeaf], rules: [{{method: {method}, confidence: verified, source: ours}}]}}]
"""


@pytest.fixture
def operator(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
    kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
    flags = ("--leader-elect=false", f"--operator-namespace={namespace}")
    running = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, *flags)
    try:
        running.wait_line("all caches are in sync")
        yield running
    finally:
        running.end()


class Shop:
    """A Deployment of software that the built-in catalogue does not know, its Secret, and a policy over both."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane = plane
        self._namespace = namespace
        self._folder = folder
        mount = {"name": "tls", "mountPath": "/tls"}
        items = [{"key": key, "path": key} for key in ("tls.crt", "tls.key")]
        pod = {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {
                "containers": [{"name": "shop", "image": "acme/shop:1.0", "volumeMounts": [mount]}],
                "volumes": [{"name": "tls", "secret": {"secretName": "shop", "items": items}}],
            },
        }
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
        self.renew(create=True)
        plane.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "shop", "namespace": namespace},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}}, "template": pod},
            },
            {
                "apiVersion": "certroll.dev/v1alpha1",
                "kind": "CertRotationPolicy",
                "metadata": {"name": "shop", "namespace": namespace},
                "spec": {
                    "mode": "Plan",
                    "secrets": [{"name": "shop"}],
                    "consumers": [{"name": "shop", "targetRef": target}],
                },
            },
        )
        wait_until("the leaf is on record", lambda: any(s.get("observedResourceVersion") for s in self._secrets()))

    def renew(self, *, create: bool = False) -> None:
        key, certificate = self._folder / "tls.key", self._folder / "tls.crt"
        words = ["req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "30", "-subj", "/CN=shop"]
        command = ["openssl", *words, "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        data = {file.name: base64.b64encode(file.read_bytes()).decode() for file in (key, certificate)}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "shop", "namespace": self._namespace},
            "data": data,
        }
        self._plane.kubectl("create" if create else "replace", "-f", "-", input=json.dumps(secret))

    def _status(self) -> Any:
        return self._plane.get("crp", "shop", "-n", self._namespace).get("status", {})

    def _secrets(self) -> list[Any]:
        return list(self._status().get("secrets", []))

    def decision(self) -> tuple[str | None, str | None]:
        consumer = (self._status().get("consumers") or [{}])[0]
        return consumer.get("decision"), consumer.get("component")


def put(plane: ControlPlane, namespace: str, **documents: str) -> None:
    data = {f"{name}.yaml": text for name, text in documents.items()}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": namespace}, "data": data}
    plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(body))


def valid(operator: Operator) -> bool:
    _, page = operator.get("/metrics")
    return "certroll_catalogue_override_valid 1" in page.splitlines()


def told(plane: ControlPlane, namespace: str, reason: str) -> str:
    """The messages of the ConfigMap's Events of that reason."""
    found = plane.get("events", "-n", namespace, "--field-selector", f"reason={reason},involvedObject.kind=ConfigMap")
    return " ".join(event["message"] for event in found["items"])


def test_an_override_is_taken_up_and_everything_is_planned_anew(
    control_plane: ControlPlane, namespace: str, operator: Operator, tmp_path: Path
) -> None:
    shop = Shop(control_plane, namespace, tmp_path)
    shop.renew()
    wait_until("the unknown software to be restarted", lambda: shop.decision() == ("Restart", None))
    put(control_plane, namespace, ours=document("Watch"))
    wait_until("the override to be in force", lambda: shop.decision() == ("HotReload", "acme/shop"))
    put(control_plane, namespace, ours=document("Restart"))
    wait_until("the newer override to be in force", lambda: shop.decision() == ("Restart", "acme/shop"))
    put(control_plane, namespace, ours=document("Watch"))
    wait_until("the third one to be in force", lambda: shop.decision() == ("HotReload", "acme/shop"))
    control_plane.kubectl("delete", "configmap", NAME, "-n", namespace)
    wait_until("the built-in catalogue to be in force", lambda: shop.decision()[0] == "Restart")
    assert valid(operator)


def test_content_that_is_wrong_changes_nothing_and_is_told(
    control_plane: ControlPlane, namespace: str, operator: Operator, tmp_path: Path
) -> None:
    shop = Shop(control_plane, namespace, tmp_path)
    put(control_plane, namespace, ours=document("Watch"))
    shop.renew()
    wait_until("the override to be in force", lambda: shop.decision() == ("HotReload", "acme/shop"))
    put(control_plane, namespace, ours=document("Watch"), theirs=document("Sometimes").replace("acme", "else"))
    problem = "theirs.yaml: entry 0 (else/shop): uses[0].rules[0].method must be Watch"
    wait_until("an Event that names the field", lambda: problem in told(control_plane, namespace, "CatalogueRefused"))
    assert problem in operator.wait_line("overrides of the catalogue are refused")["error"]
    assert not valid(operator)
    assert shop.decision() == ("HotReload", "acme/shop")
    put(control_plane, namespace, ours=document("Watch"), theirs=document("Poll, maxDelay: 1m").replace("acme", "else"))
    wait_until("an Event that says so", lambda: told(control_plane, namespace, "CatalogueInForce"))
    assert valid(operator)


def test_overrides_of_a_watched_namespace_are_none(
    control_plane: ControlPlane, namespace: str, operator: Operator, tmp_path: Path
) -> None:
    """Only the operator's own namespace, and only that name."""
    shop = Shop(control_plane, namespace, tmp_path)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another", "namespace": namespace}}
    control_plane.create({**body, "data": {"ours.yaml": document("Watch")}})
    shop.renew()
    wait_until("the unknown software to be restarted", lambda: shop.decision() == ("Restart", None))
    assert not operator.lines("overrides of the catalogue")
