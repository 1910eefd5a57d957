"""A root that another one has signed, as ISRG Root X1 by DST Root CA X3, and the CA after both: published, rotated and retired before
a real Envoy and long-lived clients of OpenSSL, GnuTLS, Go and Java, which read their files for each handshake.

Verifiers differ in which of two certificates of one name and key they go by: a bundle with "X by A" that has lost A cuts OpenSSL off,
though X itself stands beside it (test_bundle_game.py has the game of it, here is the whole of it on a cluster).
"""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from certroll_dev import paths, tools
from certroll_dev.demo import component_images, pki, pods, programs
from certroll_dev.demo.api import Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Authority, Material
from certroll_dev.demo.waiting import wait_for
from certroll_dev.operator_image import Image
from certroll_dev.pod_logs import PodLogs
from mesh import BACKEND, Mesh, place
from mesh_domain import Status
from mesh_handshakes import Client
from operator_pods import FAST_ELECTION, OperatorPods
from published_bundles import Place, PublishedBundles

_MANIFESTS = Path(__file__).resolve().parent / "cross_signed.d"
_LOGS = paths.REPOSITORY / "build" / "test-logs" / "test_cross_signed"
_SPACE = BACKEND.name
_CLIENT_SECRET = "client-tls"
_DOMAIN = "crossed"
_EVERY_MS = "200"
_CALLED = ["backend.backend.svc.cluster.local.", "10443", "backend.backend.svc", _EVERY_MS]
_STEP = 900.0  # seconds: each of three stages waits until the slowest kubelet must have refreshed its volumes

pytestmark = pytest.mark.timeout(3600)


def _images() -> dict[str, tuple[component_images.Image, list[str]]]:
    """By the client's name, with its arguments."""
    built = tools.ensure(["rereading-client", "certcheck"])
    rereading = component_images.rereading_client(built["rereading-client"])
    return {
        "openssl": (rereading, ["openssl", *_CALLED]),
        "gnutls": (rereading, ["gnutls", *_CALLED]),
        "go": (component_images.certcheck(built["certcheck"]), ["connect", *_CALLED]),
        "java": (component_images.java_client(programs.debian(programs.JAVA)), _CALLED),
    }


@pytest.fixture(scope="module")
def mesh(request: pytest.FixtureRequest, other_audit_logs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """A cluster of its own, without any Secret yet."""
    found = LocalCluster(f"{request.config.getoption('--cluster-name')}-crossed")
    keep = request.config.getoption("--keep-cluster")
    if found.exists() and not keep:
        found.down()
    try:
        found.up()
        for image in {image.reference: image for image, _ in _images().values()}.values():
            found.load_image(image.archive)
        found.load_image(component_images.envoy().archive)
        with found.network():
            _LOGS.mkdir(parents=True, exist_ok=True)
            mesh = request.module.certroll_world = Mesh(found, found.api(), _LOGS)
            mesh.create_namespaces()
            yield mesh
        other_audit_logs.append(Path(shutil.copy(found.layout.audit_log, tmp_path_factory.mktemp("audit"))))
    finally:
        if not keep:
            found.down()


@dataclass
class Crossed:
    """The server, its clients and their domain."""

    mesh: Mesh
    operator: OperatorPods
    clients: Mapping[str, PodLogs]
    issued: dict[str, Material] = field(default_factory=dict)  # by the leaf's Secret

    # --- what the issuer does

    def issue(self, authority: Authority, trust: Sequence[bytes], behind: bytes = b"") -> None:
        """New leaves for both, and what the issuer says is to be trusted."""
        for secret, service, source in ((BACKEND.secret, BACKEND.name, "backend-issued"), (_CLIENT_SECRET, "client", "client-issued")):
            leaf = self.issued[secret] = authority.issue(service, namespace=_SPACE)
            served = Material(leaf.certificate + behind, leaf.key, b"".join(trust))
            self.mesh.api.apply("secrets", served.secret(source, _SPACE))

    # --- looking

    def bundle(self) -> set[str]:
        """Serial numbers of the CAs that the clients are given."""
        return {pki.serial(ca) for ca in self._pems(_CLIENT_SECRET, "ca.crt")}

    def _pems(self, secret: str, key: str) -> list[bytes]:
        found = self.mesh.api.find("secrets", _SPACE, secret)
        return pki.certificates(base64.b64decode(found["data"].get(key, ""))) if found else []

    def _is_published(self, status: Status) -> bool:
        own = {secret: [pki.serial(each) for each in self._pems(secret, "tls.crt")[:1]] for secret in self.issued}
        return status.is_at_rest and all(own[secret] == [pki.serial(leaf.certificate)] for secret, leaf in self.issued.items())

    def wait_published(self) -> float:
        """Until what the issuer made last is published, and everybody has it. Returns the seconds that it took."""
        began = time.monotonic()

        def look() -> bool:
            self.operator.check()
            return self._is_published(Status.of(self.mesh.api.get("trustdomains", _SPACE, _DOMAIN)))

        wait_for("the domain to be at rest with the new leaves", look, deadline=_STEP, every=0.5, missing=self._describe)
        return time.monotonic() - began

    def _describe(self) -> str:
        found = {kind: self.mesh.api.list(kind, _SPACE) for kind in ("trustdomains", "certrotationpolicies")}
        return "\n".join(yaml.safe_dump(obj.get("status")) for objects in found.values() for obj in objects)

    def calls(self) -> dict[str, Client]:
        found = {name: Client.of(logs.text()) for name, logs in self.clients.items()}
        for name, client in found.items():
            assert [call.number for call in client.calls] == list(range(len(client.calls))), f"calls of {name} are missing"
        return found

    def served_leaves(self, _: PublishedBundles) -> set[str]:
        """The server's, by its page; whether the server takes a client's is what the handshakes show."""
        return {leaf for page in self.mesh.pages(BACKEND).values() if page for leaf in page.leaves}


@pytest.fixture(scope="module")
def crossed(mesh: Mesh, image: Image) -> Iterator[Crossed]:
    operator = OperatorPods(
        mesh.cluster, mesh.api, image, [], _LOGS / "operator.log", args=FAST_ELECTION, overlay="cluster-wide", components=["trust-domains"],
    )  # fmt: skip
    with operator:
        logs = {name: PodLogs(mesh.cluster.layout, _SPACE, f"{name}-") for name in _images()}
        yield Crossed(mesh, operator, logs)


def _deployment(name: str, image: str, args: Sequence[str]) -> Object:
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": _SPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "client", "image": image, "imagePullPolicy": "Never", "args": list(args),
                    "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
                    "volumeMounts": [{"name": "certs", "mountPath": "/certs", "readOnly": True}],
                }],
                "volumes": [{"name": "certs", "secret": {"secretName": _CLIENT_SECRET}}],
            }},
        },
    }  # fmt: skip


