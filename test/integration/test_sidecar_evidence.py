"""A program that reads again only when its pod's certroll-sidecar tells it to: what is decided, and what the sidecar's page makes of it.
The pod is on paper, but at its address a page is served that says what the test wants."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import RULES, Operator, account
from paper_pods import PaperPods
from rotations import direct

sys.path[:0] = [str(ROOT / "hack" / "lib")]

from certroll_dev import namespaces  # noqa: E402
from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402

Object = dict[str, Any]
_ADDRESS = "10.97.0.6"  # of this network, and not of loopback, where no pod is
_PORT = 30960
_PATIENCE = 120.0
_NAME = "web"
_NUDGE = "certroll.dev/refresh"
_VOLUME = {"name": "tls", "mountPath": "/etc/tls"}
_NGINX = {"name": "nginx", "image": "docker.io/library/nginx:1.22.1", "volumeMounts": [_VOLUME]}
_SIDECAR = {
    "name": "sidecar", "image": "example.com/sidecar:1", "volumeMounts": [_VOLUME],
    "ports": [{"name": "certroll-reload", "containerPort": _PORT}],
}  # fmt: skip


def _der(certificates: bytes) -> list[bytes]:
    marker = b"-----END CERTIFICATE-----"
    return [ssl.PEM_cert_to_DER_cert((each + marker).decode().strip()) for each in certificates.split(marker)[:-1]]


def digests(material: pki.Material) -> Object:
    """As a sidecar's page has them: the leaf's, and that of the set of CAs."""
    cas = sorted({hashlib.sha256(each).hexdigest() for each in _der(material.trust)})
    trust = hashlib.sha256("".join(f"{each}," for each in cas).encode()).hexdigest()
    return {"leaf": material.fingerprint(), "trust": trust}


class Page:
    """What the pod says at its address."""

    def __init__(self, plane: ControlPlane) -> None:
        self.asked = 0
        self.status = 200
        self._entry: Object = {}
        page = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.asked += 1
                body = page.body()
                self.send_response(page.status if self.path == "/status" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        def listen() -> http.server.ThreadingHTTPServer:
            return http.server.ThreadingHTTPServer((_ADDRESS, _PORT), Handler)

        self._server = namespaces.in_network(Path("/run/netns") / plane.netns, listen)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def body(self) -> bytes:
        return json.dumps({"apiVersion": "sidecar.certroll.dev/v1", "materials": [{"name": _NAME, **self._entry}]}).encode()

    def says(self, state: str, found: Object, delivered: Object, served: str = "", *, proven: bool = False, message: str = "") -> None:
        self._entry = {
            "state": state, "found": found, "delivered": {**delivered, "leafProven": proven, "trustProven": False},
            "served": {"leaf": served}, "attempts": 1, "message": message,
        }  # fmt: skip

    def says_delivered(self, material: pki.Material, *, proven: bool = True) -> None:
        has = digests(material)
        self.says("Delivered", has, has, has["leaf"] if proven else "", proven=proven)

    def wait_asked(self) -> None:
        before = self.asked
        wait_until("the page to be read twice more", lambda: self.asked >= before + 2, _PATIENCE)


@dataclasses.dataclass
class Scene:
    api: API
    namespace: str
    page: Page
    old: pki.Material
    version: str = ""

    def create(self) -> None:
        labels, metadata = {"app": _NAME}, {"name": _NAME, "namespace": self.namespace}
        self.api.apply("secrets", self.old.secret(_NAME, self.namespace))
        spec = {"containers": [_NGINX, _SIDECAR], "volumes": [{"name": "tls", "secret": {"secretName": _NAME}}]}
        self.api.apply("deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels}, "strategy": {"type": "Recreate"},
                "template": {"metadata": {"labels": labels}, "spec": {**spec, "terminationGracePeriodSeconds": 0}},
            },
        })  # fmt: skip
        self.lend_address()
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": _NAME}
        self.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": metadata,
            "spec": {
                "secrets": [{"name": _NAME}], "restart": {"coalesce": "0s"},
                "consumers": [{"name": _NAME, "targetRef": target}],
            },
        })  # fmt: skip

    def pods(self) -> list[Object]:
        pods = self.api.list("pods", self.namespace)
        return [pod for pod in pods if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]

    def lend_address(self) -> None:
        (pod,) = wait_until("the pod to be ready", self.pods)
        address = {"podIP": _ADDRESS, "podIPs": [{"ip": _ADDRESS}], "hostIP": "10.97.0.4"}
        self.api.merge("pods", self.namespace, pod["metadata"]["name"], {"status": address}, subresource="status")

    def publish(self, material: pki.Material) -> None:
        data = {key: base64.b64encode(value).decode() for key, value in _files(material).items()}
        self.version = self.api.merge("secrets", self.namespace, _NAME, {"data": data})["metadata"]["resourceVersion"]

    def status(self) -> Object:
        status: Object = self.api.get("certrotationpolicies", self.namespace, _NAME).get("status", {})
        return status

    def secret(self) -> Object:
        return next(iter(self.status().get("secrets", [])), {})

    def consumer(self) -> Object:
        return next(iter(self.status().get("consumers", [])), {})

    def is_settled(self) -> bool:
        secret = self.secret()
        current = not self.version or secret.get("observedResourceVersion") == self.version
        return bool(secret.get("settled")) and not secret.get("pending") and current

    def wait_pods(self, what: str, **wanted: int) -> None:
        wait_until(what, lambda: wanted.items() <= self.consumer().get("pods", {}).items(), _PATIENCE)

    def restarts(self) -> int:
        return int(self.api.get("deployments", self.namespace, _NAME)["metadata"]["generation"]) - 1


def _files(material: pki.Material) -> dict[str, bytes]:
    return {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.trust}


@pytest.fixture
def authority() -> pki.Authority:
    return pki.new_authority(1)


@pytest.fixture
def scene(control_plane: ControlPlane, namespace: str, authority: pki.Authority, tmp_path: Path) -> Iterator[Scene]:
    control_plane.run("ip", "address", "replace", f"{_ADDRESS}/32", "dev", "lo")
    page = Page(control_plane)
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        made = Scene(api, namespace, page, authority.issue(_NAME))
        page.says_delivered(made.old)
        made.create()
        kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
        operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false")
        try:
            wait_until("the first sight", made.is_settled)
            yield made
        finally:
            print(json.dumps(made.status()))  # pytest shows it when a test has failed
            operator.end()
            page.close()


def _a_leaf_is_told_and_verified(scene: Scene, new: pki.Material) -> None:
    assert scene.page.asked == 0  # nothing has changed
    scene.publish(new)
    scene.wait_pods("the sidecar is seen to have the old leaf", stale=1)
    consumer = scene.consumer()
    assert consumer["decision"] == "Trigger"
    assert "on SIGHUP, which its certroll-sidecar sends" in consumer["reason"]
    assert "still sees an old one served in place of the new leaf" in consumer["examples"][0]
    wait_until("the pod to be nudged", lambda: _NUDGE in scene.pods()[0]["metadata"].get("annotations", {}), _PATIENCE)
    scene.page.says("Pending", digests(new), digests(scene.old))
    scene.wait_pods("it has found the new leaf", unknown=1, stale=0)
    assert not scene.is_settled()
    scene.page.says_delivered(new)
    wait_until("the leaf is settled", scene.is_settled, _PATIENCE)
    assert scene.secret()["leafBy"] == "Verified"
    assert scene.consumer()["state"] == "Converged"


def _cas_have_arrived_when_the_page_says_so(scene: Scene, now: pki.Material, both: pki.Material) -> None:
    scene.publish(both)
    scene.wait_pods("its volume is old", unknown=1)
    scene.page.wait_asked()
    assert not scene.is_settled()
    scene.page.says("Failing", digests(both), digests(now), proven=True, message="SIGHUP to nginx: no such process")
    said = "its certroll-sidecar has not yet passed on the new set of CAs: SIGHUP to nginx: no such process"
    wait_until("the reason to be shown", lambda: said in json.dumps(scene.consumer()), _PATIENCE)
    scene.page.says_delivered(both)
    wait_until("the CAs are settled", scene.is_settled, _PATIENCE)
    assert scene.secret()["trustBy"] == "Inferred"  # nothing has shown them


def _a_page_that_cannot_be_read_holds_and_says_why(scene: Scene, new: pki.Material) -> None:
    scene.page.status = 503
    scene.publish(new)
    said = f"the page of its certroll-sidecar (port {_PORT}) was not read"
    wait_until("the reason to be shown", lambda: said in json.dumps(scene.consumer()), _PATIENCE)
    scene.page.wait_asked()
    assert not scene.is_settled()
    scene.page.says_delivered(new)
    scene.page.status = 200
    wait_until("the leaf is settled", scene.is_settled, _PATIENCE)


def _without_its_sidecar_it_is_restarted(scene: Scene, new: pki.Material) -> None:
    scene.publish(new)
    wait_until("the decision", lambda: scene.consumer().get("decision") == "Trigger" and not scene.is_settled(), _PATIENCE)
    gone = [{"op": "replace", "path": "/spec/template/spec/containers", "value": [_NGINX]}]
    target = f"/apis/apps/v1/namespaces/{scene.namespace}/deployments/{_NAME}"
    scene.api.request("PATCH", target, gone, "application/json-patch+json")  # type: ignore[arg-type]
    wait_until("the decision", lambda: scene.consumer().get("decision") == "Restart", _PATIENCE)
    assert "again only on SIGHUP, which nothing in the pod sends" in scene.consumer()["reason"]


def test_what_a_sidecar_says_is_waited_for(scene: Scene, authority: pki.Authority) -> None:
    first, other, last = authority.issue(_NAME), pki.new_authority(2), authority.issue(_NAME)
    both = dataclasses.replace(first, trust=other.certificate + authority.certificate)
    _a_leaf_is_told_and_verified(scene, first)
    _cas_have_arrived_when_the_page_says_so(scene, first, both)
    _a_page_that_cannot_be_read_holds_and_says_why(scene, dataclasses.replace(last, trust=both.trust))
    assert scene.restarts() == 0
    _without_its_sidecar_it_is_restarted(scene, both)


@pytest.mark.skipif(os.environ.get("CERTROLL_LONG") != "1", reason="takes more than two minutes; test_plan_trigger has the rule")
def test_an_old_leaf_past_the_deadline_is_restarted_for(scene: Scene, authority: pki.Authority) -> None:
    new, before = authority.issue(_NAME), digests(scene.old)
    scene.publish(new)
    scene.page.says("Failing", digests(new), before, before["leaf"], message="SIGHUP to nginx: no such process")
    wait_until("the restart", lambda: scene.restarts() == 1, 300)
    wait_until("it is on record", lambda: scene.consumer()["decision"] == "Restart")
    assert "did not happen in time: restarted" in scene.consumer()["reason"]
