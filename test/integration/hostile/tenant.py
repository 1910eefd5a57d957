"""Somebody with the rights of one namespace, and how a way of hurting others is told."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rotations import API, APIError

Object = dict[str, Any]

RULES: list[Object] = [  # as `admin` has them, and the policies' and trust domains' by aggregation
    {"apiGroups": ["certroll.dev"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": ["", "apps", "policy", "networking.k8s.io"], "resources": ["*"], "verbs": ["*"]},
]

_KINDS = {
    "secrets": ("v1", "Secret"), "configmaps": ("v1", "ConfigMap"), "pods": ("v1", "Pod"), "events": ("v1", "Event"),
    "deployments": ("apps/v1", "Deployment"), "replicasets": ("apps/v1", "ReplicaSet"), "ingresses": ("networking.k8s.io/v1", "Ingress"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
    "certrotationpolicies": ("certroll.dev/v1alpha1", "CertRotationPolicy"), "trustdomains": ("certroll.dev/v1alpha1", "TrustDomain"),
}  # fmt: skip


@dataclass(frozen=True)
class Way:
    """`act` has the number of its turn. `every`: the least seconds between two turns; what is large would else stop the API server
    before anything else."""

    act: Callable[[int], object]
    every: float = 0.0

    @property
    def name(self) -> str:
        return self.act.__name__.replace("_", " ")


class Tenant:
    def __init__(self, api: API, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.dice = random.Random(20)

    def put(self, plural: str, name: str, fields: Object, **metadata: Any) -> Object:
        """Made, or changed in what these fields say."""
        version, kind = _KINDS[plural]
        meta = {"name": name, "namespace": self.namespace, **metadata}
        return self.api.apply(plural, {"apiVersion": version, "kind": kind, "metadata": meta, **fields})

    def merge(self, plural: str, name: str, patch: Object, subresource: str = "") -> Object:
        return self.api.merge(plural, self.namespace, name, patch, subresource)

    def delete(self, plural: str, name: str) -> None:
        """If it is there."""
        try:
            self.api.delete(plural, self.namespace, name)
        except APIError as error:
            if error.code != 404:
                raise

    def touch(self, plural: str, name: str) -> None:
        """Another version, of the same content."""
        self.merge(plural, name, {"metadata": {"annotations": {"turn": str(self.dice.random())}}})

    def secret(self, name: str, data: Object, kind: str = "kubernetes.io/tls", **metadata: Any) -> Object:
        return self.put("secrets", name, {"type": kind, "data": data}, **metadata)

    def policy(self, name: str, spec: Object, **metadata: Any) -> Object:
        return self.put("certrotationpolicies", name, {"spec": spec}, **metadata)

    def watch(self, name: str, *secrets: str, target: str = "nothing", **spec: Any) -> Object:
        """A policy of these Secrets and one Deployment, which need not be there."""
        restart = {"coalesce": "0s", "breaker": {"within": "0s"}}
        return self.policy(name, {"secrets": [{"name": each} for each in secrets], "consumers": [consumer(target)], "restart": restart, **spec})

    def deployment(self, name: str, pod: Object, replicas: int = 0, labels: Object | None = None, **spec: Any) -> Object:
        """With one container, but for what `pod` says. `paused`: nobody rolls its changes out."""
        container = {"name": "c", "image": "example.com/unknown:1"}
        own = {"app": name}
        template = {"metadata": {"labels": {**own, **(labels or {})}}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **pod}}
        fields = {"replicas": replicas, "selector": {"matchLabels": own}, "revisionHistoryLimit": 0, "template": template, **spec}
        return self.put("deployments", name, {"spec": fields})


def consumer(target: str, **fields: Any) -> Object:
    return {"name": "c", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}, **fields}


def names(prefix: str, count: int) -> Sequence[str]:
    return [f"{prefix}-{number}" for number in range(count)]
