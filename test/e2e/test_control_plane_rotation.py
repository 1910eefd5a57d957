"""The control plane's own certificates and keys replaced by scripts that only write files and wait for certroll's word.

Three control-plane nodes as kubeadm makes them, the operator and the agents as they are installed; clients call each API
server, and all of them through the balancer, throughout.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import control_plane_world as worlds
import pytest
from certroll_dev import machines, node_agent_image, paths
from certroll_dev.commands import DevError
from certroll_dev.demo.waiting import wait_for
from certroll_dev.image_recipe import Image
from certroll_dev.layout import API_PORT, Machine
from control_plane_clients import Clients, calling
from control_plane_record import Record
from control_plane_world import Plane, World, fingerprints, joined, key_of, key_print
from world import steadily

_LONG = os.environ.get("CERTROLL_LONG") == "1"
_LOGS = paths.REPOSITORY / "build" / "test-logs" / "test_control_plane_rotation"
# Each is a restart, a minute on a busy machine: the other ones with CERTROLL_LONG=1.
_DEATHS = [("agent", "Restarting")]
if _LONG:
    _DEATHS += [("operator", "Restarting"), *((victim, phase) for victim in ("agent", "operator") for phase in ("Waiting", "Proving"))]
_KUBELET_PORT = 10250
_HOT = 60.0  # seconds in which what reloads by itself has done so (the seed's promise)
_TOKENS = 300.0  # seconds in which every pod has a token of the new key (the seed's promise)
_APART = 3.0  # seconds: the agent looks once in one, and a client calls again a quarter of one after a call has failed
_BALANCED = 5.0  # seconds that no call through the balancer fails for longer than

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def world(
    request: pytest.FixtureRequest,
    image: Image,
    operator_program: Path,
    other_audit_logs: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """Up, converged, with everything in it that the tests look at."""
    plane = Plane(f"{request.config.getoption('--cluster-name')}-rotation", tmp_path_factory.mktemp("plane"), nodes=3)
    keep = request.config.getoption("--keep-cluster")
    if plane.exists() and not keep:
        plane.down()
    shutil.rmtree(_LOGS, ignore_errors=True)
    _LOGS.mkdir(parents=True)
    world = World(plane, _LOGS)
    request.module.certroll_world = world
    try:
        plane.begin()
        with plane.network():
            world.install(image, node_agent_image.cached("dev", operator_program.with_name("certroll-node-agent")))
            world.create_callers()
            world.create_policy()
            world.wait_converged()
            yield world
        audit = tmp_path_factory.mktemp("audit")
        other_audit_logs += [Path(shutil.copy(machine.audit_log, audit / machine.name)) for machine in plane.machines]
    finally:
        if not keep:
            plane.down()


# --- wrong files


def test_a_key_that_does_not_fit_is_told_and_restarts_nobody(world: World) -> None:
    machine = world.plane.machine(2)
    pair = machine.kubernetes / "pki" / "apiserver-etcd-client.key"
    before = world.plane.processes()
    with _restored(pair):
        worlds.put(pair, (machine.kubernetes / "pki" / "apiserver.key").read_text())
        # Something else may be told meanwhile, such as a component that answers late.
        world.wait("a word about the key", lambda word: all(name in _complaints(word) for name in ("apiserver-etcd-client", "node-2")))
        steadily("something was restarted", 20, lambda: _changed(before, world.plane.processes()))
    world.wait_converged()
    assert world.plane.processes() == before


# --- somebody dies


@pytest.mark.parametrize(("victim", "phase"), _DEATHS)
def test_killed_at_a_step_of_a_restart(world: World, victim: str, phase: str) -> None:
    """The next one brings it to its end; the component is restarted once all the same."""
    machine = world.plane.machine(2)
    with _watched(world, machine, "kube-scheduler") as processes:
        token = world.act(machine.name).get("token")
        _renew_scheduler(world.plane, machine)
        wait_for(
            f"phase {phase} on {machine.name}, or one after it", lambda: _is_at(world, machine, token, phase), deadline=120, every=0.05,
            missing=world.describe,
        )  # fmt: skip
        world.kill(victim, machine)
        done = lambda: world.act(machine.name).get("token") != token and world.act(machine.name).get("phase") == "Done"  # noqa: E731
        wait_for("the restart to be done", lambda: _answers(done), deadline=180, missing=world.describe)
        world.wait_converged()
    assert len(processes) == 2, f"the scheduler of {machine.name} began {len(processes) - 1} times: {processes}"


@pytest.mark.skipif(not _LONG, reason="a machine boots, and its silence must have been noticed: 4 min, with CERTROLL_LONG=1")
def test_a_node_that_does_not_come_back_holds_the_sequence(world: World) -> None:
    lost, other = world.plane.machine(3), world.plane.machine(2)
    before = world.act(lost.name).get("token")
    _renew_scheduler(world.plane, lost)
    wait_for("its restart to begin", lambda: _is_at(world, lost, before, "Restarting"), deadline=120, every=0.05, missing=world.describe)
    _kill_machine(lost)
    scheduler = world.plane.process(other, "kube-scheduler")
    _renew_scheduler(world.plane, other)
    said = world.wait("a word about the silent node", lambda word: lost.name in word.says("Degraded") + word.says("Blocked"))
    assert not said.holds("Converged")
    steadily("another node was touched", 30, lambda: world.plane.process(other, "kube-scheduler") != scheduler)

    world.plane.up("--control-plane-nodes", str(world.plane.nodes))
    world.plane.note_pids()
    world.wait_converged(deadline=420)
    assert world.plane.process(other, "kube-scheduler") not in (scheduler, None)


# --- one file for signing and trust


def test_a_bundle_in_the_signing_certificates_file_is_reported(world: World, tmp_path: Path) -> None:
    """kubeadm's ca.crt is what the controller manager signs with: with two certificates it signs nothing, and the next leader
    does not start. So nobody may be restarted who leads, or who takes the lead away from the leader."""
    before = world.plane.processes()
    other = _authority(tmp_path, "other")
    files = [machine.kubernetes / "pki" / "ca.crt" for machine in world.plane.machines]
    bundle = files[0].read_text() + other.read_text()
    with _restored(*files):
        for file in files:
            worlds.put(file, bundle)
        world.wait("Blocked", lambda word: word.holds("Blocked") and "--cluster-signing-cert-file" in word.says("Blocked"))
        guarded = ("kube-controller-manager", "kube-apiserver", "etcd")
        steadily(
            "one that must not was restarted", 20,
            lambda: [each for each in _changed(before, world.plane.processes()) if each[1] in guarded],
        )  # fmt: skip
    # What polls the file may have seen it: that it has the old content again is certain only after a period of 5 min.
    world.wait("not Blocked", lambda word: not word.holds("Blocked"))


# --- service accounts


@pytest.mark.skipif(not _LONG, reason="nine restarts of API servers in turn, 7 min: with CERTROLL_LONG=1")
def test_service_account_keys(world: World, report: list[str], tmp_path: Path) -> None:
    pods = {pod["metadata"]["uid"]: _containers(pod) for pod in world.pods()}
    once = world.readers_once()
    assert all(once.values())
    kept = _kept_token(world)
    old = key_print(world.plane.machine(1).kubernetes / "pki" / "sa.pub")
    assert {key_of((volume / "token").read_text()) for volume in world.volumes()} == {old}
    clock: dict[str, float] = {}

    def hear(line: str) -> None:
        if line.startswith("certroll: "):
            clock[line] = time.time()

    began = time.time()
    with _calls(world) as clients, Record(world) as record:
        world.script("rotate-service-account-keys.sh", tmp_path / "keys", hear)
        new = key_print(tmp_path / "keys" / "new.pub")
        assert {key_of((volume / "token").read_text()) for volume in world.volumes()} == {new}
        wait_for("all clients to be served", clients.all_served, deadline=60, missing=clients.describe)
    _judge(clients, world, record, report)

    signing = next(at for line, at in clock.items() if "signed by the new key" in line)
    renewed = next(at for line, at in clock.items() if "no token of the old key" in line)
    report.append(f"{renewed - signing:.0f} s from the new key's signing to the last pod's new token, {time.time() - began:.0f} s in all")
    assert renewed - signing < _TOKENS
    assert {pod["metadata"]["uid"]: _containers(pod) for pod in world.pods()} == pods, "a pod was restarted that re-reads its token"
    world.wait_converged()
    same = {kind: uids & once[kind] for kind, uids in world.readers_once().items() if uids & once[kind]}
    assert not same, f"not restarted, though they read their token once: {same}"

    fresh = _kept_token(world)
    assert fresh != kept and key_of(fresh) == new
    for machine in world.plane.machines:
        assert _authenticated(world, machine, fresh), f"the API server of {machine.name} refuses the new key"
        assert not _authenticated(world, machine, kept), f"the API server of {machine.name} takes the dropped key"
    published = world.plane.json("-n", "kube-system", "get", "configmap", "certroll-service-account-key")
    assert published["data"]["key"] == new


# --- the CA


@pytest.mark.skipif(not _LONG, reason="API servers look at --kubelet-certificate-authority every 5 min, in each step: with CERTROLL_LONG=1")
def test_the_ca_in_three_steps(world: World, report: list[str], tmp_path: Path) -> None:
    """The last one: hack/cluster's own administrator and kube-proxy, which are no files of kubeadm's, are left behind with the old CA."""
    folder, pki = tmp_path / "ca", world.plane.machine(1).kubernetes / "pki"
    shutil.copy(pki / "ca.crt", tmp_path / "old.crt")
    shutil.copy(pki / "ca.key", tmp_path / "old.key")
    old = fingerprints(tmp_path / "old.crt")
    assert world.word().text("cluster.trusted") == joined(old)

    began = time.time()
    with _calls(world) as clients, Record(world) as record:
        world.script("rotate-ca.sh", folder)
        wait_for("all clients to be served", clients.all_served, deadline=60, missing=clients.describe)
    _judge(clients, world, record, report)
    hot = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in sorted(record.reloads.items()))
    report.append(f"{time.time() - began:.0f} s in all; seen loaded without a restart: {hot}")
    assert record.reloads and max(record.reloads.values()) < _HOT, record.reloads

    word = world.word()
    assert word.text("cluster.trusted") == word.text("cluster.known") == word.text("cluster.issuing") == joined(fingerprints(folder / "new.crt"))
    for machine in world.plane.machines:
        for port in (API_PORT, _KUBELET_PORT):
            assert _verifies(machine, port, folder / "new.crt"), f"{machine.name}:{port} is not of the new CA"
            assert not _verifies(machine, port, tmp_path / "old.crt"), f"{machine.name}:{port} is of the old CA"
            assert _status(machine, port, _leaf(tmp_path, folder / "new")) == 200
            assert _status(machine, port, _leaf(tmp_path, tmp_path / "old")) in (401, 403), f"{machine.name}:{port} takes the old CA"
    roots = world.plane.json("get", "configmaps", "-A", "--field-selector=metadata.name=kube-root-ca.crt")["items"]
    assert {root["data"]["ca.crt"].strip() for root in roots} == {(folder / "new.crt").read_text().strip()}
    assert _kept(world, "ca.crt").strip() == (folder / "new.crt").read_text().strip()


# --- what clients saw


@contextmanager
def _calls(world: World) -> Iterator[Clients]:
    balancer, servers = world.ways()
    with calling(world.volumes()[0], balancer, servers) as clients:
        wait_for("all clients to be served", clients.all_served, deadline=60, missing=clients.describe)
        try:
            yield clients
        finally:
            (world.logs / "clients.txt").write_text(clients.describe() + "\n")


def _judge(clients: Clients, world: World, record: Record, report: list[str]) -> None:
    """Nobody was refused for longer than one API server's restart takes, and through the balancer hardly at all."""
    restart = max((act.seconds for act in record.acts.values() if act.component == "kube-apiserver"), default=0.0)
    alone = max(clients.longest(machine.name) for machine in world.plane.machines)
    calls = sum(client.calls for client in clients.all)
    report.append(
        f"{calls} calls; one API server away for {alone:.1f} s at most, through the balancer {clients.longest('balancer'):.1f} s; "
        f"a restart took {restart:.0f} s at most"
    )
    (world.logs / "acts.txt").write_text(record.describe() + "\n")
    overlapping = record.overlapping()
    assert not overlapping, f"two components were restarted at a time: {overlapping}"
    assert alone <= max(restart, _BALANCED) + _APART, clients.describe()
    assert clients.longest("balancer") < _BALANCED, clients.describe()


