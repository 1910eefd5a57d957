"""A namespace of its own with Envoy, which reloads, nginx, which does not, and a policy for both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from certroll_dev.demo import pki, pods, workloads
from certroll_dev.demo.api import API, Object
from certroll_dev.demo.cluster import LocalCluster
from certroll_dev.demo.pki import Material
from certroll_dev.demo.policy import Status
from certroll_dev.demo.waiting import wait_for
from certroll_dev.demo.workloads import ENVOY, NGINX, Workload, is_rolled_out

POLICY = "shop"
WORKLOADS = (ENVOY, NGINX)
_ROLE = "certroll-operator"  # manifests/namespace


class Shop:
    def __init__(self, cluster: LocalCluster, api: API, namespace: str) -> None:
        self.namespace = namespace
        self._cluster = cluster
        self._api = api
        self._authorities = 0
        self._materials: dict[str, Material] = {}

    def up(self) -> None:
        self.kubectl("delete", "namespace", self.namespace, "--ignore-not-found")  # of a run before, if any
        self.kubectl("create", "namespace", self.namespace)
        self.change()
        for manifest in ("30-envoy.yaml", "40-nginx.yaml"):
            text = (workloads.MANIFESTS / manifest).read_text()
            self._cluster.kubectl("apply", "-f", "-", stdin=text.replace(pki.NAMESPACE, self.namespace))
        for workload in WORKLOADS:
            wait_for(f"{workload.deployment} in {self.namespace}", lambda w=workload: is_rolled_out(self._deployment(w)), deadline=120)

    def down(self) -> None:
        self.kubectl("delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")

    # --- changing

    def change(self) -> dict[str, str]:
        """A new CA, and a leaf of it for each. Returns the Secrets' resourceVersions by their names."""
        self._authorities += 1
        authority = pki.new_authority(self._authorities)
        self._materials = {w.secret: authority.issue(w.deployment, namespace=self.namespace) for w in WORKLOADS}
        written = {name: self._api.apply("secrets", m.secret(name, self.namespace)) for name, m in self._materials.items()}
        return {name: secret["metadata"]["resourceVersion"] for name, secret in written.items()}

    def install_policy(self, coalesce: str = "1s") -> None:
        self._api.apply("certrotationpolicies", {
            "apiVersion": "certroll.dev/v1alpha1",
            "kind": "CertRotationPolicy",
            "metadata": {"name": POLICY, "namespace": self.namespace},
            "spec": {
                "secrets": [{"name": w.secret} for w in WORKLOADS],
                "consumers": [self._consumer(w) for w in WORKLOADS],
                "restart": {"coalesce": coalesce, "breaker": {"within": "0s"}},
            },
        })  # fmt: skip
        self.wait("the policy to be Ready", lambda status: status.holds("Ready"), deadline=60)

    def _consumer(self, workload: Workload) -> Object:
        return {
            "name": workload.consumer,
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.deployment},
            "verify": {"port": workload.port},
        }

    @contextmanager
    def without_right(self, resource: str, *verbs: str) -> Iterator[None]:
        """The operator's, in this namespace: the Role is another as long as this lasts."""
        rules = json.loads(self.kubectl("get", "role", _ROLE, "-o", "json"))["rules"]
        self._set_rules([rest for rule in rules for rest in _without(rule, resource, verbs)])
        try:
            yield
        finally:
            self._set_rules(rules)

    def _set_rules(self, rules: list[Object]) -> None:
        self.kubectl("patch", "role", _ROLE, "--type=merge", "-p", json.dumps({"rules": rules}))

    # --- looking

    def kubectl(self, *words: str) -> str:
        return self._cluster.kubectl("-n", self.namespace, *words)

    def status(self) -> Status:
        return Status.of(self._api.get("certrotationpolicies", self.namespace, POLICY))

    def wait(self, what: str, look: object, deadline: float) -> None:
        assert callable(look)
        wait_for(f"{what} in {self.namespace}", lambda: look(self.status()), deadline=deadline, missing=lambda: str(self.status()))

    def wait_settled(self, versions: dict[str, str], deadline: float) -> None:
        self.wait("the rotation to be settled", lambda status: status.settled(versions), deadline)

    def rollouts(self, workload: Workload) -> int:
        """The generations of its pod template that there ever were."""
        return len(self._api.list("replicasets", self.namespace, f"app={workload.deployment}"))

    def serves_its_leaf(self, workload: Workload) -> bool:
        found = pods.of_app(self._api, self.namespace, workload.deployment)
        name = f"{workload.deployment}.{self.namespace}.svc"
        leaf = self._materials[workload.secret].fingerprint()
        return bool(found) and {pods.served_leaf(pod.ip, workload.port, name) for pod in found} == {leaf}

    def events(self, reason: str) -> list[Object]:
        return [event for event in self._api.list("events", self.namespace) if event.get("reason") == reason]

    def _deployment(self, workload: Workload) -> Object:
        return self._api.get("deployments", self.namespace, workload.deployment)


def _without(rule: Object, resource: str, verbs: tuple[str, ...]) -> Iterator[Object]:
    if resource not in rule["resources"]:
        yield rule
        return
    others = [each for each in rule["resources"] if each != resource]
    rest = [verb for verb in rule["verbs"] if verb not in verbs]
    if others:
        yield rule | {"resources": others}
    if rest:
        yield rule | {"resources": [resource], "verbs": rest}
