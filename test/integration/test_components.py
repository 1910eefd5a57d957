"""Components of the manifests together, whatever their order: each patches a Role by the place of its rules."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ROOT, ControlPlane
from certroll_dev import declared_metrics  # after control_plane, which knows where it is

Object = dict[str, Any]
_ROLES = {"cluster-wide": "ClusterRole", "namespaced": "Role"}
_COMPONENTS = ("evict-only", "named-secrets")


def _built(plane: ControlPlane, copies: Path, overlay: str, components: tuple[str, ...]) -> list[Object]:
    return _kustomized(plane, copies, [f"overlays/{overlay}"], [f"components/{name}" for name in components])


def _kustomized(plane: ControlPlane, copies: Path, resources: Sequence[str], components: Sequence[str]) -> list[Object]:
    """Of folders of manifests/."""
    folder = copies / "-".join(("built", *resources, *components)).replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kustomization = {"resources": [f"../{name}" for name in resources], "components": [f"../{name}" for name in components]}
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


@pytest.mark.parametrize("overlay", _ROLES)
def test_hosts_in_use_take_a_flag_and_no_right(control_plane: ControlPlane, copies: Path, overlay: str) -> None:
    """What lists consumers lists them, wherever the operator runs."""
    without = _built(control_plane, copies, overlay, ())
    rules = _rules(without, _ROLES[overlay])
    assert {(resource, verb) for resource in ("ingresses", "gateways") for verb in ("list", "watch")} <= _granted(rules)
    assert "--hosts-in-use" not in _operator(without)["args"]
    every = ("hosts-in-use", "trust-domains", "evict-only", "named-secrets")
    for components in (("hosts-in-use",), every, every[::-1]):
        built = _built(control_plane, copies, overlay, components)
        assert _operator(built)["args"].count("--hosts-in-use") == 1
        of_them = [rule for rule in rules if rule["resources"] in (["ingresses"], ["gateways"])]
        assert [rule for rule in _rules(built, _ROLES[overlay]) if rule["resources"] in (["ingresses"], ["gateways"])] == of_them
    assert _rules(_built(control_plane, copies, overlay, ("hosts-in-use",)), _ROLES[overlay]) == rules


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


def test_monitors_find_the_ports_that_have_metrics(control_plane: ControlPlane, copies: Path) -> None:
    built = _built(control_plane, copies, "cluster-wide", ("monitors",))
    monitors = {obj["kind"]: obj["spec"] for obj in built if obj["kind"].endswith("Monitor")}
    [service] = [obj for obj in built if obj["kind"] == "Service"]
    assert monitors["ServiceMonitor"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitors["ServiceMonitor"]["endpoints"]
    assert [(endpoint["port"], endpoint["scheme"])] == [(port["name"], port["appProtocol"]) for port in service["spec"]["ports"]]
    assert endpoint["honorLabels"]
    texts = [(copies / folder / "kustomization.yaml").read_text() for folder in ("sidecar/component", "shutdown-manager/sidecar")]
    ports = [port["port"] for port in monitors["PodMonitor"]["podMetricsEndpoints"]]
    assert all(f"{{name: {port}, containerPort: " in text for port, text in zip(ports, texts, strict=True))


def test_other_people_s_pods_are_believed_about_themselves_only() -> None:
    """Any pod may have a port of these names. Were its series taken for the operator's, it could silence their alerts, or ring them."""
    monitor = yaml.safe_load((ROOT / "manifests" / "components" / "monitors" / "pod-monitor.yaml").read_text())
    own = {name: metric for page in ("sidecar", "shutdown-manager") for name, metric in declared_metrics.documented(ROOT, page).items()}
    metrics = declared_metrics.declared(ROOT)
    shared = {name for name in metrics if name.startswith(("process_", "certroll_tls_"))} | {"certroll_build_info"}
    for endpoint in monitor["spec"]["podMetricsEndpoints"]:
        [rule] = endpoint["metricRelabelings"]
        assert (rule["sourceLabels"], rule["action"]) == (["__name__"], "keep")
        for name, metric in metrics.items():
            ends = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
            kept = {bool(re.fullmatch(rule["regex"], name + end)) for end in ends}
            assert kept == {name in own or name in shared}, name


