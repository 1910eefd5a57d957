"""A rotation from ECDSA to ML-DSA: the release image, whose OpenSSL 3.5 has both, and Debian 13's openssl as server and as client.

Nothing on this machine's own Debian can look at such a leaf.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from certroll_dev import commands, debian_root, images, operator_image, paths, release_image
from certroll_dev.demo import pods, workloads
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.image_recipe import System
from certroll_dev.operator_image import Image
from world import World

pytestmark = pytest.mark.timeout(2400)  # a Debian is made, and programs are built in it

_NAME, _PORT = "pq", 8443
_IMAGE = "certroll.test/openssl:1"
_OPENSSL = "/usr/bin/openssl"
_EXTENSIONS = ("-addext", f"subjectAltName=DNS:{_NAME}", "-addext", "basicConstraints=critical,CA:FALSE")


@dataclass(frozen=True)
class OpenSSL:
    """Debian 13's, in a folder that is a root of its own; the archive of an image is beside it."""

    root: Path
    archive: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """In this process's network."""
        return subprocess.run(["chroot", self.root, _OPENSSL, *words], input=b"", capture_output=True, timeout=60)

    def _made(self, *words: str) -> None:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr.decode()

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def new_ca(self, name: str, algorithm: str) -> None:
        """Files NAME.key and NAME.crt."""
        ca = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        key = ("-newkey", *algorithm.split(), "-nodes", "-keyout", f"{name}.key")
        self._made("req", "-x509", *key, "-out", f"{name}.crt", "-days", "2", "-subj", f"/CN={name}", *ca)

    def issue(self, ca: str, algorithm: str, trust: bytes) -> Material:
        key = ("-newkey", *algorithm.split(), "-nodes", "-keyout", "leaf.key")
        signer = ("-CA", f"{ca}.crt", "-CAkey", f"{ca}.key")
        self._made("req", "-x509", *signer, *key, "-out", "leaf.crt", "-days", "1", "-subj", f"/CN={_NAME}", *_EXTENSIONS)
        return Material(self.read("leaf.crt"), self.read("leaf.key"), trust)

    def verified_leaf(self, address: str, trust: bytes) -> str | None:
        """The digest of what is served there, if it verifies with this bundle; None if it does not."""
        (self.root / "trust.pem").write_bytes(trust)
        verify = ("-CAfile", "trust.pem", "-verify_return_error", "-verify_hostname", _NAME)
        done = self.run("s_client", "-connect", f"{address}:{_PORT}", "-servername", _NAME, *verify)
        leaf = re.search(rf"{ssl.PEM_HEADER}.*?{ssl.PEM_FOOTER}", done.stdout.decode(), re.DOTALL)
        return _digest(leaf[0]) if done.returncode == 0 and leaf else None


def _digest(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


# Both are made before there is a cluster, in whose network nothing can be fetched (conftest.py has this module first, too).
@pytest.fixture(scope="session")
def release() -> Image:
    return operator_image.given(Path(commands.run([paths.HACK / "image", "--quiet"]).strip()))


@pytest.fixture(scope="session")
def openssl(tmp_path_factory: pytest.TempPathFactory) -> OpenSSL:
    folder = tmp_path_factory.mktemp("openssl")
    arch = debian_root.native()
    with debian_root.locked(arch) as debian:
        program = debian.files / _OPENSSL.lstrip("/")
        files: dict[str, images.Source] = {_OPENSSL: program, "/usr/lib/ssl/openssl.cnf": b"[req]\ndistinguished_name = any\n[any]\n"}
        files |= release_image.libraries([program], System(debian.layers()), debian.triplet)
        archive = images.build_image(folder / "openssl.tar", _IMAGE, files, entrypoint=[_OPENSSL], libs=False)
        return OpenSSL(images.build_rootfs(folder / "root", files, libs=False), archive)


@pytest.fixture
def server(openssl: OpenSSL, cluster: LocalCluster, api: API) -> Iterator[str]:
    """Deployment pq: it reads its leaf when it starts, and never again."""
    cluster.load_image(openssl.archive)
    openssl.new_ca("before", "ec -pkeyopt ec_paramgen_curve:P-256")
    openssl.new_ca("after", "ML-DSA-65")
    yield _NAME
    for kind in ("certrotationpolicies", "deployments", "secrets"):
        if api.find(kind, NAMESPACE, _NAME):
            api.delete(kind, NAMESPACE, _NAME)


def _deployment() -> Object:
    container = {
        "name": "server", "image": _IMAGE, "imagePullPolicy": "Never",
        "args": ["s_server", "-accept", str(_PORT), "-cert", "/certs/tls.crt", "-key", "/certs/tls.key", "-www", "-quiet"],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": "certs", "mountPath": "/certs", "readOnly": True}],
    }  # fmt: skip
    pod = {
        "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1, "containers": [container],
        "volumes": [{"name": "certs", "secret": {"secretName": _NAME}}],
    }  # fmt: skip
    template = {"metadata": {"labels": {"app": _NAME}}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": _NAME}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": _NAME, "namespace": NAMESPACE}, "spec": spec}


