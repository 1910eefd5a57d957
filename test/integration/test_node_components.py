"""The node agents' manifests as kustomize builds them: what each may do on its host and in the API, alone and with each of
the components."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ROOT, ControlPlane

Object = dict[str, Any]
PLANE, WORKERS = "certroll-node-agent-control-plane", "certroll-node-agent-workers"
COMPONENTS = ("count-tokens", "kubelet-restart", "pod-monitor", "without-node-claim")
# What is of the kubelet's own, or of others, in its folder.
COVERED = {f"/var/lib/kubelet/{name}" for name in ("pods", "plugins", "plugins_registry", "pod-resources", "device-plugins")}
HOST = {"kubernetes": "/etc/kubernetes", "kubelet": "/var/lib/kubelet", "proc": "/proc"}


def _built(plane: ControlPlane, copies: Path, *components: str, parts: tuple[str, ...] = (".",)) -> list[Object]:
    folder = copies / "built"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    kustomization = {
        "resources": [f"../node-agent/{part}".removesuffix("/.") for part in parts],
        "components": [f"../node-agent/{name}" for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return [obj for obj in yaml.safe_load_all(plane.kubectl("kustomize", str(folder)).stdout) if obj]


def _named(built: list[Object], kind: str, name: str) -> Object:
    [found] = [obj for obj in built if obj["kind"] == kind and obj["metadata"]["name"] == name]
    return found


def _pod(built: list[Object], name: str) -> Object:
    pod: Object = _named(built, "DaemonSet", name)["spec"]["template"]["spec"]
    return pod


def _container(built: list[Object], name: str) -> Object:
    [container] = _pod(built, name)["containers"]
    assert "initContainers" not in _pod(built, name)
    result: Object = container
    return result


def _mounts(built: list[Object], name: str) -> dict[str, Object]:
    """By their paths."""
    return {mount["mountPath"]: mount for mount in _container(built, name)["volumeMounts"]}


def _host_paths(built: list[Object], name: str) -> dict[str, str]:
    return {volume["name"]: volume["hostPath"]["path"] for volume in _pod(built, name)["volumes"] if "hostPath" in volume}


def _capabilities(built: list[Object], name: str) -> set[str]:
    security = _container(built, name)["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert security["readOnlyRootFilesystem"] and security["allowPrivilegeEscalation"] is False
    assert not security.get("privileged")
    return set(security["capabilities"].get("add", []))


def _shares(built: list[Object], name: str) -> set[str]:
    return {field for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace") if _pod(built, name).get(field)}


def _rules(built: list[Object], account: str) -> set[tuple[str, str, str]]:
    """What is granted to it, wherever: the kind of role, the resource, the verb."""
    found = set()
    for binding in built:
        subjects = binding.get("subjects", [])
        if binding["kind"].endswith("RoleBinding") and any(subject["name"] == account for subject in subjects):
            assert len(subjects) == 1
            role = _named(built, binding["roleRef"]["kind"], binding["roleRef"]["name"])
            for rule in role["rules"]:
                found |= {(role["kind"], resource, verb) for resource, verb in itertools.product(rule["resources"], rule["verbs"])}
    return found


REPORTS = {
    *(("ClusterRole", "nodecertificatereports", verb) for verb in ("get", "list", "watch", "create")),
    ("ClusterRole", "nodecertificatereports/status", "patch"), ("ClusterRole", "nodes", "get"),
}  # fmt: skip
TURNS = {("Role", "leases", verb) for verb in ("get", "patch", "create")}


def test_a_worker_s_agent_has_nothing_of_its_host_to_write_to(control_plane: ControlPlane, copies: Path) -> None:
    built = _built(control_plane, copies)
    mounts = _mounts(built, WORKERS)
    assert _host_paths(built, WORKERS) == HOST
    assert all(mount["readOnly"] for mount in mounts.values())
    # A read-only mount leaves what is mounted below it writable, unless it is recursive or that is covered.
    for mount in mounts.values():
        assert mount.get("recursiveReadOnly") == "IfPossible" or mount["name"] == "covered" or mount["mountPath"] == HOST["kubelet"]
    assert {path for path, mount in mounts.items() if mount["name"] == "covered"} == COVERED
    assert [volume for volume in _pod(built, WORKERS)["volumes"] if volume["name"] == "covered"] == [{"name": "covered", "emptyDir": {}}]
    assert _capabilities(built, WORKERS) == set() and _shares(built, WORKERS) == {"hostNetwork"}
    assert _container(built, WORKERS)["args"] == ["--allow-restart=", "--proc=/host/proc", "--count-tokens=false"]
    assert _rules(built, WORKERS) == REPORTS


def test_a_control_plane_s_agent_has_what_restarts_of_static_pods_need(control_plane: ControlPlane, copies: Path) -> None:
    built = _built(control_plane, copies)
    mounts = _mounts(built, PLANE)
    assert _host_paths(built, PLANE) == HOST
    assert {path for path, mount in mounts.items() if not mount.get("readOnly")} == {"/etc/kubernetes"}
    assert _capabilities(built, PLANE) == {"DAC_READ_SEARCH"} and _shares(built, PLANE) == {"hostNetwork"}
    assert "kubelet" not in _container(built, PLANE)["args"][0]
    assert _rules(built, PLANE) == REPORTS | TURNS


def test_each_node_has_one_of_the_two(control_plane: ControlPlane, copies: Path) -> None:
    built = _built(control_plane, copies)
    terms, labels = {}, {}
    for name in (PLANE, WORKERS):
        affinity = _pod(built, name)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [[expression]] = [term["matchExpressions"] for term in affinity["nodeSelectorTerms"]]
        terms[name] = expression
        labels[name] = _named(built, "DaemonSet", name)["spec"]["selector"]["matchLabels"]
        assert _pod(built, name)["serviceAccountName"] == name
        assert _pod(built, name)["tolerations"] == [{"operator": "Exists"}]
    key = "node-role.kubernetes.io/control-plane"
    assert terms == {PLANE: {"key": key, "operator": "Exists"}, WORKERS: {"key": key, "operator": "DoesNotExist"}}
    assert labels[PLANE] != labels[WORKERS]


def test_tokens_are_read_by_workers_only_with_their_component(control_plane: ControlPlane, copies: Path) -> None:
    built = _built(control_plane, copies, "count-tokens")
    mounts = _mounts(built, WORKERS)
    assert {path for path, mount in mounts.items() if mount["name"] == "covered"} == COVERED - {"/var/lib/kubelet/pods"}
    assert mounts["/var/lib/kubelet"]["mountPropagation"] == "HostToContainer"
    assert _capabilities(built, WORKERS) == {"DAC_READ_SEARCH"} and _shares(built, WORKERS) == {"hostNetwork"}
    assert "--count-tokens=true" in _container(built, WORKERS)["args"]
    assert _rules(built, WORKERS) == REPORTS


ROOT_OF_HOST = {"SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE"}


@pytest.mark.parametrize(
    ("component", "whose"),
    [("kubelet-restart", {PLANE, WORKERS}), ("kubelet-restart/control-plane", {PLANE}), ("kubelet-restart/workers", {WORKERS})],
)
def test_kubelets_are_restarted_by_those_whose_component_it_is(
    control_plane: ControlPlane, copies: Path, component: str, whose: set[str]
) -> None:
    without = _built(control_plane, copies)
    built = _built(control_plane, copies, component)
    for name in (PLANE, WORKERS):
        if name not in whose:
            assert _named(built, "DaemonSet", name) == _named(without, "DaemonSet", name)
            assert _rules(built, name) == _rules(without, name)
            continue
        assert _capabilities(built, name) == _capabilities(without, name) | ROOT_OF_HOST
        assert _shares(built, name) == {"hostNetwork", "hostPID"}
        assert _mounts(built, name) == _mounts(without, name)
        first, *others = _container(built, name)["args"]
        before, *rest = _container(without, name)["args"]
        assert first == (f"{before},kubelet" if name == PLANE else f"{before}kubelet")
        assert others[:-1] == rest and others[-1].startswith("--kubelet-restart-command=nsenter --target=1 --mount ")
        assert _rules(built, name) == REPORTS | TURNS


def test_only_its_component_serves_metrics_beyond_the_node(control_plane: ControlPlane, copies: Path) -> None:
    """By default they are where the probes are, at 127.0.0.1."""
    built, without = _built(control_plane, copies, "pod-monitor"), _built(control_plane, copies)
    [monitor] = [obj for obj in built if obj["kind"] == "PodMonitor"]
    [labels, either] = [monitor["spec"]["selector"][how] for how in ("matchLabels", "matchExpressions")]
    for name in (PLANE, WORKERS):
        container, before = _container(built, name), _container(without, name)
        assert container["args"] == [*before["args"], "--metrics-bind-address=$(HOST_IP):9952", "--health-probe-bind-address=127.0.0.1:9951"]
        assert "ports" not in before and [(port["name"], port["containerPort"]) for port in container["ports"]] == [("metrics", 9952)]
        assert {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}} in container["env"]
        for probe in ("livenessProbe", "readinessProbe"):
            assert (container[probe]["httpGet"]["host"], container[probe]["httpGet"]["port"]) == ("127.0.0.1", 9951)
        of_pods = _named(built, "DaemonSet", name)["spec"]["template"]["metadata"]["labels"]
        assert labels.items() <= of_pods.items() and of_pods[either[0]["key"]] in either[0]["values"]
    assert [endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]] == ["metrics"]


def test_only_its_component_lets_the_policy_warn(control_plane: ControlPlane, copies: Path) -> None:
    def actions(*components: str) -> Any:
        built = _built(control_plane, copies, *components)
        return _named(built, "ValidatingAdmissionPolicyBinding", "certroll-node-agent")["spec"]["validationActions"]

    assert actions() == ["Deny"] == actions("count-tokens", "kubelet-restart")
    assert actions("without-node-claim") == ["Warn", "Audit"]


def test_components_go_together_in_any_order(control_plane: ControlPlane, copies: Path) -> None:
    """They patch arguments by their places."""
    for components in itertools.permutations(COMPONENTS):
        built = _built(control_plane, copies, *components)
        args = _container(built, WORKERS)["args"]
        assert args[:3] == ["--allow-restart=kubelet", "--proc=/host/proc", "--count-tokens=true"] and len(args) == 6
        assert _capabilities(built, WORKERS) == ROOT_OF_HOST | {"DAC_READ_SEARCH"} == _capabilities(built, PLANE)


@pytest.mark.parametrize("components", [(), *((name,) for name in COMPONENTS), COMPONENTS])
def test_the_api_server_takes_them(control_plane: ControlPlane, copies: Path, components: tuple[str, ...]) -> None:
    """All but what has to be in a namespace that is not there yet, and that in one that is."""
    for obj in _built(control_plane, copies, *components):
        if obj["kind"] == "PodMonitor":  # of the Prometheus operator
            continue
        if obj["metadata"].get("namespace") == "certroll-nodes":
            obj["metadata"]["namespace"] = "kube-system"
        applied = control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", input=json.dumps(obj))
        assert "serverside-applied" in applied.stdout  # an unknown field would be an error


def test_where_the_control_plane_is_managed_workers_are_enough(control_plane: ControlPlane, copies: Path) -> None:
    built = _built(control_plane, copies, "kubelet-restart", parts=("base", "workers"))
    assert [obj["metadata"]["name"] for obj in built if obj["kind"] == "DaemonSet"] == [WORKERS]
    assert _rules(built, WORKERS) == REPORTS | TURNS
