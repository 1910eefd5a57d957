"""Components of the manifests together, whatever their order: each patches a Role by the place of its rules."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ROOT, ControlPlane

Object = dict[str, Any]
_ROLES = {"cluster-wide": "ClusterRole", "namespaced": "Role"}
_COMPONENTS = ("evict-only", "metrics-auth", "named-secrets")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kustomize takes no absolute paths."""
    folder = tmp_path_factory.mktemp("copies")
    for name in ("crds", "manifests"):
        shutil.copytree(ROOT / name, folder / name)
    return folder / "manifests"


def _built(plane: ControlPlane, copies: Path, overlay: str, components: tuple[str, ...]) -> list[Object]:
    folder = copies / "-".join(("built", overlay, *components))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kustomization = {
        "resources": [f"../overlays/{overlay}"],
        "components": [f"../components/{name}" for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return [obj for obj in yaml.safe_load_all(plane.kubectl("kustomize", str(folder)).stdout) if obj]


def _rules(built: list[Object], kind: str) -> list[Object]:
    [role] = [obj for obj in built if obj["kind"] == kind and obj["metadata"]["name"] == "certroll-operator"]
    rules: list[Object] = role["rules"]
    return rules


def _may(rules: list[Object], verb: str, resource: str) -> list[Object]:
    return [rule for rule in rules if verb in rule["verbs"] and resource in rule["resources"]]


def _changes_workloads(rule: Object) -> bool:
    return rule["apiGroups"][0] in ("apps", "argoproj.io") and "patch" in rule["verbs"]


@pytest.mark.parametrize("overlay", _ROLES)
def test_components_go_together_in_any_order(control_plane: ControlPlane, copies: Path, overlay: str) -> None:
    whole = _rules(_built(control_plane, copies, overlay, ()), _ROLES[overlay])
    for components in itertools.permutations(_COMPONENTS):
        built = _built(control_plane, copies, overlay, components)
        rules = _rules(built, _ROLES[overlay])
        assert not any(_changes_workloads(rule) for rule in rules) and _may(rules, "watch", "deployments")
        assert _may(rules, "list", "poddisruptionbudgets") and _may(rules, "create", "pods/eviction")
        # No Secret can have this name.
        assert [rule.get("resourceNames") for rule in rules if "secrets" in rule["resources"]] == [["-"]]
        others = [rule for rule in whole if "secrets" not in rule["resources"] and not _changes_workloads(rule)]
        assert [rule for rule in rules if "secrets" not in rule["resources"]] == others
        [deployment] = [obj for obj in built if obj["kind"] == "Deployment"]
        assert "--secret-scope=named" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


_PUBLISHED = {("secrets", "create"), ("secrets", "patch"), ("secrets", "delete")} | {("configmaps", verb) for verb in ("get", "create", "patch")}
_CA_BUNDLES = {"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "apiservices", "customresourcedefinitions"}


def _granted(rules: list[Object]) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.parametrize("overlay", _ROLES)
def test_only_its_component_lets_trust_domains_write(control_plane: ControlPlane, copies: Path, overlay: str) -> None:
    """Of their kinds the rest reads all and writes the status; what is cluster-wide is granted in a ClusterRole only."""
    without = _granted(_rules(_built(control_plane, copies, overlay, ()), _ROLES[overlay]))
    cluster = overlay == "cluster-wide"
    assert {("trustdomains", "list"), ("trustdomains", "watch"), ("trustdomains/status", "patch")} <= without
    assert (("clustertrustdomains", "watch") in without, ("clustertrustdomains/status", "patch") in without) == (cluster, cluster)
    assert not _PUBLISHED & without
    more = {("namespaces", "list"), ("namespaces", "watch")} if cluster else set()
    bundles = {(resource, verb) for resource in _CA_BUNDLES for verb in ("get", "patch")} if cluster else set()
    every = ("trust-domains", "ca-bundles", "evict-only", "named-secrets")
    for components in (every, every[::-1]):
        granted = _granted(_rules(_built(control_plane, copies, overlay, components), _ROLES[overlay]))
        assert granted - without == _PUBLISHED | more | bundles
    alone = _granted(_rules(_built(control_plane, copies, overlay, ("trust-domains",)), _ROLES[overlay]))
    assert alone - without == _PUBLISHED | more