def _policy() -> Object:
    consumer = {"name": _NAME, "targetRef": {"kind": "Deployment", "name": _NAME}, "verify": {"port": _PORT}}
    spec = {"secrets": [{"name": _NAME}], "restart": {"coalesce": "0s", "breaker": {"within": "0s"}}, "consumers": [consumer]}
    return {"apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": {"name": _NAME, "namespace": NAMESPACE}, "spec": spec}


def test_ecdsa_leaves_are_replaced_by_ml_dsa(release: Image, openssl: OpenSSL, world: World, api: API, server: str) -> None:
    both = openssl.read("after.crt") + openssl.read("before.crt")
    old = openssl.issue("before", "ec -pkeyopt ec_paramgen_curve:P-256", both)
    api.apply("secrets", old.secret(_NAME))
    api.apply("deployments", _deployment())
    workloads.wait_rolled_out(api, _NAME)
    api.apply("certrotationpolicies", _policy())
    world.install_policy()  # for the others, which this test leaves alone
    with dataclasses.replace(world, operator_image=release).operator():
        _wait_converged(api, old)
        _assert_served(api, openssl, old, both)
        before = pods.identity(pods.of_app(api, NAMESPACE, _NAME))
        for algorithm in ("ML-DSA-44", "ML-DSA-87"):
            new = openssl.issue("after", algorithm, both)
            api.apply("secrets", new.secret(_NAME))
            _wait_converged(api, new)
            _assert_served(api, openssl, new, openssl.read("after.crt"))
            assert not before & pods.identity(pods.of_app(api, NAMESPACE, _NAME))
        consumer = _status(api).consumers[_NAME]
        assert (consumer.verified, consumer.total) == (2, 2)
        _assert_a_torn_pair_is_held(api, openssl, new)


def _status(api: API) -> Status:
    return Status.of(api.get("certrotationpolicies", NAMESPACE, _NAME))


def _wait_converged(api: API, material: Material) -> None:
    """Every pod is seen to serve it."""
    version = api.get("secrets", NAMESPACE, _NAME)["metadata"]["resourceVersion"]

    def look() -> bool:
        status = _status(api)
        return status.holds("Converged") and status.is_settled(_NAME, version)

    wait_for("the policy to be Converged", look, deadline=240, missing=lambda: str(api.get("certrotationpolicies", NAMESPACE, _NAME).get("status")))


def _assert_served(api: API, openssl: OpenSSL, material: Material, trust: bytes) -> None:
    found = pods.of_app(api, NAMESPACE, _NAME)
    assert [openssl.verified_leaf(pod.ip, trust) for pod in found] == [_digest(material.certificate.decode())] * 2
    wrong = openssl.read("before.crt") if trust == openssl.read("after.crt") else openssl.read("after.crt")
    assert [openssl.verified_leaf(pod.ip, wrong) for pod in found] == [None] * 2


def _assert_a_torn_pair_is_held(api: API, openssl: OpenSSL, good: Material) -> None:
    """A key of another ML-DSA leaf: nothing is restarted for it."""
    before = pods.identity(pods.of_app(api, NAMESPACE, _NAME))
    other = openssl.issue("after", "ML-DSA-87", good.trust)
    api.apply("secrets", dataclasses.replace(good, key=other.key).secret(_NAME))
    wait_for("the pair to be refused", lambda: "KeyMismatch" in str(api.get("certrotationpolicies", NAMESPACE, _NAME)["status"]), deadline=60)
    assert pods.identity(pods.of_app(api, NAMESPACE, _NAME)) == before
