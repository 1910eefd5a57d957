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
_COMPONENTS = ("evict-only", "named-secrets")


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


def _operator(built: list[Object]) -> Object:
    [pod] = [obj["spec"]["template"]["spec"] for obj in built if obj["kind"] == "Deployment"]
    container: Object = pod["containers"][0]
    return container


def _port_of_the_service(built: list[Object]) -> list[Object]:
    return [port for obj in built if obj["kind"] == "Service" for port in obj["spec"]["ports"]]


def test_metrics_come_with_the_right_to_ask_who_wants_them(control_plane: ControlPlane, copies: Path) -> None:
    """Over TLS and for a token, the program's own default; where nobody may be asked, no port is open but that of the probes."""
    reviews = {("tokenreviews", "create"), ("subjectaccessreviews", "create")}
    for overlay, components in (("cluster-wide", ()), ("namespaced", ("metrics",)), ("evict-only", ())):
        built = _built(control_plane, copies, overlay, components)
        container = _operator(built)
        assert "--metrics-bind-address=:8080" in container["args"]
        assert not {"--metrics-open", "--metrics-auth=none", "--metrics-bind-address=0"} & set(container["args"])
        assert {port["name"]: port["containerPort"] for port in container["ports"]} == {"health": 8081, "metrics": 8080}
        assert [(port["targetPort"], port["appProtocol"]) for port in _port_of_the_service(built)] == [("metrics", "https")]
        [role] = [obj for obj in built if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] == "certroll-operator-metrics"]
        assert _granted(role["rules"]) == reviews
    built = _built(control_plane, copies, "namespaced", ())
    assert _operator(built)["args"][0] == "--metrics-bind-address=0"
    assert [port["name"] for port in _operator(built)["ports"]] == ["health"] and not _port_of_the_service(built)
    assert not reviews & _granted([rule for obj in built for rule in obj.get("rules", [])])


def test_metrics_over_tls_need_no_right(control_plane: ControlPlane, copies: Path) -> None:
    """The flags name files of a Secret's whole folder, which is what is refreshed."""
    both = ("metrics", "metrics-tls")
    expected = _rules(_built(control_plane, copies, "namespaced", ()), "Role")
    for overlay, components in (("cluster-wide", both[1:]), ("namespaced", both), ("namespaced", both[::-1])):
        built = _built(control_plane, copies, overlay, components)
        if overlay == "namespaced":
            assert _rules(built, "Role") == expected
        [pod] = [obj["spec"]["template"]["spec"] for obj in built if obj["kind"] == "Deployment"]
        [mount], [volume] = pod["containers"][0]["volumeMounts"], pod["volumes"]
        assert "subPath" not in mount and mount["name"] == volume["name"] and volume["secret"] == {"secretName": "certroll-operator-metrics-tls"}
        wanted = {f"--metrics-tls-cert-file={mount['mountPath']}/tls.crt", f"--metrics-tls-private-key-file={mount['mountPath']}/tls.key"}
        args = pod["containers"][0]["args"]
        assert wanted | {"--metrics-bind-address=:8080", "--health-probe-bind-address=:8081"} <= set(args)
        assert {probe["httpGet"].get("scheme", "HTTP") for probe in (pod["containers"][0][f"{kind}Probe"] for kind in ("liveness", "readiness"))} == {"HTTP"}


# --- the reloader's, which is for other people's workloads


def _workload(kind: str, name: str, **annotations: str) -> Object:
    containers = [{"name": name, "image": f"example.org/{name}:1"} for name in ("main", "first")]
    pod = {"containers": containers[:1], "initContainers": containers[1:]}
    meta = {"name": name, "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"template": {"spec": pod}}}


def test_the_reloader_joins_workloads_that_ask_for_it(control_plane: ControlPlane, copies: Path) -> None:
    """Ahead of their other init containers, so that what it makes is there for all of them; the rest is left as it is."""
    asks = {"certroll.dev/reloader": "sidecar"}
    kinds = ("Deployment", "StatefulSet", "DaemonSet")
    given = [_workload(kind, "joined", **asks) for kind in kinds] + [_workload(kind, "alone") for kind in kinds]
    folder = copies / "built-reloader"
    folder.mkdir()
    (folder / "workloads.yaml").write_text(yaml.safe_dump_all(given))
    kustomization = {"resources": ["workloads.yaml"], "components": ["../reloader/sidecar"]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    objects = yaml.safe_load_all(control_plane.kubectl("kustomize", str(folder)).stdout)
    built = {(obj["kind"], obj["metadata"]["name"]): obj["spec"]["template"]["spec"] for obj in objects}
    for obj in given:
        before, pod = obj["spec"]["template"]["spec"], built[obj["kind"], obj["metadata"]["name"]]
        if obj["metadata"]["name"] == "alone":
            assert pod == before
            continue
        sidecar, *others = pod["initContainers"]
        assert others == before["initContainers"] and pod["containers"] == before["containers"]
        assert sidecar["restartPolicy"] == "Always" and [port["name"] for port in sidecar["ports"]] == ["certroll-reload"]
        security = sidecar["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]} and security["runAsNonRoot"] and security["readOnlyRootFilesystem"]
        assert "readinessProbe" not in sidecar  # a program that serves goes on serving while a reload fails
