"""A pod that serves another certificate than its Secret holds when the operator comes: nothing is restarted for it, and nothing that waits
for Converged goes on before the pod serves the right one. The pod is on paper; at its address a real TLS server listens."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import manifests
from control_plane import ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from rotations import direct

from certroll_dev.demo import pki  # noqa: E402  (rotations has its folder)
from certroll_dev.demo.api import API  # noqa: E402

_ADDRESS = "10.97.0.7"  # of this network, and not of loopback, where no pod is
_PORT, _CLOSED = 30960, 30961
_NAME, _SECRET = "web", "web-tls"

pytestmark = pytest.mark.timeout(300)


@contextmanager
def _serving(plane: ControlPlane, material: pki.Material, folder: Path) -> Iterator[None]:
    certificate, key = folder / "served.crt", folder / "served.key"
    certificate.write_bytes(material.certificate)
    key.write_bytes(material.key)
    words = ["openssl", "s_server", "-quiet", "-accept", f"{_ADDRESS}:{_PORT}", "-cert", certificate, "-key", key]
    server = plane.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until("the server", lambda: _handshake(plane).returncode == 0)
        yield
    finally:
        server.kill()
        server.wait()


def _handshake(plane: ControlPlane) -> subprocess.CompletedProcess[str]:
    return plane.run("openssl", "s_client", "-connect", f"{_ADDRESS}:{_PORT}", input="", check=False)


@contextmanager
def _everything_it_says(plane: ControlPlane, namespace: str, folder: Path) -> Iterator[Path]:
    """Each status of the condition, a line each, as a watch has them."""
    path = folder / "said"
    words = ["kubectl", "get", "crp", _NAME, "-n", namespace, "-w", "-o"]
    words += ['jsonpath={.status.conditions[?(@.type=="Converged")].status}{"\\n"}']
    with path.open("w") as out:
        watch = plane.popen(words, env=plane.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
    try:
        yield path
    finally:
        watch.kill()
        watch.wait()


class Scene:
    def __init__(self, api: API, plane: ControlPlane, namespace: str) -> None:
        self._api = api
        self._plane = plane
        self.namespace = namespace

    def create(self, held: pki.Material) -> None:
        data = {"tls.crt": held.certificate, "tls.key": held.key, "ca.crt": held.trust}
        self._api.apply("secrets", manifests.secret(self.namespace, _SECRET, data))
        self.put(_NAME, _PORT)

    def put(self, name: str, port: int) -> None:
        """A Deployment of the Secret, and a policy that asks its pods at this port."""
        self._api.apply("deployments", manifests.deployment(self.namespace, name, _SECRET))
        wait_until("the pod", lambda: [pod for pod in self.pods(name) if pod["status"].get("podIP") == _ADDRESS])
        consumers = [each | {"verify": {"port": port}} for each in manifests.listed(name)]
        self._api.apply("certrotationpolicies", manifests.policy(self.namespace, name, {"secrets": [{"name": _SECRET}], "consumers": consumers}))

    def pods(self, name: str = _NAME) -> list[dict[str, Any]]:
        return [pod for pod in self._api.list("pods", self.namespace, f"app={name}") if "deletionTimestamp" not in pod["metadata"]]

    def policy(self, name: str = _NAME) -> dict[str, Any]:
        found: dict[str, Any] = self._api.get("certrotationpolicies", self.namespace, name)
        return found

    def condition(self, kind: str, name: str = _NAME) -> dict[str, str]:
        conditions = self.policy(name).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    def converged(self, name: str = _NAME) -> tuple[str, str]:
        condition = self.condition("Converged", name)
        return condition.get("status", ""), condition.get("reason", "")

    def consumer(self) -> dict[str, Any]:
        consumer: dict[str, Any] = self.policy()["status"]["consumers"][0]
        return consumer

    def untouched(self) -> tuple[int, list[str]]:
        """The Deployment's generation, and its pods."""
        deployment = self._api.get("deployments", self.namespace, _NAME)
        return deployment["metadata"]["generation"], sorted(pod["metadata"]["uid"] for pod in self.pods())

    def waits(self, seconds: int) -> subprocess.CompletedProcess[str]:
        words = ("-n", self.namespace, "wait", f"crp/{_NAME}", "--for=condition=Converged", f"--timeout={seconds}s")
        return self._plane.kubectl(*words, check=False)


