"""The operator killed (SIGKILL) before and after each of its API writes, and at random moments: no second rollout, none lost.

The writes are those of recorded runs without a kill. Each is then the end of one operator: once when the write has arrived
but not been made, once when it was made but not answered. The next operator, started as the first, must bring the rotation
to the same end, without doing anything twice that may be done but once.
"""

from __future__ import annotations

import functools
import itertools
import os
import queue
import random
import shutil
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from certroll_dev.demo import workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.operator_image import Image
from crash_lane import AtMoment, AtWrite, EachLife, Kill, Lane, Outcome
from write_points import Point
from write_proxy import When

_TEST = Path(__file__).resolve().parents[1]
_LANES = 3
_RECORDED = 2  # runs without a kill, in each lane
_LONG = os.environ.get("CERTROLL_LONG") == "1"
_RANDOM_KILLS = 20 if _LONG else 8
_LOOPS = 6 if _LONG else 3  # rotations in which several operators are killed, one after the other
_LIVES = 5
_TRIES = 3  # for a write that came in every recorded run
_LOGS = _TEST.parent / "build" / "test-logs" / "crash-matrix"

# What a second operator may do again. A restart is not among it: it is made once, whoever makes it.
_REPEATABLE = {"PATCH certrotationpolicies/status", "PATCH pods/status", "POST events"}
_RESTART = "PATCH deployments"
_NUDGE = "PATCH pods/status"
# Envoy's two pods, as long as they show the old leaf, slower and slower (plan_follow_up.c): how often, their kubelet decides.
_NUDGED_PODS = 2
_NUDGED_AFTER = tuple(itertools.accumulate((0, 1, 2, 3, 5, 8, 15, *[30] * 5)))  # seconds
_EVICTION = "POST pods/eviction"  # of a pod that mounted the old Secret from the kubelet's cache: chance, and harmless
_EVICTIONS = 2

pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def lanes(
    request: pytest.FixtureRequest, cluster: LocalCluster, api: API, image: Image
) -> Iterator[Sequence[Lane]]:
    workloads.install_crds(cluster)
    shutil.rmtree(_LOGS, ignore_errors=True)
    failed_before = request.session.testsfailed
    made = [Lane(cluster, api, image, _LOGS / f"lane-{number}", number) for number in range(1, _LANES + 1)]
    try:
        _together([lane.up for lane in made])
        yield made
    finally:
        _together([lane.down for lane in made])
        if request.session.testsfailed == failed_before:
            shutil.rmtree(_LOGS)


@pytest.fixture(scope="module")
def recorded(lanes: Sequence[Lane]) -> Sequence[Outcome]:
    return _recorded(lanes, lambda lane: lane.rotate)


def test_each_write_of_a_rotation(lanes: Sequence[Lane], recorded: Sequence[Outcome], report: list[str]) -> None:
    outcomes = _kill_at_each_write(lanes, recorded, lambda lane: lane.rotate)
    report.append(_table(recorded, outcomes))
    _judge(recorded, outcomes)
    essential = {"PATCH certrotationpolicies/crash/status (records", "PATCH deployments/nginx", "PATCH pods/envoy/status"}
    _assert_struck(outcomes, essential | {"PATCH certrotationpolicies/crash/status (settles", "POST events"})


def test_at_random_moments_of_a_rotation(lanes: Sequence[Lane], recorded: Sequence[Outcome], report: list[str]) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    outcomes: list[Outcome] = []
    missing = _RANDOM_KILLS
    while missing and len(outcomes) < 3 * _RANDOM_KILLS:
        # How long a rotation takes depends on what else the machine does: what came too late is drawn anew.
        usual = statistics.median(_whole(outcomes) or _whole(recorded))
        tried = _run(lanes, [AtMoment(chance.uniform(0.0, usual)) for _ in range(missing)], lambda lane: lane.rotate)
        outcomes += tried
        missing -= sum(outcome.struck for outcome in tried)
    report += [f"seed {seed}", _table([], outcomes)]
    _judge(recorded, outcomes)
    assert not missing, f"only {_RANDOM_KILLS - missing} kills hit a rotation under way"