# --- small things


def _complaints(word: worlds.Word) -> str:
    return " ".join(word.says(kind) for kind in ("Degraded", "Blocked") if word.holds(kind))


def _renew_scheduler(plane: Plane, machine: Machine) -> None:
    """Its client certificate is embedded in a kubeconfig: only a restart makes it known."""
    config = f"--config={machine.etc / 'kubeadm.yaml'}"
    machines.run(machine, [plane.layout.bin / "kubeadm", "certs", "renew", "scheduler.conf", config])


_PHASES = ("Waiting", "Restarting", "Proving", "Done")


def _is_at(world: World, machine: Machine, before: str | None, phase: str) -> bool:
    """At this phase or beyond it: a short one may have gone by between two looks."""
    try:
        act = world.act(machine.name)
    except DevError:
        return False
    return act.get("token") not in (None, before) and act["phase"] in _PHASES[_PHASES.index(phase) :]


@contextmanager
def _watched(world: World, machine: Machine, program: str) -> Iterator[list[tuple[int, int]]]:
    """Each process of that name that there was meanwhile."""
    seen: list[tuple[int, int]] = []
    end = threading.Event()

    def look() -> None:
        while True:
            found = world.plane.process(machine, program)
            if found and found not in seen:
                seen.append(found)
            if end.wait(0.5):
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    wait_for(f"{program} of {machine.name}", lambda: bool(seen), deadline=60)
    try:
        yield seen
    finally:
        end.set()
        thread.join()