def test_what_a_pod_serves_at_first_sight_is_seen_before_it_is_said(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    authority = pki.new_authority(1)
    served, held = authority.issue(_NAME), authority.issue(_NAME)
    control_plane.run("ip", "address", "replace", f"{_ADDRESS}/32", "dev", "lo")
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path)

    def operator() -> Operator:
        return Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")

    with direct(control_plane) as api, PaperPods(api, [namespace], address=_ADDRESS):
        scene = Scene(api, control_plane, namespace)
        scene.create(held)
        before = scene.untouched()
        with _everything_it_says(control_plane, namespace, tmp_path) as said:
            first = operator()
            try:
                with _serving(control_plane, served, tmp_path):
                    _expect_other_certificate(scene, first)
                    assert "True" not in said.read_text().split()
                with _serving(control_plane, held, tmp_path):
                    met = scene.waits(60)
                    assert met.returncode == 0, met.stderr
                    status = scene.policy()["status"]
                    assert (scene.converged(), status["converged"]) == (("True", "Converged"), "1/1")
                    assert status["secrets"][0]["leafBy"] == "Verified" and status["secrets"][0]["trustBy"] == "FirstSight"
                    assert scene.consumer()["verification"]["at"] and scene.consumer()["state"] == "Idle"
                    assert scene.untouched() == before
            finally:
                print(json.dumps(scene.policy().get("status", {})))  # pytest shows it when the test has failed
                first.end()

            # Another process knows only what the status has, and asks before it says anything.
            version, words = scene.policy()["metadata"]["resourceVersion"], said.read_text()
            with _serving(control_plane, held, tmp_path):
                second = operator()
                try:
                    second.wait_line("serving")
                    wait_until("it to have asked", lambda: 'certroll_probes_total{namespace="%s",outcome="served"}' % namespace in second.get("/metrics")[1])
                    scene.put("elsewhere", _CLOSED)
                    wait_until("nothing to be known", lambda: scene.converged("elsewhere") == ("Unknown", "NotVerified"))
                    assert "port 30961 cannot be reached" in wait_until(
                        "and why", lambda: (found := scene.condition("Converged", "elsewhere")["message"]).count("reached") and found
                    )
                    assert (scene.policy()["metadata"]["resourceVersion"], said.read_text()) == (version, words)
                    assert scene.untouched() == before
                finally:
                    second.end()


def _expect_other_certificate(scene: Scene, operator: Operator) -> None:
    wait_until("it to be told", lambda: scene.converged() == ("False", "OtherCertificate"))
    (pod,) = scene.pods()
    assert f"{pod['metadata']['name']}: port {_PORT} serves another certificate" in scene.condition("Converged")["message"]
    status, consumer = scene.policy()["status"], scene.consumer()
    assert (status["converged"], consumer["state"], consumer["blockedReason"]) == ("0/1", "Verifying", "OtherCertificate")
    assert consumer["pods"] == {"total": 1, "verified": 0, "inferred": 0, "stale": 1, "unknown": 0}
    page = operator.get("/metrics")[1]
    assert f'certroll_policy_condition{{namespace="{scene.namespace}",policy="web",type="Converged",reason="OtherCertificate"}} 0' in page
    assert f'certroll_consumers_blocked{{namespace="{scene.namespace}",policy="web",reason="OtherCertificate"}} 1' in page
    before = scene.untouched()
    assert scene.waits(3).returncode != 0
    assert scene.untouched() == before
