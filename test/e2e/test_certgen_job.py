"""certgen's Job as the manifests have it, with its own rights, from the operator's image: Contour's Secrets made, then rotated."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
import yaml
from certroll_dev import paths
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.operator_image import Image

_NAMESPACE = "projectcontour"  # as the manifests say
_IMAGE = "certroll.dev/operator:0.1.0"
_BEGIN = b"-----BEGIN CERTIFICATE-----"


@pytest.fixture
def manifests(cluster: LocalCluster, image: Image) -> Iterator[list[dict]]:
    """With what a sanitized program needs: memory, and no look for leaks, for which it would have to trace itself."""
    cluster.load_image(image.archive)
    text = cluster.kubectl("kustomize", str(paths.REPOSITORY / "manifests" / "certgen" / "contour"))
    objects = list(yaml.safe_load_all(text.replace(_IMAGE, image.reference)))
    [job] = [each for each in objects if each["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    if image.sanitized:
        container["resources"]["limits"]["memory"] = "1Gi"
        container["env"].append({"name": "ASAN_OPTIONS", "value": "detect_leaks=0"})
    cluster.kubectl("create", "namespace", _NAMESPACE)
    yield objects
    cluster.kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


def _run(cluster: LocalCluster, objects: list[dict]) -> str:
    cluster.kubectl("delete", "job", "certroll-certgen", "-n", _NAMESPACE, "--ignore-not-found")
    cluster.kubectl("apply", "-f", "-", stdin="".join(json.dumps(each) for each in objects))
    cluster.kubectl("wait", "--for=condition=complete", "--timeout=180s", "job/certroll-certgen", "-n", _NAMESPACE)
    return cluster.kubectl("logs", "job/certroll-certgen", "-n", _NAMESPACE)


def test_the_job_makes_and_rotates(cluster: LocalCluster, api: API, manifests: list[dict]) -> None:
    assert "Secret projectcontour/contourcert: created" in _run(cluster, manifests)
    before = {name: _data(api, name) for name in ("contourcert", "envoycert")}
    [job] = [each for each in manifests if each["kind"] == "Job"]
    job["spec"]["template"]["spec"]["containers"][0]["args"].append("--overwrite")
    _run(cluster, manifests)
    uid = cluster.kubectl("get", "job", "certroll-certgen", "-n", _NAMESPACE, "-o", "jsonpath={.metadata.uid}")
    for name, old in before.items():
        new = _data(api, name)
        # A pod that the Job starts in place of one that failed goes on with this rotation.
        assert api.get("secrets", _NAMESPACE, name)["metadata"]["annotations"]["certroll.dev/certgen-rotation"] == uid
        assert new["tls.crt"] != old["tls.crt"] and new["ca.crt"].endswith(old["ca.crt"]) and new["ca.crt"].count(_BEGIN) == 2


def _data(api: API, name: str) -> dict[str, bytes]:
    secret = api.get("secrets", _NAMESPACE, name)
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}
