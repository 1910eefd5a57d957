"""Restarts keep within PodDisruptionBudgets, by the record of every event of every pod."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from certroll_dev.demo import workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.operator_image import Image
from operator_pods import FAST_ELECTION, OperatorPods
from pod_record import PodRecord
from webs import Budget, Web, Webs

_NAMESPACE = f"certroll-budgets-{os.getpid()}"  # of this run: a kept cluster may still be removing another


def _rolling(unavailable: object, surge: object) -> dict[str, object]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}}


_WEBS = (
    Web("fits", "Deployment", 5, _rolling(1, 1), "fits", is_called=True),
    Web("half", "Deployment", 4, _rolling("50%", 0), "half", is_called=True),
    Web("recreate", "Deployment", 3, {"strategy": {"type": "Recreate"}}, "recreate"),
    Web("ordered", "StatefulSet", 3, {"podManagementPolicy": "Parallel"}, "ordered", is_called=True),
    Web("manual", "StatefulSet", 3, {"podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}}, "manual"),
    Web("node", "DaemonSet", 1, {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}, "node"),
    Web("left", "Deployment", 2, _rolling(1, 0), "both"),
    Web("right", "Deployment", 2, _rolling(1, 0), "both"),
)
_ONLY_EVICTED = (Web("evicted", "Deployment", 3, _rolling(1, 1), "evicted", secret="evicted-tls"),)
_BUDGETS = (
    Budget("fits", {"maxUnavailable": 1}, 4),
    Budget("half", {"minAvailable": 3}, 3),
    Budget("recreate", {"minAvailable": 2}, 2),
    Budget("ordered", {"minAvailable": 2}, 2),
    Budget("manual", {"maxUnavailable": 1}, 2),
    Budget("node", {"minAvailable": 1}, 1),
    Budget("both", {"minAvailable": 3}, 3),
    Budget("evicted", {"minAvailable": "60%"}, 2),
)
_ODD = (
    Web("twice", "Deployment", 2, _rolling(1, 0), "twice"),
    Web("share", "DaemonSet", 1, {}, "share"),
    Web("surges", "Deployment", 1, {}, "none"),
    Web("alone", "Deployment", 1, {"strategy": {"type": "Recreate"}}, "none"),
)
_ODD_BUDGETS = (
    Budget("twice", {"minAvailable": 1}, 1),
    Budget("twice-too", {"maxUnavailable": 1}, 1, beside="twice"),
    Budget("share", {"maxUnavailable": "50%"}, 0),
)
_LONG = os.environ.get("CERTROLL_LONG") == "1"
_ROUNDS = 8 if _LONG else 3  # of 26 pods each
_ROUND = 480.0  # seconds, of two dozen pods on a small machine
_COALESCE = 30
_BREAKS = ("half", "recreate", "left", "right")  # whose own strategy goes below


@pytest.fixture(scope="module")
def webs(cluster: LocalCluster, api: API) -> Iterator[Webs]:
    workloads.install_crds(cluster)
    with Webs(cluster, api, _NAMESPACE, (*_WEBS, *_ONLY_EVICTED), _BUDGETS).running() as found:
        yield found


@contextmanager
def _operator(webs: Webs, image: Image, logs: Path) -> Iterator[OperatorPods]:
    operator = OperatorPods(webs.cluster, webs.api, image, [webs.namespace], logs / "operator.log", args=FAST_ELECTION)
    with operator:
        yield operator


def _below(record: PodRecord, since: int = 0) -> dict[str, str]:
    """Budgets that were broken, with what happened to their pods."""
    record.catch_up()
    broken = [budget for budget in _BUDGETS if record.lowest(budget.labels, since) < budget.least]
    return {budget.name: record.story(budget.labels, since) for budget in broken}


def _stories(below: dict[str, str]) -> str:
    return "\n".join(f"{name}\n{story}" for name, story in below.items())


def _replaced_stale(webs: Webs) -> set[str]:
    """UIDs of those who mounted the Secret of before from the kubelet's cache, and were replaced once more; in earlier tests, too."""
    return {each["involvedObject"].get("uid") for each in webs.api.list("events", webs.namespace) if each.get("reason") == "EvictedStale"}


def _assert_restarted(webs: Webs, record: PodRecord, found: Sequence[Web], times: int, since: int = 0) -> None:
    record.catch_up()
    new = {web.name: record.came(web.labels, since) for web in found}
    wanted = {web.name: web.replicas * times for web in found}

    def count() -> dict[str, int]:
        stale = _replaced_stale(webs)
        return {name: len(uids - stale) for name, uids in new.items()}

    # Events are sent behind all other work.
    wait_for("each pod to have been replaced as often as it should", lambda: count() == wanted, deadline=30, missing=lambda: str(count()))


def test_plain_rollouts_go_below_what_budgets_demand(webs: Webs, report: list[str]) -> None:
    """What is measured here can be broken: a rolling update is limited by no budget."""
    with PodRecord(webs.api, webs.namespace) as record:
        webs.roll(_BREAKS)
        webs.wait_up()
        below = _below(record)
        report.append(", ".join(f"{b.name}: {record.lowest(b.labels)} of {b.least}" for b in _BUDGETS if b.name in below))
        assert below.keys() == {"half", "recreate", "both"}, _stories(below)


