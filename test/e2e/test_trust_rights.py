"""Trust domains with the rights that their components grant, on an install of its own: each kind of object that they may write
is written (test_rights.py holds the grants against the audit log). All is listed in pages, since streaming lists need no right
to list."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from certroll_dev import install
from certroll_dev.demo import pki
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.waiting import wait_for
from certroll_dev.install import Operator
from certroll_dev.operator_image import Image
from paged import operator_of_all_namespaces

_SPACE = "certroll-trust"
_OWNER = "certroll.dev/trust-domain"
_CA = "certroll-trust-ca"  # in the operator's namespace
_DEADLINE = 120.0
_CONVERSION = "widgets.trust.certroll.dev"
_SERVICE = "v1.trust-apis.certroll.dev"
_HOOKS = "trust.certroll.dev"
# Where each has its bundle.
_EXTENSIONS: dict[str, tuple[str | int, ...]] = {
    f"validatingwebhookconfiguration/{_HOOKS}": ("webhooks", 0, "clientConfig", "caBundle"),
    f"mutatingwebhookconfiguration/{_HOOKS}": ("webhooks", 0, "clientConfig", "caBundle"),
    f"apiservice/{_SERVICE}": ("spec", "caBundle"),
    f"crd/{_CONVERSION}": ("spec", "conversion", "webhook", "clientConfig", "caBundle"),
}


@pytest.fixture(scope="module")
def place(cluster: LocalCluster) -> Iterator[str]:
    """A namespace that consents, and extensions of the API server that do."""
    metadata = {"name": _SPACE, "annotations": {"certroll.dev/trust-domains": "extensions"}}
    _create(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, *_extensions())
    yield _SPACE
    cluster.kubectl("delete", *_EXTENSIONS)
    cluster.kubectl("delete", "ctd", "--all")
    cluster.kubectl("-n", install.NAMESPACE, "delete", "secret", _CA, "--ignore-not-found")
    cluster.kubectl("-n", install.NAMESPACE, "delete", "secret", "-l", "certroll.dev/staging=true")
    cluster.kubectl("delete", "namespace", _SPACE)


@pytest.fixture(scope="module")
def operated(
    cluster: LocalCluster, place: str, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    with operator_of_all_namespaces(cluster, image, tmp_path_factory.mktemp("trust-rights"), ("trust-domains", "ca-bundles")) as operator:
        yield operator


def _create(cluster: LocalCluster, *objects: Object) -> None:
    cluster.kubectl("create", "-f", "-", stdin="".join(map(json.dumps, objects)))


def _extensions() -> Iterator[Object]:
    """What the API server would call, if anybody asked for it."""
    consent = {"annotations": {_OWNER: "extensions"}}
    client = {"service": {"namespace": "nowhere", "name": "nothing"}}
    hook = {"name": _HOOKS, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore", "clientConfig": client}
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        yield {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": _HOOKS, **consent}, "webhooks": [hook]}
    spec = {"group": _SERVICE.partition(".")[2], "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, **client}
    yield {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": _SERVICE, **consent}, "spec": spec}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    yield {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": _CONVERSION, **consent},
        "spec": {
            "group": "trust.certroll.dev", "scope": "Cluster", "versions": [version],
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}},
        },
    }  # fmt: skip


def test_a_domain_of_the_cluster_writes_where_it_may(cluster: LocalCluster, api: API, operated: Operator) -> None:
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService", "CustomResourceDefinition")
    names = (_HOOKS, _HOOKS, _SERVICE, _CONVERSION)
    spec = {
        "authority": {"type": "Issue", "issue": {"caSecretName": _CA}},
        "trustTargets": [{"kind": "ConfigMap", "name": "trust", "namespace": _SPACE}]
        + [{"kind": kind, "name": name} for kind, name in zip(kinds, names, strict=True)],
    }
    metadata = {"name": "extensions"}
    _create(cluster, {"apiVersion": "certroll.dev/v1alpha1", "kind": "ClusterTrustDomain", "metadata": metadata, "spec": spec})
    wait_for("the CA in all places", lambda: (held := _held(api, install.NAMESPACE, _CA, "tls.crt")) and _bundles(cluster) == {held}, deadline=_DEADLINE)
    assert all(value for value in _bundles(cluster))
    cluster.kubectl("patch", "ctd", "extensions", "--type=merge", "-p", json.dumps({"spec": {"rotate": {"token": "1", "what": "CA"}}}))
    wait_for("two CAs in all places", lambda: [each.count("BEGIN CERT") for each in _bundles(cluster)] == [2], deadline=_DEADLINE)


def _bundles(cluster: LocalCluster) -> set[str]:
    """One, when they are all the same."""
    found = {_bundle(cluster, extension, path) for extension, path in _EXTENSIONS.items()}
    text = cluster.kubectl("-n", _SPACE, "get", "configmap", "trust", "--ignore-not-found", "-o", "jsonpath={.data.ca\\.crt}")
    return found | {text}


def _bundle(cluster: LocalCluster, extension: str, path: tuple[str | int, ...]) -> str:
    found: Any = json.loads(cluster.kubectl("get", extension, "-o", "json"))
    for key in path[:-1]:
        found = found[key]
    return base64.b64decode(found.get(path[-1]) or "").decode()


def _held(api: API, namespace: str, name: str, key: str) -> str:
    data = (api.find("secrets", namespace, name) or {}).get("data", {})
    return base64.b64decode(data.get(key, "")).decode()


def test_a_domain_takes_over_a_secret_and_leaves_nothing_staged(cluster: LocalCluster, api: API, operated: Operator) -> None:
    """Its owner has consented, and a policy knows it already: what follows is a rotation, with the old leaf staged."""
    before = pki.new_authority(1).issue("web")
    consent = {"name": "web-tls", "namespace": _SPACE, "annotations": {_OWNER: f"{_SPACE}/mesh"}}
    api.apply("secrets", {**before.secret("web-tls", _SPACE), "metadata": consent})
    policy = {"metadata": {"name": "web", "namespace": _SPACE}, "spec": {"secrets": [{"name": "web-tls"}], "discover": {"enabled": True}}}
    _create(cluster, {"apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", **policy})
    wait_for("the policy to know it", lambda: _settled(api), deadline=_DEADLINE)
    issue = {"type": "Issue", "issue": {"dnsNames": ["web.certroll-trust.svc"]}}
    spec = {"authority": {"type": "Issue", "issue": {"caSecretName": "mesh-ca"}}, "leaves": [{"name": "web-tls", "source": issue}]}
    metadata = {"name": "mesh", "namespace": _SPACE}
    _create(cluster, {"apiVersion": "certroll.dev/v1alpha1", "kind": "TrustDomain", "metadata": metadata, "spec": spec})
    wait_for("a leaf by the domain", lambda: _held(api, _SPACE, "web-tls", "tls.crt") != before.certificate.decode(), deadline=_DEADLINE)
    wait_for("nothing staged", lambda: _at_rest(api) and not api.list("secrets", _SPACE, "certroll.dev/staging=true"), deadline=_DEADLINE)


def _settled(api: API) -> bool:
    policy = api.get("certrotationpolicies", _SPACE, "web")
    return any(each.get("settled") for each in policy.get("status", {}).get("secrets", []))


def _at_rest(api: API) -> bool:
    return bool(api.get("trustdomains", _SPACE, "mesh").get("status", {}).get("stage") == "Idle")
