"""Restarts that do not go well: a new pod with old material, a rollout that fails, a policy that goes in the middle of it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import pytest
from certroll_dev.demo import pods, workloads
from certroll_dev.demo.api import APIError, Object
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX, Workload, is_rolled_out
from world import World, steadily

# A workload of these tests alone, so that the others find theirs as they left them.
_WEB = Workload("web", "web", "web-tls", 8443)
_QUIET = 12.0  # seconds; longer than the coalescing time after which a restart would have come


@pytest.fixture
def web(world: World) -> Iterator[World]:
    """nginx once more, as Deployment web: it mounts Secret web-tls, and serves what its ConfigMap names."""
    material = world.authority.issue(_WEB.deployment)
    for secret in (_WEB.secret, "web-copy"):
        world.api.apply("secrets", material.secret(secret))
    _configure(world, "/certs")
    world.api.apply("deployments", _deployment(world))
    workloads.wait_rolled_out(world.api, _WEB.deployment)
    world.install_policy()  # for the others, which these tests leave alone
    yield world
    for kind, name in (("certrotationpolicies", "web"), ("deployments", "web"), ("configmaps", "web"), ("secrets", "web-copy")):
        if world.api.find(kind, NAMESPACE, name):
            world.api.delete(kind, NAMESPACE, name)


def _configure(world: World, folder: str) -> None:
    config = world.api.get("configmaps", NAMESPACE, NGINX.deployment)["data"]["nginx.conf"].replace("/certs/", f"{folder}/")
    world.api.apply("configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": NAMESPACE}, "data": {"nginx.conf": config},
    })


def _deployment(world: World) -> Object:
    nginx = world.deployment(NGINX)
    spec = copy.deepcopy(nginx["spec"])
    spec["selector"] = {"matchLabels": {"app": "web"}}
    spec["progressDeadlineSeconds"] = 15
    spec["template"]["metadata"] = {"labels": {"app": "web"}}
    pod = spec["template"]["spec"]
    pod["containers"][0]["volumeMounts"].append({"name": "copy", "mountPath": "/copy", "readOnly": True})
    pod["volumes"] = [
        {"name": "config", "configMap": {"name": "web"}},
        {"name": "certs", "secret": {"secretName": _WEB.secret}},
        {"name": "copy", "secret": {"secretName": "web-copy"}},
    ]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec}


def _install_policy(world: World, coalesce: str = "0s") -> None:
    world.api.apply("certrotationpolicies", {
        "apiVersion": "certroll.dev/v1alpha1",
        "kind": "CertRotationPolicy",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "secrets": [{"name": _WEB.secret}],
            "restart": {"coalesce": coalesce, "breaker": {"within": "0s"}},
            "consumers": [{"name": "web", "targetRef": {"kind": "Deployment", "name": "web"}, "verify": {"port": _WEB.port}}],
        },
    })
    wait_for("the policy to be Ready", lambda: _status(world).holds("Ready"), deadline=30)


def _status(world: World) -> Status:
    return Status.of(world.api.get("certrotationpolicies", NAMESPACE, "web"))


def _renew(world: World, secret: str = _WEB.secret) -> tuple[Material, str]:
    material = world.authority.issue(_WEB.deployment)
    return material, world.api.apply("secrets", material.secret(secret))["metadata"]["resourceVersion"]


def _wait_settled(world: World, version: str, deadline: float = 180.0) -> None:
    def look() -> bool:
        status = _status(world)
        return status.is_settled(_WEB.secret, version) and status.consumers["web"].at_rest

    wait_for("web to be settled", look, deadline=deadline, missing=lambda: str(_status(world)))


def _hasten_kubelet(world: World) -> None:
    """Else it takes its minute and a half to see the ConfigMap, which is not what is tested."""

    def look() -> bool:
        with contextlib.suppress(APIError):  # of a pod that has gone meanwhile
            world.nudge(_WEB)
        return is_rolled_out(world.deployment(_WEB))

    wait_for("web to be rolled out", look, deadline=150, every=2.0)


def _events(world: World, reason: str) -> list[Object]:
    return [event for event in world.api.list("events", NAMESPACE) if event.get("reason") == reason]


def test_a_new_pod_that_serves_the_old_leaf_is_evicted(web: World) -> None:
    """As a pod that mounted the Secret from its kubelet's cache: here it serves a copy, which is renewed later."""
    _configure(web, "/copy")
    web.restart(_WEB)
    workloads.wait_rolled_out(web.api, _WEB.deployment)
    with web.operator():
        _install_policy(web)
        mark = web.audit.mark()
        revisions = workloads.replica_sets(web.api, _WEB)
        material, version = _renew(web)
        event = wait_for("a stale new pod to be evicted", lambda: _events(web, "EvictedStale"), deadline=60)[0]
        web.api.apply("secrets", material.secret("web-copy"))
        evicted = event["involvedObject"]["uid"]
        assert event["type"] == "Warning"
        wait_for("that pod to go", lambda: evicted not in {pod.uid for pod in web.pods(_WEB)}, deadline=60)
        _wait_settled(web, version)
        assert web.serves(_WEB, material)
        assert len(workloads.replica_sets(web.api, _WEB) - revisions) == 1, "evicted pods are replaced, not rolled out again"
        evictions = [write for write in web.audit.since(mark) if write.resource == "pods/eviction"]
        assert 1 <= len(evictions) <= 3, [str(write) for write in evictions]


def test_a_rollout_that_fails_is_told_and_taken_up_again_when_mended(web: World) -> None:
    with web.operator():
        _install_policy(web)
        before = pods.identity(web.pods(_WEB))
        _configure(web, "/nowhere")  # the pods that run have read theirs; new ones do not start
        material, version = _renew(web)
        wait_for("the failed rollout to be told", lambda: _status(web).holds("Degraded"), deadline=90)
        status = _status(web)
        assert status.consumers["web"].state == "Failed"
        assert status.conditions["Degraded"].reason == "RolloutFailed"
        wait_for("an Event of it, which comes after the record", lambda: _events(web, "RolloutFailed"), deadline=30)
        assert before <= pods.identity(web.pods(_WEB)), "the pods that worked are gone"
        _configure(web, "/certs")
        _hasten_kubelet(web)
        _wait_settled(web, version)
        assert web.serves(_WEB, material)
        assert not _status(web).holds("Degraded")


def test_a_policy_deleted_in_the_middle_ends_the_work(web: World) -> None:
    with web.operator() as operator:
        _install_policy(web, coalesce="10s")
        mark = web.audit.mark()
        _renew(web)
        wait_for("the change to be on record", lambda: _status(web).secrets[_WEB.secret].pending, deadline=30)
        web.api.delete("certrotationpolicies", NAMESPACE, "web")
        steadily("touched without a policy", _QUIET, lambda: [w for w in web.audit.disruptive_since(mark) if w.resource == "deployments"])
        operator.check()
