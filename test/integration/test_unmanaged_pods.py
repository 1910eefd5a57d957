"""A pod that no consumer stands for, and that is older than a change of its Secret, takes the summary's green away: it belongs to no
workload that can be seen, or to one whose template does not use the Secret any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manifests
from control_plane import ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

_NAME = "lane"
_KINDS = {"apiGroups": ["networking.k8s.io", "gateway.networking.k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
_ROLLOUTS = {"apiGroups": ["argoproj.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
_HASH = {"rollouts-pod-template-hash": "abc"}
_POD = {
    "containers": [{"name": "main", "image": manifests.UNKNOWN, "volumeMounts": [{"name": "tls", "mountPath": "/tls"}]}],
    "volumes": [{"name": "tls", "secret": {"secretName": _NAME}}],
    "terminationGracePeriodSeconds": 0,
}

pytestmark = pytest.mark.timeout(300)


def _by_hand(namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": "alone"}, "spec": _POD}


def _of_a_rollout(namespace: str) -> dict[str, Any]:
    """What Argo's controller makes for a Rollout."""
    template = {"metadata": {"labels": _HASH}, "spec": _POD}
    spec = {"replicas": 1, "selector": {"matchLabels": _HASH}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"namespace": namespace, "name": "alone-abc", "labels": _HASH}, "spec": spec}


@pytest.mark.parametrize(
    ("made", "rules"), [(_by_hand, [_ROLLOUTS]), (_of_a_rollout, [])], ids=["by hand", "of a Rollout that may not be listed"]
)
def test_it_is_told_until_it_is_gone(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, made: Callable[[str], dict[str, Any]], rules: list[dict[str, Any]]
) -> None:
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES, _KINDS, *rules], tmp_path)
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, _NAME, leaves(3))
        lane.create()
        api.merge("certrotationpolicies", namespace, _NAME, {"spec": {"consumers": [], "discover": {"enabled": True}}})
        alone = made(namespace)
        control_plane.create(alone)
        wait_until("its pod", lambda: [pod for pod in api.list("pods", namespace) if pod["metadata"]["name"].startswith("alone")])
        operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")

        def conditions() -> dict[str, tuple[str, str]]:
            status = api.get("certrotationpolicies", namespace, _NAME).get("status", {})
            return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", [])}

        # Without the right, what else of the kind there may be stays unknown.
        green = ("True", "Baseline") if rules else ("Unknown", "CannotDiscover")
        try:
            wait_until("it to be settled", lambda: conditions().get("Converged") == green)  # nothing has changed yet
            lane.rotate()
            wait_until("it to be told", lambda: conditions()["Degraded"] == ("True", "UnmanagedPod"))
            assert conditions()["Converged"] == ("False", "UnmanagedPod")
            secrets = api.get("certrotationpolicies", namespace, _NAME)["status"]["secrets"]
            assert [each["unknownReaders"] for each in secrets] == ["UnmanagedPod"]
            said = [each for each in api.list("events", namespace) if each["reason"] == "UnmanagedPod"]
            assert len(said) == 1 and "Pod alone" in said[0]["message"] and "uses Secret lane" in said[0]["message"]
            control_plane.kubectl("delete", alone["kind"], alone["metadata"]["name"], "-n", namespace, "--wait=false", "--grace-period=0", "--force")
            wait_until("it to be forgotten", lambda: conditions()["Converged"][0] == ("True" if rules else "Unknown"), 90)
            assert conditions()["Degraded"][0] == "False"
        finally:
            operator.end()


def test_pods_of_an_older_template_keep_a_change_pending(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """An upgrade to another Secret that comes to nothing, and is rolled back after the Secret has changed."""
    kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES, _KINDS, _ROLLOUTS], tmp_path)
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, _NAME, leaves(3))
        lane.create()
        api.merge("certrotationpolicies", namespace, _NAME, {"spec": {"consumers": [], "discover": {"enabled": True}}})
        operator = Operator(control_plane, namespace, "operator", kubeconfig, tmp_path, "--leader-elect=false", f"--operator-namespace={namespace}")

        def status() -> dict[str, Any]:
            return api.get("certrotationpolicies", namespace, _NAME).get("status", {})

        def converged() -> tuple[str, str]:
            return next(((each["status"], each["reason"]) for each in status().get("conditions", []) if each["type"] == "Converged"), ("", ""))

        def uses(secret: str, paused: bool) -> None:
            reference = {"secretKeyRef": {"name": secret, "key": "tls.crt"}}
            container = {"name": "c", "image": "example.com/unknown:1", "env": [{"name": "CERTIFICATE", "valueFrom": reference}]}
            api.merge("deployments", namespace, _NAME, {"spec": {"paused": paused, "template": {"spec": {"containers": [container]}}}})

        try:
            wait_until("it to be settled", lambda: converged()[0] == "True" and status()["consumers"])
            uses("other", paused=True)
            wait_until("it to be no consumer", lambda: not status().get("consumers"))
            lane.change()
            wait_until("the change to be seen", lambda: lane.secret_status().get("observedResourceVersion") == lane.version)
            assert lane.secret_status()["unknownReaders"] == "UncoveredPod" and not lane.is_settled()
            assert converged() == ("False", "RotationInProgress")
            uses(_NAME, paused=False)
            wait_until("it to be restarted", lambda: lane.is_settled() and converged()[0] == "True")
            assert lane.restarts() == 3  # two edits, and what certroll did
        finally:
            operator.end()