@contextmanager
def _restored(*files: Path) -> Iterator[None]:
    texts = {file: file.read_text() for file in files}
    try:
        yield
    finally:
        for file, text in texts.items():
            worlds.put(file, text)


def _changed(before: Mapping[tuple[str, str], Any], now: Mapping[tuple[str, str], Any]) -> list[tuple[str, str]]:
    return [name for name, process in now.items() if process != before[name]]


def _kill_machine(machine: Machine) -> None:
    """All of the node at once, as when its power goes."""
    pid = machines.pid_of(machine)
    assert pid
    os.kill(pid, 9)
    wait_for(f"{machine.name} to be gone", lambda: machines.pid_of(machine) is None, deadline=30)


def _containers(pod: Mapping[str, Any]) -> list[str]:
    return [each["containerID"] for each in pod["status"]["containerStatuses"]]


def _kept(world: World, key: str) -> str:
    secret = world.plane.json("-n", worlds.NAMESPACE, "get", "secret", "kept-token")
    return base64.b64decode(secret["data"][key]).decode()


def _kept_token(world: World) -> str:
    return _kept(world, "token")


def _authenticated(world: World, machine: Machine, token: str) -> bool:
    """What that API server itself says of the token, by TokenReview."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    server = f"--server=https://{machine.address}:{API_PORT}"
    answer = json.loads(world.plane.kubectl(server, "create", "-f", "-", "-o", "json", stdin=json.dumps(review)))
    return bool(answer["status"].get("authenticated"))


def _authority(folder: Path, name: str) -> Path:
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10"]
    words += ["-subj", f"/CN={name}", "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")]
    subprocess.run(words, check=True, capture_output=True)
    return folder / f"{name}.crt"


def _leaf(folder: Path, authority: Path) -> Path:
    """An administrator's certificate of that CA, with its key in the same file."""
    out, key = folder / f"admin-of-{authority.name}.pem", folder / f"admin-of-{authority.name}.key"
    if not out.exists():
        request = subprocess.run(
            ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]
            + ["-subj", "/O=system:masters/CN=tester", "-addext", "extendedKeyUsage=clientAuth"],
            check=True, capture_output=True,
        ).stdout  # fmt: skip
        leaf = subprocess.run(
            ["openssl", "x509", "-req", "-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-days", "2", "-copy_extensions", "copy"]
            + ["-set_serial", str(time.time_ns())],
            input=request, check=True, capture_output=True,
        ).stdout  # fmt: skip
        out.write_bytes(leaf + key.read_bytes())
    return out


def _verifies(machine: Machine, port: int, authority: Path) -> bool:
    tls = ssl.create_default_context(cafile=str(authority))
    try:
        with _connect(machine, port) as plain, tls.wrap_socket(plain, server_hostname=str(machine.address)):
            return True
    except ssl.SSLCertVerificationError:
        return False


def _status(machine: Machine, port: int, leaf: Path) -> int:
    """What a client with that certificate is answered. Whom it asks is another question."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(leaf)
    connection = http.client.HTTPSConnection(str(machine.address), port, timeout=10, context=tls)
    try:
        connection.request("GET", "/api/v1/nodes" if port == API_PORT else "/configz")
        return connection.getresponse().status
    finally:
        connection.close()


def _connect(machine: Machine, port: int) -> Any:
    return socket.create_connection((str(machine.address), port), timeout=10)


def _answers(call: Callable[[], bool]) -> bool:
    try:
        return call()
    except DevError:
        return False
