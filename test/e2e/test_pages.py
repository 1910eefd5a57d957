"""An API server that refuses streaming lists, as those before Kubernetes 1.34 by default: everything is listed in pages.

And a cluster with the Gateway API and the kind of Argo Rollouts, which most of the tests do without.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from certroll_dev import argo_rollouts, controlplane
from certroll_dev.demo import pki, pods, workloads
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.operator_image import Image
from operator_pods import FAST_ELECTION, OperatorPods
from paged import pages_only

_NAMESPACE = "certroll-pages"
_OWN_NAMESPACE = "certroll-pages-operator"
_SECRET = "nginx-tls"
_POLICY = "pages"
_PORT = 8443
_GATEWAYS = "gateways.gateway.networking.k8s.io"
_ROLLOUTS = "rollouts.argoproj.io"
_DECISIONS = {"deployment-web": "Restart", "ingress-front": "HotReload", "gateway-front": "HotReload"}


@pytest.fixture
def gateways(cluster: LocalCluster) -> Iterator[None]:
    """The Gateway API, as far as its Gateways name Secrets, and Argo's Rollout; a cluster has none of it by itself."""
    for crd in (_gateway_crd(), argo_rollouts.crd("Rollout", "rollouts")):
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(crd))
    controlplane.wait_for_crds(cluster.layout, f"crd/{_GATEWAYS}", f"crd/{_ROLLOUTS}")
    yield
    cluster.kubectl("delete", "crd", _GATEWAYS, _ROLLOUTS)


def _gateway_crd() -> Object:
    ref = {"type": "object", "properties": {key: {"type": "string"} for key in ("group", "kind", "name", "namespace")}}
    tls = {"type": "object", "properties": {"certificateRefs": {"type": "array", "items": ref}}}
    listener = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "port": {"type": "integer"}, "protocol": {"type": "string"}, "tls": tls},
    }
    spec = {
        "type": "object",
        "properties": {"gatewayClassName": {"type": "string"}, "listeners": {"type": "array", "items": listener}},
    }
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }  # fmt: skip
    names = {"kind": "Gateway", "plural": "gateways", "singular": "gateway"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Groups of k8s.io want the word of the community; this is a part of what it approved.
        "metadata": {"name": _GATEWAYS, "annotations": {"api-approved.kubernetes.io": "unapproved, a part of it for a test"}},
        "spec": {"group": "gateway.networking.k8s.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.fixture
def secret(cluster: LocalCluster, api: API, gateways: None) -> Iterator[None]:
    """Of nginx, and of an Ingress and a Gateway that nobody serves."""
    workloads.install_crds(cluster)
    cluster.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found")
    cluster.kubectl("create", "namespace", _NAMESPACE)
    _renew(api, 1)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(_users())}))
    cluster.kubectl("-n", _NAMESPACE, "rollout", "status", "--timeout=120s", "deployment/web")
    yield
    cluster.kubectl("delete", "namespace", _NAMESPACE)


def _renew(api: API, authority: int) -> tuple[Material, dict[str, str]]:
    material = pki.new_authority(authority).issue("web", namespace=_NAMESPACE)
    written = api.apply("secrets", material.secret(_SECRET, _NAMESPACE))
    return material, {_SECRET: written["metadata"]["resourceVersion"]}


def _users() -> Iterator[Object]:
    documents = list(yaml.safe_load_all((workloads.MANIFESTS / "40-nginx.yaml").read_text()))
    config = next(each for each in documents if each["kind"] == "ConfigMap")
    yield config | {"metadata": {"name": config["metadata"]["name"], "namespace": _NAMESPACE}}
    pod = next(each for each in documents if each["kind"] == "Deployment")["spec"]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = 1
    del pod["containers"][0]["lifecycle"]  # nobody calls
    labels = {"app": "web"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta("web"), "spec": spec}
    backend = {"service": {"name": "web", "port": {"number": _PORT}}}
    ingress = {"defaultBackend": backend, "tls": [{"hosts": ["shop.example.org"], "secretName": _SECRET}]}
    yield {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": _meta("front"), "spec": ingress}
    listener = {"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": _SECRET}]}}
    gateway = {"gatewayClassName": "nobody", "listeners": [listener]}
    yield {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": _meta("front"), "spec": gateway}


def _meta(name: str) -> Object:
    return {"name": name, "namespace": _NAMESPACE}


@pytest.fixture
def operator(cluster: LocalCluster, api: API, image: Image, logs: Path) -> Iterator[OperatorPods]:
    logs.mkdir(parents=True, exist_ok=True)
    with pages_only(cluster, logs) as env:
        operator = OperatorPods(cluster, api, image, [_NAMESPACE], logs / "operator.log", _OWN_NAMESPACE, FAST_ELECTION, env)
        operator.start()
        yield operator
        operator.stop()
    cluster.kubectl("delete", "namespace", _OWN_NAMESPACE)


def test_all_that_is_listed_in_pages_is_found_and_dealt_with(api: API, secret: None, operator: OperatorPods) -> None:
    _install_policy(api)
    wait_for("all to be found", lambda: set(_status(api).consumers) == set(_DECISIONS), deadline=60, missing=lambda: str(_status(api)))
    wait_for("the policy to be Ready", lambda: _status(api).holds("Ready"), deadline=30, missing=lambda: str(_status(api)))
    before = _generation(api)
    decisions: dict[str, str] = {}
    material, versions = _renew(api, 2)

    def settled() -> bool:
        operator.check()
        status = _status(api)
        decisions.update({each.name: each.decision for each in status.consumers.values() if not each.at_rest})
        return status.settled(versions)

    wait_for("the rotation to be settled", settled, deadline=240, missing=lambda: str(_status(api)))
    assert decisions == _DECISIONS
    assert _generation(api) == before + 1, "not restarted exactly once"
    served = {pods.served_leaf(pod.ip, _PORT, f"web.{_NAMESPACE}.svc") for pod in pods.of_app(api, _NAMESPACE, "web")}
    assert served == {material.fingerprint()}


def _install_policy(api: API) -> None:
    api.apply("certrotationpolicies", {
        "apiVersion": "certroll.dev/v1alpha1",
        "kind": "CertRotationPolicy",
        "metadata": _meta(_POLICY),
        "spec": {"secrets": [{"name": _SECRET}], "discover": {"enabled": True}, "restart": {"coalesce": "0s"}},
    })  # fmt: skip


def _status(api: API) -> Status:
    return Status.of(api.get("certrotationpolicies", _NAMESPACE, _POLICY))


def _generation(api: API) -> int:
    found: int = api.get("deployments", _NAMESPACE, "web")["metadata"]["generation"]
    return found
