"""nginx once more, as Deployment web of a test's own: the other tests find theirs as they left them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from contextlib import contextmanager

from certroll_dev.demo import pods, workloads
from certroll_dev.demo.api import APIError, Object
from certroll_dev.demo.pki import NAMESPACE, Material
from certroll_dev.demo.policy import Consumer, Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import NGINX, Workload, is_rolled_out
from world import World

WEB = Workload("web", "web", "web-tls", 8443)
COPY = "web-copy"  # a Secret that the policy does not know, which web may be made to serve instead
_DEPLOYMENT = "/apis/apps/v1/namespaces/{}/deployments/{}".format(NAMESPACE, WEB.deployment)


class Web:
    """It mounts Secret web-tls, reads it once, and serves what its ConfigMap names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.manifest: Object = {}  # as it stands in its owner's repository

    # --- life

    def up(self, replicas: int) -> None:
        material = self.world.authority.issue(WEB.deployment)
        for secret in (WEB.secret, COPY):
            self.world.api.apply("secrets", material.secret(secret))
        self.configure("/certs")
        self.manifest = _deployment(self.world, replicas)
        self.world.api.apply("deployments", self.manifest)
        workloads.wait_rolled_out(self.world.api, WEB.deployment)
        self.world.install_policy()  # for the others, which these tests leave alone

    def down(self) -> None:
        for kind, name in (("certrotationpolicies", "web"), ("deployments", "web"), ("configmaps", "web"), ("secrets", COPY)):
            if self.world.api.find(kind, NAMESPACE, name):
                self.world.api.delete(kind, NAMESPACE, name)

    # --- changing

    def configure(self, folder: str) -> None:
        """Where it finds what it serves."""
        config = self.world.api.get("configmaps", NAMESPACE, NGINX.deployment)["data"]["nginx.conf"].replace("/certs/", f"{folder}/")
        self.world.api.apply("configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": NAMESPACE}, "data": {"nginx.conf": config},
        })  # fmt: skip

    def install_policy(self, **restart: object) -> None:
        """Without a wait and a breaker, unless `restart` says otherwise. None: the default."""
        said = {"coalesce": "0s", "breaker": {"within": "0s"}} | restart
        self.world.api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {
                "secrets": [{"name": WEB.secret}],
                "restart": {name: value for name, value in said.items() if value is not None},
                "consumers": [{"name": "web", "targetRef": {"kind": "Deployment", "name": "web"}, "verify": {"port": WEB.port}}],
            },
        })  # fmt: skip
        wait_for("the policy to be Ready", lambda: self.status().holds("Ready"), deadline=30)

    def change_policy(self, spec: Object) -> None:
        """Returns when the operator has seen it."""
        self.world.api.merge("certrotationpolicies", NAMESPACE, "web", {"spec": spec})

        def look() -> bool:
            status = self.status()
            return status.observed_generation == status.generation

        wait_for("the changed policy to be seen", look, deadline=30)

    def renew(self, secret: str = WEB.secret) -> tuple[Material, str]:
        """Another leaf, and at which resourceVersion."""
        material = self.world.authority.issue(WEB.deployment)
        return material, self.world.api.apply("secrets", material.secret(secret))["metadata"]["resourceVersion"]

    def replace(self) -> None:
        """As `kubectl replace`: what is not in the manifest is gone."""
        self.world.api.request("PUT", _DEPLOYMENT, self.manifest)

    def hasten_kubelet(self) -> None:
        """Else it takes its minute and a half to see the ConfigMap, which is not what is tested."""

        def look() -> bool:
            with contextlib.suppress(APIError):  # of a pod that has gone meanwhile
                self.world.nudge(WEB)
            return is_rolled_out(self.deployment())

        wait_for("web to be rolled out", look, deadline=150, every=2.0)

    # --- looking

    def status(self) -> Status:
        return Status.of(self.world.api.get("certrotationpolicies", NAMESPACE, "web"))

    def consumer(self) -> Consumer:
        return self.status().consumers["web"]

    def wait_consumer(self, state: str, deadline: float = 60.0) -> Consumer:
        def look() -> Consumer | None:
            found = self.status().consumers.get("web")
            return found if found and found.state == state else None

        return wait_for(f"web to be {state}", look, deadline=deadline, every=0.05, missing=lambda: str(self.status()))

    def wait_settled(self, version: str, deadline: float = 180.0) -> None:
        def look() -> bool:
            status = self.status()
            return status.is_settled(WEB.secret, version) and status.consumers["web"].at_rest

        wait_for("web to be settled", look, deadline=deadline, missing=lambda: str(self.status()))

    def deployment(self) -> Object:
        return self.world.deployment(WEB)

    def pods(self) -> list[pods.Pod]:
        return self.world.pods(WEB)

    def serves(self, material: Material) -> bool:
        return self.world.serves(WEB, material)

    def rollouts(self) -> set[str]:
        return workloads.replica_sets(self.world.api, WEB)

    def restarts_since(self, mark: int) -> int:
        """Patches of its pod template by the operator that were accepted."""
        return sum(write.resource == "deployments" and write.name == "web" and write.code < 400 for write in self.world.audit.since(mark))

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.world.api.list("events", NAMESPACE) if event.get("reason") == reason]

    def events_of_deployment(self, reason: str) -> list[Object]:
        return [event for event in self.world.events_of(self.deployment()) if event.get("reason") == reason]


@contextmanager
def web(world: World, replicas: int = 2) -> Iterator[Web]:
    found = Web(world)
    try:
        found.up(replicas)
        yield found
    finally:
        found.down()


def _deployment(world: World, replicas: int) -> Object:
    nginx = world.deployment(NGINX)
    spec = copy.deepcopy(nginx["spec"])
    spec["replicas"] = replicas
    spec["selector"] = {"matchLabels": {"app": "web"}}
    spec["progressDeadlineSeconds"] = 15
    spec["template"]["metadata"] = {"labels": {"app": "web"}}
    pod = spec["template"]["spec"]
    pod["containers"][0]["volumeMounts"].append({"name": "copy", "mountPath": "/copy", "readOnly": True})
    pod["volumes"] = [
        {"name": "config", "configMap": {"name": "web"}},
        {"name": "certs", "secret": {"secretName": WEB.secret}},
        {"name": "copy", "secret": {"secretName": COPY}},
    ]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec}
