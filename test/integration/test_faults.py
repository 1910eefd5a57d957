"""Each fault at the worst moment of a rotation: nothing is missed, nothing is done twice, and the API server is left in peace.

The operator sees the API server through test/support/fake_api. A rotation is one change of a Secret; it must end in one restart
and on record. How the writes are ordered is not pinned here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from control_plane import ROOT, ControlPlane, wait_until
from operators import Operator
from paper_pods import PaperPods
from rotations import Lane, direct, leaves, quiet

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

import sanitizers  # noqa: E402
from fake_api import FakeApi, frames, lists, requests, watches, writes  # noqa: E402
from fake_api.faults import (  # noqa: E402
    BrokenGzip, Close, CutFrame, Delay, ErrorEvent, GoAway, LoseAnswer, NoMark, PastList, Precede, Refuse, Repeat, ShuffledList,
    Silent, Stall,
)  # fmt: skip
from fake_api.message import event  # noqa: E402
from fake_api.schedule import Rule  # noqa: E402

# Beyond what a rotation takes anyway (about 10): what a fault may cost with client-go's habits of backing off.
_REQUESTS = 60
_ROTATION = 60.0
_AT_ONCE = 8


@dataclass
class Stage:
    """A rotation in which something goes wrong."""

    fake: FakeApi
    lane: Lane
    operator: Operator

    def rotate(self, timeout: float = _ROTATION) -> None:
        before = self.fake.count()
        self.lane.rotate(timeout)
        came = self.fake.calls(requests(), since=before)
        assert len(came) < _REQUESTS, f"{len(came)} requests for one rotation"

    def check(self) -> None:
        """As many restarts as changes, as many PATCHes as restarts, each with material of its own; and the process lives."""
        assert self.lane.complaint() is None
        done = [call for call in self.fake.calls(writes("deployments", "PATCH")) if call.forwarded == 200]
        assert len(done) == self.lane.changes, [str(call.request.body[:300]) for call in done]
        assert len(set(self.lane.annotations)) == len(self.lane.annotations) == self.lane.changes
        assert self.operator.process.poll() is None, f"ended; its log: {self.operator.log}"


@pytest.fixture(scope="module")
def material() -> list[dict[str, Any]]:
    return leaves(6)  # a test has fewer changes, so no annotation comes back


@contextmanager
def staged(plane: ControlPlane, namespace: str, folder: Path, material: list[dict[str, Any]]) -> Iterator[Stage]:
    """The operator, in sync, its policy settled."""
    config = json.loads(plane.kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    with direct(plane) as api, FakeApi(folder, config) as fake, PaperPods(api, [namespace]):
        lane = Lane(api, namespace, "lane", material)
        lane.create()
        kubeconfig = fake.kubeconfig(folder / "fake.kubeconfig")
        flags = ("--leader-elect=false", "--log-level=debug")
        operator = Operator(plane, namespace, "operator", kubeconfig, folder, *flags, extra_environment=sanitizers.ENVIRONMENT)
        try:
            lane.wait_settled()
            yield Stage(fake, lane, operator)
            report = sanitizers.report_in(operator.log)
            assert report is None
            assert fake.errors == []
        finally:
            operator.end()


@pytest.fixture
def stage(control_plane: ControlPlane, namespace: str, tmp_path: Path, material: list[dict[str, Any]]) -> Iterator[Stage]:
    with staged(control_plane, namespace, tmp_path, material) as stage:
        yield stage


Lay = Callable[[Stage], Rule]


def secret_event(fault: Any) -> Lay:
    """The event that tells of the change."""
    return lambda stage: stage.fake.fault(watches("secrets"), fault, frames("MODIFIED", stage.lane.name))


def rollout_event(fault: Any) -> Lay:
    """The event that shows the restart to the operator: its own write comes back."""
    return lambda stage: stage.fake.fault(watches("deployments"), fault, frames("MODIFIED", stage.lane.name))


def policy_event(fault: Any) -> Lay:
    return lambda stage: stage.fake.fault(watches("certrotationpolicies"), fault, frames("MODIFIED", stage.lane.name))


def restart(fault: Any, times: int = 1) -> Lay:
    return lambda stage: stage.fake.fault(writes("deployments", "PATCH"), fault, times=times)


def status(fault: Any, times: int = 1) -> Lay:
    return lambda stage: stage.fake.fault(writes("certrotationpolicies/status", "PATCH"), fault, times=times)


def told(fault: Any) -> Lay:
    """An Event of Kubernetes: nobody's rotation may depend on it."""
    return lambda stage: stage.fake.fault(writes("events"), fault, times=3)


