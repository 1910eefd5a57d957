"""certroll's own /metrics over TLS, as installed by the component metrics-tls: its Secret changes, its pods stay.

A policy covers the operator itself, so that its kubelet is made to hurry. With CERTROLL_LONG=1 it is also left alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from certroll_dev import install
from certroll_dev.demo import pki
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.install import Operator, Pod
from certroll_dev.operator_image import Image

import sanitizers
from scrape import REFUSALS, Page, client_context

_SPACE = "certroll-metrics"
_SECRET = "certroll-operator-metrics-tls"
_POLICY = "certroll"
_NAME = "certroll-operator-metrics"  # of the Service
_PORT = 8080
# Of the files of the Secret; who shows a certificate is asked for no token.
_ARGS = ["--metrics-bind-address=:8080", "--metrics-auth=none", "--metrics-client-ca-file=/etc/certroll/metrics-tls/ca.crt"]
_KUBELET_ALONE = 180.0  # seconds; 67 to 79 were measured


class Scene:
    """One operator of its own, with a policy that covers it."""

    def __init__(self, cluster: LocalCluster, api: API, image: Image) -> None:
        self.api = api
        self.authority = pki.new_authority(1)
        self.operator = Operator(
            cluster.layout, image, namespaces=[_SPACE], namespace=_SPACE, components=["metrics-tls"], args=_ARGS,
            env=sanitizers.ENVIRONMENT,
        )  # fmt: skip
        cluster.kubectl("create", "namespace", _SPACE)
        self.write(self.authority.issue(_NAME, namespace=_SPACE))
        self.operator.install()
        self.born = {pod.uid for pod in self.operator.pods()}
        assert len(self.born) == 2
        api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": _POLICY, "namespace": _SPACE},
            "spec": {
                "secrets": [{"name": _SECRET}],
                "consumers": [
                    {"name": "operator", "targetRef": {"kind": "Deployment", "name": install.NAME}, "verify": {"port": _PORT}}
                ],
            },
        })
        wait_for("the policy to be settled", lambda: self.status().holds("Converged"), deadline=60)

    # --- changing

    def write(self, material: Material, *, key: bytes | None = None, trust: bytes | None = None) -> None:
        changed = Material(material.certificate, key or material.key, trust or material.trust)
        self.api.apply("secrets", changed.secret(_SECRET, _SPACE))

    def nudge(self) -> None:
        """By hand: what cannot be used makes no policy hurry."""
        patch = {"metadata": {"annotations": {"e2e.certroll.dev/nudge": str(time.time_ns())}}}
        for pod in self.operator.pods():
            self.api.merge("pods", _SPACE, pod.name, patch, "status")

    # --- looking

    def status(self) -> Status:
        return Status.of(self.api.get("certrotationpolicies", _SPACE, _POLICY))

    def wait_verified(self) -> None:
        """The policy sees it, too, by its own handshakes."""

        def look() -> bool:
            operator = self.status().consumers["operator"]
            return self.status().holds("Converged") and (operator.decision, operator.verified) == ("HotReload", 2)

        wait_for("the policy to be verified", look, deadline=60, missing=lambda: str(self.status()))

    def pages(self) -> list[Page]:
        return [Page(pod.ip, _PORT, _NAME) for pod in self.operator.pods()]

    def leaves(self) -> set[str]:
        return {page.leaf() for page in self.pages()}

    def leaf_in_the_secret(self) -> str:
        text = base64.b64decode(self.api.get("secrets", _SPACE, _SECRET)["data"]["tls.crt"]).decode()
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()

    def lines(self, pod: Pod, message: str) -> list[dict[str, Any]]:
        found = (json.loads(line) for line in self.operator.logs(pod.uid).splitlines() if line.startswith("{") and line.endswith("}"))
        return [line for line in found if line["msg"].startswith(message)]

    def wait_told(self, message: str, fits: Callable[[dict[str, Any]], bool], *, nudge: bool = False) -> list[dict[str, Any]]:
        """The events that came with such lines, one of each pod. `nudge`: nobody else hurries the kubelet, which may have been too early."""

        def look() -> list[dict[str, Any]] | None:
            told = [[line for line in self.lines(pod, message) if fits(line)] for pod in self.operator.pods()]
            if nudge and not all(told):
                self.nudge()
            return [lines[-1]["ocsf"] for lines in told] if all(told) else None

        every = 2.0 if nudge else 0.2
        found: list[dict[str, Any]] = wait_for(
            f"both to tell: {message}", look, deadline=60, every=every, missing=lambda: self.operator.logs()[-3000:]
        )
        return found

    def wait_served(self, material: Material, deadline: float = 60) -> float:
        """Seconds until both pods serve what the Secret has."""
        began = time.monotonic()
        assert self.leaf_in_the_secret() == material.fingerprint()
        wait_for("the Secret's leaf to be served", lambda: self.leaves() == {material.fingerprint()}, deadline=deadline)
        return time.monotonic() - began

    def assert_nobody_was_restarted(self) -> None:
        pods = self.operator.pods()
        assert {pod.uid for pod in pods} == self.born and [pod.restarts for pod in pods] == [0, 0]

    def end(self) -> None:
        self.operator.uninstall()
        found = sanitizers.reports(self.operator.logs())
        assert not found, found


@pytest.fixture
def scene(cluster: LocalCluster, api: API, image: Image, logs: Path) -> Iterator[Scene]:
    made = Scene(cluster, api, image)
    yield made
    (logs / "operator.log").write_text(made.operator.logs())
    made.end()
    cluster.kubectl("delete", "namespace", _SPACE, "--wait=false")


def test_its_own_secret_is_followed_and_no_pod_is_restarted(scene: Scene, report: list[str]) -> None:
    """The end-to-end check of a server that reloads: what is served is what the Secret has, told by an event."""
    old, new = scene.authority, pki.new_authority(2)
    before = scene.leaf_in_the_secret()
    assert scene.leaves() == {before}

    renewed = old.issue(_NAME, namespace=_SPACE)
    scene.write(renewed)
    took = scene.wait_served(renewed)
    report.append(f"{took:.1f} s from the Secret's change until both replicas served it, with a policy")
    for event in scene.wait_told("TLS material reloaded", lambda line: line["leaf"] == renewed.fingerprint()):
        assert (event["class_uid"], event["severity"], event["status"]) == (5019, "Informational", "Success")
        assert event["unmapped"]["leaf_before"] == before
    scene.wait_verified()

    _break_it(scene, renewed, report)
    _change_the_clients_ca(scene, old, new, report)
    if os.environ.get("CERTROLL_LONG"):
        scene.api.delete("certrotationpolicies", _SPACE, _POLICY)
        last = new.issue(_NAME, namespace=_SPACE)
        scene.write(last)
        report.append(f"{scene.wait_served(last, _KUBELET_ALONE):.1f} s by the kubelet alone, without a policy")
    scene.assert_nobody_was_restarted()


def _break_it(scene: Scene, served: Material, report: list[str]) -> None:
    broken = pki.new_authority(3).issue(_NAME, namespace=_SPACE)
    began = time.monotonic()
    scene.write(broken, key=served.key, trust=served.trust)
    wait_for("the policy to tell it", lambda: scene.status().holds("Degraded"), deadline=60)
    for event in scene.wait_told("TLS material refused", lambda line: "does not belong" in line["error"], nudge=True):
        assert (event["severity"], event["status"], event["unmapped"]["leaf"]) == ("Medium", "Failure", served.fingerprint())
    report.append(f"{time.monotonic() - began:.1f} s from a broken Secret until both replicas had refused it")
    assert scene.leaves() == {served.fingerprint()}
    scraper = client_context(served.trust, served)
    for page in scene.pages():
        assert "\ncertroll_tls_last_reload_successful 0\n" in page.get(scraper)


def _change_the_clients_ca(scene: Scene, old: pki.Authority, new: pki.Authority, report: list[str]) -> None:
    """Trust first: both CAs, the leaf of the new one, then the new CA alone, with clients that would resume a session."""
    renewed = new.issue(_NAME, namespace=_SPACE)
    both = new.certificate + old.certificate
    scene.write(renewed, trust=both)
    scene.wait_served(renewed)
    late, early = client_context(both, old.issue("prometheus")), client_context(both, new.issue("prometheus"))
    pages = scene.pages()
    sessions = []
    for page in pages:
        page.get(early)
        with page.connect(late) as first:
            page.read(first)
            sessions.append(first.session)
    began = time.monotonic()
    scene.write(renewed, trust=new.certificate)
    scene.wait_told("TLS material reloaded", lambda line: line.get("trust") == "changed" and line["before"] == renewed.fingerprint())
    report.append(f"{time.monotonic() - began:.1f} s from the end of a client CA in the Secret until both replicas had dropped it")
    for page, session in zip(pages, sessions, strict=True):
        for resumed in (session, None):
            with pytest.raises(REFUSALS), page.connect(late, resumed) as connection:
                page.read(connection)
        page.get(early)
