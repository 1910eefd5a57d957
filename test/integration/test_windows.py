"""Restart windows on a real API server: one that is closed holds a restart, and says until when; one that is open lets it go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from control_plane import ControlPlane, wait_until
from operators import RULES, Operator, account
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

Object = dict[str, Any]
_ZONE = "Australia/Lord_Howe"  # far from UTC, with half an hour of daylight saving


@pytest.fixture
def lane(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Lane]:
    """With an operator that knows it, and pods."""
    with direct(control_plane) as api, PaperPods(api, [namespace]):
        made = Lane(api, namespace, "lane", leaves(2))
        made.create()
        kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
        with _operator(control_plane, namespace, kubeconfig, tmp_path):
            made.wait_settled()
            yield made


@contextmanager
def _operator(plane: ControlPlane, namespace: str, kubeconfig: Path, folder: Path) -> Iterator[None]:
    running = Operator(plane, namespace, "operator", kubeconfig, folder, "--leader-elect=false")
    try:
        yield
    finally:
        running.end()


def _on_the_wall(at: datetime) -> datetime:
    """That minute in the zone. Sums are done in UTC: within a zone they are of the wall's clock, which skips and repeats half hours."""
    return at.replace(second=0, microsecond=0).astimezone(ZoneInfo(_ZONE))


def _window(begins: datetime, zone: str = _ZONE) -> Object:
    return {"schedule": f"{begins.minute} {begins.hour} * * *", "duration": "2h", "timeZone": zone}


def _set_windows(lane: Lane, *windows: Object) -> None:
    """The operator has seen them by the time that this returns."""
    patch = {"spec": {"restart": {"windows": windows}}}
    written = lane.api.merge("certrotationpolicies", lane.namespace, lane.name, patch)
    generation = written["metadata"]["generation"]
    wait_until("the windows to be seen", lambda: _status(lane).get("observedGeneration") == generation)


def _status(lane: Lane) -> Object:
    status: Object = lane.api.get("certrotationpolicies", lane.namespace, lane.name).get("status", {})
    return status


def _condition(lane: Lane, kind: str) -> Object:
    return next((each for each in _status(lane).get("conditions", []) if each["type"] == kind), {})


def _consumer(lane: Lane) -> Object:
    consumer: Object = _status(lane)["consumers"][0]
    return consumer


def test_a_restart_waits_for_its_window(lane: Lane) -> None:
    now = datetime.now(UTC)
    opens = _on_the_wall(now + timedelta(hours=5))
    _set_windows(lane, _window(opens))
    lane.change()
    wait_until("the restart to be held", lambda: _consumer(lane).get("blockedReason") == "Window")
    prefix, suffix = "restart.windows: opens at ", f" ({_ZONE})"
    held = str(_consumer(lane)["blockedBy"])
    assert held.startswith(prefix) and held.endswith(suffix)
    late = datetime.fromisoformat(held.removeprefix(prefix).removesuffix(suffix)) - opens
    assert timedelta(0) <= late < timedelta(seconds=30)
    assert _status(lane)["consumers"][0]["state"] == "Pending"
    assert _condition(lane, "Blocked")["status"] == "False"
    assert _condition(lane, "Ready")["status"] == "True"
    assert lane.restarts() == 0

    _set_windows(lane, _window(opens, "Mars/Olympus"))
    ready = _condition(lane, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Invalid")
    assert ready["message"].startswith("spec.restart.windows[0].timeZone: 'Mars/Olympus' is not in the time zone database")
    assert lane.restarts() == 0

    _set_windows(lane, _window(opens), _window(_on_the_wall(now - timedelta(minutes=2))))
    lane.wait_settled()
    assert lane.complaint() is None
