"""Objects for tests on a control plane: Secrets, workloads that use them, policies; and what a policy's status says."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]

UNKNOWN = "registry.example.org/soft/ware:1.0"  # read once at start, as far as anybody can tell: restarted

POLICY = "certroll.dev/v1alpha1"


def secret(namespace: str, name: str, data: Mapping[str, bytes], *, type: str = "kubernetes.io/tls", **labels: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "type": type,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def deployment(namespace: str, name: str, *secrets: str, env: str = "") -> Object:
    """`secrets` are mounted; of the Secret `env` all keys are variables."""
    mounts = [{"name": each, "mountPath": f"/tls/{each}"} for each in secrets]
    container: Object = {"name": "main", "image": UNKNOWN, "volumeMounts": mounts}
    if env:
        container["envFrom"] = [{"secretRef": {"name": env}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [container],
                    "terminationGracePeriodSeconds": 0,
                    "volumes": [{"name": each, "secret": {"secretName": each}} for each in secrets],
                },
            },
        },
    }


def policy(namespace: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": POLICY,
        "kind": "CertRotationPolicy",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"restart": {"coalesce": "0s", "breaker": {"within": "0s"}}} | spec,
    }


def listed(*deployments: str) -> list[Object]:
    """As spec.consumers."""
    return [{"name": each, "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": each}} for each in deployments]


# --- what a status says


def converged(policy: Object) -> bool:
    """By its own word, of the policy as it is now, with nothing under way."""
    return _is_at_rest(policy) and _condition(policy, "Converged").get("status") == "True"


def has_no_secret(policy: Object) -> bool:
    """By its own word, of the policy as it is now, with nothing under way: none that it selects is there."""
    return _is_at_rest(policy) and _condition(policy, "Converged").get("reason") == "NoSecret"


def _is_at_rest(policy: Object) -> bool:
    status = policy.get("status") or {}
    return (
        status.get("observedGeneration") == policy["metadata"]["generation"]
        and not any(each.get("pending") or each.get("problem") for each in status.get("secrets", []))
        and all(each.get("state", "Idle") in ("Idle", "Converged") for each in status.get("consumers", []))
    )


def _condition(policy: Object, kind: str) -> Object:
    """Empty when it is not there."""
    conditions: Sequence[Object] = (policy.get("status") or {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def settled(policy: Object) -> dict[str, Object]:
    """What it remembers of each Secret as settled."""
    secrets: Sequence[Object] = (policy.get("status") or {}).get("secrets", [])
    return {each["name"]: each.get("settled") or {} for each in secrets}


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of the first certificate, as status has it."""
    first = certificate.decode().split("-----END", 1)[0] + "-----END CERTIFICATE-----"
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()
