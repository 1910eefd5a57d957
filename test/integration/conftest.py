"""Fixtures of the tests against a real API server (docs/development.md, "Tests")."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import control_plane as planes
from control_plane import ROOT, ControlPlane

sys.path.insert(0, str(ROOT / "hack" / "lib"))

from certroll_dev.demo.api import API  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from domains import Domains  # noqa: E402
from operators import RULES, account  # noqa: E402

_running: list[ControlPlane] = []  # for the report of a failed test, which has no fixtures at hand
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("certroll")
    group.addoption(
        "--cluster-name",
        default="certroll-integration",
        help="name of the control plane, with a number where another run has it (default: %(default)s)",
    )
    group.addoption("--keep-cluster", action="store_true", help="use a control plane of that name if it runs, and leave it running")


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane, with our CRDs."""
    keep = request.config.getoption("--keep-cluster")
    name, lock = planes.reserve(request.config.getoption("--cluster-name"))
    with lock:
        if not keep:
            planes.down(name)  # of a run that was killed
        try:
            plane = planes.up(name)
            _running.append(plane)
            plane.apply_crds()
            yield plane
        finally:
            _running.clear()
            if not keep:
                planes.down(name)


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[API]:
    """The control plane, for an administrator."""
    cluster = LocalCluster(control_plane.name)
    with cluster.network():
        yield cluster.api()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own; deleted without waiting."""
    name = f"t{next(_numbers)}-{time.time_ns() % 10**9}"
    control_plane.kubectl("create", "namespace", name)
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder manifests/ of a copy, with what it refers to, for kustomizations beside it: kustomize takes no absolute paths."""
    folder = tmp_path_factory.mktemp("copies")
    for name in ("crds", "manifests"):
        shutil.copytree(ROOT / name, folder / name)
    return folder / "manifests"


@pytest.fixture
def domains(control_plane: ControlPlane, api: API, namespace: str, tmp_path: Path) -> Iterator[Domains]:
    """Trust domains of that namespace, with an operator that has no rights beyond it."""
    kubeconfig = account(control_plane, namespace, "operator", RULES, tmp_path)
    with Domains(control_plane, api, namespace, kubeconfig, tmp_path / "stage") as found:
        found.start()
        yield found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """A failed test leaves the logs of every component, and its own tmp_path, in build/test-logs/<test>/."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    folder = ROOT / "build" / "test-logs" / re.sub(r"[^A-Za-z0-9_.-]+", "_", item.name)
    sources = [plane.logs for plane in _running]
    own = getattr(item, "funcargs", {}).get("tmp_path")
    planes.collect_logs(folder, [*sources, *([own] if isinstance(own, Path) else [])])
    report.sections.append(("logs", f"copied to {folder.relative_to(ROOT)}/"))
