"""Secrets that change under an operator, and what must come of each change: one restart, and the change on record as settled.

Each lane is a policy, a TLS Secret and a Deployment that takes it in its environment: every change is one PATCH of the pod template,
which shows in metadata.generation, whoever watches. Its pod runs on paper (paper_pods.py).
"""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from control_plane import ROOT, ControlPlane, wait_until

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.api import API, APIError  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402

Object = dict[str, Any]
_PREFIX = "certroll.dev/"


def leaves(count: int) -> list[Object]:
    """That many leaves of one CA, each as a Secret's data."""
    authority = pki.new_authority(1)
    return [_data(authority.issue("rotations")) for _ in range(count)]


def leaf(data: Object) -> bytes:
    """The certificate of a Secret's data."""
    return base64.b64decode(data["tls.crt"])


def _data(material: pki.Material) -> Object:
    content = {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.trust}
    return {key: base64.b64encode(value).decode() for key, value in content.items()}


@dataclass
class Lane:
    """`changes` is how often the Secret got other material since the operator knew it."""

    api: API
    namespace: str
    name: str
    leaves: list[Object]
    changes: int = 0
    breaker: Object = field(default_factory=lambda: {"within": "0s"})
    version: str = ""  # of the Secret as it was written last
    annotations: list[str] = field(default_factory=list)  # seen after each change

    def create(self) -> None:
        metadata = {"name": self.name, "namespace": self.namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": self.leaves[0]}
        self.version = self.api.apply("secrets", secret)["metadata"]["resourceVersion"]
        reference = {"secretKeyRef": {"name": self.name, "key": "tls.crt"}}
        container = {"name": "c", "image": "example.com/unknown:1", "env": [{"name": "CERTIFICATE", "valueFrom": reference}]}
        labels = {"app": self.name}
        self.api.apply("deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "revisionHistoryLimit": 1,
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}},
            },
        })  # fmt: skip
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}
        self.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": metadata,
            "spec": {
                "secrets": [{"name": self.name}], "consumers": [{"name": "c", "targetRef": target}],
                "restart": {"coalesce": "0s", "breaker": self.breaker},
            },
        })  # fmt: skip

    def change(self) -> None:
        """Other material; the first comes back when there are no more."""
        self.changes += 1
        patch = {"data": self.leaves[self.changes % len(self.leaves)]}
        written = patiently(lambda: self.api.merge("secrets", self.namespace, self.name, patch))  # the same twice is one change
        self.version = written["metadata"]["resourceVersion"]

    def restarts(self) -> int:
        """Nothing but a restart changes the Deployment's spec."""
        return int(self._deployment()["metadata"]["generation"]) - 1

    def _deployment(self) -> Object:
        return patiently(lambda: self.api.get("deployments", self.namespace, self.name))

    def secret_status(self) -> Object:
        policy = patiently(lambda: self.api.get("certrotationpolicies", self.namespace, self.name))
        status = policy.get("status", {})
        return next((each for each in status.get("secrets", []) if each["name"] == self.name), {})

    def is_settled(self) -> bool:
        """All that was changed is on record, with nothing left to do; so it had its restart, if one is needed at all."""
        status = self.secret_status()
        return bool(status.get("settled")) and not status.get("pending") and status.get("observedResourceVersion") == self.version

    def wait_settled(self, timeout: float = 60.0) -> None:
        wait_until(f"{self} to be settled", self.is_settled, timeout, pause=0.05)

    def rotate(self, timeout: float = 60.0) -> None:
        """One change, and all of it."""
        self.change()
        self.wait_settled(timeout)
        self.note()

    def note(self) -> None:
        """What the restart remembers now."""
        annotations = self._deployment()["spec"]["template"]["metadata"].get("annotations", {})
        self.annotations += [value for key, value in annotations.items() if key.startswith(_PREFIX)]

    def complaint(self) -> str | None:
        """What is wrong with the count. To be asked when settled."""
        restarts = self.restarts()
        return None if restarts == self.changes else f"{self}: {self.changes} changes, {restarts} restarts"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def patiently(ask: Callable[[], Object], timeout: float = 180.0) -> Object:
    """While the API server is away, or just back: then it does not know our kind yet (404)."""
    end = time.monotonic() + timeout
    while True:
        try:
            return ask()
        except APIError as error:
            if error.code not in (0, 404, 429, 500, 503, 504) or time.monotonic() > end:
                raise
        time.sleep(0.1)


@contextmanager
def direct(plane: ControlPlane) -> Iterator[API]:
    """The API server itself, from within its network."""
    cluster = LocalCluster(plane.name)
    with cluster.network():
        yield cluster.api()


def quiet(lanes: list[Lane], seconds: float) -> None:
    """Nobody restarts anything more."""
    before = [lane.restarts() for lane in lanes]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert [lane.restarts() for lane in lanes] == before
        time.sleep(0.2)
