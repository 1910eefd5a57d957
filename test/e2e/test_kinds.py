"""Workloads of the other kinds, restarted as a Deployment is: with the same rights, and past the same admission policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from certroll_dev.argo_rollouts import ArgoRollouts
from certroll_dev.demo import pods
from certroll_dev.demo.api import Object
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX
from world import World

_KINDS = {"StatefulSet": {"serviceName": "stateful", "replicas": 2}, "DaemonSet": {}, "ReplicaSet": {"replicas": 2}}
_EVICTED = ("ReplicaSet",)  # a changed template would replace no pod
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
_PAUSE = 20  # seconds, at a step of the canary


def test_each_kind_is_restarted_once(world: World) -> None:
    with _workloads(world):
        world.install_policy(lambda spec: spec["consumers"].extend(_consumer(kind) for kind in _KINDS))
        with world.operator():
            world.wait_ready()
            world.wait_at_rest()
            before = {kind: _generation(world, kind) for kind in _KINDS}
            old = {pod.uid for kind in _KINDS for pod in _pods(world, kind)}
            leaf = world.authority.issue(NGINX.deployment)
            status = world.wait_settled(world.write(NGINX, leaf), deadline=180)
            for kind in _KINDS:
                assert status.consumers[_name(kind)].verified == len(_pods(world, kind)) > 0
                assert not old & {pod.uid for pod in _pods(world, kind)}
                template = 0 if kind in _EVICTED else 1
                assert _generation(world, kind) == before[kind] + template, f"the {kind} was not restarted exactly once"
                assert (_RESTARTED_AT in _workload(world, kind)["spec"]["template"]["metadata"].get("annotations", {})) == bool(template)
                served = {pods.served_leaf(pod.ip, NGINX.port, NGINX.server_name) for pod in _pods(world, kind)}
                assert served == {leaf.fingerprint()}


def test_an_argo_rollout_is_restarted_by_time_and_never_in_the_middle_of_its_canary(world: World) -> None:
    with ArgoRollouts(world.cluster.layout, NAMESPACE), _rollout(world):
        world.install_policy(lambda spec: spec["consumers"].append(_consumer("Rollout") | {"targetRef": _target_of_rollout()}))
        with world.operator():
            world.wait_ready()
            world.wait_at_rest()
            # At rest: its pods go one after the other, and it is still the same version.
            before, old = _workload(world, "Rollout"), _pods(world, "Rollout")
            leaf = world.authority.issue(NGINX.deployment)
            status = world.wait_settled(world.write(NGINX, leaf), deadline=180)
            after, new = _workload(world, "Rollout"), _pods(world, "Rollout")
            assert status.consumers[_name("Rollout")].verified == len(new) == 2
            assert not {pod.uid for pod in old} & {pod.uid for pod in new}
            assert after["spec"]["template"] == before["spec"]["template"]
            assert after["status"]["currentPodHash"] == after["status"]["stableRS"] == before["status"]["stableRS"]
            assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1, "more than one restart"
            assert {pods.served_leaf(pod.ip, NGINX.port, NGINX.server_name) for pod in new} == {leaf.fingerprint()}
            # At a pause of its canary: not before that is over, though the leaf waits.
            template = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
            world.api.merge("rollouts", NAMESPACE, _name("Rollout"), template)
            wait_for("the canary's pause", lambda: _phase(world) == "Paused", deadline=60, every=0.2)
            versions = world.write(NGINX, world.authority.issue(NGINX.deployment))
            wait_for("the consumer to wait", lambda: _blocked_reason(world) == "Paused", deadline=_PAUSE, every=0.2)
            assert _workload(world, "Rollout")["spec"]["restartAt"] == after["spec"]["restartAt"]
            status = world.wait_settled(versions, deadline=240)
            assert status.consumers[_name("Rollout")].verified == 2
            done = _workload(world, "Rollout")
            assert done["status"]["stableRS"] != before["status"]["stableRS"], "the canary went on"
            # Which of its pods were replaced by the canary after the change, and which by a restart, is a matter of seconds.
            assert done["metadata"]["generation"] <= after["metadata"]["generation"] + 2


@contextmanager
def _rollout(world: World) -> Iterator[None]:
    """nginx once more, by Argo Rollouts."""
    labels = {"app": _name("Rollout")}
    spec = world.deployment(NGINX)["spec"]["template"]["spec"] | {"terminationGracePeriodSeconds": 1}
    del spec["containers"][0]["lifecycle"]  # nobody calls
    template: Object = {"metadata": {"labels": labels}, "spec": spec}
    steps = [{"setWeight": 50}, {"pause": {"duration": f"{_PAUSE}s"}}]
    world.api.apply("rollouts", {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": _name("Rollout"), "namespace": NAMESPACE},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels}, "template": template,
            "strategy": {"canary": {"steps": steps, "maxUnavailable": 1}},
        },
    })  # fmt: skip
    try:
        wait_for("the Rollout", lambda: _phase(world) == "Healthy" and len(_pods(world, "Rollout")) == 2, deadline=120)
        yield
    finally:
        world.api.delete("rollouts", NAMESPACE, _name("Rollout"))
        wait_for("its pods to go", lambda: not pods.of_app(world.api, NAMESPACE, _name("Rollout")), deadline=60)


def _target_of_rollout() -> Object:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": _name("Rollout")}


def _phase(world: World) -> str:
    found: str = _workload(world, "Rollout").get("status", {}).get("phase", "")
    return found


def _blocked_reason(world: World) -> str:
    consumers = world.policy()["status"]["consumers"]
    found: str = next(each for each in consumers if each["name"] == _name("Rollout")).get("blockedReason", "")
    return found


@contextmanager
def _workloads(world: World) -> Iterator[None]:
    """nginx once more, as each kind."""
    spec = world.deployment(NGINX)["spec"]["template"]["spec"]
    try:
        for kind, more in _KINDS.items():
            labels = {"app": _name(kind)}
            template: Object = {"metadata": {"labels": labels}, "spec": spec}
            world.api.apply(_plural(kind), {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"name": _name(kind), "namespace": NAMESPACE},
                "spec": {"selector": {"matchLabels": labels}, "template": template, **more},
            })
        wait_for("pods of each kind", lambda: all(_is_up(world, kind) for kind in _KINDS), deadline=120)
        yield
    finally:
        for kind in _KINDS:
            if world.api.find(_plural(kind), NAMESPACE, _name(kind)):
                world.api.delete(_plural(kind), NAMESPACE, _name(kind))


def _consumer(kind: str) -> Object:
    return {
        "name": _name(kind),
        "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": _name(kind)},
        "verify": {"port": NGINX.port, "serverName": NGINX.server_name},
    }


def _is_up(world: World, kind: str) -> bool:
    wanted = _KINDS[kind].get("replicas", 1)
    found = _pods(world, kind)
    return len(found) == wanted and all(pod.ready for pod in found)


def _pods(world: World, kind: str) -> list[pods.Pod]:
    return pods.of_app(world.api, NAMESPACE, _name(kind))


def _generation(world: World, kind: str) -> int:
    found: int = _workload(world, kind)["metadata"]["generation"]
    return found


def _workload(world: World, kind: str) -> Object:
    return world.api.get(_plural(kind), NAMESPACE, _name(kind))


def _name(kind: str) -> str:
    return f"as-{kind.lower()}"


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"
