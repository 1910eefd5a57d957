"""The Helm chart against the manifests: what it renders is what kustomize builds, object by object, so that users can move from one
to the other, and a change of the manifests that the chart lacks is found."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ROOT, ControlPlane
from certroll_dev import tools  # after control_plane, which knows where it is

Object = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace, name
_CHART = ROOT / "charts" / "certroll"
_OPERATOR = "certroll-operator"
_OLDEST = "--kube-version=1.30"  # the oldest that certroll runs on; helm would take one that it was built with
_MONITORS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")  # kinds that only the Prometheus operator brings


@dataclass(frozen=True)
class Case:
    """Values, and the kustomization that installs the same."""

    values: Mapping[str, Any] = field(default_factory=dict)
    resources: Sequence[str] = ()  # folders of manifests/
    components: Sequence[str] = ()  # the same
    namespaces: Sequence[str] = ()  # those that manifests/namespace is for
    patches: Sequence[Object] = ()
    images: Sequence[Object] = ()
    own: Sequence[Object] = ()  # objects that a user writes beside the manifests
    namespace: str = "certroll-system"  # the operator's


def _added(args: Sequence[str], *, kind: str = "Deployment", name: str = _OPERATOR) -> Object:
    """A patch that gives a program more arguments."""
    operations = [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": arg} for arg in args]
    return {"target": {"kind": kind, "name": name}, "patch": json.dumps(operations)}


def _named_secrets(namespace: str, *names: str) -> list[Object]:
    """The Role that docs/operations.md has users write, "Secrets by name only"."""
    api, name = "rbac.authorization.k8s.io", "certroll-operator-secrets"
    meta = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": "certroll"}}
    rules = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": list(names), "verbs": ["get", "list", "watch"]}]
    subjects = [{"kind": "ServiceAccount", "name": _OPERATOR, "namespace": "certroll-system"}]
    return [
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": meta, "subjects": subjects,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        },
    ]  # fmt: skip


_ON = {"enabled": True}
_SCRAPER = {"cert": {"secret": {"name": "scraper", "key": "tls.crt"}}, "keySecret": {"name": "scraper", "key": "tls.key"}}
# What metrics-tls has users add to the monitor, with the certificate that clientCA asks for.
_VERIFIED = {
    "serverName": "certroll-operator-metrics.certroll-system.svc",
    "ca": {"secret": {"name": "certroll-operator-metrics-tls", "key": "ca.crt"}},
}
_TLS_OF_SCRAPERS = [{"op": "replace", "path": "/spec/endpoints/0/tlsConfig", "value": _VERIFIED | _SCRAPER}]
_DIGEST = "sha256:" + "0123456789abcdef" * 4
_CASES = {
    "cluster-wide": Case(resources=["overlays/cluster-wide"]),
    "two namespaces": Case(
        {"scope": {"namespaces": ["shop", "bank"]}, "metrics": {"enabled": False}, "trustDomains": _ON, "logLevel": "debug"},
        ["base"],
        ["components/trust-domains"],
        ["shop", "bank"],
        [_added(["--namespace=shop", "--namespace=bank", "--log-level=debug"])],
    ),
    "named Secrets": Case(
        {"scope": {"secrets": "named", "namedSecrets": {"shop": ["web-tls", "ratelimit-tls"]}}},
        ["overlays/cluster-wide"],
        ["components/named-secrets"],
        own=_named_secrets("shop", "web-tls", "ratelimit-tls"),
    ),
    "evict-only": Case({"scope": {"evictOnly": True}}, ["overlays/evict-only"]),
    "control plane": Case({"controlPlane": _ON, "nodeAgent": _ON}, ["overlays/control-plane", "node-agent"]),
    "everything": Case(
        {
            **{name: _ON for name in ("trustDomains", "caBundles", "hostsInUse", "controlPlane")},
            "extraArgs": ["--max-restarts=20"],
            "networkPolicy": {"restricted": True},
            "metrics": {
                "tls": {"secretName": "certroll-operator-metrics-tls", "clientCA": True},
                "serviceMonitor": {**_ON, "endpoint": {"tlsConfig": _SCRAPER}}, "podsMonitor": _ON, "prometheusRule": _ON,
                "dashboards": _ON,
            },
            "nodeAgent": {
                "enabled": True, "nodeClaim": False, "podMonitor": _ON,
                "controlPlane": {"restartKubelet": True, "extraArgs": ["--step-deadline=10m"]},
                "workers": {"restartKubelet": True, "countTokens": True},
            },
        },
        ["overlays/cluster-wide", "node-agent"],
        [
            *(f"components/{name}" for name in ("trust-domains", "ca-bundles", "hosts-in-use", "control-plane")),
            *(f"components/{name}" for name in ("network-policy", "metrics-tls", "monitors", "prometheus-rules", "grafana-dashboards")),
            *(f"node-agent/{name}" for name in ("kubelet-restart", "count-tokens", "without-node-claim", "pod-monitor")),
        ],
        patches=[
            _added(["--metrics-client-ca-file=/etc/certroll/metrics-tls/ca.crt", "--max-restarts=20"]),
            {"target": {"kind": "ServiceMonitor"}, "patch": json.dumps(_TLS_OF_SCRAPERS)},
            _added(["--step-deadline=10m"], kind="DaemonSet", name="certroll-node-agent-control-plane"),
        ],
    ),
    "another namespace": Case(
        {
            "replicas": 3, "image": {"repository": "registry.example.org/certroll/operator", "digest": _DIGEST},
            "metrics": {"serviceMonitor": _ON, "podsMonitor": _ON, "dashboards": _ON},
        },
        ["overlays/cluster-wide"],
        ["components/monitors", "components/grafana-dashboards"],
        patches=[{
            "target": {"kind": "Deployment"},
            "patch": json.dumps([{"op": "replace", "path": "/spec/replicas", "value": 3}]),
        }],
        images=[{"name": "certroll.dev/operator", "newName": "registry.example.org/certroll/operator", "digest": _DIGEST}],
        namespace="certificates",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def helm() -> Path:
    return tools.ensure(["helm"])["helm"]


def _run(words: Sequence[str | Path], values: Mapping[str, Any] | None = None, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    text = None if values is None else yaml.safe_dump(dict(values))
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done


def _template(helm: Path, case: Case, *, chart: Path = _CHART, check: bool = True) -> subprocess.CompletedProcess[str]:
    words = [helm, "template", "certroll", chart, _OLDEST, "--namespace", case.namespace, "--values", "-"]
    return _run(words, case.values, check=check)


def _parsed(text: str) -> list[Object]:
    return [obj for obj in yaml.safe_load_all(text) if obj]


def _is_test(obj: Object) -> bool:
    return obj["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"


def _installed(text: str) -> list[Object]:
    """Without what only `helm test` makes."""
    return [obj for obj in _parsed(text) if not _is_test(obj)]


def _kustomized(copies: Path, folder: Path, case: Case) -> list[Object]:
    """`folder`: beside the copies."""
    inner = []
    for name in case.namespaces:
        (folder / name).mkdir(parents=True)
        (folder / name / "kustomization.yaml").write_text(yaml.safe_dump({"namespace": name, "resources": ["../../namespace"]}))
        inner.append(name)
    folder.mkdir(exist_ok=True)
    kustomization: Object = {
        "resources": [*(f"../{name}" for name in case.resources), *inner],
        "components": [f"../{name}" for name in case.components],
        "patches": list(case.patches), "images": list(case.images),
    }  # fmt: skip
    if case.namespace != "certroll-system":
        kustomization["namespace"] = case.namespace
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    kubectl = tools.ensure(["kubectl"])["kubectl"]
    return [*_parsed(_run([kubectl, "kustomize", folder]).stdout), *case.own]


def _by_key(objects: Sequence[Object]) -> dict[Key, Object]:
    objects = [_same_for_the_same(obj) for obj in objects]
    found = {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects), "an object twice"
    return found


def _same_for_the_same(obj: Object) -> Object:
    """Rules of a role, arguments of a program and capabilities mean the same in any order."""
    obj = json.loads(json.dumps(obj))
    if obj["kind"].startswith("ValidatingAdmissionPolicy"):
        # kustomize adds empty lines to folded text, and a namespace to kinds that it does not know as the cluster's.
        obj = json.loads(re.sub(r"(\\n|\s)+", " ", json.dumps(obj)))
        obj["metadata"].pop("namespace", None)
    if "rules" in obj:
        obj["rules"].sort(key=json.dumps)
    if obj["kind"] in ("Deployment", "DaemonSet"):
        [container] = obj["spec"]["template"]["spec"]["containers"]
        container["args"].sort()
        container["securityContext"]["capabilities"].get("add", []).sort()
    return obj


# --- the differences that are allowed

# Labels by which Helm's users find what a release has. No selector has them, and no pod.
_HELM_S_LABELS = ("helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version")


def _without_helm_s(obj: Object) -> Object:
    """As the manifests have it. Fails when one of the differences is not there."""
    meta = obj["metadata"]
    for label in _HELM_S_LABELS:
        del meta["labels"][label]
    if not meta["labels"]:
        del meta["labels"]
    if obj["kind"] == "CustomResourceDefinition":  # so that an uninstall keeps it, as the documented one without Helm does
        assert meta.pop("annotations") == {"helm.sh/resource-policy": "keep"}
    return obj


@pytest.mark.parametrize("name", _CASES)
def test_the_chart_renders_what_kustomize_builds(helm: Path, copies: Path, name: str) -> None:
    case = _CASES[name]
    rendered = {key: _without_helm_s(obj) for key, obj in _by_key(_installed(_template(helm, case).stdout)).items()}
    built = _by_key(_kustomized(copies, copies / name.replace(" ", "-"), case))
    # Helm makes the release's namespace before it renders anything.
    del built["Namespace", "", case.namespace]
    assert sorted(rendered) == sorted(built)
    for key, obj in built.items():
        assert rendered[key] == obj, key


def test_each_component_is_in_one_of_these_cases() -> None:
    """What is new in manifests/ is missed here first. Not the namespaced overlay, which users copy: "two namespaces" is that."""
    manifests = ROOT / "manifests"
    tried = {name for case in _CASES.values() for name in (*case.resources, *case.components)}
    folders = [each.parent for part in ("components", "overlays") for each in manifests.glob(f"{part}/*/kustomization.yaml")]
    folders += [each.parent for each in manifests.glob("node-agent/*/kustomization.yaml") if "kind: Component" in each.read_text()]
    through = {"overlays/namespaced", "components/metrics", "components/evict-only"}  # of the overlays cluster-wide and evict-only
    assert {str(each.relative_to(manifests)) for each in folders} - through <= tried


# --- what else the values offer


@pytest.mark.parametrize("name", _CASES)
def test_lint_has_nothing_to_say(helm: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(dict(_CASES[name].values)))
    done = _run([helm, "lint", "--strict", _OLDEST, _CHART, "--values", tmp_path / "values.yaml"])
    assert "[WARNING]" not in done.stdout and "[ERROR]" not in done.stdout


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replicas": "two"}, "/replicas"),
        ({"scope": {"namespace": ["shop"]}}, "'namespace' not allowed"),
        ({"scope": {"namespaces": ["Shop"]}}, "/scope/namespaces/0"),
        ({"scope": {"namedSecrets": {"Shop": ["web-tls"]}}}, "/scope/namedSecrets"),
        ({"scope": {"secrets": "some"}}, "one of 'all', 'named'"),
        ({"logLevel": "trace"}, "'debug', 'info', 'warn', 'error'"),
        ({"image": {"digest": "sha256:12"}}, "/image/digest"),
        ({"extraArgs": ["max-restarts=1"]}, "/extraArgs/0"),
        ({"commonLabels": {"app.kubernetes.io/name": "mine"}}, "/commonLabels/app.kubernetes.io~1name"),
        ({"nodeAgent": {"controlPlane": {"allowRestart": ["kubelet"]}}}, "/nodeAgent/controlPlane/allowRestart/0"),
        ({"resources": {"limit": {"memory": "1Gi"}}}, "'limit' not allowed"),
        ({"affinity": {"nodeAffinty": {}}}, "'nodeAffinty' not allowed"),
        ({"tolerations": [{"kye": "infra"}]}, "'kye' not allowed"),
        ({"topologySpreadConstraints": [{"topologyKey": "rack"}]}, "missing properties 'maxSkew', 'whenUnsatisfiable'"),
        ({"nodeAgent": {"resources": {"limit": {}}}}, "/nodeAgent/resources"),
        ({"imagePullSecrets": ["registry"]}, "/imagePullSecrets/0"),
        ({"image": {"repository": "registry.example.org:5000/certroll:1"}}, "/image/repository"),
        ({"metrics": {"serviceMonitor": {"endpoints": {}}}}, "'endpoints' not allowed"),
        ({"networkPolicy": {"metricsFrom": []}}, "/networkPolicy/metricsFrom"),
        ({"caBundles": _ON}, "caBundles.enabled needs trustDomains.enabled"),
        ({"caBundles": _ON, "trustDomains": _ON, "scope": {"namespaces": ["shop"]}}, "needs all namespaces"),
        ({"scope": {"namedSecrets": {"shop": ["web-tls"]}}}, "needs scope.secrets=named"),
        ({"scope": {"secrets": "named", "namespaces": ["bank"], "namedSecrets": {"shop": ["a"]}}}, "not in scope.namespaces"),
        ({"metrics": {"enabled": False, "serviceMonitor": _ON}}, "metrics.serviceMonitor.enabled needs metrics.enabled"),
        ({"networkPolicy": {"enabled": False, "restricted": True}}, "networkPolicy.restricted needs networkPolicy.enabled"),
        ({"networkPolicy": {"apiServer": ["10.0.0.1/32"]}}, "networkPolicy.apiServer needs networkPolicy.restricted"),
        ({"metrics": {"tls": {"clientCA": True}}}, "needs metrics.tls.secretName"),
        (
            {"metrics": {"tls": {"secretName": "a", "clientCA": True}, "serviceMonitor": _ON}},
            "by metrics.serviceMonitor.endpoint.tlsConfig, with cert and keySecret",
        ),
        ({"metrics": {"podMonitor": _ON}}, "needs metrics.podMonitor.endpoint.authorization"),
        ({"metrics": {"podMonitor": _ON, "serviceMonitor": _ON}}, "scraped twice"),
        ({"metrics": {"enabled": False, "dashboards": _ON}}, "metrics.dashboards.enabled needs metrics.enabled"),
        ({"metrics": {"dashboards": {"namespace": "monitoring"}}}, "metrics.dashboards.namespace needs metrics.dashboards.enabled"),
        ({"metrics": {"dashboards": {"namespace": "Monitoring"}}}, "/metrics/dashboards/namespace"),
        ({"metrics": {"podsMonitor": {"endpoint": {}}}}, "'endpoint' not allowed"),
        ({"crds": {"install": False, "keep": False}}, "Upgrade with crds.keep=true first"),
        ({"nodeAgent": {"enabled": True, "controlPlane": {"enabled": False}, "workers": {"enabled": False}}}, "there is no agent"),
        ({"nodeAgent": {"enabled": True, "namespace": {"name": "certroll-system"}}}, "the operator's own namespace"),
        ({"nodeAgent": {"workers": {"extraArgs": ["--count-tokens"]}}}, "use nodeAgent.workers.countTokens"),
        ({"nodeAgent": {"podMonitor": _ON}}, "nodeAgent.podMonitor.enabled needs nodeAgent.enabled"),
        ({"nodeAgent": {"enabled": True, "podMonitor": {"ipv6": True}}}, "nodeAgent.podMonitor.ipv6 needs nodeAgent.podMonitor.enabled"),
        (
            {"nodeAgent": {"enabled": True, "podMonitor": _ON, "workers": {"extraArgs": ["--metrics-bind-address=:9952"]}}},
            "nodeAgent.podMonitor.enabled sets --metrics-bind-address itself",
        ),
        ({"extraArgs": ["--namespace=shop"]}, "extraArgs has --namespace: use scope.namespaces"),
        ({"extraArgs": ["--leader-elect-lease-name=mine"]}, "has to stay as it is"),
        ({"extraArgs": ["--leader-elect=false"]}, "both would act"),
        ({"extraEnv": [{"name": "POD_NAMESPACE", "value": "a"}]}, "extraEnv has POD_NAMESPACE"),
    ],
)
def test_wrong_values_are_refused_with_their_name(helm: Path, values: Object, words: str) -> None:
    done = _template(helm, Case(values), check=False)
    assert done.returncode != 0 and words in done.stderr


def _only(rendered: list[Object], kind: str, name: str = "") -> Object:
    [found] = [obj for obj in rendered if obj["kind"] == kind and (not name or obj["metadata"]["name"] == name)]
    return found


def test_labels_and_annotations_of_the_user_are_on_each_object_and_select_nothing(helm: Path) -> None:
    common = {"commonLabels": {"team": "pki"}, "commonAnnotations": {"owner": "pki@example.org"}}
    of_pods = {"podLabels": {"mesh": "no"}, "podAnnotations": {"note": "a"}}
    selected = {**_ON, "labels": {"team": "monitoring"}}  # by which Prometheus or Grafana finds them; it counts before the common one
    values = common | of_pods | {
        "nodeAgent": {"enabled": True, "podMonitor": selected, **of_pods},
        "metrics": {name: selected for name in ("serviceMonitor", "podsMonitor", "prometheusRule", "dashboards")},
    }  # fmt: skip
    for obj in (rendered := _parsed(_template(helm, Case(values)).stdout)):
        team = "monitoring" if obj["kind"] in (*_MONITORS, "ConfigMap") else "pki"
        assert obj["metadata"]["labels"]["team"] == team and obj["metadata"]["annotations"]["owner"] == "pki@example.org", obj
    pods = [obj["spec"] for obj in rendered if obj["kind"] in ("Deployment", "DaemonSet")]
    assert len(pods) == 3
    for spec in pods:
        meta = spec["template"]["metadata"]
        assert meta["labels"] == spec["selector"]["matchLabels"] | {"mesh": "no"} and meta["annotations"] == {"note": "a"}


@pytest.mark.parametrize("release", ["2024", "true"])
def test_a_release_s_name_is_a_text_whatever_it_looks_like(helm: Path, release: str) -> None:
    words = [helm, "template", release, _CHART, _OLDEST, "--namespace", "2025", "--values", "-"]
    values = {"nodeAgent": _ON, "controlPlane": _ON, "scope": {"secrets": "named", "namedSecrets": {"2026": ["web-tls"]}}}
    for obj in _parsed(_run(words, values).stdout):
        assert obj["metadata"]["labels"]["app.kubernetes.io/instance"] == release
        assert isinstance(obj["metadata"].get("namespace", ""), str), obj


def test_where_pods_run_is_the_user_s_to_say(helm: Path) -> None:
    mine = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    spread = [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    tolerations = [{"key": "infra", "operator": "Exists"}]
    values = {
        "affinity": mine, "topologySpreadConstraints": spread, "tolerations": tolerations, "priorityClassName": "high",
        "nodeSelector": {"pool": "infra"}, "imagePullSecrets": [{"name": "registry"}], "resources": {"limits": {"memory": "1Gi"}},
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None},
        "nodeAgent": {"enabled": True, "workers": {"enabled": False}, "controlPlane": {"affinity": mine}},
    }  # fmt: skip
    rendered = _parsed(_template(helm, Case(values)).stdout)
    pod = _only(rendered, "Deployment")["spec"]["template"]["spec"]
    assert (pod["affinity"], pod["topologySpreadConstraints"], pod["tolerations"]) == (mine, spread, tolerations)
    assert (pod["priorityClassName"], pod["imagePullSecrets"]) == ("high", [{"name": "registry"}])
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "infra"}  # Helm merges objects
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    agent = _only(rendered, "DaemonSet")
    assert agent["metadata"]["name"] == "certroll-node-agent-control-plane" and agent["spec"]["template"]["spec"]["affinity"] == mine
    assert agent["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_rights_are_given_in_the_namespaces_that_are_watched(helm: Path) -> None:
    """Also in one that has the name of the manifests' own, where the release is elsewhere."""
    watched = ["certroll-system", "certroll-nodes", "shop"]
    values = {"scope": {"namespaces": watched}, "metrics": {"enabled": False}}
    rendered = _parsed(_template(helm, Case(values, namespace="certificates")).stdout)
    for kind in ("Role", "RoleBinding"):
        found = [obj for obj in rendered if obj["kind"] == kind and obj["metadata"]["name"] == _OPERATOR]
        assert [obj["metadata"]["namespace"] for obj in found] == watched
        assert all(subject["namespace"] == "certificates" for obj in found for subject in obj.get("subjects", []))
    args = _only(rendered, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {f"--namespace={each}" for each in watched} <= set(args)


def test_what_is_switched_off_is_not_there(helm: Path) -> None:
    off = {name: {"enabled": False} for name in ("admissionPolicy", "aggregatedRoles", "podDisruptionBudget", "networkPolicy", "metrics")}
    rendered = _installed(_template(helm, Case(off | {"crds": {"install": False}})).stdout)
    assert {(obj["kind"], obj["metadata"]["name"]) for obj in rendered} == {
        ("ServiceAccount", _OPERATOR), ("Deployment", _OPERATOR), ("ClusterRole", _OPERATOR), ("ClusterRoleBinding", _OPERATOR),
        ("Role", f"{_OPERATOR}-self"), ("RoleBinding", f"{_OPERATOR}-self"),
    }  # fmt: skip
    kept = _parsed(_template(helm, Case({"crds": {"keep": False}})).stdout)
    assert not any("annotations" in obj["metadata"] for obj in kept if obj["kind"] == "CustomResourceDefinition")


def test_the_api_server_s_addresses_limit_what_is_reached(helm: Path) -> None:
    values = {"networkPolicy": {"restricted": True, "apiServer": ["10.0.0.1/32", "fd00::1/128"], "apiServerPorts": [8443]}}
    egress = _only(_parsed(_template(helm, Case(values)).stdout), "NetworkPolicy", f"{_OPERATOR}-egress")["spec"]["egress"]
    to = [{"ipBlock": {"cidr": cidr}} for cidr in ("10.0.0.1/32", "fd00::1/128")]
    assert egress[1] == {"ports": [{"protocol": "TCP", "port": 8443}], "to": to}


_AUTHORIZED = {"authorization": {"credentials": {"name": "scraper", "key": "token"}}}


def test_a_monitor_has_what_the_values_say(helm: Path) -> None:
    tls = {"secretName": "own"}
    verified = {"serverName": "certroll-operator-metrics.certroll-system.svc", "ca": {"secret": {"name": "own", "key": "ca.crt"}}}
    common = {"port": "metrics", "scheme": "https", "honorLabels": True, "interval": "15s"}
    pods = _template(helm, Case({"metrics": {"tls": tls, "podMonitor": {**_ON, "endpoint": {**_AUTHORIZED, "interval": "15s"}}}}))
    [endpoint] = _only(_parsed(pods.stdout), "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint == {**common, **_AUTHORIZED, "tlsConfig": verified}
    own = {**_AUTHORIZED, "interval": "15s", "tlsConfig": {"ca": {"configMap": {"name": "a", "key": "b"}}}}
    services = _template(helm, Case({"metrics": {"tls": tls, "serviceMonitor": {**_ON, "endpoint": own}}}))
    [endpoint] = _only(_parsed(services.stdout), "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint == {**common, **own, "tlsConfig": {**verified, **own["tlsConfig"]}}  # and no file with a token


def test_pods_are_monitored_also_where_the_operator_is_not(helm: Path) -> None:
    rendered = _parsed(_template(helm, Case({"metrics": {"enabled": False, "podsMonitor": _ON}})).stdout)
    assert [obj["metadata"]["name"] for obj in rendered if obj["kind"] in _MONITORS] == ["certroll-pods"]


@pytest.mark.parametrize("namespace", ["monitoring", "certroll-system"])  # that of the manifests, where the release is not
def test_dashboards_go_where_grafana_looks(helm: Path, namespace: str) -> None:
    values = {"metrics": {"dashboards": {**_ON, "namespace": namespace, "labels": {"grafana_dashboard": "yes"}}}}
    rendered = _parsed(_template(helm, Case(values, namespace="certificates")).stdout)
    found = [obj["metadata"] for obj in rendered if obj["kind"] == "ConfigMap"]
    assert len(found) == 5 and all((each["namespace"], each["labels"]["grafana_dashboard"]) == (namespace, "yes") for each in found)


def test_an_agent_of_a_node_with_ipv6_has_brackets_around_its_address(helm: Path) -> None:
    values = {"nodeAgent": {**_ON, "podMonitor": {**_ON, "ipv6": True}}}
    for obj in _parsed(_template(helm, Case(values)).stdout):
        if obj["kind"] == "DaemonSet":
            assert "--metrics-bind-address=[$(HOST_IP)]:9952" in obj["spec"]["template"]["spec"]["containers"][0]["args"]


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    if not selector.keys() & {"matchLabels", "matchExpressions"}:  # a Service's
        return selector.items() <= labels.items()
    expressions = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in expressions)
    within = all(labels.get(each["key"]) in each["values"] for each in expressions)
    return within and selector.get("matchLabels", {}).items() <= labels.items()


@pytest.mark.parametrize("name", _CASES)
def test_helm_test_starts_one_more_operator(helm: Path, name: str) -> None:
    """The Deployment's own, but for its probes; and nothing that selects the operator's pods has this one."""
    rendered = _parsed(_template(helm, _CASES[name]).stdout)
    [pod] = [obj for obj in rendered if _is_test(obj)]
    deployed = _only(rendered, "Deployment")["spec"]["template"]["spec"]
    [container], [operator], [end] = deployed["containers"], pod["spec"]["initContainers"], pod["spec"]["containers"]
    probe = operator.pop("startupProbe")
    assert probe["httpGet"] == deployed["containers"][0]["readinessProbe"]["httpGet"]
    assert operator.pop("restartPolicy") == "Always" and pod["spec"]["restartPolicy"] == "Never"
    assert operator == {key: value for key, value in container.items() if not key.endswith("Probe")}
    assert (end["image"], end["args"]) == (container["image"], ["--version"])
    own = {"activeDeadlineSeconds", "affinity", "containers", "initContainers", "restartPolicy", "topologySpreadConstraints"}
    assert {key: value for key, value in pod["spec"].items() if key not in own} == {
        key: value for key, value in deployed.items() if key not in own
    }
    for obj in rendered:
        found = obj.get("spec", {}).get("selector", {}) if obj["kind"] != "NetworkPolicy" else obj["spec"]["podSelector"]
        assert not isinstance(found, dict) or not found or not _selects(found, pod["metadata"]["labels"]), obj


def test_an_operator_that_nobody_wants_is_not_tested(helm: Path) -> None:
    assert not [obj for obj in _parsed(_template(helm, Case({"replicas": 0})).stdout) if _is_test(obj)]


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with its notes among what it renders: helm shows them after an installation only."""
    chart = tmp_path_factory.mktemp("noted") / "certroll"
    shutil.copytree(_CHART, chart)
    (chart / "templates" / "noted.yaml").write_text('text: {{ include (print .Template.BasePath "/NOTES.txt") . | quote }}\n')
    return chart


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ["all namespaces", "helm test certroll --namespace certroll-system", "namespace: shop}", "name: web-tls}"]),
        ({"scope": {"secrets": "named", "namedSecrets": {"bank": ["card-tls"]}}}, ["namespace: bank}", "name: card-tls}"]),
        ({"scope": {"namespaces": ["bank"]}, "replicas": 0}, ["the namespaces bank", "replicas is 0", "namespace: bank}"]),
        ({"controlPlane": _ON}, ["nodeAgent.enabled is false"]),
        ({"nodeAgent": _ON}, ["controlPlane.enabled is false"]),
        ({"admissionPolicy": {"enabled": False}}, ["admissionPolicy.enabled is false"]),
    ],
)
def test_notes_say_what_to_do_next(helm: Path, noted: Path, values: Object, words: list[str]) -> None:
    [notes] = [obj["text"] for obj in _parsed(_template(helm, Case(values), chart=noted).stdout) if "text" in obj]
    assert all(each in notes for each in words), notes


def test_the_policy_of_the_notes_is_pasted_as_it_is(helm: Path, noted: Path, tmp_path: Path) -> None:
    """Into a shell, which ends a here-document at a line that is EOF and nothing else."""
    [notes] = [obj["text"] for obj in _parsed(_template(helm, Case(), chart=noted).stdout) if "text" in obj]
    [block] = [each for each in notes.split("\n\n") if "EOF" in each]
    (tmp_path / "kubectl").write_text("#!/bin/sh\ncat\n")
    (tmp_path / "kubectl").chmod(0o755)
    done = subprocess.run(["bash", "-c", block], env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "EOF" not in done.stdout
    assert yaml.safe_load(done.stdout)["metadata"] == {"name": "web", "namespace": "shop"}


def test_the_package_has_what_the_links_lead_to(helm: Path, tmp_path: Path) -> None:
    """The chart's files/ are links into this checkout; a package is read where there is none."""
    _run([helm, "package", _CHART, "--destination", tmp_path])
    [package] = tmp_path.glob("*.tgz")
    case = _CASES["everything"]
    assert _parsed(_template(helm, case, chart=package).stdout) == _parsed(_template(helm, case).stdout)
    assert _run([helm, "show", "readme", package]).stdout.strip() == (_CHART / "README.md").read_text().strip()
    assert package.stat().st_size < 200_000  # a release, which has the chart in it, must fit into a Secret of 1 MiB


def test_versions_are_those_of_the_project() -> None:
    chart = yaml.safe_load((_CHART / "Chart.yaml").read_text())
    version = re.search(r"project\(certroll VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert version and chart["version"] == chart["appVersion"] == version[1]


# --- on an API server


def _ensure_namespaces(plane: ControlPlane, *names: str) -> None:
    for name in names:
        if plane.kubectl("get", "namespace", name, check=False).returncode:
            plane.kubectl("create", "namespace", name)


def _without_its_account(obj: Object) -> Object:
    """A dry run makes no ServiceAccount, and there is no pod without: a Job's may have one that is not there yet."""
    if obj["kind"] != "Pod":
        return obj
    template = {"metadata": {"labels": obj["metadata"]["labels"]}, "spec": obj["spec"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": obj["metadata"], "spec": {"template": template}}


@pytest.mark.parametrize("name", _CASES)
def test_an_api_server_takes_the_chart(control_plane: ControlPlane, helm: Path, name: str) -> None:
    """By a dry run, which validates each field, unknown ones too."""
    case = _CASES[name]
    rendered = [_without_its_account(obj) for obj in _parsed(_template(helm, case).stdout) if obj["kind"] not in _MONITORS]
    _ensure_namespaces(control_plane, case.namespace, "shop", "bank", "certroll-nodes")
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    control_plane.kubectl(*words, input=yaml.safe_dump_all(rendered))


_FIELD = "Pending"  # a column of the CRD of reports


def _older(folder: Path) -> Path:
    """The chart as one before that column was, for an upgrade from it."""
    chart = folder / "certroll"
    shutil.copytree(_CHART, chart)  # with what its links lead to
    crd = chart / "files" / "crds" / "certroll.dev_nodecertificatereports.yaml"
    text = crd.read_text()
    old = re.sub(rf"    - name: {_FIELD}\n(      .*\n)+", "", text)
    assert old != text
    crd.write_text(old)
    return chart


def _columns(plane: ControlPlane) -> list[str]:
    crd = plane.get("crd", "nodecertificatereports.certroll.dev")
    return [column["name"] for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]]


def test_an_upgrade_takes_the_crds_along_and_an_uninstall_keeps_them(control_plane: ControlPlane, helm: Path, tmp_path: Path) -> None:
    """The installation takes over the CRDs that are there, as of one that comes from the manifests."""
    namespace = "certroll-chart"
    try:
        where = ("--namespace", namespace)
        old = _older(tmp_path)
        control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(old / "files" / "crds"))
        assert _FIELD not in _columns(control_plane)
        # No node runs here, so nothing is waited for.
        control_plane.run(helm, "install", "certroll", old, *where, "--create-namespace", "--take-ownership")
        notes = control_plane.run(helm, "get", "notes", "certroll", *where).stdout
        policy = notes.partition("<<'EOF'\n")[2].partition("EOF")[0].replace("namespace: shop", f"namespace: {namespace}")
        control_plane.kubectl("apply", "--validate=strict", "-f", "-", input=policy)
        control_plane.run(helm, "upgrade", "certroll", _CHART, *where)
        assert _FIELD in _columns(control_plane)
        control_plane.run(helm, "upgrade", "certroll", _CHART, *where, "--set", "replicas=1", "--set", "crds.install=false")
        assert control_plane.get("deployment", _OPERATOR, "-n", namespace)["spec"]["replicas"] == 1
        control_plane.run(helm, "uninstall", "certroll", *where)
        assert control_plane.get("certrotationpolicy", "web", "-n", namespace)["spec"]["mode"] == "Plan"
        assert _FIELD in _columns(control_plane)
        left = control_plane.get("clusterroles,clusterrolebindings,validatingadmissionpolicies", "-l", "app.kubernetes.io/instance=certroll")
        assert not left["items"]
    finally:
        control_plane.run(helm, "uninstall", "certroll", "--ignore-not-found", "--namespace", namespace, check=False)
        control_plane.kubectl("delete", "namespace", namespace, "--wait=false", check=False)
        control_plane.apply_crds()
