"""Who leads, with the times of election that users have: a rotation goes on, once, whatever becomes of the leader."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from audit import Write
from certroll_dev.demo.pki import Material
from certroll_dev.demo.scenario import Seen
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX, RATE_LIMIT, WORKLOADS
from certroll_dev.install import Pod
from operator_pods import OperatorPods
from world import World, assert_rolled_once

_DEFAULT_ELECTION = "--log-level=info"  # the default, too: no word about the times
_LEASE = 15.0  # seconds, of a leader that is silent; pkg/runtime/election.c
_RETRY = 2.0 * 1.2  # a standby looks so often, with jitter
_SLACK = 8.0  # of a slow machine
_LOST = 3  # exit status of one that does not lead any more


@dataclass
class Running:
    """An operator that has seen the present material, and what is there before it changes."""

    world: World
    operator: OperatorPods
    before: Mapping[str, Seen]
    mark: int
    materials: Mapping[str, Material]

    def change(self) -> dict[str, str]:
        return self.world.write_all(self.materials)

    def acts(self, by: Pod | None = None, but: Pod | None = None) -> list[Write]:
        """All that was written since, but for Leases, and did not fail."""
        return [
            write
            for write in self.world.audit.since(self.mark)
            if write.resource != "leases"
            and write.code < 400
            and (by is None or write.pod == by.name)
            and (but is None or write.pod != but.name)
        ]

    def wait_act_of_other(self, than: Pod, deadline: float) -> Write:
        return wait_for("the other replica to act", lambda: self.acts(but=than), deadline=deadline, missing=self.world.describe)[0]

    def assert_done_once(self, versions: Mapping[str, str]) -> None:
        self.world.wait_settled(versions)
        self.world.wait_at_rest()  # a second rollout would be begun by now
        assert_rolled_once(self.world, self.before)
        restarts = sorted(write.name for write in self.acts() if write.resource == "deployments")
        assert restarts == sorted([NGINX.deployment, RATE_LIMIT.deployment]), restarts
        for workload in WORKLOADS:
            assert self.world.serves(workload, self.materials[workload.secret]), f"{workload.consumer} does not serve its new leaf"


@contextmanager
def _running(world: World) -> Iterator[Running]:
    materials = world.new_ca()
    world.install_policy()
    with world.operator(_DEFAULT_ELECTION) as operator:
        world.wait_ready()
        world.wait_at_rest()
        yield Running(world, operator, world.seen(), world.audit.mark(), materials)


def test_a_killed_leader_is_followed_when_its_lease_has_run_out(world: World, report: list[str]) -> None:
    with _running(world) as running:
        versions = running.change()
        killed, at = running.operator.kill_leader(), datetime.now(UTC)
        act = running.wait_act_of_other(killed, deadline=_LEASE + 2 * _RETRY + _SLACK)
        report.append(f"{(act.at - at).total_seconds():.1f} s from the kill until the other acted")
        running.assert_done_once(versions)


def test_a_leader_whose_node_is_drained_hands_over_at_once(world: World, report: list[str]) -> None:
    with _running(world) as running:
        versions = running.change()
        drained, at = running.operator.delete_leader(), datetime.now(UTC)
        taken = wait_for("the other to lead", lambda: _taken(world, running.mark, drained), deadline=_RETRY + _SLACK)
        report.append(f"{(taken.at - at).total_seconds():.1f} s from the end of the leader until the other led")
        running.assert_done_once(versions)
        running.operator.wait_all_ready()


def _taken(world: World, mark: int, by_other_than: Pod) -> Write | None:
    """The Lease, which a standby does not write otherwise."""
    writes = world.audit.since(mark)
    return next((w for w in writes if w.resource == "leases" and w.code < 400 and w.pod != by_other_than.name), None)


def test_the_operator_itself_is_rolled_in_the_middle(world: World) -> None:
    with _running(world) as running:
        versions = running.change()
        wait_for("the change to be on record", lambda: any(s.pending for s in world.status().secrets.values()), deadline=30)
        running.operator.roll()
        running.assert_done_once(versions)
        running.operator.wait_all_ready()


@pytest.mark.timeout(400)
def test_a_leader_that_was_frozen_changes_nothing_when_it_wakes(world: World, report: list[str]) -> None:
    """All its requests are to be late: it may not even finish what it had begun."""
    with _running(world) as running:
        operator = running.operator
        frozen = operator.leader()
        operator.freeze(frozen)
        try:
            began = time.monotonic()
            at, versions = datetime.now(UTC), running.change()
            act = running.wait_act_of_other(frozen, deadline=_LEASE + 2 * _RETRY + _SLACK)
            report.append(f"{(act.at - at).total_seconds():.1f} s from the freeze until the other acted")
            wait_for("20 s of sleep to be over", lambda: time.monotonic() - began > 20, deadline=20)
        finally:
            operator.thaw(frozen)
        ended = wait_for("it to end, and to be started again", lambda: _again(operator, frozen), deadline=60)
        assert ended.exit_status == _LOST
        running.assert_done_once(versions)
        late = [
            write
            for write in world.audit.since(running.mark)
            if write.pod == frozen.name and write.at > act.at and write.code < 400 and not write.resource.endswith("reviews")
        ]  # a review is a question, which its next process asks at its start
        assert not late, "written by one that led no more: " + ", ".join(map(str, late))
        assert operator.leader().name != frozen.name


def _again(operator: OperatorPods, pod: Pod) -> Pod | None:
    return next((each for each in operator.pods() if each.name == pod.name and each.restarts == 1 and each.ready), None)
