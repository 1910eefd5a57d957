"""A control plane of its own for the soak, and how long it takes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack" / "lib"), str(ROOT / "test" / "support"), str(ROOT / "test" / "integration")]

import control_plane as planes  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from control_plane import ControlPlane  # noqa: E402

# Asked to end, it ends as by Ctrl-C: in order.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("certroll")
    group.addoption("--minutes", type=float, default=20.0, help="how long the churn goes on (default: %(default)g)")
    group.addoption("--cluster-name", default="certroll-soak", help="name of the control plane (default: %(default)s)")
    group.addoption("--seed", type=int, help="of what is done when, to see the same again (default: a new one)")


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """With our CRDs; this thread is in its network while the test runs."""
    name, lock = planes.reserve(request.config.getoption("--cluster-name"))
    with lock:
        planes.down(name)  # of a run that was killed
        try:
            plane = planes.up(name)
            plane.apply_crds()
            with LocalCluster(name).network():
                yield plane
        finally:
            planes.down(name)
