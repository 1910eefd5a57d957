"""A CA rotated under a steady load of fresh mutual TLS handshakes, on two nodes whose kubelets have their default periods."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certroll_dev import paths, tools
from certroll_dev.demo import component_images, pki, pods
from certroll_dev.demo.api import path
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.operator_image import Image
from mesh import BACKEND, BATCH, FRONTEND, MEMBERS, Member, Mesh, place
from mesh_domain import Domain, Rotation
from mesh_figures import Figures
from mesh_handshakes import Count, Handshakes, handshakes
from operator_pods import FAST_ELECTION, OperatorPods
from published_bundles import PublishedBundles
from world import median, steadily

_LOGS = paths.REPOSITORY / "build" / "test-logs" / "test_mesh"  # of what the tests share
_LONG = os.environ.get("CERTROLL_LONG") == "1"
_RUNS = 5 if _LONG else 1
_RATE = 100.0  # handshakes a second, at least
_STOPPED = 40.0  # seconds
_PUT_RIGHT = 3.0  # seconds from the first handshake to the last that fails for a bundle that was overwritten, each time
_SEEN = 50  # failed handshakes after which a short run is ended: they go on until the last kubelet has refreshed

pytestmark = pytest.mark.timeout(3600 if _LONG else 1800)


@pytest.fixture(scope="module")
def two_nodes(
    request: pytest.FixtureRequest, other_audit_logs: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
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
        other_audit_logs.append(Path(shutil.copy(found.layout.audit_log, tmp_path_factory.mktemp("audit"))))
    finally:
        if not keep:
            found.down()


@pytest.fixture(scope="module")
def the_mesh(request: pytest.FixtureRequest, two_nodes: LocalCluster) -> Mesh:
    """As somebody without certroll sets it up."""
    _LOGS.mkdir(parents=True, exist_ok=True)
    mesh = request.module.certroll_world = Mesh(two_nodes, two_nodes.api(), _LOGS)
    mesh.create_namespaces()
    mesh.write(mesh.leaves(mesh.new_ca()), mesh.authorities[-1].certificate)
    mesh.create_workloads()
    mesh.wait_up()
    for member in MEMBERS:
        assert mesh.nodes(member) == {"node-1", "node-2"}
    return mesh


@pytest.fixture
def mesh(the_mesh: Mesh, logs: Path) -> Mesh:
    the_mesh.logs = logs
    return the_mesh


@pytest.fixture(scope="module")
def figures(final_report: list[str]) -> Iterator[Figures]:
    found = Figures()
    yield found
    final_report += found.lines()


# --- the control, and how others do it


def test_each_handshake_that_fails_is_counted(mesh: Mesh, report: list[str]) -> None:
    """Trust broken on purpose, once on each side. What the clients count is what the Envoys count.

    With a connection that could not be made an Envoy fails all requests that wait for one at that moment: those are counted
    beside the handshakes.
    """
    stranger = pki.new_authority(99)
    leaves = mesh.leaves(mesh.authorities[-1])
    mesh.write(leaves, mesh.authorities[-1].certificate)
    with handshakes(mesh) as seen:
        for broken, counter_of, handshakes_of, calls_of, blind in (
            (FRONTEND, BACKEND, "listener.mtls.ssl.fail_verify_error", "listener.mtls.ssl.fail_verify_error", BATCH),
            (BACKEND, FRONTEND, "cluster.backend.ssl.fail_verify_error", "cluster.backend.upstream_rq_pending_failure_eject", None),
        ):
            before = [mesh.counters(counter_of, name).get("", 0) for name in (handshakes_of, calls_of)]
            began = time.time()
            leaf = stranger.issue(broken.name, namespace=broken.name)
            mesh.write({broken.name: leaf}, mesh.authorities[-1].certificate)
            mesh.wait_holds(broken, _serial(leaf), {mesh.authorities[-1].serial()}, nudge=True)
            wait_for("handshakes to fail", lambda began=began: seen.since(began).failed_of(FRONTEND.name) >= _SEEN, deadline=30)
            mesh.write(leaves, mesh.authorities[-1].certificate)
            mesh.wait_holds(broken, _serial(leaves[broken.name]), {mesh.authorities[-1].serial()}, nudge=True)
            seen.wait_succeed()
            count = seen.since(began)
            after = [mesh.counters(counter_of, name)[""] for name in (handshakes_of, calls_of)]
            refused, failed = (late - early for late, early in zip(after, before, strict=True))
            report.append(f"{broken.name} with a leaf of a stranger: {_in_short(count)}; {handshakes_of}: +{refused}, {calls_of}: +{failed}")
            assert 0 < refused <= failed == count.failed_of(FRONTEND.name), count.describe(began)
            assert (count.failed_of(BATCH.name) == 0) == (blind == BATCH), count.describe(began)


def test_bundle_and_leaf_in_one_write_lose_handshakes(mesh: Mesh, report: list[str], figures: Figures) -> None:
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
        figures.add("bundle and leaf in one write, client restarted right away", count, took, {})
        report.append(f"run {run + 1}: {_in_short(count)}, for up to {count.outage:.1f} s; {took:.0f} s{'' if _LONG else ', cut short'}")
        report += [line for summary in count.summaries() for line in summary.lines(began)]
    assert failed > 0


# --- certroll's way


@pytest.fixture(scope="module")
def operated(the_mesh: Mesh, image: Image) -> Iterator[OperatorPods]:
    """The operator runs, and the Secrets are the trust domain's.

    The policies come first: what they see for the first time would count as arrived only after 95 s.
    """
    operator = OperatorPods(
        the_mesh.cluster, the_mesh.api, image, [], _LOGS / "operator.log", args=FAST_ELECTION,
        overlay="cluster-wide", components=["trust-domains"],
    )  # fmt: skip
    with operator:
        the_mesh.apply("50-policies.yaml")
        wait_for("the policies to be Ready", lambda: all(_is_ready(the_mesh, member) for member in MEMBERS), deadline=60)
        _hand_over(the_mesh)
        yield operator


def _is_ready(mesh: Mesh, member: Member) -> bool:
    status = Status.of(mesh.api.get("certrotationpolicies", member.name, member.name))
    return status.holds("Ready") and bool(status.secrets)


def _hand_over(mesh: Mesh) -> None:
    for member in MEMBERS:
        mesh.scale(member, 0)
    for member in MEMBERS:
        mesh.wait_gone(member)
        mesh.api.delete("secrets", member.name, member.secret)
    mesh.apply("40-domain.yaml")
    for member in MEMBERS:
        mesh.scale(member, 2)
    mesh.wait_up()


@pytest.fixture
def domain(mesh: Mesh, operated: OperatorPods, report: list[str]) -> Iterator[Domain]:
    """As its manifests say, and at rest. What is published from then on is watched."""
    for member in MEMBERS:
        mesh.scale(member, 2)
    mesh.apply("40-domain.yaml")
    mesh.apply("50-policies.yaml")
    mesh.wait_up()
    found = Domain(mesh, operated.check)
    found.wait("the domain to be at rest", lambda status: status.is_at_rest, deadline=600)
    with PublishedBundles(mesh.api, [place(member) for member in MEMBERS], mesh.served_leaves) as bundles:
        found.bundles = bundles
        yield found
    report += [f"published: {found.verdict}"] if found.verdict else []


def _rotate(domain: Domain, seen: Handshakes, what: str) -> tuple[Rotation, Count]:
    """Returns what became of the rotation, and of all handshakes since it was asked for."""
    began = time.time()
    before = domain.leaves()
    rotation = domain.wait_rotated(domain.rotate(what))
    seen.wait_succeed()
    count = seen.since(began)
    _assert_rotated(domain, before, what)
    _assert_none_failed(count, began)
    return rotation, count


def _assert_rotated(domain: Domain, before: dict[str, str], what: str) -> None:
    domain.assert_held_by_all()
    after = domain.leaves()
    assert not set(after.values()) & set(before.values()), f"a leaf is the one of before: {before}, {after}"
    assert len(domain.published(BACKEND)[1]) == 1, f"after rotating {what} the bundle is {domain.published(BACKEND)[1]}"
    domain.assert_nobody_cut_off()


def _assert_none_failed(count: Count, began: float) -> None:
    assert count.failed == 0, count.describe(began)
    assert count.rate >= _RATE, f"only {count.rate:.0f} handshakes a second"


def test_no_handshake_fails(mesh: Mesh, domain: Domain, report: list[str], figures: Figures) -> None:
    """A new CA and new leaves, then new leaves alone, with a client that is restarted for each step."""
    for run in range(_RUNS):
        with handshakes(mesh) as seen:
            for what in ("CA", "Leaves"):
                rotation, count = _rotate(domain, seen, what)
                assert rotation.restarted and rotation.what == what
                figures.add(f"certroll, with a client that is restarted: {what}", count, rotation.seconds, rotation.stages)
                report.append(f"run {run + 1}: {_in_short(count)}; {rotation}")


def test_what_hot_reloads_is_done_in_seconds(mesh: Mesh, domain: Domain, report: list[str], figures: Figures) -> None:
    """Without the client that has to be restarted."""
    mesh.scale(BATCH, 0)
    mesh.wait_gone(BATCH)
    took: dict[str, list[float]] = {"CA": [], "Leaves": []}
    before = [pods.identity(mesh.pods(member)) for member in (BACKEND, FRONTEND)]
    with handshakes(mesh, rate=60.0) as seen:
        for run in range(_RUNS):
            for what, found in took.items():
                rotation, count = _rotate(domain, seen, what)
                assert [pods.identity(mesh.pods(member)) for member in (BACKEND, FRONTEND)] == before, "an Envoy was restarted"
                found.append(rotation.seconds)
                figures.add(f"certroll, all hot-reload: {what}", count, rotation.seconds, rotation.stages)
                report.append(f"run {run + 1}: {_in_short(count)}; {rotation}")
    for what, found in took.items():
        report.append(f"{what}: {median(found)}")
    if _LONG:
        assert statistics.median(took["CA"]) <= 15
        assert statistics.median(took["Leaves"]) <= 5


def test_a_stopped_kubelet_holds_every_stage(mesh: Mesh, domain: Domain, report: list[str], figures: Figures) -> None:
    """For 40 s: its pods go on with what they have, and nobody takes them for converged."""
    before = domain.leaves()
    with handshakes(mesh) as seen:
        began = time.time()
        with _stopped_kubelet(mesh, "node-2"):
            token = domain.rotate("CA")
            domain.wait_stage("Trusting")
            steadily("a stage has advanced", _STOPPED, lambda: domain.status().stage != "Trusting" or domain.leaves() != before)
        stopped = time.time() - began
        rotation = domain.wait_rotated(token)
        seen.wait_succeed()
        count = seen.since(began)
    _assert_rotated(domain, before, "CA")
    _assert_none_failed(count, began)
    figures.add("certroll, a kubelet stopped for 40 s: CA", count, rotation.seconds, rotation.stages)
    report.append(f"a kubelet stopped for {stopped:.0f} s: {_in_short(count)}; {rotation}")


@contextmanager
def _stopped_kubelet(mesh: Mesh, node: str) -> Iterator[None]:
    """SIGSTOP. Its containers run on."""
    command = [paths.HACK / "cluster", "status", "--name", mesh.cluster.name, "--json"]
    daemons = json.loads(subprocess.run(command, capture_output=True).stdout)["daemons"]
    [pid] = [daemon["pid"] for daemon in daemons if (daemon["machine"], daemon["name"]) == (node, "kubelet")]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_killed_in_each_stage_it_goes_on(mesh: Mesh, domain: Domain, operated: OperatorPods, report: list[str], figures: Figures) -> None:
    """SIGKILL. One CA is made, and each that is in use stays trusted."""
    for run in range(_RUNS):
        before, cas = domain.leaves(), domain.published(BACKEND)[1]
        with handshakes(mesh) as seen:
            began = time.time()
            token = domain.rotate("CA")
            for stage in ("Trusting", "Switching", "Retiring"):
                domain.wait_stage(stage)
                cas |= domain.published(BACKEND)[1]
                operated.kill_leader()
            rotation = domain.wait_rotated(token)
            seen.wait_succeed()
            count = seen.since(began)
        cas |= domain.published(BACKEND)[1]
        assert len(cas) == 2, f"these CAs were published: {cas}"
        _assert_rotated(domain, before, "CA")
        _assert_none_failed(count, began)
        figures.add("certroll, killed in each stage: CA", count, rotation.seconds, rotation.stages)
        report.append(f"killed three times: {_in_short(count)}; {rotation}")


def test_a_second_change_in_the_middle_of_the_first(mesh: Mesh, domain: Domain, report: list[str], figures: Figures) -> None:
    before = domain.leaves()
    with handshakes(mesh) as seen:
        began = time.time()
        domain.rotate("CA")
        domain.wait_stage("Switching")
        token = domain.rotate("CA")
        rotation = domain.wait_rotated(token)
        seen.wait_succeed()
        count = seen.since(began)
    _assert_rotated(domain, before, "CA")
    _assert_none_failed(count, began)
    figures.add("certroll, two CAs, one in the middle of the other", count, rotation.seconds, rotation.stages)
    report.append(f"two changes of the CA, one in the middle of the other: {_in_short(count)}; {rotation}")


def test_held_it_goes_on_when_the_cause_is_gone(mesh: Mesh, domain: Domain, report: list[str], figures: Figures) -> None:
    """Restarts are forbidden for what needs one: nothing further is published, and what there was works."""
    before = domain.leaves()
    domain.patch_policy(BATCH, {"restart": {"method": "Never"}})
    domain.patch({"evidence": {"stageDeadline": "10s"}})
    with handshakes(mesh) as seen:
        began = time.time()
        token = domain.rotate("CA")
        held = domain.wait_stage("Held")
        assert held.held_stage == "Trusting" and held.holds("Held")
        assert BATCH.name in held.conditions["Held"][1], held.conditions["Held"]
        steadily("it goes on though it is held", 5.0, lambda: domain.status().stage != "Held" or domain.leaves() != before)
        domain.patch_policy(BATCH, {"restart": {"method": "Auto"}})
        rotation = domain.wait_rotated(token)
        seen.wait_succeed()
        count = seen.since(began)
    _assert_rotated(domain, before, "CA")
    _assert_none_failed(count, began)
    figures.add("certroll, Held, then allowed: CA", count, rotation.seconds, rotation.stages)
    report.append(f"Held ({held.conditions['Held'][1]}), then allowed: {_in_short(count)}; {rotation}")


def test_a_ca_is_distrusted_twice_by_the_runbook(mesh: Mesh, domain: Domain, report: list[str], figures: Figures) -> None:
    """docs/operations.md, "Distrust it", with the defaults of a domain and of a policy."""
    domain.patch({"retire": None})
    domain.patch_policy(BATCH, {"restart": None})
    distrusted: list[str] = []
    try:
        for run in range(2):
            domain.wait("the domain to be at rest", lambda status: status.is_at_rest, deadline=600)
            [(stolen, fingerprint)] = domain.current_ca()
            assert domain.bundles and stolen in mesh.trusted_cas(domain.bundles)
            generation = mesh.deployment(BATCH)["metadata"]["generation"]
            forecast = json.loads(mesh.cluster.kubectl("get", "clustertrustdomain", "mesh", "-o", "jsonpath={.status.forecast}"))
            distrusted.append(fingerprint)
            with handshakes(mesh) as seen:
                began = time.time()
                spec = json.dumps({"spec": {"distrust": distrusted}})
                mesh.cluster.kubectl("patch", "clustertrustdomain", "mesh", "--type", "merge", "-p", spec)
                gone = f'--for=jsonpath={{.status.distrusted[?(@.fingerprint=="{fingerprint}")].gone}}'
                mesh.cluster.kubectl("wait", "clustertrustdomain", "mesh", "--timeout=1h", gone)
                took = time.time() - began
                assert stolen not in mesh.trusted_cas(domain.bundles)
                seen.wait_succeed()
                count = seen.since(began)
            restarts = mesh.deployment(BATCH)["metadata"]["generation"] - generation
            _assert_none_failed(count, began)
            domain.assert_held_by_all()
            domain.assert_nobody_cut_off()
            assert 1 <= restarts <= 3, restarts
            figures.add("certroll, default settings: CA distrusted", count, took, {})
            report.append(f"CA {run + 1} distrusted: no pod trusts it after {took:.0f} s, {restarts} restarts, {_in_short(count)}; forecast {forecast}")
    finally:
        domain.patch({"distrust": None})


@pytest.mark.parametrize(("what", "every"), [("CA", 3.0), ("Leaves", 0.2)], ids=["every 3 s", "at each renewal"])
def test_a_second_writer_is_named_and_no_handshake_fails(
    mesh: Mesh, domain: Domain, report: list[str], figures: Figures, what: str, every: float
) -> None:
    """A tool that puts the frontend's Secret back, bundle and leaf, whenever it finds another leaf there. With a new CA it takes that away
    from the frontend's pods for as long as certroll needs to put it right."""
    before = domain.leaves()
    with handshakes(mesh) as seen:
        began = time.time()
        with _putting_back(mesh, FRONTEND, every) as put_back:
            token = domain.rotate(what)
            named = domain.wait("the other writer to be named", lambda status: "'gitops'" in status.conditions["Degraded"][1], deadline=600)
            assert named.holds("Degraded") and not named.holds("Converged")
            took = time.time() - began
            times = len(put_back)
            steadily("it is overwritten again", 15.0, lambda: len(put_back) > times)
            assert times <= 2, times
        domain.patch({"retainPrevious": 2 if what == "CA" else 3})  # an edit of the domain is the way on
        domain.wait_rotated(token)
        seen.wait_succeed()
        count = seen.since(began)
    assert not set(domain.leaves().values()) & set(before.values())
    if what == "CA":
        assert count.failed_of(BATCH.name) == 0 and count.outage <= _PUT_RIGHT, count.describe(began)
    else:
        _assert_none_failed(count, began)
    figures.add(f"certroll, another writer puts a Secret back: {what}", count, time.time() - began, {})
    report.append(f"{what}: another writer is named after {took:.1f} s and {times} overwrites: {_in_short(count)}")


@contextmanager
def _putting_back(mesh: Mesh, member: Member, every: float) -> Iterator[list[float]]:
    """When it did, seconds since the epoch."""
    data = mesh.api.get("secrets", member.name, member.secret)["data"]
    target = path("secrets", member.name, member.secret) + "?fieldManager=gitops"
    done: list[float] = []
    over = threading.Event()

    def run() -> None:
        while not over.wait(every):
            if mesh.api.get("secrets", member.name, member.secret)["data"]["tls.crt"] != data["tls.crt"]:
                mesh.api.request("PATCH", target, {"data": data}, "application/merge-patch+json")
                done.append(time.time())

    writer = threading.Thread(target=run)
    writer.start()
    try:
        yield done
    finally:
        over.set()
        writer.join()


# --- what the tests share


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
