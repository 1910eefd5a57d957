"""A CA rotated under a steady load of fresh mutual TLS handshakes, on two nodes whose kubelets have their default periods."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from certroll_dev.demo import component_images, pki
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Material
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import is_rolled_out
from certroll_dev import tools
from mesh import BACKEND, BATCH, FRONTEND, MEMBERS, Mesh
from mesh_handshakes import Count, handshakes

_LONG = os.environ.get("CERTROLL_LONG") == "1"
_RUNS = 5 if _LONG else 1
_RATE = 100.0  # handshakes a second, at least
_SEEN = 50  # failed handshakes after which a short run is ended: they go on until the last kubelet has refreshed

pytestmark = pytest.mark.timeout(3600 if _LONG else 900)


@pytest.fixture(scope="module")
def two_nodes(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A cluster of its own: what other tests know of theirs is that it has one node."""
    found = LocalCluster(f"{request.config.getoption('--cluster-name')}-mesh")
    keep = request.config.getoption("--keep-cluster")
    if found.exists() and not keep:
        found.down()
    try:
        found.up("--nodes", "2")
        programs = tools.ensure(["mtls-client"])
        for image in (component_images.envoy(), component_images.mtls_client(programs["mtls-client"])):
            found.load_image(image.archive)
        with found.network():
            yield found
    finally:
        if not keep:
            found.down()


@pytest.fixture(scope="module")
def the_mesh(two_nodes: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    """As somebody without certroll sets it up."""
    mesh = Mesh(two_nodes, two_nodes.api(), tmp_path_factory.mktemp("mesh"))
    mesh.create_namespaces()
    mesh.write(mesh.leaves(mesh.new_ca()), mesh.authorities[-1].certificate)
    mesh.create_workloads()
    mesh.wait_up()
    for member in MEMBERS:
        assert mesh.nodes(member) == {"node-1", "node-2"}
    return mesh


@pytest.fixture
def mesh(request: pytest.FixtureRequest, the_mesh: Mesh, logs: Path) -> Mesh:
    request.node.certroll_world = the_mesh
    the_mesh.logs = logs
    return the_mesh


# --- the control, and how others do it


def test_each_handshake_that_fails_is_counted(mesh: Mesh, report: list[str]) -> None:
    """Trust broken on purpose, once on each side. What the clients count is what the Envoys count."""
    stranger = pki.new_authority(99)
    leaves = mesh.leaves(mesh.authorities[-1])
    mesh.write(leaves, mesh.authorities[-1].certificate)
    with handshakes(mesh) as seen:
        for broken, counter_of, counter, blind in (
            (FRONTEND, BACKEND, "listener.mtls.ssl.fail_verify_error", BATCH),
            (BACKEND, FRONTEND, "cluster.backend.ssl.fail_verify_error", None),
        ):
            counted = mesh.counters(counter_of, counter).get("", 0)
            began = time.time()
            leaf = stranger.issue(broken.name, namespace=broken.name)
            mesh.write({broken.name: leaf}, mesh.authorities[-1].certificate)
            mesh.wait_holds(broken, _serial(leaf), {mesh.authorities[-1].serial()}, nudge=True)
            wait_for("handshakes to fail", lambda began=began: seen.since(began).failed_of(FRONTEND.name) >= _SEEN, deadline=30)
            mesh.write(leaves, mesh.authorities[-1].certificate)
            mesh.wait_holds(broken, _serial(leaves[broken.name]), {mesh.authorities[-1].serial()}, nudge=True)
            seen.wait_succeed()
            count = seen.since(began)
            report.append(f"{broken.name} with a leaf of a stranger: {_in_short(count)}; {counter}: +{mesh.counters(counter_of, counter)[''] - counted}")
            assert count.failed_of(FRONTEND.name) == mesh.counters(counter_of, counter)[""] - counted, count.describe(began)
            assert (count.failed_of(BATCH.name) == 0) == (blind == BATCH), count.describe(began)


def test_bundle_and_leaf_in_one_write_lose_handshakes(mesh: Mesh, report: list[str]) -> None:
    """As certgen of Envoy Gateway would with bundles (its PR 8534 and 8535): [new, previous CA] and the new leaf at once, and the
    client that reads its files once restarted right away. Nobody hastens the kubelets."""
    failed = 0
    for run in range(_RUNS):
        with handshakes(mesh) as seen:
            began = time.time()
            leaves = _rotate_at_once(mesh)
            if _LONG:
                _wait_rotated(mesh, leaves, nudge=False)
            else:
                wait_for("handshakes to fail", lambda began=began, seen=seen: seen.since(began).failed >= _SEEN, deadline=100, every=1.0)
                _wait_rotated(mesh, leaves, nudge=True)
            took = time.time() - began
            seen.wait_succeed()
            count = seen.since(began)
        failed += count.failed
        report.append(f"run {run + 1}: {_in_short(count)}, for up to {count.outage:.1f} s; {took:.0f} s{'' if _LONG else ', cut short'}")
        report += [line for summary in count.summaries() for line in summary.lines(began)]
    assert failed > 0


def _rotate_at_once(mesh: Mesh) -> dict[str, Material]:
    previous, new = mesh.authorities[-1], mesh.new_ca()
    leaves = mesh.leaves(new)
    mesh.write(leaves, new.certificate + previous.certificate)
    mesh.restart(BATCH)
    return leaves


def _wait_rotated(mesh: Mesh, leaves: dict[str, Material], *, nudge: bool) -> None:
    cas = {authority.serial() for authority in mesh.authorities[-2:]}
    for member in (BACKEND, FRONTEND):
        mesh.wait_holds(member, _serial(leaves[member.name]), cas, nudge=nudge)
    mesh.wait_up([BATCH])


def _serial(material: Material) -> str:
    return pki.serial(material.certificate)


def _in_short(count: Count) -> str:
    return f"{count.good + count.failed} handshakes ({count.rate:.0f}/s), {count.failed} failed"
