"""A restart of pods that a shutdown manager holds back: the operator says so, waits for them where that matters, names who does not
end, and says the same after it was killed. Their nodes are of paper, so that a pod that is deleted stays until the test ends it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certroll_dev.demo.api import APIError
from control_plane import ControlPlane, wait_until
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

Object = dict[str, Any]
_NODE = "paper"
_PODS = 2
_TIMEOUT = "2m"
_GRACE = 180
_STILL = 2.5  # seconds; a status is written at most once a second
_STUCK = 30.0  # seconds behind its grace period a pod should have ended


class PaperNode(PaperPods):
    """A node that is there as long as this is, so that nobody takes its pods away."""

    def __enter__(self) -> PaperNode:
        self._api.apply("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE}})
        self._beat()
        super().__enter__()
        return self

    def __exit__(self, *what: object) -> None:
        super().__exit__(*what)
        self._api.delete("nodes", "", _NODE)

    def tick(self) -> bool:
        with contextlib.suppress(APIError):  # the next makes up for it
            self._beat()
        return super().tick()

    def _beat(self) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "Paper", "message": "", "lastHeartbeatTime": now, "lastTransitionTime": now}
        self._api.merge("nodes", "", _NODE, {"status": {"conditions": [ready]}}, subresource="status")


class Drained(Lane):
    """A Deployment whose pods have the hook. Another comes after it."""

    timeout = _TIMEOUT
    grace = _GRACE

    def create(self) -> None:
        super().create()
        template = self._deployment()["spec"]["template"]
        container = template["spec"]["containers"][0]
        command = ["/certroll/certroll-shutdown-manager", "shutdown", f"--drain-timeout={self.timeout}"]
        container["lifecycle"] = {"preStop": {"exec": {"command": command}}}
        spec = {
            "nodeName": _NODE, "terminationGracePeriodSeconds": self.grace, "containers": [container], "tolerations": [{"operator": "Exists"}],
        }  # fmt: skip
        strategy = {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
        change = {"spec": {"replicas": _PODS, "strategy": strategy, "template": {"spec": spec}}}
        self.api.merge("deployments", self.namespace, self.name, change)
        wait_until(f"the pods of {self}", self.is_rolled_out, 60)
        for pod in self.ending():  # of the template of before
            self.end(pod)
        self.made = self.restarts()

    def is_rolled_out(self) -> bool:
        deployment = self._deployment()
        status = deployment.get("status", {})
        wanted = deployment["spec"]["replicas"]
        observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
        return observed and all(status.get(each) == wanted for each in ("replicas", "updatedReplicas", "availableReplicas"))

    def ending(self) -> list[str]:
        pods = [each["metadata"] for each in self.api.list("pods", self.namespace, f"app={self.name}")]
        return sorted(each["name"] for each in pods if "deletionTimestamp" in each)

    def end(self, pod: str) -> None:
        """As its kubelet does when all its containers have ended."""
        self.api.request("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{pod}", {"gracePeriodSeconds": 0})

    def policy(self) -> Object:
        return self.api.get("certrotationpolicies", self.namespace, self.name)

    def consumer(self, name: str = "c") -> Object:
        consumers = self.policy().get("status", {}).get("consumers", [])
        return next((each for each in consumers if each["name"] == name), {})

    def says(self) -> str:
        return self.consumer().get("blockedBy", "")

    def condition(self, kind: str) -> Object:
        conditions = self.policy().get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    def events(self, reason: str) -> list[Object]:
        found = [each for each in self.api.list("events", self.namespace) if each["reason"] == reason]
        return [each for each in found if each["involvedObject"]["name"] == self.name]


@pytest.fixture
def lane(control_plane: ControlPlane, namespace: str) -> Iterator[Drained]:
    with direct(control_plane) as api, PaperNode(api, [namespace]):
        lane = Drained(api, namespace, "web", leaves(2))
        yield lane


def _start(plane: ControlPlane, lane: Drained, folder: Path, number: int = 1) -> Operator:
    return Operator(plane, lane.namespace, f"operator-{number}", plane.kubeconfig, folder, "--leader-elect=false")


def _wait_written(lane: Drained) -> None:
    """Until nothing of the policy's status is left to be written."""
    seen, since = "", 0.0

    def is_still() -> bool:
        nonlocal seen, since
        version = lane.policy()["metadata"]["resourceVersion"]
        if version != seen:
            seen, since = version, time.monotonic()
        return time.monotonic() - since > _STILL

    wait_until("the status to be written", is_still, 60)


