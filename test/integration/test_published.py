"""What trust domains write beside leaves, against a real API server: caBundles of the API server's own extensions, and keystores."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import manifests  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402
from domains import OWNER, Domains, authority, certificates, issue, matches, verifies  # noqa: E402

pytestmark = pytest.mark.timeout(300)
Object = dict[str, Any]


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, tmp_path: Path) -> Path:
    """Of an administrator; rights are test_components' and the end-to-end tests' subject."""
    path = tmp_path / "kubeconfig"
    path.write_text(control_plane.kubectl("config", "view", "--raw", "--flatten", "-o", "json").stdout)
    return path


@pytest.fixture
def domains(
    control_plane: ControlPlane, api: API, namespace: str, kubeconfig: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Domains]:
    """Of the cluster kind, where the test has such a domain."""
    everywhere = "cluster_domain" in request.fixturenames
    with Domains(control_plane, api, namespace, kubeconfig, tmp_path / "stage", everywhere=everywhere) as found:
        found.start()
        yield found


@pytest.fixture
def cluster_domain(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """Its name; it goes with the test."""
    yield f"published-{namespace}"
    control_plane.kubectl("delete", "clustertrustdomain", f"published-{namespace}", "--ignore-not-found")


def ca_of(domains: Domains, name: str) -> bytes:
    """The operator has its own namespace in that of the test."""
    wait_until("a CA", lambda: domains.secret(f"{name}-ca"), 60)
    return domains.secret(f"{name}-ca")["ca.crt"]


# --- caBundles


def annotated(kind: str, version: str, name: str, owner: str, **members: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "annotations": {OWNER: owner}}} | members


def webhook(name: str) -> Object:
    """Asked about nothing."""
    return {
        "name": f"{name}.certroll.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 3,
        "failurePolicy": "Ignore", "clientConfig": {"service": {"namespace": "nowhere", "name": name, "port": 443}},
    }  # fmt: skip


def extensions(number: str, owner: str) -> dict[str, Object]:
    """One of each kind, by the word that kubectl has for it."""
    group = f"{number}.certroll.test"
    version = {"served": True, "storage": True, "name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
    conversion = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "nowhere", "name": "a"}}}
    spec = {
        "group": group, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [version], "conversion": {"strategy": "Webhook", "webhook": conversion},
    }  # fmt: skip
    service = {"group": f"api.{group}", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    service |= {"service": {"namespace": "nowhere", "name": "a"}}
    admission, hooks = "admissionregistration.k8s.io/v1", {"webhooks": [webhook("a"), webhook("b")]}
    return {
        "validatingwebhookconfiguration": annotated("ValidatingWebhookConfiguration", admission, number, owner, **hooks),
        "mutatingwebhookconfiguration": annotated("MutatingWebhookConfiguration", admission, number, owner, **hooks),
        "apiservice": annotated("APIService", "apiregistration.k8s.io/v1", f"v1.api.{group}", owner, spec=service),
        "crd": annotated("CustomResourceDefinition", "apiextensions.k8s.io/v1", f"things.{group}", owner, spec=spec),
    }


def without_bundles(found: Object) -> tuple[Object, list[bytes | None]]:
    """The object as its owner wrote it, and its caBundles."""
    bundles: list[bytes | None] = []

    def strip(value: Any) -> Any:
        if isinstance(value, list):
            return [strip(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "service" in value:
            bundle = value.get("caBundle")
            bundles.append(base64.b64decode(bundle) if bundle else None)
        return {key: strip(each) for key, each in value.items() if key not in ("caBundle", "status", "metadata")}

    return strip(found), bundles


def test_extensions_of_the_api_server_have_the_bundle_and_nothing_else_is_changed(
    domains: Domains, control_plane: ControlPlane, cluster_domain: str
) -> None:
    objects = extensions(cluster_domain, cluster_domain)
    names = {kind: each["metadata"]["name"] for kind, each in objects.items()}
    try:
        control_plane.create(*objects.values())
        before = {kind: fetch(control_plane, kind, name) for kind, name in names.items()}
        targets = [{"kind": each["kind"], "name": each["metadata"]["name"]} for each in objects.values()]
        targets[0]["webhook"] = "b.certroll.dev"
        domains.apply(cluster_domain, authority=authority(caSecretName=f"{cluster_domain}-ca"), trustTargets=targets)
        ca = ca_of(domains, cluster_domain)
        want = {kind: [ca] for kind in objects} | {"validatingwebhookconfiguration": [None, ca], "mutatingwebhookconfiguration": [ca, ca]}
        for kind, name in names.items():
            wait_until(f"the bundle of {kind}", lambda: without_bundles(fetch(control_plane, kind, name))[1] == want[kind], 60)
            assert without_bundles(fetch(control_plane, kind, name))[0] == without_bundles(before[kind])[0]
    finally:
        for kind, name in names.items():
            control_plane.kubectl("delete", kind, name, "--ignore-not-found")


def fetch(plane: ControlPlane, kind: str, name: str) -> Object:
    found: Object = json.loads(plane.kubectl("get", kind, name, "-o", "json").stdout)
    return found


# --- keystores


def read_keystore(data: bytes, password: str, scratch: Path) -> list[bytes]:
    file = scratch / "store.p12"
    file.write_bytes(data)
    words = ["openssl", "pkcs12", "-in", str(file), "-nokeys", "-passin", f"pass:{password}"]
    read = certificates(subprocess.run(words, capture_output=True, check=True).stdout)
    return [each[each.index(b"-----BEGIN") :] for each in read]  # without the attributes that stand before each


def put_password(domains: Domains, password: bytes) -> None:
    domains.api.apply("secrets", manifests.secret(domains.namespace, "store", {"password": password}, type="Opaque"))


def test_keystores_beside_the_leaf_follow_it_and_their_password(domains: Domains, tmp_path: Path) -> None:
    put_password(domains, b"changeit")
    leaf = {"name": "server", "source": issue(), "keystore": {"passwordSecretRef": {"name": "store"}}}
    domains.apply(authority=authority(), leaves=[leaf])
    wait_until("a keystore", lambda: domains.secret("server").get("keystore.p12"), 60)
    first = domains.secret("server")
    assert matches(first) and verifies(first["tls.crt"], first["ca.crt"])
    whole = read_keystore(first["keystore.p12"], "changeit", tmp_path)
    assert certificates(first["tls.crt"])[0] in whole and certificates(first["ca.crt"])[0] in whole
    assert read_keystore(first["truststore.p12"], "changeit", tmp_path) == certificates(first["ca.crt"])
    put_password(domains, b"another")
    wait_until("a keystore by the other password", lambda: domains.secret("server")["keystore.p12"] != first["keystore.p12"], 60)
    second = domains.secret("server")
    assert second["tls.crt"] == first["tls.crt"]
    assert read_keystore(second["keystore.p12"], "another", tmp_path) == whole
