"""Workloads of the other kinds, restarted as a Deployment is: with the same rights, and past the same admission policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from certroll_dev.demo import pods
from certroll_dev.demo.api import Object
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX
from world import World

_KINDS = {"StatefulSet": {"serviceName": "stateful", "replicas": 2}, "DaemonSet": {}}
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


def test_each_kind_is_restarted_once(world: World) -> None:
    with _workloads(world):
        world.install_policy(lambda spec: spec["consumers"].extend(_consumer(kind) for kind in _KINDS))
        with world.operator():
            world.wait_ready()
            world.wait_at_rest()
            before = {kind: _generation(world, kind) for kind in _KINDS}
            leaf = world.authority.issue(NGINX.deployment)
            status = world.wait_settled(world.write(NGINX, leaf), deadline=180)
            for kind in _KINDS:
                assert status.consumers[_name(kind)].verified == len(_pods(world, kind)) > 0
                assert _generation(world, kind) == before[kind] + 1, f"the {kind} was not restarted exactly once"
                assert _RESTARTED_AT in _workload(world, kind)["spec"]["template"]["metadata"]["annotations"]
                served = {pods.served_leaf(pod.ip, NGINX.port, NGINX.server_name) for pod in _pods(world, kind)}
                assert served == {leaf.fingerprint()}


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