def test_a_restart_is_over_when_the_old_pods_have_drained(control_plane: ControlPlane, lane: Drained, tmp_path: Path) -> None:
    lane.create()
    _add_next(lane)
    operator = _start(control_plane, lane, tmp_path)
    try:
        lane.wait_settled()
        lane.change()
        wait_until("the rollout", lambda: lane.is_rolled_out() and len(lane.ending()) == _PODS, 60)
        wait_until("it to be said", lambda: lane.says().startswith(f"drain: {_PODS} old pods drain their connections, "), 30)
        said = lane.says()
        name, _, rest = said.removeprefix(f"drain: {_PODS} old pods drain their connections, ").partition(" since ")
        assert name in lane.ending() and rest.endswith(f", at most {_TIMEOUT}"), said
        consumer = lane.consumer()
        assert consumer["state"] == "Restarting" and consumer["pods"]["inferred"] == _PODS, consumer
        assert lane.condition("Converged")["status"] == "False"
        wait_until("who comes after it to wait", lambda: lane.consumer("next").get("blockedReason") == "Order")
        wait_until("the metric", lambda: 'reason="Drain"} 1' in operator.get("/metrics")[1])
        _wait_written(lane)
        operator.end()
        version = lane.policy()["metadata"]["resourceVersion"]
        operator = _start(control_plane, lane, tmp_path, 2)
        wait_until("it to have planned", lambda: 'reason="Drain"} 1' in _metrics(operator))
        assert lane.says() == said
        assert lane.policy()["metadata"]["resourceVersion"] == version, "nothing is news"

        first, *others = lane.ending()
        lane.end(first)
        wait_until("one to be left", lambda: lane.says().startswith(f"drain: old pod {others[0]} drains its connections since "))
        assert not lane.is_settled()
        lane.end(others[0])
        wait_until("the next restart", lambda: lane.consumer("c")["state"] == "Converged" and _generation(lane, "next") == 2)
        lane.wait_settled()
        assert lane.restarts() == lane.made + 1
        assert not lane.events("DrainStuck")
    finally:
        operator.end()


def test_a_pod_that_does_not_end_is_named_and_held(control_plane: ControlPlane, lane: Drained, tmp_path: Path) -> None:
    lane.timeout, lane.grace = "1s", 2
    lane.create()
    operator = _start(control_plane, lane, tmp_path)
    try:
        lane.wait_settled()
        lane.change()
        wait_until("it to be named", lambda: lane.says().startswith("drain: stuck: old pod "), lane.grace + _STUCK + 60)
        assert lane.consumer()["state"] == "Blocked" and lane.condition("Blocked")["status"] == "True"
        assert not lane.is_settled()
        wait_until("the Event", lambda: lane.events("DrainStuck"))
        for pod in lane.ending():
            lane.end(pod)
        lane.wait_settled()
        assert lane.consumer()["state"] == "Converged"
        assert [each.get("count", 1) for each in lane.events("DrainStuck")] == [1]
    finally:
        operator.end()


def test_times_that_cannot_hold_are_a_warning(control_plane: ControlPlane, lane: Drained, tmp_path: Path) -> None:
    lane.timeout, lane.grace = "5m", 30
    lane.create()
    operator = _start(control_plane, lane, tmp_path)
    says = "c: container c: --drain-timeout 5m must be less than terminationGracePeriodSeconds 30s"
    try:
        lane.wait_settled()
        wait_until("the condition", lambda: lane.condition("Degraded").get("reason") == "ShutdownMisfit")
        assert lane.condition("Degraded")["message"].startswith(says)
        wait_until("the Event", lambda: lane.events("ShutdownMisfit"))
        lane.change()
        wait_until("the restart", lambda: lane.restarts() == lane.made + 1 and lane.is_rolled_out(), 60)
        for pod in lane.ending():
            lane.end(pod)
        lane.wait_settled()
        assert [each.get("count", 1) for each in lane.events("ShutdownMisfit")] == [1]
        lane.api.merge("deployments", lane.namespace, lane.name, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 600}}}})
        wait_until("it to be mended", lambda: lane.condition("Degraded")["status"] == "False")
    finally:
        operator.end()


def _add_next(lane: Drained) -> None:
    """Another Deployment that takes the Secret, and comes after it."""
    template = lane._deployment()["spec"]["template"]
    labels = {"app": "next"}
    container = {key: template["spec"]["containers"][0][key] for key in ("name", "image", "env")}
    lane.api.apply("deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "next", "namespace": lane.namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}},
        },
    })  # fmt: skip
    target = {"apiVersion": "apps/v1", "kind": "Deployment"}
    consumers = [
        {"name": "c", "targetRef": {**target, "name": lane.name}},
        {"name": "next", "targetRef": {**target, "name": "next"}, "after": ["c"]},
    ]
    lane.api.merge("certrotationpolicies", lane.namespace, lane.name, {"spec": {"consumers": consumers}})


def _generation(lane: Drained, name: str) -> int:
    return int(lane.api.get("deployments", lane.namespace, name)["metadata"]["generation"])


def _metrics(operator: Operator) -> str:
    """Nothing while it starts."""
    serving = any("/metrics" in line["pages"] for line in operator.lines("serving"))
    return operator.get("/metrics")[1] if serving else ""
