"""The life of a Helm release on a fresh cluster: installed, upgraded and rolled back while certificates are rotated, uninstalled."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from certroll_dev import commands, install, paths, tools
from certroll_dev.demo import component_images, pki, pods, programs, workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import NAMESPACE, Authority
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX
from certroll_dev.operator_image import Image

import sanitizers

_CHART = paths.REPOSITORY / "charts" / "certroll"
_POLICY = "web"
_ROTATED_WITHIN = 180.0
# What operations.md and the chart's page say that an uninstall leaves, beside the CRDs and the user's own.
_LEFT = {f"lease.coordination.k8s.io/{install.NAME}", "secret/certroll-digest-key"}
_KINDS = (
    "deployments,services,serviceaccounts,configmaps,secrets,leases,poddisruptionbudgets,networkpolicies,roles,rolebindings,"
    "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,customresourcedefinitions"
)


class Place:
    """A cluster with nginx, which has to be restarted for a new leaf, and takes its time: Helm is there in the middle."""

    def __init__(self, cluster: LocalCluster, image: Image, folder: Path) -> None:
        self.cluster, self.api = cluster, cluster.api()
        self.authority: Authority = pki.new_authority(1)
        repository, _, tag = image.reference.rpartition(":")
        self._values = folder / "values.yaml"
        # What a user gives is the image; the rest is for a program that is built with sanitizers.
        self._values.write_text(yaml.safe_dump({
            "image": {"repository": repository, "tag": tag}, "resources": {"limits": {"memory": "1Gi"}},
            "extraEnv": [{"name": name, "value": value} for name, value in sanitizers.ENVIRONMENT.items()],
        }))  # fmt: skip
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text(cluster.kubectl("config", "view", "--raw", "--minify"))

    def establish(self) -> None:
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        self._write_leaf()
        self.cluster.kubectl("apply", "-f", "-", stdin=(workloads.MANIFESTS / "40-nginx.yaml").read_text())
        self.api.merge("deployments", NAMESPACE, NGINX.deployment, {"spec": {"minReadySeconds": 10}})
        workloads.wait_rolled_out(self.api, NGINX.deployment)

    # --- what a user does

    def helm_command(self, *words: str | Path) -> list[str | Path]:
        program = tools.ensure(["helm"])["helm"]
        return [program, f"--kubeconfig={self._kubeconfig}", f"--namespace={install.NAMESPACE}", *words]

    def helm(self, *words: str | Path) -> str:
        return commands.run(self.helm_command(*words))

    def install(self) -> None:
        self.helm("install", "certroll", _CHART, "--create-namespace", "--values", self._values, "--wait", "--timeout=3m")

    def begin_upgrade(self, *words: str) -> subprocess.Popen[str]:
        argv = self.helm_command("upgrade", "certroll", _CHART, "--reset-then-reuse-values", "--wait", "--timeout=3m", *words)
        return subprocess.Popen([*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def apply_policy(self) -> None:
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps({
            "apiVersion": "certroll.dev/v1alpha1", "kind": "CertRotationPolicy", "metadata": {"name": _POLICY, "namespace": NAMESPACE},
            "spec": {
                "secrets": [{"name": NGINX.secret}], "restart": {"breaker": {"within": "0s"}},
                "consumers": [{"name": "web", "targetRef": {"kind": "Deployment", "name": NGINX.deployment}, "verify": {"port": NGINX.port}}],
            },
        }))  # fmt: skip

    def renew(self) -> Rotation:
        before = self.generation()
        return Rotation(self, before, *self._write_leaf())

    def _write_leaf(self) -> tuple[str, str]:
        material = self.authority.issue(NGINX.deployment)
        written = self.api.apply("secrets", material.secret(NGINX.secret))
        return material.fingerprint(), written["metadata"]["resourceVersion"]

    # --- what is seen

    def status(self) -> Status:
        return Status.of(self.api.get("certrotationpolicies", NAMESPACE, _POLICY))

    def wait_policy_ready(self) -> None:
        wait_for("the policy to be Ready", lambda: self.status().holds("Ready"), deadline=60, missing=lambda: str(self.status()))

    def generation(self) -> int:
        """Nothing but a restart changes the Deployment's spec."""
        return int(self.api.get("deployments", NAMESPACE, NGINX.deployment)["metadata"]["generation"])

    def operators(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.api.list("pods", install.NAMESPACE)}

    def ours(self) -> set[str]:
        """All objects that carry the name. The users' policy, with what it has, is not among these kinds."""
        found = self.cluster.kubectl("get", _KINDS, "-A", "-o", "name").split()
        return {name for name in found if "certroll" in name}


