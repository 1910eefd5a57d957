"""The kustomize components of manifests/shutdown-manager, and their examples, as the API server takes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane import ROOT, ControlPlane

Object = dict[str, Any]
_KINDS = ("Deployment", "StatefulSet", "DaemonSet")
_ANNOTATION = "certroll.dev/shutdown-manager"
_HOOKS = {"httpGet": {"path": "/shutdown", "port": 1}}, {"exec": {"command": ["sleep", "5"]}}, {"sleep": {"seconds": 5}}, None


def _workload(kind: str, name: str, container: str, hook: Object | None = None, asks: str = "") -> Object:
    main: Object = {"name": container, "image": "example.org/proxy:1", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}
    if hook:
        main["lifecycle"] = {"preStop": hook}
    first = {"name": "first", "image": "example.org/first:1"}
    pod = {"containers": [main], "initContainers": [first], "volumes": [{"name": "own", "emptyDir": {}}], "terminationGracePeriodSeconds": 7}
    spec: Object = {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    meta = {"name": name, "annotations": {_ANNOTATION: asks} if asks else {}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


def _pods(plane: ControlPlane, namespace: str, folder: Path, given: list[Object], component: str) -> dict[tuple[str, str], Object]:
    """Of what the API server makes of them, by kind and name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # Every second one as JSON, with which comments in a component's patches do not go together.
    texts = [json.dumps(obj) if number % 2 else yaml.safe_dump(obj) for number, obj in enumerate(given)]
    (folder / "workloads.yaml").write_text("\n---\n".join(texts))
    kustomization = {"resources": ["workloads.yaml"], "components": [f"../shutdown-manager/{component}"]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return {(obj["kind"], obj["metadata"]["name"]): obj["spec"]["template"]["spec"] for obj in _applied(plane, namespace, folder)}


def _applied(plane: ControlPlane, namespace: str, folder: Path) -> list[Object]:
    built = plane.kubectl("kustomize", str(folder)).stdout
    words = ("-n", namespace, "apply", "--server-side", "--dry-run=server", "-o", "yaml", "-f", "-")
    found = plane.kubectl(*words, input=built).stdout
    return [item for obj in yaml.safe_load_all(found) for item in obj.get("items", [obj])]


def _of(pod: Object, group: str, name: str) -> Object:
    [found] = [container for container in pod[group] if container["name"] == name]
    container: Object = found
    return container


def _grace(words: list[str]) -> str:
    [found] = [word.partition("=")[2] for word in words if word.startswith("--termination-grace-period=")]
    return found


def _assert_locked_down(container: Object) -> None:
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]} and security["runAsNonRoot"] and security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"] and security["seccompProfile"] == {"type": "RuntimeDefault"}


def test_exec_brings_the_program_and_a_hook_in_the_place_of_any_other(control_plane: ControlPlane, namespace: str, copies: Path) -> None:
    given = [_workload(kind, f"joined-{n}", "envoy", hook, "exec") for kind in _KINDS for n, hook in enumerate(_HOOKS)]
    for (kind, name), pod in _pods(control_plane, namespace, copies / "built", given, "exec").items():
        install, *others = pod["initContainers"]
        assert install["name"] == "certroll-shutdown-manager-install" and [each["name"] for each in others] == ["first"], (kind, name)
        assert "restartPolicy" not in install
        _assert_locked_down(install)
        [main] = pod["containers"]
        hook = main["lifecycle"]["preStop"]
        assert set(hook) == {"exec"}
        program, command, *flags = hook["exec"]["command"]
        assert command == "shutdown"
        # The program is where the hook looks for it, which cannot change it; it was checked with the flags of the hook.
        [mount] = [each for each in main["volumeMounts"] if program.startswith(each["mountPath"])]
        assert mount["readOnly"] and install["volumeMounts"][0]["name"] == mount["name"]
        assert install["args"] == ["install", f"--to={mount['mountPath']}", "--", *flags]
        assert {each["name"] for each in main["volumeMounts"]} == {"own", mount["name"]}
        [volume] = [each for each in pod["volumes"] if each["name"] == mount["name"]]
        assert volume["emptyDir"]["medium"] == "Memory" and "sizeLimit" in volume["emptyDir"]
        assert _grace(flags) == f"{pod['terminationGracePeriodSeconds']}s"


def test_sidecar_serves_and_the_hook_asks_it(control_plane: ControlPlane, namespace: str, copies: Path) -> None:
    given = [_workload(kind, f"joined-{n}", "envoy", hook, "sidecar") for kind in _KINDS for n, hook in enumerate(_HOOKS)]
    for (kind, name), pod in _pods(control_plane, namespace, copies / "built", given, "sidecar").items():
        sidecar, *others = pod["initContainers"]
        assert [each["name"] for each in others] == ["first"], (kind, name)
        assert sidecar["restartPolicy"] == "Always"  # it ends after the proxy, which asks it
        assert "readinessProbe" not in sidecar and sidecar["livenessProbe"]["httpGet"]["path"] == "/healthz"
        _assert_locked_down(sidecar)
        hook = pod["containers"][0]["lifecycle"]["preStop"]
        assert set(hook) == {"httpGet"} and hook["httpGet"]["path"] == "/shutdown"
        assert [port["containerPort"] for port in sidecar["ports"]] == [hook["httpGet"]["port"]]
        assert sidecar["args"][0] == "serve" and _grace(sidecar["args"]) == f"{pod['terminationGracePeriodSeconds']}s"


@pytest.mark.parametrize(("component", "asks", "added"), [("exec", "install", "certroll-shutdown-manager-install"), ("sidecar", "serve", "certroll-shutdown-manager")])
def test_of_other_proxies_the_containers_are_left_alone(
    control_plane: ControlPlane, namespace: str, copies: Path, component: str, asks: str, added: str
) -> None:
    given = [_workload(kind, "joined", "haproxy", _HOOKS[1], asks) for kind in _KINDS] + [_workload(kind, "alone", "envoy", _HOOKS[1]) for kind in _KINDS]
    for (_, name), pod in _pods(control_plane, namespace, copies / "built", given, component).items():
        wanted = [added, "first"] if name == "joined" else ["first"]
        assert [each["name"] for each in pod["initContainers"]] == wanted
        assert pod["terminationGracePeriodSeconds"] == 7
        assert pod["containers"][0]["lifecycle"]["preStop"] == _HOOKS[1] and len(pod["containers"][0]["volumeMounts"]) == 1


def test_where_there_is_no_envoy_the_api_server_refuses(control_plane: ControlPlane, namespace: str, copies: Path) -> None:
    """Better than a drain that never comes."""
    with pytest.raises(AssertionError, match=r'containers\[\d\]\.image: Required value'):
        _pods(control_plane, namespace, copies / "built", [_workload("Deployment", "joined", "haproxy", None, "exec")], "exec")


@pytest.mark.parametrize("example", ["haproxy", "nginx"])
def test_the_examples_check_what_their_hooks_say(control_plane: ControlPlane, namespace: str, copies: Path, example: str) -> None:
    [pod] = [
        obj["spec"]["template"]["spec"]
        for obj in _applied(control_plane, namespace, copies / "shutdown-manager" / "examples" / example)
        if obj["kind"] == "Deployment"
    ]
    install = _of(pod, "initContainers", "certroll-shutdown-manager-install")
    program, command, *flags = _of(pod, "containers", example)["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, command) == ("/certroll/certroll-shutdown-manager", "shutdown")
    assert install["args"] == ["install", "--to=/certroll", "--", *flags] and f"--proxy={example}" in flags
    assert _grace(flags) == f"{pod['terminationGracePeriodSeconds']}s"