def relist(fault: Any, times: int = 1) -> Lay:
    """410 for the watch of Secrets in the middle of a rotation, and the list that follows has the fault."""

    def lay(stage: Stage) -> Rule:
        rule = stage.fake.fault(lists("secrets"), fault, times=times)
        stage.fake.fault(watches("secrets"), ErrorEvent(410), frames("MODIFIED", stage.lane.name))
        return rule

    return lay


def again(fault: Any, times: int = 1) -> Lay:
    """The watch of Secrets is cut, and what asks for it again has the fault."""

    def lay(stage: Stage) -> Rule:
        stage.fake.strike(watches("secrets"), CutFrame("reset"))
        return stage.fake.fault(watches("secrets"), fault, times=times)

    return lay


EMPTY_BOOKMARK = event("BOOKMARK", {"kind": "Secret", "apiVersion": "v1", "metadata": {"resourceVersion": ""}})
NO_BOOKMARK = event("BOOKMARK", {})
UNKNOWN = event("RENAMED", {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "x", "resourceVersion": "1"}})

FAULTS: dict[str, Lay] = {
    "the change is cut in mid-JSON, stream reset": secret_event(CutFrame("reset")),
    "the change is cut in mid-JSON, connection lost": secret_event(CutFrame("drop")),
    "the change is cut in mid-JSON, stream ended in order": secret_event(CutFrame("finish")),
    "the watch ends just before the change": secret_event(Close("finish")),
    "410 as an event instead of the change": secret_event(ErrorEvent(410)),
    "500 as an event instead of the change": secret_event(ErrorEvent(500)),
    "GOAWAY, the watch of Secrets still counts": secret_event(GoAway(processed=True)),
    "GOAWAY, the watch of Secrets does not count": secret_event(GoAway(processed=False)),
    "the change comes three times": secret_event(Repeat(3)),
    "the change comes 2 s late": secret_event(Delay(2)),
    "silence for 3 s, then the connection dies": secret_event(Stall(3)),
    "a bookmark without a version before the change": secret_event(Precede(EMPTY_BOOKMARK)),
    "a bookmark with nothing before the change": secret_event(Precede(NO_BOOKMARK)),
    "an event of an unknown type before the change": secret_event(Precede(UNKNOWN)),
    "the restart's own event is cut": rollout_event(CutFrame("drop")),
    "the restart's own event is 410": rollout_event(ErrorEvent(410)),
    "the restart's own event comes 2 s late": rollout_event(Delay(2)),
    "the restart's own event comes three times": rollout_event(Repeat(3)),
    "the status's own event is cut": policy_event(CutFrame("drop")),
    "the status's own event is 410": policy_event(ErrorEvent(410)),
    "the status's own event comes 2 s late": policy_event(Delay(2)),
    "410 to who asks for the watch again": again(Refuse(410)),
    "429 to the watch, Retry-After 2": again(Refuse(429, 2)),
    "429 to the watch, thrice, without Retry-After": again(Refuse(429), times=3),
    "503 to the watch, Retry-After 2": again(Refuse(503, 2)),
    "503 to the watch, thrice": again(Refuse(503), times=3),
    "401 to the watch": again(Refuse(401)),
    "409 to the watch": again(Refuse(409)),
    "the watch answers with broken gzip": again(BrokenGzip("checksum")),
    "streaming lists are refused from now on": relist(Refuse(422)),
    "the relist lacks its mark": relist(NoMark()),
    "the relist lacks its mark, twice": relist(NoMark(), times=2),
    "the relist is in another order": relist(ShuffledList()),
    "the relist is from the past": relist(PastList(1)),
    "410 to the relist": relist(Refuse(410)),
    "429 to the relist, Retry-After 2": relist(Refuse(429, 2)),
    "503 to the relist, twice": relist(Refuse(503), times=2),
    "the relist is broken gzip": relist(BrokenGzip("cut")),
    "409 to the restart": restart(Refuse(409)),
    "429 to the restart, Retry-After 2": restart(Refuse(429, 2)),
    "429 to the restart, without": restart(Refuse(429)),
    "503 to the restart, twice": restart(Refuse(503), times=2),
    "401 to the restart": restart(Refuse(401)),
    "401 to the restart, twice": restart(Refuse(401), times=2),
    # A request has its connection alone (HTTP/1.1): reset or lost is the same, its end without a byte of an answer.
    "the restart is done, its answer reset": restart(LoseAnswer("reset")),
    "the restart is done, the connection lost": restart(LoseAnswer("drop")),
    "the restart is done, its answer broken gzip": restart(BrokenGzip("checksum")),
    "the restart is not begun, its connection dies at once": restart(GoAway(processed=False)),
    "the restart is answered, its connection closed": restart(GoAway(processed=True)),
    "the restart is not begun, its connection dies after 0.2 s": restart(Silent(0.2)),
    "409 to the status": status(Refuse(409)),
    "429 to the status, Retry-After 2": status(Refuse(429, 2)),
    "503 to the status, twice": status(Refuse(503), times=2),
    "401 to the status": status(Refuse(401)),
    "the status is written, its answer reset": status(LoseAnswer("reset")),
    "the status is written, the connection lost": status(LoseAnswer("drop")),
    "each of two statuses is written, its answer lost": status(LoseAnswer("drop"), times=2),
    "the status is not begun, its connection dies at once": status(GoAway(processed=False)),
    "503 to three Events": told(Refuse(503)),
    "Events are written, their answers lost": told(LoseAnswer("reset")),
}


