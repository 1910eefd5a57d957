"""The circuit breaker: a Secret that flaps restarts its consumer so many times and no more, also when the operator is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, wait_until
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves, patiently

Object = dict[str, Any]
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/certrotationpolicies.certroll.dev"
_RESTARTS, _WITHIN = 3, "30m"  # longer than all the flapping may take
_LEFT = timedelta(seconds=15)  # of it, once it is shortened
_FLAPS, _PAUSE = 20, 0.5
_KILLED_AT = (2, 4, 7)  # flaps: while there are still restarts to be done, and when there are none


@pytest.fixture
def lane(control_plane: ControlPlane, namespace: str) -> Iterator[Lane]:
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, "flapping", leaves(_FLAPS + 1), breaker={"restarts": _RESTARTS, "within": _WITHIN})
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

    def restarts() -> list[datetime]:
        """The newest first."""
        return [datetime.fromisoformat(each) for each in consumer()["restarts"]]

    def is_held() -> bool:
        return bool(status()["consumers"]) and consumer().get("blockedReason") == "CircuitBreaker"

    def blocked_metric() -> bool:
        return 'reason="CircuitBreaker"} 1' in operator.get("/metrics")[1]

    event_is_lost = False
    operator = start(0)
    try:
        lane.wait_settled()
        for flap in range(_FLAPS):
            lane.change()
            time.sleep(_PAUSE)  # the pace of what flaps
            if flap in _KILLED_AT:
                if is_held() and not event_is_lost:
                    wait_until("the Event", lambda: bool(events()))  # what is not yet said goes with the process
                operator.end()
                event_is_lost = is_held() and not events()  # it was written while the process ended
                operator = start(flap)
        wait_until("the breaker", is_held, 60)
        assert f"restarted {_RESTARTS} times within {_WITHIN}; " in consumer()["blockedBy"]
        assert lane.restarts() == _RESTARTS
        wait_until("the condition", lambda: condition("Degraded") == ("True", "RestartedTooOften"))
        if not event_is_lost:
            wait_until("the Event", lambda: bool(events()))
        operator.wait_line("serving")
        wait_until("the metric", blocked_metric)
        # The newest one is rolled out, by itself and once.
        first = restarts()[-1]
        within = timedelta(seconds=round((datetime.now(UTC) - first + _LEFT).total_seconds()))
        breaker = {"within": f"{within.total_seconds():.0f}s"}
        lane.api.merge("certrotationpolicies", lane.namespace, lane.name, {"spec": {"restart": {"breaker": breaker}}})
        lane.wait_settled(_LEFT.total_seconds() + 60)
        assert lane.restarts() == _RESTARTS + 1
        wait_until("the condition", lambda: condition("Degraded") == ("False", "AsExpected"))
        wait_until("the metric to go", lambda: 'reason="CircuitBreaker"' not in operator.get("/metrics")[1])
        assert len(restarts()) == _RESTARTS
        assert restarts()[0] - first >= within - timedelta(seconds=1), "too soon"
    finally:
        operator.end()


@contextmanager
def _crd_without_restarts(plane: ControlPlane, lane: Lane) -> Iterator[None]:
    """The CRD as it was before there was a breaker. The API server takes a moment to go by it."""
    versions = lane.api.request("GET", _CRD)["spec"]["versions"]
    del versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["consumers"]["items"]["properties"]["restarts"]
    try:
        lane.api.request("PATCH", _CRD, {"spec": {"versions": versions}}, "application/merge-patch+json")
        wait_until("the older CRD to be in effect", lambda: not _keeps_restarts(lane))
        yield
    finally:
        plane.apply_crds()
        wait_until("the CRD to be in effect", lambda: _keeps_restarts(lane))


def _keeps_restarts(lane: Lane) -> bool:
    """Whether the API server does, by what it would make of a status that has them."""

    def ask() -> Object:
        found = lane.api.get("certrotationpolicies", lane.namespace, lane.name)
        consumers = [{**each, "restarts": ["2026-01-01T00:00:00Z"]} for each in found["status"]["consumers"]]
        patch = {"status": {"consumers": consumers}}
        return lane.api.merge("certrotationpolicies", lane.namespace, lane.name, patch, subresource="status?dryRun=All")

    return all("restarts" in each for each in patiently(ask)["status"]["consumers"])


def _says_that_it_is_older(operator: Operator) -> bool:
    failed = operator.lines("a reconcile failed and is tried again")
    return any("the CRD in the cluster is older than this operator" in line["error"] for line in failed)


def test_a_crd_that_is_older_than_the_operator_is_told(control_plane: ControlPlane, lane: Lane, tmp_path: Path) -> None:
    operator = Operator(control_plane, lane.namespace, "operator", control_plane.kubeconfig, tmp_path, "--leader-elect=false")
    try:
        lane.wait_settled()
        with _crd_without_restarts(control_plane, lane):
            lane.change()
            wait_until("the log to say so", lambda: _says_that_it_is_older(operator))
        lane.wait_settled(60)
        assert lane.restarts() == 1
        lane.change()
        lane.wait_settled(60)
        assert lane.restarts() == 2
    finally:
        operator.end()
