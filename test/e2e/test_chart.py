"""The Helm chart on a real cluster: `helm test` passes where an operator can work, and fails where a right is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from certroll_dev import commands, controlplane, install, paths, tools
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.operator_image import Image
from certroll_dev.ui import DevError

import sanitizers

_CHART = paths.REPOSITORY / "charts" / "certroll"
_SPACE = "certroll-withdrawn-chart"  # whose refused requests are none of the manifests' (test_rights.py)
_POD = "certroll-test"


class Release:
    """With objects of its own namespace only: those of the cluster are of other tests, under the same names."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._cluster = cluster
        self._values = folder / "values.yaml"

    def install(self, image: Image) -> None:
        repository, _, tag = image.reference.rpartition(":")
        off = {name: {"enabled": False} for name in ("metrics", "admissionPolicy", "aggregatedRoles")}
        values = {
            **off, "crds": {"install": False}, "scope": {"namespaces": [_SPACE]}, "image": {"repository": repository, "tag": tag},
            "extraArgs": ["--require-admission-policy=false"], "resources": {"limits": {"memory": "1Gi"}},
            "extraEnv": [{"name": name, "value": value} for name, value in sanitizers.ENVIRONMENT.items()],
        }  # fmt: skip
        self._values.write_text(yaml.safe_dump(values))
        self.helm("install", "certroll", _CHART, "--values", self._values, "--wait", "--timeout=3m")

    def helm(self, *words: str | Path) -> str:
        program = tools.ensure(["helm"])["helm"]
        return commands.run([program, f"--kubeconfig={self._cluster.layout.kubeconfig}", "--namespace", _SPACE, *words])

    def kubectl(self, *words: str) -> str:
        return self._cluster.kubectl("--namespace", _SPACE, *words)


@pytest.fixture
def release(cluster: LocalCluster, image: Image, tmp_path: Path) -> Iterator[Release]:
    """In a namespace that admits nothing that is not restricted."""
    cluster.load_image(image.archive)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(paths.CRDS))
    controlplane.wait_for_crds(cluster.layout, *paths.crd_names())
    cluster.kubectl("create", "namespace", _SPACE)
    cluster.kubectl("label", "namespace", _SPACE, "pod-security.kubernetes.io/enforce=restricted")
    found = Release(cluster, tmp_path)
    try:
        found.install(image)
        yield found
    finally:
        found.helm("uninstall", "certroll", "--ignore-not-found")
        cluster.kubectl("delete", "namespace", _SPACE, "--wait=false")


def test_helm_test_says_whether_an_operator_can_work(release: Release) -> None:
    assert "Succeeded" in release.helm("test", "certroll", "--hide-notes")
    assert not release.kubectl("get", "pod", _POD, "--ignore-not-found", "-o", "name")
    release.kubectl("delete", "rolebinding", install.NAME)
    with pytest.raises(DevError, match=f"pod {_POD} failed"):
        release.helm("test", "certroll", "--hide-notes")
    # It stays, to be looked at.
    assert release.kubectl("get", "pod", _POD, "-o", "jsonpath={.status.reason}") == "DeadlineExceeded"
    assert "certrotationpolicies" in release.kubectl("logs", _POD, "--container=operator")
