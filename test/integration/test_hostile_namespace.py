"""One of a hundred namespaces attacks in all ways at once (hostile/); the others go on with their rotations, and nobody restarts the operator.

The release build, whose memory is what a Deployment limits. With CERTROLL_LONG 99 others and ten minutes.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from floods import flood
from hostile.attack import Attack
from hostile.material import for_servers
from hostile.pod_ways import ADDRESS, LABEL, servers
from hostile.tenant import RULES, Tenant
from operators import Operator, account
from paper_pods import EVERYWHERE, PaperPods
from rotations import API, Lane, direct, leaf, leaves

PROGRAM = Path(os.environ.get("CERTROLL_BUILDS", ROOT / "build")) / "release" / "bin" / "certroll-operator"
QUIET, SECONDS = (99, 600) if os.environ.get("CERTROLL_LONG") else (20, 60)
LIMIT = 128 << 20  # manifests/base/deployment.yaml
AT_ONCE = 4
PATIENCE = 120.0  # for one rotation
WRITE_TIMEOUT = 60.0  # of the attack: its largest objects take the API server more than ten seconds, beside all the rest
_NAME = "quiet"


class Floor:
    """A rollout without certroll, again and again: the API server, Kubernetes' controllers and the pods on paper, which a rotation
    waits for as well, and whose time the hostile namespace takes, too. What makes this slower is not certroll's."""

    def __init__(self, api: API, namespace: str) -> None:
        self.seconds: list[float] = []
        self._api, self._namespace = api, namespace
        self._end = threading.Event()
        labels = {"app": _NAME, "part": "floor"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example.com/unknown:1"}], "terminationGracePeriodSeconds": 0}}
        api.apply("deployments", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "floor", "namespace": namespace},
            "spec": {"replicas": 1, "revisionHistoryLimit": 1, "selector": {"matchLabels": labels}, "template": template},
        })  # fmt: skip

    @contextmanager
    def under_way(self) -> Iterator[list[float]]:
        """What each has taken, in seconds, so far."""
        self.seconds, self._end = [], threading.Event()
        thread = threading.Thread(target=self._go_on, daemon=True)
        thread.start()
        try:
            yield self.seconds
        finally:
            self._end.set()
            thread.join()

    def _go_on(self) -> None:
        while not self._end.is_set():
            began = time.monotonic()
            patch = {"spec": {"template": {"metadata": {"annotations": {"at": str(began)}}}}}
            generation = self._api.merge("deployments", self._namespace, "floor", patch)["metadata"]["generation"]
            wait_until("the floor to be rolled out", lambda: self._is_out(generation), PATIENCE, pause=0.05)
            self.seconds.append(time.monotonic() - began)

    def _is_out(self, generation: int) -> bool:
        status = self._api.get("deployments", self._namespace, "floor").get("status", {})
        return (status.get("observedGeneration", 0), status.get("updatedReplicas"), status.get("availableReplicas"), status.get("replicas")) == (generation, 1, 1, 1)


class Health:
    """Asks like a kubelet, once a second; a thread of its own."""

    def __init__(self, operator: Operator) -> None:
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self._operator = operator
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._end.wait(1.0):
            began = time.monotonic()
            for page in ("/healthz", "/readyz"):
                status, body = self._operator.get(page, "--max-time", "5", page="/healthz")
                if status != 200:
                    self.failures.append(f"{page}: {status} {body}")
            self.seconds.append(time.monotonic() - began)


