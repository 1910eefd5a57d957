"""A change of CAs is waited for until a real Envoy shows it: by the names that it announces, and by its page. The pod is on paper, but
at its address Envoy listens, with files of its own that change when the test says so."""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import RULES, Operator, account
from paper_pods import PaperPods
from probed import Running, run
from rotations import direct

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo.api import API  # noqa: E402
from programs import clouds, known  # noqa: E402
from programs.material import Generations  # noqa: E402
from programs.program import SECRET, Program  # noqa: E402

Object = dict[str, Any]
_ADDRESS = "10.97.0.5"  # of this network, and not of loopback, where no pod is
_PORT, _ADMIN = 30950, 30955
_PATIENCE = 120.0


def _everywhere(bootstrap: Object) -> None:
    """It listens at all addresses, and has a page of its certificates."""
    for listener in bootstrap["static_resources"]["listeners"]:
        listener["address"]["socket_address"]["address"] = "0.0.0.0"
    bootstrap["admin"] = {"address": {"socket_address": {"address": "0.0.0.0", "port_value": _ADMIN}}}


@dataclasses.dataclass
class Scene:
    """An Envoy, the Secret that it is to have, and the policy that watches both."""

    api: API
    namespace: str
    envoy: Running
    version: str = ""

    def create(self, program: Program, files: Mapping[str, bytes]) -> None:
        labels, name = {"app": "envoy"}, "envoy"
        metadata = {"name": name, "namespace": self.namespace}
        self.api.apply("secrets", {
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {**metadata, "name": SECRET}, "data": _encoded(files),
        })  # fmt: skip
        self.api.apply("deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": program.pod()}},
        })  # fmt: skip
        (pod,) = wait_until("the pod to be ready", self._ready_pods)
        address = {"podIP": _ADDRESS, "podIPs": [{"ip": _ADDRESS}], "hostIP": "10.97.0.4"}
        self.api.merge("pods", self.namespace, pod["metadata"]["name"], {"status": address}, subresource="status")
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        verify = {"port": _PORT, "certsPage": {"port": _ADMIN}}
        self.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": metadata,
            "spec": {"secrets": [{"name": SECRET}], "consumers": [{"name": name, "targetRef": target, "verify": verify}]},
        })  # fmt: skip

    def _ready_pods(self) -> list[Object]:
        return [pod for pod in self.api.list("pods", self.namespace) if pod.get("status", {}).get("phase") == "Running"]

    def publish(self, files: Mapping[str, bytes]) -> None:
        """Into the Secret. Envoy has what it had."""
        written = self.api.merge("secrets", self.namespace, SECRET, {"data": _encoded(files)})
        self.version = written["metadata"]["resourceVersion"]

    def status(self) -> Object:
        status: Object = self.api.get("certrotationpolicies", self.namespace, "envoy").get("status", {})
        return status

    def secret(self) -> Object:
        return next(iter(self.status().get("secrets", [])), {})

    def stale(self) -> int:
        consumers = self.status().get("consumers", [])
        return int(consumers[0].get("pods", {}).get("stale", 0)) if consumers else 0

    def is_settled(self) -> bool:
        secret = self.secret()
        current = not self.version or secret.get("observedResourceVersion") == self.version
        return bool(secret.get("settled")) and not secret.get("pending") and current


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


@pytest.fixture
def generations(tmp_path: Path) -> Generations:
    return Generations(tmp_path)


@pytest.fixture
def scene(control_plane: ControlPlane, namespace: str, generations: Generations, tmp_path: Path) -> Iterator[Scene]:
    program = clouds.rebootstrapped(known.makers(control_plane.kubeconfig.read_text())["envoy-sds"](_PORT), _everywhere)
    control_plane.run("ip", "address", "replace", f"{_ADDRESS}/32", "dev", "lo")
    with (
        run(control_plane, program, generations, tmp_path / "envoy") as envoy,
        direct(control_plane) as api,
        PaperPods(api, [namespace]),
    ):
        made = Scene(api, namespace, envoy)
        made.create(program, generations[1].secret())
        kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
        operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false")
        try:
            wait_until("the first sight", made.is_settled)
            yield made
        finally:
            print(json.dumps(made.status()))  # pytest shows it when a test has failed
            operator.end()


def test_a_change_of_cas_is_verified_by_what_envoy_shows(scene: Scene, generations: Generations) -> None:
    old, new = generations[1], generations[2]
    both = new.authority.certificate + old.authority.certificate
    stages = {
        "the new CA is added": dict(old.secret()) | {"ca.crt": both},
        "the leaf is of the new CA": dict(new.secret()) | {"ca.crt": both},
        "the old CA is dropped": dict(new.secret()),
    }
    for what, files in stages.items():
        scene.publish(files)
        wait_until(f"{what}, and Envoy is seen not to have it", lambda: scene.stale() == 1, _PATIENCE)
        assert not scene.is_settled()
        scene.envoy.sandbox.write_secret(SECRET, files)
        wait_until(f"{what}, and Envoy has it", scene.is_settled, _PATIENCE)
        assert scene.secret()["trustBy"] == "Verified", what
    assert scene.secret()["leafBy"] == "Verified"
