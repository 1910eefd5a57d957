"""One real cluster for all tests; the demo's workloads in it; logs of whatever fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "hack" / "lib"), str(REPOSITORY / "test" / "support")]

from audit import Audit  # noqa: E402
from certroll_dev import install, operator_image, tools, ui  # noqa: E402
from certroll_dev import shutdown_manager_image as manager_image  # noqa: E402
from certroll_dev.demo import component_images, pki, workloads  # noqa: E402
from certroll_dev.demo.api import API  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from certroll_dev.demo.logs import collect  # noqa: E402
from certroll_dev.demo.pki import NAMESPACE, Authority  # noqa: E402
from certroll_dev.demo.workloads import ENVOY  # noqa: E402
from certroll_dev.operator_image import Image  # noqa: E402
from mesh import Mesh  # noqa: E402
from world import World  # noqa: E402

_LOGS = REPOSITORY / "build" / "test-logs"
_OPERATOR_USER = f"system:serviceaccount:{install.NAMESPACE}:{install.NAME}"
_report: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("certroll")
    group.addoption("--cluster-name", default="certroll-e2e", help="name of the local cluster (default: %(default)s)")
    group.addoption("--keep-cluster", action="store_true", help="use a cluster of that name if it runs, and leave it running")
    group.addoption(
        "--check-rights", action="store_true",
        help="hold the rights of the manifests against all that the cluster has seen, also after some tests only (test_rights.py)",
    )  # fmt: skip
    group.addoption("--keep-audit-logs", type=Path, metavar="DIR", help="copy the audit log of each cluster into this folder")
    group.addoption(
        "--audit-logs", type=Path, metavar="DIR", help="of all other tests, which ran before: test_rights.py needs no cluster then"
    )
    group.addoption(
        "--operator",
        type=Path,
        default=REPOSITORY / "build" / "dev" / "bin" / "certroll-operator",
        help="program to test (default: the one built with sanitizers)",
    )
    group.addoption(
        "--image", type=Path, metavar="FILE",
        help="archive of the operator's image to install, such as that of a release (default: it is made of --operator)",
    )  # fmt: skip


@pytest.fixture(scope="session")
def operator_program(request: pytest.FixtureRequest) -> Path:
    option: Path = request.config.getoption("--operator")
    program = option.absolute()
    if not os.access(program, os.X_OK):
        pytest.fail(f"{program} is not there: run hack/build --preset dev", pytrace=False)
    return program


@pytest.fixture(scope="session")
def image(request: pytest.FixtureRequest) -> Image:
    """Of the operator, as the tests install it."""
    archive: Path | None = request.config.getoption("--image")
    if archive:
        return operator_image.given(archive.absolute())
    return operator_image.cached("dev", request.getfixturevalue("operator_program"))


@pytest.fixture(scope="session")
def shutdown_manager_image() -> Image:
    """The static program of the release build, as users have it."""
    return manager_image.cached()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Up, with the images in it; this process is in its network while the tests run."""
    found = LocalCluster(request.config.getoption("--cluster-name"))
    keep = request.config.getoption("--keep-cluster")
    if found.exists() and not keep:
        found.down()  # of a run that was killed
    try:
        found.up()
        for image in _images():
            found.load_image(image.archive)
        with found.network():
            yield found
        _keep_audit_logs(request, [found.layout.audit_log], found.name)
    finally:
        if not keep:
            found.down()


def _keep_audit_logs(request: pytest.FixtureRequest, logs: Sequence[Path], name: str) -> None:
    folder: Path | None = request.config.getoption("--keep-audit-logs")
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for number, log in enumerate(logs):
            shutil.copy(log, folder / f"{name}-{number}.log")


def _images() -> list[component_images.Image]:
    return list(component_images.build_all(tools.ensure(["ratelimit"])["ratelimit"]))


@pytest.fixture(scope="session")
def api(cluster: LocalCluster) -> API:
    return cluster.api()


@dataclass(frozen=True)
class Installed:
    authority: Authority
    fresh: bool  # nothing was there before


@pytest.fixture(scope="session")
def installed(cluster: LocalCluster, api: API) -> Installed:
    fresh = api.find("deployments", NAMESPACE, ENVOY.deployment) is None
    authority = pki.new_authority(1)
    workloads.install_crds(cluster)
    workloads.install(cluster, api, _images(), workloads.issue_all(authority))
    return Installed(authority, fresh)


@pytest.fixture
def logs(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder of the test's own. It stays when the test fails."""
    folder = _log_folder(request.node)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
    if not getattr(request.node, "certroll_failed", False):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def the_world(cluster: LocalCluster, api: API, installed: Installed, image: Image) -> World:
    world = World(cluster, api, _LOGS, Audit(cluster.layout.audit_log, _OPERATOR_USER), image)
    world.authorities.append(installed.authority)
    world.clean = installed.fresh
    return world


@pytest.fixture
def world(request: pytest.FixtureRequest, the_world: World, logs: Path) -> World:
    """The workloads in a known state: no policy, and all of them work."""
    request.node.certroll_world = the_world
    the_world.logs = logs
    the_world.reset()
    return the_world


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Figures that are worth reading even when every test passes; printed at the end."""
    lines: list[str] = []
    yield lines
    _report.extend(f"{request.node.name}: {line}" for line in lines)


@pytest.fixture(scope="session")
def final_report() -> list[str]:
    """As report, of several tests together."""
    return _report


@pytest.fixture(scope="session")
def other_audit_logs(request: pytest.FixtureRequest) -> Iterator[list[Path]]:
    """Of clusters that some tests have for themselves, and of runs before this one (--audit-logs)."""
    before: Path | None = request.config.getoption("--audit-logs")
    found = sorted(before.glob("*.log")) if before else []
    yield found
    _keep_audit_logs(request, found, f"{request.config.getoption('--cluster-name')}-other")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Collect logs while everything is still there, which it is no more when the fixtures have been torn down."""
    result = yield
    if result.failed:
        item.certroll_failed = True
        world: World | Mesh | None = getattr(item, "certroll_world", None) or getattr(item.module, "certroll_world", None)
        if world:
            result.sections.append(("logs", _collected(world)))
    return result


def _collected(world: World | Mesh) -> str:
    """What has failed may be the cluster itself: its logs are not worth the tests that are still to come."""
    try:
        collect(world.cluster, world.api, world.logs, world.namespaces)
    except Exception as error:
        return f"not all logs could be collected into {world.logs}: {error}"
    return f"the logs of every component are in {world.logs}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What fetches packages comes first, while this process is not yet in a cluster's network; what looks at all the others last."""
    items.sort(key=lambda item: {"test_release_image": 0, "test_ml_dsa": 0, "test_rights": 2}.get(item.path.stem, 1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _report:
        terminalreporter.section("figures")
        for line in _report:
            terminalreporter.line(line)
    failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    folders = sorted({section for report in failed for name, section in report.sections if name == "logs"})
    for line in folders:
        terminalreporter.line(line)


def _log_folder(item: pytest.Item) -> Path:
    return _LOGS / re.sub(r"[^A-Za-z0-9._-]+", "_", f"{item.path.stem}.{item.name}").strip("_")


def pytest_configure(config: pytest.Config) -> None:
    # pytest shows progress of its own; that of slow set-up is still worth seeing with -s.
    ui.be_quiet(config.getoption("capture") != "no")
