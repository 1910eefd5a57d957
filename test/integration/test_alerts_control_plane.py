"""Alerts on the control plane, by a real Prometheus that scrapes a real operator: each fires in its state, and ends when the state is
mended. The nodes and their agents are on paper (paper_agents.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane import ControlPlane
from control_planes import NODES, World, fake, world
from prometheus import Prometheus

_DAY_S = 86400.0
_ALWAYS = {("NoLeader", "")}  # this operator takes no Lease

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def place(control_plane: ControlPlane, api: Any, namespace: str, tmp_path: Path) -> Iterator[World]:
    with world(control_plane, api, namespace, tmp_path) as found:
        yield found


def test_each_alert_on_the_control_plane(place: World, tmp_path: Path) -> None:
    with place.agents() as agents:
        operator = place.start()
        place.apply()
        place.wait_converged()
        with Prometheus(place.plane, tmp_path, operator.serving()["port"]) as alerts:
            alerts.wait_exactly(_ALWAYS)

            agents.ends[place.etcd] = time.time() + 20 * _DAY_S
            alerts.wait_exactly(_ALWAYS | {("ControlPlaneCAExpiresSoon", "")})
            agents.ends[place.etcd] = time.time() + 2000 * _DAY_S
            alerts.wait_exactly(_ALWAYS)

            agents.silent.add(NODES[1])
            alerts.wait_exactly(_ALWAYS | {("ControlPlaneDegraded", "")})
            agents.silent.clear()
            alerts.wait_exactly(_ALWAYS)

            place.refuse_for_secrets("patch")
            place.make_token_secret("robot-token", fake("the key before"))
            alerts.wait_exactly(_ALWAYS | {("ControlPlaneBlocked", "")})
            place.refuse_for_secrets()
            alerts.wait_exactly(_ALWAYS)
