"""The operator killed (SIGKILL) before and after each of its API writes, for each kind of change: nothing lost, nothing twice.

The writes are those of recorded rotations without a kill. What follows a kill must come to the same end by the same number of
writes, kind by kind. In which order they are made is not pinned. test/e2e/test_crash_matrix.py does the same with real pods.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from control_plane import ROOT, ControlPlane

sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "hack" / "lib")]

from certroll_dev.demo import pki  # noqa: E402
from certroll_dev.demo.cluster import LocalCluster  # noqa: E402
from crash_stage import NAME, OTHER, Data, Kill, Outcome, Stage  # noqa: E402
from operators import LEASES, RULES, account  # noqa: E402
from paper_pods import PaperPods  # noqa: E402
from write_points import Point, Write  # noqa: E402

_RECORDED = 3  # rotations without a kill
_RESTART = "PATCH deployments"
_STATUS = "PATCH certrotationpolicies/status"
_REPORTS = "reports of the status"

pytestmark = pytest.mark.timeout(900)


class Supply:
    """Material that no rotation has had before."""

    def __init__(self) -> None:
        self._generations = itertools.count(1)
        self._authority = pki.new_authority(next(self._generations))
        self._numbers = itertools.count(1)

    def leaf(self) -> Data:
        return _data(self._authority.issue(NAME))

    def authority(self) -> Data:
        self._authority = pki.new_authority(next(self._generations))
        return self.leaf()

    def opaque(self) -> Data:
        return {"key": f"number {next(self._numbers)}".encode()}


def _data(material: pki.Material) -> Data:
    return {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.trust}


@dataclass(frozen=True)
class Case:
    """What is changed, and what more while no operator runs. `restarts`: in the end, by how many there were before the kill."""

    name: str
    next: Callable[[Supply], Data]
    meanwhile: Callable[[Stage, Supply, Data], None] | None = None
    restarts: Callable[[int], int] = lambda _: 1
    policies: Sequence[str] = (NAME,)
    events: bool = False  # killed at its Events, too


CASES = (
    Case("leaf", Supply.leaf, events=True),
    Case("authority", Supply.authority),
    Case("opaque", Supply.opaque),
    # A restart that was for what is overtaken was done; what it was overtaken by needs another.
    Case("superseded", Supply.leaf, lambda stage, supply, before: stage.put(supply.leaf()), lambda done: done + 1),
    # Whoever was restarted has what is not there any more; who was not has never had it.
    Case("put-back", Supply.authority, lambda stage, supply, before: stage.put(before), lambda done: 2 * done),
    # The younger policy takes over in the middle of the older one's rotation.
    Case("handed-over", Supply.leaf, lambda stage, supply, before: stage.delete_policy(NAME), policies=(NAME, OTHER)),
)


@pytest.fixture(scope="module")
def in_network(control_plane: ControlPlane) -> Iterator[LocalCluster]:
    cluster = LocalCluster(control_plane.name)
    with cluster.network():
        yield cluster


def test_each_write_of_each_kind_of_change(control_plane: ControlPlane, in_network: LocalCluster, tmp_path: Path) -> None:
    """Side by side: each waits most of the time."""
    api = in_network.api()
    namespaces = {case.name: f"crash-{case.name}" for case in CASES}
    for namespace in namespaces.values():
        control_plane.kubectl("create", "namespace", namespace)

    def run(case: Case) -> list[str]:
        namespace = namespaces[case.name]
        kubeconfig = account(control_plane, namespace, "operator", [*RULES, LEASES], tmp_path / case.name)
        opaque = case.next is Supply.opaque
        with Stage(control_plane, api, namespace, kubeconfig, tmp_path / case.name / "stage", opaque=opaque, policies=case.policies) as stage:
            return _Matrix(case, stage).run()

    try:
        for case in CASES:
            (tmp_path / case.name).mkdir()
        with PaperPods(api, list(namespaces.values())), ThreadPoolExecutor(len(CASES)) as pool:
            wrong = [problem for found in pool.map(run, CASES) for problem in found]
    finally:
        for namespace in namespaces.values():
            control_plane.kubectl("delete", "namespace", namespace, "--wait=false")
    assert not wrong, "\n".join(["", *wrong])


class _Matrix:
    def __init__(self, case: Case, stage: Stage) -> None:
        self._case = case
        self._stage = stage
        self._supply = Supply()
        self._data: Data = {}

    def run(self) -> list[str]:
        self._data = self._case.next(self._supply)
        self._stage.begin(self._data)
        recorded = [self._rotate(None) for _ in range(_RECORDED)]
        runs = [{write.point for write in outcome.writes} for outcome in recorded]
        points = [point for point in sorted(set.union(*runs)) if self._case.events or not _is_event(point)]
        kills = [Kill(point, when) for point in points for when in ("before", "after")]
        outcomes = [self._rotate(kill) for kill in kills]
        for outcome in (*recorded, *outcomes):
            print(f"{self._case.name:12} {outcome.kill or '(no kill)'!s:80} {'' if outcome.struck else '-':2} {dict(outcome.counts())}")
        wrong = [f"{self._case.name}: {each.restarts} restarts without a kill" for each in recorded if each.restarts != 1]
        for outcome in outcomes:
            wrong += [f"{self._case.name}, {outcome.kill}: {problem}" for problem in self._judge(recorded, outcome)]
        return wrong + self._missed(recorded, outcomes)

    def _rotate(self, kill: Kill | None) -> Outcome:
        before, after = self._data, self._case.next(self._supply)
        self._data = after
        again = self._case.meanwhile or (lambda *_: None)
        outcome = self._stage.rotate(lambda: self._stage.put(after), kill, lambda: again(self._stage, self._supply, before))
        self._data = self._stage.data
        if OTHER in self._case.policies:
            self._stage.renew_policies()
        return outcome

    def _judge(self, recorded: Sequence[Outcome], outcome: Outcome) -> list[str]:
        expected = self._case.restarts(outcome.restarts_before) if outcome.struck else 1
        wrong = [] if outcome.restarts == expected else [f"{outcome.restarts} restarts, not {expected}"]
        patched = outcome.counts()[_RESTART]
        wrong += [] if patched == expected else [f"{patched} PATCHes of the Deployment, not {expected}"]
        if outcome.struck and self._case.meanwhile:
            return wrong
        if outcome.state not in [each.state for each in recorded]:
            wrong.append(f"its end is {json.dumps(outcome.state)}, not {json.dumps(recorded[0].state)}")
        return wrong + _excess(recorded, outcome)

    def _missed(self, recorded: Sequence[Outcome], outcomes: Sequence[Outcome]) -> list[str]:
        """A matrix whose kills have missed proves nothing: the restart, and what comes in every recorded run, must have been hit.

        But for reports of how far a rotation is: a busy machine tells two of them in one.
        """
        always = set.intersection(*({write.point for write in outcome.writes} for outcome in recorded))
        struck = {outcome.kill.point for outcome in outcomes if outcome.struck and outcome.kill}
        wanted = {point for point in always if not _is_event(point) and not _is_report(point)}
        return [f"{self._case.name}: never killed at {point}" for point in sorted(wanted - struck)]


def _is_event(point: Point) -> bool:
    return point.label.startswith("POST events")


def _is_report(point: Point) -> bool:
    return point.label.endswith("(reports)")


def _excess(recorded: Sequence[Outcome], outcome: Outcome) -> list[str]:
    """As many writes as without a kill, by what they do. Only how far a rotation is may be told more often: once a second."""
    most: Counter[str] = Counter()
    for each in recorded:
        most |= _counts(each)
    counts = _counts(outcome)
    reports = counts.pop(_REPORTS, 0)
    wrong = [f"{count} × {what}, where without a kill {most[what]}" for what, count in counts.items() if count > most[what]]
    ats = [write.at for write in outcome.writes]
    possible = most[_REPORTS] + int(max(ats, default=0.0) - min(ats, default=0.0)) + 1
    return wrong + ([f"{reports} reports of the status in {possible} s"] if reports > possible else [])


def _counts(outcome: Outcome) -> Counter[str]:
    """Of status by what it records and settles, else by kind: Events differ in what they tell."""
    applied = (write for write in outcome.writes if write.applied)
    return Counter(_what(write) for write in applied)


def _what(write: Write) -> str:
    if write.kind != _STATUS:
        return write.kind
    return _REPORTS if _is_report(write.point) else write.point.label
