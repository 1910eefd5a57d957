"""A renewed leaf: taken over without a restart by what can, within seconds, and nothing is done for what is not a change."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from certroll_dev.demo import pods
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.workloads import ENVOY, NGINX, RATE_LIMIT, WORKLOADS
from world import World, median, steadily

_RENEWALS = 5
_QUIET = 15.0  # seconds without a write after something that is no change
_VERIFIED_WITHIN = 30.0  # the kubelet by itself takes 60 to 90 s, so within this it was the nudge


def test_envoy_takes_a_renewed_leaf_without_a_restart(world: World, report: list[str]) -> None:
    world.install_policy()
    with world.operator() as operator, world.calls() as calls:
        world.wait_ready()
        before = world.seen()
        started = time.time()
        seconds = [_renew_envoy(world) for _ in range(_RENEWALS)]
        report.append(f"seconds until every Envoy pod was verified with a renewed leaf: {median(seconds)}")
        operator.check()
        assert pods.identity(world.pods(ENVOY)) == pods.identity(before["envoy"].pods), "a pod of Envoy was replaced or restarted"
        assert world.seen()["envoy"].replica_sets == before["envoy"].replica_sets
        assert calls.failed_since(started) == []
    assert max(seconds) < _VERIFIED_WITHIN


def _renew_envoy(world: World) -> float:
    """Seconds from the write until the operator says that every pod is verified; and that must be true."""
    leaf = world.authority.issue(ENVOY.deployment)
    started = time.monotonic()
    versions = world.write(ENVOY, leaf)
    status = world.wait_settled(versions, deadline=_VERIFIED_WITHIN)
    seconds = time.monotonic() - started
    consumer = status.consumers["envoy"]
    assert (consumer.verified, consumer.total) == (2, 2), world.describe()
    assert world.serves(ENVOY, leaf), "the status says verified, but not every pod serves the new leaf"
    assert status.history[0].secret == ENVOY.secret and "LeafRenewed" in status.history[0].changes
    return seconds


def test_renewed_leaves_restart_only_what_reads_them_once(world: World, report: list[str]) -> None:
    world.install_policy()
    with world.operator(), world.calls() as calls:
        world.wait_ready()
        before = world.seen()
        started = time.time()
        leaves = {workload.secret: world.authority.issue(workload.deployment) for workload in WORKLOADS}
        world.wait_settled(world.write_all(leaves))
        after = world.seen()
        report.append(f"three leaves renewed, all settled after {time.time() - started:.1f} s")
        for workload in (ENVOY, RATE_LIMIT):
            name = workload.consumer
            assert pods.identity(after[name].pods) == pods.identity(before[name].pods), f"{name} was restarted for a leaf it reloads"
        assert len(after["nginx"].replica_sets - before["nginx"].replica_sets) == 1, "nginx was not rolled exactly once"
        for workload in WORKLOADS:
            assert world.serves(workload, leaves[workload.secret]), f"{workload.consumer} does not serve its new leaf"
        assert calls.failed_since(started) == []


def _other_labels(world: World, leaf: Material) -> None:
    world.api.merge("secrets", NAMESPACE, ENVOY.secret, {"metadata": {"labels": {"touched": str(time.time_ns())}}})


def _same_bytes(world: World, leaf: Material) -> None:
    """Replaced by an equal object: the API server keeps the resourceVersion, and sends no watch event."""
    secret = world.api.get("secrets", NAMESPACE, ENVOY.secret)
    world.api.request("PUT", f"/api/v1/namespaces/{NAMESPACE}/secrets/{ENVOY.secret}", secret)


def _same_certificates_other_text(world: World, leaf: Material) -> None:
    """Other bytes, the same DER: a comment before each block, CRLF, a line more at the end."""
    def rewrite(pem: bytes) -> bytes:
        return b"# written again\r\n" + pem.replace(b"\n", b"\r\n") + b"\r\n"

    world.write(ENVOY, Material(rewrite(leaf.certificate), rewrite(leaf.key), rewrite(leaf.trust)))


_REWRITES = [_other_labels, _same_bytes, _same_certificates_other_text]


@pytest.mark.parametrize("rewrite", _REWRITES, ids=[rewrite.__name__.strip("_") for rewrite in _REWRITES])
def test_what_is_no_change_causes_no_write(world: World, rewrite: Callable[[World, Material], None]) -> None:
    """Nor does a dead operator pass for a quiet one: it must still act on a real renewal afterwards."""
    leaf = world.authority.issue(ENVOY.deployment)
    world.install_policy()
    with world.operator() as operator:
        world.wait_ready()
        world.wait_settled(world.write(ENVOY, leaf))
        world.wait_at_rest()
        mark = world.audit.mark()
        rewrite(world, leaf)
        steadily(
            "the operator wrote though nothing has changed",
            _QUIET,
            lambda: [str(write) for write in world.audit.since(mark) if write.resource != "leases"],
        )
        operator.check()
        world.wait_settled(world.write(ENVOY, world.authority.issue(ENVOY.deployment)))
        assert world.audit.since(mark), "the audit log shows no write even for a real renewal: it is not read right"


def test_first_sight_touches_nothing(world: World) -> None:
    """What is there when the operator starts is what is; only the policy's status is written."""
    mark = world.audit.mark()
    before = world.seen()
    world.install_policy()
    with world.operator():
        world.wait_ready()
        world.wait_at_rest()
    assert [str(write) for write in world.audit.disruptive_since(mark)] == []
    after = world.seen()
    for workload in WORKLOADS:
        name = workload.consumer
        assert pods.identity(after[name].pods) == pods.identity(before[name].pods)
    assert any(write.resource == "certrotationpolicies/status" for write in world.audit.since(mark)), "no status was written"
    assert NGINX.consumer in world.status().consumers
