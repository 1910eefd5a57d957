"""Restarts keep within PodDisruptionBudgets, by the record of every event of every pod."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certroll_dev.demo import workloads
from certroll_dev.demo.api import API
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.operator_image import Image
from operator_pods import FAST_ELECTION, OperatorPods
from pod_record import PodRecord
from webs import Budget, Web, Webs

_NAMESPACE = f"certroll-budgets-{os.getpid()}"  # of this run: a kept cluster may still be removing another


def _rolling(unavailable: object, surge: object) -> dict[str, object]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}}


_WEBS = (
    Web("fits", "Deployment", 4, _rolling(1, 1), "fits"),
    Web("half", "Deployment", 4, _rolling("50%", 0), "half"),
    Web("recreate", "Deployment", 3, {"strategy": {"type": "Recreate"}}, "recreate"),
    Web("ordered", "StatefulSet", 3, {"podManagementPolicy": "Parallel"}, "ordered"),
    Web("manual", "StatefulSet", 3, {"podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}}, "manual"),
    Web("node", "DaemonSet", 1, {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}, "node"),
    Web("left", "Deployment", 2, _rolling(1, 0), "both"),
    Web("right", "Deployment", 2, _rolling(1, 0), "both"),
)
_EVICTED = (Web("evicted", "Deployment", 3, _rolling(1, 1), "evicted", secret="evicted-tls"),)
_BUDGETS = (
    Budget("fits", {"maxUnavailable": 1}, 3),
    Budget("half", {"minAvailable": 3}, 3),
    Budget("recreate", {"minAvailable": 2}, 2),
    Budget("ordered", {"minAvailable": 2}, 2),
    Budget("manual", {"maxUnavailable": 1}, 2),
    Budget("node", {"minAvailable": 1}, 1),
    Budget("both", {"minAvailable": 3}, 3),
    Budget("evicted", {"minAvailable": "60%"}, 2),
)
_BREAKS = ("half", "recreate", "left", "right")  # whose own strategy goes below


@pytest.fixture(scope="module")
def webs(cluster: LocalCluster, api: API) -> Iterator[Webs]:
    workloads.install_crds(cluster)
    with Webs(cluster, api, _NAMESPACE, (*_WEBS, *_EVICTED), _BUDGETS).running() as found:
        yield found


@contextmanager
def _operator(webs: Webs, image: Image, logs: Path) -> Iterator[OperatorPods]:
    operator = OperatorPods(webs.cluster, webs.api, image, [webs.namespace], logs / "operator.log", args=FAST_ELECTION)
    operator.start()
    try:
        yield operator
    except BaseException:
        operator.abandon()
        raise
    operator.stop()


def _below(record: PodRecord, since: int = 0) -> dict[str, str]:
    """Budgets that were broken, with what happened to their pods."""
    record.catch_up()
    broken = [budget for budget in _BUDGETS if record.lowest(budget.labels, since) < budget.least]
    return {budget.name: record.story(budget.labels, since) for budget in broken}


def test_plain_rollouts_go_below_what_budgets_demand(webs: Webs, report: list[str]) -> None:
    """What is measured here can be broken: a rolling update is limited by no budget."""
    with PodRecord(webs.api, webs.namespace) as record:
        webs.roll(_BREAKS)
        webs.wait_up()
        below = _below(record)
        report.append(", ".join(f"{b.name}: {record.lowest(b.labels)} of {b.least}" for b in _BUDGETS if b.name in below))
        assert below.keys() == {"half", "recreate", "both"}, "\n".join(f"{name}\n{story}" for name, story in below.items())
