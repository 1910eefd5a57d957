"""Rights granted by the manifests, and rights used, by the API server's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_OPERATOR = "certroll-operator"  # the service account, whatever its namespace
_AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"
_BINDINGS = ("rolebindings", "clusterrolebindings")
_ENDING_S = 60  # an operator whose rights are taken away with it, as by helm uninstall, asks for so long at most
_NOBODY = ("-",)  # no object can be called so: what a component takes away, its rule stays in its place


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

    @property
    def is_own(self) -> bool:
        """In the namespace of the operator."""
        return bool(self.namespace) and self.user.split(":")[-2] == self.namespace

    def __str__(self) -> str:
        return f"{self.user}: {self.right} {self.namespace}/{self.name}: {self.code}"


@dataclass(frozen=True, order=True)
class Grant:
    right: Right
    own: bool  # for the operator's own namespace, not for those that it watches
    names: tuple[str, ...] = ()  # of objects; empty: all

    def is_used_by(self, request: Request) -> bool:
        return (
            request.right == self.right
            and request.is_own == self.own
            and (not self.names or request.name in self.names)
            and request.code < 400
        )

    def __str__(self) -> str:
        named = f" {', '.join(self.names)}" if self.names else ""
        return f"{self.right}{named}{' in its own namespace' if self.own else ''}"


def granted(manifests: Iterable[Mapping[str, Any]]) -> set[Grant]:
    """By the Roles and ClusterRoles among them, but for those that are lent to the cluster's users."""
    grants = {grant for obj in manifests if _is_ours(obj) for rule in obj["rules"] for grant in _of_rule(rule, _is_own(obj))}
    return {grant for grant in grants if grant.names != _NOBODY}


def _is_ours(obj: Mapping[str, Any]) -> bool:
    labels = obj["metadata"].get("labels", {})
    return obj["kind"] in ("Role", "ClusterRole") and not any(label.startswith(_AGGREGATED) for label in labels)


def _is_own(obj: Mapping[str, Any]) -> bool:
    return bool(obj["metadata"]["name"] == f"{_OPERATOR}-self")


def _of_rule(rule: Mapping[str, Any], own: bool) -> Iterator[Grant]:
    for verb in rule["verbs"]:
        for path in rule.get("nonResourceURLs", []):
            yield Grant(Right("", path, verb), own)
        for group in rule.get("apiGroups", []):
            for resource in rule.get("resources", []):
                yield Grant(Right(group, resource, verb), own, tuple(rule.get("resourceNames", ())))


def unused(grants: Iterable[Grant], seen: Iterable[Request]) -> list[Grant]:
    """Each kind of request is looked at once: an audit log has many of the same."""
    kinds = {(r.right, r.is_own, r.name, r.code): r for r in seen}
    return sorted(grant for grant in grants if not any(grant.is_used_by(request) for request in kinds.values()))


def requests(audit_log: Path) -> Iterator[Request]:
    """Of all operators. A watch counts when it begins, all else when it is answered.

    What one is refused while it ends with its rights is left out.
    """
    unbound: dict[str, datetime] = {}  # by namespace, "" of the cluster: when a binding was deleted last
    with audit_log.open("rb") as file:
        for line in file:
            event = json.loads(line) if line.endswith(b"\n") else {}
            if _deletes_a_binding(event):
                unbound[event["objectRef"].get("namespace", "")] = _time(event)
            user = event.get("user", {}).get("username", "")
            if not user.endswith(f":{_OPERATOR}"):
                continue
            if _has_read_no_role_yet(event):
                continue
            if event["stage"] == "ResponseComplete" or (event["verb"], event["stage"]) == ("watch", "ResponseStarted"):
                request = _request(event)
                if request.code != 403 or not _is_ending(request, _time(event), unbound):
                    yield request


def _deletes_a_binding(event: Mapping[str, Any]) -> bool:
    return event.get("verb") == "delete" and event.get("objectRef", {}).get("resource") in _BINDINGS


def _is_ending(request: Request, at: datetime, unbound: Mapping[str, datetime]) -> bool:
    scopes = ("", request.namespace, request.user.split(":")[-2])
    return any(scope in unbound and (at - unbound[scope]).total_seconds() < _ENDING_S for scope in scopes)


def _time(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(event["requestReceivedTimestamp"])


def _has_read_no_role_yet(event: Mapping[str, Any]) -> bool:
    """An API server that has just started knows not even the roles that are its own: what it refuses then says nothing of ours."""
    return '"system:discovery" not found' in event.get("annotations", {}).get("authorization.k8s.io/reason", "")


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
