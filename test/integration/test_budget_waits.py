"""PodDisruptionBudgets as the operator sees them: what holds a restart is told, and who waits is woken by what ends the wait.

The disruption controller counts; pods run on paper (paper_pods.py), so they are ready as soon as they are there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, wait_until
from operators import LEASES, RULES, Operator, account
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

Object = dict[str, Any]
_LABELS = {"under": "budget"}
_WITHIN = 40.0  # seconds, on a busy machine; by its own clock nothing would happen in a minute
_NO_BUDGETS = [{"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]}, {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["*"]}]


class Pair(Lane):
    """A Deployment of two that does not surge: its rollout takes one away."""

    def create(self) -> None:
        super().create()
        template = {"metadata": {"labels": _LABELS}}
        strategy = {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
        self.api.merge("deployments", self.namespace, self.name, {"spec": {"replicas": 2, "strategy": strategy, "template": template}})
        wait_until(f"the pods of {self}", self.is_whole, 60)
        self.made = self.restarts()  # these were ours

    def is_whole(self) -> bool:
        deployment = self._deployment()
        status = deployment.get("status", {})
        seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
        return seen and status.get("replicas") == status.get("updatedReplicas") == status.get("availableReplicas") == 2

    def restarted(self) -> int:
        return self.restarts() - self.made

    def consumer(self) -> Object:
        policy = self.api.get("certrotationpolicies", self.namespace, self.name)
        consumers = policy.get("status", {}).get("consumers", [{}])
        found: Object = consumers[0]
        return found

    def wait_blocked(self, reason: str) -> str:
        """The text for people that goes with it."""
        wait_until(f"{self} to be blocked by {reason}: {self.consumer()}", lambda: self.consumer().get("blockedReason") == reason, _WITHIN)
        return str(self.consumer()["blockedBy"])

    def wait_restarted(self) -> None:
        wait_until(f"{self} to be restarted: {self.consumer()}", lambda: self.restarted() == 1, _WITHIN)


def _set_budget(lane: Pair, least: int) -> None:
    """All pods of the namespace with the label; known when its status says so."""
    written = lane.api.apply("poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": lane.namespace},
        "spec": {"minAvailable": least, "selector": {"matchLabels": _LABELS}},
    })  # fmt: skip
    generation = written["metadata"]["generation"]

    def is_known() -> bool:
        status = lane.api.get("poddisruptionbudgets", lane.namespace, "web").get("status", {})
        return status.get("observedGeneration", 0) >= generation and status.get("currentHealthy", 0) == status.get("expectedPods", -1)

    wait_until("the budget's status", is_known, 60)


@pytest.fixture
def lane(control_plane: ControlPlane, namespace: str) -> Iterator[Pair]:
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        pair = Pair(api, namespace, "web", leaves(2))
        pair.create()
        yield pair


@contextmanager
def _operator(plane: ControlPlane, namespace: str, folder: Path, kubeconfig: Path | None = None) -> Iterator[Operator]:
    operator = Operator(plane, namespace, "operator", kubeconfig or plane.kubeconfig, folder, "--leader-elect=false")
    try:
        yield operator
    finally:
        operator.end()


def test_a_budget_that_allows_nothing_holds_and_is_told_until_it_allows(control_plane: ControlPlane, lane: Pair, tmp_path: Path) -> None:
    _set_budget(lane, 2)
    with _operator(control_plane, lane.namespace, tmp_path):
        lane.wait_settled()
        lane.change()
        assert "PodDisruptionBudget 'web' (minAvailable 2)" in lane.wait_blocked("Budget")
        assert lane.restarted() == 0
        began = time.monotonic()
        _set_budget(lane, 1)
        lane.wait_restarted()
        print(f"restarted {time.monotonic() - began:.2f} s after the budget was changed")
        lane.wait_settled()
        assert lane.restarted() == 1


def test_a_budget_that_is_taken_away_holds_nobody(control_plane: ControlPlane, lane: Pair, tmp_path: Path) -> None:
    _set_budget(lane, 2)
    with _operator(control_plane, lane.namespace, tmp_path):
        lane.wait_settled()
        lane.change()
        lane.wait_blocked("Budget")
        lane.api.delete("poddisruptionbudgets", lane.namespace, "web")
        lane.wait_restarted()
        lane.wait_settled()


def test_the_end_of_somebody_elses_rollout_lets_the_next_begin(control_plane: ControlPlane, lane: Pair, tmp_path: Path) -> None:
    """Both are under one budget, which allows one pod to go: the other's rollout is begun by hand, and stands still in its middle."""
    other = Pair(lane.api, lane.namespace, "other", leaves(1))
    other.create()
    _set_budget(lane, 3)
    with _operator(control_plane, lane.namespace, tmp_path):
        lane.wait_settled()
        other.wait_settled()
        _hold(other)
        lane.change()
        lane.wait_blocked("BudgetWait")
        assert lane.restarted() == 0
        _let_go(other)
        lane.wait_restarted()
        lane.wait_settled()


def _hold(lane: Pair) -> None:
    """A new template, of which no pod gets available for a while."""
    lane.api.merge("deployments", lane.namespace, lane.name, _template({"minReadySeconds": 500}, "held"))
    wait_until("the rollout to have begun", lambda: not lane.is_whole(), 60)


def _let_go(lane: Pair) -> None:
    lane.api.merge("deployments", lane.namespace, lane.name, {"spec": {"minReadySeconds": 0}})


def _template(spec: Object, value: str) -> Object:
    return {"spec": {**spec, "template": {"metadata": {"annotations": {"e2e.certroll.dev/rolled": value}}}}}


def test_without_the_right_to_see_budgets_only_what_takes_nothing_away_is_done(
    control_plane: ControlPlane, lane: Pair, namespace: str, tmp_path: Path
) -> None:
    surging = Lane(lane.api, namespace, "surging", leaves(2))
    surging.create()
    kubeconfig = account(control_plane, namespace, "blind", [*_NO_BUDGETS, LEASES], tmp_path)
    with _operator(control_plane, namespace, tmp_path, kubeconfig):
        lane.wait_settled()
        surging.rotate()
        assert surging.complaint() is None
        lane.change()
        assert "list and watch" in lane.wait_blocked("Budget") and lane.restarted() == 0
    control_plane.kubectl("-n", namespace, "patch", "role", "blind", "--type=json", "-p", _granted())
    with _operator(control_plane, namespace, tmp_path, kubeconfig):
        lane.wait_restarted()
        lane.wait_settled()


def _granted() -> str:
    return json.dumps([{"op": "add", "path": "/rules/-", "value": rule} for rule in RULES])
