"""The control: with nobody to repair it, a naive change of the CA does lose calls, and the counter sees them."""

from __future__ import annotations

import time

from certroll_dev.demo import workloads
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, RATE_LIMIT
from world import World


def test_a_ca_change_without_the_operator_loses_calls(world: World, report: list[str]) -> None:
    materials = world.new_ca()
    with world.calls() as calls:
        started = time.time()
        world.write_all(materials)
        for workload in (ENVOY, RATE_LIMIT):
            world.wait_served(workload, materials[workload.secret])
        # Both have the new files now, but Rate Limit verifies Envoy by the CA that it read when it started.
        broken = time.time()
        wait_for("calls to fail", lambda: len(calls.failed_since(broken)) >= 20, deadline=30)
        assert set(calls.failed_since(broken)) == {"envoy: HTTP 500"}, "only Envoy's calls to Rate Limit can fail"
        succeeded = [call for call in calls.log.between(broken) if call.ok and call.target == "envoy"]
        assert succeeded == [], "Rate Limit accepted a client of a CA that it cannot know"
        world.restart(RATE_LIMIT)
        workloads.wait_rolled_out(world.api, RATE_LIMIT.deployment)
        calls.wait_succeed()
        report.append(f"calls that failed without the operator until Rate Limit was restarted by hand: {len(calls.failed_since(started))}")
