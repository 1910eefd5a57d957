"""A workload that is scaled while it rolls, by a person or an HPA: one rollout all the same, judged by what is wanted by then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, wait_until
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

Object = dict[str, Any]
_QUIET = 2.0  # seconds


class HeldPods(PaperPods):
    """While `held`, new pods do not become ready."""

    held = False

    def tick(self) -> bool:
        return True if self.held else super().tick()


class Scaled(Lane):
    """One whose rollouts are counted by the Deployment's revisions, which scaling does not make."""

    def scale(self, replicas: int) -> None:
        self.api.merge("deployments", self.namespace, self.name, {"spec": {"replicas": replicas}}, subresource="scale")

    def revision(self) -> int:
        return int(self._deployment()["metadata"]["annotations"]["deployment.kubernetes.io/revision"])

    def consumer(self) -> Object:
        policy = self.api.get("certrotationpolicies", self.namespace, self.name)
        consumers: list[Object] = policy.get("status", {}).get("consumers", [])
        return consumers[0] if consumers else {}

    def wait_state(self, state: str) -> None:
        wait_until(f"the consumer to be {state}", lambda: self.consumer().get("state") == state, 60, pause=0.05)

    def wait_pods(self, count: int) -> None:
        wait_until(f"{count} pods", lambda: len(self.api.list("pods", self.namespace)) == count, 60)

    def ready(self) -> int:
        return int(self._deployment().get("status", {}).get("readyReplicas", 0))


@pytest.fixture
def held(control_plane: ControlPlane, namespace: str) -> Iterator[tuple[Scaled, HeldPods]]:
    with direct(control_plane) as api, HeldPods(api, [namespace]) as pods:
        lane = Scaled(api, namespace, "scaled", leaves(3))
        lane.create()
        yield lane, pods


def test_a_workload_that_is_scaled_while_it_rolls_is_rolled_once(
    control_plane: ControlPlane, held: tuple[Scaled, HeldPods], tmp_path: Path
) -> None:
    lane, pods = held
    operator = Operator(control_plane, lane.namespace, "operator", control_plane.kubeconfig, tmp_path, "--leader-elect=false")
    try:
        lane.scale(3)
        wait_until("three pods to be ready", lambda: lane.ready() == 3)
        lane.wait_settled()
        # Up and down in the middle; the new pods stand still.
        pods.held = True
        lane.change()
        lane.wait_state("Restarting")
        wait_until("the rollout", lambda: lane.revision() == 2)
        for replicas in (5, 2):
            lane.scale(replicas)
            _stays_restarting(lane)
        pods.held = False
        lane.wait_settled()
        assert lane.revision() == 2 and lane.ready() == 2
        # To none in the middle, where nothing is left to be done, and back.
        pods.held = True
        lane.change()
        wait_until("the rollout", lambda: lane.revision() == 3)
        lane.scale(0)
        lane.wait_pods(0)
        lane.wait_settled()
        lane.scale(3)
        pods.held = False
        wait_until("three pods to be ready", lambda: lane.ready() == 3)
        _stays_done(lane)
        assert lane.revision() == 3
    finally:
        operator.end()


def _stays_restarting(lane: Scaled) -> None:
    """The time is what is tested: neither done too early nor restarted again."""
    end = time.monotonic() + _QUIET
    while time.monotonic() < end:
        assert (lane.consumer()["state"], lane.revision()) == ("Restarting", 2)
        time.sleep(0.1)


def _stays_done(lane: Scaled) -> None:
    end = time.monotonic() + _QUIET
    while time.monotonic() < end:
        assert lane.is_settled() and lane.revision() == 3
        time.sleep(0.1)