class Rotation:
    """Of nginx' leaf, from when it is written."""

    def __init__(self, place: Place, before: int, leaf: str, version: str) -> None:
        self._place, self._before, self._leaf, self._version = place, before, leaf, version

    def wait_restarting(self) -> None:
        """New pods come, and not all are there: it is in the middle."""
        wait_for("nginx to be restarted", lambda: self._place.generation() > self._before, deadline=_ROTATED_WITHIN, every=0.05)
        assert not self.is_done()

    def is_done(self) -> bool:
        return self._place.status().settled({NGINX.secret: self._version})

    def wait_done(self) -> None:
        """By one rollout, and each pod serves it."""
        place = self._place
        wait_for("the rotation to be over", self.is_done, deadline=_ROTATED_WITHIN, missing=lambda: str(place.status()))
        assert place.generation() == self._before + 1
        found = pods.of_app(place.api, NAMESPACE, NGINX.deployment)
        assert [pods.served_leaf(pod.ip, NGINX.port, NGINX.server_name) for pod in found] == [self._leaf] * 2
        assert place.status().conditions["Converged"].reason == "Converged"


@pytest.fixture(scope="module")
def place(
    request: pytest.FixtureRequest, image: Image, other_audit_logs: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A cluster of its own, in which nothing of certroll was ever installed."""
    cluster = LocalCluster(f"{request.config.getoption('--cluster-name')}-chart")
    keep = request.config.getoption("--keep-cluster")
    if cluster.exists() and not keep:
        cluster.down()
    try:
        cluster.up()
        for each in (component_images.nginx(programs.debian()), image):
            cluster.load_image(each.archive)
        with cluster.network():
            found = Place(cluster, image, tmp_path_factory.mktemp("chart"))
            found.establish()
            yield found
        other_audit_logs.append(Path(shutil.copy(cluster.layout.audit_log, tmp_path_factory.mktemp("audit"))))
    finally:
        if not keep:
            cluster.down()


def test_two_commands_to_the_first_rotation(place: Place, report: list[str]) -> None:
    began = time.monotonic()
    place.install()
    installed = time.monotonic()
    place.apply_policy()
    place.wait_policy_ready()
    place.renew().wait_done()
    report.append(f"helm install --wait {installed - began:.0f} s; to the first verified rotation {time.monotonic() - began:.0f} s")


def test_an_upgrade_in_the_middle_of_a_rotation(place: Place) -> None:
    """The operators are replaced, and the rotation goes on by what is on record: no second rollout."""
    before = place.operators()
    rotation = place.renew()
    rotation.wait_restarting()
    with place.begin_upgrade("--set", "logLevel=debug") as upgrade:
        said, _ = upgrade.communicate(timeout=240)
    assert upgrade.returncode == 0, said
    rotation.wait_done()
    assert not before & place.operators()
    assert [each["status"] for each in json.loads(place.helm("history", "certroll", "--output=json"))] == ["superseded", "deployed"]


def test_a_rollback_in_the_middle_of_a_rotation(place: Place) -> None:
    before = place.operators()
    rotation = place.renew()
    rotation.wait_restarting()
    place.helm("rollback", "certroll", "1", "--wait", "--timeout=3m")
    rotation.wait_done()
    assert not before & place.operators()
    assert "debug" not in place.helm("get", "values", "certroll", "--output=json")


def test_an_uninstall_leaves_what_is_documented(place: Place) -> None:
    crds = {name.replace("crd/", "customresourcedefinition.apiextensions.k8s.io/") for name in paths.crd_names()}
    there = place.cluster.kubectl("-n", NAMESPACE, "get", "crp,secrets,deployments,configmaps,services", "-o", "name")
    generation = place.generation()
    place.helm("uninstall", "certroll", "--wait", "--timeout=3m")
    wait_for("the operators to be gone", lambda: not place.operators(), deadline=60)
    assert place.ours() - _LEFT == crds
    assert place.cluster.kubectl("-n", NAMESPACE, "get", "crp,secrets,deployments,configmaps,services", "-o", "name") == there
    assert place.generation() == generation


def test_installed_again_it_goes_on_where_it_was(place: Place) -> None:
    generation = place.generation()
    place.install()
    place.wait_policy_ready()
    place.renew().wait_done()
    assert place.generation() == generation + 1
