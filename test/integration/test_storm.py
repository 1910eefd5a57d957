"""Disconnects by the thousand while Secrets change all the time: no change is missed, no restart repeated.

CI has 1,000 disconnects, 100 relists and 3 restarts of the API server; with CERTROLL_LONG=1 it is restarted 50 times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event

import pytest

from control_plane import ROOT, ControlPlane, daemon_pid, start_api_server, wait_until
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import sanitizers  # noqa: E402
from fake_api import FakeApi, lists, requests, watches  # noqa: E402
from fake_api.faults import Close, CutFrame, ErrorEvent, GoAway  # noqa: E402
from fake_api.message import Request  # noqa: E402

_LONG = os.environ.get("CERTROLL_LONG") == "1"
_DISCONNECTS, _RELISTS = 1000, 100
_RESTARTS = 50 if _LONG else 3
_LANES = 8  # each in a namespace of its own, so with watches of its own
_DRAIN = 2.0
_PATIENCE = 180.0  # several of the longest backoff (30 s), on a busy machine

_OF_STREAMS = [CutFrame("reset"), CutFrame("finish"), Close("reset"), Close("finish")]
_OF_CONNECTIONS = [CutFrame("drop"), GoAway(processed=False)]  # these take all that is on it
# So that a watch lives long enough to bring something: without an event its backoff grows to half a minute, as it should.
_STRUCK = 0.12  # of the watches that run, each time
_CONNECTION = 0.06  # of the strikes
_PAUSE = (0.1, 0.3)


@pytest.fixture
def lanes(control_plane: ControlPlane) -> Iterator[list[Lane]]:
    """Policies that change independently of each other."""
    prefix = f"storm-{time.time_ns() % 10**9}"
    namespaces = [f"{prefix}-{number}" for number in range(_LANES)]
    material = leaves(4)
    with direct(control_plane) as api, PaperPods(api, namespaces):
        control_plane.create(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces))
        made = [Lane(api, namespace, "lane", material) for namespace in namespaces]
        for lane in made:
            lane.create()
        yield made
    control_plane.kubectl("delete", "namespace", *namespaces, "--wait=false")


@contextmanager
def operator(plane: ControlPlane, lanes: list[Lane], kubeconfig: Path, folder: Path) -> Iterator[Operator]:
    first, *others = [lane.namespace for lane in lanes]
    flags = ["--leader-elect=false", *(f"--namespace={namespace}" for namespace in others)]
    running = Operator(plane, first, "operator", kubeconfig, folder, *flags, extra_environment=sanitizers.ENVIRONMENT)
    try:
        for lane in lanes:
            lane.wait_settled()
        yield running
        assert running.process.poll() is None, f"ended; its log: {running.log}"
        assert sanitizers.report_in(running.log) is None
    finally:
        running.end()


@contextmanager
def changing(lanes: list[Lane]) -> Iterator[Callable[[], int]]:
    """Each lane rotates, again and again; afterwards the last one is finished, and all of them are counted.

    What it gives tells how many changes there were so far, or what has gone wrong.
    """
    end = Event()

    def turn(lane: Lane) -> None:
        while not end.is_set():
            lane.change()
            lane.wait_settled(_PATIENCE)

    with ThreadPoolExecutor(len(lanes)) as pool, ExitStack() as stack:
        stack.callback(end.set)
        turns: list[Future[None]] = [pool.submit(turn, lane) for lane in lanes]

        def so_far() -> int:
            for each in turns:
                if each.done():
                    each.result()
            return sum(lane.changes for lane in lanes)

        yield so_far
        end.set()
        for each in turns:
            each.result()
    assert [complaint for lane in lanes if (complaint := lane.complaint())] == []


def test_a_thousand_disconnects_and_a_hundred_relists(control_plane: ControlPlane, lanes: list[Lane], tmp_path: Path) -> None:
    config = json.loads(control_plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    dice = random.Random(20261121)

    def some(request: Request) -> bool:
        return request.is_watch and dice.random() < _STRUCK

    def disconnects() -> int:
        """All that ended: no watch is old enough to end by itself."""
        return sum(call.told == 200 and call.ended is not None for call in fake.calls(watches(), before))

    def relists() -> int:
        return sum(call.told == 200 for call in fake.calls(lists(), before))

    with FakeApi(tmp_path, config) as fake, operator(control_plane, lanes, fake.kubeconfig(tmp_path / "config"), tmp_path):
        began, before = time.monotonic(), fake.count()
        with changing(lanes):
            while disconnects() < _DISCONNECTS or relists() < _RELISTS:
                fake.strike(some, dice.choice(_OF_CONNECTIONS if dice.random() < _CONNECTION else _OF_STREAMS))
                if relists() * _DISCONNECTS < disconnects() * _RELISTS:
                    fake.strike(some, ErrorEvent(410))
                time.sleep(dice.uniform(*_PAUSE))
        took = time.monotonic() - began
        cut, listed, asked = disconnects(), relists(), len(fake.calls(requests(), before))
    assert fake.errors == []
    changes = sum(lane.changes for lane in lanes)
    print(f"{cut} disconnects, {listed} relists, {changes} changes, {asked} requests in {took:.0f} s")
    assert changes > 2 * len(lanes)
    # A watch is asked for once for each time that it was broken; the rest are writes of rotations.
    assert asked < 2 * cut + 20 * changes


@pytest.mark.timeout(3600)
def test_restarts_of_the_api_server(control_plane: ControlPlane, lanes: list[Lane], tmp_path: Path) -> None:
    """The real one: by SIGTERM and by SIGKILL in turn, while it is being written to."""
    few = lanes[:3]
    began = time.monotonic()
    try:
        with operator(control_plane, few, control_plane.kubeconfig, tmp_path), changing(few) as so_far:
            for number in range(_RESTARTS):
                before = so_far()
                _end_api_server(control_plane, signal.SIGKILL if number % 2 else signal.SIGTERM)
                start_api_server(control_plane)  # and the controllers
                wait_until("a rotation to go on", lambda: so_far() > before, _PATIENCE)
    finally:
        start_api_server(control_plane)
    changes, took = sum(lane.changes for lane in few), time.monotonic() - began
    print(f"{_RESTARTS} restarts, {changes} changes in {took:.0f} s")


def _end_api_server(plane: ControlPlane, number: signal.Signals) -> None:
    """And kube-controller-manager, whose own backoff would hold up the rollouts for half a minute.

    After SIGTERM an API server waits up to a minute for watches to end by themselves; it gets two seconds of that.
    """
    server, controllers = (daemon_pid(plane, name) for name in ("kube-apiserver", "kube-controller-manager"))
    os.kill(controllers, signal.SIGKILL)
    os.kill(server, number)
    end = time.monotonic() + _DRAIN
    while time.monotonic() < end and Path(f"/proc/{server}/exe").exists():
        time.sleep(0.1)
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGKILL)
    wait_until("the API server to be gone", lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in (server, controllers)))