def play(stage: Stage, lay: Lay) -> None:
    rule = lay(stage)
    stage.rotate()
    assert rule.struck >= 1, "the fault struck nothing"
    stage.fake.schedule.clear()
    stage.rotate()  # and the next one is as any other
    stage.check()


@pytest.fixture(scope="module")
def plays(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, material: list[dict[str, Any]]
) -> Iterator[dict[str, Future[None]]]:
    """Several at once, each on a stage of its own: what takes time is waiting."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.originalname == _PLAYED]
    prefix = f"f{time.time_ns() % 10**9}"

    def run(number: int, fault: str) -> None:
        namespace = f"{prefix}-{number}"
        control_plane.kubectl("create", "namespace", namespace)
        with staged(control_plane, namespace, tmp_path_factory.mktemp("fault"), material) as stage:
            play(stage, FAULTS[fault])
        control_plane.kubectl("delete", "namespace", namespace, "--wait=false")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield {name: pool.submit(run, number, name) for number, name in enumerate(item.callspec.params["fault"] for item in items)}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_rotation_with_a_fault_is_done_once(plays: dict[str, Future[None]], fault: str) -> None:
    plays[fault].result()


_PLAYED = test_a_rotation_with_a_fault_is_done_once.__name__


# --- how the API server is spared ---


def test_retry_after_is_waited_for_and_costs_no_list(stage: Stage) -> None:
    """https://kubernetes.io/docs/concepts/cluster-administration/flow-control/: 429 says how busy it is."""
    before = stage.fake.count()
    refused = stage.fake.fault(watches("secrets"), Refuse(429, 3))
    stage.fake.strike(watches("secrets"), Close("reset"))
    wait_until("the 429", lambda: refused.struck)
    stage.rotate()
    came = stage.fake.calls(watches("secrets"), since=before)
    first, second = came[:2]
    assert first.told == 429 and second.told == 200
    assert second.at - first.at >= 3
    assert not any(call.request.is_list for call in came), "listed anew"
    stage.check()


