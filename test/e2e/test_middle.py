"""The operator killed, its leader changed, the kubelet restarted, each in the middle of a restart of several pods, by a rollout and
by evictions: no pod is replaced twice for one change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from certroll_dev import daemons
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from operator_pods import OperatorPods
from pod_record import PodRecord
from web import Web, web
from world import World

_PODS = 4
_LABELS = {"app": "web"}


@pytest.mark.timeout(1200)  # six restarts of four pods, one pod after the other
def test_no_pod_is_replaced_twice_for_one_change(world: World) -> None:
    with web(world, _PODS) as found, world.operator() as operator, PodRecord(world.api, NAMESPACE) as record:
        found.install_policy()
        rollout = _Middle(found, operator, record, rollouts=1)
        rollout.disturbed("the operator was killed", operator.kill_leader)
        rollout.disturbed("its leader was drained", operator.delete_leader)
        rollout.disturbed("all of it was started anew", operator.delete_all)
        rollout.disturbed("the kubelet was restarted", lambda: _restart_kubelet(world))

        found.install_policy(method="Evict")
        evictions = _Middle(found, operator, record, rollouts=0)
        evictions.disturbed("the operator was killed", operator.kill_leader)
        evictions.disturbed("the kubelet was restarted", lambda: _restart_kubelet(world))


@dataclass
class _Middle:
    web: Web
    operator: OperatorPods
    record: PodRecord
    rollouts: int  # of each change

    def disturbed(self, what: str, disturb: Callable[[], object]) -> None:
        self.operator.wait_all_ready()
        old, since = self.record.pods(_LABELS), self.record.mark()
        mark, rollouts = self.web.world.audit.mark(), self.web.rollouts()
        assert len(old) == _PODS

        material, version = self.web.renew()
        wait_for("the first new pod", lambda: self.record.came(_LABELS, since), deadline=60)
        disturb()
        assert old & self.record.pods(_LABELS), f"{what} when all was over: nothing was tested"
        self.web.wait_settled(version)
        self.web.world.wait_at_rest()  # a second restart would be begun by now

        assert self.web.serves(material), what
        assert self.web.restarts_since(mark) == self.rollouts, what
        assert len(self.web.rollouts() - rollouts) == self.rollouts, what
        assert not old & self.record.pods(_LABELS), f"{what}: old pods are left"
        came = self.record.came(_LABELS, since)
        # Those that mounted the old Secret from the kubelet's cache.
        repaired = came & {event["involvedObject"]["uid"] for event in self.web.events("EvictedStale")}
        assert len(came) == _PODS + len(repaired), f"{what}: {len(came)} new pods\n{self.record.story(_LABELS, since)}"


def _restart_kubelet(world: World) -> None:
    """Its containers run on without it, and what it was about to do it does when it is back."""
    for machine in world.cluster.layout.known_machines():
        daemons.stop(world.cluster.layout.daemons / machine.name / "kubelet.json")
    world.cluster.up()
