"""The operator killed, its leader changed, the kubelet restarted, each in the middle of a rollout of several pods: no pod is
replaced twice for one change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from certroll_dev import daemons
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from operator_pods import OperatorPods
from pod_record import PodRecord
from web import Web, web
from world import World

_PODS = 4
_LABELS = {"app": "web"}


def test_no_pod_is_replaced_twice_for_one_change(world: World) -> None:
    with web(world, _PODS) as found, world.operator() as operator, PodRecord(world.api, NAMESPACE) as record:
        found.install_policy()
        middle = _Middle(found, operator, record)
        middle.of_a_rollout("the operator was killed", operator.kill_leader)
        middle.of_a_rollout("its leader was drained", operator.delete_leader)
        middle.of_a_rollout("all of it was started anew", operator.delete_all)
        middle.of_a_rollout("the kubelet was restarted", lambda: _restart_kubelet(world))


@dataclass
class _Middle:
    web: Web
    operator: OperatorPods
    record: PodRecord

    def of_a_rollout(self, what: str, disturb: Callable[[], object]) -> None:
        self.operator.wait_all_ready()
        old, since = self.record.pods(_LABELS), self.record.mark()
        mark, rollouts = self.web.world.audit.mark(), self.web.rollouts()
        assert len(old) == _PODS

        material, version = self.web.renew()
        wait_for("the first new pod", lambda: self.record.came(_LABELS, since), deadline=60)
        disturb()
        assert old & self.record.pods(_LABELS), f"{what} when the rollout was over: nothing was tested"
        self.web.wait_settled(version)
        self.web.world.wait_at_rest()  # a second rollout would be begun by now

        assert self.web.serves(material), what
        assert self.web.restarts_since(mark) == 1, what
        assert len(self.web.rollouts() - rollouts) == 1, what
        assert not old & self.record.pods(_LABELS), f"{what}: old pods are left"
        # One that mounted the old Secret from the kubelet's cache is replaced, and counted.
        evicted = sum(write.resource == "pods/eviction" and write.code < 400 for write in self.web.world.audit.since(mark))
        came = self.record.came(_LABELS, since)
        assert len(came) == _PODS + evicted, f"{what}: {len(came)} new pods\n{self.record.story(_LABELS, since)}"


def _restart_kubelet(world: World) -> None:
    """Its containers run on without it, and what it was about to do it does when it is back."""
    for machine in world.cluster.layout.known_machines():
        daemons.stop(world.cluster.layout.daemons / machine.name / "kubelet.json")
    world.cluster.up()
