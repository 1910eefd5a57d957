"""Rights granted by the manifests, and rights used, by the API server's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OPERATOR = "certroll-operator"  # the service account, whatever its namespace
_AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"


@dataclass(frozen=True, order=True)
class Right:
    group: str
    resource: str  # with its subresource; or a path outside of the resources, such as /version
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


@dataclass(frozen=True)
class Request:
    """One request of an operator, as it was answered."""

    user: str
    namespace: str
    name: str
    right: Right
    code: int

    def __str__(self) -> str:
        return f"{self.user}: {self.right} {self.namespace}/{self.name}: {self.code}"


def granted(manifests: Iterable[Mapping[str, Any]]) -> set[Right]:
    """By the Roles and ClusterRoles among them, but for those that are lent to the cluster's users."""
    return {right for obj in manifests if _is_ours(obj) for rule in obj["rules"] for right in _of_rule(rule)}


def _is_ours(obj: Mapping[str, Any]) -> bool:
    labels = obj["metadata"].get("labels", {})
    return obj["kind"] in ("Role", "ClusterRole") and not any(label.startswith(_AGGREGATED) for label in labels)


def _of_rule(rule: Mapping[str, Any]) -> Iterator[Right]:
    for verb in rule["verbs"]:
        for path in rule.get("nonResourceURLs", []):
            yield Right("", path, verb)
        for group in rule.get("apiGroups", []):
            for resource in rule.get("resources", []):
                yield Right(group, resource, verb)


def requests(audit_log: Path) -> Iterator[Request]:
    """Of all operators. A watch counts when it begins, all else when it is answered."""
    with audit_log.open("rb") as file:
        for line in file:
            event = json.loads(line) if line.endswith(b"\n") else {}
            user = event.get("user", {}).get("username", "")
            if not user.endswith(f":{_OPERATOR}"):
                continue
            if event["stage"] == "ResponseComplete" or (event["verb"], event["stage"]) == ("watch", "ResponseStarted"):
                yield _request(event)


def _request(event: Mapping[str, Any]) -> Request:
    target = event.get("objectRef", {})
    resource = target.get("resource") or event["requestURI"].partition("?")[0]
    resource += f"/{target['subresource']}" if "subresource" in target else ""
    return Request(
        user=event["user"]["username"],
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        right=Right(target.get("apiGroup", ""), resource, event["verb"]),
        code=event.get("responseStatus", {}).get("code", 0),
    )
