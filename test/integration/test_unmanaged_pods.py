"""A pod that belongs to no workload, and is older than a change of its Secret, takes the summary's green away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import manifests
from control_plane import ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

_NAME = "lane"
_LISTS = {"apiGroups": ["networking.k8s.io", "gateway.networking.k8s.io", "argoproj.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}

pytestmark = pytest.mark.timeout(300)


def _bare_pod(namespace: str, name: str) -> dict[str, Any]:
    container = {"name": "main", "image": manifests.UNKNOWN, "volumeMounts": [{"name": "tls", "mountPath": "/tls"}]}
    spec = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": _NAME}}], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}, "spec": spec}


def test_a_bare_pod_is_told_until_it_is_gone(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES, _LISTS], tmp_path)
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, _NAME, leaves(3))
        lane.create()
        api.merge("certrotationpolicies", namespace, _NAME, {"spec": {"consumers": [], "discover": {"enabled": True}}})
        control_plane.create(_bare_pod(namespace, "by-hand"))
        operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")

        def conditions() -> dict[str, tuple[str, str]]:
            status = api.get("certrotationpolicies", namespace, _NAME).get("status", {})
            return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", [])}

        try:
            lane.wait_settled()
            assert conditions()["Converged"] == ("True", "Baseline")  # nothing has changed yet
            lane.rotate()
            wait_until("it to be told", lambda: conditions()["Degraded"] == ("True", "UnmanagedPod"))
            assert conditions()["Converged"] == ("False", "UnmanagedPod")
            said = [each for each in api.list("events", namespace) if each["reason"] == "UnmanagedPod"]
            assert len(said) == 1 and "Pod by-hand uses Secret lane" in said[0]["message"]
            control_plane.kubectl("delete", "pod", "by-hand", "-n", namespace, "--wait=false", "--grace-period=0", "--force")
            wait_until("it to be forgotten", lambda: conditions()["Converged"][0] == "True", 90)
            assert conditions()["Degraded"][0] == "False"
        finally:
            operator.end()
