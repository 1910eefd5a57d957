"""What a policy may say about how consumers react, and that it is obeyed."""

from __future__ import annotations

from collections.abc import Mapping

from certroll_dev.demo import pods
from certroll_dev.demo.api import Object
from certroll_dev.demo.scenario import Seen
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, NGINX, RATE_LIMIT, WORKLOADS, Workload
from world import World, steadily

_QUIET = 5.0  # seconds in which it is watched that nothing is touched


def _consumer(spec: Object, workload: Workload) -> Object:
    found: Object = next(consumer for consumer in spec["consumers"] if consumer["name"] == workload.consumer)
    return found


def _nginx_is_said_to_watch(spec: Object) -> None:
    watches = {"method": "Watch", "maxDelay": "2s"}
    consumer = _consumer(spec, NGINX)
    # nginx may also show its certificate as a client (proxy_ssl_certificate); which of both, the pod template does not tell.
    consumer["reload"] = {"serverLeaf": watches, "clientLeaf": watches}
    consumer["verify"] |= {"timeout": "10s", "onTimeout": "Report"}


def test_a_leaf_still_served_past_its_deadline(world: World) -> None:
    """The policy claims that nginx watches its certificate, which is not so: what handshakes show decides, when time is up."""
    world.install_policy(_nginx_is_said_to_watch)
    with world.operator() as operator:
        world.wait_ready()
        before = world.seen()
        mark = world.audit.mark()
        leaf = world.authority.issue(NGINX.deployment)
        versions = world.write(NGINX, leaf)
        wait_for("two stale pods in the status", lambda: _stale(world) == 2, deadline=30, missing=world.describe)
        assert not world.status().holds("Degraded"), "told before the kubelet had the time to refresh the files by itself"

        # onTimeout: Report. The deadline is never before the kubelet's own refresh, so this takes a minute and a half.
        wait_for("the policy to say that it is degraded", lambda: world.status().holds("Degraded"), deadline=150, missing=world.describe)
        assert "nginx" in world.status().conditions["Degraded"].message
        assert _touched(world, before) == [], "restarted though it is only to be reported"
        assert {write.resource for write in world.audit.disruptive_since(mark)} == {"pods/status"}, "more than nudges"
        operator.check()

        world.change_policy(lambda spec: _consumer(spec, NGINX)["verify"].update(onTimeout="Restart"))
        world.wait_settled(versions)
        assert _touched(world, before) == ["nginx"]
        assert len(world.seen()["nginx"].replica_sets - before["nginx"].replica_sets) == 1, "nginx was not rolled exactly once"
        assert world.serves(NGINX, leaf)


def test_a_plan_touches_nothing(world: World) -> None:
    """mode: Plan says what would be done; Enforce then does it."""
    world.install_policy(lambda spec: spec.update(mode="Plan"))
    materials = world.new_ca()
    with world.operator() as operator:
        world.wait_ready()
        before = world.seen()
        mark = world.audit.mark()
        versions = world.write_all(materials)
        wait_for("the plan to restart Rate Limit", lambda: _decided(world) == "Restart", deadline=30, missing=world.describe)
        steadily("touched though it was only to be planned", _QUIET, lambda: [str(w) for w in world.audit.disruptive_since(mark)])
        assert _touched(world, before) == []
        operator.check()
        wait_for("an Event for each restart", lambda: _planned(world, RATE_LIMIT) and _planned(world, NGINX), deadline=30)
        assert "GRPC_CLIENT_TLS_CACERT" in _planned(world, RATE_LIMIT)[0]["message"]
        assert not _planned(world, ENVOY), "it reloads"
        world.change_policy(lambda spec: spec.update(mode="Enforce"))
        world.wait_settled(versions)
    for workload in WORKLOADS:
        assert world.serves(workload, materials[workload.secret]), f"{workload.consumer} does not serve its new leaf"
    assert set(_touched(world, before)) == {"rate-limit", "nginx"}


def test_a_suspended_policy_is_taken_up_again(world: World) -> None:
    world.install_policy(lambda spec: spec.update(suspend=True))
    materials = world.new_ca()
    with world.operator() as operator:
        wait_for("the policy to be looked at", lambda: world.status().observed_generation == world.status().generation, deadline=30)
        world.wait_at_rest()
        before = world.seen()
        mark = world.audit.mark()
        versions = world.write_all(materials)
        steadily("touched though suspended", _QUIET, lambda: [str(w) for w in world.audit.disruptive_since(mark)])
        operator.check()
        world.change_policy(lambda spec: spec.update(suspend=False))
        world.wait_settled(versions)
    assert set(_touched(world, before)) == {"rate-limit", "nginx"}


def test_an_optional_consumer_may_be_absent(world: World) -> None:
    world.install_policy(lambda spec: spec["consumers"].append(_ABSENT))
    with world.operator():
        world.wait_ready()
        leaf = world.authority.issue(RATE_LIMIT.deployment)
        versions = world.write(RATE_LIMIT, leaf)
        ((name, version),) = versions.items()
        wait_for("the rotation to be settled", lambda: world.status().is_settled(name, version), deadline=60)
        assert world.status().consumers["absent"].state == "Absent"
        assert not world.status().holds("Degraded")


_ABSENT = {"name": "absent", "optional": True, "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"}}


def _decided(world: World) -> str:
    return world.status().consumers[RATE_LIMIT.consumer].decision


def _planned(world: World, workload: Workload) -> list[Object]:
    return [event for event in world.events_of(world.deployment(workload)) if event["reason"] == "RestartPlanned"]


def _stale(world: World) -> int:
    return world.status().consumers[NGINX.consumer].stale


def _touched(world: World, before: Mapping[str, Seen]) -> list[str]:
    """Consumers whose pods are no longer those of before."""
    now = world.seen()
    return [name for name, seen in before.items() if pods.identity(now[name].pods) != pods.identity(seen.pods)]
