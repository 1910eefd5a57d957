"""The shutdown manager beside real Envoys that certroll restarts: only what clients see counts.

Of each rollout 200 long requests and 50 streams are in the middle of something when their Envoys are told to end, and short requests
come all the time.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from certroll_dev import paths
from certroll_dev.demo import component_images, pods
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.waiting import wait_for
from certroll_dev.operator_image import Image
from drain_edge import HTTP, MANAGER, NAMESPACE, Edge
from drain_world import Clients, Pod, World, kill, rss_anon
from operator_pods import FAST_ELECTION, OperatorPods

_LOGS = paths.REPOSITORY / "build" / "test-logs" / "test_shutdown_manager"  # of what the tests share
_REQUESTS, _STREAMS, _RATE = 200, 50, 10.0
_HOLD = 8.0  # seconds: a drain that does not wait for them is over long before
_RELEASE = 8.0  # seconds, in which they come to their ends
_GOES = 45.0  # seconds from the end of a drain until its pod is gone: a small machine, on which much goes on
_DRAIN, _GRACE = 20, 60  # seconds, where somebody never ends
_MOST_MEMORY = 3 << 20
_PROGRAM = "/certroll/certroll-shutdown-manager"

pytestmark = pytest.mark.timeout(600)


def _hook(grace: int, *flags: str) -> dict[str, Any]:
    """The exec component's, with other flags; its init container checks the same."""
    flags = (*flags, f"--termination-grace-period={grace}s")
    return {
        "terminationGracePeriodSeconds": grace,
        "initContainers": [{"name": "certroll-shutdown-manager-install", "args": ["install", "--to=/certroll", "--", *flags]}],
        "containers": [{"name": "envoy", "lifecycle": {"preStop": {"exec": {"command": [_PROGRAM, "shutdown", *flags]}}}}],
    }


def _beside(name: str, command: str, hook: Object, shutdown: Sequence[str] = (), **container: Any) -> dict[str, Any]:
    """As Contour and Envoy Gateway have it: a container of its own, whose preStop drains while that of Envoy waits."""
    manager = {
        "name": name,
        "image": f"{MANAGER}:0.1.0",
        "command": [command],
        "args": ["envoy", "shutdown-manager"],
        "lifecycle": {"preStop": {"exec": {"command": [command, "envoy", "shutdown", *shutdown]}}},
        **container,
    }
    return {"terminationGracePeriodSeconds": 300, "containers": [{"name": "envoy", "lifecycle": {"preStop": {"httpGet": hook}}}, manager]}


def _contour() -> Edge:
    mount = {"name": "envoy-admin", "mountPath": "/admin"}
    pod = _beside("shutdown-manager", "/bin/contour", {"path": "/shutdown", "port": 8090}, volumeMounts=[mount])
    pod["containers"][0]["volumeMounts"] = [mount]
    pod["volumes"] = [{"name": "envoy-admin", "emptyDir": {}}]
    return Edge("contour", replicas=1, pod=pod, admin="/admin/admin.sock")


def _gateway() -> Edge:
    probe = {"httpGet": {"path": "/healthz", "port": 19002}, "periodSeconds": 1}
    pod = _beside(
        "shutdown-manager", "envoy-gateway", {"path": "/shutdown/ready", "port": 19002}, ports=[{"containerPort": 19002}],
        readinessProbe=probe, livenessProbe=probe | {"periodSeconds": 10}, startupProbe=probe | {"failureThreshold": 30},
    )  # fmt: skip
    return Edge("gateway", replicas=1, pod=pod, admin="127.0.0.1:19000")


def _exec_and_sidecar() -> Edge:
    """The hook of one, the pages of the other."""
    sidecar = {"name": "certroll-shutdown-manager", "image": f"{MANAGER}:0.1.0", "args": ["serve"], "restartPolicy": "Always"}
    return Edge("both", "exec", replicas=1, pod={"initContainers": [sidecar]})


EXEC, PLAIN, SIDECAR = Edge("hooked", "exec"), Edge("plain"), Edge("sidecar", "sidecar")
ENDLESS = Edge("endless", "exec", replicas=1, pod=_hook(_GRACE, f"--drain-timeout={_DRAIN}s"))
# Nobody listens there: it is Envoy that is asked at the wrong place.
UNREACHABLE = Edge("unreachable", "exec", replicas=1, pod=_hook(_GRACE, f"--drain-timeout={_DRAIN}s", "--admin-address=127.0.0.1:9"))
KILLED, BOTH = Edge("killed", "sidecar", replicas=1), _exec_and_sidecar()
CONTOUR, GATEWAY = _contour(), _gateway()
_SMALL_ONES = (ENDLESS, UNREACHABLE, KILLED, BOTH, CONTOUR, GATEWAY)