def test_the_documented_uninstall_deletes_no_namespace_but_by_its_name(control_plane: ControlPlane, copies: Path) -> None:
    """With the operator's go the CAs of ClusterTrustDomains."""
    page = (ROOT / "docs" / "operations.md").read_text().partition("**Uninstall**")[2].partition("\n## ")[0]
    commands = re.findall(r"kubectl delete (?:-l (\S+)=(\S+) )?-k (\S+)", page)
    assert len(commands) >= 2
    for label, value, folder in commands:
        objects = [obj for obj in yaml.safe_load_all(control_plane.kubectl("kustomize", str(copies.parent / folder)).stdout) if obj]
        deleted = [obj for obj in objects if not label or obj["metadata"].get("labels", {}).get(label) == value]
        assert deleted and (folder.startswith("manifests/node-agent") or not [obj for obj in deleted if obj["kind"] == "Namespace"])


def test_the_documented_operator_of_node_agents_follows_the_control_plane(control_plane: ControlPlane, copies: Path) -> None:
    page = (ROOT / "docs" / "node-agent.md").read_text().partition("## Install")[2]
    operator, agents = re.findall(r"kubectl apply --server-side -k manifests/(\S+)", page)[:2]
    built = _kustomized(control_plane, copies, [operator, agents], [])
    assert "--control-plane" in _operator(built)["args"]
    assert ("ClusterRole", "certroll-operator-control-plane") in {(obj["kind"], obj["metadata"]["name"]) for obj in built}
    assert {obj["kind"] for obj in built} >= {"DaemonSet"}


def test_each_dashboard_is_a_config_map_for_grafana_s_sidecar(control_plane: ControlPlane, copies: Path) -> None:
    built = _kustomized(control_plane, copies, [], ["components/grafana-dashboards"])
    files = {path.name: path.read_text() for path in (copies / "components" / "grafana-dashboards").glob("*.json")}
    assert {name: text for obj in built for name, text in obj["data"].items()} == files
    for obj in built:
        assert (obj["kind"], obj["metadata"]["namespace"]) == ("ConfigMap", "certroll-system")
        assert obj["metadata"]["labels"]["grafana_dashboard"] == "1" and len(obj["data"]) == 1


# --- who may reach whom


def _policies(built: list[Object]) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj["spec"] for obj in built if obj["kind"] == "NetworkPolicy"}


def _labels(built: list[Object], kind: str) -> Object:
    [template] = [obj["spec"]["template"] for obj in built if obj["kind"] == kind]
    labels: Object = template["metadata"]["labels"]
    return labels


def _ways_in(policies: dict[str, Object]) -> set[tuple[int, str]]:
    """Ports, and who may reach them."""
    rules = [rule for spec in policies.values() if "Ingress" in spec["policyTypes"] for rule in spec.get("ingress", [])]
    return {(port["port"], str(rule.get("from", "anybody"))) for rule in rules for port in rule["ports"]}


_SCRAPERS = str([{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}])


@pytest.mark.parametrize(
    ("overlay", "components", "ways_in"),
    [
        ("namespaced", (), {(8081, "anybody")}),
        ("namespaced", ("metrics",), {(8081, "anybody"), (8080, _SCRAPERS)}),
        ("cluster-wide", (), {(8081, "anybody"), (8080, _SCRAPERS)}),
        ("cluster-wide", ("network-policy",), {(8080, _SCRAPERS)}),
        ("namespaced", ("network-policy", "metrics"), {(8080, _SCRAPERS)}),
        ("namespaced", ("network-policy",), set()),
    ],
)
def test_each_port_of_the_operator_has_one_way_in(
    control_plane: ControlPlane, copies: Path, overlay: str, components: tuple[str, ...], ways_in: set[tuple[int, str]]
) -> None:
    """No CNI of ours enforces it: this holds what is written to the pods and ports that it is for."""
    built = _built(control_plane, copies, overlay, components)
    policies = _policies(built)
    assert _ways_in(policies) == ways_in
    assert all(spec["podSelector"]["matchLabels"].items() <= _labels(built, "Deployment").items() for spec in policies.values())
    assert {port for port, _ in ways_in} <= {port["containerPort"] for port in _operator(built)["ports"]}
    # What may be left is said by the component alone; without it nothing is cut off.
    out = [spec for spec in policies.values() if "Egress" in spec["policyTypes"]]
    assert len(out) == ("network-policy" in components)
    for spec in out:
        pods, api, names = spec["egress"]
        assert pods == {"to": [{"namespaceSelector": {}}]}
        assert {port["port"] for port in api["ports"]} == {443, 6443} and {port["port"] for port in names["ports"]} == {53}