def test_retry_after_of_a_write_is_waited_for(stage: Stage) -> None:
    refused = stage.fake.fault(writes("deployments", "PATCH"), Refuse(429, 3))
    stage.rotate()
    first, second = stage.fake.calls(writes("deployments", "PATCH"))
    assert refused.struck == 1 and second.at - first.at >= 3
    stage.check()


def test_who_is_refused_for_long_asks_less_and_less(stage: Stage) -> None:
    """No hot loop: client-go's reflector backs off from 0.8 s to 30 s; ours from 0.5 s, doubling."""
    before = stage.fake.count()
    stage.fake.always(watches(), Refuse(503))
    stage.fake.strike(watches(), CutFrame("drop"))
    began = time.monotonic()
    kinds = {call.request.target.kind for call in stage.fake.calls(watches())}
    wait_until("three refusals of each", lambda: all(len(stage.fake.calls(watches(kind), before)) >= 3 for kind in kinds), 30)
    came = stage.fake.calls(watches(), before)
    took = time.monotonic() - began
    assert len(came) <= len(kinds) * 8, f"{len(came)} requests of {len(kinds)} watches in {took:.1f} s"
    stage.fake.schedule.clear()
    stage.rotate()
    stage.check()


def test_all_is_refused_for_a_while(stage: Stage) -> None:
    """A whole API server that is too busy, in the middle of a rotation."""
    stage.fake.always(requests(), Refuse(503, 1))
    stage.lane.change()
    stage.fake.strike(watches(), CutFrame("drop"))
    wait_until("refusals", lambda: len([call for call in stage.fake.calls(requests()) if call.told == 503]) >= 6)
    stage.fake.schedule.clear()
    stage.lane.wait_settled()
    stage.lane.note()
    stage.check()


def test_events_overtaken_by_those_of_other_watches_restart_nothing_twice(stage: Stage) -> None:
    """Each watch is a stream of its own: the change, the restart and the record may show in any order."""
    for kind, seconds in (("secrets", 0.0), ("deployments", 0.8), ("certrotationpolicies", 0.3), ("pods", 0.5)):
        stage.fake.always(watches(kind), Delay(seconds), frames("MODIFIED"))
    for _ in range(2):
        stage.rotate()
    stage.check()


def test_an_api_server_behind_its_own_past_restarts_nothing_twice(stage: Stage) -> None:
    """Time travel: every cache is filled anew from an API server that has not seen the last rotations yet."""
    stage.rotate()
    stage.rotate()
    rules = [stage.fake.fault(lists(kind), PastList(2)) for kind in ("secrets", "deployments", "certrotationpolicies", "pods")]
    stage.fake.strike(watches(), ErrorEvent(410))
    wait_until("the past", lambda: all(rule.struck for rule in rules))
    quiet([stage.lane], 3)
    stage.rotate()
    stage.check()


# --- the counters can fail ---


def test_a_restart_that_somebody_else_does_is_counted(stage: Stage) -> None:
    """What shows nothing missed and nothing repeated would show it otherwise."""
    stage.rotate()
    stage.check()
    again_by_hand = {"spec": {"template": {"metadata": {"annotations": {"by": "hand"}}}}}
    stage.lane.api.merge("deployments", stage.lane.namespace, stage.lane.name, again_by_hand)
    assert "1 changes, 2 restarts" in (stage.lane.complaint() or "")


def test_a_change_that_is_never_told_is_missed(stage: Stage) -> None:
    stage.fake.always(watches("secrets"), Delay(3600), frames("MODIFIED"))
    with pytest.raises(AssertionError, match="to be settled"):
        stage.lane.rotate(timeout=3)
    assert "1 changes, 0 restarts" in (stage.lane.complaint() or "")