@pytest.mark.timeout(2400)
def test_restarts_keep_within_budgets(webs: Webs, image: Image, logs: Path, report: list[str]) -> None:
    with _operator(webs, image, logs), webs.policy(_WEBS), webs.policy(_ONLY_EVICTED, "evicted", method="Evict"):
        template = webs.workload(_ONLY_EVICTED[0])["metadata"]["generation"]
        with PodRecord(webs.api, webs.namespace) as record, webs.calls(logs, rate=5.0) as calls:
            began = time.time()
            for _ in range(_ROUNDS):
                versions, evicted = webs.renew(), webs.renew("evicted-tls")
                webs.wait_settled(versions, _ROUND)
                webs.wait_settled(evicted, _ROUND, "evicted")
                assert not (below := _below(record)), _stories(below)
            made = calls.between(began)
            _assert_restarted(webs, record, webs.webs, _ROUNDS)
            restarts = sum(web.replicas for web in webs.webs) * _ROUNDS
            assert restarts > (200 if _LONG else 75)
            failed = sum(not call.ok for call in made)
            report.append(f"{restarts} pods replaced in {time.time() - began:.0f} s, {failed} of {len(made)} calls failed meanwhile")
        assert webs.workload(_ONLY_EVICTED[0])["metadata"]["generation"] == template, "an eviction changes no template"


def test_a_budget_that_allows_nothing_is_told_and_waited_for(webs: Webs, image: Image, logs: Path, report: list[str]) -> None:
    half = _named("half")
    webs.set_budget("half", {"minAvailable": 4})
    try:
        with _operator(webs, image, logs), webs.policy([half], coalesce=f"{_COALESCE}s"), PodRecord(webs.api, webs.namespace) as record:
            began = time.monotonic()
            versions = webs.renew()
            status = webs.wait("it to be blocked", lambda status: status.holds("Blocked"), _COALESCE - 3)
            report.append(f"told after {time.monotonic() - began:.1f} s")
            assert status.consumers["half"].blocked_reason == "Budget"
            assert "PodDisruptionBudget 'half'" in status.consumers["half"].blocked_by
            wait_for("coalesce to be over", lambda: time.monotonic() - began > _COALESCE, deadline=2 * _COALESCE)
            record.catch_up()
            assert not record.came(half.labels), "a pod was touched"
            began = time.monotonic()
            webs.set_budget("half", {"minAvailable": 3})
            wait_for("the first pod to be replaced", lambda: record.came(half.labels), deadline=120, every=0.05, missing=webs.describe)
            report.append(f"resumed after {time.monotonic() - began:.1f} s")
            webs.wait_settled(versions, _ROUND)
            _assert_restarted(webs, record, [half], 1)
            assert record.lowest(half.labels) >= 3, record.story(half.labels)
    finally:
        webs.set_budget("half", {"minAvailable": 3})


def _named(*names: str) -> Web:
    [found] = [web for web in (*_WEBS, *_ONLY_EVICTED) if web.name in names]
    return found


def test_an_operator_killed_between_evictions_replaces_no_pod_twice(webs: Webs, image: Image, logs: Path) -> None:
    evicted = [_named("half"), _named("manual")]
    with _operator(webs, image, logs) as operator, webs.policy(evicted), PodRecord(webs.api, webs.namespace) as record:
        versions = webs.renew()
        for number in (1, 3):
            # An eviction that was on its way when its operator was killed may be booked in the budget without having taken place:
            # Kubernetes takes that back after two minutes.
            wait_for(
                f"eviction {number}", lambda n=number: len(record.came(evicted[0].labels)) >= n, deadline=240, every=0.02, missing=webs.describe
            )
            operator.kill_leader()
        webs.wait_settled(versions, _ROUND)
        _assert_restarted(webs, record, evicted, 1)
        assert not (below := _below(record)), _stories(below)


def test_what_no_budget_can_allow_is_blocked_with_its_reason(
    cluster: LocalCluster, api: API, webs: Webs, image: Image, logs: Path
) -> None:
    """Two budgets on one pod, a share of a DaemonSet, and the only pod of a workload, which is another kind of budget."""
    why = {
        "twice": ("Budget", "PodDisruptionBudgets 'twice' and 'twice-too' both select pod"),
        "share": ("Budget", "PodDisruptionBudget 'share' (maxUnavailable 50%) covers a DaemonSet"),
        "alone": ("SingleReplica", "restart.singleReplica: Block"),
    }

    def is_blocked(status: Status) -> bool:
        found = status.consumers
        return all(n in found and found[n].blocked_reason == reason and text in found[n].blocked_by for n, (reason, text) in why.items())

    with Webs(cluster, api, f"{_NAMESPACE}-odd", _ODD, _ODD_BUDGETS).running() as odd, _operator(odd, image, logs):
        surges = _ODD[2]
        with odd.policy(_ODD, singleReplica="Block"), PodRecord(api, odd.namespace) as record:
            odd.renew()
            odd.wait("each to be blocked with its reason", is_blocked, 30)
            odd.wait("who surges to be restarted", lambda status: status.consumers["surges"].at_rest, 60)
            record.catch_up()
            assert [len(record.came(web.labels)) for web in _ODD] == [0, 0, 1, 0]
            assert record.lowest(surges.labels) == 1, record.story(surges.labels)
            odd.set_policy(_ODD, singleReplica="Warn")
            odd.wait("the only pod to be replaced", lambda status: status.consumers["alone"].at_rest, 60)
            wait_for("a warning of the gap", lambda: any(e["reason"] == "OnlyPodGoes" for e in odd.events_of("alone")), deadline=30)
            record.catch_up()
            assert [len(record.came(web.labels)) for web in _ODD] == [0, 0, 1, 1]