# --- what they share


@pytest.fixture(scope="module")
def the_world(
    request: pytest.FixtureRequest, cluster: LocalCluster, api: API, shutdown_manager_image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    _LOGS.mkdir(parents=True, exist_ok=True)
    cluster.load_image(shutdown_manager_image.archive)
    cluster.load_image(component_images.envoy().archive)
    world = World(cluster, api, _LOGS, tmp_path_factory.mktemp("drain"), shutdown_manager_image.reference)
    request.module.certroll_world = world
    with world.running():
        yield world


@pytest.fixture(scope="module")
def operator(the_world: World, image: Image) -> Iterator[OperatorPods]:
    operator = OperatorPods(the_world.cluster, the_world.api, image, [NAMESPACE], _LOGS / "operator.log", args=FAST_ELECTION)
    with operator:
        yield operator


@pytest.fixture(scope="module")
def small_ones(the_world: World, operator: OperatorPods) -> None:
    """Those of one pod, all at a time: most of a start is waiting."""
    the_world.create(*_SMALL_ONES)


@pytest.fixture
def world(the_world: World, operator: OperatorPods, logs: Path) -> World:
    the_world.logs = logs
    return the_world


def _cut(clients: Clients) -> list[str]:
    return [f"{one.kind}: {one.cut}" for one in clients.over() if one.cut]


def _wait_held_back(world: World, edge: Edge, old: list[Pod], clients: Clients) -> int:
    """Through a stretch of the drain in which nobody ends. Returns the most memory that one of the managers has had."""
    world.wait_draining(edge, old)
    began, memory = time.monotonic(), 0

    def look() -> bool:
        nonlocal memory
        running = [pid for pod in world.pods(edge) if pod.told for pid in world.managers(pod)]
        memory = max([memory, *map(rss_anon, running)])
        return time.monotonic() - began >= _HOLD

    wait_for("a stretch of the drain", look, deadline=_HOLD + 60)
    assert not clients.over(), f"somebody has been ended: {_cut(clients)[:5]}"
    assert 0 < memory <= _MOST_MEMORY
    return memory


def _wait_as_long(world: World, edge: Edge, old: list[Pod]) -> None:
    """Without a shutdown manager: the same stretch from when they were told, so that nobody has to hold out longer than with it."""
    world.wait_told(edge, old)
    began = time.monotonic()
    wait_for("the same stretch as with it", lambda: time.monotonic() - began >= _HOLD, deadline=_HOLD + 60)


def _let_go(world: World, edge: Edge, old: list[Pod], clients: Clients) -> float:
    """Everybody comes to an end by themselves, and the pods then end. Returns the seconds from the last client to the last pod."""
    world.upstream.release(_RELEASE)
    clients.wait_over(deadline=_RELEASE + 120)
    ended = time.monotonic()
    world.wait_gone(edge, old, deadline=_GOES)
    return time.monotonic() - ended


def _failed_hooks(world: World, pod: Pod) -> list[Object]:
    return [event for event in world.events(pod) if event["reason"] == "FailedPreStopHook"]


def _assert_drained(world: World, old: list[Pod]) -> None:
    for pod in old:
        assert not _failed_hooks(world, pod)
        [last] = world.results(pod)
        assert (last["result"], last["open"], last["errors"]) == ("Drained", 0, 0)


def _said(world: World, edge: Edge) -> str:
    """What the operator says the restart waits for."""
    return world.status(edge).consumers[edge.name].blocked_by


def _said_of_drain(world: World, edge: Edge) -> str | None:
    """Another word may come first, where a kubelet gave a new pod the Secret of before."""
    consumer = world.status(edge).consumers[edge.name]
    return consumer.blocked_by if consumer.blocked_reason in ("Drain", "DrainStuck") else None


# --- rolled by certroll


@dataclass(frozen=True)
class _Rolled:
    old: list[Pod]
    cut: list[str]
    failed: list[str]  # of the short requests
    calls: int
    said: str  # by the operator while they drained
    memory: int
    after: float  # seconds from the last client to the last pod


def _rolled(world: World, edge: Edge, drains: bool) -> _Rolled:
    """A new leaf, and what becomes of all who are connected."""
    said, memory, after = "", 0, 0.0
    with contextlib.ExitStack() as stack:
        calls, old = stack.enter_context(world.calls(edge, _RATE)), world.pods(edge)
        # A node's proxy hears of a pod a moment after it is ready.
        wait_for("the Service to lead to each pod", lambda: all(world.upstream.answered(pod.ip) for pod in old), deadline=60)
        clients = stack.enter_context(world.clients(edge, _REQUESTS, _STREAMS))
        held = {pod.name: world.upstream.held(pod.ip) for pod in old}
        assert min(held.values()) > (_REQUESTS + _STREAMS) / 10, held
        change = world.renew(edge)
        if drains:
            memory = _wait_held_back(world, edge, old, clients)
            said = wait_for("the operator to say what it waits for", lambda: _said_of_drain(world, edge), deadline=60)
            after = _let_go(world, edge, old, clients)
        else:
            _wait_as_long(world, edge, old)
            _let_go(world, edge, old, clients)
        consumer = world.wait_settled(edge, change).consumers[edge.name]
        new = world.pods(edge)
        assert (consumer.decision, consumer.verified, consumer.total) == ("Restart", edge.replicas, edge.replicas)
        assert len(new) == edge.replicas and not {pod.uid for pod in old} & {pod.uid for pod in new}
        assert {pods.served_leaf(pod.ip, HTTP, edge.server_name) for pod in new} == {change.leaf}
        made = calls.so_far()
        assert len(made) >= _RATE * _HOLD / 2, "who has hardly asked has hardly been cut"
        assert len(clients.over()) == _REQUESTS + _STREAMS
    failed = [call.reason for call in made if not call.ok]
    return _Rolled(old, _cut(clients), failed, len(made), said, memory, after)


@pytest.mark.parametrize("edge", [EXEC, SIDECAR], ids=["exec", "sidecar"])
def test_nobody_is_cut_when_certroll_restarts_it(world: World, edge: Edge, report: list[str]) -> None:
    world.create(edge)
    rolled = _rolled(world, edge, drains=True)
    report.append(
        f"cut: {len(rolled.cut)} of {_REQUESTS} requests and {_STREAMS} streams; failed: {len(rolled.failed)} of {rolled.calls} short requests; "
        f"the last pod gone {rolled.after:.1f} s after the last client; anonymous memory of the manager {rolled.memory / 1024:.0f} KiB"
    )
    assert not rolled.cut and not rolled.failed, (rolled.cut[:5], rolled.failed[:5])
    # One more, where a kubelet gave the first new pod the Secret of before.
    assert re.fullmatch(r"drain: [23] old pods drain their connections, \S+ since \S+Z, at most 4m55s", rolled.said), rolled.said
    _assert_drained(world, rolled.old)
    world.remove(edge)


def test_without_it_they_are_cut(world: World, report: list[str]) -> None:
    world.create(PLAIN)
    rolled = _rolled(world, PLAIN, drains=False)
    report.append(
        f"cut: {len(rolled.cut)} of {_REQUESTS} requests and {_STREAMS} streams; failed: {len(rolled.failed)} of {rolled.calls} short requests"
    )
    assert len(rolled.cut) == _REQUESTS + _STREAMS, "whom does the shutdown manager help, then?"
    world.remove(PLAIN)


# --- who cannot be waited for


@dataclass(frozen=True)
class _Ended:
    pod: Pod
    after: float  # seconds from when it was told to end until its client was cut
    event: Object
    result: dict[str, Any]  # as it was logged
    said: str  # by the operator meanwhile


@pytest.fixture(scope="module")
def timed_out(the_world: World, small_ones: None) -> dict[str, _Ended]:
    """Both at a time, since each takes its time-out: one client each, who never ends."""
    edges = (ENDLESS, UNREACHABLE)
    the_world.logs = _LOGS
    with the_world.clients(ENDLESS, 0, 1) as endless, the_world.clients(UNREACHABLE, 1, 0) as unreachable:
        old = {edge.name: the_world.pods(edge)[0] for edge in edges}
        for edge in edges:
            the_world.renew(edge)
        said: dict[str, str] = {}
        told: dict[str, float] = {}

        def look() -> bool:
            for edge in edges:
                for obj in the_world.api.list("pods", NAMESPACE, f"app={edge.name}"):
                    if obj["metadata"]["uid"] == old[edge.name].uid and "deletionTimestamp" in obj["metadata"]:
                        told[edge.name] = _told_at(obj)
                        said[edge.name] = _said(the_world, edge) or said.get(edge.name, "")
                the_world.pods(edge)  # keeps their logs
            return bool(endless.over() and unreachable.over())

        wait_for("both to be ended", look, deadline=180 + _GRACE, missing=lambda: str(told))
        found = {}
        for edge, clients in ((ENDLESS, endless), (UNREACHABLE, unreachable)):
            pod, [client] = old[edge.name], clients.over()
            the_world.wait_gone(edge, [pod], deadline=_GOES)
            assert client.cut
            [event] = wait_for("the kubelet's Event", lambda pod=pod: _failed_hooks(the_world, pod), deadline=30)
            [result] = the_world.results(pod)
            found[edge.name] = _Ended(pod, client.ended - told[edge.name], event, result, said.get(edge.name, ""))
    return found


def _told_at(pod: Object) -> float:
    """To end: in seconds since the epoch, cut off."""
    until = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"])
    return until.timestamp() - pod["metadata"]["deletionGracePeriodSeconds"]


def _assert_timed_out(ended: _Ended) -> None:
    assert _DRAIN <= ended.after < _GRACE - 5 and ended.result["seconds"] >= _DRAIN, "not at its time-out"
    assert ended.result["result"] == "TimedOut" and ended.result["level"] == "warn"
    # The kubelet keeps for itself what the hook said, so that no secret gets into an Event.
    assert (ended.event["type"], ended.event["message"]) == ("Warning", "PreStopHook failed")
    drains = rf"old pod {ended.pod.name} drains its connections|2 old pods drain their connections, \S+"
    assert re.fullmatch(rf"drain: ({drains}) since \S+Z, at most {_DRAIN}s", ended.said), ended.said


def test_a_stream_that_never_ends_is_ended_at_the_time_out_and_reported(timed_out: dict[str, _Ended], report: list[str]) -> None:
    ended = timed_out[ENDLESS.name]
    report.append(f"ended after {ended.after:.1f} s of {_DRAIN}; logged: {json.dumps(ended.result)}; the operator: {ended.said!r}")
    _assert_timed_out(ended)
    assert ended.result["open"] in (1, 2), "the stream, and perhaps a probe of the kubelet's that came in that moment"


def test_an_admin_interface_that_nobody_reaches_never_counts_as_drained(timed_out: dict[str, _Ended], report: list[str]) -> None:
    ended = timed_out[UNREACHABLE.name]
    report.append(f"ended after {ended.after:.1f} s of {_DRAIN}; logged: {json.dumps(ended.result)}")
    _assert_timed_out(ended)
    assert ended.result["open"] is None and ended.result["errors"] > 1
    assert ended.result["error"] == "127.0.0.1:9: cannot connect: Connection refused"


# --- the sidecar killed in the middle of a drain


def test_a_killed_sidecar_cuts_everybody_but_not_where_the_hook_is_in_envoys_container(
    world: World, small_ones: None, report: list[str]
) -> None:
    with world.clients(KILLED, 10, 10) as killed, world.clients(BOTH, 10, 10) as both:
        old = {edge.name: world.pods(edge) for edge in (KILLED, BOTH)}
        for edge in (KILLED, BOTH):
            world.delete(old[edge.name][0])
        for edge in (KILLED, BOTH):
            world.wait_draining(edge, old[edge.name])
        assert not killed.over() and not both.over()
        at = time.time()
        for edge in (KILLED, BOTH):
            pids = [pid for pid, container in world.managers(old[edge.name][0]).items() if container != "envoy"]
            assert len(pids) == 1
            kill(pids[0])
        # What docs/shutdown-manager.md says of httpGet: a hook that fails ends the container at once, long before any time-out.
        cut = killed.wait_over(deadline=60)
        assert len(_cut(killed)) == 20 and not world.results(old[KILLED.name][0])
        report.append(f"with httpGet all 20 were cut {max(one.ended for one in cut) - at:.1f} s after the sidecar was killed")
        _wait_held_back(world, BOTH, old[BOTH.name], both)
        _let_go(world, BOTH, old[BOTH.name], both)
        assert not _cut(both)
    _assert_drained(world, old[BOTH.name])


# --- in the place of the others


@pytest.mark.parametrize("edge", [CONTOUR, GATEWAY], ids=lambda edge: edge.name)
def test_it_takes_the_place_of_the_others_image(world: World, small_ones: None, edge: Edge, report: list[str]) -> None:
    """With their commands, ports, paths and files; Contour's Envoy has its admin interface at a Unix socket."""
    with world.clients(edge, 10, 10) as clients:
        old = world.pods(edge)
        world.delete(old[0])
        memory = _wait_held_back(world, edge, old, clients)
        after = _let_go(world, edge, old, clients)
        assert not _cut(clients)
    report.append(f"cut: 0 of 20; the pod gone {after:.1f} s after the last client; anonymous memory of the manager {memory / 1024:.0f} KiB")
    _assert_drained(world, old)