def _resident(pid: int) -> tuple[int, int]:
    """Bytes now, and the most so far."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def _rotate_in_turn(lanes: list[Lane], seconds: float) -> list[float]:
    """How long each rotation took. Some at a time, so long, and each lane at least once."""
    end = time.monotonic() + seconds

    def go_round(mine: list[Lane]) -> list[float]:
        took: list[float] = []
        while len(took) < len(mine) or time.monotonic() < end:
            began = time.monotonic()
            mine[len(took) % len(mine)].rotate(PATIENCE)
            took.append(time.monotonic() - began)
        return took

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [each for took in pool.map(go_round, [lanes[at::AT_ONCE] for at in range(AT_ONCE)]) for each in took]


@dataclass(frozen=True)
class Place:
    lanes: list[Lane]  # each in a namespace of its own
    tenant: Tenant  # of the hostile one

    @property
    def first(self) -> str:
        return self.lanes[0].namespace


@pytest.fixture
def place(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Place]:
    prefix = f"t{time.time_ns() % 10**9}"
    quiet, hostile = [f"{prefix}-{_NAME}-{number}" for number in range(QUIET)], f"{prefix}-hostile"
    control_plane.create(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in [*quiet, hostile]))
    rights = json.loads(account(control_plane, hostile, "tenant", RULES, tmp_path).read_text())
    material = leaves(3)
    with (
        direct(control_plane) as api,
        PaperPods(api, EVERYWHERE, labels=f"app={_NAME}"),
        PaperPods(api, [hostile], labels=LABEL, address=ADDRESS),
    ):
        lanes = [Lane(api, namespace, _NAME, material) for namespace in quiet]
        for lane in lanes:
            lane.create()
        yield Place(lanes, Tenant(API.from_kubeconfig(rights, WRITE_TIMEOUT), hostile))
    control_plane.kubectl("delete", "namespace", *quiet, hostile, "--wait=false")


@pytest.fixture
def attack(control_plane: ControlPlane, place: Place, tmp_path: Path) -> Iterator[Attack]:
    for_servers(tmp_path / "servers", leaf(place.lanes[0].leaves[0]))
    with servers(control_plane, tmp_path / "servers") as running:
        attack = Attack(place.tenant, leaves(3), running, tmp_path)
        yield attack
        attack.leave()


@contextmanager
def _operator(plane: ControlPlane, place: Place, folder: Path) -> Iterator[Operator]:
    running = Operator(
        plane, place.first, "operator", plane.kubeconfig, folder, f"--operator-namespace={place.first}", "--health-probe-bind-address=127.0.0.1:0",
        program=PROGRAM, everywhere=True, extra_environment={"GLIBC_TUNABLES": "glibc.malloc.tcache_max=128"},
    )  # fmt: skip
    try:
        running.wait_line("became leader")
        for lane in place.lanes:
            lane.wait_settled()
        yield running
    finally:
        running.end()


@pytest.mark.timeout(SECONDS + 1800)
def test_rotations_elsewhere_go_on(
    control_plane: ControlPlane, place: Place, attack: Attack, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    def lease() -> tuple[object, object]:
        spec = control_plane.get("lease", "certroll-operator", "-n", place.first)["spec"]
        return spec["holderIdentity"], spec["leaseTransitions"]

    with _operator(control_plane, place, tmp_path) as operator:
        floor = Floor(place.lanes[0].api, place.first)
        with floor.under_way() as floor_before:
            before = _rotate_in_turn(place.lanes, 10)
        led_by = lease()

        attack.prepare()
        port = int(operator.serving("/healthz")["port"])
        with ExitStack() as stack:
            for each in (attack.under_way(), flood(port, "a byte each 9 s", 1600)):
                stack.enter_context(each)
            floor_under = stack.enter_context(floor.under_way())
            health = stack.enter_context(Health(operator))
            under = _rotate_in_turn(place.lanes, SECONDS)
        now, most = _resident(operator.process.pid)
        costly = [each for each in place.tenant.api.list("certrotationpolicies", place.tenant.namespace) if "TooCostly" in str(each.get("status", {}))]
        assert operator.process.poll() is None
        still_led_by = lease()
        operator.signal(signal.SIGTERM)
        assert operator.wait() == 0
    usual, then = statistics.median(before), statistics.median(under)
    bare, bare_then = statistics.median(floor_before), statistics.median(floor_under)
    told = (
        f"{attack.written.total()} hostile writes in {SECONDS} s by {len(attack.names())} ways; of {QUIET} other namespaces a rotation took "
        f"{usual:.2f} s before, {then:.2f} s then (worst {max(under):.2f} s, {len(under)} of them), a rollout without certroll {bare:.2f} s and "
        f"{bare_then:.2f} s ({len(floor_under)}); {len(health.seconds)} probes, the slowest "
        f"{max(health.seconds):.2f} s; {now >> 20} MiB resident, {most >> 20} MiB at most"
    )
    print(told, f"the ways: {', '.join(attack.names())}", dict(attack.written), sep="\n")
    record_property("told", told)
    assert attack.none() == {}
    assert costly, "the attack was none"
    assert attack.written.total() > SECONDS
    assert health.failures == []
    assert most < LIMIT
    assert still_led_by == led_by
    assert [complaint for lane in place.lanes if (complaint := lane.complaint())] == []
    assert then / usual < 2 * bare_then / bare
