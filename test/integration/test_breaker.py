"""The circuit breaker: a Secret that flaps restarts its consumer so many times and no more, also when the operator is killed."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from control_plane import ControlPlane, wait_until
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/certrotationpolicies.certroll.dev"
_RESTARTS, _WITHIN = 3, 45
_FLAPS, _PAUSE = 20, 0.5
_KILLED_AT = (2, 4, 7)  # flaps: while there are still restarts to be done, and when there are none


@pytest.fixture
def lane(control_plane: ControlPlane, namespace: str) -> Iterator[Lane]:
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, "flapping", leaves(_FLAPS + 1), breaker={"restarts": _RESTARTS, "within": f"{_WITHIN}s"})
        lane.create()
        yield lane


def test_a_secret_that_flaps_is_held_and_taken_up_again_by_itself(control_plane: ControlPlane, lane: Lane, tmp_path: Path) -> None:
    def start(number: int) -> Operator:
        return Operator(
            control_plane, lane.namespace, f"operator-{number}", control_plane.kubeconfig, tmp_path, "--leader-elect=false"
        )

    def status() -> dict:
        return lane.api.get("certrotationpolicies", lane.namespace, lane.name).get("status", {})

    def consumer() -> dict:
        return status()["consumers"][0]

    def condition(kind: str) -> tuple[str, str]:
        return next((each["status"], each["reason"]) for each in status()["conditions"] if each["type"] == kind)

    def events() -> list[str]:
        return [each["message"] for each in lane.api.list("events", lane.namespace) if each["reason"] == "RestartedTooOften"]

    operator = start(0)
    try:
        lane.wait_settled()
        began = time.time()
        for flap in range(_FLAPS):
            lane.change()
            time.sleep(_PAUSE)  # the pace of what flaps
            if flap in _KILLED_AT:
                operator.end()
                operator = start(flap)
        wait_until("the breaker", lambda: consumer().get("blockedBy", "").startswith(f"restart.breaker: restarted {_RESTARTS} times within {_WITHIN}s; "))
        assert time.time() - began < _WITHIN, "too slow to tell"
        assert lane.restarts() == _RESTARTS
        wait_until("the condition", lambda: condition("Degraded") == ("True", "RestartedTooOften"))
        wait_until("the Event", lambda: bool(events()))
        wait_until("the metric", lambda: 'certroll_consumers_blocked{' in (page := operator.get("/metrics")[1]) and 'reason="CircuitBreaker"} 1' in page)
        # The newest one is rolled out, by itself and once.
        lane.wait_settled(2 * _WITHIN)
        assert time.time() - began > _WITHIN - 1
        assert lane.restarts() == _RESTARTS + 1
        wait_until("the condition", lambda: condition("Degraded") == ("False", "AsExpected"))
        assert len(consumer()["restarts"]) == _RESTARTS
        assert 'reason="CircuitBreaker"' not in operator.get("/metrics")[1]
    finally:
        operator.end()


@contextmanager
def _crd_without_restarts(lane: Lane) -> Iterator[None]:
    """The CRD as it was before there was a breaker."""

    def put(versions: list) -> None:
        lane.api.request("PATCH", _CRD, {"spec": {"versions": versions}}, "application/merge-patch+json")

    versions = lane.api.request("GET", _CRD)["spec"]["versions"]
    older = copy.deepcopy(versions)
    del older[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["consumers"]["items"]["properties"]["restarts"]
    put(older)
    try:
        yield
    finally:
        put(versions)


def _says_that_it_is_older(operator: Operator) -> bool:
    failed = operator.lines("a reconcile failed and is tried again")
    return any("the CRD in the cluster is older than this operator" in line["error"] for line in failed)


def test_a_crd_that_is_older_than_the_operator_is_told(control_plane: ControlPlane, lane: Lane, tmp_path: Path) -> None:
    operator = Operator(control_plane, lane.namespace, "operator", control_plane.kubeconfig, tmp_path, "--leader-elect=false")
    try:
        lane.wait_settled()
        with _crd_without_restarts(lane):
            lane.change()
            wait_until("the log to say so", lambda: _says_that_it_is_older(operator))
        lane.wait_settled(60)
        assert lane.restarts() == 1
        lane.change()
        lane.wait_settled(60)
        assert lane.restarts() == 2
    finally:
        operator.end()