@pytest.mark.parametrize("profile", ["contour", "envoy-gateway"])
def test_nobody_may_reach_certgen(control_plane: ControlPlane, copies: Path, profile: str) -> None:
    for components, ways in (((), ["Ingress"]), (("network-policy",), ["Ingress", "Egress"])):
        built = _kustomized(control_plane, copies, [f"certgen/{profile}"], [f"certgen/{name}" for name in components])
        [spec] = _policies(built).values()
        assert spec["policyTypes"] == ways and "ingress" not in spec
        assert spec["podSelector"]["matchLabels"].items() <= _labels(built, "Job").items()


# --- an API server takes all of it

_ALL = (
    *(((f"overlays/{path.name}",), ()) for path in sorted((ROOT / "manifests" / "overlays").iterdir())),
    # Of kinds that only the Prometheus operator brings: prometheus-rules (test_metrics.py), monitors.
    *(
        (("overlays/namespaced",), (f"components/{path.name}",))
        for path in sorted((ROOT / "manifests" / "components").iterdir())
        if path.name not in ("prometheus-rules", "monitors")
    ),
    *(((f"certgen/{profile}",), ("certgen/staged", "certgen/network-policy")) for profile in ("contour", "envoy-gateway")),
)


@pytest.fixture(scope="module")
def namespaces(control_plane: ControlPlane) -> Iterator[None]:
    """Those of the manifests: a dry run makes none for what follows."""
    names = ("certroll-system", "envoy-gateway-system", "projectcontour")
    missing = [name for name in names if control_plane.kubectl("get", "namespace", name, check=False).returncode]
    for name in missing:
        control_plane.kubectl("create", "namespace", name)
    yield
    for name in missing:
        control_plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize(("resources", "components"), _ALL, ids=lambda names: "+".join(names) or "alone")
def test_an_api_server_takes_the_manifests(
    control_plane: ControlPlane, copies: Path, namespaces: None, resources: tuple[str, ...], components: tuple[str, ...]
) -> None:
    """By a dry run, which validates each field, unknown ones too."""
    built = _kustomized(control_plane, copies, resources, components)
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    control_plane.kubectl(*words, input=yaml.safe_dump_all(built))


# --- the sidecar's, which is for other people's workloads


def _workload(kind: str, name: str, **annotations: str) -> Object:
    containers = [{"name": name, "image": f"example.org/{name}:1"} for name in ("main", "first")]
    pod = {"containers": containers[:1], "initContainers": containers[1:]}
    meta = {"name": name, "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"template": {"spec": pod}}}


def test_the_sidecar_joins_workloads_that_ask_for_it(control_plane: ControlPlane, copies: Path) -> None:
    """Ahead of their other init containers, so that what it makes is there for all of them; the rest is left as it is."""
    asks = {"certroll.dev/sidecar": "inject"}
    kinds = ("Deployment", "StatefulSet", "DaemonSet")
    given = [_workload(kind, "joined", **asks) for kind in kinds] + [_workload(kind, "alone") for kind in kinds]
    folder = copies / "built-sidecar"
    folder.mkdir()
    (folder / "workloads.yaml").write_text(yaml.safe_dump_all(given))
    kustomization = {"resources": ["workloads.yaml"], "components": ["../sidecar/component"]}
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
