"""A restart by evictions, against the real Eviction API: pod after pod within the budget, by an operator that may change no workload,
and is killed at each step. The disruption controller counts; pods run on paper (paper_pods.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, wait_until
from operators import LEASES, Operator, account
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

Object = dict[str, Any]
_PODS = 3
_CACHE = 95.0  # seconds after a change no kubelet has the Secret of before
_LOST = 120.0  # seconds for which a budget counts a pod as gone whose eviction broke off in the API server
_RULES: list[Object] = [
    {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods", "secrets", "configmaps"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/eviction", "events", "secrets"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    LEASES,
]


class Evicted(Lane):
    """A Deployment of three under a budget that lets one go, and whose policy evicts."""

    def create(self) -> None:
        super().create()
        self.api.merge("deployments", self.namespace, self.name, {"spec": {"replicas": _PODS}})
        self.api.merge("certrotationpolicies", self.namespace, self.name, {"spec": {"restart": {"method": "Evict", "breaker": {"within": "1h"}}}})
        self.api.apply("poddisruptionbudgets", {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": self.namespace},
            "spec": {"minAvailable": _PODS - 1, "selector": {"matchLabels": {"app": self.name}}},
        })  # fmt: skip
        wait_until(f"the pods of {self}", lambda: len(self.ready()) == _PODS, 60)
        self.made = self.restarts()  # by the lines above

    def ready(self) -> set[str]:
        """By their UIDs."""
        pods = [each for each in self.api.list("pods", self.namespace) if "deletionTimestamp" not in each["metadata"]]
        return {each["metadata"]["uid"] for each in pods if _is_ready(each)}

    def consumer(self) -> Object:
        policy = self.api.get("certrotationpolicies", self.namespace, self.name)
        return policy.get("status", {}).get("consumers", [{}])[0]


def _is_ready(pod: Object) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", []))


@pytest.fixture
def lane(control_plane: ControlPlane, namespace: str) -> Iterator[Evicted]:
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        lane = Evicted(api, namespace, "web", leaves(2))
        lane.create()
        yield lane


def test_pod_after_pod_within_the_budget_whoever_is_killed(control_plane: ControlPlane, lane: Evicted, tmp_path: Path) -> None:
    kubeconfig = account(control_plane, lane.namespace, "evictor", _RULES, tmp_path)
    number = 0

    def start() -> Operator:
        nonlocal number
        number += 1
        return Operator(control_plane, lane.namespace, f"evictor-{number}", kubeconfig, tmp_path, "--leader-elect=false")

    operator = start()
    try:
        lane.wait_settled()
        old = lane.ready()
        lane.change()
        # Nothing can be seen of these pods, so the kubelets' caches are waited for: it is told, and nobody touched.
        wait_until("the wait to be told", lambda: lane.consumer().get("blockedReason") == "Kubelet", 30)
        assert lane.ready() == old

        seen, fewest, told = set(old), _PODS, ""
        end = time.monotonic() + _CACHE + _PODS * _LOST + 60
        while not lane.is_settled():
            assert time.monotonic() < end, lane.consumer()
            ready = lane.ready()
            seen |= ready
            fewest = min(fewest, len(ready))
            evicting = lane.consumer().get("evicting", "")
            if evicting != told:  # on record, and perhaps done
                told = evicting
                operator.end()
                operator = start()
            time.sleep(0.05)
    finally:
        operator.end()
    assert 2 < number <= 1 + _PODS, "killed more than once; two of them may have gone between two looks"
    assert fewest >= _PODS - 1
    seen |= lane.ready()  # the last may have come between two looks
    assert lane.ready() == seen - old and len(seen) == 2 * _PODS, "each went once"
    assert lane.restarts() == lane.made, "no workload was changed"
    assert len(lane.consumer()["restarts"]) == 1, "for the breaker it is one"
    assert lane.consumer()["state"] == "Converged"
