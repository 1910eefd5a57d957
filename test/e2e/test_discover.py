"""Secrets by their labels, consumers by what they use; and two policies on one workload."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from certroll_dev.demo import workloads
from certroll_dev.demo.api import Object
from certroll_dev.demo.pki import NAMESPACE
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX
from world import World, steadily

_LABEL = {"e2e.certroll.dev/found": "yes"}
_SECRET = NGINX.secret
_QUIET = 5.0  # seconds in which it is watched that nothing is done a second time
_INGRESS = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
_OLDER = "a-older"  # of one second's age with another, the first by name counts as the older


def test_who_uses_a_selected_secret_is_found(world: World) -> None:
    """One scaled to 0, one by its environment, one by a subPath, an Ingress: nobody lists them, all are dealt with."""
    with _users(world):
        world.install_policy(_select_and_discover)
        with world.operator():
            world.wait_ready()
            wait_for("all users to be found", lambda: set(world.status().consumers) == _FOUND, deadline=30, missing=world.describe)
            assert set(world.status().secrets) == {_SECRET}
            world.wait_at_rest()
            before = {name: _rollouts(world, name) for name in _DEPLOYMENTS}

            decisions: dict[str, str] = {}
            leaf = world.authority.issue(NGINX.deployment)
            versions = world.write(NGINX, leaf)
            world.wait_settled(versions, seen=lambda status: _note_decisions(status, decisions))
            assert decisions["ingress-front"] == "HotReload"
            assert {decisions[f"deployment-{name}"] for name in ("by-env", "by-subpath")} == {"Restart"}
            for name in (NGINX.deployment, "by-env", "by-subpath"):
                assert _rollouts(world, name) == before[name] + 1, f"{name} was not rolled exactly once"
            assert _rollouts(world, "idle") == before["idle"], "rolled though it has no pods that could be old"
            assert world.serves(NGINX, leaf)

            # Without its label the Secret leaves, and all who use it.
            world.api.merge("secrets", NAMESPACE, _SECRET, {"metadata": {"labels": dict.fromkeys(_LABEL)}})
            wait_for("nothing to be left", lambda: not world.status().consumers, deadline=30, missing=world.describe)
            assert not world.status().secrets


def test_of_two_policies_the_older_acts(world: World) -> None:
    world.install_policy()
    with world.operator(), _older_policy(world) as older:
        world.wait_ready()
        wait_for("the younger to say whose nginx is", lambda: _OLDER in _conflict(world), deadline=30, missing=world.describe)
        before = _rollouts(world, NGINX.deployment)
        leaf = world.authority.issue(NGINX.deployment)
        versions = world.write(NGINX, leaf)
        wait_for("the older to be settled", lambda: older().settled(versions), deadline=120, missing=world.describe)
        world.wait_settled(versions)
        assert _rollouts(world, NGINX.deployment) == before + 1

        # The younger takes over what is done already, and does it no second time.
        world.api.delete("certrotationpolicies", NAMESPACE, _OLDER)
        wait_for("nobody else to have nginx", lambda: not world.status().holds("Conflict"), deadline=30, missing=world.describe)
        steadily("rolled again", _QUIET, lambda: _rollouts(world, NGINX.deployment) != before + 1)
        assert world.serves(NGINX, leaf)


def test_what_the_older_policy_leaves_undone_is_not_lost(world: World) -> None:
    """Suspended, it keeps its pair; deleted in the middle of a change, it leaves it to the younger, which has not forgotten it."""
    world.install_policy()
    with world.operator(), _older_policy(world, suspend=True):
        world.wait_ready()
        wait_for("the younger to say whose nginx is", lambda: _OLDER in _conflict(world), deadline=30, missing=world.describe)
        before = _rollouts(world, NGINX.deployment)
        leaf = world.authority.issue(NGINX.deployment)
        versions = world.write(NGINX, leaf)
        wait_for(
            "the younger to wait for the older",
            lambda: world.status().consumers[NGINX.consumer].blocked_reason == "OtherPolicy",
            deadline=30,
            missing=world.describe,
        )
        steadily("rolled while suspended", _QUIET, lambda: _rollouts(world, NGINX.deployment) != before)
        world.api.delete("certrotationpolicies", NAMESPACE, _OLDER)
        world.wait_settled(versions)
        assert _rollouts(world, NGINX.deployment) == before + 1
        assert world.serves(NGINX, leaf)


# --- who uses the Secret of nginx

_DEPLOYMENTS = (NGINX.deployment, "idle", "by-env", "by-subpath")
_FOUND = {f"deployment-{name}" for name in _DEPLOYMENTS} | {"ingress-front"}


def _select_and_discover(spec: Object) -> None:
    spec.update(secrets=None, consumers=None, secretSelector={"matchLabels": _LABEL}, discover={"enabled": True})


@contextmanager
def _users(world: World) -> Iterator[None]:
    """nginx again and again, each with the Secret in another way."""
    api = world.api
    api.merge("secrets", NAMESPACE, _SECRET, {"metadata": {"labels": _LABEL}})
    mount = {"name": "part", "mountPath": "/part/tls.crt", "subPath": "tls.crt", "readOnly": True}
    reference = {"secretKeyRef": {"name": _SECRET, "key": "tls.crt"}}
    made = [
        _like_nginx(world, "idle", lambda spec, container: None, replicas=0),
        _like_nginx(world, "by-env", lambda spec, container: container.update(env=[{"name": "CERTIFICATE", "valueFrom": reference}])),
        _like_nginx(world, "by-subpath", lambda spec, container: _add_sub_path(spec, container, mount)),
    ]
    try:
        for deployment in made:
            api.apply("deployments", deployment)
        api.request("POST", _INGRESS, _ingress())
        for deployment in made:
            workloads.wait_rolled_out(api, deployment["metadata"]["name"])
        yield
    finally:
        api.merge("secrets", NAMESPACE, _SECRET, {"metadata": {"labels": dict.fromkeys(_LABEL)}})
        for deployment in made:
            api.delete("deployments", NAMESPACE, deployment["metadata"]["name"])
        api.request("DELETE", f"{_INGRESS}/front")


def _like_nginx(world: World, name: str, change: Callable[[Object, Object], None], replicas: int = 1) -> Object:
    spec = copy.deepcopy(world.deployment(NGINX)["spec"])
    labels = {"app": name}
    template: Object = {"metadata": {"labels": labels}, "spec": spec["template"]["spec"]}
    change(template["spec"], template["spec"]["containers"][0])
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def _add_sub_path(spec: Object, container: Object, mount: Object) -> None:
    spec["volumes"].append({"name": mount["name"], "secret": {"secretName": _SECRET}})
    container["volumeMounts"].append(mount)


def _ingress() -> Object:
    backend = {"service": {"name": NGINX.deployment, "port": {"number": NGINX.port}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"namespace": NAMESPACE, "name": "front"},
        "spec": {"defaultBackend": backend, "tls": [{"hosts": [NGINX.server_name], "secretName": _SECRET}]},
    }


# --- another policy

@contextmanager
def _older_policy(world: World, *, suspend: bool = False) -> Iterator[Callable[[], Status]]:
    """On nginx alone, as old as the other and the first by name."""
    demo = world.policy()
    consumer = next(each for each in demo["spec"]["consumers"] if each["name"] == NGINX.consumer)
    spec = {"secrets": [{"name": _SECRET}], "consumers": [consumer], "suspend": suspend, "restart": demo["spec"]["restart"]}
    world.api.delete("certrotationpolicies", NAMESPACE, workloads.POLICY)
    older: Object = {
        "apiVersion": demo["apiVersion"],
        "kind": demo["kind"],
        "metadata": {"namespace": NAMESPACE, "name": _OLDER},
        "spec": spec,
    }
    world.api.apply("certrotationpolicies", older)
    world.install_policy()
    try:
        yield lambda: Status.of(world.api.get("certrotationpolicies", NAMESPACE, _OLDER))
    finally:
        if world.api.find("certrotationpolicies", NAMESPACE, _OLDER):
            world.api.delete("certrotationpolicies", NAMESPACE, _OLDER)


def _conflict(world: World) -> str:
    condition = world.status().conditions.get("Conflict")
    return condition.message if condition and condition.status else ""


def _rollouts(world: World, deployment: str) -> int:
    """The generations of its pod template that there ever were; of ReplicaSets only the last ten stay."""
    return int(world.api.get("deployments", NAMESPACE, deployment)["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


def _note_decisions(status: Status, decisions: dict[str, str]) -> None:
    for consumer in status.consumers.values():
        if not consumer.at_rest:
            decisions[consumer.name] = consumer.decision