def _begin(crossed: Crossed) -> None:
    """The server first: a client that finds none would count it."""
    mesh = crossed.mesh
    for obj in yaml.safe_load_all((_MANIFESTS / "domain.yaml").read_text()):
        mesh.api.apply({"TrustDomain": "trustdomains", "CertRotationPolicy": "certrotationpolicies"}[obj["kind"]], obj)
    mesh.apply("10-backend.yaml")
    mesh.wait_up([BACKEND])
    for name, (image, args) in _images().items():
        mesh.api.apply("deployments", _deployment(name, image.reference, args))

    def look() -> bool:
        return all(client.calls and client.calls[-1].ok for client in crossed.calls().values())

    wait_for("each client to get an answer", look, deadline=120, every=1.0, missing=lambda: str(crossed.calls()))


def test_no_handshake_fails_when_one_root_has_signed_the_other(crossed: Crossed, report: list[str]) -> None:
    """A alone is trusted at first, and leaves of X are served with "X by A" behind them. X comes, A is given up, and then N comes for both."""
    mesh = crossed.mesh
    a, x, n = (pki.new_authority(generation) for generation in (1, 2, 3))
    x_by_a = a.cross_sign(x)
    all_three = {a.serial(), x.serial(), pki.serial(x_by_a)}
    crossed.issue(x, [a.certificate], behind=x_by_a)
    _begin(crossed)
    crossed.wait_published()
    assert crossed.bundle() == {a.serial()}
    before = {name: pods.identity(pods.of_app(mesh.api, _SPACE, name)) for name in crossed.clients}
    began = time.time()
    places = [place(BACKEND), Place("secrets", _SPACE, _CLIENT_SECRET)]
    with PublishedBundles(mesh.api, places, crossed.served_leaves) as bundles:
        crossed.issue(x, [x_by_a, x.certificate, a.certificate], behind=x_by_a)
        report.append(f"X beside A: {crossed.wait_published():.0f} s")
        assert crossed.bundle() == all_three
        crossed.issue(x, [x.certificate])
        report.append(f"A given up: {crossed.wait_published():.0f} s, {len(crossed.bundle())} CAs are left")
        assert x.serial() in crossed.bundle()
        crossed.issue(n, [n.certificate])
        report.append(f"N instead of X: {crossed.wait_published():.0f} s")
        assert crossed.bundle() == {n.serial()}
        report.append(f"published: {bundles.check()}")
    _assert_none_failed(crossed, began, report)
    after = {name: pods.identity(pods.of_app(mesh.api, _SPACE, name)) for name in crossed.clients}
    assert after == before, "a client was restarted"


def _assert_none_failed(crossed: Crossed, began: float, report: list[str]) -> None:
    failed: list[str] = []
    for name, client in crossed.calls().items():
        calls = [call for call in client.calls if call.at >= began]
        bad = [call for call in calls if not call.ok]
        report.append(f"{name}: {len(calls)} handshakes, {len(bad)} failed")
        failed += [f"{name}, {call.at - began:.1f} s after the beginning: {call.reason}" for call in bad]
        assert len(calls) > (time.time() - began) / 2, f"{name} has called {len(calls)} times only"
    assert not failed, "\n".join(failed[:20])