def test_killed_again_and_again(lanes: Sequence[Lane], recorded: Sequence[Outcome], report: list[str]) -> None:
    """A crash loop: each operator lives for a write or two, and the last of them finds what the others have left."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    whens: Sequence[When] = ("before", "after")
    kills = [EachLife(tuple((chance.randint(1, 2), chance.choice(whens)) for _ in range(_LIVES))) for _ in range(_LOOPS)]
    outcomes = _run(lanes, kills, lambda lane: lane.rotate)
    report += [f"seed {seed}", _table([], outcomes)]
    _judge(recorded, outcomes, operators=_LIVES + 1)
    assert all(outcome.struck > 1 for outcome in outcomes)


@pytest.mark.parametrize("back", [False, True], ids=["to-something-new", "back"])
def test_changed_again_while_no_operator_ran(
    lanes: Sequence[Lane], recorded: Sequence[Outcome], report: list[str], back: bool
) -> None:
    """Killed with one change half done, and the next finds another: what was begun is not taken for what is wanted."""
    restart = Point("PATCH deployments/nginx", 1)
    kills = [AtWrite(restart, "before"), AtWrite(restart, "after"), AtWrite(restart, "before"), AtWrite(restart, "after")]
    outcomes = _run(lanes, kills, lambda lane: functools.partial(lane.rotate_and_change_again, back=back))
    report.append(_table([], outcomes))
    _judge(recorded, outcomes, operators=3, restarts=2)
    _assert_struck(outcomes, {restart.label})


def test_each_write_at_first_sight(lanes: Sequence[Lane], report: list[str]) -> None:
    """A half-recorded first sight must not be taken for a change."""
    first = _recorded(lanes, lambda lane: lane.see_first)
    outcomes = _kill_at_each_write(lanes, first, lambda lane: lane.see_first)
    afterwards = _run(lanes, [None] * len(lanes), lambda lane: lane.rotate)  # and a change afterwards is one
    report.append(_table(first, [*outcomes, *afterwards]))
    _judge(first, outcomes)
    _assert_struck(outcomes, {"PATCH certrotationpolicies/crash/status"})
    assert not [problem for outcome in afterwards for problem in outcome.problems]


# --- running


Act = Callable[[Kill], Outcome]


def _recorded(lanes: Sequence[Lane], act: Callable[[Lane], Act]) -> list[Outcome]:
    outcomes = _run(lanes, [None] * (len(lanes) * _RECORDED), act)
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    assert not problems, "without any kill:\n" + "\n".join(problems)
    return outcomes


def _kill_at_each_write(lanes: Sequence[Lane], recorded: Sequence[Outcome], act: Callable[[Lane], Act]) -> list[Outcome]:
    """Before and after each write of any recorded run. One that came in all of them must come again: it is tried anew."""
    runs = [{write.point for write in outcome.writes} for outcome in recorded]
    always = set.intersection(*runs)
    missing = [AtWrite(point, when) for point in sorted(set.union(*runs)) for when in ("before", "after")]
    outcomes: list[Outcome] = []
    for _ in range(_TRIES):
        tried = _run(lanes, missing, act)
        outcomes += tried
        struck = {outcome.kill for outcome in tried if outcome.struck or outcome.problems}
        missing = [kill for kill in missing if kill not in struck and kill.point in always]
    return outcomes


def _run(lanes: Sequence[Lane], kills: Sequence[Kill], act: Callable[[Lane], Act]) -> list[Outcome]:
    """Each lane takes the next one as soon as it is free."""
    waiting: queue.SimpleQueue[Kill] = queue.SimpleQueue()
    for kill in kills:
        waiting.put(kill)
    outcomes: list[Outcome] = []
    lock = threading.Lock()

    def work(lane: Lane) -> None:
        while lane.usable:
            try:
                kill = waiting.get_nowait()
            except queue.Empty:
                return
            outcome = act(lane)(kill)
            with lock:
                outcomes.append(outcome)

    _together([functools.partial(work, lane) for lane in lanes])
    wrong = [problem for outcome in outcomes for problem in outcome.problems]
    assert waiting.empty(), f"no lane is left, see {_LOGS}:\n" + "\n".join(wrong)
    return outcomes


def _together(works: Sequence[Callable[[], None]]) -> None:
    """Side by side; the first error is raised when all have ended."""
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()


def _whole(outcomes: Sequence[Outcome]) -> list[float]:
    """How long it takes without a kill."""
    return [outcome.seconds for outcome in outcomes if not outcome.struck]


# --- judging


def _judge(recorded: Sequence[Outcome], outcomes: Sequence[Outcome], operators: int = 2, restarts: int = 1) -> None:
    most = _most(recorded)
    most[_RESTART] *= restarts
    wrong = []
    for outcome in outcomes:
        found = outcome.problems or _excess(most | _nudges(outcome), outcome.applied(), operators)
        wrong += [f"{outcome.kill} (lane {outcome.lane}): {problem}" for problem in found]
    assert not wrong, f"{len(wrong)} wrong; see {_LOGS}:\n" + "\n".join(wrong)


def _most(recorded: Sequence[Outcome]) -> Counter[str]:
    """Of each kind of write, the most that a run without a kill has made."""
    most: Counter[str] = Counter()
    for outcome in recorded:
        most |= outcome.applied()
    return most


def _nudges(outcome: Outcome) -> Counter[str]:
    """So many as one operator alone may make in the time in which they came."""
    at = [write.at for write in outcome.writes if write.kind == _NUDGE]
    span = max(at) - min(at) if at else 0.0
    return Counter({_NUDGE: _NUDGED_PODS * sum(after <= span for after in _NUDGED_AFTER)} if at else {})


def _excess(most: Mapping[str, int], applied: Mapping[str, int], operators: int) -> list[str]:
    """Each operator may report what one alone would have reported, and nudge what one alone would have nudged."""

    def allowed(kind: str) -> int:
        if kind == _EVICTION:
            return _EVICTIONS
        return operators * most.get(kind, 0) + 1 if kind in _REPEATABLE else most.get(kind, 0)

    excess = {kind: count for kind, count in applied.items() if count > allowed(kind)}
    return [f"{count} × {kind}, where at most {allowed(kind)} are expected" for kind, count in excess.items()]


def _assert_struck(outcomes: Sequence[Outcome], labels: set[str]) -> None:
    """A matrix whose kills have missed proves nothing."""
    struck = [outcome.kill for outcome in outcomes if outcome.struck]
    kills = {(kill.when, kill.point.label) for kill in struck if isinstance(kill, AtWrite)}
    for wanted in sorted(labels):
        for when in ("before", "after"):
            assert any(at == when and label.startswith(wanted) for at, label in kills), f"never killed {when} {wanted}"


# --- telling


def _table(recorded: Sequence[Outcome], outcomes: Sequence[Outcome]) -> str:
    """For each kill: seconds from the start of the next operator until converged, and what both have written together."""
    head = f"{'killed':70} {'lane':>4} {'seconds':>8} {'restarts':>8} {'status':>7} {'nudges':>7} {'events':>7}"
    plain = [_row("(no kill)", outcome) for outcome in recorded]
    order = sorted(outcomes, key=lambda outcome: (not outcome.struck, str(outcome.kill)))
    return "\n".join(["", head, *plain, *(_row(str(outcome.kill or "(no kill)"), outcome) for outcome in order)])


def _row(name: str, outcome: Outcome) -> str:
    applied = outcome.applied()
    kinds = (_RESTART, "PATCH certrotationpolicies/status", "PATCH pods/status", "POST events")
    counts = [applied[kind] for kind in kinds]
    verdict = "" if outcome.struck or outcome.kill is None else "  (did not come)"
    verdict += "  WRONG" if outcome.problems else ""
    return f"{name:70} {outcome.lane:4} {outcome.seconds:8.2f} {counts[0]:8} {counts[1]:7} {counts[2]:7} {counts[3]:7}{verdict}"
